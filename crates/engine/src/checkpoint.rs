//! Checkpoints: while the crawl goes on, the filter is saved now and then, and the keys committed since are logged, so that
//! a start after any death reads these two in place of all keys of the store.
//!
//! The committer begins a new segment of the log and then asks for a snapshot, so every key below the segment's first
//! sequence was in the filter before, and every later one is in the log. What else the filter holds by then is on its way
//! to the store, or never gets there: of that it answers a "yes" that the store denies, as of any false positive.

use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use crossbeam_channel::{Receiver, Sender, bounded};
use frontier::{SeenMode, SeenTest};
use types::QueuedUrl;

use crate::{
    CrawlConfig, EngineError,
    key_log::{self, KeyLog},
    live::Live,
    snapshot::{self, SnapshotLabel},
};

/// Saving may take one in so many seconds.
const SAVING_SHARE: u32 = 20;

/// The committer's part: the log, and when a snapshot is due.
pub(crate) struct Checkpoints {
    data: PathBuf,
    interval: Duration,
    seen: Arc<SeenTest>,
    live: Arc<Live>,
    /// What a snapshot of the store as committed is called.
    label: SnapshotLabel,
    log: Option<KeyLog>,
    last: Instant,
    saver: Sender<SnapshotLabel>,
    saving_millis: Arc<AtomicU64>,
}

/// The other part: writes the snapshots, on a thread of its own.
pub(crate) struct Saver {
    data: PathBuf,
    seen: Arc<SeenTest>,
    live: Arc<Live>,
    due: Receiver<SnapshotLabel>,
    saving_millis: Arc<AtomicU64>,
}

/// Makes both parts. `label` is of the store as opened; where the seen test was read from a snapshot, `has_snapshot`, it
/// and its log go on to serve.
pub(crate) fn pair(
    config: &CrawlConfig,
    seen: &Arc<SeenTest>,
    live: &Arc<Live>,
    label: SnapshotLabel,
    has_snapshot: bool,
) -> (Checkpoints, Saver) {
    // Nobody waits in it: a snapshot is asked for when the saver has nothing to do, or not at all.
    let (sender, due) = bounded(0);
    let saving_millis = Arc::new(AtomicU64::new(0));
    let mut checkpoints = Checkpoints {
        data: config.data.clone(),
        interval: config.checkpoint_interval,
        seen: Arc::clone(seen),
        live: Arc::clone(live),
        label,
        log: None,
        last: Instant::now(),
        saver: sender,
        saving_millis: Arc::clone(&saving_millis),
    };
    if has_snapshot {
        checkpoints.begin_segment();
    }
    let saver = Saver {
        data: config.data.clone(),
        seen: Arc::clone(seen),
        live: Arc::clone(live),
        due,
        saving_millis,
    };
    (checkpoints, saver)
}

impl Checkpoints {
    /// Logs the keys of notes that the store is about to commit.
    pub(crate) fn log(&mut self, notes: &[QueuedUrl]) {
        let keys = || notes.iter().map(|note| note.key);
        self.label.add(keys());
        if let Some(log) = &mut self.log
            && let Err(error) = log.append(keys())
        {
            self.give_up_log(&error);
        }
    }

    /// Begins a checkpoint if one is due; between two commits.
    pub(crate) fn begin_if_due(&mut self) {
        let saving = Duration::from_millis(self.saving_millis.load(Relaxed));
        let pause = self.interval.max(saving * SAVING_SHARE);
        if self.last.elapsed() < pause {
            return;
        }
        // Also where there is nothing to keep: to find that out takes every lock of the seen test.
        self.last = Instant::now();
        if !self.is_worth_keeping() {
            return;
        }
        self.begin_segment();
        if self.log.is_some() {
            // A saver that is still busy is asked again next time.
            drop(self.saver.try_send(self.label.clone()));
        }
    }

    /// Makes the log survive a power cut.
    pub(crate) fn sync(&mut self) {
        if let Some(log) = &self.log
            && let Err(error) = log.sync()
        {
            self.give_up_log(&error);
        }
    }

    /// Returns the sum over all committed keys.
    pub(crate) const fn key_sum(&self) -> u64 {
        self.label.key_sum()
    }

    /// Keys that are held exactly are few, and are read from the store quickly enough. The filter alone drops what it has:
    /// a snapshot of it with a key that never got to the store would lose that for good.
    fn is_worth_keeping(&self) -> bool {
        let stats = self.seen.stats();
        stats.mode == SeenMode::BloomStore && !stats.filter.is_exact
    }

    fn begin_segment(&mut self) {
        let first = self.label.next_sequence();
        match KeyLog::begin(&self.data, self.label.crawl_id(), first) {
            Ok(log) => self.log = Some(log),
            Err(error) => self.give_up_log(&error),
        }
    }

    /// Goes on without: the next start reads the store, unless a later checkpoint succeeds.
    fn give_up_log(&mut self, error: &EngineError) {
        self.log = None;
        self.live.notice_once(format!(
            "the log of new keys cannot be written, so a start after a kill will take longer: {error}"
        ));
    }
}

impl Saver {
    /// Runs until the committer is gone.
    pub(crate) fn run(self) {
        for label in &self.due {
            let begun = Instant::now();
            self.save(&label);
            let millis = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
            self.saving_millis.store(millis, Relaxed);
        }
    }

    /// Saves the filter, and removes what of the log it makes superfluous.
    fn save(&self, label: &SnapshotLabel) {
        match snapshot::save(&self.data, label, &self.seen) {
            Ok(()) => key_log::remove(&self.data, ..label.next_sequence()),
            Err(error) => self.live.notice_once(format!(
                "the filter was not saved, so a start after a kill will take longer: {error}"
            )),
        }
    }
}

#[cfg(test)]
#[path = "checkpoint_test.rs"]
mod tests;
