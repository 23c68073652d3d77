//! The parser itself: the steps from a response to a [`ParsedPage`].

use std::borrow::Cow;

use encoding_rs::Encoding;
use types::{CanonicalUrl, Canonicalizer, Headers, Outlink, ParsedPage, QueryEncoder};
use url::Url;

use crate::{
    charset,
    content_type::{self, Form},
    directives, link_header,
    listing::{self, Listing},
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

/// Entries taken from one sitemap or feed, as far as their URLs come to no more than [`outlink_bytes_max`]: as many as the
/// sitemaps.org protocol allows.
pub const ENTRIES_MAX: usize = 50_000;

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
    /// Total: any bytes give a page. A body that is neither HTML nor XML by its `Content-Type` (or, without a valid one, by
    /// its first bytes) gives no links but those of its headers, an empty charset, and the directives of its headers. The
    /// root element tells sitemaps and feeds, whichever of these types they have.
    ///
    /// Time is linear in the body, with a factor that grows with `nesting_max`. Memory is the decoded text, the links
    /// kept, and at most 60 MB of tree; beyond 16 MiB of text, or 250,000 elements, no tree is made.
    #[must_use]
    pub fn parse(&self, page_url: &CanonicalUrl, headers: &Headers, body: &[u8]) -> ParsedPage {
        self.parse_as(Known::Page, page_url, headers, body)
    }

    /// Reads one response like [`Parser::parse`] whose body was unpacked from a file, so that the media type is that of the
    /// packing: sitemaps and feeds are told by their root element, and nothing else is read.
    #[must_use]
    pub fn parse_unpacked(&self, url: &CanonicalUrl, headers: &Headers, body: &[u8]) -> ParsedPage {
        self.parse_as(Known::Unpacked, url, headers, body)
    }

    /// Reads one response like [`Parser::parse`], of which it is known that it should be a sitemap, since a robots.txt file or
    /// a sitemap index named it: so it may be a plain list of URLs too, and its media type does not matter.
    #[must_use]
    pub fn parse_sitemap(&self, url: &CanonicalUrl, headers: &Headers, body: &[u8]) -> ParsedPage {
        self.parse_as(Known::Sitemap, url, headers, body)
    }

    fn parse_as(
        &self,
        known: Known,
        page_url: &CanonicalUrl,
        headers: &Headers,
        body: &[u8],
    ) -> ParsedPage {
        let page_url = page_url.to_url();
        let mut page = ParsedPage {
            directives: directives::of_headers(headers, &self.config.product_token),
            ..ParsedPage::default()
        };
        let mut room = Room::new(&self.config);
        for link in link_header::links(headers) {
            self.add(&mut page, &mut room, &link, &page_url, None);
        }
        let content_type = content_type::of_headers(headers);
        let form = match (known, content_type::form(content_type.as_ref(), body)) {
            (Known::Page, Form::Other) => return page,
            (Known::Unpacked, _) => Form::Xml,
            (_, form) => form,
        };
        let label = content_type
            .as_ref()
            .and_then(|found| found.charset.as_deref());
        let (encoding, text) = charset::decode(body, label, top_level_domain(&page_url));
        let Some(raw) = self.read(&text, form, room.links_left) else {
            return page;
        };
        page.title = raw.title;
        page.charset = encoding.name();
        page.directives = directives::union(page.directives, raw.directives);
        page.outlinks_dropped_count += raw.links_dropped_count;
        let encoder = query_encoder(encoding);
        let encode: Option<QueryEncoder<'_>> = if charset::needs_query_encoding(encoding) {
            Some(&encoder)
        } else {
            None
        };
        let base = document_base(page_url, raw.base_href.as_deref());
        room.links_left = usize::MAX;
        for link in raw.links {
            self.add(&mut page, &mut room, &link, &base, encode);
        }
        page
    }

    /// Reads a document as what it is; `None` where it is nothing that has links.
    fn read(&self, text: &str, form: Form, links_max: usize) -> Option<RawPage> {
        if let Some(listing) = Listing::of(text) {
            return Some(listing.read(text, ENTRIES_MAX));
        }
        match form {
            Form::Html => Some(self.read_markup(text, false, links_max)),
            Form::Xhtml => Some(self.read_markup(text, true, links_max)),
            Form::Xml => listing::is_xhtml(text).then(|| self.read_markup(text, true, links_max)),
            Form::Other => Some(listing::read_lines(text, ENTRIES_MAX)),
        }
    }

    /// Reads the links by the tree, or by the tokens where the tree would cost too much.
    fn read_markup(&self, text: &str, is_xhtml: bool, links_max: usize) -> RawPage {
        let text = SourceText { text, is_xhtml };
        let wanted = Wanted {
            links_max,
            product_token: &self.config.product_token,
        };
        TreeSource {
            nesting_max: self.config.nesting_max,
        }
        .read(&text, &wanted)
        .or_else(|_| TokenSource.read(&text, &wanted))
        .unwrap_or_default()
    }

    /// Resolves a link and adds it to the page, or counts it where there is no more room.
    fn add(
        &self,
        page: &mut ParsedPage,
        room: &mut Room,
        link: &RawLink,
        base: &Url,
        encode: Option<QueryEncoder<'_>>,
    ) {
        if !room.is_left() {
            page.outlinks_dropped_count += 1;
            return;
        }
        let canonicalizer = &self.config.canonicalizer;
        let target = canonicalizer.resolve_with_encoding(base, &link.href, encode);
        if room.take(target.as_ref().map_or(0, |url| url.as_str().len())) {
            page.outlinks.push(Outlink {
                target,
                kind: link.kind,
                is_nofollow: link.is_nofollow,
            });
        } else {
            page.outlinks_dropped_count += 1;
        }
    }
}

/// What is known of a response beside its headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Known {
    Page,
    Unpacked,
    Sitemap,
}

/// The room that is left for the links of a page.
struct Room {
    links_left: usize,
    /// `None` since a link did not fit, so that of two links the earlier is never left out for the later.
    bytes_left: Option<usize>,
}

impl Room {
    const fn new(config: &ParserConfig) -> Self {
        Self {
            links_left: config.outlinks_max,
            bytes_left: Some(outlink_bytes_max(config.outlinks_max)),
        }
    }

    const fn is_left(&self) -> bool {
        self.links_left > 0 && self.bytes_left.is_some()
    }

    /// Takes the room of a link whose URL has so many bytes, if it is there.
    fn take(&mut self, bytes: usize) -> bool {
        self.bytes_left = self.bytes_left.and_then(|left| left.checked_sub(bytes));
        self.links_left = self.links_left.saturating_sub(1);
        self.bytes_left.is_some()
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
