//! Crawls of generated sites: every page once, whatever the filter gets wrong, and few store reads.
#![expect(
    clippy::print_stderr,
    reason = "the figures are part of the test's worth"
)]

mod support;

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use replay::{Server, ServerConfig, Synthetic, SyntheticConfig};
use support::{BACKENDS, Backend, Place, assert_fetched_once, assert_whole, crawl};

fn site(pages: u64, page_bytes: u32, seed: u64) -> (Server, Arc<Synthetic>) {
    let site = Arc::new(Synthetic::new(SyntheticConfig {
        pages,
        page_bytes,
        seed,
        ..SyntheticConfig::default()
    }));
    let server = Server::start(
        ServerConfig {
            https: None,
            ..ServerConfig::default()
        },
        site.clone(),
    )
    .expect("the site's server starts");
    (server, site)
}

/// How many seeds the long tests run with: one, or as many as `BLOOMCRAWL_TEST_SEEDS` says.
fn seed_count() -> u64 {
    std::env::var("BLOOMCRAWL_TEST_SEEDS")
        .ok()
        .and_then(|count| count.parse().ok())
        .unwrap_or(1)
}

/// A filter with the bits of 500 URLs answers "yes" for nearly all of 20,000; only the store's word admits them.
fn false_positives_lose_nothing(backend: Backend, concurrency: u32) {
    for seed in 0..seed_count() {
        let (server, site) = site(20_000, 3_000, seed);
        let place = Place::new(backend);
        let mut config = place.config(&server);
        config.concurrency = concurrency;
        config.fixed_filter_urls = Some(500);
        let report = crawl(config, &[&site.start_url()]);
        assert_whole(&report, &place.records());
        assert_fetched_once(&server, &site.urls().collect::<BTreeSet<_>>());
        assert!(
            report.links.false_positives > 10_000,
            "only {} false positives",
            report.links.false_positives
        );
        eprintln!(
            "{backend:?}, {concurrency} connections, seed {seed}: 20,000 pages once each, {} false positives, {:.0} pages/s",
            report.links.false_positives, report.pages_per_second
        );
    }
}

#[test]
fn false_positives_lose_nothing_embedded_1() {
    false_positives_lose_nothing(Backend::Embedded, 1);
}

#[test]
fn false_positives_lose_nothing_embedded_64() {
    false_positives_lose_nothing(Backend::Embedded, 64);
}

#[test]
fn false_positives_lose_nothing_postgres_1() {
    false_positives_lose_nothing(Backend::Postgres, 1);
}

#[test]
fn false_positives_lose_nothing_postgres_64() {
    false_positives_lose_nothing(Backend::Postgres, 64);
}

#[test]
fn the_store_is_read_for_at_most_one_link_in_a_hundred() {
    for backend in BACKENDS {
        let (server, site) = site(20_000, 3_000, 7);
        let place = Place::new(backend);
        let mut config = place.config(&server);
        // Sized as tightly as a user would: the filter reaches its planned rate by the end.
        config.expected_urls = 20_000;
        let report = crawl(config, &[&site.start_url()]);
        assert_whole(&report, &place.records());
        let links = report.links;
        eprintln!(
            "{backend:?}: {} links, {} store reads, {} confirm round trips, {} commits; predicted {:.3} %, measured {:.3} %",
            links.discovered,
            links.store_reads,
            report.store.confirm_round_trips,
            report.store.commits,
            report.filter.predicted_rate * 100.0,
            report.filter.measured_rate * 100.0,
        );
        assert!(
            links.store_reads * 100 <= links.discovered,
            "{} store reads",
            links.store_reads
        );
        let milliseconds =
            u64::try_from(Duration::from_secs_f64(report.elapsed_seconds).as_millis());
        let milliseconds = milliseconds.expect("it did not take that long");
        // A slow machine spreads the suspects over more time, and none waits longer than a tenth of a second.
        let round_trips_max = (links.discovered / 10_000).max(milliseconds / 100);
        assert!(
            report.store.confirm_round_trips <= round_trips_max,
            "{:?}",
            report.store
        );
        assert_eq!(report.store.confirmed_keys, links.store_reads);
    }
}

#[test]
fn limits_stop_and_a_second_run_goes_on() {
    let (server, site) = site(300, 1_000, 3);
    let place = Place::new(Backend::Embedded);
    let mut config = place.config(&server);
    config.limits.max_pages = Some(100);
    let report = crawl(config.clone(), &[&site.start_url()]);
    assert_eq!(report.outcome, engine::Outcome::LimitReached);
    assert_eq!(report.pages, 100);
    assert!(report.identity_holds);
    config.limits.max_pages = None;
    let report = crawl(config.clone(), &[&site.start_url()]);
    assert_whole(&report, &place.records());
    assert_eq!(report.resumed_leases_max, 0, "the first run ended cleanly");
    assert_fetched_once(&server, &site.urls().collect::<BTreeSet<_>>());
    let report = crawl(config, &[&site.start_url()]);
    assert_eq!(report.outcome, engine::Outcome::AlreadyFinished);
    assert_eq!(report.pages, 300);
    assert_eq!(report.requests_this_run, 0);
}
