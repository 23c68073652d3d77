//! Public bug reports against other crawlers, reduced to crawls that are judged from outside; each test is named for its
//! source. Those that need the command, its signals or its exit codes are among the tests of `cli`.
#![expect(clippy::unwrap_used, reason = "a failed set-up fails the test")]

mod support;

use std::{
    collections::BTreeSet,
    fmt::Write as _,
    fs,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use engine::{Crawl, Outcome, Report};
use replay::{Fault, Server, ServerConfig, SiteAnswer, SiteRequest, Synthetic, SyntheticConfig};
use store::testing::Cluster;
use support::{BACKENDS, Backend, Place, assert_fetched_once, assert_whole, crawl};
use types::Disposition;

const HOST: &str = "http://site.example";

fn serve(answer: impl Fn(&str) -> SiteAnswer + Send + Sync + 'static) -> Server {
    let config = ServerConfig {
        https: None,
        ..ServerConfig::default()
    };
    let site = move |request: &SiteRequest<'_>| match request.path_and_query {
        "/robots.txt" => SiteAnswer::not_found(),
        path => answer(path),
    };
    Server::start(config, Arc::new(site)).unwrap()
}

/// A page with links.
fn page<L: AsRef<str>>(links: impl IntoIterator<Item = L>) -> SiteAnswer {
    let mut body = String::from("<!DOCTYPE html><title>t</title>");
    for link in links {
        let _ = write!(body, "<a href=\"{}\">x</a>", link.as_ref());
    }
    SiteAnswer::html(body)
}

fn urls<P: AsRef<str>>(paths: impl IntoIterator<Item = P>) -> BTreeSet<String> {
    paths
        .into_iter()
        .map(|path| format!("{HOST}{}", path.as_ref()))
        .collect()
}

/// Crawls from the front page with the embedded store, to the end, and asserts that just `paths` were asked for, once.
fn crawled(server: &Server, paths: &BTreeSet<String>) -> (Place, Report) {
    let place = Place::new(Backend::Embedded);
    let report = crawl(place.config(server), &[HOST]);
    assert_whole(&report, &place.records());
    assert_fetched_once(server, paths);
    (place, report)
}

/// Crawls from the front page with either store, to the end, and asserts how many pages succeeded.
fn crawled_by_both(server: &Server, succeeded_count: u64) {
    for backend in BACKENDS {
        let place = Place::new(backend);
        let report = crawl(place.config(server), &[HOST]);
        assert_whole(&report, &place.records());
        assert_eq!(report.counts.succeeded, succeeded_count, "{backend:?}");
    }
}

/// wummel/linkchecker#174, yujiosaka/headless-chrome-crawler#302, amoilanen/js-crawler#21: two workers saw "not seen".
#[test]
fn linkchecker_174_pages_that_all_link_each_other_are_fetched_once() {
    const PAGES: u64 = 300;
    let all: Vec<String> = (0..PAGES).map(|number| format!("/{number}")).collect();
    let links = all.clone();
    let server = serve(move |_| page(&links));
    let paths = urls(all.iter().map(String::as_str).chain(["/"]));
    for round in 1..=20 {
        let place = Place::new(Backend::Embedded);
        let report = crawl(place.config(&server), &[HOST]);
        assert_eq!(report.counts.succeeded, PAGES + 1);
        let counts = server.request_counts();
        assert!(
            paths.iter().all(|url| counts[url] == round),
            "in round {round}"
        );
    }
}

/// armon/bloomd#35, istresearch/scrapy-cluster#105: a filter beyond its capacity lost URLs.
#[test]
fn bloomd_35_ten_times_the_stated_capacity_loses_nothing() {
    let site = Arc::new(Synthetic::new(SyntheticConfig {
        pages: 12_000,
        page_bytes: 500,
        links_per_page: 4,
        ..SyntheticConfig::default()
    }));
    let config = ServerConfig {
        https: None,
        ..ServerConfig::default()
    };
    let server = Server::start(config, site.clone()).unwrap();
    let place = Place::new(Backend::Embedded);
    let mut config = place.config(&server);
    config.expected_urls = 1_200;
    let report = crawl(config, &[&site.start_url()]);
    assert_whole(&report, &place.records());
    assert_fetched_once(&server, &site.urls().collect());
    assert!(!report.filter.is_exact && report.filter.predicted_rate < 0.01);
}

/// armon/bloomd#35: a key that held a line feed was two keys.
#[test]
fn bloomd_35_a_line_feed_in_a_url_splits_no_key() {
    let paths = ["/", "/a", "/a%0Ab", "/b", "/a%0A", "/%0Ab"];
    let server = serve(move |_| page(paths));
    crawled(&server, &urls(paths));
}

/// jimmc414/onefilellm#80: the seed was rejected as visited.
#[test]
fn onefilellm_80_a_seed_is_not_its_own_duplicate() {
    let links: Vec<String> = (1..=10).map(|number| format!("/{number}")).collect();
    let paths = urls(links.iter().map(String::as_str).chain(["/"]));
    let server = serve(move |path| page(if path == "/" { &links[..] } else { &[] }));
    crawled(&server, &paths);
}

/// apify/crawlee#3153: links of a page to itself used up the limit.
#[test]
fn crawlee_3153_duplicates_use_up_no_limit() {
    let server = serve(|path| match path {
        "/" => page(["/"; 10].into_iter().chain(["/new"])),
        _ => page([""; 0]),
    });
    let place = Place::new(Backend::Embedded);
    let mut config = place.config(&server);
    config.limits.max_pages = Some(10);
    let report = crawl(config, &[HOST]);
    assert_eq!(report.pages, 2);
    assert_fetched_once(&server, &urls(["/", "/new"]));
}

/// rockdaboot/wget2#269, rockdaboot/wget2#100: files missing at random, more of them with more threads.
#[test]
fn wget2_269_any_number_of_connections_fetches_the_same_pages() {
    let site = Arc::new(Synthetic::new(SyntheticConfig {
        pages: 2_000,
        page_bytes: 500,
        links_per_page: 10,
        ..SyntheticConfig::default()
    }));
    for concurrency in [1, 4, 64, 64] {
        let config = ServerConfig {
            https: None,
            ..ServerConfig::default()
        };
        let server = Server::start(config, site.clone()).unwrap();
        let place = Place::new(Backend::Embedded);
        let mut config = place.config(&server);
        config.concurrency = concurrency;
        let report = crawl(config, &[&site.start_url()]);
        assert_whole(&report, &place.records());
        assert_fetched_once(&server, &site.urls().collect());
    }
}

/// scrapy/scrapy#5312: one request after a resume, then the end, where one URL was in flight at any time.
#[test]
fn scrapy_5312_a_chain_goes_on_after_a_stop() {
    const LAST: u64 = 500;
    let server = serve(|path| {
        let number: u64 = path.trim_start_matches('/').parse().unwrap_or(0);
        let next = (number < LAST).then(|| format!("/{}", number + 1));
        page(next)
    });
    for backend in BACKENDS {
        let place = Place::new(backend);
        let mut config = place.config(&server);
        config.limits.max_pages = Some(14);
        let first = crawl(config.clone(), &[HOST]);
        assert_eq!((first.outcome, first.pages), (Outcome::LimitReached, 14));
        config.limits.max_pages = None;
        let report = crawl(config, &[HOST]);
        assert_whole(&report, &place.records());
        assert_eq!(report.pages, LAST + 1);
    }
}

/// internetarchive/warcprox#137: a second run wrote over the files of the first.
#[test]
fn warcprox_137_a_second_run_leaves_the_first_ones_records() {
    let server = serve(|_| page(["/1", "/2", "/3", "/4"]));
    let place = Place::new(Backend::Embedded);
    let mut config = place.config(&server);
    config.limits.max_pages = Some(2);
    crawl(config.clone(), &[HOST]);
    let before: Vec<_> = place
        .warc_files()
        .into_iter()
        .map(|path| (fs::read(&path).unwrap(), path))
        .collect();
    assert!(!before.is_empty());
    config.limits.max_pages = None;
    crawl(config, &[HOST]);
    for (bytes, path) in before {
        assert!(fs::read(&path).unwrap().starts_with(&bytes));
    }
}

/// xroche/httrack#422: a body that was to be resumed, answered 416, was asked for without end.
#[test]
fn httrack_422_a_range_that_cannot_be_satisfied_is_asked_for_once() {
    let server = serve(|path| match path {
        "/" => page(["/part"]),
        _ => SiteAnswer::new(416, "text/plain", "").with_header("content-range", "bytes */0"),
    });
    crawled(&server, &urls(["/", "/part"]));
}

/// brianc/node-postgres#2080, apache/devlake#3564, opensanctions/poliloom#138: one U+0000 rolled back a whole batch.
#[test]
fn node_postgres_2080_a_nul_anywhere_spoils_no_batch() {
    let poisoned = "/nul%00?q=%00";
    let mut paths: Vec<String> = (1..=50).map(|number| format!("/{number}")).collect();
    paths.push(poisoned.to_owned());
    let links = paths.clone();
    let server = serve(move |path| match path {
        "/" => page(&links),
        "/nul%00?q=%00" => SiteAnswer::html("<title>a\0b</title><meta name=x content='\0'>t\0t")
            .with_header("x-nul", "a\u{1}b"),
        _ => page([""; 0]),
    });
    crawled_by_both(&server, 52);
}

/// openreplay/openreplay#198, mastodon/mastodon#18965, discourse/discourse#16609: a long URL was over the size of an index row.
#[test]
fn openreplay_198_long_urls_are_stored_once_or_refused_with_a_count() {
    let mut random = fastrand::Rng::with_seed(1);
    let mut path = |length| -> String {
        let letters = std::iter::repeat_with(|| random.alphanumeric());
        std::iter::once('/').chain(letters).take(length).collect()
    };
    let (long, too_long) = (path(8_000), path(100_000));
    let links = [long.clone(), long.clone(), too_long];
    let server = serve(move |_| page(&links));
    for backend in BACKENDS {
        let place = Place::new(backend);
        let mut config = place.config(&server);
        config.canonical.url_bytes_max = 10_000;
        let report = crawl(config, &[HOST]);
        assert_whole(&report, &place.records());
        // The front page and the long one each have a link that is too long.
        assert_eq!(report.counts.succeeded, 2, "{backend:?}");
        assert_eq!(report.links.rejected, 2, "{backend:?}");
    }
}

/// duckdb/duckdb#14293, openobserve/openobserve#13487: a batch that held a URL twice failed.
#[test]
fn duckdb_14293_pages_that_find_the_same_urls_at_once_fail_no_batch() {
    let links: Vec<String> = (0..200).map(|number| format!("/{}", number % 50)).collect();
    let server = serve(move |_| page(&links));
    crawled_by_both(&server, 51);
}

/// nano-step/nano-brain#181, psf/requests#4926: bytes that are not UTF-8 ended the process.
#[test]
fn nano_brain_181_bytes_that_are_not_utf_8_are_stored() {
    let server = serve(|path| match path {
        "/" => SiteAnswer::html(b"<title>\xe9\xed\xa0\x80</title><a href=/b>\xff</a>".to_vec())
            .with_header("x-bytes", b"\xe9\xff"),
        _ => SiteAnswer::new(200, "application/json", r#"{"a":"\ud800"}"#),
    });
    crawled_by_both(&server, 2);
}

/// openwpm/openwpm-crawler#33: a slow database under a fast site filled the memory with pages. Here it is so slow that
/// it takes no page for a while.
#[test]
fn openwpm_33_a_slow_store_slows_the_fetching() {
    let links: Vec<String> = (0..500).map(|number| format!("/{number}")).collect();
    let paths = urls(links.iter().map(String::as_str).chain(["/"]));
    let server = serve(move |path| page(if path == "/" { &links[..] } else { &[] }));
    let place = Place::new(Backend::Postgres);
    let mut config = place.config(&server);
    config.limits.max_pages = Some(1);
    crawl(config.clone(), &[HOST]);
    config.limits.max_pages = None;
    let engine::StoreConfig::Postgres { uri, schema } = &config.store else {
        unreachable!("it is made so");
    };
    Cluster::execute(
        uri,
        &format!(
            "CREATE TABLE public.hold AS SELECT; \
             CREATE FUNCTION public.wait() RETURNS trigger LANGUAGE plpgsql AS \
             $$ BEGIN WHILE EXISTS (SELECT FROM public.hold) LOOP PERFORM pg_sleep(0.01); END LOOP; RETURN NEW; END $$; \
             CREATE TRIGGER wait BEFORE INSERT ON {schema}.page FOR EACH ROW EXECUTE FUNCTION public.wait()"
        ),
    );
    let leases_max = config.leases_in_force() as usize;
    let before = server.url_count();
    let crawl = Crawl::start(config.clone(), &[]).unwrap();
    let begun = Instant::now();
    while server.url_count() - before < leases_max {
        assert!(begun.elapsed() < Duration::from_mins(1), "too few requests");
        assert!(crawl.wait(Duration::from_millis(5)).is_none());
    }
    // Time for one more, which there must not be.
    assert!(crawl.wait(Duration::from_millis(500)).is_none());
    assert_eq!(server.url_count() - before, leases_max);
    Cluster::execute(uri, "DELETE FROM public.hold");
    let report = crawl.wait(Duration::from_mins(1)).unwrap().unwrap();
    assert_whole(&report, &place.records());
    assert_fetched_once(&server, &paths);
}

/// iipc/openwayback#376: a crawl whose queue was empty ended although a page was under way, or never ended.
#[test]
fn openwayback_376_a_crawl_waits_for_its_last_page_and_then_ends() {
    let links: Vec<String> = (1..=10).map(|number| format!("/late/{number}")).collect();
    let paths = urls(links.iter().map(String::as_str).chain(["/", "/last"]));
    let server = serve(move |path| match path {
        "/" => page(["/last"]),
        "/last" => page(&links).with_delay(Duration::from_secs(2)),
        _ => page([""; 0]),
    });
    crawled(&server, &paths);
}

/// servo/html5ever#788, servo/html5ever#290, jhy/jsoup#955: deep nesting took minutes, or overflowed the stack.
#[test]
fn html5ever_788_deep_nesting_holds_up_nobody() {
    let nested = [
        "<ul><li>".repeat(64 << 10),
        "<div>".repeat(200 << 10),
        "<a>".repeat(40_000) + &"<i>".repeat(40_000) + &"</a>".repeat(40_000),
    ];
    let others: Vec<String> = (0..20).map(|number| format!("/{number}")).collect();
    let links: Vec<String> = (0..nested.len())
        .map(|number| format!("/deep/{number}"))
        .chain(others)
        .collect();
    let paths = urls(links.iter().map(String::as_str).chain(["/", "/end"]));
    let server = serve(move |path| match path.strip_prefix("/deep/") {
        Some(number) => {
            let deep = &nested[number.parse::<usize>().unwrap()];
            SiteAnswer::html(format!("{deep}<a href=/end>end</a>"))
        }
        None if path == "/" => page(&links),
        None => page([""; 0]),
    });
    crawled(&server, &paths);
}

/// dondai44423/donsetch#276: one attribute, one tag or one page without bounds.
#[test]
fn donsetch_276_huge_attributes_tags_and_link_lists_are_bounded() {
    let server = serve(|path| match path {
        "/" => page(["/attribute", "/tag", "/links"]),
        "/attribute" => SiteAnswer::html(format!(
            "<p title='{}'></p><a href=/found>x</a>",
            "x".repeat(1 << 20)
        )),
        "/tag" => {
            let attributes: String = (0..200_000).fold(String::new(), |mut all, number| {
                let _ = write!(all, " a{number}=1");
                all
            });
            SiteAnswer::html(format!("<p{attributes}></p><a href=/found>x</a>"))
        }
        "/links" => page((0..1_000_000).map(|number| format!("/{number}"))),
        _ => page([""; 0]),
    });
    let place = Place::new(Backend::Embedded);
    let mut config = place.config(&server);
    config.outlinks_max = 500;
    let report = crawl(config, &[HOST]);
    assert_whole(&report, &place.records());
    // The front page, its three links, the one they share, and of the million links as many as may be taken.
    assert_eq!(report.counts.succeeded, 5 + 500);
}

/// seanmonstar/reqwest#1416: truncated compressed bodies held their connections.
#[test]
fn reqwest_1416_truncated_bodies_hold_no_connection() {
    let mut links: Vec<String> = (0..200).map(|number| format!("/cut/{number}")).collect();
    links.extend((0..20).map(|number| format!("/whole/{number}")));
    let server = serve(move |path| match path {
        "/" => page(&links),
        _ if path.starts_with("/cut/") => SiteAnswer::html(vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0])
            .with_header("content-encoding", "gzip")
            .with_fault(Fault::CutBody(5)),
        _ => page([""; 0]),
    });
    let place = Place::new(Backend::Embedded);
    let mut config = place.config(&server);
    config.concurrency = 4;
    config.attempts_max = 1;
    let report = crawl(config, &[HOST]);
    assert_whole(&report, &place.records());
    let whole = place
        .records()
        .iter()
        .filter(|record| record.disposition == Disposition::Succeeded)
        .filter(|record| record.url.contains("/whole/"))
        .count();
    assert_eq!(whole, 20, "{:?}", report.failures);
}

/// retresco/Spyder#9: a host whose worker died was blocked for ever. Here a host's requests all fail, each its own way.
#[test]
fn spyder_9_failures_hold_no_place_of_a_host() {
    let asked = Arc::new(AtomicU64::new(0));
    let links: Vec<String> = (0..12).map(|number| format!("/{number}")).collect();
    let server = serve({
        let asked = Arc::clone(&asked);
        move |path| match (path, asked.fetch_add(1, Relaxed) % 3) {
            ("/", _) => page(&links),
            (_, 0) => page([""; 0]).with_fault(Fault::CloseBeforeHead),
            (_, 1) => page(["/"]).with_fault(Fault::CutBody(3)),
            _ => page([""; 0]),
        }
    });
    let place = Place::new(Backend::Embedded);
    let mut config = place.config(&server);
    config.per_host = 2;
    let report = crawl(config, &[HOST]);
    assert_whole(&report, &place.records());
    assert_eq!(report.counts.finished(), 13);
}
