//! The model web: hosts, pages, failures and robots.txt files drawn from a seed, and the truth about them.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
    sync::Arc,
    time::Duration,
};

use fastrand::Rng;
use frontier::RobotsAnswer;
use robots::Rules;
use types::{CanonicalUrl, Canonicalizer, FailureKind, FetchFailure, Host, Resolution};

/// What a page answers once its failures are over.
#[derive(Clone, Debug)]
pub(crate) enum Page {
    Links(Vec<CanonicalUrl>),
    Redirect(CanonicalUrl),
    NotFound,
    Broken,
    Silent,
}

#[derive(Clone, Debug)]
enum RobotsFile {
    Missing,
    File(String),
    Redirect(usize),
    Broken,
}

struct Site {
    host: Host,
    resolution: Resolution,
    /// Resolutions, and requests for robots.txt, that fail before one succeeds.
    resolve_failures: u16,
    robots_failures: u16,
    refuses: bool,
    robots: RobotsFile,
}

pub(crate) struct Web {
    sites: Vec<Site>,
    by_host: BTreeMap<Host, usize>,
    pages: BTreeMap<CanonicalUrl, Page>,
    /// Requests of a page that fail before one succeeds.
    failures: BTreeMap<CanonicalUrl, u16>,
    pub(crate) seeds: Vec<CanonicalUrl>,
}

/// What a page request brings.
pub(crate) enum Answer {
    Status(u16, Option<Duration>),
    Failed(FetchFailure),
}

/// How a URL must end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Truth {
    Succeeded,
    /// Requested, and failed for good.
    Failed,
    /// Never requested: robots.txt disallows it.
    Forbidden,
    /// Its host cannot be reached, so it failed or was disregarded.
    Unreachable,
}

pub(crate) fn failure(kind: FailureKind) -> FetchFailure {
    FetchFailure {
        kind,
        detail: "of the model".to_owned(),
    }
}

impl Web {
    /// Draws a web in which everything that fails for a while succeeds within `attempts_max` tries.
    pub(crate) fn draw(rng: &mut Rng, attempts_max: u16) -> Self {
        let site_count = rng.usize(1..14);
        let address_count = rng.u8(1..5);
        let sites: Vec<Site> = (0..site_count)
            .map(|number| draw_site(rng, number, site_count, address_count, attempts_max))
            .collect();
        let by_host = sites
            .iter()
            .enumerate()
            .map(|(number, site)| (site.host.clone(), number))
            .collect();
        let mut urls = Vec::new();
        for site in &sites {
            let page_count = if rng.u8(..8) == 0 {
                rng.usize(30..120)
            } else {
                rng.usize(1..30)
            };
            urls.extend((0..page_count).map(|page| draw_url(rng, &site.host, page)));
        }
        let pages: BTreeMap<_, _> = urls
            .iter()
            .map(|url| (url.clone(), draw_page(rng, &urls)))
            .collect();
        let mut failures = BTreeMap::new();
        for url in &urls {
            if rng.u8(..8) == 0 {
                failures.insert(url.clone(), rng.u16(0..attempts_max));
            }
        }
        let seeds = (0..rng.usize(1..6))
            .map(|_| urls[rng.usize(..urls.len())].clone())
            .collect();
        Self {
            sites,
            by_host,
            pages,
            failures,
            seeds,
        }
    }

    fn site(&mut self, host: &Host) -> &mut Site {
        &mut self.sites[self.by_host[host]]
    }

    pub(crate) fn resolve(&mut self, host: &Host) -> Resolution {
        let site = self.site(host);
        if site.resolve_failures > 0 {
            site.resolve_failures -= 1;
            return Resolution::Failed(failure(FailureKind::Dns));
        }
        site.resolution.clone()
    }

    pub(crate) fn fetch(&mut self, url: &CanonicalUrl, rng: &mut Rng) -> Answer {
        if self.site(&url.host()).refuses {
            return Answer::Failed(failure(FailureKind::Connect));
        }
        if rng.u8(..30) == 0 {
            // Our own fault, which no number of tries may turn into a failure of the URL.
            return Answer::Failed(failure(FailureKind::KeptWaiting));
        }
        if let Some(left) = self.failures.get_mut(url).filter(|left| **left > 0) {
            *left -= 1;
            return match rng.u8(..3) {
                0 => Answer::Failed(failure(FailureKind::ReadTimeout)),
                1 => Answer::Status(503, Some(Duration::from_secs(rng.u64(..20)))),
                _ => Answer::Status(429, None),
            };
        }
        match &self.pages[url] {
            Page::Links(_) => Answer::Status(200, None),
            Page::Redirect(_) => Answer::Status(301, None),
            Page::NotFound => Answer::Status(404, None),
            Page::Broken => Answer::Status(500, None),
            Page::Silent => Answer::Failed(failure(FailureKind::TotalTimeout)),
        }
    }

    /// Answers a request for the robots.txt of `of`, wherever redirects have led it.
    pub(crate) fn fetch_robots(&mut self, url: &CanonicalUrl, of: &Host) -> RobotsAnswer {
        let hosts: Vec<Host> = self.sites.iter().map(|site| site.host.clone()).collect();
        let asking = self.site(of);
        if asking.robots_failures > 0 {
            asking.robots_failures -= 1;
            return RobotsAnswer::Unreachable {
                failure: failure(FailureKind::ServerError),
                retry_after: None,
            };
        }
        let site = self.site(&url.host());
        if site.refuses {
            return RobotsAnswer::Unreachable {
                failure: failure(FailureKind::Connect),
                retry_after: None,
            };
        }
        match &site.robots {
            RobotsFile::Missing => RobotsAnswer::Unavailable,
            RobotsFile::File(text) => {
                RobotsAnswer::Rules(Arc::new(Rules::parse(text.as_bytes(), "mybot")))
            }
            RobotsFile::Redirect(target) => RobotsAnswer::Redirect(robots_url(&hosts[*target])),
            RobotsFile::Broken => RobotsAnswer::Unreachable {
                failure: failure(FailureKind::ServerError),
                retry_after: None,
            },
        }
    }

    /// Returns what a page leads to.
    pub(crate) fn links(&self, url: &CanonicalUrl) -> Vec<CanonicalUrl> {
        match &self.pages[url] {
            Page::Links(links) => links.clone(),
            Page::Redirect(target) => vec![target.clone()],
            _ => Vec::new(),
        }
    }

    pub(crate) fn is_redirect(&self, url: &CanonicalUrl) -> bool {
        matches!(self.pages[url], Page::Redirect(_))
    }

    /// Returns the rules that hold for a host; `None` if they cannot be had.
    pub(crate) fn rules(&self, host: &Host) -> Option<Rules> {
        let mut site = &self.sites[self.by_host[host]];
        for _ in 0..=5 {
            if !site.is_reachable() {
                return None;
            }
            match &site.robots {
                RobotsFile::Missing => return Some(Rules::allow_all()),
                RobotsFile::File(text) => return Some(Rules::parse(text.as_bytes(), "mybot")),
                RobotsFile::Redirect(target) => site = &self.sites[*target],
                RobotsFile::Broken => return None,
            }
        }
        Some(Rules::allow_all())
    }

    fn truth(&self, url: &CanonicalUrl, obeys_robots: bool) -> Truth {
        let host = url.host();
        if !self.sites[self.by_host[&host]].is_reachable() {
            return Truth::Unreachable;
        }
        if obeys_robots {
            match self.rules(&host) {
                None => return Truth::Forbidden,
                Some(rules) if !rules.allows(url.path_and_query()) => return Truth::Forbidden,
                Some(_) => {}
            }
        }
        match self.pages[url] {
            Page::Broken | Page::Silent => Truth::Failed,
            _ => Truth::Succeeded,
        }
    }

    /// Walks the web without a crawler: how each URL that can be reached must end.
    pub(crate) fn walk(&self, obeys_robots: bool) -> BTreeMap<CanonicalUrl, Truth> {
        let mut found = BTreeMap::new();
        let mut open: BTreeSet<CanonicalUrl> = self
            .seeds
            .iter()
            .filter(|url| is_in_scope(url))
            .cloned()
            .collect();
        while let Some(url) = open.pop_first() {
            let truth = self.truth(&url, obeys_robots);
            if truth == Truth::Succeeded {
                let links = self.links(&url);
                open.extend(
                    links
                        .into_iter()
                        .filter(|link| is_in_scope(link) && !found.contains_key(link)),
                );
            }
            open.remove(&url);
            found.insert(url, truth);
        }
        found
    }
}

impl Site {
    fn is_reachable(&self) -> bool {
        !self.refuses && !matches!(self.resolution, Resolution::Failed(_))
    }
}

/// Mirrors the exclude pattern of the simulated crawl.
pub(crate) fn is_in_scope(url: &CanonicalUrl) -> bool {
    !url.path_and_query().starts_with("/out/")
}

fn url(text: &str) -> CanonicalUrl {
    Canonicalizer::default()
        .canonicalize(text)
        .expect("the model's URLs are plain")
}

fn robots_url(host: &Host) -> CanonicalUrl {
    url(&format!("{host}/robots.txt"))
}

fn draw_site(
    rng: &mut Rng,
    number: usize,
    site_count: usize,
    address_count: u8,
    attempts_max: u16,
) -> Site {
    let address = IpAddr::from([192, 0, 2, rng.u8(0..address_count)]);
    let resolution = match rng.u8(..12) {
        0 => Resolution::Exempt,
        1 => Resolution::Failed(failure(if rng.bool() {
            FailureKind::Dns
        } else {
            FailureKind::AddressRefused
        })),
        _ => Resolution::Address(address),
    };
    let robots = match rng.u8(..10) {
        0..3 => RobotsFile::Missing,
        3..6 => RobotsFile::File("User-agent: *\nDisallow: /no/\n".to_owned()),
        6 => RobotsFile::File(format!(
            "User-agent: mybot\nCrawl-delay: {}\n",
            rng.u8(..20)
        )),
        7 | 8 => RobotsFile::Redirect(rng.usize(..site_count)),
        _ => RobotsFile::Broken,
    };
    let mut few = || {
        if rng.u8(..6) == 0 {
            rng.u16(0..attempts_max)
        } else {
            0
        }
    };
    Site {
        host: Host::new(&format!("http://h{number}.d{}.test", number % 4)),
        resolution,
        resolve_failures: few(),
        robots_failures: few(),
        refuses: rng.u8(..12) == 0,
        robots,
    }
}

fn draw_url(rng: &mut Rng, host: &Host, page: usize) -> CanonicalUrl {
    let folder = match rng.u8(..8) {
        0 => "no",
        1 => "out",
        _ => "yes",
    };
    // Some so long that the memory of a window holds few of them.
    let padding = if rng.u8(..6) == 0 {
        rng.usize(..1_500)
    } else {
        0
    };
    url(&format!("{host}/{folder}/{page}/{:a<padding$}", ""))
}

fn draw_page(rng: &mut Rng, urls: &[CanonicalUrl]) -> Page {
    let any = |rng: &mut Rng| urls[rng.usize(..urls.len())].clone();
    match rng.u8(..16) {
        0 => Page::NotFound,
        1 => Page::Broken,
        2 => Page::Silent,
        3 | 4 => Page::Redirect(any(rng)),
        _ => Page::Links((0..rng.usize(..12)).map(|_| any(rng)).collect()),
    }
}
