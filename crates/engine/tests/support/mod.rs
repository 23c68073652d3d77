//! What the engine's tests share: crawls of local sites with either store, and what came of them.
#![expect(
    dead_code,
    reason = "each test binary uses its own part of this module"
)]
#![expect(clippy::unwrap_used, reason = "a failed set-up fails the test")]
#![expect(clippy::print_stderr, reason = "a skipped test says why")]

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use engine::{Crawl, CrawlConfig, Outcome, Report, StoreConfig};
use replay::Server;
use store::testing::Cluster;
use types::{CanonicalUrl, Canonicalizer, PageRecord};

/// The longest that any crawl of a test may take.
const PATIENCE: Duration = Duration::from_mins(10);

/// Which store a test runs with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Backend {
    Embedded,
    Postgres,
}

pub(crate) const BACKENDS: [Backend; 2] = [Backend::Embedded, Backend::Postgres];

/// The folder of the corpora, or `None` after saying that the test is skipped.
pub(crate) fn corpora() -> Option<PathBuf> {
    let folder = std::env::var_os("BLOOMCRAWL_CORPORA").map(PathBuf::from);
    if folder.is_none() {
        eprintln!("skipped: BLOOMCRAWL_CORPORA is not set, so there are no corpora to crawl");
    }
    folder.map(|folder| folder.join("corpora"))
}

/// A crawl's data folder, removed at the end of the test.
pub(crate) struct Place {
    folder: tempfile::TempDir,
    store: StoreConfig,
}

impl Place {
    /// Makes a folder, and a database where the backend needs one.
    pub(crate) fn new(backend: Backend) -> Self {
        let store = match backend {
            Backend::Embedded => StoreConfig::Embedded,
            Backend::Postgres => StoreConfig::Postgres {
                uri: Cluster::shared().create_database(),
                schema: "bloomcrawl".to_owned(),
            },
        };
        Self {
            folder: tempfile::tempdir().unwrap(),
            store,
        }
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The settings of an impatient crawl of the sites that `server` serves.
    pub(crate) fn config(&self, server: &Server) -> CrawlConfig {
        let mut config = CrawlConfig {
            data: self.path().to_path_buf(),
            store: self.store.clone(),
            delay: Duration::ZERO,
            per_host: 64,
            expected_urls: 100_000,
            cache_bytes: 4 << 20,
            ..CrawlConfig::default()
        };
        config.fetch.connect_to = vec![format!(":80:{}", server.http_address()).parse().unwrap()];
        if let Some(https) = server.https_address() {
            config
                .fetch
                .connect_to
                .push(format!(":443:{https}").parse().unwrap());
            config.fetch.ca_pem = Some(server.ca_pem().as_bytes().to_vec());
        }
        // Hosts with a port of their own are served as well.
        config
            .fetch
            .connect_to
            .push(format!("::{}", server.http_address()).parse().unwrap());
        config
    }

    /// The page records, each line parsed.
    pub(crate) fn records(&self) -> Vec<PageRecord> {
        fs::read_to_string(self.path().join("pages.jsonl"))
            .unwrap()
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    /// The WARC files in order.
    pub(crate) fn warc_files(&self) -> Vec<PathBuf> {
        let mut files: Vec<_> = fs::read_dir(self.path().join("warc"))
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        files.sort();
        files
    }
}

/// Runs a crawl to its end.
pub(crate) fn crawl(config: CrawlConfig, seeds: &[&str]) -> Report {
    let canonicalizer = Canonicalizer::new(config.canonical.clone());
    let seeds: Vec<CanonicalUrl> = seeds
        .iter()
        .map(|seed| canonicalizer.canonicalize(seed).unwrap())
        .collect();
    let crawl = Crawl::start(config, &seeds).unwrap();
    crawl
        .wait(PATIENCE)
        .expect("the crawl ends in time")
        .unwrap()
}

/// Asserts what holds after every finished crawl: the identity, and that each record is of another URL.
pub(crate) fn assert_whole(report: &Report, records: &[PageRecord]) {
    assert_eq!(report.outcome, Outcome::Finished);
    assert!(
        report.identity_holds,
        "the accounting identity does not hold: {:?}",
        report.counts
    );
    assert_eq!(report.counts.queued, 0);
    let urls: BTreeSet<_> = records.iter().map(|record| &record.url).collect();
    assert_eq!(urls.len(), records.len(), "a URL has two records");
    assert_eq!(records.len() as u64, report.counts.finished());
}

/// Asserts that the server was asked for exactly `urls`, each once; robots.txt aside.
pub(crate) fn assert_fetched_once(server: &Server, urls: &BTreeSet<String>) {
    let counts: BTreeMap<String, u64> = server
        .request_counts()
        .into_iter()
        .filter(|(url, _)| !url.ends_with("/robots.txt"))
        .collect();
    let asked: BTreeSet<String> = counts.keys().cloned().collect();
    let missing: Vec<_> = urls.difference(&asked).take(5).collect();
    let strange: Vec<_> = asked.difference(urls).take(5).collect();
    assert!(
        missing.is_empty(),
        "{} URLs were not fetched, such as {missing:?}",
        urls.difference(&asked).count()
    );
    assert!(strange.is_empty(), "fetched beyond the truth: {strange:?}");
    let twice: Vec<_> = counts
        .iter()
        .filter(|(_, count)| **count != 1)
        .take(5)
        .collect();
    assert!(twice.is_empty(), "fetched more than once: {twice:?}");
}
