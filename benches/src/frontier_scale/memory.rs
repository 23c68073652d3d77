//! A whole store in memory: what the other parts cost without one. Nothing survives.

use std::{
    collections::{BTreeMap, HashSet},
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

use filter::BuildKeyHasher;
use store::{CommitBatch, Store, StoreCounters, StoreError};
use types::{Host, QueuePosition, QueuedUrl, UrlKey};

/// Keys and queues; of page records only that they were handed over.
#[derive(Debug, Default)]
pub struct MemoryStore {
    held: Mutex<Held>,
    commits: AtomicU64,
    confirm_round_trips: AtomicU64,
    confirmed_keys: AtomicU64,
    queue_reads: AtomicU64,
}

#[derive(Debug, Default)]
struct Held {
    keys: HashSet<UrlKey, BuildKeyHasher>,
    queues: BTreeMap<Host, BTreeMap<QueuePosition, QueuedUrl>>,
    next_sequence: u64,
}

impl MemoryStore {
    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Store for MemoryStore {
    fn confirm(&self, keys: &[UrlKey]) -> Result<Vec<bool>, StoreError> {
        self.confirm_round_trips.fetch_add(1, Relaxed);
        self.confirmed_keys.fetch_add(keys.len() as u64, Relaxed);
        let held = self.held();
        Ok(keys.iter().map(|key| held.keys.contains(key)).collect())
    }

    fn commit(&self, batch: &CommitBatch<'_>) -> Result<(), StoreError> {
        self.commits.fetch_add(1, Relaxed);
        let mut held = self.held();
        for note in batch.notes {
            held.next_sequence = held.next_sequence.max(note.position.sequence + 1);
            if held.keys.insert(note.key) {
                let queue = held.queues.entry(note.url.host()).or_default();
                queue.insert(note.position, note.clone());
            }
        }
        for finished in batch.finished {
            if let Some(queue) = held.queues.get_mut(&finished.host) {
                queue.remove(&finished.position);
            }
        }
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
        host: &Host,
        from: QueuePosition,
        limit: usize,
    ) -> Result<Vec<QueuedUrl>, StoreError> {
        self.queue_reads.fetch_add(1, Relaxed);
        let held = self.held();
        let queue = held.queues.get(host);
        let entries = queue.into_iter().flat_map(|queue| queue.range(from..));
        Ok(entries
            .take(limit)
            .map(|(_, queued)| queued.clone())
            .collect())
    }

    fn queued_hosts(
        &self,
        each: &mut dyn FnMut(Host, u64, QueuePosition),
    ) -> Result<(), StoreError> {
        for (host, queue) in &self.held().queues {
            if let Some(first) = queue.keys().next() {
                each(host.clone(), queue.len() as u64, *first);
            }
        }
        Ok(())
    }

    fn scan_keys(&self, each: &mut dyn FnMut(&[UrlKey])) -> Result<u64, StoreError> {
        let keys: Vec<UrlKey> = self.held().keys.iter().copied().collect();
        each(&keys);
        Ok(keys.len() as u64)
    }

    fn scan_pages(&self, _each: &mut dyn FnMut(UrlKey, &[u8])) -> Result<(), StoreError> {
        Ok(())
    }

    fn next_sequence(&self) -> Result<u64, StoreError> {
        Ok(self.held().next_sequence)
    }

    fn counters(&self) -> StoreCounters {
        StoreCounters {
            confirm_round_trips: self.confirm_round_trips.load(Relaxed),
            confirmed_keys: self.confirmed_keys.load(Relaxed),
            commits: self.commits.load(Relaxed),
            queue_reads: self.queue_reads.load(Relaxed),
        }
    }
}
