//! The server's log: what was asked, when, and how often.

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

/// One request and its answer; times count from the server's start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogEntry {
    /// When the request's head was in.
    pub started: Duration,
    /// When the answer's body was handed over, or the client gone.
    pub ended: Duration,
    /// The URL asked for.
    pub url: String,
    /// The status code answered, 0 when the connection was closed instead.
    pub status: u16,
    /// The client's address.
    pub peer: SocketAddr,
}

/// Entries up to a limit, counts always.
#[derive(Debug)]
pub(crate) struct Log {
    origin: Instant,
    entry_count_max: usize,
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    entries: Vec<LogEntry>,
    counts: BTreeMap<String, u64>,
}

impl Log {
    pub(crate) fn new(entry_count_max: usize) -> Self {
        Self {
            origin: Instant::now(),
            entry_count_max,
            kept: Mutex::default(),
        }
    }

    /// Counts a request whose head is in; its entry is written when the returned value is dropped.
    pub(crate) fn begin(self: &Arc<Self>, url: String, peer: SocketAddr) -> OpenEntry {
        let started = self.origin.elapsed();
        let mut kept = self.lock();
        match kept.counts.get_mut(&url) {
            Some(count) => *count += 1,
            None => {
                kept.counts.insert(url.clone(), 1);
            }
        }
        drop(kept);
        let entry = LogEntry {
            started,
            ended: started,
            url,
            status: 0,
            peer,
        };
        OpenEntry {
            log: Arc::clone(self),
            entry,
        }
    }

    pub(crate) fn entries(&self) -> Vec<LogEntry> {
        self.lock().entries.clone()
    }

    pub(crate) fn counts(&self) -> BTreeMap<String, u64> {
        self.lock().counts.clone()
    }

    pub(crate) fn count(&self, url: &str) -> u64 {
        self.lock().counts.get(url).copied().unwrap_or(0)
    }

    pub(crate) fn url_count(&self) -> usize {
        self.lock().counts.len()
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        // Nothing panics while the lock is held, and a log is worth reading even if something did.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request that is being answered.
#[derive(Debug)]
pub(crate) struct OpenEntry {
    log: Arc<Log>,
    entry: LogEntry,
}

impl OpenEntry {
    pub(crate) fn set_status(&mut self, status: u16) {
        self.entry.status = status;
    }
}

impl Drop for OpenEntry {
    fn drop(&mut self) {
        self.entry.ended = self.log.origin.elapsed();
        let mut kept = self.log.lock();
        if kept.entries.len() < self.log.entry_count_max {
            kept.entries.push(self.entry.clone());
        }
    }
}
