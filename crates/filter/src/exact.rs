//! The exact set that stands in for the filter while there are few keys.

use std::{
    collections::HashSet,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

use crate::BuildKeyHasher;

/// Shards, each behind a lock of its own.
const SHARDS: usize = 64;

/// The most bytes that a key takes in a set that has just grown: 17 a place, of which 7 in 16 are taken.
const KEY_BYTES_MAX: u64 = 39;

/// A set of whole keys, for any number of threads.
pub(crate) struct ExactKeys {
    shards: Box<[Mutex<Shard>]>,
    count: AtomicU64,
}

type Shard = HashSet<u128, BuildKeyHasher>;

impl ExactKeys {
    pub(crate) fn new() -> Self {
        Self {
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
            count: AtomicU64::new(0),
        }
    }

    /// Inserts a key and returns whether it is new; of all calls with one key exactly one returns `true`.
    pub(crate) fn insert(&self, key: u128) -> bool {
        let is_new = lock(self.shard(key)).insert(key);
        if is_new {
            self.count.fetch_add(1, Relaxed);
        }
        is_new
    }

    pub(crate) fn contains(&self, key: u128) -> bool {
        lock(self.shard(key)).contains(&key)
    }

    pub(crate) fn count(&self) -> u64 {
        self.count.load(Relaxed)
    }

    /// Returns about how much memory the keys take, in bytes.
    pub(crate) fn size_bytes(&self) -> u64 {
        // A place is a key and a byte of the map's own.
        let places_count: usize = self
            .shards
            .iter()
            .map(|shard| (lock(shard).capacity() * 8).div_ceil(7))
            .sum();
        places_count as u64 * (size_of::<u128>() as u64 + 1)
    }

    /// Hands every key to `take`, a shard at a time.
    pub(crate) fn for_each(&self, mut take: impl FnMut(u128)) {
        for shard in &self.shards {
            for key in lock(shard).iter() {
                take(*key);
            }
        }
    }

    #[expect(clippy::cast_possible_truncation, reason = "six bits are wanted")]
    fn shard(&self, key: u128) -> &Mutex<Shard> {
        // Bits of the high half: the maps use the low one.
        &self.shards[(key >> 64) as usize % SHARDS]
    }
}

/// Returns how many keys an exact set may hold so that it never takes more than a third of `filter_bytes`.
pub(crate) const fn count_within(filter_bytes: u64) -> u64 {
    filter_bytes / (3 * KEY_BYTES_MAX)
}

/// Locks although another thread panicked: no step of ours leaves a set half changed.
fn lock(shard: &Mutex<Shard>) -> MutexGuard<'_, Shard> {
    shard.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn keys_are_new_once_counted_and_all_handed_out() {
        let keys = ExactKeys::new();
        let mut random = fastrand::Rng::with_seed(3);
        let drawn: Vec<u128> = (0..5_000).map(|_| random.u128(..)).collect();
        for key in &drawn {
            assert!(!keys.contains(*key) && keys.insert(*key) && keys.contains(*key));
        }
        assert!(!drawn.iter().any(|key| keys.insert(*key)));
        assert_eq!(keys.count(), 5_000);
        let mut all = Vec::new();
        keys.for_each(|key| all.push(key));
        all.sort_unstable();
        let mut drawn = drawn;
        drawn.sort_unstable();
        assert_eq!(all, drawn);
    }

    #[test]
    fn memory_stays_within_what_is_reckoned_with() {
        let keys = ExactKeys::new();
        let mut random = fastrand::Rng::with_seed(3);
        for count in 1..200_000_u64 {
            keys.insert(random.u128(..));
            if count % 1_000 == 0 && count >= 10_000 {
                let bytes = keys.size_bytes();
                assert!(bytes <= KEY_BYTES_MAX * count, "{bytes} for {count}");
                assert!(bytes >= 17 * count, "{bytes} for {count}");
            }
        }
    }
}
