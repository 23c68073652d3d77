//! Public bug reports on HTTP as a whole crawl meets it, each test named for its source.
#![expect(clippy::unwrap_used, reason = "a failed set-up fails the test")]

mod support;

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant},
};

use engine::{CrawlConfig, Report};
use replay::{Fault, Server, ServerConfig, SiteAnswer, SiteRequest};
use support::{Backend, Place, assert_whole, crawl};
use types::{Disposition, FailureKind, PageRecord, Truncation};

/// Crawls a site to its end, served over http and https; robots.txt files are not there.
fn crawled(
    seeds: &[&str],
    change: impl FnOnce(&mut CrawlConfig),
    site: impl Fn(&SiteRequest<'_>) -> SiteAnswer + Send + Sync + 'static,
) -> (Server, Report, BTreeMap<String, PageRecord>) {
    let site = move |request: &SiteRequest<'_>| match request.path_and_query {
        "/robots.txt" => SiteAnswer::not_found(),
        _ => site(request),
    };
    let server = Server::start(ServerConfig::default(), Arc::new(site)).unwrap();
    let place = Place::new(Backend::Embedded);
    let mut config = place.config(&server);
    change(&mut config);
    let report = crawl(config, seeds);
    let records = place.records();
    assert_whole(&report, &records);
    let records = records.into_iter();
    let records = records.map(|record| (record.url.clone(), record)).collect();
    (server, report, records)
}

/// xroche/httrack#159, xroche/httrack#471: what a page redirects to is another URL if only its scheme differs.
#[test]
fn httrack_159_a_redirect_to_the_same_address_over_https_is_followed() {
    let (_, _, records) = crawled(
        &["http://site.example/x"],
        |_| {},
        |request| match request.scheme {
            "http" => SiteAnswer::redirect(301, "https://site.example/x"),
            _ => SiteAnswer::html("<a href=/y>y</a>"),
        },
    );
    assert_eq!(records["http://site.example/x"].status, Some(301));
    assert_eq!(records["https://site.example/x"].status, Some(200));
    assert_eq!(records["https://site.example/y"].status, Some(200));
}

/// apify/crawlee#2173, apify/crawlee-python#1606, projectdiscovery/katana#1325: scope holds on every hop.
#[test]
fn crawlee_2173_no_redirect_leads_out_of_scope() {
    let (server, report, _) = crawled(
        &["http://site.example/"],
        |_| {},
        |request| match (request.authority, request.path_and_query) {
            ("site.example", "/") => SiteAnswer::html("<a href=/out>out</a><a href=/in>in</a>"),
            ("site.example", "/out") => SiteAnswer::redirect(302, "http://other.example/"),
            ("site.example", "/in") => SiteAnswer::redirect(302, "http://www.site.example/1"),
            _ => SiteAnswer::html("x"),
        },
    );
    let asked = server.request_counts();
    assert!(
        asked.keys().all(|url| !url.contains("other.example")),
        "{asked:?}"
    );
    assert!(asked.contains_key("http://www.site.example/1"), "{asked:?}");
    assert_eq!(report.links.rejected, 1);
}

/// hakluke/hakrawler#145: a site whose certificate nobody vouches for is reported as such.
#[test]
fn hakrawler_145_an_untrusted_certificate_is_a_failure_with_its_reason() {
    let (_, report, records) = crawled(
        &["https://site.example/", "http://other.example/"],
        |config| config.fetch.ca_pem = None,
        |_| SiteAnswer::html("x"),
    );
    // Whichever of the two is done with first, the other is waited for.
    let record = &records["https://site.example/"];
    assert_ne!(record.disposition, Disposition::Succeeded);
    let detail = record.error_detail.as_deref().unwrap_or_default();
    assert!(
        record.error == Some(FailureKind::Tls) || detail.contains("tls"),
        "{record:?}"
    );
    assert_eq!(report.counts.succeeded, 1);
}

/// crwlrsoft/crawler#50: a server that is always busy is given up after so many tries.
#[test]
fn crawler_50_errors_without_end_end() {
    let (server, _, records) = crawled(
        &["http://site.example/"],
        |config| config.attempts_max = 2,
        |request| match request.path_and_query {
            "/" => SiteAnswer::html("<a href=/busy>busy</a><a href=/1>1</a>"),
            "/busy" => SiteAnswer::new(503, "text/html", "busy"),
            _ => SiteAnswer::html("x"),
        },
    );
    let record = &records["http://site.example/busy"];
    assert_eq!(record.disposition, Disposition::Failed);
    assert_eq!((record.status, record.retry_count), (Some(503), 1));
    assert_eq!(server.request_count("http://site.example/busy"), 2);
}

/// Yoko-Co/yoko-crawler#82, riceharvest/agents-first-toolkit#4: no server holds a place for longer than the time for one
/// exchange, and no other host waits for it.
#[test]
fn yoko_crawler_82_slow_and_endless_answers_end() {
    let begun = Instant::now();
    let (server, _, records) = crawled(
        &[
            "http://slow.example/",
            "http://endless.example/",
            "http://well.example/0",
        ],
        |config| {
            config.fetch.total_timeout = Duration::from_secs(3);
            config.fetch.wire_bytes_max = 1 << 20;
            config.attempts_max = 1;
        },
        |request| match (request.authority, request.path_and_query) {
            ("slow.example", _) => SiteAnswer::html("x".repeat(1_000))
                .with_fault(Fault::Stall(Duration::from_mins(10))),
            ("endless.example", _) => SiteAnswer::html(vec![b'x'; 8 << 20]),
            (_, path) => {
                let number: u32 = path.trim_start_matches('/').parse().unwrap();
                SiteAnswer::html(format!("<a href=/{}>next</a>", (number + 1) % 30))
            }
        },
    );
    assert!(
        begun.elapsed() < Duration::from_mins(5),
        "it would take ten minutes"
    );
    let slow = &records["http://slow.example/"];
    assert!(
        slow.truncated == Some(Truncation::Time) || slow.error == Some(FailureKind::TotalTimeout),
        "{slow:?}"
    );
    let endless = &records["http://endless.example/"];
    assert_eq!(endless.truncated, Some(Truncation::Length), "{endless:?}");
    assert_eq!(endless.wire_bytes, 1 << 20);
    // The well one has all its thirty pages before the slow one has ended.
    let log = server.log();
    let well = log
        .iter()
        .filter(|entry| entry.url.contains("well.example"));
    assert_eq!(well.count(), 31, "robots.txt and thirty pages");
}
