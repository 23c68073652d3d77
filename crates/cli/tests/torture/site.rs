//! The site that is crawled: generated, and served by a process that lives on when the crawl dies, and counts.
//!
//! Each page has two pages of its own to link to, so that new URLs are found almost to the end, wherever the crawl is
//! interrupted; and links to pages of all parts found before, so that a forgotten URL is soon met again.

use std::{collections::BTreeSet, fmt::Write as _, sync::Arc, time::Duration};

use replay::{Server, ServerConfig, SiteAnswer, SiteRequest};

const ORIGIN: &str = "http://site.example";
/// Links of a page to pages that were linked to before.
const REPEAT_COUNT: u64 = 16;
const PAGE_BYTES: usize = 2_000;

/// A site of one host, served under a local address.
pub(crate) struct Site {
    page_count: u64,
    seed: u64,
    server: Server,
}

impl Site {
    /// Serves a site of `page_count` pages; the latency decides how long a crawl of it takes.
    pub(crate) fn start(page_count: u64, seed: u64, latency: Duration) -> Self {
        let config = ServerConfig {
            https: None,
            latency,
            ..ServerConfig::default()
        };
        let answer = move |request: &SiteRequest<'_>| match page_number(&request.url()) {
            Some(page) if page < page_count => SiteAnswer::html(html(page, page_count, seed)),
            _ => SiteAnswer::not_found(),
        };
        Self {
            page_count,
            seed,
            server: Server::start(config, Arc::new(answer)).expect("the server starts"),
        }
    }

    /// Serves the same site from another address, with nothing counted yet.
    pub(crate) fn restarted(&self, latency: Duration) -> Self {
        Self::start(self.page_count, self.seed, latency)
    }

    /// Returns the words of a command that crawls this site, into the folder `data`.
    pub(crate) fn crawl_words(&self, store: &str) -> Vec<String> {
        let address = self.server.http_address();
        format!(
            "crawl {ORIGIN}/ --data data --store {store} --delay 0 --per-host 64 --connect-to ::{address} \
             --expected-urls 10000 --json --verbose"
        )
        .split(' ')
        .map(str::to_owned)
        .collect()
    }

    /// Returns the URLs of all pages.
    pub(crate) fn urls(&self) -> BTreeSet<String> {
        (0..self.page_count)
            .map(|page| format!("{ORIGIN}{}", path(page)))
            .collect()
    }

    /// Returns how many requests there were for pages.
    pub(crate) fn request_count(&self) -> u64 {
        let counts = self.server.request_counts();
        let pages = counts.iter().filter(|(url, _)| page_number(url).is_some());
        pages.map(|(_, count)| count).sum()
    }

    /// Returns the pages that were asked for, and how many requests beside the first they took in all.
    pub(crate) fn fetched(&self) -> (BTreeSet<String>, u64) {
        let mut pages = self.server.request_counts();
        pages.retain(|url, _| page_number(url).is_some());
        let refetched = pages.values().map(|count| count - 1).sum();
        (pages.into_keys().collect(), refetched)
    }
}

fn path(page: u64) -> String {
    if page == 0 {
        "/".to_owned()
    } else {
        format!("/s{}/p{page}.html", page / 50)
    }
}

/// Returns the number of the page with this URL.
fn page_number(url: &str) -> Option<u64> {
    let found = url.strip_prefix(ORIGIN)?;
    let number = match found.strip_suffix(".html") {
        Some(rest) => rest.rsplit_once("/p")?.1.parse().ok()?,
        None => 0,
    };
    (path(number) == found).then_some(number)
}

fn html(page: u64, page_count: u64, seed: u64) -> String {
    let mut random = fastrand::Rng::with_seed(seed << 32 | page);
    let own = [2 * page + 1, 2 * page + 2];
    let repeats = (0..REPEAT_COUNT).map(|_| random.u64(..=own[0]));
    let mut html = format!("<!DOCTYPE html><title>Page {page}</title>");
    for target in own.into_iter().chain(repeats.collect::<Vec<_>>()) {
        if target < page_count {
            let _ = writeln!(html, "<a href=\"{}\">{target}</a>", path(target));
        }
    }
    html.push_str("<p>");
    while html.len() < PAGE_BYTES {
        let _ = write!(html, "{:x} ", random.u64(..));
    }
    html
}
