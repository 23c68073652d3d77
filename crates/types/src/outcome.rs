//! Fetch outcomes: what came of one request. The web's failures are data here, never errors.

use std::{
    fmt,
    net::{IpAddr, SocketAddr},
    time::Duration,
};

use serde::{Deserialize, Serialize};

/// What came of one lease.
#[derive(Debug)]
pub enum FetchOutcome {
    /// A response that names no other URL.
    Response(Response),
    /// A response with a redirect status (301, 302, 303, 307, 308) and a `Location`.
    Redirect(Redirect),
    /// No complete response.
    Failed(FetchFailure),
}

/// A redirect: the response itself and where it points.
#[derive(Debug)]
pub struct Redirect {
    /// The response, as recorded.
    pub response: Response,
    /// The `Location` value as text (UTF-8 where valid, else each byte as Latin-1), not yet resolved.
    pub location: String,
}

/// A complete response, or one cut at a stated cap.
#[derive(Debug)]
pub struct Response {
    /// The status code, 100 to 999.
    pub status: u16,
    /// The HTTP version of the response.
    pub version: HttpVersion,
    /// The header fields, in order of arrival as far as the client keeps it.
    pub headers: Headers,
    /// The body as received: transfer coding removed, content coding kept.
    pub wire_body: Vec<u8>,
    /// Set when the body was cut, with the reason.
    pub truncation: Option<Truncation>,
    /// The request's head as sent, ending in an empty line; for archives.
    pub request_head: Vec<u8>,
    /// The address connected to, where known (a proxy's with a proxy).
    pub address: Option<SocketAddr>,
    /// How long the parts took.
    pub timings: Timings,
}

/// The version of HTTP spoken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HttpVersion {
    /// HTTP/1.0
    Http10,
    /// HTTP/1.1
    Http11,
    /// HTTP/2
    Http2,
}

/// Why a body was cut (the `WARC-Truncated` reasons that apply).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Truncation {
    /// The cap on wire bytes was reached.
    Length,
    /// The total deadline passed while the body came in.
    Time,
    /// The connection ended before the declared end.
    Disconnect,
}

/// Durations of one fetch, from the moment the request was handed to the client.
#[derive(Clone, Copy, Debug, Default)]
pub struct Timings {
    /// Until the response head had arrived.
    pub first_byte: Duration,
    /// Until the last byte of the body.
    pub total: Duration,
}

/// Header fields of a response in order; names are lower case, values raw bytes.
#[derive(Clone, Debug, Default)]
pub struct Headers(Vec<(String, Vec<u8>)>);

impl Headers {
    /// Wraps fields; names are lower-cased.
    #[must_use]
    pub fn new(mut fields: Vec<(String, Vec<u8>)>) -> Self {
        for (name, _) in &mut fields {
            name.make_ascii_lowercase();
        }
        Self(fields)
    }

    /// Iterates over the fields in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.0
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_slice()))
    }

    /// Returns the first value of a field whose lower-case name is `name`.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&[u8]> {
        self.iter()
            .find(|(field, _)| *field == name)
            .map(|(_, value)| value)
    }

    /// Returns the first value of a field as text when it is valid UTF-8.
    #[must_use]
    pub fn get_str(&self, name: &str) -> Option<&str> {
        self.get(name)
            .and_then(|value| std::str::from_utf8(value).ok())
    }

    /// Iterates over all values of a field.
    pub fn get_all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a [u8]> {
        self.iter()
            .filter(move |(field, _)| *field == name)
            .map(|(_, value)| value)
    }
}

/// What the resolver said of a host before its first lease.
#[derive(Clone, Debug)]
pub enum Resolution {
    /// The address that connections will go to, and that the per-IP limit counts.
    Address(IpAddr),
    /// No limit per IP applies: loopback, a proxy, or an address that the user named, unless a limit was asked for.
    Exempt,
    /// The host cannot be connected to.
    Failed(FetchFailure),
}

/// A request that brought no complete response: kind and detail.
#[derive(Clone, Debug)]
pub struct FetchFailure {
    /// What went wrong.
    pub kind: FailureKind,
    /// More words for a person, at most 200 characters, free of control characters.
    pub detail: String,
}

impl fmt::Display for FetchFailure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.kind.name(), self.detail)
    }
}

/// The kinds of failure, each with a retry class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FailureKind {
    /// The name did not resolve.
    Dns,
    /// Every address of the name is outside the public internet, and that was not allowed.
    AddressRefused,
    /// No connection: refused, unreachable, or reset while connecting.
    Connect,
    /// No connection within the connect timeout.
    ConnectTimeout,
    /// The TLS handshake failed, certificate included.
    Tls,
    /// No byte for longer than the read timeout.
    ReadTimeout,
    /// The total deadline passed before the response head.
    TotalTimeout,
    /// The connection ended before the response head.
    Disconnected,
    /// The peer does not speak HTTP as it should.
    Protocol,
    /// The response head is over the cap.
    HeadersTooLarge,
    /// The content coding of the body is broken or unknown.
    Decode,
    /// The decoded body is over the cap.
    DecodedTooLarge,
    /// A server error or 429 that outlasted the retries.
    ServerError,
    /// robots.txt disallows the URL.
    RobotsDisallowed,
    /// robots.txt could not be had, which counts as a full disallow (RFC 9309, section 2.3.1.4).
    RobotsUnreachable,
    /// The host failed too often in a row and was given up.
    HostGivenUp,
    /// A fault of our own while this URL was fetched or parsed.
    Internal,
    /// The system lets this process open no more files: our fault, not the host's.
    OutOfFiles,
    /// The connection ended while the body waited for room in our memory: our fault, not the host's.
    KeptWaiting,
}

/// What a failure says about trying again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryClass {
    /// The same request would fail again.
    Never,
    /// Worth another try after a backoff.
    Backoff,
    /// As [`Self::Backoff`], but the try that failed does not count, since the fault was ours.
    Uncounted,
}

impl FailureKind {
    /// Returns whether another try can help.
    #[must_use]
    pub const fn retry_class(self) -> RetryClass {
        match self {
            Self::Dns
            | Self::Connect
            | Self::ConnectTimeout
            | Self::ReadTimeout
            | Self::TotalTimeout
            | Self::Disconnected
            | Self::ServerError => RetryClass::Backoff,
            Self::AddressRefused
            | Self::Tls
            | Self::Protocol
            | Self::HeadersTooLarge
            | Self::Decode
            | Self::DecodedTooLarge
            | Self::RobotsDisallowed
            | Self::RobotsUnreachable
            | Self::HostGivenUp
            | Self::Internal
            | Self::OutOfFiles => RetryClass::Never,
            Self::KeptWaiting => RetryClass::Uncounted,
        }
    }

    /// Returns the kind's name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Dns => "dns",
            Self::AddressRefused => "address-refused",
            Self::Connect => "connect",
            Self::ConnectTimeout => "connect-timeout",
            Self::Tls => "tls",
            Self::ReadTimeout => "read-timeout",
            Self::TotalTimeout => "total-timeout",
            Self::Disconnected => "disconnected",
            Self::Protocol => "protocol",
            Self::HeadersTooLarge => "headers-too-large",
            Self::Decode => "decode",
            Self::DecodedTooLarge => "decoded-too-large",
            Self::ServerError => "server-error",
            Self::RobotsDisallowed => "robots-disallowed",
            Self::RobotsUnreachable => "robots-unreachable",
            Self::HostGivenUp => "host-given-up",
            Self::Internal => "internal",
            Self::OutOfFiles => "out-of-files",
            Self::KeptWaiting => "kept-waiting",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{FailureKind, FetchFailure, Headers};

    #[test]
    fn a_kind_has_one_name_in_reports_and_stores() {
        for kind in [
            FailureKind::Dns,
            FailureKind::AddressRefused,
            FailureKind::Connect,
            FailureKind::ConnectTimeout,
            FailureKind::Tls,
            FailureKind::ReadTimeout,
            FailureKind::TotalTimeout,
            FailureKind::Disconnected,
            FailureKind::Protocol,
            FailureKind::HeadersTooLarge,
            FailureKind::Decode,
            FailureKind::DecodedTooLarge,
            FailureKind::ServerError,
            FailureKind::RobotsDisallowed,
            FailureKind::RobotsUnreachable,
            FailureKind::HostGivenUp,
            FailureKind::Internal,
            FailureKind::OutOfFiles,
            FailureKind::KeptWaiting,
        ] {
            let stored = serde_json::to_string(&kind).expect("a kind serializes");
            assert_eq!(stored, format!("{:?}", kind.name()));
            let failure = FetchFailure {
                kind,
                detail: "why".to_owned(),
            };
            assert_eq!(failure.to_string(), format!("{}: why", kind.name()));
        }
    }

    #[test]
    fn header_names_are_found_in_lower_case_and_values_keep_their_bytes() {
        let field = |name: &str, value: &[u8]| (name.to_owned(), value.to_vec());
        let headers = Headers::new(vec![
            field("X-Robots-Tag", b"noindex"),
            field("x-robots-tag", b"nofollow"),
            field("Location", b"/caf\xe9"),
        ]);
        assert_eq!(headers.get("x-robots-tag"), Some(&b"noindex"[..]));
        assert_eq!(headers.get_str("x-robots-tag"), Some("noindex"));
        assert_eq!(headers.get_all("x-robots-tag").count(), 2);
        assert_eq!(headers.get("location"), Some(&b"/caf\xe9"[..]));
        assert_eq!(headers.get_str("location"), None);
        assert_eq!(headers.get("missing"), None);
        assert_eq!(
            headers.iter().last().map(|(name, _)| name),
            Some("location")
        );
    }
}
