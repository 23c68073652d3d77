//! An exact store in memory that counts its calls: for the reads of long streams, where a database would only add hours.

use std::{
    collections::HashSet,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

use filter::BuildKeyHasher;
use store::{CommitBatch, Store, StoreCounters, StoreError};
use types::{Host, QueuePosition, QueuedUrl, UrlKey};

use crate::seen_test::meter::Aside;

/// A set of keys with the face of a store. It has no queue and no pages, and nothing survives.
///
/// Its own work is on the account of the harness.
#[derive(Default)]
pub struct MemoryStore<'a> {
    keys: Mutex<HashSet<UrlKey, BuildKeyHasher>>,
    confirm_round_trips: AtomicU64,
    confirmed_keys: AtomicU64,
    commits: AtomicU64,
    aside: Option<&'a Aside>,
}

impl<'a> MemoryStore<'a> {
    /// Makes an empty store whose work counts as `aside`.
    #[must_use]
    pub fn new(aside: &'a Aside) -> Self {
        Self {
            aside: Some(aside),
            ..Self::default()
        }
    }

    fn with<T>(&self, call: impl FnOnce(&mut HashSet<UrlKey, BuildKeyHasher>) -> T) -> T {
        let work = || call(&mut self.keys.lock().unwrap_or_else(PoisonError::into_inner));
        match self.aside {
            Some(aside) => aside.does(work),
            None => work(),
        }
    }
}

impl Store for MemoryStore<'_> {
    fn confirm(&self, keys: &[UrlKey]) -> Result<Vec<bool>, StoreError> {
        self.confirm_round_trips.fetch_add(1, Relaxed);
        self.confirmed_keys.fetch_add(keys.len() as u64, Relaxed);
        Ok(self.with(|held| keys.iter().map(|key| held.contains(key)).collect()))
    }

    fn commit(&self, batch: &CommitBatch<'_>) -> Result<(), StoreError> {
        self.commits.fetch_add(1, Relaxed);
        self.with(|held| held.extend(batch.notes.iter().map(|note| note.key)));
        Ok(())
    }

    fn is_durable_at_commit(&self) -> bool {
        false
    }

    fn sync(&self) -> Result<(), StoreError> {
        Ok(())
    }

    fn read_queue(
        &self,
        _host: &Host,
        _from: QueuePosition,
        _limit: usize,
    ) -> Result<Vec<QueuedUrl>, StoreError> {
        Ok(Vec::new())
    }

    fn queued_hosts(
        &self,
        _each: &mut dyn FnMut(Host, u64, QueuePosition),
    ) -> Result<(), StoreError> {
        Ok(())
    }

    fn scan_keys(&self, each: &mut dyn FnMut(&[UrlKey])) -> Result<u64, StoreError> {
        self.with(|held| {
            let keys: Vec<UrlKey> = held.iter().copied().collect();
            each(&keys);
            Ok(keys.len() as u64)
        })
    }

    fn scan_pages(&self, _each: &mut dyn FnMut(UrlKey, &[u8])) -> Result<(), StoreError> {
        Ok(())
    }

    fn next_sequence(&self) -> Result<u64, StoreError> {
        Ok(0)
    }

    fn counters(&self) -> StoreCounters {
        StoreCounters {
            confirm_round_trips: self.confirm_round_trips.load(Relaxed),
            confirmed_keys: self.confirmed_keys.load(Relaxed),
            commits: self.commits.load(Relaxed),
            queue_reads: 0,
        }
    }
}
