//! Canonicalization: the canonical form of a URL, its one maker, and why a text has no such form.

mod canonicalizer;
mod escape;
mod strip;

use std::fmt;

use thiserror::Error;
use url::Url;

use crate::{Host, RejectReason};

pub use canonicalizer::{CanonicalOptions, Canonicalizer, QueryEncoder};

/// A URL in the crawl's canonical form: the identity under which it is seen, queued and fetched.
///
/// Its text is printable ASCII without spaces: `scheme://host[:port]/path[?query]`, where the scheme is
/// http or https, the port is never the scheme's default, and there is neither userinfo nor fragment.
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
    /// The scheme is not http or https; a very long one is cut.
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

impl CanonicalUrl {
    /// Rebuilds a canonical URL from text that a store kept.
    ///
    /// The text is checked to be a URL with the outline of a canonical one, so that a damaged store cannot
    /// smuggle anything else in. It is not canonicalized again: a crawl keeps the identities it began with.
    ///
    /// # Errors
    ///
    /// Returns [`UrlRejection::Invalid`] when the text lacks that outline.
    pub fn from_stored(text: String) -> Result<Self, UrlRejection> {
        let invalid = |reason: &str| UrlRejection::Invalid(reason.to_owned());
        let after_scheme = text
            .strip_prefix("http://")
            .or_else(|| text.strip_prefix("https://"))
            .ok_or_else(|| invalid("a stored URL begins with http:// or https://"))?;
        let authority_bytes = after_scheme
            .find('/')
            .filter(|at| *at > 0)
            .ok_or_else(|| invalid("a stored URL has a host and a path"))?;
        if after_scheme[..authority_bytes].contains(['@', '?', '\\']) {
            return Err(invalid("a stored URL's authority is a host and a port"));
        }
        if !text
            .bytes()
            .all(|byte| byte.is_ascii_graphic() && byte != b'#')
        {
            return Err(invalid(
                "a stored URL is printable ASCII without a fragment",
            ));
        }
        let path_start = text.len() - after_scheme.len() + authority_bytes;
        Url::parse(&text).map_err(|error| UrlRejection::Invalid(error.to_string()))?;
        Self::from_parts(text, path_start)
    }

    /// Wraps a canonical text whose path begins at byte `path_start`.
    fn from_parts(text: String, path_start: usize) -> Result<Self, UrlRejection> {
        let path_start = u32::try_from(path_start)
            .map_err(|_| UrlRejection::Invalid("the host is longer than 4 GiB".to_owned()))?;
        Ok(Self {
            text: text.into_boxed_str(),
            path_start,
        })
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
    /// Never: a canonical text parses, which both of its makers saw to.
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

#[cfg(test)]
mod tests {
    use super::{CanonicalUrl, Canonicalizer};

    #[test]
    fn stored_text_comes_back_as_it_was() {
        let url = Canonicalizer::default()
            .canonicalize("https://example.org:8443/a;b?c=%2F%zz")
            .expect("the text is a URL");
        let back = CanonicalUrl::from_stored(url.as_str().to_owned());
        assert_eq!(back, Ok(url.clone()));
        assert_eq!(url.host_str(), "https://example.org:8443");
        assert_eq!(url.path_and_query(), "/a;b?c=%2F%zz");
        assert_eq!(url.host().name(), "example.org");
        assert_eq!(url.to_url().as_str(), url.as_str());
    }

    #[test]
    fn damaged_stored_text_is_refused() {
        for text in [
            "",
            "http://",
            "http:///",
            "http://a",
            "ftp://a/",
            "http://user@a/",
            "http://a?b/",
            "http://a\\b/",
            "http://a/#f",
            "http://a/ b",
            "http://a/\n",
            "http://\u{e4}/",
            "http://a:99999/",
            "http://[::1/",
        ] {
            assert!(
                CanonicalUrl::from_stored(text.to_owned()).is_err(),
                "{text:?}"
            );
        }
    }
}
