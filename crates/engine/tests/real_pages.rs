//! Crawls of real pages: the shared WARC files replayed on loopback, http and https, with both stores.
#![expect(clippy::unwrap_used, reason = "a failed set-up fails the test")]
#![expect(
    clippy::print_stderr,
    reason = "the figures are part of the test's worth"
)]

mod support;

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use replay::{Archive, Server, ServerConfig};
use support::{BACKENDS, Place, assert_fetched_once, assert_whole, corpora, crawl};
use types::Canonicalizer;

/// Replays WARC files and crawls `urls`, following nothing; each must be fetched exactly once, with a 2xx status.
fn replayed_once(files: &[PathBuf], urls: &[String], distinct_count: usize) {
    let canonicalizer = Canonicalizer::default();
    let canonical: BTreeSet<String> = urls
        .iter()
        .map(|url| canonicalizer.canonicalize(url).unwrap().as_str().to_owned())
        .collect();
    assert_eq!(canonical.len(), distinct_count);
    let seeds: Vec<&str> = urls.iter().map(String::as_str).collect();
    for backend in BACKENDS {
        let archive = Archive::load(files).unwrap();
        let server = Server::start(ServerConfig::default(), Arc::new(archive)).unwrap();
        let place = Place::new(backend);
        let mut config = place.config(&server);
        config.limits.max_depth = Some(0);
        let report = crawl(config, &seeds);
        let records = place.records();
        assert_whole(&report, &records);
        assert_fetched_once(&server, &canonical);
        for record in &records {
            assert!(
                record.status.is_some_and(|status| status < 300),
                "{}: {:?}",
                record.url,
                record.status
            );
            assert_eq!(record.error, None, "{}", record.url);
        }
        eprintln!(
            "{backend:?}: {} URLs once each, {} links discovered, {} store reads, {:.0} pages/s",
            records.len(),
            report.links.discovered,
            report.links.store_reads,
            report.pages_per_second
        );
    }
}

fn page_urls(tsv: &Path) -> Vec<String> {
    let table = fs::read_to_string(tsv).unwrap();
    let mut lines = table.lines();
    let column = lines
        .next()
        .unwrap()
        .split('\t')
        .position(|name| name == "url")
        .unwrap();
    lines
        .map(|line| line.split('\t').nth(column).unwrap().to_owned())
        .collect()
}

#[test]
fn each_real_page_is_fetched_once() {
    let Some(corpora) = corpora() else { return };
    let pages = corpora.join("pages");
    let files: Vec<_> = (1..=3)
        .map(|number| pages.join(format!("pages-0{number}.warc.gz")))
        .collect();
    replayed_once(&files, &page_urls(&pages.join("pages.tsv")), 1_254);
}

#[test]
fn each_common_crawl_page_is_fetched_once() {
    let Some(corpora) = corpora() else { return };
    for (name, count) in [
        ("cc-main-2020-34-head.warc.gz", 16),
        ("cc-main-2024-22-whirlwind.warc.gz", 1),
    ] {
        let file = corpora.join("warc").join(name);
        let archive = Archive::load(std::slice::from_ref(&file)).unwrap();
        let urls: Vec<String> = archive.urls().map(str::to_owned).collect();
        replayed_once(&[file], &urls, count);
    }
}
