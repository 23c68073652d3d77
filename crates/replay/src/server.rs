//! The server: listens on loopback over http and https, and keeps its own threads.

use std::{
    collections::BTreeMap,
    io,
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use hyper::service::service_fn;
use hyper_util::{
    rt::{TokioExecutor, TokioIo},
    server::conn::auto,
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpSocket, TcpStream},
    runtime::{Builder, Runtime},
};
use tokio_rustls::TlsAcceptor;

use crate::{
    LogEntry, ReplayError, Site,
    certificates::{Certificates, provider},
    log::Log,
    service::{Shared, respond},
};

/// Serving is light; the client under test deserves the cores.
const THREAD_COUNT: usize = 2;

/// Connections that may wait to be accepted: a crawl opens hundreds at once.
const BACKLOG: u32 = 1_024;

/// How long a client may take over its TLS handshake.
const HANDSHAKE_WAIT_MAX: Duration = Duration::from_secs(30);

/// How a server listens and what it remembers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerConfig {
    /// Where to listen for http; port 0 takes a free one.
    pub http: SocketAddr,
    /// Where to listen for https, if at all.
    pub https: Option<SocketAddr>,
    /// Whether HTTP/2 is offered over https.
    pub http2: bool,
    /// The wait before every answer.
    pub latency: Duration,
    /// How many log entries are kept, the first ones; requests are counted without limit.
    pub log_max: usize,
}

impl Default for ServerConfig {
    /// Free ports of 127.0.0.1 for http and https, HTTP/2, no latency, a million log entries.
    fn default() -> Self {
        let any_port = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        Self {
            http: any_port,
            https: Some(any_port),
            http2: true,
            latency: Duration::ZERO,
            log_max: 1_000_000,
        }
    }
}

/// A running server; it stops when dropped.
#[derive(Debug)]
pub struct Server {
    runtime: Option<Runtime>,
    log: Arc<Log>,
    http_address: SocketAddr,
    https_address: Option<SocketAddr>,
    ca_pem: String,
}

impl Server {
    /// Starts serving a site on threads of its own; may be called inside and outside of async code.
    ///
    /// # Errors
    ///
    /// Returns [`ReplayError`] when an address is taken, or threads or certificates cannot be made.
    pub fn start(config: ServerConfig, site: Arc<dyn Site>) -> Result<Self, ReplayError> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(THREAD_COUNT)
            .thread_name("replay-server")
            .enable_all()
            .build()
            .map_err(ReplayError::Threads)?;
        // Sockets register with the runtime that they are made in; blocking on it would panic inside async code.
        let (http, https) = {
            let _guard = runtime.enter();
            (listen(config.http)?, config.https.map(listen).transpose()?)
        };
        let log = Arc::new(Log::new(config.log_max));
        let shared = Arc::new(Shared {
            site,
            log: Arc::clone(&log),
            latency: config.latency,
        });
        let (plain_listener, http_address) = http;
        runtime.spawn(accept(plain_listener, Arc::clone(&shared), None));
        let mut server = Self {
            runtime: Some(runtime),
            log,
            http_address,
            https_address: None,
            ca_pem: String::new(),
        };
        if let Some((tls_listener, address)) = https {
            let certificates = Certificates::new(address.ip())?;
            server.ca_pem = certificates.ca_pem();
            server.https_address = Some(address);
            let acceptor = tls_acceptor(certificates, config.http2)?;
            let serving = accept(tls_listener, shared, Some(acceptor));
            server
                .runtime
                .as_ref()
                .map(|runtime| runtime.spawn(serving));
        }
        Ok(server)
    }

    /// Returns where http is served.
    #[must_use]
    pub const fn http_address(&self) -> SocketAddr {
        self.http_address
    }

    /// Returns where https is served.
    #[must_use]
    pub const fn https_address(&self) -> Option<SocketAddr> {
        self.https_address
    }

    /// Returns the certificate of the throw-away authority as PEM, for clients to trust; empty without https.
    #[must_use]
    pub fn ca_pem(&self) -> &str {
        &self.ca_pem
    }

    /// Returns the answered requests in the order in which they ended, up to the limit.
    #[must_use]
    pub fn log(&self) -> Vec<LogEntry> {
        self.log.entries()
    }

    /// Returns how often each URL was asked for, counted when the request came in.
    #[must_use]
    pub fn request_counts(&self) -> BTreeMap<String, u64> {
        self.log.counts()
    }

    /// Returns how often one URL was asked for.
    #[must_use]
    pub fn request_count(&self, url: &str) -> u64 {
        self.log.count(url)
    }

    /// Returns how many different URLs were asked for.
    #[must_use]
    pub fn url_count(&self) -> usize {
        self.log.url_count()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // Waiting for the threads would panic inside async code; they end by themselves.
            runtime.shutdown_background();
        }
    }
}

fn listen(address: SocketAddr) -> Result<(TcpListener, SocketAddr), ReplayError> {
    let bind = || -> io::Result<(TcpListener, SocketAddr)> {
        let socket = if address.is_ipv4() {
            TcpSocket::new_v4()?
        } else {
            TcpSocket::new_v6()?
        };
        socket.set_reuseaddr(true)?;
        socket.bind(address)?;
        let listener = socket.listen(BACKLOG)?;
        let bound = listener.local_addr()?;
        Ok((listener, bound))
    };
    bind().map_err(|source| ReplayError::Listen { address, source })
}

fn tls_acceptor(certificates: Certificates, http2: bool) -> Result<TlsAcceptor, ReplayError> {
    let mut config = rustls::ServerConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .map_err(|error| ReplayError::Certificates(error.to_string()))?
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(certificates));
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    if http2 {
        config.alpn_protocols.insert(0, b"h2".to_vec());
    }
    Ok(TlsAcceptor::from(Arc::new(config)))
}

async fn accept(listener: TcpListener, shared: Arc<Shared>, tls: Option<TlsAcceptor>) {
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => {
                tokio::spawn(serve(stream, peer, Arc::clone(&shared), tls.clone()));
            }
            // Out of file descriptors, most likely: some will come free.
            Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
        }
    }
}

async fn serve(stream: TcpStream, peer: SocketAddr, shared: Arc<Shared>, tls: Option<TlsAcceptor>) {
    // Without it every small answer would wait for the client's delayed acknowledgement.
    let _ = stream.set_nodelay(true);
    match tls {
        None => serve_http(stream, peer, shared, "http").await,
        Some(acceptor) => {
            let handshake = tokio::time::timeout(HANDSHAKE_WAIT_MAX, acceptor.accept(stream));
            if let Ok(Ok(stream)) = handshake.await {
                serve_http(stream, peer, shared, "https").await;
            }
        }
    }
}

async fn serve_http<S>(stream: S, peer: SocketAddr, shared: Arc<Shared>, scheme: &'static str)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = service_fn(move |request| respond(Arc::clone(&shared), request, scheme, peer));
    // Without a timer idle connections are kept: no fault happens that the site did not ask for.
    let builder = auto::Builder::new(TokioExecutor::new());
    // How a connection ends is the client's affair, or a fault that the site asked for.
    let _ = builder
        .serve_connection(TokioIo::new(stream), service)
        .await;
}
