//! The interface that every link engine has: text in, what the page says out, nothing resolved.

use html5ever::{LocalName, Namespace, local_name, ns};
use types::{Directives, LinkKind};

use crate::{directives, refresh};

/// The longest title kept, in characters.
const TITLE_CHARS_MAX: usize = 500;

/// A decoded page.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SourceText<'a> {
    /// Its text.
    pub(crate) text: &'a str,
    /// Whether it is XHTML, where `<script/>` is a whole element.
    pub(crate) is_xhtml: bool,
}

/// What is looked for in a page.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted<'a> {
    /// Links kept; the rest is counted.
    pub(crate) links_max: usize,
    /// The name under which `<meta name=...>` addresses the crawler.
    pub(crate) product_token: &'a str,
}

/// Reads a page's links.
pub(crate) trait LinkSource {
    /// Reads the whole page, or says that it is beyond this engine's bounds.
    fn read(&self, text: &SourceText<'_>, wanted: &Wanted<'_>) -> Result<RawPage, OverBounds>;
}

/// The page is nested too deeply or too large for the engine.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OverBounds;

/// What a page says, with every URL as it stands there.
#[derive(Debug, Default)]
pub(crate) struct RawPage {
    /// The `href` of the first `base` that has one.
    pub(crate) base_href: Option<String>,
    /// The first title, white space collapsed.
    pub(crate) title: Option<String>,
    /// Links in document order.
    pub(crate) links: Vec<RawLink>,
    /// Links left out.
    pub(crate) links_dropped_count: u64,
    /// What `meta` elements ask of crawlers.
    pub(crate) directives: Directives,
}

/// One link as it stands in the page.
#[derive(Debug)]
pub(crate) struct RawLink {
    pub(crate) href: String,
    pub(crate) kind: LinkKind,
    pub(crate) is_nofollow: bool,
}

/// An attribute that matters to a crawler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Attr {
    Content,
    Href,
    HttpEquiv,
    Name,
    Rel,
    Src,
    Type,
    /// `xlink:href`, by which SVG links before SVG 2.
    XlinkHref,
}

/// Collects what elements say, in the order in which they are shown. Both engines share it, so that they agree on what
/// counts.
pub(crate) struct Collector<'a> {
    wanted: Wanted<'a>,
    page: RawPage,
}

impl<'a> Collector<'a> {
    pub(crate) fn new(wanted: Wanted<'a>) -> Self {
        Self {
            wanted,
            page: RawPage::default(),
        }
    }

    pub(crate) fn finish(mut self) -> RawPage {
        // An empty title hides later ones, but says nothing.
        self.page.title = self.page.title.filter(|title| !title.is_empty());
        self.page
    }

    /// Whether the first title was seen.
    pub(crate) fn has_title(&self) -> bool {
        self.page.title.is_some()
    }

    /// Takes the text of a title; later ones are ignored.
    pub(crate) fn title(&mut self, text: &str) {
        if self.page.title.is_none() {
            self.page.title = Some(collapsed(text));
        }
    }

    /// Takes what an element says.
    pub(crate) fn element<'e>(
        &mut self,
        namespace: &Namespace,
        name: &LocalName,
        attr: &dyn Fn(Attr) -> Option<&'e str>,
    ) {
        if *namespace == ns!(svg) {
            if *name == local_name!("a") {
                self.anchor(
                    attr(Attr::Href).or_else(|| attr(Attr::XlinkHref)),
                    attr(Attr::Rel),
                );
            }
            return;
        }
        if *namespace != ns!(html) {
            return;
        }
        match *name {
            local_name!("a") | local_name!("area") => {
                self.anchor(attr(Attr::Href), attr(Attr::Rel));
            }
            local_name!("base") => self.base(attr(Attr::Href)),
            local_name!("link") => {
                self.link(attr(Attr::Href), attr(Attr::Rel), attr(Attr::Type));
            }
            local_name!("iframe") | local_name!("frame") => self.frame(attr(Attr::Src)),
            local_name!("meta") => self.meta(attr),
            _ => {}
        }
    }

    fn anchor(&mut self, href: Option<&str>, rel: Option<&str>) {
        if let Some(href) = href {
            let is_nofollow = rel.is_some_and(|rel| has_token(rel, "nofollow"));
            self.push(href, LinkKind::Anchor, is_nofollow);
        }
    }

    fn base(&mut self, href: Option<&str>) {
        if self.page.base_href.is_none() {
            self.page.base_href = href.map(str::to_owned);
        }
    }

    /// An empty `href` is no link here (HTML, section 4.2.4), unlike that of an anchor.
    fn link(&mut self, href: Option<&str>, rel: Option<&str>, media_type: Option<&str>) {
        let (Some(href), Some(rel)) = (href, rel) else {
            return;
        };
        if !href.is_empty() && leads_to_page(rel, media_type) {
            self.push(href, LinkKind::Link, has_token(rel, "nofollow"));
        }
    }

    /// An empty `src` shows an empty document (HTML, section 4.8.5).
    fn frame(&mut self, src: Option<&str>) {
        if let Some(src) = src.filter(|src| !src.is_empty()) {
            self.push(src, LinkKind::Frame, false);
        }
    }

    fn meta<'e>(&mut self, attr: &dyn Fn(Attr) -> Option<&'e str>) {
        let Some(content) = attr(Attr::Content) else {
            return;
        };
        if attr(Attr::HttpEquiv).is_some_and(|value| value.eq_ignore_ascii_case("refresh"))
            && let Some(target) = refresh::target(content)
        {
            self.push(target, LinkKind::Refresh, false);
        }
        let Some(name) = attr(Attr::Name).map(str::trim_ascii) else {
            return;
        };
        if name.eq_ignore_ascii_case("robots")
            || name.eq_ignore_ascii_case(self.wanted.product_token)
        {
            self.page.directives =
                directives::union(self.page.directives, directives::of_list(content));
        }
    }

    fn push(&mut self, href: &str, kind: LinkKind, is_nofollow: bool) {
        if self.page.links.len() < self.wanted.links_max {
            self.page.links.push(RawLink {
                href: href.to_owned(),
                kind,
                is_nofollow,
            });
        } else {
            self.page.links_dropped_count += 1;
        }
    }
}

/// Whether a `link` of these relations, to something of this media type, leads to what may have links of its own.
///
/// `canonical` and `alternate` are hints (RFC 6596; HTML, section 4.6.7.1): what they name is one more page to fetch, never
/// a reason to pass over this one. `alternate stylesheet` names a style sheet, and a type may say that there is data for
/// programs (`application/json+oembed`).
pub(crate) fn leads_to_page(rel: &str, media_type: Option<&str>) -> bool {
    const TYPES: [&str; 7] = [
        "text/html",
        "application/xhtml+xml",
        "application/rss+xml",
        "application/atom+xml",
        "application/rdf+xml",
        "application/xml",
        "text/xml",
    ];
    let is_page = ["canonical", "next", "prev", "alternate"]
        .iter()
        .any(|token| has_token(rel, token));
    let essence = media_type
        .and_then(|value| value.split(';').next())
        .map(str::trim_ascii)
        .filter(|essence| !essence.is_empty());
    is_page
        && !has_token(rel, "stylesheet")
        && essence.is_none_or(|essence| {
            TYPES
                .iter()
                .any(|known| essence.eq_ignore_ascii_case(known))
        })
}

/// Whether a set of space-separated tokens has one, ASCII case-insensitively (HTML, section 4.6.7).
pub(crate) fn has_token(set: &str, token: &str) -> bool {
    set.split_ascii_whitespace()
        .any(|word| word.eq_ignore_ascii_case(token))
}

/// White space collapsed and stripped, at most [`TITLE_CHARS_MAX`] characters.
fn collapsed(text: &str) -> String {
    let mut title = String::new();
    let mut chars_left = TITLE_CHARS_MAX;
    for word in text.split_whitespace() {
        let gap = usize::from(!title.is_empty());
        if chars_left <= gap {
            break;
        }
        if gap == 1 {
            title.push(' ');
        }
        chars_left -= gap;
        for character in word.chars().take(chars_left) {
            title.push(character);
            chars_left -= 1;
        }
    }
    title
}
