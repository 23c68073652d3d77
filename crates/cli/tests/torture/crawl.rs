//! A crawl that is run again and again with the same command, and killed.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Child, ExitStatus},
    thread,
    time::{Duration, Instant},
};

use crate::{
    site::Site,
    support::{Run, command},
};

/// How often a process is looked at.
const POLL_PAUSE: Duration = Duration::from_millis(2);

/// The default cap: twice the connections, at least 128.
pub(crate) const LEASES_MAX: u64 = 128;

/// A crawl in a folder of its own.
pub(crate) struct Crawl {
    folder: PathBuf,
    words: Vec<String>,
}

/// A run that goes on in the background, with its output in files.
pub(crate) struct Running {
    child: Child,
    folder: PathBuf,
}

impl Crawl {
    /// Prepares a crawl of `site` into `folder/data`, with checkpoints so frequent, and a filter from the first URL on, that
    /// every run reads a snapshot and the keys logged since; and with archives so small that there are several.
    pub(crate) fn new(folder: &Path, site: &Site, store: &str) -> Self {
        let settings =
            "fixed-filter-urls = 20000\ncheckpoint-interval = \"100ms\"\nwarc-size = \"300KB\"\n";
        fs::write(folder.join("config.toml"), settings).expect("the settings are written");
        Self {
            folder: folder.to_owned(),
            words: site.crawl_words(store),
        }
    }

    /// Returns the data folder.
    pub(crate) fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    /// Starts the command.
    pub(crate) fn start(&self) -> Running {
        let output = |name: &str| File::create(self.folder.join(name)).expect("an output file");
        let words: Vec<&str> = self.words.iter().map(String::as_str).collect();
        let child = command(&self.folder, &words)
            .stdout(output("stdout"))
            .stderr(output("stderr"))
            .spawn()
            .expect("the binary starts");
        Running {
            child,
            folder: self.folder.clone(),
        }
    }

    /// Runs the command to its end.
    ///
    /// # Panics
    ///
    /// Panics when it has not ended by itself after `patience`.
    pub(crate) fn finish(&self, patience: Duration) -> Run {
        self.start().finish(patience)
    }
}

impl Running {
    /// Waits until the server has answered `count` requests for pages.
    ///
    /// # Panics
    ///
    /// Panics when the run ends before, or does not come so far.
    pub(crate) fn wait_for_requests(&mut self, site: &Site, count: u64) {
        assert!(self.comes_to(site, count), "the crawl ended by itself");
    }

    /// Waits until the server has answered `count` requests for pages, or the run has ended before: false.
    ///
    /// # Panics
    ///
    /// Panics when neither comes.
    pub(crate) fn comes_to(&mut self, site: &Site, count: u64) -> bool {
        let begun = Instant::now();
        while site.request_count() < count {
            assert!(
                begun.elapsed() < Duration::from_mins(2),
                "the crawl does not come to {count} requests"
            );
            if self.has_ended() {
                return false;
            }
            thread::sleep(POLL_PAUSE);
        }
        true
    }

    /// Returns whether the run has ended.
    pub(crate) fn has_ended(&mut self) -> bool {
        self.child.try_wait().expect("the child is ours").is_some()
    }

    /// Kills the run where it stands.
    pub(crate) fn kill(mut self) {
        self.child.kill().expect("the child is ours");
        self.child.wait().expect("the child is ours");
    }

    /// Waits for the end of the run.
    ///
    /// # Panics
    ///
    /// Panics when it has not ended by itself after `patience`.
    pub(crate) fn finish(mut self, patience: Duration) -> Run {
        let run = self.try_finish(patience);
        run.unwrap_or_else(|| {
            panic!(
                "the crawl did not end within {patience:?}; it wrote: {}",
                self.written("stderr")
            )
        })
    }

    /// Waits for the end of the run; `None`, and the run is killed, if it has not ended after `patience`.
    pub(crate) fn try_finish(&mut self, patience: Duration) -> Option<Run> {
        let deadline = Instant::now() + patience;
        loop {
            if let Some(status) = self.child.try_wait().expect("the child is ours") {
                return Some(self.run(status));
            }
            if Instant::now() >= deadline {
                self.child.kill().expect("the child is ours");
                self.child.wait().expect("the child is ours");
                return None;
            }
            thread::sleep(POLL_PAUSE);
        }
    }

    fn run(&self, status: ExitStatus) -> Run {
        Run {
            code: status.code(),
            stdout: self.written("stdout"),
            stderr: self.written("stderr"),
        }
    }

    fn written(&self, name: &str) -> String {
        fs::read_to_string(self.folder.join(name)).expect("the output is UTF-8")
    }
}
