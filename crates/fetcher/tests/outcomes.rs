//! Responses, redirects, cuts and failures over plain HTTP/1.1, byte for byte.
#![expect(clippy::unwrap_used, reason = "a failed set-up fails the test")]

mod support;

use std::{
    net::TcpListener as StdListener,
    time::{Duration, Instant},
};

use fetcher::FetchConfig;
use support::{
    Reply, config, expect_failure, expect_redirect, expect_response, fetcher, response, serve, url,
};
use types::{FailureKind, HttpVersion, Truncation};

#[tokio::test]
async fn a_response_comes_whole_and_the_request_head_is_as_sent() {
    let server =
        serve(|_, _| Reply::ok("X-Twice: 1\r\nX-Twice: 2\r\nX-Raw: \u{e9}\r\n", "<p>hello")).await;
    let target = server.url("/path?a=%C3%A9&b");
    let got = expect_response(fetcher(config()).fetch(&target).await);
    assert_eq!(
        (got.status, got.version, got.truncation),
        (200, HttpVersion::Http11, None)
    );
    assert_eq!(got.wire_body, b"<p>hello");
    assert_eq!(
        got.headers.get_all("x-twice").collect::<Vec<_>>(),
        [b"1", b"2"]
    );
    assert_eq!(got.headers.get("x-raw"), Some("\u{e9}".as_bytes()));
    assert_eq!(got.address, Some(server.address));
    assert!(
        got.timings.first_byte <= got.timings.total && got.timings.total < Duration::from_secs(5)
    );

    let sent = server.heads().remove(0);
    assert_eq!(String::from_utf8(got.request_head).unwrap(), sent);
    assert!(sent.starts_with("GET /path?a=%C3%A9&b HTTP/1.1\r\n"));
    assert!(sent.contains(&format!("\r\nHost: {}\r\n", server.address)));
    assert!(
        sent.contains("User-Agent: bloomcrawl/")
            && sent.contains("Accept-Encoding: gzip, deflate, br, zstd\r\n")
    );
    for unasked in ["cookie", "referer", "upgrade", "te:"] {
        assert!(!sent.to_ascii_lowercase().contains(unasked), "{sent}");
    }
}

#[tokio::test]
async fn every_printable_character_of_a_url_can_be_sent() {
    let server = serve(|_, _| Reply::ok("", "x")).await;
    let fetcher = fetcher(config());
    for byte in 0x21..0x7f_u8 {
        let character = char::from(byte);
        let target = server.url(&format!("/a{character}b?c{character}d"));
        expect_response(fetcher.fetch(&target).await);
        let sent = server.heads().pop().unwrap();
        assert!(
            sent.starts_with(&format!("GET {} HTTP/1.1\r\n", target.path_and_query())),
            "{target}: {sent}"
        );
    }
    assert_eq!(server.connection_count(), 1, "one connection is kept alive");
}

#[tokio::test]
async fn bodies_without_a_length_end_by_chunks_or_by_the_connection() {
    let chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\nTrailer: 1\r\n\r\n";
    let server = serve(move |_, _| Reply::Send(chunked.to_vec())).await;
    let fetcher = fetcher(config());
    for _ in 0..2 {
        let got = expect_response(fetcher.fetch(&server.url("/")).await);
        assert_eq!(
            (got.wire_body.as_slice(), got.truncation),
            (&b"abcde"[..], None)
        );
    }
    assert_eq!(server.connection_count(), 1);

    let closing =
        serve(|_, _| Reply::SendAndClose(b"HTTP/1.0 404 Gone\r\n\r\nto the end".to_vec())).await;
    let got = expect_response(fetcher.fetch(&closing.url("/")).await);
    assert_eq!(
        (got.status, got.version, got.truncation),
        (404, HttpVersion::Http10, None)
    );
    assert_eq!(got.wire_body, b"to the end");
}

#[tokio::test]
async fn heads_with_common_faults_are_read_as_browsers_do() {
    let head = b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nBad Name: x\r\nSpaced : y\r\nFolded: a\r\n b\r\n\r\nz";
    let server = serve(move |_, _| Reply::Send(head.to_vec())).await;
    let got = expect_response(fetcher(config()).fetch(&server.url("/")).await);
    assert_eq!(got.wire_body, b"z");
    assert_eq!(got.headers.get("spaced"), Some(&b"y"[..]));
}

#[tokio::test]
async fn redirects_are_outcomes_and_keep_the_connection() {
    let server = serve(|_, number| {
        let location: &[u8] = match number {
            0 => b"/next?x",
            1 => "//h\u{e9}/\u{5d0}".as_bytes(),
            _ => b"/caf\xe9",
        };
        let mut bytes = b"HTTP/1.1 302 Found\r\nContent-Length: 4\r\nLocation: ".to_vec();
        bytes.extend_from_slice(location);
        bytes.extend_from_slice(b"\r\n\r\nbody");
        Reply::Send(bytes)
    })
    .await;
    let fetcher = fetcher(config());
    for expected in ["/next?x", "//h\u{e9}/\u{5d0}", "/caf\u{e9}"] {
        let got = expect_redirect(fetcher.fetch(&server.url("/")).await);
        assert_eq!(
            (got.location.as_str(), got.response.status),
            (expected, 302)
        );
        assert_eq!(got.response.wire_body, b"body");
    }
    assert_eq!(server.connection_count(), 1);
    assert_eq!(server.heads().len(), 3, "nothing was followed");
}

#[tokio::test]
async fn a_redirect_needs_a_status_and_a_target_of_bounded_length() {
    for (status, fields, is_redirect) in [
        ("301 x", "Location: /\r\n".to_owned(), true),
        ("303 x", "Location: /\r\n".to_owned(), true),
        ("307 x", "Location: /\r\n".to_owned(), true),
        ("308 x", "Location: /\r\n".to_owned(), true),
        ("300 x", "Location: /\r\n".to_owned(), false),
        ("201 x", "Location: /\r\n".to_owned(), false),
        ("302 x", String::new(), false),
        (
            "302 x",
            format!("Location: /{}\r\n", "a".repeat(16 << 10)),
            false,
        ),
    ] {
        let bytes = response(status, &fields, b"");
        let server = serve(move |_, _| Reply::Send(bytes.clone())).await;
        let outcome = fetcher(config()).fetch(&server.url("/")).await;
        if is_redirect {
            expect_redirect(outcome);
        } else {
            expect_response(outcome);
        }
    }
}

#[tokio::test]
async fn a_body_is_cut_at_the_wire_cap() {
    let server = serve(|_, _| Reply::ok("", vec![b'x'; 100_000])).await;
    for (wire_bytes_max, truncation) in [
        (99_999, Some(Truncation::Length)),
        (100_000, None),
        (100_001, None),
        (0, Some(Truncation::Length)),
    ] {
        let fetcher = fetcher(FetchConfig {
            wire_bytes_max,
            ..config()
        });
        let got = expect_response(fetcher.fetch(&server.url("/")).await);
        assert_eq!(
            (got.wire_body.len(), got.truncation),
            (wire_bytes_max.min(100_000), truncation)
        );
    }
}

#[tokio::test]
async fn a_body_cut_by_the_peer_says_so() {
    let fetcher = fetcher(config());
    let declared = b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\npart".to_vec();
    let chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\npart\r\n".to_vec();
    for reply in [Reply::SendAndClose(declared), Reply::SendAndClose(chunked)] {
        let server = serve(move |_, _| reply.clone()).await;
        let got = expect_response(fetcher.fetch(&server.url("/")).await);
        assert_eq!(got.wire_body, b"part");
        assert_eq!(got.truncation, Some(Truncation::Disconnect));
    }
}

/// hyperium/hyper#228: `1X` was taken for a size of one.
#[tokio::test]
async fn hyper_228_chunks_without_a_valid_size_are_a_failure() {
    let fetcher = fetcher(config());
    for chunks in [
        "1X\r\na\r\n0\r\n\r\n",
        "4\r\npart\r\nzz\r\n",
        "f0000000000000003\r\n",
        "4\r\nparts\r\n",
    ] {
        let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
        let reply = Reply::SendAndHang(format!("{head}{chunks}").into_bytes());
        let server = serve(move |_, _| reply.clone()).await;
        let outcome = fetcher.fetch(&server.url("/")).await;
        expect_failure(outcome, FailureKind::Protocol);
    }
}

#[tokio::test]
async fn a_body_cut_by_the_clock_says_so() {
    let impatient = fetcher(FetchConfig {
        read_timeout: Duration::from_secs(1),
        ..config()
    });
    let declared = b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\npart".to_vec();
    let server = serve(move |_, _| Reply::SendAndHang(declared.clone())).await;
    let got = expect_response(impatient.fetch(&server.url("/")).await);
    assert_eq!(
        (got.wire_body.as_slice(), got.truncation),
        (&b"part"[..], Some(Truncation::Time))
    );

    // Bytes keep coming, so the deadline for the whole is what ends it.
    let slow = b"HTTP/1.1 200 OK\r\nContent-Length: 10000\r\n\r\n".to_vec();
    let server = serve(move |_, _| Reply::Trickle(slow.clone(), Duration::from_millis(20))).await;
    let hurried = fetcher_with_total(Duration::from_millis(1_500));
    let begun = Instant::now();
    let got = expect_response(hurried.fetch(&server.url("/")).await);
    assert_eq!(got.truncation, Some(Truncation::Time));
    assert!(got.wire_body.len() > 1 && got.wire_body.len() < 10_000);
    assert!(got.timings.total >= Duration::from_millis(1_500));
    assert!(begun.elapsed() < Duration::from_secs(5));
}

fn fetcher_with_total(total_timeout: Duration) -> fetcher::Fetcher {
    fetcher(FetchConfig {
        total_timeout,
        ..config()
    })
}

#[tokio::test]
async fn a_kept_alive_connection_that_died_is_replaced_once() {
    // The second request of the first connection is read and dropped; a fresh connection answers.
    let server = serve(|connection, request| match (connection, request) {
        (0, 1) => Reply::SendAndClose(Vec::new()),
        _ => Reply::ok("", "alive"),
    })
    .await;
    let fetcher = fetcher(config());
    for _ in 0..2 {
        assert_eq!(
            expect_response(fetcher.fetch(&server.url("/")).await).wire_body,
            b"alive"
        );
    }
    assert_eq!((server.connection_count(), server.heads().len()), (2, 3));
}

#[tokio::test]
async fn a_fresh_connection_that_dies_is_not_replaced() {
    let server = serve(|connection, request| match (connection, request) {
        (0, 0) => Reply::ok("", "alive"),
        _ => Reply::SendAndClose(Vec::new()),
    })
    .await;
    let fetcher = fetcher(config());
    expect_response(fetcher.fetch(&server.url("/")).await);
    expect_failure(
        fetcher.fetch(&server.url("/")).await,
        FailureKind::Disconnected,
    );
    assert_eq!(
        (server.connection_count(), server.heads().len()),
        (2, 3),
        "one retry, over a fresh connection"
    );
    expect_failure(
        fetcher.fetch(&server.url("/")).await,
        FailureKind::Disconnected,
    );
    assert_eq!(
        (server.connection_count(), server.heads().len()),
        (3, 4),
        "no retry of a fresh connection"
    );
}

#[tokio::test]
async fn an_idle_connection_closed_by_the_server_goes_unnoticed() {
    let server = serve(|_, _| Reply::SendAndClose(response("200 OK", "", b"x"))).await;
    let fetcher = fetcher(config());
    for _ in 0..20 {
        expect_response(fetcher.fetch(&server.url("/")).await);
    }
}

#[tokio::test]
async fn failures_before_the_head_have_their_kinds() {
    let fetcher = fetcher(config());
    let closed = StdListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let detail = expect_failure(
        fetcher.fetch(&url(&format!("http://{closed}/"))).await,
        FailureKind::Connect,
    );
    assert!(
        detail.starts_with("tcp connect error: ") && detail.contains("refused"),
        "{detail}"
    );

    // A label over 63 bytes is refused by the resolver without a query.
    let name = format!("http://{}.example/", "a".repeat(64));
    let detail = expect_failure(fetcher.fetch(&url(&name)).await, FailureKind::Dns);
    assert!(
        detail.starts_with("aaaa") && detail.contains("does not resolve: "),
        "{detail}"
    );

    for garbage in [
        "SSH-2.0-OpenSSH_9.2\r\n\r\n",
        "HTTP/1.1 abc\r\n\r\n",
        "\0\0\0\0\r\n\r\n",
    ] {
        let server = serve(move |_, _| Reply::SendAndHang(garbage.as_bytes().to_vec())).await;
        expect_failure(fetcher.fetch(&server.url("/")).await, FailureKind::Protocol);
    }
    let half = serve(|_, _| Reply::SendAndClose(b"HTTP/1.1 200 OK\r\nContent-".to_vec())).await;
    expect_failure(
        fetcher.fetch(&half.url("/")).await,
        FailureKind::Disconnected,
    );
}

#[tokio::test]
async fn each_limit_of_time_has_its_kind() {
    let silent = serve(|_, _| Reply::SendAndHang(Vec::new())).await;
    let short = Duration::from_millis(300);
    let reader = fetcher(FetchConfig {
        read_timeout: short,
        ..config()
    });
    expect_failure(
        reader.fetch(&silent.url("/")).await,
        FailureKind::ReadTimeout,
    );
    let total = fetcher_with_total(short);
    expect_failure(
        total.fetch(&silent.url("/")).await,
        FailureKind::TotalTimeout,
    );
    // A handshake that gets no answer is connecting still: the read timeout does not apply.
    let connector = fetcher(FetchConfig {
        connect_timeout: 2 * short,
        read_timeout: short / 10,
        ..config()
    });
    let secure = url(&format!("https://{}/", silent.address));
    expect_failure(connector.fetch(&secure).await, FailureKind::ConnectTimeout);
}

#[tokio::test]
async fn heads_over_the_cap_are_refused_by_size_and_by_count() {
    let fetcher = fetcher(config());
    for (fields, is_accepted) in [
        (format!("X: {}\r\n", "a".repeat(60_000)), true),
        (format!("X: {}\r\n", "a".repeat(70_000)), false),
        (format!("X: {}\r\n", "a".repeat(1_000_000)), false),
        ("X: a\r\n".repeat(200), true),
        ("X: a\r\n".repeat(5_000), false),
    ] {
        let server = serve(move |_, _| Reply::ok(&fields, "x")).await;
        let outcome = fetcher.fetch(&server.url("/")).await;
        if is_accepted {
            expect_response(outcome);
        } else {
            expect_failure(outcome, FailureKind::HeadersTooLarge);
        }
    }
}

#[tokio::test]
async fn many_requests_at_once_share_the_fetcher_and_the_idle_cap_holds() {
    let server = serve(|_, _| Reply::ok("", "x")).await;
    let fetcher = fetcher(FetchConfig {
        idle_per_host_max: 2,
        ..config()
    });
    for _ in 0..2 {
        let running: Vec<_> = (0..40)
            .map(|_| {
                let (fetcher, target) = (fetcher.clone(), server.url("/"));
                tokio::spawn(async move { expect_response(fetcher.fetch(&target).await).wire_body })
            })
            .collect();
        for body in running {
            assert_eq!(body.await.unwrap(), b"x");
        }
    }
    assert_eq!(server.heads().len(), 80);
    let opened = server.connection_count();
    assert!(
        opened > 40,
        "{opened} connections: only 2 of the first 40 could wait for the second round"
    );
}

#[tokio::test]
async fn endless_informational_responses_end_with_the_read_timeout() {
    let fetcher = fetcher(FetchConfig {
        read_timeout: Duration::from_millis(300),
        ..config()
    });
    let hints = b"HTTP/1.1 103 Early Hints\r\nX: y\r\n\r\n".repeat(1_000);
    let server = serve(move |_, _| Reply::SendAndHang(hints.clone())).await;
    expect_failure(
        fetcher.fetch(&server.url("/")).await,
        FailureKind::ReadTimeout,
    );
}
