//! What the fetcher can be told: limits, identity, routes and trust.

use std::time::Duration;

use thiserror::Error;

use crate::ConnectTo;

/// How requests are sent. [`FetchConfig::default`] holds the documented defaults.
#[derive(Clone, Debug)]
pub struct FetchConfig {
    /// The `User-Agent` of every request.
    pub user_agent: String,
    /// The longest time until a connection stands, name resolution and TLS handshake included.
    pub connect_timeout: Duration,
    /// The longest wait of a connected request for the response head, and then between two pieces of the body.
    pub read_timeout: Duration,
    /// The longest time of one fetch in all.
    pub total_timeout: Duration,
    /// Bytes of a body as received, at which it is cut.
    pub wire_bytes_max: usize,
    /// Bytes of a body after content decoding; a larger one is refused. For [`crate::decode_body`].
    pub decoded_bytes_max: usize,
    /// Bytes of a body that are read whatever other bodies take.
    pub body_free_bytes: usize,
    /// Bytes that all bodies under way may take beyond the free ones, in steps of 64 KiB. Besides, one body at a time may go
    /// on to its end.
    pub bodies_bytes_max: usize,
    /// Bytes of a response head; a larger one is refused.
    pub head_bytes_max: usize,
    /// Whether addresses outside the public internet may be connected to.
    pub allow_private_addresses: bool,
    /// Whether the limit per IP address leaves out loopback addresses, the proxy, and addresses that `connect_to` names.
    pub exempts_own_addresses: bool,
    /// Where to connect instead; the first rule that matches wins. A matched URL is not sent through the proxy.
    pub connect_to: Vec<ConnectTo>,
    /// Certificates in PEM that are trusted beside the system's.
    pub ca_pem: Option<Vec<u8>>,
    /// The URL of an HTTP proxy, `http://` or `https://`; variables of the environment are not read.
    pub proxy: Option<String>,
    /// How long the addresses of a name are kept.
    pub dns_ttl: Duration,
    /// Names whose addresses are kept.
    pub dns_entries_max: usize,
    /// Kept-alive connections to one host that wait unused.
    pub idle_per_host_max: usize,
    /// How long a kept-alive connection waits unused.
    pub idle_timeout: Duration,
}

impl Default for FetchConfig {
    fn default() -> Self {
        Self {
            user_agent: concat!("bloomcrawl/", env!("CARGO_PKG_VERSION")).to_owned(),
            connect_timeout: Duration::from_secs(10),
            read_timeout: Duration::from_secs(20),
            total_timeout: Duration::from_mins(2),
            wire_bytes_max: 10 << 20,
            decoded_bytes_max: 50 << 20,
            body_free_bytes: 64 << 10,
            bodies_bytes_max: 128 << 20,
            head_bytes_max: 64 << 10,
            allow_private_addresses: false,
            exempts_own_addresses: true,
            connect_to: Vec::new(),
            ca_pem: None,
            proxy: None,
            dns_ttl: Duration::from_mins(10),
            dns_entries_max: 50_000,
            idle_per_host_max: 4,
            idle_timeout: Duration::from_secs(15),
        }
    }
}

/// Why a [`FetchConfig`] cannot be used, or a rule of it cannot be read.
#[derive(Debug, Error)]
pub enum FetcherError {
    /// The user agent cannot stand in a header field.
    #[error("user agent {text:?}: only visible ASCII characters and spaces can be sent")]
    UserAgent {
        /// The text given.
        text: String,
    },
    /// The CA certificates cannot be read.
    #[error(
        "CA certificates: {reason}; one or more PEM blocks `-----BEGIN CERTIFICATE-----` are expected"
    )]
    Ca {
        /// What is wrong with them.
        reason: String,
    },
    /// The proxy's URL cannot be used.
    #[error("proxy {text:?}: {reason}; expected http://HOST:PORT or https://HOST:PORT")]
    Proxy {
        /// The text given, without a password.
        text: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A rule is not of the form that `connect-to` takes.
    #[error(
        "connect-to {text:?}: {reason}; expected HOST:PORT:ADDR:PORT, empty fields match or keep all, IPv6 in brackets"
    )]
    ConnectTo {
        /// The text given.
        text: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The HTTP client could not be set up.
    #[error("the HTTP client could not be set up: {reason}")]
    Client {
        /// What the client says.
        reason: String,
    },
}
