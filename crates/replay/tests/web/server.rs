//! The server over http, https and HTTP/2: answers, faults, log.

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    sync::Arc,
    time::{Duration, Instant},
};

use crate::client::{get, get_raw, get_tls, parse, start, start_http, tls_config};
use hyper_util::rt::{TokioExecutor, TokioIo};
use replay::{Fault, ReplayError, Server, ServerConfig, SiteAnswer, SiteRequest};
use rustls::pki_types::ServerName;
use tokio_rustls::TlsConnector;

/// Answers with what it was asked.
fn echo(request: &SiteRequest<'_>) -> SiteAnswer {
    SiteAnswer::text(format!("{} {}", request.method, request.url()))
}

#[test]
fn http_names_the_host_asked_for() {
    let server = start_http(echo);
    let address = server.http_address();
    assert!(address.ip().is_loopback() && address.port() != 0);
    assert_eq!((server.https_address(), server.ca_pem()), (None, ""));
    for (host, expected) in [
        ("Example.ORG", "GET http://example.org/a?b"),
        ("example.org:80", "GET http://example.org/a?b"),
        ("example.org:8080", "GET http://example.org:8080/a?b"),
        ("[::1]:80", "GET http://[::1]/a?b"),
    ] {
        assert_eq!(
            get(&server, host, "/a?b"),
            (200, expected.as_bytes().to_vec())
        );
    }
    let proxied = get(&server, "proxy.example", "https://Example.org:443/x");
    assert_eq!(proxied.1, b"GET https://example.org/x");
    assert_eq!(parse(&get_raw(address, "", "/")).status, 400);
}

#[test]
fn a_connection_serves_many_requests() {
    let server = start_http(echo);
    let mut stream = TcpStream::connect(server.http_address()).unwrap();
    let started = Instant::now();
    for index in 0..50 {
        let request = format!("GET /{index} HTTP/1.1\r\nHost: a.example\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut bytes = Vec::new();
        let expected = format!("GET http://a.example/{index}");
        while !bytes.ends_with(expected.as_bytes()) {
            let mut part = [0; 1_024];
            let count = stream.read(&mut part).unwrap();
            assert!(count > 0, "the connection was closed at request {index}");
            bytes.extend_from_slice(&part[..count]);
        }
    }
    assert_eq!(server.log().len(), 50);
    assert_eq!(server.url_count(), 50);
    // Nagle's algorithm against delayed acknowledgements would cost 40 ms each.
    assert!(
        started.elapsed() < Duration::from_secs(2),
        "{:?}",
        started.elapsed()
    );
}

#[test]
fn https_has_a_certificate_for_every_name() {
    let server = start(echo);
    for name in [
        "a.example",
        "b.example",
        "xn--mgbh0fb.example",
        "a_b.example",
        "127.0.0.1",
    ] {
        let bytes = get_tls(&server, name, "/").unwrap();
        let response = parse(&bytes);
        assert_eq!(
            (response.status, &*response.body),
            (200, format!("GET https://{name}/").as_bytes())
        );
    }
    assert!(server.ca_pem().starts_with("-----BEGIN CERTIFICATE-----"));
    // Without the name being asked for there is no certificate for it.
    let error = get_tls(&server, "192.0.2.1", "/").unwrap_err();
    assert!(error.to_string().contains("certificate"), "{error}");
}

#[test]
fn http2_is_spoken_where_it_is_allowed() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let server = start(echo);
    let (protocol, status) = runtime.block_on(get_http2(&server));
    assert_eq!(
        (protocol.as_deref(), status),
        (Some(b"h2".as_slice()), Some(200))
    );
    assert_eq!(server.request_count("https://h2.example/x?y"), 1);
    let config = ServerConfig {
        http2: false,
        ..ServerConfig::default()
    };
    let plain = Server::start(config, Arc::new(echo)).unwrap();
    let (protocol, _) = runtime.block_on(get_http2(&plain));
    assert_eq!(protocol.as_deref(), Some(b"http/1.1".as_slice()));
}

/// Offers both protocols; returns the one chosen, and the status of an answer over HTTP/2.
async fn get_http2(server: &Server) -> (Option<Vec<u8>>, Option<u16>) {
    let connector = TlsConnector::from(tls_config(server, &["h2", "http/1.1"]));
    let stream = tokio::net::TcpStream::connect(server.https_address().unwrap())
        .await
        .unwrap();
    let name = ServerName::try_from("h2.example").unwrap();
    let stream = connector.connect(name, stream).await.unwrap();
    let protocol = stream.get_ref().1.alpn_protocol().map(<[u8]>::to_vec);
    if protocol.as_deref() != Some(b"h2") {
        return (protocol, None);
    }
    let handshake =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream));
    let (mut sender, connection) = handshake.await.unwrap();
    tokio::spawn(connection);
    let request = http::Request::get("https://h2.example/x?y")
        .body(String::new())
        .unwrap();
    let response = sender.send_request(request).await.unwrap();
    (protocol, Some(response.status().as_u16()))
}

#[test]
fn headers_are_sent_as_far_as_http_can_carry_them() {
    let server = start_http(|request: &SiteRequest<'_>| match request.path_and_query {
        "/chunked" => SiteAnswer::text("hello").with_header("Transfer-Encoding", "chunked"),
        "/redirect" => SiteAnswer::redirect(301, "/x"),
        "/interim" => SiteAnswer::new(101, "text/plain", ""),
        _ => SiteAnswer::text("hello")
            .with_header("set-cookie", "a")
            .with_header("Set-Cookie", b"b\xff")
            .with_header("content-length", "99")
            .with_header("not a name", "x")
            .with_header("bad", "x\r\ny: z"),
    });
    let address = server.http_address();
    let bytes = get_raw(address, "a.example", "/");
    let response = parse(&bytes);
    let cookies = response
        .headers
        .iter()
        .filter(|(name, _)| name == "set-cookie")
        .map(|(_, value)| *value);
    assert_eq!(cookies.collect::<Vec<_>>(), [b"a".as_slice(), b"b\xff"]);
    assert_eq!(response.header("content-length"), Some(b"5".as_slice()));
    assert_eq!((response.header("bad"), response.header("y")), (None, None));
    let bytes = get_raw(address, "a.example", "/chunked");
    let response = parse(&bytes);
    assert_eq!(
        response.header("transfer-encoding"),
        Some(b"chunked".as_slice())
    );
    assert_eq!(
        (response.header("content-length"), &*response.body),
        (None, b"hello".as_slice())
    );
    let bytes = get_raw(address, "a.example", "/redirect");
    assert_eq!(
        (parse(&bytes).status, parse(&bytes).header("location")),
        (301, Some(b"/x".as_slice()))
    );
    assert_eq!(get(&server, "a.example", "/interim").0, 500);
}

#[test]
fn faults_happen_as_told() {
    let server = start(|request: &SiteRequest<'_>| {
        let answer = SiteAnswer::text(vec![b'x'; 100_000]);
        match request.path_and_query {
            "/close" => answer.with_fault(Fault::CloseBeforeHead),
            "/cut" => answer.with_fault(Fault::CutBody(1_000)),
            "/cut-all" => answer.with_fault(Fault::CutBody(0)),
            "/stall" => answer.with_fault(Fault::Stall(Duration::from_millis(900))),
            "/delay" => answer.with_delay(Duration::from_millis(300)),
            _ => answer,
        }
    });
    let address = server.http_address();
    assert_eq!(get_raw(address, "a.example", "/close"), b"");
    for (path, body_bytes) in [
        ("/cut", 1_000),
        ("/cut-all", 0),
        ("/stall", 100_000),
        ("/delay", 100_000),
        ("/", 100_000),
    ] {
        let bytes = get_raw(address, "a.example", path);
        let response = parse(&bytes);
        assert_eq!(
            response.header("content-length"),
            Some(b"100000".as_slice()),
            "{path}"
        );
        assert_eq!(response.body.len(), body_bytes, "{path}");
    }
    // Over TLS a cut body is no clean end either.
    assert!(get_tls(&server, "a.example", "/cut").is_err());
    let log = server.log();
    let entry = |path: &str| log.iter().find(|entry| entry.url.ends_with(path)).unwrap();
    assert_eq!((entry("/close").status, entry("/cut").status), (0, 200));
    for path in ["/stall", "/delay"] {
        assert!(
            entry(path).ended.saturating_sub(entry(path).started) >= Duration::from_millis(300),
            "{path}"
        );
    }
    assert!(time_to_first_byte(address, "/stall") < Duration::from_millis(800));
    assert!(time_to_first_byte(address, "/delay") >= Duration::from_millis(300));
}

fn time_to_first_byte(address: SocketAddr, path: &str) -> Duration {
    let mut stream = TcpStream::connect(address).unwrap();
    let started = Instant::now();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: a.example\r\n\r\n").unwrap();
    stream.read_exact(&mut [0]).unwrap();
    started.elapsed()
}

#[test]
fn the_log_is_bounded_and_the_counts_are_not() {
    let latency = Duration::from_millis(30);
    let config = ServerConfig {
        https: None,
        log_max: 2,
        latency,
        ..ServerConfig::default()
    };
    let server = Server::start(config, Arc::new(echo)).unwrap();
    for path in ["/a", "/b", "/a", "/a"] {
        get(&server, "a.example", path);
    }
    let log = server.log();
    assert_eq!(
        log.iter()
            .map(|entry| entry.url.as_str())
            .collect::<Vec<_>>(),
        ["http://a.example/a", "http://a.example/b"]
    );
    for entry in &log {
        assert!(
            entry.ended.saturating_sub(entry.started) >= latency,
            "{entry:?}"
        );
        assert_eq!(
            (entry.status, entry.peer.ip()),
            (200, server.http_address().ip())
        );
    }
    assert!(
        log[1].started >= log[0].ended,
        "one request after the other"
    );
    let counts = server.request_counts().into_iter().collect::<Vec<_>>();
    assert_eq!(
        counts,
        [
            ("http://a.example/a".to_owned(), 3),
            ("http://a.example/b".to_owned(), 1)
        ]
    );
    assert_eq!(
        (
            server.request_count("http://a.example/a"),
            server.request_count("http://a.example/c")
        ),
        (3, 0)
    );
}

#[test]
fn a_dropped_server_is_gone() {
    let server = start_http(echo);
    let address = server.http_address();
    let config = ServerConfig {
        http: address,
        https: None,
        ..ServerConfig::default()
    };
    let taken = Server::start(config, Arc::new(echo));
    assert!(matches!(taken, Err(ReplayError::Listen { address: tried, .. }) if tried == address));
    drop(server);
    let deadline = Instant::now() + Duration::from_secs(10);
    while TcpStream::connect(address).is_ok() {
        assert!(Instant::now() < deadline, "the server still listens");
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(
        Server::start(config, Arc::new(echo)).is_ok(),
        "the address is free again"
    );
}

#[tokio::test]
async fn a_server_may_start_and_stop_inside_async_code() {
    let server = start(echo);
    assert_ne!(server.http_address(), server.https_address().unwrap());
    drop(server);
}
