//! Canonicalization: the only maker of [`CanonicalUrl`].

use std::fmt;

use thiserror::Error;
use url::{Host as UrlHost, Url};

use crate::{Host, RejectReason};

/// A URL in the crawl's canonical form: the identity under which it is seen, queued and fetched.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CanonicalUrl {
    text: Box<str>,
    path_start: u32,
}

/// Why a text has no canonical form.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum UrlRejection {
    /// The text is no valid URL by the WHATWG URL Standard.
    #[error("not a valid URL: {0}")]
    Invalid(String),
    /// The scheme is not http or https.
    #[error("scheme {0:?} is not crawled, only http and https are")]
    Scheme(String),
    /// The canonical text is over the cap.
    #[error("{bytes} bytes long, the limit is {bytes_max}")]
    TooLong {
        /// Its length in bytes.
        bytes: usize,
        /// The cap in force.
        bytes_max: usize,
    },
}

impl UrlRejection {
    /// Returns the reason under which the rejection is counted.
    #[must_use]
    pub const fn reason(&self) -> RejectReason {
        match self {
            Self::Invalid(_) => RejectReason::Invalid,
            Self::Scheme(_) => RejectReason::Scheme,
            Self::TooLong { .. } => RejectReason::TooLong,
        }
    }
}

/// What canonicalization does beyond the rules that are always on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CanonicalOptions {
    /// The longest canonical text accepted, in bytes.
    pub url_bytes_max: usize,
    /// Drop tracking parameters (`utm_*`, `gclid`, `fbclid` and the like).
    pub drop_tracking: bool,
    /// Sort query parameters by name, stable.
    pub sort_query: bool,
    /// Drop session ids (`jsessionid`, `phpsessid`, `sid` and the like).
    pub drop_session_ids: bool,
}

impl Default for CanonicalOptions {
    fn default() -> Self {
        Self { url_bytes_max: 4_096, drop_tracking: false, sort_query: false, drop_session_ids: false }
    }
}

/// Turns texts into canonical URLs by one set of options.
#[derive(Clone, Debug, Default)]
pub struct Canonicalizer {
    options: CanonicalOptions,
}

impl Canonicalizer {
    /// Makes a canonicalizer with these options.
    #[must_use]
    pub const fn new(options: CanonicalOptions) -> Self {
        Self { options }
    }

    /// Canonicalizes an absolute URL.
    ///
    /// # Errors
    ///
    /// Returns why the text cannot be crawled.
    pub fn canonicalize(&self, text: &str) -> Result<CanonicalUrl, UrlRejection> {
        let url = Url::parse(text).map_err(|error| UrlRejection::Invalid(error.to_string()))?;
        self.from_url(&url)
    }

    /// Resolves `href` against `base` (WHATWG URL parsing) and canonicalizes the result.
    ///
    /// # Errors
    ///
    /// Returns why the text cannot be crawled.
    pub fn resolve(&self, base: &Url, href: &str) -> Result<CanonicalUrl, UrlRejection> {
        let url = base.join(href).map_err(|error| UrlRejection::Invalid(error.to_string()))?;
        self.from_url(&url)
    }

    /// Canonicalizes a parsed URL.
    ///
    /// # Errors
    ///
    /// Returns why it cannot be crawled.
    #[expect(clippy::wrong_self_convention, reason = "converts its argument by the options in self")]
    pub fn from_url(&self, url: &Url) -> Result<CanonicalUrl, UrlRejection> {
        if !matches!(url.scheme(), "http" | "https") {
            return Err(UrlRejection::Scheme(url.scheme().to_owned()));
        }
        let mut text = format!("{}://", url.scheme());
        match url.host() {
            Some(UrlHost::Domain(name)) => text.push_str(name.trim_end_matches('.')),
            Some(UrlHost::Ipv4(address)) => text.push_str(&address.to_string()),
            Some(UrlHost::Ipv6(address)) => text.push_str(&format!("[{address}]")),
            None => return Err(UrlRejection::Invalid("no host".to_owned())),
        }
        if let Some(port) = url.port() {
            text.push_str(&format!(":{port}"));
        }
        let path_start = text.len();
        text.push_str(url.path());
        if let Some(query) = url.query() {
            text.push('?');
            text.push_str(query);
        }
        if text.len() > self.options.url_bytes_max {
            return Err(UrlRejection::TooLong {
                bytes: text.len(),
                bytes_max: self.options.url_bytes_max,
            });
        }
        let path_start = u32::try_from(path_start).map_err(|_| UrlRejection::Invalid("host too long".to_owned()))?;
        Ok(CanonicalUrl { text: text.into_boxed_str(), path_start })
    }
}

impl CanonicalUrl {
    /// Rebuilds a canonical URL from text that a store kept.
    ///
    /// # Errors
    ///
    /// Returns [`UrlRejection::Invalid`] when the text does not have the outline of a canonical URL; it is not
    /// canonicalized again.
    pub fn from_stored(text: String) -> Result<Self, UrlRejection> {
        let after_scheme = text
            .strip_prefix("http://")
            .or_else(|| text.strip_prefix("https://"))
            .ok_or_else(|| UrlRejection::Invalid("a stored URL begins with http:// or https://".to_owned()))?;
        let authority_bytes = after_scheme
            .find('/')
            .filter(|at| *at > 0)
            .ok_or_else(|| UrlRejection::Invalid("a stored URL has a host and a path".to_owned()))?;
        let path_start = text.len() - after_scheme.len() + authority_bytes;
        let path_start = u32::try_from(path_start)
            .map_err(|_| UrlRejection::Invalid("the stored host is too long".to_owned()))?;
        Ok(Self { text: text.into_boxed_str(), path_start })
    }

    /// Returns the canonical text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns scheme and authority, as in `https://example.org:8443`.
    #[must_use]
    pub fn host_str(&self) -> &str {
        &self.text[..self.path_start as usize]
    }

    /// Returns the host.
    #[must_use]
    pub fn host(&self) -> Host {
        Host::new(self.host_str())
    }

    /// Returns the path with the query, beginning with `/`.
    #[must_use]
    pub fn path_and_query(&self) -> &str {
        &self.text[self.path_start as usize..]
    }

    /// Returns the URL for use as a base.
    ///
    /// # Panics
    ///
    /// Never: a canonical text parses, which canonicalization saw to.
    #[must_use]
    pub fn to_url(&self) -> Url {
        Url::parse(&self.text).expect("a canonical URL parses")
    }
}

impl fmt::Debug for CanonicalUrl {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "CanonicalUrl({})", self.text)
    }
}

impl fmt::Display for CanonicalUrl {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}
