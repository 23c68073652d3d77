//! The canonicalizer: parses or resolves a text as browsers do, then writes it in canonical form.

use std::borrow::Cow;

use url::Url;

use super::{CanonicalUrl, UrlRejection, escape, strip};

/// Longest part of a foreign scheme that a rejection repeats, in bytes.
const SCHEME_SHOWN_BYTES_MAX: usize = 32;

/// Encodes the query of a link in the encoding of its page (WHATWG URL, "percent-encode after encoding").
///
/// It is given query text and returns its bytes in that encoding; bytes that may not stand in a query are
/// percent-encoded afterwards. For a character that the encoding lacks it returns the ASCII text
/// `%26%23`, the character's code point in decimal, `%3B`, as step 5 of that algorithm asks.
pub type QueryEncoder<'a> = &'a dyn Fn(&str) -> Cow<'_, [u8]>;

/// What canonicalization does beyond the rules that are always on.
///
/// No option is on by default, since each can merge URLs that a server tells apart. All are idempotent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CanonicalOptions {
    /// The longest canonical text accepted, in bytes.
    pub url_bytes_max: usize,
    /// Drop tracking parameters (`utm_*`, `gclid`, `fbclid` and the like).
    pub drop_tracking: bool,
    /// Sort query parameters by name; equal names keep their order, empty parameters go.
    pub sort_query: bool,
    /// Drop session ids: `PHPSESSID`, `jsessionid` and the like in the query, `;jsessionid=` and
    /// ASP.NET's `/(S(...))/` in the path.
    pub drop_session_ids: bool,
}

impl Default for CanonicalOptions {
    fn default() -> Self {
        Self {
            url_bytes_max: 4_096,
            drop_tracking: false,
            sort_query: false,
            drop_session_ids: false,
        }
    }
}

/// Turns texts into canonical URLs by one set of options.
///
/// Rules that are always on:
///
/// - Parsing and resolving follow the WHATWG URL Standard, as browsers do: white space at the ends, tabs
///   and newlines go, `\` is `/`, dot segments (`%2e` forms too) are resolved, the scheme and host are
///   lower-cased, names become A-labels (UTS #46, non-transitional), every spelling of an IP address
///   becomes one, the default port goes.
/// - Only http and https URLs have a canonical form.
/// - Fragment and userinfo are dropped: neither is part of what is requested from the host.
/// - The root dot of a host name is dropped, since `example.org.` and `example.org` are one name. A name
///   with an empty last label (`a..`) or of nothing but the dot is no DNS name and stays as it is.
/// - In path and query, percent-encoded unreserved characters are decoded and the hex digits of all other
///   escapes upper-cased (RFC 3986, sections 6.2.2.1 and 6.2.2.2). What is no escape (`%zz`, a lone `%`) is
///   sent by browsers as it stands, and stays.
/// - An empty query is dropped: `http://a/?` becomes `http://a/`. RFC 3986, section 6.2.3, does not license
///   this in general. But nearly every server hands its program the same empty query string for both, links
///   such as `href="?"` ("reset the filter") name on almost any listing the page itself, and most crawlers'
///   canonical forms drop it; kept apart, every such page would be fetched twice.
/// - A canonical text longer than the cap is refused.
///
/// A trailing slash, the order of parameters, repeated slashes, index pages, `www.` and letter case in the
/// path are never touched.
///
/// Known to differ from the standard, because the parser in use does: all-ASCII names with an A-label that
/// UTS #46 finds invalid are refused, and `..` does not step over a segment such as `C:`.
///
/// Canonicalizing a canonical text with the same options returns that text.
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
        self.resolve_with_encoding(base, href, None)
    }

    /// Resolves `href` as [`Canonicalizer::resolve`] does, for a page whose encoding is not UTF-8: the query is
    /// encoded by `encode` where given. Path and host are UTF-8 on every page.
    ///
    /// # Errors
    ///
    /// Returns why the text cannot be crawled.
    pub fn resolve_with_encoding(
        &self,
        base: &Url,
        href: &str,
        encode: Option<QueryEncoder<'_>>,
    ) -> Result<CanonicalUrl, UrlRejection> {
        let url = Url::options()
            .base_url(Some(base))
            .encoding_override(encode)
            .parse(&with_two_slashes(base, href))
            .map_err(|error| UrlRejection::Invalid(error.to_string()))?;
        self.from_url(&url)
    }

    /// Canonicalizes a parsed URL.
    ///
    /// # Errors
    ///
    /// Returns why it cannot be crawled.
    pub fn from_url(&self, url: &Url) -> Result<CanonicalUrl, UrlRejection> {
        let scheme = url.scheme();
        if !matches!(scheme, "http" | "https") {
            let shown = &scheme[..scheme.len().min(SCHEME_SHOWN_BYTES_MAX)];
            return Err(UrlRejection::Scheme(shown.to_owned()));
        }
        let host = url
            .host_str()
            .ok_or_else(|| UrlRejection::Invalid("no host".to_owned()))?;

        // No rule makes the text longer, so that this is the one allocation of the common case.
        let mut text = String::with_capacity(url.as_str().len());
        text.push_str(scheme);
        text.push_str("://");
        text.push_str(without_root_dot(host));
        if let Some(port) = url.port() {
            text.push(':');
            text.push_str(&port.to_string());
        }
        let path_start = text.len();
        self.push_path(&mut text, url.path());
        self.push_query(&mut text, url.query().unwrap_or_default());

        if text.len() > self.options.url_bytes_max {
            return Err(UrlRejection::TooLong {
                bytes: text.len(),
                bytes_max: self.options.url_bytes_max,
            });
        }
        CanonicalUrl::from_parts(text, path_start)
    }

    /// Appends the canonical form of `path`.
    fn push_path(&self, text: &mut String, path: &str) {
        let path_start = text.len();
        // The URL Standard's path percent-encode set holds `^`; the `url` crate's does not yet.
        if path.contains('^') {
            escape::push_normalized(text, &path.replace('^', "%5E"));
        } else {
            escape::push_normalized(text, path);
        }
        if self.options.drop_session_ids
            && let Some(stripped) = strip::session_path(&text[path_start..])
        {
            text.truncate(path_start);
            text.push_str(&stripped);
        }
    }

    /// Appends `?` and the canonical form of `query`, or nothing where none of it is left.
    fn push_query(&self, text: &mut String, query: &str) {
        if query.is_empty() {
            return;
        }
        let path_end = text.len();
        text.push('?');
        escape::push_normalized(text, query);
        if let Some(stripped) = strip::query(&text[path_end + 1..], &self.options) {
            text.truncate(path_end);
            if !stripped.is_empty() {
                text.push('?');
                text.push_str(&stripped);
            }
        }
    }
}

/// Returns `href` with its leading slashes reduced to two where there are more.
///
/// To an http base `///example.org/` names a host, as all slashes before it are skipped (WHATWG URL, special
/// authority ignore slashes state); the parser in use takes the third for an empty host.
fn with_two_slashes<'a>(base: &Url, href: &'a str) -> Cow<'a, str> {
    if !matches!(base.scheme(), "http" | "https") {
        return Cow::Borrowed(href);
    }
    // The parser strips control characters and spaces at the start, and tabs and newlines everywhere.
    let trimmed = href.trim_start_matches(|c: char| c <= ' ');
    let rest = trimmed.trim_start_matches(['/', '\\', '\t', '\n', '\r']);
    let lead = &trimmed.as_bytes()[..trimmed.len() - rest.len()];
    if lead
        .iter()
        .filter(|byte| matches!(byte, b'/' | b'\\'))
        .count()
        > 2
    {
        Cow::Owned(format!("//{rest}"))
    } else {
        Cow::Borrowed(href)
    }
}

/// Returns `host` without the dot that stands for the DNS root.
///
/// Exactly one dot goes, and only behind a label that is not empty: taking more would turn the invalid name
/// `127.0.0.1..` into an address, and taking one of two would not be idempotent.
fn without_root_dot(host: &str) -> &str {
    match host.strip_suffix('.') {
        Some(name) if !name.is_empty() && !name.ends_with('.') => name,
        _ => host,
    }
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use url::Url;

    use super::{CanonicalOptions, Canonicalizer};
    use crate::{RejectReason, UrlRejection};

    /// Canonicalizes by the default options; a rejection becomes its reason's name.
    fn canonical(text: &str) -> String {
        match Canonicalizer::default().canonicalize(text) {
            Ok(url) => url.as_str().to_owned(),
            Err(rejection) => rejection.reason().name().to_owned(),
        }
    }

    #[test]
    fn scheme_authority_and_fragment_have_one_form() {
        for (text, expected) in [
            ("  HTTP://Example.ORG:80#top\n", "http://example.org/"),
            ("https://example.org:443/a#b#c", "https://example.org/a"),
            ("https://example.org:80/", "https://example.org:80/"),
            ("http://user:secret@example.org/", "http://example.org/"),
            ("http://@example.org:/", "http://example.org/"),
            (
                "http://b\u{fc}cher.example/",
                "http://xn--bcher-kva.example/",
            ),
            (
                "http://stra\u{df}e.example/",
                "http://xn--strae-oqa.example/",
            ),
            ("http://0x7f.1/", "http://127.0.0.1/"),
            (
                "http://127\u{3002}0\u{3002}0\u{3002}1/",
                "http://127.0.0.1/",
            ),
            (
                "http://[0:0::FFFF:1.2.3.4]:8080/",
                "http://[::ffff:102:304]:8080/",
            ),
            ("ht\ntp:\\\\example.org\\a", "http://example.org/a"),
        ] {
            assert_eq!(canonical(text), expected, "{text}");
        }
    }

    #[test]
    fn only_a_root_dot_is_dropped() {
        for (text, expected) in [
            ("http://example.org./", "http://example.org/"),
            ("http://example.org.:8080/a.", "http://example.org:8080/a."),
            ("http://127.0.0.1./", "http://127.0.0.1/"),
            ("http://a../", "http://a../"),
            ("http://127.0.0.1../", "http://127.0.0.1../"),
            ("http://./", "http://./"),
            ("http://../", "http://../"),
        ] {
            assert_eq!(canonical(text), expected, "{text}");
        }
    }

    #[test]
    fn path_and_query_keep_their_meaning() {
        for (text, expected) in [
            ("http://a/%7Efoo/%2e%2E/b%2fc%2Ed", "http://a/b%2Fc.d"),
            ("http://a/?", "http://a/"),
            ("http://a/p?#f", "http://a/p"),
            ("http://a/p??", "http://a/p??"),
            ("http://a/p?&", "http://a/p?&"),
            ("http://a/p?b=%7e&a=%e4&a=+", "http://a/p?b=~&a=%E4&a=+"),
            ("http://a/p/", "http://a/p/"),
            (
                "http://a//p//?utm_source=x&PHPSESSID=1",
                "http://a//p//?utm_source=x&PHPSESSID=1",
            ),
            ("http://a/p;jsessionid=1", "http://a/p;jsessionid=1"),
            ("http://a/90%+%zz%", "http://a/90%+%zz%"),
            ("http://a/?q='x'", "http://a/?q=%27x%27"),
        ] {
            assert_eq!(canonical(text), expected, "{text}");
        }
    }

    #[test]
    fn what_cannot_be_crawled_is_refused_with_its_reason() {
        for (text, reason) in [
            ("mailto:a@example.org", RejectReason::Scheme),
            ("java\nscript:alert(1)", RejectReason::Scheme),
            ("ftp://example.org/", RejectReason::Scheme),
            ("file:///etc/passwd", RejectReason::Scheme),
            ("/relative", RejectReason::Invalid),
            ("", RejectReason::Invalid),
            ("http://", RejectReason::Invalid),
            ("http://a b/", RejectReason::Invalid),
            ("http://example.org:99999/", RejectReason::Invalid),
            ("http://[::1", RejectReason::Invalid),
            ("http://doi.example.1901/", RejectReason::Invalid),
        ] {
            assert_eq!(canonical(text), reason.name(), "{text}");
        }
    }

    #[test]
    fn a_long_scheme_is_not_repeated_whole() {
        let text = format!("{}:x", "s".repeat(100_000));
        let rejection = Canonicalizer::default().canonicalize(&text);
        assert_eq!(rejection, Err(UrlRejection::Scheme("s".repeat(32))));
    }

    #[test]
    fn the_cap_counts_canonical_bytes() {
        let options = CanonicalOptions {
            url_bytes_max: 12,
            ..CanonicalOptions::default()
        };
        let canonicalizer = Canonicalizer::new(options);
        let over = canonicalizer.canonicalize("http://a.:80/%41bcd#fragment");
        assert_eq!(
            over,
            Err(UrlRejection::TooLong {
                bytes: 13,
                bytes_max: 12
            })
        );
        let fits = canonicalizer.canonicalize("http://a.:80/%41bc#fragment");
        assert_eq!(
            fits.map(|url| url.to_string()),
            Ok("http://a/Abc".to_owned())
        );
    }

    #[test]
    fn options_apply_to_path_and_query() {
        let options = CanonicalOptions {
            drop_tracking: true,
            sort_query: true,
            drop_session_ids: true,
            ..CanonicalOptions::default()
        };
        let canonicalizer = Canonicalizer::new(options);
        for (text, expected) in [
            (
                "http://a/p;jsessionid=E4.tp_2?z=1&utm%5Fsource=q&y=2",
                "http://a/p?y=2&z=1",
            ),
            ("http://a/?fbclid=1&phpsessid=2", "http://a/"),
            (
                "http://a/%2E%2E;jsessionid=1/x",
                "http://a/..;jsessionid=1/x",
            ),
        ] {
            let url = canonicalizer.canonicalize(text);
            assert_eq!(
                url.map(|url| url.to_string()),
                Ok(expected.to_owned()),
                "{text}"
            );
        }
    }

    #[test]
    fn references_resolve_as_in_browsers() {
        let base = Url::parse("http://user@example.org/a/b?q#f").expect("the base is a URL");
        for (href, expected) in [
            ("", "http://example.org/a/b?q"),
            ("#top", "http://example.org/a/b?q"),
            ("?", "http://example.org/a/b"),
            ("?r", "http://example.org/a/b?r"),
            ("c", "http://example.org/a/c"),
            ("..\\d", "http://example.org/d"),
            ("//other.example", "http://other.example/"),
            (" //\n/\\other.example//x", "http://other.example//x"),
            ("/x///y", "http://example.org/x///y"),
            ("\n  /x y\t ", "http://example.org/x%20y"),
        ] {
            let url = Canonicalizer::default().resolve(&base, href);
            assert_eq!(
                url.map(|url| url.to_string()),
                Ok(expected.to_owned()),
                "{href:?}"
            );
        }
    }

    /// Encodes in Latin-1 as a page's encoder is asked to.
    fn latin(text: &str) -> Cow<'_, [u8]> {
        let narrow = |c: char| {
            u8::try_from(c).map_or_else(
                |_| format!("%26%23{}%3B", u32::from(c)).into_bytes(),
                |byte| vec![byte],
            )
        };
        Cow::Owned(text.chars().flat_map(narrow).collect())
    }

    #[test]
    fn the_page_encoding_applies_to_the_query_alone() {
        let base = Url::parse("http://example.org/").expect("the base is a URL");
        let url = Canonicalizer::default().resolve_with_encoding(
            &base,
            "/\u{e4}?q=\u{e4}%e4\u{2020}#\u{e4}",
            Some(&latin),
        );
        assert_eq!(
            url.map(|url| url.to_string()),
            Ok("http://example.org/%C3%A4?q=%E4%E4%26%238224%3B".to_owned())
        );
    }
}
