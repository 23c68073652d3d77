//! Hosts: scheme and authority, the unit of politeness.

use std::{fmt, sync::Arc};

/// A host in the crawler's sense: scheme and authority, as in `https://example.org:8443`.
///
/// Cheap to clone. The default port never appears, since canonicalization dropped it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Host(Arc<str>);

impl Host {
    /// Wraps `scheme://authority`, the text that [`crate::CanonicalUrl::host_str`] returns or a store kept.
    ///
    /// # Panics
    ///
    /// Panics when the text does not begin with `http://` or `https://`.
    #[must_use]
    pub fn new(text: &str) -> Self {
        assert!(
            text.starts_with("http://") || text.starts_with("https://"),
            "a host is scheme and authority, got {text:?}"
        );
        Self(Arc::from(text))
    }

    /// Returns `scheme://authority`.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns whether the scheme is https.
    #[must_use]
    pub fn is_https(&self) -> bool {
        self.0.starts_with("https:")
    }

    /// Returns the authority: the name and, where it is not the scheme's default, the port.
    #[must_use]
    pub fn authority(&self) -> &str {
        self.0
            .split_once("://")
            .map_or("", |(_, authority)| authority)
    }

    /// Returns the host name without the port; an IPv6 literal keeps its brackets.
    #[must_use]
    pub fn name(&self) -> &str {
        let authority = self.authority();
        match authority.rfind(':') {
            Some(at) if !authority[at..].contains(']') => &authority[..at],
            _ => authority,
        }
    }

    /// Returns the port, explicit or the scheme's default.
    #[must_use]
    pub fn port(&self) -> u16 {
        let authority = self.authority();
        let explicit = authority[self.name().len()..].strip_prefix(':');
        let default = if self.is_https() { 443 } else { 80 };
        explicit
            .and_then(|port| port.parse().ok())
            .unwrap_or(default)
    }

    /// Returns the registered domain by the public suffix list, or the name itself where there is none
    /// (IP literals, single labels, public suffixes, names with an empty label).
    #[must_use]
    pub fn domain(&self) -> &str {
        let name = self.name();
        let is_address = name.starts_with('[')
            || name.rsplit('.').next().is_some_and(|last| {
                !last.is_empty() && last.bytes().all(|byte| byte.is_ascii_digit())
            });
        if is_address || name.split('.').any(str::is_empty) {
            return name;
        }
        psl::domain_str(name).unwrap_or(name)
    }
}

impl fmt::Debug for Host {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Host({})", self.0)
    }
}

impl fmt::Display for Host {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::Host;

    #[test]
    fn parts_are_told_apart() {
        for (text, authority, name, port) in [
            ("https://example.org", "example.org", "example.org", 443),
            ("http://example.org", "example.org", "example.org", 80),
            (
                "https://example.org:80",
                "example.org:80",
                "example.org",
                80,
            ),
            ("http://127.0.0.1:8080", "127.0.0.1:8080", "127.0.0.1", 8080),
            ("http://[::1]", "[::1]", "[::1]", 80),
            (
                "https://[2001:db8::1]:65535",
                "[2001:db8::1]:65535",
                "[2001:db8::1]",
                65535,
            ),
        ] {
            let host = Host::new(text);
            assert_eq!(
                (host.as_str(), host.authority(), host.name(), host.port()),
                (text, authority, name, port)
            );
            assert_eq!(host.is_https(), text.starts_with("https"));
        }
    }

    #[test]
    fn the_domain_is_the_registered_one() {
        for (host, domain) in [
            ("http://example.org", "example.org"),
            ("http://www.a.example.org:8080", "example.org"),
            ("http://www.example.co.uk", "example.co.uk"),
            ("http://user.github.io", "user.github.io"),
            (
                "http://www.xn--85x722f.xn--55qx5d.cn",
                "xn--85x722f.xn--55qx5d.cn",
            ),
            ("http://www.site.unlisted-suffix", "site.unlisted-suffix"),
        ] {
            assert_eq!(Host::new(host).domain(), domain, "{host}");
        }
    }

    #[test]
    fn without_a_registered_domain_the_name_stands_in() {
        for (host, domain) in [
            ("http://localhost:8080", "localhost"),
            ("http://co.uk", "co.uk"),
            ("http://10.1.2.3:80", "10.1.2.3"),
            ("https://[2001:db8::1]:8080", "[2001:db8::1]"),
            ("http://.", "."),
            ("http://www.example.org..", "www.example.org.."),
            ("http://.example.org", ".example.org"),
        ] {
            assert_eq!(Host::new(host).domain(), domain, "{host}");
        }
    }

    #[test]
    #[should_panic(expected = "a host is scheme and authority")]
    fn a_bare_name_is_no_host() {
        let _ = Host::new("example.org");
    }
}
