//! The address guard, connect-to rules and the proxy.
#![expect(clippy::unwrap_used, reason = "a failed set-up fails the test")]

mod support;

use fetcher::{FetchConfig, Fetcher, FetcherError};
use support::{
    Authority, Reply, config, expect_failure, expect_response, fetcher, read_head, serve,
    serve_tls, url,
};
use tokio::{
    io::{AsyncWriteExt, copy_bidirectional},
    net::{TcpListener, TcpStream},
};
use types::{FailureKind, Host, HttpVersion, Resolution};

fn guarded(connect_to: &[String]) -> FetchConfig {
    FetchConfig {
        allow_private_addresses: false,
        connect_to: connect_to
            .iter()
            .map(|rule| rule.parse().unwrap())
            .collect(),
        ..config()
    }
}

#[tokio::test]
async fn private_addresses_are_refused_in_every_spelling_and_never_connected_to() {
    let server = serve(|_, _| Reply::ok("", "secret")).await;
    let port = server.address.port();
    let fetcher = fetcher(guarded(&[]));
    for host in [
        "127.0.0.1",
        "127.1",
        "2130706433",
        "0x7f000001",
        "0x7f.1",
        "0177.0.0.1",
        "127.0.0.1.",
        "0.0.0.0",
        "0",
        "localhost",
        "LOCALHOST.",
        "[::1]",
        "[::]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[::127.0.0.1]",
        "[64:ff9b::7f00:1]",
        "[2002:7f00:1::]",
        "169.254.169.254",
        "10.0.0.1",
        "192.168.1.1",
        "[fd00::1]",
        "[fe80::1]",
        "\u{ff11}27.0.0.1",
    ] {
        for scheme in ["http", "https"] {
            let target = url(&format!("{scheme}://{host}:{port}/"));
            let detail = expect_failure(fetcher.fetch(&target).await, FailureKind::AddressRefused);
            assert!(
                detail.contains("outside the public internet"),
                "{host}: {detail}"
            );
            match fetcher.resolve(&target.host()).await {
                Resolution::Failed(failure) => {
                    assert_eq!(failure.kind, FailureKind::AddressRefused, "{host}");
                }
                other => panic!("{host}: {other:?}"),
            }
        }
    }
    assert_eq!(server.connection_count(), 0);
}

#[tokio::test]
async fn hosts_resolve_to_the_address_that_the_limit_counts() {
    let open = fetcher(config());
    let closed = fetcher(guarded(&[
        "named.example:::9".to_owned(),
        "moved.example::127.0.0.1:".to_owned(),
    ]));
    let resolve =
        async |fetcher: &Fetcher, host: &str| match fetcher.resolve(&Host::new(host)).await {
            Resolution::Address(address) => address.to_string(),
            Resolution::Exempt => "exempt".to_owned(),
            Resolution::Failed(failure) => failure.kind.name().to_owned(),
        };
    assert_eq!(resolve(&open, "http://localhost").await, "exempt");
    assert_eq!(resolve(&open, "http://127.0.0.1:81").await, "exempt");
    assert_eq!(resolve(&open, "http://[::ffff:7f00:1]").await, "exempt");
    assert_eq!(resolve(&open, "https://10.1.2.3").await, "10.1.2.3");
    assert_eq!(resolve(&closed, "https://8.8.8.8").await, "8.8.8.8");
    assert_eq!(
        resolve(&closed, "https://[::ffff:808:808]").await,
        "8.8.8.8"
    );
    assert_eq!(
        resolve(&closed, "https://[2606:4700::1111]:8443").await,
        "2606:4700::1111"
    );
    assert_eq!(resolve(&closed, "https://moved.example").await, "exempt");
    assert_eq!(
        resolve(&open, &format!("http://{}.example", "a".repeat(64))).await,
        "dns"
    );
    // Where the limit was asked for, nothing is exempt from it.
    let counted = fetcher(FetchConfig {
        exempts_own_addresses: false,
        ..guarded(&["moved.example::127.0.0.1:".to_owned()])
    });
    assert_eq!(
        resolve(&counted, "https://moved.example").await,
        "127.0.0.1"
    );
    let counted = fetcher(FetchConfig {
        exempts_own_addresses: false,
        proxy: Some("http://127.0.0.1:9".to_owned()),
        ..guarded(&[])
    });
    assert_eq!(resolve(&counted, "https://any.example").await, "0.0.0.0");
    // A rule that moves the port alone names no address: the guard and the limit stay.
    assert_eq!(
        resolve(&fetcher(guarded(&[":::9".to_owned()])), "http://localhost").await,
        "address-refused"
    );
}

#[tokio::test]
async fn connect_to_moves_names_literals_and_ports_and_keeps_the_host_field() {
    let server = serve(|_, _| Reply::ok("", "here")).await;
    let port = server.address.port();
    let rules = [
        format!("port.example:80:127.0.0.1:{port}"),
        "first.example:::1".to_owned(),
        format!("named.example::localhost:{port}"),
        format!("::127.0.0.1:{port}"),
    ];
    let fetcher = fetcher(guarded(&rules));
    for host in [
        "port.example",
        "other.example",
        "other.example:8080",
        "named.example",
        "named.example:8080",
        "8.8.8.8",
        "8.8.8.8:8080",
        "[2606:4700::1111]",
        "10.0.0.1",
        "named.example:8080",
    ] {
        let got = expect_response(fetcher.fetch(&url(&format!("http://{host}/p"))).await);
        assert_eq!(
            (got.wire_body.as_slice(), got.address),
            (&b"here"[..], Some(server.address)),
            "{host}"
        );
        let sent = server.heads().pop().unwrap();
        assert!(
            sent.starts_with("GET /p HTTP/1.1\r\n")
                && sent.contains(&format!("\r\nHost: {host}\r\n")),
            "{sent}"
        );
        assert_eq!(String::from_utf8(got.request_head).unwrap(), sent);
    }
    // The first rule that matches wins, also where a later one would do better.
    let outcome = fetcher.fetch(&url("http://first.example/")).await.outcome;
    assert!(
        matches!(outcome, types::FetchOutcome::Failed(_)),
        "{outcome:?}"
    );
}

#[tokio::test]
async fn connect_to_keeps_the_port_where_the_rule_names_none() {
    let server = serve(|_, _| Reply::ok("", "here")).await;
    let fetcher = fetcher(guarded(&["any.example::127.0.0.1:".to_owned()]));
    let target = url(&format!("http://any.example:{}/", server.address.port()));
    assert_eq!(
        expect_response(fetcher.fetch(&target).await).wire_body,
        b"here"
    );
    assert!(
        server.heads()[0].contains(&format!("Host: any.example:{}\r\n", server.address.port()))
    );
}

#[tokio::test]
async fn connect_to_keeps_the_tls_name() {
    let authority = Authority::new();
    let acceptor = authority.acceptor(&["secure.example"], &["http/1.1"]);
    let server = serve_tls(acceptor, |_, _| Reply::ok("", "secure")).await;
    let rule = format!("::127.0.0.1:{}", server.address.port());
    let fetcher = fetcher(FetchConfig {
        ca_pem: Some(authority.pem()),
        ..guarded(&[rule])
    });
    for host in ["secure.example", "secure.example:8443"] {
        let got = expect_response(fetcher.fetch(&url(&format!("https://{host}/"))).await);
        assert_eq!(
            (got.wire_body.as_slice(), got.version),
            (&b"secure"[..], HttpVersion::Http11)
        );
        assert!(
            server
                .heads()
                .pop()
                .unwrap()
                .contains(&format!("Host: {host}\r\n"))
        );
    }
    let detail = expect_failure(
        fetcher.fetch(&url("https://wrong.example/")).await,
        FailureKind::Tls,
    );
    assert!(detail.contains("wrong.example"), "{detail}");
}

#[tokio::test]
async fn a_proxy_gets_whole_urls_and_exempts_names_from_the_guard() {
    let proxy = serve(|_, _| Reply::ok("", "by proxy")).await;
    let proxied = FetchConfig {
        proxy: Some(format!("http://{}", proxy.address)),
        ..guarded(&[])
    };
    let fetcher = fetcher(proxied);
    let got = expect_response(fetcher.fetch(&url("http://site.example/a?b")).await);
    assert_eq!(
        (got.wire_body.as_slice(), got.address),
        (&b"by proxy"[..], Some(proxy.address))
    );
    assert!(
        proxy.heads()[0].starts_with("GET http://site.example/a?b HTTP/1.1\r\n"),
        "{:?}",
        proxy.heads()
    );
    assert!(matches!(
        fetcher.resolve(&Host::new("http://site.example")).await,
        Resolution::Exempt
    ));
    for host in ["127.0.0.1", "localhost", "a.localhost", "169.254.169.254"] {
        expect_failure(
            fetcher.fetch(&url(&format!("http://{host}/"))).await,
            FailureKind::AddressRefused,
        );
    }
    assert_eq!(proxy.heads().len(), 1);
}

#[tokio::test]
async fn a_proxy_tunnels_tls() {
    let authority = Authority::new();
    let acceptor = authority.acceptor(&["secure.example"], &["http/1.1"]);
    let server = serve_tls(acceptor, |_, _| Reply::ok("", "tunnelled")).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let proxy = listener.local_addr().unwrap();
    let tunnel = tokio::spawn(async move {
        let (mut client, _) = listener.accept().await.unwrap();
        let head = read_head(&mut client).await.unwrap();
        let mut origin = TcpStream::connect(server.address).await.unwrap();
        client.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
        tokio::spawn(async move { copy_bidirectional(&mut client, &mut origin).await });
        head
    });
    let proxied = FetchConfig {
        proxy: Some(format!("http://{proxy}")),
        ca_pem: Some(authority.pem()),
        ..guarded(&[])
    };
    let got = expect_response(
        fetcher(proxied)
            .fetch(&url("https://secure.example/"))
            .await,
    );
    assert_eq!(got.wire_body, b"tunnelled");
    assert!(
        tunnel
            .await
            .unwrap()
            .starts_with("CONNECT secure.example:443 HTTP/1.1\r\n")
    );
}

#[tokio::test]
async fn a_proxy_that_refuses_a_tunnel_is_a_failure_to_connect() {
    let proxy = serve(|_, _| Reply::SendAndClose(b"HTTP/1.1 403 Forbidden\r\n\r\n".to_vec())).await;
    let proxied = FetchConfig {
        proxy: Some(format!("http://{}", proxy.address)),
        ..guarded(&[])
    };
    let outcome = fetcher(proxied)
        .fetch(&url("https://secure.example/"))
        .await;
    let detail = expect_failure(outcome, FailureKind::Connect);
    assert!(detail.contains("tunnel"), "{detail}");
    assert_eq!(proxy.heads().len(), 1);
}

#[test]
fn bad_settings_are_named() {
    let refused = |config: FetchConfig| Fetcher::new(config).unwrap_err().to_string();
    let text = refused(FetchConfig {
        proxy: Some("socks5://user:hunter2@h:1".to_owned()),
        ..config()
    });
    assert!(
        text.contains("socks5") && text.contains("http://HOST:PORT") && !text.contains("hunter2"),
        "{text}"
    );
    assert!(
        refused(FetchConfig {
            proxy: Some("nonsense".to_owned()),
            ..config()
        })
        .contains("\"nonsense\"")
    );
    for pem in [
        "",
        "nonsense",
        "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
    ] {
        let error = Fetcher::new(FetchConfig {
            ca_pem: Some(pem.as_bytes().to_vec()),
            ..config()
        })
        .unwrap_err();
        assert!(matches!(error, FetcherError::Ca { .. }), "{error}");
    }
    for user_agent in ["", "a\r\nHost: b", "\u{e9}"] {
        assert!(
            refused(FetchConfig {
                user_agent: user_agent.to_owned(),
                ..config()
            })
            .contains("user agent")
        );
    }
}
