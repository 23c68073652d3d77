//! A crawl of a generated site, and what is asked about it.

use std::{
    fs,
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use replay::{Server, ServerConfig, Site as _, SiteRequest, Synthetic, SyntheticConfig};
use serde_json::Value;

use crate::support::{Run, command, folder, run};

/// What a page takes of a site that was slowed down.
const SLOW_LATENCY: Duration = Duration::from_secs(2);

/// A site that is crawled in a folder of its own.
pub(crate) struct Crawl {
    pub(crate) site: Arc<Synthetic>,
    /// How many pages are asked for before the site is slow.
    quick_pages: Arc<AtomicU64>,
    server: Server,
    folder: tempfile::TempDir,
    pub(crate) store: String,
}

impl Crawl {
    /// Serves a site of so many pages.
    pub(crate) fn of(pages: u64, store: &str) -> Self {
        let site = Arc::new(Synthetic::new(SyntheticConfig {
            pages,
            page_bytes: 2_000,
            seed: 11,
            ..SyntheticConfig::default()
        }));
        let config = ServerConfig {
            https: None,
            ..ServerConfig::default()
        };
        let quick_pages = Arc::new(AtomicU64::new(u64::MAX));
        let server = {
            let (site, quick_pages) = (Arc::clone(&site), Arc::clone(&quick_pages));
            let asked = AtomicU64::new(0);
            let answer = move |request: &SiteRequest<'_>| {
                let is_quick =
                    asked.fetch_add(1, Ordering::Relaxed) < quick_pages.load(Ordering::Relaxed);
                let latency = if is_quick {
                    Duration::ZERO
                } else {
                    SLOW_LATENCY
                };
                site.answer(request).with_delay(latency)
            };
            Server::start(config, Arc::new(answer)).expect("the server starts")
        };
        let folder = folder();
        // A filter from the first URL on, saved often.
        fs::write(
            folder.path().join("config.toml"),
            "fixed-filter-urls = 5000\ncheckpoint-interval = \"100ms\"\n",
        )
        .expect("the settings are written");
        Self {
            site,
            quick_pages,
            server,
            folder,
            store: store.to_owned(),
        }
    }

    /// Has each page take two seconds once so many more were asked for. A crawl of hundreds more, a few at a time, does
    /// not end while it is looked at.
    pub(crate) fn slow_after(&self, page_count: u64) {
        let asked_count: u64 = self.server.request_counts().values().sum();
        self.quick_pages
            .store(asked_count + page_count, Ordering::Relaxed);
    }

    fn command(&self, flags: &str) -> Command {
        let words = format!(
            "crawl {} --data data --store {} --delay 0 --connect-to ::{} --quiet {flags}",
            self.site.start_url(),
            self.store,
            self.server.http_address()
        );
        let arguments: Vec<&str> = words.split_whitespace().collect();
        let mut command = command(self.folder.path(), &arguments);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command
    }

    pub(crate) fn spawn(&self, flags: &str) -> Child {
        self.command(flags).spawn().expect("the binary starts")
    }

    pub(crate) fn run(&self, flags: &str) -> Option<i32> {
        let status = self.command(flags).status().expect("the binary starts");
        status.code()
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    pub(crate) fn status(&self) -> Value {
        let run = run(self.folder.path(), &["status", "--data", "data", "--json"]);
        assert_eq!(run.code, Some(0), "{run:?}");
        json(&run)
    }

    pub(crate) fn verify(&self) -> Run {
        let arguments = ["verify", "--data", "data", "--store", &self.store, "--json"];
        run(self.folder.path(), &arguments)
    }

    /// Verifies that all is well, and returns what was found.
    pub(crate) fn verify_clean(&self) -> Value {
        let run = self.verify();
        let found = json(&run);
        assert_eq!(run.code, Some(0), "{found:#}");
        assert_eq!(found["is_clean"], true);
        found
    }

    /// Verifies that each of `kinds` is found, of `what`.
    pub(crate) fn verify_finds(&self, kinds: &[&str], what: &str) {
        let run = self.verify();
        assert_eq!(run.code, Some(1), "{kinds:?}: {run:?}");
        let found = json(&run);
        for kind in kinds {
            let violations = found["violations"].as_array().expect("a list");
            let violation = violations
                .iter()
                .find(|violation| violation["kind"] == *kind)
                .unwrap_or_else(|| panic!("{kind} is missing: {found:#}"));
            let shown = violation["shown"].as_array().expect("a list");
            assert!(
                shown
                    .iter()
                    .any(|text| text.as_str().is_some_and(|text| text.contains(what))),
                "{kind} does not name {what}: {violation:#}"
            );
        }
    }
}

fn json(run: &Run) -> Value {
    serde_json::from_str(&run.stdout).unwrap_or_else(|error| panic!("{error}: {run:?}"))
}
