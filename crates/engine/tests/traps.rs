//! Traps that sites set, mostly without meaning to: each beside a site of ordinary pages, all of which are fetched, while the
//! trap ends. Each test is named for the public report that it is reduced from.
#![expect(clippy::unwrap_used, reason = "a failed set-up fails the test")]

mod support;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

use engine::{CrawlConfig, Outcome};
use frontier::ScopeRule;
use replay::{Server, ServerConfig, SiteAnswer, SiteRequest};
use support::{Backend, Place, assert_whole, crawl};

const TRAP: &str = "http://trap.example";
const SEEDS: [&str; 2] = [TRAP, "http://site.example/0"];
/// Ordinary pages of the other site.
const ORDINARY_COUNT: usize = 50;

/// Crawls a trap beside an ordinary site to the end; returns what was asked of the trap, each with how often.
fn trapped(
    change: impl FnOnce(&mut CrawlConfig),
    trap: impl Fn(&str) -> SiteAnswer + Send + Sync + 'static,
) -> BTreeMap<String, u64> {
    let (server, place, config) = set_up(change, trap);
    let report = crawl(config, &SEEDS);
    assert_whole(&report, &place.records());
    asked_of_trap(&server)
}

/// Serves a trap beside an ordinary site, and returns the settings of a crawl of both.
fn set_up(
    change: impl FnOnce(&mut CrawlConfig),
    trap: impl Fn(&str) -> SiteAnswer + Send + Sync + 'static,
) -> (Server, Place, CrawlConfig) {
    let site = move |request: &SiteRequest<'_>| match (request.authority, request.path_and_query) {
        (_, "/robots.txt") => SiteAnswer::not_found(),
        (authority, path) if authority.ends_with("trap.example") => trap(path),
        (_, path) => {
            let number: usize = path.trim_start_matches('/').parse().unwrap_or(0);
            page([format!("/{}", (number + 1) % ORDINARY_COUNT)])
        }
    };
    let config = ServerConfig {
        https: None,
        ..ServerConfig::default()
    };
    let server = Server::start(config, Arc::new(site)).unwrap();
    let place = Place::new(Backend::Embedded);
    let mut config = place.config(&server);
    change(&mut config);
    (server, place, config)
}

/// Returns what was asked of the trap, each with how often, after seeing that every ordinary page was asked for once.
fn asked_of_trap(server: &Server) -> BTreeMap<String, u64> {
    let mut counts = server.request_counts();
    counts.retain(|url, _| !url.ends_with("/robots.txt"));
    let ordinary: BTreeSet<String> = (0..ORDINARY_COUNT)
        .map(|number| format!("http://site.example/{number}"))
        .collect();
    for url in &ordinary {
        assert_eq!(counts.remove(url), Some(1), "{url}");
    }
    assert!(counts.values().all(|count| *count == 1), "{counts:?}");
    counts
}

fn page<L: AsRef<str>>(links: impl IntoIterator<Item = L>) -> SiteAnswer {
    let mut body = String::from("<!DOCTYPE html><title>t</title>");
    for link in links {
        let _ = write!(body, "<a href=\"{}\">x</a>", link.as_ref());
    }
    SiteAnswer::html(body)
}

#[test]
fn marginaliasearch_110_a_path_that_grows_by_itself_ends() {
    let asked = trapped(|_| {}, |_| page(["infra/www/"]));
    // The front page, and one more for each time that `infra/www/` may come.
    assert_eq!(asked.len(), 5, "{asked:?}");
    assert!(asked.contains_key(&format!("{TRAP}/{}", "infra/www/".repeat(4))));
}

#[test]
fn arachni_272_links_of_error_pages_lead_nowhere() {
    let asked = trapped(
        |_| {},
        |path| match path {
            "/" => page(["missing/page"]),
            _ => SiteAnswer::new(404, "text/html", "<a href=\"sitemap/\">sitemap</a>"),
        },
    );
    assert_eq!(asked.len(), 2, "{asked:?}");
}

#[test]
fn scrapy_1113_a_query_that_grows_by_itself_ends() {
    let asked = trapped(
        |_| {},
        |path| {
            let query = path.split_once('?').map_or("", |(_, query)| query);
            page([format!("/?{query}&q=")])
        },
    );
    assert!(asked.len() <= 6, "{asked:?}");
}

#[test]
fn spidergram_42_two_names_that_are_no_links_do_not_double_for_ever() {
    let asked = trapped(
        |_| {},
        |path| match path {
            "/" => page(["/event/1234/"]),
            _ => page(["www.a.example/", "www.b.example/"]),
        },
    );
    // Each of both at most four times, in any order.
    assert!(asked.len() <= 252, "{} pages", asked.len());
}

#[test]
fn zeno_164_redirects_to_ever_new_addresses_end() {
    let number = AtomicU64::new(0);
    let redirects = |config: &mut CrawlConfig| config.redirects_max = 7;
    let asked = trapped(redirects, move |_| {
        SiteAnswer::redirect(302, &format!("/{}", number.fetch_add(1, Relaxed)))
    });
    assert_eq!(asked.len(), 8, "the seed and seven redirects: {asked:?}");
}

#[test]
fn wpull_203_session_ids_are_stripped_where_that_is_asked_for() {
    let number = AtomicU64::new(0);
    let strip = |config: &mut CrawlConfig| config.canonical.drop_session_ids = true;
    let asked = trapped(strip, move |_| {
        let links =
            (0..10).map(|page| format!("/{page}?sid={:032x}", number.fetch_add(1, Relaxed)));
        page(links)
    });
    assert_eq!(asked.len(), 11, "the front page and ten more: {asked:?}");
}

/// A calendar: each month links to the next and the one before, and the menu to twenty ordinary pages.
fn calendar(path: &str) -> SiteAnswer {
    let Some(month) = path.strip_prefix("/cal?m=") else {
        return page(["/cal?m=0"]);
    };
    let month: i64 = month.parse().unwrap();
    let around = [month - 1, month + 1].map(|month| format!("/cal?m={month}"));
    let menu = (0..20).map(|number| format!("/menu/{number}"));
    page(around.into_iter().chain(menu))
}

/// jake-bickle/Arachnid#6, moinwiki/moin#2264: a budget ends what has no end by itself, ordinary pages come before, and what
/// is left waits for a larger budget.
#[test]
fn arachnid_6_a_calendar_uses_up_the_budget_of_its_domain_alone() {
    let budget = |config: &mut CrawlConfig| {
        config.limits.max_pages_per_domain = Some(100);
        config.per_host = 1;
    };
    let (server, place, config) = set_up(budget, calendar);
    let report = crawl(config.clone(), &SEEDS);
    assert_eq!(report.outcome, Outcome::LimitReached);
    assert!(report.identity_holds && report.counts.queued > 0);
    let asked = asked_of_trap(&server);
    assert_eq!(asked.len(), 100, "{asked:?}");
    for number in 0..20 {
        assert!(asked.contains_key(&format!("{TRAP}/menu/{number}")));
    }
    // The same budget again: nothing is left of it. A larger one goes on where it ended.
    let report = crawl(config.clone(), &SEEDS);
    assert_eq!(report.outcome, Outcome::LimitReached);
    assert_eq!(asked_of_trap(&server).len(), 100);
    let mut larger = config;
    larger.limits.max_pages_per_domain = Some(130);
    let report = crawl(larger, &SEEDS);
    assert_eq!(report.outcome, Outcome::LimitReached);
    let asked = asked_of_trap(&server);
    assert_eq!(asked.len(), 130);
    assert!(asked.values().all(|count| *count == 1), "{asked:?}");
    assert_eq!(place.records().len(), 130 + ORDINARY_COUNT);
}

/// A wildcard in the DNS makes hosts without end; they share the budget of their domain.
#[test]
fn hosts_without_end_share_the_budget_of_their_domain() {
    const CONCURRENCY: u32 = 4;
    let number = AtomicU64::new(0);
    let budget = |config: &mut CrawlConfig| {
        config.limits.max_pages_per_domain = Some(60);
        config.concurrency = CONCURRENCY;
        config.scope = ScopeRule::Any;
    };
    let (server, _place, config) = set_up(budget, move |_| {
        page((0..3).map(|_| format!("http://h{}.trap.example/", number.fetch_add(1, Relaxed))))
    });
    let report = crawl(config, &SEEDS);
    assert_eq!(report.outcome, Outcome::LimitReached);
    assert!(report.identity_holds);
    let asked = asked_of_trap(&server).len();
    let most = 60 + CONCURRENCY as usize;
    assert!((60..most).contains(&asked), "{asked} pages");
}
