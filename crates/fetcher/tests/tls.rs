//! TLS and HTTP/2.
#![expect(clippy::unwrap_used, reason = "a failed set-up fails the test")]

mod support;

use std::{
    convert::Infallible,
    io,
    net::SocketAddr,
    pin::Pin,
    sync::{Arc, Mutex},
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use fetcher::FetchConfig;
use http_body_util::{BodyExt, Full, combinators::BoxBody};
use hyper::{
    Request, Response,
    body::{Body, Frame, Incoming},
    service::service_fn,
};
use hyper_util::{
    rt::{TokioExecutor, TokioIo},
    server::conn::auto::Builder,
};
use support::{Authority, Reply, config, expect_failure, expect_response, fetcher, serve_tls, url};
use tokio::{
    net::TcpListener,
    time::{Sleep, sleep},
};
use tokio_rustls::TlsAcceptor;
use types::{FailureKind, HttpVersion, Truncation};

/// What a server of HTTP/2 saw: the version, target and `Host` field of each request, and the connections.
#[derive(Clone, Default)]
struct Seen {
    requests: Arc<Mutex<Vec<String>>>,
    connections: Arc<Mutex<usize>>,
}

/// A body that breaks off a moment after its first piece, lest the reset overtake the response head.
struct Breaking {
    is_begun: bool,
    pause: Pin<Box<Sleep>>,
}

impl Breaking {
    fn new() -> Self {
        Self {
            is_begun: false,
            pause: Box::pin(sleep(Duration::from_millis(300))),
        }
    }
}

impl Body for Breaking {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        if !std::mem::replace(&mut self.is_begun, true) {
            return Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(b"part")))));
        }
        self.pause
            .as_mut()
            .poll(context)
            .map(|()| Some(Err(io::Error::other("broken"))))
    }
}

/// Answers by path: a body that breaks off, a megabyte, or a short one with a header as large as the query says.
fn answer(request: &Request<Incoming>) -> Response<BoxBody<Bytes, io::Error>> {
    let full = |bytes: Vec<u8>| {
        Full::new(Bytes::from(bytes))
            .map_err(|never| match never {})
            .boxed()
    };
    let filler_bytes = request
        .uri()
        .query()
        .and_then(|size| size.parse().ok())
        .unwrap_or(0);
    let body = match request.uri().path() {
        "/breaks" => Breaking::new().boxed(),
        "/big" => full(vec![b'b'; 1 << 20]),
        _ => full(b"two".to_vec()),
    };
    Response::builder()
        .header("x-filler", "f".repeat(filler_bytes))
        .body(body)
        .unwrap()
}

/// Serves HTTP/2, or HTTP/1.1 where that is negotiated.
async fn serve_h2(acceptor: TlsAcceptor) -> (SocketAddr, Seen) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let seen = Seen::default();
    let noted = seen.clone();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            *noted.connections.lock().unwrap() += 1;
            let (acceptor, requests) = (acceptor.clone(), Arc::clone(&noted.requests));
            tokio::spawn(async move {
                let Ok(stream) = acceptor.accept(stream).await else {
                    return;
                };
                let service = service_fn(move |request: Request<Incoming>| {
                    let host = request.headers().get("host");
                    let line = format!("{:?} {} {host:?}", request.version(), request.uri());
                    requests.lock().unwrap().push(line);
                    std::future::ready(Ok::<_, Infallible>(answer(&request)))
                });
                let _ = Builder::new(TokioExecutor::new())
                    .serve_connection(TokioIo::new(stream), service)
                    .await;
            });
        }
    });
    (address, seen)
}

#[tokio::test]
async fn http2_bodies_are_cut_without_losing_the_connection() {
    let authority = Authority::new();
    let (address, seen) = serve_h2(authority.acceptor(&["localhost"], &["h2"])).await;
    let fetcher = fetcher(FetchConfig {
        ca_pem: Some(authority.pem()),
        wire_bytes_max: 100_000,
        ..config()
    });
    for (path, bytes, truncation) in [
        ("big", 100_000, Some(Truncation::Length)),
        ("breaks", 4, Some(Truncation::Disconnect)),
        ("whole", 3, None),
    ] {
        let target = url(&format!("https://localhost:{}/{path}", address.port()));
        let got = expect_response(fetcher.fetch(&target).await);
        assert_eq!(
            (got.version, got.wire_body.len(), got.truncation),
            (HttpVersion::Http2, bytes, truncation)
        );
        assert_eq!(got.address, Some(address));
    }
    assert_eq!(*seen.connections.lock().unwrap(), 1);
}

#[tokio::test]
async fn http2_is_negotiated_and_a_moved_port_falls_back_to_http1() {
    let authority = Authority::new();
    let (address, seen) = serve_h2(authority.acceptor(&["two.example"], &["h2", "http/1.1"])).await;
    let rule = format!("::127.0.0.1:{}", address.port()).parse().unwrap();
    let fetcher = fetcher(FetchConfig {
        ca_pem: Some(authority.pem()),
        connect_to: vec![rule],
        ..config()
    });
    let got = expect_response(fetcher.fetch(&url("https://two.example/x")).await);
    assert_eq!(
        (got.version, got.wire_body.as_slice()),
        (HttpVersion::Http2, &b"two"[..])
    );
    assert!(
        got.request_head.starts_with(b"GET /x HTTP/1.1\r\n"),
        "archives hold the HTTP/1.1 form"
    );
    // With a port that the rule replaces, the Host field and the URL differ, and HTTP/1.1 alone can say so.
    let got = expect_response(fetcher.fetch(&url("https://two.example:8443/y")).await);
    assert_eq!(
        (got.version, got.wire_body.as_slice()),
        (HttpVersion::Http11, &b"two"[..])
    );
    assert_eq!(
        *seen.requests.lock().unwrap(),
        [
            "HTTP/2.0 https://two.example/x None",
            "HTTP/1.1 /y Some(\"two.example:8443\")"
        ]
    );
}

#[tokio::test]
async fn http2_heads_over_the_cap_are_refused() {
    let authority = Authority::new();
    let (address, _) = serve_h2(authority.acceptor(&["localhost"], &["h2"])).await;
    let fetcher = fetcher(FetchConfig {
        ca_pem: Some(authority.pem()),
        ..config()
    });
    let target = |size: usize| url(&format!("https://localhost:{}/?{size}", address.port()));
    expect_response(fetcher.fetch(&target(60_000)).await);
    expect_failure(
        fetcher.fetch(&target(70_000)).await,
        FailureKind::HeadersTooLarge,
    );
    expect_failure(fetcher.fetch(&target(400_000)).await, FailureKind::Protocol);
    expect_response(fetcher.fetch(&target(10)).await);
}

#[tokio::test]
async fn certificates_that_do_not_hold_are_tls_failures() {
    let authority = Authority::new();
    let server = serve_tls(authority.acceptor(&["other.example"], &[]), |_, _| {
        Reply::ok("", "x")
    })
    .await;
    let target = url(&format!("https://localhost:{}/", server.address.port()));
    let stranger = fetcher(config());
    let detail = expect_failure(stranger.fetch(&target).await, FailureKind::Tls);
    assert!(detail.contains("UnknownIssuer"), "{detail}");
    let trusting = fetcher(FetchConfig {
        ca_pem: Some(authority.pem()),
        ..config()
    });
    let detail = expect_failure(trusting.fetch(&target).await, FailureKind::Tls);
    assert!(detail.contains("localhost"), "{detail}");
    assert!(server.heads().is_empty());

    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let plain_port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let _ =
            tokio::io::AsyncWriteExt::write_all(&mut stream, b"HTTP/1.1 400 Bad Request\r\n\r\n")
                .await;
        std::future::pending::<()>().await;
    });
    expect_failure(
        trusting
            .fetch(&url(&format!("https://localhost:{plain_port}/")))
            .await,
        FailureKind::Tls,
    );
}

#[tokio::test]
async fn a_handshake_that_the_peer_drops_is_a_failure_to_connect_and_may_be_retried() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let target = url(&format!(
        "https://localhost:{}/",
        listener.local_addr().unwrap().port()
    ));
    tokio::spawn(async move {
        loop {
            drop(listener.accept().await.unwrap());
        }
    });
    expect_failure(fetcher(config()).fetch(&target).await, FailureKind::Connect);
}

#[test]
fn a_machine_without_a_certificate_store_can_still_crawl() {
    let output = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "certificates_that_do_not_hold_are_tls_failures"])
        .env("SSL_CERT_FILE", "/nonexistent")
        .env("SSL_CERT_DIR", "/nonexistent")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && text.contains("1 passed"),
        "{text}"
    );
}

#[tokio::test]
async fn a_kept_alive_tls_connection_that_died_is_replaced_once() {
    let authority = Authority::new();
    let server = serve_tls(
        authority.acceptor(&["localhost"], &["http/1.1"]),
        |connection, request| match (connection, request) {
            (0, 1) => Reply::SendAndClose(Vec::new()),
            _ => Reply::ok("", "alive"),
        },
    )
    .await;
    let fetcher = fetcher(FetchConfig {
        ca_pem: Some(authority.pem()),
        ..config()
    });
    let target = url(&format!("https://localhost:{}/", server.address.port()));
    for _ in 0..2 {
        assert_eq!(
            expect_response(fetcher.fetch(&target).await).wire_body,
            b"alive"
        );
    }
    assert_eq!((server.connection_count(), server.heads().len()), (2, 3));
}
