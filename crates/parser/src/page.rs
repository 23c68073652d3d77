//! The parser itself: the steps from a response to a [`ParsedPage`].

use std::borrow::Cow;

use encoding_rs::Encoding;
use types::{CanonicalUrl, Canonicalizer, Directives, Headers, Outlink, ParsedPage, QueryEncoder};
use url::Url;

use crate::{
    charset,
    content_type::{self, Markup},
    directives,
    source::{LinkSource, RawLink, RawPage, SourceText, Wanted},
    tokens::TokenSource,
    tree::TreeSource,
};

/// Bytes of URLs that the links of one page may come to, for each link that it may have: several times what links of real
/// pages take. Without it, short links that are relative to a long URL could make megabytes of every page.
const URL_BYTES_A_LINK: usize = 512;
/// The bytes that they may come to however few links are allowed.
const URL_BYTES: usize = 1 << 20;

/// Returns how many bytes the URLs of one page's links come to at most, where `outlinks_max` of them are taken.
#[must_use]
pub const fn outlink_bytes_max(outlinks_max: usize) -> usize {
    let bytes = outlinks_max.saturating_mul(URL_BYTES_A_LINK);
    if bytes < URL_BYTES { URL_BYTES } else { bytes }
}

/// What a parser looks for, and how much of it it takes.
#[derive(Clone, Debug)]
pub struct ParserConfig {
    /// Links taken from one page, as far as their URLs come to no more than [`outlink_bytes_max`]; the rest is counted.
    pub outlinks_max: usize,
    /// Elements open at once. A page nested deeper is read without a tree: by its tags alone, in their order.
    pub nesting_max: usize,
    /// The crawler's product token, under which a page may address it (RFC 9309, section 2.2.1).
    pub product_token: String,
    /// Makes URLs canonical.
    pub canonicalizer: Canonicalizer,
}

/// Reads responses. One parser serves any number of threads.
#[derive(Clone, Debug)]
pub struct Parser {
    config: ParserConfig,
}

impl Parser {
    /// Makes a parser.
    #[must_use]
    pub const fn new(config: ParserConfig) -> Self {
        Self { config }
    }

    /// Reads one response whose body was content-decoded.
    ///
    /// Total: any bytes give a page. A body that is neither HTML nor XHTML by its `Content-Type` (or, without a valid
    /// one, by its first bytes) gives no links, an empty charset, and the directives of its headers.
    ///
    /// Time is linear in the body, with a factor that grows with `nesting_max`. Memory is the decoded text, the links
    /// kept, and at most 60 MB of tree; beyond 16 MiB of text, or 250,000 elements, no tree is made.
    #[must_use]
    pub fn parse(&self, page_url: &CanonicalUrl, headers: &Headers, body: &[u8]) -> ParsedPage {
        let of_headers = directives::of_headers(headers, &self.config.product_token);
        let content_type = content_type::of_headers(headers);
        let Some(markup) = content_type::markup(content_type.as_ref(), body) else {
            return ParsedPage {
                directives: of_headers,
                ..ParsedPage::default()
            };
        };
        let base = page_url.to_url();
        let label = content_type
            .as_ref()
            .and_then(|found| found.charset.as_deref());
        let (encoding, text) = charset::decode(body, label, top_level_domain(&base));
        let raw = self.read(&SourceText {
            text: &text,
            is_xhtml: markup == Markup::Xhtml,
        });
        self.finish(base, encoding, raw, of_headers)
    }

    /// Reads the links by the tree, or by the tokens where the tree would cost too much.
    fn read(&self, text: &SourceText<'_>) -> RawPage {
        let wanted = Wanted {
            links_max: self.config.outlinks_max,
            product_token: &self.config.product_token,
        };
        TreeSource {
            nesting_max: self.config.nesting_max,
        }
        .read(text, &wanted)
        .or_else(|_| TokenSource.read(text, &wanted))
        .unwrap_or_default()
    }

    /// Resolves the links, now that the base is known.
    fn finish(
        &self,
        page_url: Url,
        encoding: &'static Encoding,
        raw: RawPage,
        of_headers: Directives,
    ) -> ParsedPage {
        let base = document_base(page_url, raw.base_href.as_deref());
        let encoder = query_encoder(encoding);
        let encode: Option<QueryEncoder<'_>> = if charset::needs_query_encoding(encoding) {
            Some(&encoder)
        } else {
            None
        };
        let resolve = |link: RawLink| Outlink {
            target: self
                .config
                .canonicalizer
                .resolve_with_encoding(&base, &link.href, encode),
            kind: link.kind,
            is_nofollow: link.is_nofollow,
        };
        let link_count = raw.links.len();
        let mut bytes_left = outlink_bytes_max(self.config.outlinks_max);
        let fits = |link: &Outlink| {
            let bytes = link.target.as_ref().map_or(0, |url| url.as_str().len());
            let left = bytes_left.checked_sub(bytes);
            bytes_left = left.unwrap_or(0);
            left.is_some()
        };
        let links = raw.links.into_iter().map(resolve);
        let outlinks: Vec<Outlink> = links.take_while(fits).collect();
        let beyond_count = (link_count - outlinks.len()) as u64;
        ParsedPage {
            title: raw.title,
            charset: encoding.name(),
            directives: directives::union(of_headers, raw.directives),
            outlinks,
            outlinks_dropped_count: raw.links_dropped_count + beyond_count,
        }
    }
}

/// Writes queries in the encoding of their page.
fn query_encoder(encoding: &'static Encoding) -> impl Fn(&str) -> Cow<'_, [u8]> {
    move |query| charset::encode_query(query, encoding)
}

/// The document base URL: the first `base href` resolved against the page's URL. One that does not parse, or has
/// another scheme than http and https, counts as none (HTML, section 4.2.3, "set the frozen base URL").
fn document_base(page_url: Url, base_href: Option<&str>) -> Url {
    base_href
        .and_then(|href| page_url.join(href).ok())
        .filter(|url| matches!(url.scheme(), "http" | "https"))
        .unwrap_or(page_url)
}

/// The last label of the host, which tells the charset detection about the page's language.
fn top_level_domain(url: &Url) -> Option<&str> {
    let label = url.domain()?.rsplit('.').next()?;
    let is_plain = label
        .bytes()
        .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-');
    (is_plain && !label.is_empty()).then_some(label)
}
