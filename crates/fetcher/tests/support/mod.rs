//! Loopback servers that follow a script to the byte, for the fetcher's tests.
#![expect(
    dead_code,
    clippy::unwrap_used,
    reason = "each test binary uses a part; a failed set-up fails the test"
)]

use std::{
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use fetcher::{FetchConfig, Fetched, Fetcher};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::TcpListener,
};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        ServerConfig,
        pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer},
    },
};
use types::{CanonicalUrl, Canonicalizer, FailureKind, FetchOutcome, Redirect, Response};

/// What a server does with one request.
#[derive(Clone, Debug)]
pub(crate) enum Reply {
    /// Sends these bytes and waits for the next request.
    Send(Vec<u8>),
    /// Sends these bytes and closes.
    SendAndClose(Vec<u8>),
    /// Sends these bytes and then nothing more, keeping the connection open.
    SendAndHang(Vec<u8>),
    /// Sends these bytes and then a byte after each pause, for ever.
    Trickle(Vec<u8>, Duration),
}

impl Reply {
    /// A complete response that keeps the connection.
    pub(crate) fn ok(fields: &str, body: impl AsRef<[u8]>) -> Self {
        Self::Send(response("200 OK", fields, body.as_ref()))
    }
}

/// Writes a response with a `Content-Length`; `fields` are lines that end in CRLF.
pub(crate) fn response(status: &str, fields: &str, body: &[u8]) -> Vec<u8> {
    let mut bytes = format!(
        "HTTP/1.1 {status}\r\nContent-Length: {}\r\n{fields}\r\n",
        body.len()
    )
    .into_bytes();
    bytes.extend_from_slice(body);
    bytes
}

/// A running server; it ends with its test's runtime.
#[derive(Clone)]
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    connections: Arc<AtomicUsize>,
    heads: Arc<Mutex<Vec<String>>>,
}

impl Server {
    pub(crate) fn url(&self, path: &str) -> CanonicalUrl {
        url(&format!("http://{}{path}", self.address))
    }

    pub(crate) fn connection_count(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    /// The heads of the requests so far, in order of arrival.
    pub(crate) fn heads(&self) -> Vec<String> {
        self.heads.lock().unwrap().clone()
    }
}

/// Serves plain HTTP; the script gets the number of the connection and of the request within it.
pub(crate) async fn serve(
    script: impl Fn(usize, usize) -> Reply + Send + Sync + 'static,
) -> Server {
    start(None, Arc::new(script)).await
}

/// Serves HTTP/1.1 behind TLS.
pub(crate) async fn serve_tls(
    acceptor: TlsAcceptor,
    script: impl Fn(usize, usize) -> Reply + Send + Sync + 'static,
) -> Server {
    start(Some(acceptor), Arc::new(script)).await
}

type Script = Arc<dyn Fn(usize, usize) -> Reply + Send + Sync>;

async fn start(acceptor: Option<TlsAcceptor>, script: Script) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = Server {
        address: listener.local_addr().unwrap(),
        connections: Arc::default(),
        heads: Arc::default(),
    };
    let running = server.clone();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let number = running.connections.fetch_add(1, Ordering::SeqCst);
            let (heads, script, acceptor) = (
                Arc::clone(&running.heads),
                Arc::clone(&script),
                acceptor.clone(),
            );
            tokio::spawn(async move {
                match acceptor {
                    None => converse(stream, number, &heads, &script).await,
                    Some(acceptor) => {
                        if let Ok(stream) = acceptor.accept(stream).await {
                            converse(stream, number, &heads, &script).await;
                        }
                    }
                }
            });
        }
    });
    server
}

async fn converse(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    number: usize,
    heads: &Mutex<Vec<String>>,
    script: &Script,
) {
    for request in 0.. {
        let Some(head) = read_head(&mut stream).await else {
            return;
        };
        heads.lock().unwrap().push(head);
        let _ = match script(number, request) {
            Reply::Send(bytes) => stream.write_all(&bytes).await,
            Reply::SendAndClose(bytes) => {
                let _ = stream.write_all(&bytes).await;
                let _ = stream.shutdown().await;
                return;
            }
            Reply::SendAndHang(bytes) => {
                let _ = stream.write_all(&bytes).await;
                let _ = stream.flush().await;
                return std::future::pending().await;
            }
            Reply::Trickle(mut bytes, pause) => loop {
                if stream.write_all(&bytes).await.is_err() {
                    return;
                }
                let _ = stream.flush().await;
                tokio::time::sleep(pause).await;
                bytes = vec![b'p'];
            },
        };
        let _ = stream.flush().await;
    }
}

/// Reads a request's head; `None` at the end of the connection.
pub(crate) async fn read_head(stream: &mut (impl AsyncRead + Unpin)) -> Option<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.ok()?);
    }
    Some(String::from_utf8(head).unwrap())
}

/// A throw-away CA.
pub(crate) struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    pub(crate) fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    pub(crate) fn pem(&self) -> Vec<u8> {
        self.0.pem().into_bytes()
    }

    /// An acceptor with a certificate for these names.
    pub(crate) fn acceptor(&self, names: &[&str], protocols: &[&str]) -> TlsAcceptor {
        let key = KeyPair::generate().unwrap();
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let leaf = CertificateParams::new(names)
            .unwrap()
            .signed_by(&key, &self.0)
            .unwrap();
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let mut config = ServerConfig::builder()
            .with_no_client_auth()
            .with_single_cert(vec![leaf.der().clone()], key)
            .unwrap();
        config.alpn_protocols = protocols
            .iter()
            .map(|name| name.as_bytes().to_vec())
            .collect();
        TlsAcceptor::from(Arc::new(config))
    }
}

pub(crate) fn url(text: &str) -> CanonicalUrl {
    Canonicalizer::default().canonicalize(text).unwrap()
}

/// Short limits, and loopback allowed.
pub(crate) fn config() -> FetchConfig {
    FetchConfig {
        allow_private_addresses: true,
        connect_timeout: Duration::from_secs(5),
        read_timeout: Duration::from_secs(5),
        total_timeout: Duration::from_secs(20),
        ..FetchConfig::default()
    }
}

pub(crate) fn fetcher(config: FetchConfig) -> Fetcher {
    Fetcher::new(config).unwrap()
}

#[track_caller]
pub(crate) fn expect_response(fetched: Fetched) -> Response {
    match fetched.outcome {
        FetchOutcome::Response(response) => response,
        other => panic!("expected a response, got {other:?}"),
    }
}

#[track_caller]
pub(crate) fn expect_redirect(fetched: Fetched) -> Redirect {
    match fetched.outcome {
        FetchOutcome::Redirect(redirect) => redirect,
        other => panic!("expected a redirect, got {other:?}"),
    }
}

#[track_caller]
pub(crate) fn expect_failure(fetched: Fetched, kind: FailureKind) -> String {
    match fetched.outcome {
        FetchOutcome::Failed(failure) if failure.kind == kind => failure.detail,
        other => panic!("expected {kind:?}, got {other:?}"),
    }
}
