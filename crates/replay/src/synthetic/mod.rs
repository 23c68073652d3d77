//! A generated site: any number of pages, computed on demand from a seed, with a known truth.

mod layout;
mod links;
mod page;
mod random;
mod spelling;

use std::sync::Arc;

use crate::{Site, SiteAnswer, SiteRequest};
use layout::Layout;

/// How a generated site looks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyntheticConfig {
    /// How many pages there are, at least 1.
    pub pages: u64,
    /// How many links each page has, at least 1.
    pub links_per_page: u32,
    /// Over how many hosts the pages are spread, at least 1.
    pub hosts: u32,
    /// How long a page is, in bytes; longer where its links need it.
    pub page_bytes: u32,
    /// What the site is computed from: links, their spelling, the text.
    pub seed: u64,
    /// The authority, with `h0.`, `h1.`, ... in front of it where there are several hosts.
    pub authority: String,
    /// `http` or `https`; the site answers on this scheme alone.
    pub scheme: String,
    /// What `/robots.txt` of each host says; `None` for 404.
    pub robots_txt: Option<String>,
}

impl Default for SyntheticConfig {
    /// 1,000 pages of 30,000 bytes and 60 links on `http://site.example`, open to all robots.
    fn default() -> Self {
        Self {
            pages: 1_000,
            links_per_page: 60,
            hosts: 1,
            page_bytes: 30_000,
            seed: 1,
            authority: "site.example".to_owned(),
            scheme: "http".to_owned(),
            robots_txt: Some("User-agent: *\nDisallow:\n".to_owned()),
        }
    }
}

/// A generated site.
///
/// Page 0 is the start. Every page is linked from a parent (a tree), so all are reachable from there; the other links
/// go to up to 25 navigation pages of the host and, by a power law, to any of its pages, a few to other hosts. So nearly
/// all links are repeats. Links are spelled in many ways that canonicalize to the page's one URL, and the site answers
/// under that URL alone: a client that does not canonicalize gets 404.
#[derive(Clone, Debug)]
pub struct Synthetic {
    layout: Layout,
    seed: u64,
    links_per_page: u32,
    page_bytes: usize,
    robots_txt: Option<String>,
    text: Arc<str>,
}

impl Synthetic {
    /// Makes the site; its pages are computed when they are asked for.
    #[must_use]
    pub fn new(config: SyntheticConfig) -> Self {
        Self {
            text: page::text(config.seed).into(),
            layout: Layout::new(
                config.pages,
                config.hosts,
                &config.scheme,
                &config.authority,
            ),
            seed: config.seed,
            links_per_page: config.links_per_page.max(1),
            page_bytes: usize::try_from(config.page_bytes).unwrap_or(usize::MAX),
            robots_txt: config.robots_txt,
        }
    }

    /// Returns the canonical URL of the start page.
    #[must_use]
    pub fn start_url(&self) -> String {
        self.layout.url(0)
    }

    /// Returns the canonical URL of a page; beyond the last page, of a page that there is not.
    #[must_use]
    pub fn page_url(&self, index: u64) -> String {
        self.layout.url(index)
    }

    /// Iterates over the canonical URLs of all pages; each can be reached from the start.
    pub fn urls(&self) -> impl Iterator<Item = String> {
        (0..self.layout.page_count).map(|index| self.layout.url(index))
    }

    /// Returns how many pages there are.
    #[must_use]
    pub const fn page_count(&self) -> u64 {
        self.layout.page_count
    }

    /// Returns whether a URL is the canonical URL of a page.
    #[must_use]
    pub fn is_page(&self, url: &str) -> bool {
        self.layout.index_of_url(url).is_some()
    }

    /// Returns the pages that a page links to, in the order of its links, repeats included.
    #[must_use]
    pub fn page_links(&self, index: u64) -> Vec<u64> {
        links::targets(&self.layout, self.seed, self.links_per_page, index)
    }

    fn page(&self, index: u64) -> SiteAnswer {
        let targets = self.page_links(index);
        SiteAnswer::html(page::html(
            &self.layout,
            self.seed,
            index,
            &targets,
            &self.text,
            self.page_bytes,
        ))
    }
}

impl Site for Synthetic {
    fn answer(&self, request: &SiteRequest<'_>) -> SiteAnswer {
        let url = request.url();
        if let Some(index) = self.layout.index_of_url(&url) {
            return self.page(index);
        }
        match &self.robots_txt {
            Some(text)
                if request.path_and_query == "/robots.txt" && self.layout.is_host_of(&url) =>
            {
                SiteAnswer::text(text.clone())
            }
            _ => SiteAnswer::not_found(),
        }
    }
}
