//! Documents that list pages: sitemaps and their indexes (sitemaps.org protocol 0.9), and feeds (RSS 0.9 to 2.0, Atom,
//! RFC 4287).
//!
//! What a document is, its root element says, whatever its media type.

use types::LinkKind;

use crate::{
    source::{RawLink, RawPage},
    xml::{Piece, Scanner, Tag, unescaped},
};

/// What the root element says a document is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Listing {
    Sitemap,
    SitemapIndex,
    /// RSS, by elements with text.
    Rss,
    /// Atom, by attributes.
    Atom,
}

impl Listing {
    /// Looks at the root element of a document.
    pub(crate) fn of(text: &str) -> Option<Self> {
        match split_name(root_name(text)?).1 {
            "urlset" => Some(Self::Sitemap),
            "sitemapindex" => Some(Self::SitemapIndex),
            "rss" | "RDF" => Some(Self::Rss),
            "feed" => Some(Self::Atom),
            _ => None,
        }
    }

    /// Reads the links of a document in their order, at most `links_max`; the rest is counted. The last one of a document
    /// that ends within it is left, since nobody knows whether it is whole.
    pub(crate) fn read(self, text: &str, links_max: usize) -> RawPage {
        let mut reader = Reader {
            listing: self,
            prefix: None,
            open: None,
            is_open_around: false,
            page: RawPage::default(),
            links_max,
        };
        for piece in Scanner::new(text) {
            reader.take(piece);
        }
        reader.page
    }

    const fn link_kind(self) -> LinkKind {
        match self {
            Self::SitemapIndex => LinkKind::Sitemap,
            Self::Sitemap | Self::Rss | Self::Atom => LinkKind::Entry,
        }
    }
}

/// Says whether an XML document is an XHTML page.
pub(crate) fn is_xhtml(text: &str) -> bool {
    root_name(text).is_some_and(|name| split_name(name).1.eq_ignore_ascii_case("html"))
}

/// Returns the name of the root element, before which there may be nothing but white space and what is no element.
fn root_name(text: &str) -> Option<&str> {
    let mut pieces = Scanner::new(text);
    pieces.find_map(|piece| match piece {
        Piece::Text(text) if text.trim().is_empty() => None,
        Piece::Start(tag) => Some(Some(tag.name)),
        _ => Some(None),
    })?
}

/// Reads a list in plain text, one URL a line (sitemaps.org, "Text file"); lines of anything else are passed over.
pub(crate) fn read_lines(text: &str, links_max: usize) -> RawPage {
    let mut page = RawPage::default();
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    for line in text.split(['\n', '\r']).map(str::trim_ascii) {
        if starts_with_scheme(line) {
            push(&mut page, line, LinkKind::Entry, links_max);
        }
    }
    page
}

fn starts_with_scheme(line: &str) -> bool {
    ["http://", "https://"].iter().any(|scheme| {
        line.as_bytes()
            .get(..scheme.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(scheme.as_bytes()))
    })
}

/// Reads a document piece by piece.
struct Reader<'a> {
    listing: Listing,
    /// The prefix of the root element, and so of its namespace. Elements of others name no pages: neither `image:loc` nor
    /// the translations of `xhtml:link`, each of which has an entry of its own.
    prefix: Option<&'a str>,
    /// The text so far of the element that names a page.
    open: Option<String>,
    /// Whether that is the element around the one that should: some write the address straight into `sitemap` or `url`.
    is_open_around: bool,
    page: RawPage,
    links_max: usize,
}

impl<'a> Reader<'a> {
    fn take(&mut self, piece: Piece<'a>) {
        match piece {
            Piece::Start(tag) => self.start(&tag),
            Piece::End(name) => {
                if self.names_page(name) {
                    self.close();
                }
            }
            Piece::Text(text) => {
                if let Some(open) = &mut self.open {
                    open.push_str(&unescaped(text));
                }
            }
            Piece::CData(text) => {
                if let Some(open) = &mut self.open {
                    open.push_str(text);
                }
            }
        }
    }

    fn start(&mut self, tag: &Tag<'a>) {
        // An element within one that names a page: the end tag was forgotten.
        self.close();
        let (prefix, name) = split_name(tag.name);
        let is_own = *self.prefix.get_or_insert(prefix) == prefix;
        if self.names_page(tag.name) {
            if !tag.is_empty {
                self.open = Some(String::new());
                self.is_open_around = matches!(name, "url" | "sitemap");
            }
            return;
        }
        if self.listing == Listing::Atom
            && is_own
            && name == "link"
            && leads_to_page(tag)
            && let Some(href) = tag.attribute("href")
        {
            self.push(&href);
        }
    }

    /// Whether the text of an element is the address of a page.
    fn names_page(&self, name: &str) -> bool {
        let (prefix, name) = split_name(name);
        match self.listing {
            Listing::Sitemap => matches!(name, "loc" | "url") && self.prefix == Some(prefix),
            Listing::SitemapIndex => {
                matches!(name, "loc" | "sitemap") && self.prefix == Some(prefix)
            }
            Listing::Rss => name == "link" && prefix.is_empty(),
            Listing::Atom => false,
        }
    }

    fn close(&mut self) {
        if let Some(text) = self.open.take()
            && (!self.is_open_around || starts_with_scheme(text.trim()))
        {
            self.push(&text);
        }
    }

    fn push(&mut self, href: &str) {
        let href = href.trim();
        if !href.is_empty() {
            push(
                &mut self.page,
                href,
                self.listing.link_kind(),
                self.links_max,
            );
        }
    }
}

/// Whether a `link` of Atom leads to a page, or to the next part of a feed (RFC 5005), rather than to the document itself, or
/// to what belongs to it. One that does not say is `alternate` (RFC 4287, section 4.2.7.2).
fn leads_to_page(tag: &Tag<'_>) -> bool {
    matches!(
        tag.attribute("rel").as_deref(),
        None | Some("alternate" | "next")
    )
}

fn push(page: &mut RawPage, href: &str, kind: LinkKind, links_max: usize) {
    if page.links.len() < links_max {
        page.links.push(RawLink {
            href: href.to_owned(),
            kind,
            is_nofollow: false,
        });
    } else {
        page.links_dropped_count += 1;
    }
}

/// Splits a name into its prefix, which may be empty, and its local part.
fn split_name(name: &str) -> (&str, &str) {
    name.split_once(':').unwrap_or(("", name))
}

#[cfg(test)]
mod tests {
    use types::LinkKind;

    use super::{Listing, read_lines};

    /// Reads the links of a document of this kind.
    fn hrefs(listing: Listing, text: &str) -> Vec<String> {
        assert_eq!(Listing::of(text), Some(listing), "{text}");
        let page = listing.read(text, 100);
        page.links.into_iter().map(|link| link.href).collect()
    }

    #[test]
    fn the_root_element_tells() {
        for (text, expected) in [
            ("<urlset>", Some(Listing::Sitemap)),
            (
                " \n<?xml version='1.0'?><!-- <rss> --><sm:sitemapindex xmlns:sm='u'>",
                Some(Listing::SitemapIndex),
            ),
            (
                "<!DOCTYPE rdf:RDF [<!ENTITY a '>'>]><rdf:RDF>",
                Some(Listing::Rss),
            ),
            (
                "\u{feff}<feed xmlns='http://www.w3.org/2005/Atom'>",
                Some(Listing::Atom),
            ),
            ("<!DOCTYPE html><html><urlset>", None),
            ("text <urlset>", None),
            ("", None),
            ("<", None),
        ] {
            assert_eq!(Listing::of(text), expected, "{text}");
        }
    }

    #[test]
    fn sitemaps() {
        let text = "<urlset xmlns='s' xmlns:image='i' xmlns:xhtml='x'><url><loc> http://a.example/?a=1&amp;b=2&copy=3 </loc>\
            <lastmod>31/02/2024 25:61</lastmod><image:image><image:loc>http://a.example/i.png</image:loc></image:image>\
            <xhtml:link rel='alternate' hreflang='de' href='http://a.example/de'/></url>\
            <url><loc><![CDATA[http://a.example/?x=1&y]]></loc></url><url><loc>http://a.example/open<lastmod>x</lastmod></url>\
            <url><loc/><loc></loc></url><url><loc>http://a.example/cu";
        assert_eq!(
            hrefs(Listing::Sitemap, text),
            [
                "http://a.example/?a=1&b=2&copy=3",
                "http://a.example/?x=1&y",
                "http://a.example/open"
            ]
        );
    }

    #[test]
    fn prefixes_and_indexes() {
        let text = "<sm:sitemapindex xmlns:sm='s'><sm:sitemap><sm:loc>http://a.example/1.xml</sm:loc></sm:sitemap>\
            <loc>http://a.example/other</loc></sm:sitemapindex>";
        assert_eq!(
            hrefs(Listing::SitemapIndex, text),
            ["http://a.example/1.xml"]
        );
        let page = Listing::SitemapIndex.read(text, 0);
        assert_eq!((page.links.len(), page.links_dropped_count), (0, 1));
        let page = Listing::SitemapIndex.read(text, 1);
        assert_eq!(page.links[0].kind, LinkKind::Sitemap);
    }

    #[test]
    fn addresses_without_an_element_of_their_own() {
        let text = "<sitemapindex><sitemap>\nhttp://a.example/?a&amp;b\n</sitemap><sitemap>text<loc>http://a.example/2</loc>\
            http://a.example/no</sitemap></sitemapindex>";
        assert_eq!(
            hrefs(Listing::SitemapIndex, text),
            ["http://a.example/?a&b", "http://a.example/2"]
        );
        let text = "<urlset><url>http://a.example/1</url><url> x </url></urlset>";
        assert_eq!(hrefs(Listing::Sitemap, text), ["http://a.example/1"]);
    }

    #[test]
    fn feeds() {
        let rss = "<rss version='2.0' xmlns:atom='a'><channel><link>http://a.example/</link>\
            <atom:link href='http://a.example/feed' rel='self'/><item><title>x</title><link>http://a.example/1</link>\
            <guid>http://a.example/?p=1</guid><enclosure url='http://a.example/1.mp3'/></item></channel></rss>";
        assert_eq!(
            hrefs(Listing::Rss, rss),
            ["http://a.example/", "http://a.example/1"]
        );
        let atom = "<feed xmlns='http://www.w3.org/2005/Atom'><link rel='self' href='/feed'/><link rel='next' href='/feed?2'/>\
            <entry><link href='/1'/><link rel='alternate' type='text/html' href='/2'/><link rel='edit' href='/e'/>\
            <content src='/c'/></entry></feed>";
        assert_eq!(hrefs(Listing::Atom, atom), ["/feed?2", "/1", "/2"]);
    }

    #[test]
    fn an_own_entity_is_never_expanded() {
        let text = "<!DOCTYPE urlset [<!ENTITY a 'aaaaaaaaaa'><!ENTITY b '&a;&a;&a;'>]><urlset><url>\
            <loc>http://a.example/&b;</loc></url></urlset>";
        assert_eq!(hrefs(Listing::Sitemap, text), ["http://a.example/&b;"]);
    }

    #[test]
    fn lines_of_text() {
        let page = read_lines(
            "\u{feff}http://a.example/1\r\n\r\n  HTTPS://a.example/2 \n/3\nftp://a.example/\nhttp://a.example/4",
            2,
        );
        let hrefs: Vec<&str> = page.links.iter().map(|link| &*link.href).collect();
        assert_eq!(hrefs, ["http://a.example/1", "HTTPS://a.example/2"]);
        assert_eq!(page.links_dropped_count, 1);
    }
}
