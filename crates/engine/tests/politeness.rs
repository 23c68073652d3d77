//! Politeness as the servers see it: when each request begins and ends, by host and by address. Each test is named for the
//! public report that it is reduced from; times are compared with what the rules ask for at the least, never at the most.
#![expect(clippy::unwrap_used, reason = "a failed set-up fails the test")]

mod support;

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use engine::CrawlConfig;
use frontier::ScopeRule;
use replay::{LogEntry, Server, ServerConfig, SiteAnswer, SiteRequest};
use support::{Backend, Place, assert_whole, crawl};
use types::{CanonicalUrl, PageRecord};

/// What the clocks of crawler and server may differ by: a request is logged when its head is in, an answer when its body was
/// handed over, which the crawler can only know later.
const SLACK: Duration = Duration::from_millis(20);

fn start(site: impl Fn(&SiteRequest<'_>) -> SiteAnswer + Send + Sync + 'static) -> Server {
    let config = ServerConfig {
        https: None,
        ..ServerConfig::default()
    };
    Server::start(config, Arc::new(site)).unwrap()
}

/// Crawls with one request a host at a time, to the end.
fn politely(
    server: &Server,
    seeds: &[&str],
    change: impl FnOnce(&mut CrawlConfig),
) -> Vec<PageRecord> {
    let place = Place::new(Backend::Embedded);
    let mut config = place.config(server);
    config.scope = ScopeRule::Any;
    config.per_host = 1;
    change(&mut config);
    let report = crawl(config, seeds);
    let records = place.records();
    assert_whole(&report, &records);
    records
}

/// The requests of each host, in the order in which they began.
fn by_host(server: &Server) -> BTreeMap<String, Vec<LogEntry>> {
    let mut hosts: BTreeMap<String, Vec<LogEntry>> = BTreeMap::new();
    for entry in server.log() {
        let url = CanonicalUrl::from_stored(entry.url.clone()).unwrap();
        hosts.entry(url.host().to_string()).or_default().push(entry);
    }
    for requests in hosts.values_mut() {
        requests.sort_by_key(|entry| entry.started);
    }
    hosts
}

/// The pauses between the end of each request and the start of the next.
fn pauses(requests: &[LogEntry]) -> Vec<Duration> {
    let pairs = requests.windows(2);
    pairs
        .map(|pair| pair[1].started.saturating_sub(pair[0].ended) + SLACK)
        .collect()
}

fn assert_pauses(requests: &[LogEntry], least: Duration) {
    for (pause, pair) in pauses(requests).into_iter().zip(requests.windows(2)) {
        assert!(pause >= least, "{pause:?} between {pair:?}");
    }
}

fn links(paths: impl IntoIterator<Item = String>) -> SiteAnswer {
    let anchors = paths
        .into_iter()
        .map(|path| format!("<a href='{path}'>x</a>"));
    SiteAnswer::html(anchors.collect::<String>())
}

/// yasserg/crawler4j#141, rzo1/crawler4j#42: each host has its own pause, in which the others are asked.
#[test]
fn crawler4j_141_hosts_do_not_wait_for_each_other() {
    const DELAY: Duration = Duration::from_millis(300);
    let server = start(|request| match request.path_and_query {
        "/robots.txt" => SiteAnswer::not_found(),
        "/" => links((1..5).map(|number| format!("/{number}"))),
        _ => SiteAnswer::html("x"),
    });
    let seeds: Vec<String> = (0..20)
        .map(|host| format!("http://h{host}.example/"))
        .collect();
    let seeds: Vec<&str> = seeds.iter().map(String::as_str).collect();
    politely(&server, &seeds, |config| config.delay = DELAY);
    let hosts = by_host(&server);
    assert_eq!(hosts.len(), 20);
    for requests in hosts.values() {
        assert_eq!(requests.len(), 6, "robots.txt and five pages");
        assert_pauses(requests, DELAY);
    }
    // While the first host had its five pauses, all the others had theirs too: in a row they would take twenty times as long.
    let first_ended = hosts
        .values()
        .map(|requests| requests[5].ended)
        .min()
        .unwrap();
    let begun_count = hosts
        .values()
        .filter(|requests| requests[0].started < first_ended)
        .count();
    assert_eq!(begun_count, 20);
}

/// Yoko-Co/yoko-crawler#57: the longer of the two pauses counts.
#[test]
fn yoko_crawler_57_a_crawl_delay_raises_the_pause_and_never_lowers_it() {
    const OWN: Duration = Duration::from_millis(300);
    let server = start(
        |request| match (request.authority, request.path_and_query) {
            ("slow.example", "/robots.txt") => SiteAnswer::text("User-agent: *\nCrawl-delay: 1\n"),
            (_, "/robots.txt") => SiteAnswer::text("User-agent: *\nCrawl-delay: 0.01\n"),
            (_, "/") => links(["/1".to_owned(), "/2".to_owned()]),
            _ => SiteAnswer::html("x"),
        },
    );
    let seeds = ["http://slow.example/", "http://quick.example/"];
    politely(&server, &seeds, |config| config.delay = OWN);
    let hosts = by_host(&server);
    assert_pauses(&hosts["http://slow.example"], Duration::from_secs(1));
    assert_pauses(&hosts["http://quick.example"], OWN);
}

/// apify/crawlee-python#1995: Retry-After is kept to, by its host alone.
#[test]
fn crawlee_python_1995_a_retry_after_slows_its_host_and_no_other() {
    let tries = AtomicU64::new(0);
    let server = start(
        move |request| match (request.authority, request.path_and_query) {
            (_, "/robots.txt") => SiteAnswer::not_found(),
            ("busy.example", _) if tries.fetch_add(1, Relaxed) < 2 => {
                SiteAnswer::new(429, "text/plain", "later").with_header("Retry-After", "1")
            }
            ("busy.example", _) => SiteAnswer::html("x"),
            (_, path) => {
                let number: u32 = path.trim_start_matches('/').parse().unwrap_or(0);
                if number < 20 {
                    links([format!("/{}", number + 1)])
                } else {
                    SiteAnswer::html("x")
                }
            }
        },
    );
    let seeds = ["http://busy.example/", "http://well.example/0"];
    let records = politely(&server, &seeds, |_| {});
    let hosts = by_host(&server);
    let busy = &hosts["http://busy.example"];
    assert_eq!(busy.len(), 4, "robots.txt, and three tries: {busy:?}");
    assert_pauses(&busy[1..], Duration::from_secs(1));
    let well_ended = hosts["http://well.example"].last().unwrap().ended;
    assert!(well_ended < busy[3].started, "{well_ended:?} {busy:?}");
    let record = records
        .iter()
        .find(|record| record.url == seeds[0])
        .unwrap();
    assert_eq!((record.status, record.retry_count), (Some(200), 2));
}

/// productdevbook/mavi#275, webrecorder/specs#146: however a host is spelt, it is one host.
#[test]
fn mavi_275_spellings_of_a_host_share_its_pause_and_its_robots_txt() {
    const DELAY: Duration = Duration::from_millis(200);
    let server = start(|request| match request.path_and_query {
        "/robots.txt" => SiteAnswer::not_found(),
        "/" => links(
            [
                "http://SITE.example/1",
                "http://site.example:80/2",
                "http://site.example./3",
                "http://user:password@site.example/4",
                "http://site%2Eexample/5",
            ]
            .map(str::to_owned),
        ),
        _ => SiteAnswer::html("x"),
    });
    politely(&server, &["http://site.example/"], |config| {
        config.delay = DELAY;
    });
    let hosts = by_host(&server);
    assert_eq!(hosts.len(), 1, "{:?}", hosts.keys());
    let requests = &hosts["http://site.example"];
    assert_eq!(requests.len(), 7, "{requests:?}");
    assert_eq!(server.request_count("http://site.example/robots.txt"), 1);
    assert_pauses(requests, DELAY);
}

/// utksh1/SecuScan#2369: a redirect is a request like any other to the host that it leads to.
#[test]
fn secuscan_2369_redirects_to_a_host_keep_its_pause() {
    const DELAY: Duration = Duration::from_millis(300);
    let server = start(
        |request| match (request.authority, request.path_and_query) {
            (_, "/robots.txt") => SiteAnswer::not_found(),
            ("a.example", "/") => links((0..5).map(|number| format!("/{number}"))),
            ("a.example", path) => SiteAnswer::redirect(302, &format!("http://b.example{path}")),
            _ => SiteAnswer::html("x"),
        },
    );
    politely(&server, &["http://a.example/"], |config| {
        config.delay = DELAY;
    });
    let hosts = by_host(&server);
    assert_eq!(
        hosts["http://b.example"].len(),
        6,
        "robots.txt and five pages"
    );
    assert_pauses(&hosts["http://b.example"], DELAY);
}

/// dondai44423/donsetch#155: robots.txt files of different hosts are fetched side by side, and count for the pause.
#[test]
fn donsetch_155_slow_robots_txt_files_are_fetched_side_by_side() {
    const DELAY: Duration = Duration::from_millis(300);
    let server = start(|request| match request.path_and_query {
        "/robots.txt" => SiteAnswer::not_found().with_delay(Duration::from_secs(3)),
        _ => SiteAnswer::html("x"),
    });
    let seeds: Vec<String> = (0..40)
        .map(|host| format!("http://h{host}.example/"))
        .collect();
    let seeds: Vec<&str> = seeds.iter().map(String::as_str).collect();
    politely(&server, &seeds, |config| config.delay = DELAY);
    let hosts = by_host(&server);
    for requests in hosts.values() {
        assert_pauses(requests, DELAY);
    }
    // All were under way at one moment: the last began before the first had its answer.
    let robots = || hosts.values().map(|requests| &requests[0]);
    let last_begun = robots().map(|entry| entry.started).max().unwrap();
    let first_ended = robots().map(|entry| entry.ended).min().unwrap();
    assert!(last_begun < first_ended, "{last_begun:?} {first_ended:?}");
}

/// LAW-Unimi/BUbiNG#8, Norconex/crawler#426, PuerkitoBio/fetchbot#20: a limit on requests to one address, whatever their hosts.
#[test]
fn bubing_8_many_hosts_on_one_address_share_its_limit() {
    let server = start(|request| match request.path_and_query {
        "/robots.txt" => SiteAnswer::not_found(),
        _ => SiteAnswer::html("x").with_delay(Duration::from_millis(30)),
    });
    let seeds: Vec<String> = (0..50)
        .map(|host| format!("http://h{host}.example/"))
        .collect();
    let seeds: Vec<&str> = seeds.iter().map(String::as_str).collect();
    politely(&server, &seeds, |config| config.per_ip = Some(3));
    let log = server.log();
    assert_eq!(log.len(), 100);
    let at_once = |moment: &LogEntry| {
        let under_way = log.iter().filter(|entry| {
            entry.started <= moment.started && moment.started + SLACK < entry.ended
        });
        under_way.count()
    };
    let most = log.iter().map(at_once).max();
    assert!(most <= Some(3), "{most:?} requests at once");
}
