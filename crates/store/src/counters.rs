//! Counters of a store's calls, and the atomics behind them.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counters of one store's calls; a round trip is one request and its answer, however many keys it carries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreCounters {
    /// Calls of [`crate::Store::confirm`] that reached the backend.
    pub confirm_round_trips: u64,
    /// Keys asked about in them.
    pub confirmed_keys: u64,
    /// Commits.
    pub commits: u64,
    /// Reads of the queue.
    pub queue_reads: u64,
}

/// The live counters of one store; each is exact, a reading of all of them is not one moment.
#[derive(Debug, Default)]
pub(crate) struct CallTally {
    confirm_round_trips: AtomicU64,
    confirmed_keys: AtomicU64,
    commits: AtomicU64,
    queue_reads: AtomicU64,
}

impl CallTally {
    pub(crate) fn confirmed(&self, key_count: usize) {
        self.confirm_round_trips.fetch_add(1, Ordering::Relaxed);
        self.confirmed_keys
            .fetch_add(key_count as u64, Ordering::Relaxed);
    }

    pub(crate) fn committed(&self) {
        self.commits.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn queue_read(&self) {
        self.queue_reads.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn read(&self) -> StoreCounters {
        StoreCounters {
            confirm_round_trips: self.confirm_round_trips.load(Ordering::Relaxed),
            confirmed_keys: self.confirmed_keys.load(Ordering::Relaxed),
            commits: self.commits.load(Ordering::Relaxed),
            queue_reads: self.queue_reads.load(Ordering::Relaxed),
        }
    }
}
