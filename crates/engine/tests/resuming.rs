//! Runs that end early, and runs that go on with other settings.
#![expect(clippy::unwrap_used, reason = "a failed set-up fails the test")]

mod support;

use std::{collections::BTreeSet, fs, sync::Arc, time::Duration};

use engine::{Crawl, CrawlConfig, EngineError, ErrorKind, Outcome, Report, SeenMode, StoreConfig};
use replay::{Server, ServerConfig, SiteAnswer, SiteRequest, Synthetic, SyntheticConfig};
use store::testing::Cluster;
use support::{Backend, Place, assert_fetched_once, assert_whole, crawl};
use types::{Canonicalizer, Disposition, FailureKind};

fn site(pages: u64, latency: Duration) -> (Server, Arc<Synthetic>) {
    let site = Arc::new(Synthetic::new(SyntheticConfig {
        pages,
        page_bytes: 1_000,
        ..SyntheticConfig::default()
    }));
    let config = ServerConfig {
        https: None,
        latency,
        ..ServerConfig::default()
    };
    (Server::start(config, site.clone()).unwrap(), site)
}

/// Starts a crawl and hands it to `meddle`; returns how it ended.
fn meddled(config: CrawlConfig, seed: &str, meddle: impl FnOnce(&Crawl)) -> Report {
    let seed = Canonicalizer::default().canonicalize(seed).unwrap();
    let crawl = Crawl::start(config, &[seed]).unwrap();
    meddle(&crawl);
    crawl
        .wait(Duration::from_mins(1))
        .expect("it ends")
        .unwrap()
}

fn wait_for_pages(crawl: &Crawl, count: u64) {
    while crawl.progress().pages < count {
        assert!(
            crawl.wait(Duration::from_millis(5)).is_none(),
            "it ended before {count} pages"
        );
    }
}

#[test]
fn a_crawl_stopped_either_way_goes_on() {
    let place = Place::new(Backend::Embedded);
    // Slow enough that no machine comes to the end before it is stopped.
    let (slow, site_of_all) = site(600, Duration::from_millis(50));
    let start = site_of_all.start_url();
    let mut config = place.config(&slow);
    config.per_host = 4;
    let report = meddled(config, &start, |crawl| {
        wait_for_pages(crawl, 20);
        crawl.stop();
    });
    assert_eq!(report.outcome, Outcome::Stopped);
    assert!(report.identity_holds);
    let fetched: u64 = slow.request_counts().values().sum();
    assert_eq!(
        report.pages + 1,
        fetched,
        "what was under way was finished (robots.txt aside)"
    );
    let (stuck, _) = site(600, Duration::from_secs(30));
    let report = meddled(place.config(&stuck), &start, |crawl| {
        while stuck.request_counts().is_empty() {
            assert!(crawl.wait(Duration::from_millis(5)).is_none());
        }
        crawl.stop_now();
    });
    assert_eq!(report.outcome, Outcome::Stopped);
    assert_eq!(report.resumed_leases_max, 0, "the first stop was clean");
    let (quick, _) = site(600, Duration::ZERO);
    let report = crawl(place.config(&quick), &[&start]);
    assert_whole(&report, &place.records());
    assert_eq!(report.counts.succeeded, 600);
    assert_eq!(
        report.resumed_leases_max, report.leases_max,
        "the second was not"
    );
}

#[test]
fn the_status_of_a_crawl_stopped_among_its_seeds_counts_the_hosts_of_the_store() {
    // So many that their batches fill the channel to the committer several times over.
    const SEEDS: u64 = 200_000;
    let (server, _) = site(10, Duration::from_millis(5));
    let seeds: Vec<_> = (0..SEEDS)
        .map(|number| format!("http://host{number}.example/"))
        .map(|seed| Canonicalizer::default().canonicalize(&seed).unwrap())
        .collect();
    for stop in [Crawl::stop, Crawl::stop_now] {
        let place = Place::new(Backend::Embedded);
        let mut config = place.config(&server);
        // So each host has its seed and nothing else.
        config.limits.max_depth = Some(0);
        let crawl = Crawl::start(config, &seeds).unwrap();
        while crawl.progress().queued == 0 {
            assert!(crawl.wait(Duration::from_millis(1)).is_none());
        }
        stop(&crawl);
        let report = crawl.wait(Duration::from_mins(1)).unwrap().unwrap();
        assert!(report.counts.discovered < SEEDS, "it stopped among them");
        let figures = engine::status(place.path()).unwrap().figures.unwrap();
        assert_eq!(figures.counts.queued, report.counts.queued);
        assert_eq!(figures.hosts, report.counts.queued);
    }
}

#[test]
fn limits_on_bytes_and_time_end_a_run() {
    let (server, site) = site(400, Duration::from_millis(5));
    let place = Place::new(Backend::Embedded);
    let mut config = place.config(&server);
    config.limits.max_bytes = Some(100_000);
    let report = crawl(config.clone(), &[&site.start_url()]);
    assert_eq!(report.outcome, Outcome::LimitReached);
    assert!(
        report.wire_bytes >= 100_000 && report.pages < 400,
        "{} bytes",
        report.wire_bytes
    );
    config.limits.max_bytes = None;
    config.limits.max_time = Some(Duration::from_millis(1));
    let report = crawl(config.clone(), &[&site.start_url()]);
    assert_eq!(report.outcome, Outcome::LimitReached);
    config.limits.max_time = None;
    let report = crawl(config.clone(), &[&site.start_url()]);
    assert_whole(&report, &place.records());
    // A crawl with nothing left is finished, whatever limit it is past.
    config.limits.max_bytes = Some(1);
    let report = crawl(config, &[&site.start_url()]);
    assert_eq!(report.outcome, Outcome::AlreadyFinished);
    assert_fetched_once(&server, &site.urls().collect::<BTreeSet<_>>());
}

#[test]
fn a_run_without_archive_leaves_the_archive_alone() {
    let (server, site) = site(300, Duration::ZERO);
    let place = Place::new(Backend::Embedded);
    let mut config = place.config(&server);
    config.warc_bytes_max = 20_000;
    for (max_pages, warc) in [(Some(100), true), (Some(200), false), (None, true)] {
        config.limits.max_pages = max_pages;
        config.warc = warc;
        crawl(config.clone(), &[&site.start_url()]);
    }
    let records = place.records();
    assert_eq!(records.len(), 300);
    let archived = records
        .iter()
        .filter(|record| record.warc.is_some())
        .count();
    assert_eq!(archived, 200);
    let names: BTreeSet<_> = place
        .warc_files()
        .iter()
        .map(|file| file.file_name().unwrap().to_string_lossy().into_owned())
        .collect();
    for record in records.iter().filter_map(|record| record.warc.as_ref()) {
        assert!(names.contains(&record.file), "{} is gone", record.file);
    }
}

/// Two sites, each of which links to one page of its own.
fn two_sites() -> Server {
    let answer = |request: &SiteRequest<'_>| match request.path_and_query {
        "/" => SiteAnswer::html("<a href=/next>next</a> <a href=/third>third</a>"),
        "/next" | "/third" => SiteAnswer::html("the end"),
        _ => SiteAnswer::not_found(),
    };
    let config = ServerConfig {
        https: None,
        ..ServerConfig::default()
    };
    Server::start(config, Arc::new(answer)).unwrap()
}

#[test]
fn a_second_run_keeps_the_scope_of_the_first_ones_seeds() {
    let server = two_sites();
    let place = Place::new(Backend::Embedded);
    let mut config = place.config(&server);
    config.limits.max_pages = Some(1);
    crawl(config.clone(), &["http://one.example/"]);
    config.limits.max_pages = None;
    let report = crawl(config, &["http://two.example/"]);
    assert_whole(&report, &place.records());
    let expected = ["one", "two"]
        .iter()
        .flat_map(|name| ["", "next", "third"].map(|path| format!("http://{name}.example/{path}")))
        .collect();
    assert_fetched_once(&server, &expected);
}

#[test]
fn other_rules_of_canonicalization_are_refused() {
    let server = two_sites();
    let place = Place::new(Backend::Embedded);
    let mut config = place.config(&server);
    crawl(config.clone(), &["http://one.example/"]);
    config.canonical.sort_query = true;
    let refusal = Crawl::start(config, &[]).err().unwrap();
    assert!(
        refusal.to_string().contains("rules of canonicalization"),
        "{refusal}"
    );
}

#[test]
fn a_mode_that_would_hide_what_an_earlier_one_lost_is_refused() {
    let (server, site) = site(300, Duration::ZERO);
    let place = Place::new(Backend::Embedded);
    let in_mode = |seen_mode, fixed_filter_urls| CrawlConfig {
        seen_mode,
        fixed_filter_urls,
        ..place.config(&server)
    };
    let start_url = site.start_url();
    // A filter of three URLs' bits loses most of them.
    let report = crawl(in_mode(SeenMode::Bloom, Some(3)), &[&start_url]);
    assert!(report.filter.expected_lost > 1.0, "{report:?}");
    for mode in [SeenMode::BloomStore, SeenMode::Exact, SeenMode::Store] {
        let refused = Crawl::start(in_mode(mode, None), &[]).err().unwrap();
        assert_eq!(refused.kind(), ErrorKind::Config, "{mode}");
        assert!(refused.to_string().contains("go on in bloom"), "{refused}");
    }
    let again = crawl(in_mode(SeenMode::Bloom, Some(3)), &[&start_url]);
    assert!(again.filter.expected_lost >= report.filter.expected_lost);
}

#[test]
fn a_folder_and_a_store_of_two_crawls_are_refused_and_left_alone() {
    let server = two_sites();
    let embedded = Place::new(Backend::Embedded);
    crawl(embedded.config(&server), &["http://one.example/"]);
    let pages = fs::read(embedded.path().join("pages.jsonl")).unwrap();
    let mut config = embedded.config(&server);
    config.store = StoreConfig::Postgres {
        uri: Cluster::shared().create_database(),
        schema: "bloomcrawl".to_owned(),
    };
    for _ in 0..2 {
        let refusal = Crawl::start(config.clone(), &[]).err().unwrap();
        assert!(matches!(refusal, EngineError::Mismatch { .. }), "{refusal}");
    }
    // The refused store is still good for a crawl of its own, which the first folder then does not fit either.
    let other = Place::new(Backend::Embedded);
    let mut fresh = other.config(&server);
    fresh.store = config.store.clone();
    crawl(fresh, &["http://two.example/"]);
    let refusal = Crawl::start(config, &[]).err().unwrap();
    assert!(matches!(refusal, EngineError::Mismatch { .. }), "{refusal}");
    assert_eq!(
        fs::read(embedded.path().join("pages.jsonl")).unwrap(),
        pages
    );
    // The seeds are the scope of the crawl; without them it would silently shrink.
    let seeds = embedded.path().join("seeds.txt");
    let kept = fs::read(&seeds).unwrap();
    fs::remove_file(&seeds).unwrap();
    let refusal = Crawl::start(embedded.config(&server), &[]).err().unwrap();
    assert!(matches!(refusal, EngineError::Damaged { .. }), "{refusal}");
    fs::write(&seeds, kept).unwrap();
    // Outputs without an identity are somebody's work, too.
    fs::remove_file(embedded.path().join("crawl.json")).unwrap();
    fs::remove_dir_all(embedded.path().join("store")).unwrap();
    let refusal = Crawl::start(embedded.config(&server), &[]).err().unwrap();
    assert!(matches!(refusal, EngineError::Mismatch { .. }), "{refusal}");
    assert_eq!(
        fs::read(embedded.path().join("pages.jsonl")).unwrap(),
        pages
    );
}

#[test]
fn a_store_that_lost_entries_is_refused() {
    let server = two_sites();
    let place = Place::new(Backend::Postgres);
    let mut config = place.config(&server);
    config.limits.max_pages = Some(1);
    crawl(config.clone(), &["http://one.example/"]);
    let StoreConfig::Postgres { uri, .. } = &config.store else {
        panic!("the place has a database")
    };
    for (damage, expected) in [
        (
            "DELETE FROM bloomcrawl.queue WHERE url LIKE '%next'",
            "1 queued URLs, but its accounts say 2",
        ),
        ("DELETE FROM bloomcrawl.url_key", "0 known keys"),
    ] {
        Cluster::execute(
            uri,
            "CREATE TABLE IF NOT EXISTS public.spare AS TABLE bloomcrawl.queue",
        );
        Cluster::execute(uri, damage);
        let refusal = Crawl::start(config.clone(), &[]).err().unwrap();
        assert!(refusal.to_string().contains(expected), "{refusal}");
        Cluster::execute(
            uri,
            "INSERT INTO bloomcrawl.queue SELECT * FROM public.spare WHERE key NOT IN (SELECT key FROM bloomcrawl.queue)",
        );
    }
}

#[test]
fn a_robots_txt_that_breaks_off_lets_nothing_through() {
    let answer = |request: &SiteRequest<'_>| {
        if request.path_and_query == "/robots.txt" {
            SiteAnswer::text("User-agent: *\nDisallow: /private\nDisallow: /\n")
                .with_fault(replay::Fault::CutBody(20))
        } else {
            SiteAnswer::html("secret")
        }
    };
    let config = ServerConfig {
        https: None,
        ..ServerConfig::default()
    };
    let server = Server::start(config, Arc::new(answer)).unwrap();
    let place = Place::new(Backend::Embedded);
    let mut config = place.config(&server);
    config.host_attempts_max = 1;
    let report = crawl(config, &["http://one.example/"]);
    let records = place.records();
    assert_whole(&report, &records);
    assert_eq!(records[0].disposition, Disposition::Disregarded);
    assert_eq!(records[0].error, Some(FailureKind::RobotsUnreachable));
    assert_eq!(server.request_count("http://one.example/"), 0);
}

#[test]
fn a_run_that_reaches_no_host_gives_up_no_url() {
    let server = two_sites();
    let place = Place::new(Backend::Embedded);
    let reachable = place.config(&server);
    let mut cut_off = reachable.clone();
    cut_off.host_attempts_max = 1;
    // Port 9 (discard) of loopback answers nobody.
    cut_off.fetch.connect_to = vec!["::127.0.0.1:9".parse().unwrap()];
    let seed = Canonicalizer::default()
        .canonicalize("http://one.example/")
        .unwrap();
    let seeds = std::slice::from_ref(&seed);
    let fault = Crawl::start(cut_off, seeds)
        .unwrap()
        .wait(Duration::from_mins(1))
        .expect("it ends")
        .err()
        .unwrap();
    assert!(matches!(fault, EngineError::NothingReached(_)), "{fault}");
    assert!(fault.is_resumable());
    let report = crawl(reachable, &["http://one.example/"]);
    assert_whole(&report, &place.records());
    assert_eq!(report.counts.succeeded, 3);
}

#[test]
fn a_store_whose_creation_was_cut_short_is_created_anew() {
    let server = two_sites();
    let place = Place::new(Backend::Embedded);
    // What a death in the midst of creation leaves: a part, beside the store's own folder.
    let part = place.path().join("store.new");
    fs::create_dir_all(part.join("keyspaces")).unwrap();
    fs::write(part.join("0.jnl"), b"").unwrap();
    let report = crawl(place.config(&server), &["http://one.example/"]);
    assert_whole(&report, &place.records());
    assert!(!part.exists());
}
