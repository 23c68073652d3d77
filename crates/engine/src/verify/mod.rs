//! The check of a crawl that does not run: whether accounts, keys, queue, records, outputs and filter agree.
//!
//! Nothing of the crawl is changed, but that a database counts one opening more. Of each known URL 20 bytes are held: its
//! key, and what was found of it so far with a part of the hash of its record; of each host with waiting URLs its name.
//! All else is read one piece at a time.

mod archive;
mod finding;
mod keys;
mod lines;
mod queue;
mod records;
mod saved_filter;

use std::{
    path::Path,
    time::{Duration, Instant},
};

use serde::Serialize;
use store::{OpenedStore, Store};
use types::KeySeed;

use self::finding::Findings;
pub use self::{
    finding::{Violation, ViolationKind},
    saved_filter::{FilterFinding, false_positive_rate},
};
use crate::{CrawlConfig, EngineError, folder::Folder, opening, saved::SavedProgress};

/// The time between two words on how far the check has come.
const TELL_INTERVAL: Duration = Duration::from_millis(100);

/// What was checked, and what was found.
#[derive(Clone, Debug, Serialize)]
pub struct Verification {
    /// The crawl's id.
    pub crawl_id: String,
    /// Whether there is no violation.
    pub is_clean: bool,
    /// What does not agree, by kind.
    pub violations: Vec<Violation>,
    /// What the user may want to know, and is right all the same.
    pub remarks: Vec<String>,
    /// Keys in the store.
    pub keys: u64,
    /// URLs in its queue.
    pub queued: u64,
    /// Hosts with such.
    pub hosts: u64,
    /// Page records in the store.
    pub finished: u64,
    /// Lines of `pages.jsonl`.
    pub lines: u64,
    /// Responses in the WARC files that these name.
    pub archived: u64,
    /// The saved filter.
    pub filter: FilterFinding,
    /// How long it took, in seconds.
    pub elapsed_seconds: f64,
}

/// How far a check has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VerifyStep {
    /// What is read, as in `keys`.
    pub what: &'static str,
    /// How much of it was read: rows, or bytes of a file.
    pub done: u64,
    /// How much there is, by the crawl's accounts.
    pub expected: u64,
}

/// Checks the crawl in the folder and the store of `config`, and tells `observer` how far it has come. The rest of
/// `config` does not matter.
///
/// # Errors
///
/// Fails when the folder is of no crawl, in use, or not of the store's crawl ([`crate::ErrorKind::Config`]), when the
/// store cannot be read ([`crate::ErrorKind::Store`]), and when a file of the crawl cannot be.
pub fn verify(
    config: &CrawlConfig,
    observer: &mut dyn FnMut(VerifyStep),
) -> Result<Verification, EngineError> {
    let begun = Instant::now();
    let (folder, claimed) = Folder::open_begun(&config.data)?;
    let opened = opening::open_begun_store(config, &folder, &claimed)?;
    let OpenedStore {
        store,
        identity,
        progress,
    } = opened;
    let saved = match progress {
        Some(bytes) => SavedProgress::from_bytes_unchecked(&bytes)?,
        None => SavedProgress::default(),
    };
    let mut check = Check {
        data: &config.data,
        store: store.as_ref(),
        key_seed: KeySeed::new(identity.key_seed),
        next_sequence: store.next_sequence()?,
        saved: &saved,
        findings: Findings::default(),
        teller: Teller::new(observer),
    };
    check.accounts();
    let mut known = keys::read(&mut check)?;
    let queue = queue::check(&mut check, &mut known)?;
    let finished = records::check(&mut check, &mut known)?;
    known.find_orphans(&mut check.findings);
    let (lines, archived) = lines::check(&mut check, &mut known)?;
    let filter = saved_filter::check(&mut check, &known, &identity.crawl_id);
    let (violations, remarks) = check.findings.finish(store.as_ref())?;
    Ok(Verification {
        crawl_id: identity.crawl_id,
        is_clean: violations.is_empty(),
        violations,
        remarks,
        keys: known.count(),
        queued: queue.queued,
        hosts: queue.hosts,
        finished,
        lines,
        archived,
        filter,
        elapsed_seconds: begun.elapsed().as_secs_f64(),
    })
}

/// What every part of the check needs.
struct Check<'a> {
    data: &'a Path,
    store: &'a dyn Store,
    key_seed: KeySeed,
    next_sequence: u64,
    saved: &'a SavedProgress,
    findings: Findings,
    teller: Teller<'a>,
}

impl Check<'_> {
    /// Checks what the accounts say of themselves.
    fn accounts(&mut self) {
        let counts = &self.saved.counts;
        self.findings
            .equal("discovered links", counts.accounted(), counts.discovered);
        if self.saved.is_finished {
            self.findings
                .equal("queued URLs of a finished crawl", counts.queued, 0);
        }
    }
}

/// Tells the observer how far the check has come, not too often.
struct Teller<'a> {
    observer: &'a mut dyn FnMut(VerifyStep),
    last: Instant,
}

impl<'a> Teller<'a> {
    fn new(observer: &'a mut dyn FnMut(VerifyStep)) -> Self {
        Self {
            observer,
            last: Instant::now(),
        }
    }

    fn tell(&mut self, what: &'static str, done: u64, expected: u64) {
        if self.last.elapsed() >= TELL_INTERVAL {
            self.last = Instant::now();
            (self.observer)(VerifyStep {
                what,
                done,
                expected,
            });
        }
    }
}
