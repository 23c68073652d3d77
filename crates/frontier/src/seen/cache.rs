//! The recent-key cache: an exact, bounded set of keys that are known to be seen.

use std::sync::{Mutex, PoisonError};

use types::UrlKey;

/// Keys of a set, most recently used first: a cache line.
///
/// A key takes all its 16 bytes. What its place in the cache says of it need not be stored, but to fit a fifth key into
/// a line 26 bits would have to be saved on each, which only a cache of 4 GiB could.
const WAYS: usize = 4;

const SET_BYTES: usize = WAYS * size_of::<u128>();

/// Shards, each behind a lock of its own, in caches that are large enough for as many.
const SHARDS_MAX: usize = 256;

/// An empty place. A key that happens to be 0 is never held, which costs a store read and no more.
const EMPTY: u128 = 0;

/// A set-associative cache of whole keys. A hit is certain; a miss says nothing.
pub(super) struct RecentKeys {
    shards: Box<[Mutex<Shard>]>,
}

struct Shard {
    /// The sets, from `first_key` on.
    keys: Vec<u128>,
    /// Keys before the first cache line boundary.
    first_key: usize,
    sets_count: usize,
}

impl RecentKeys {
    /// Makes an empty cache of at most `bytes_max` bytes of keys, which memory follows as it fills.
    pub(super) fn new(bytes_max: usize) -> Self {
        let sets_count = bytes_max / SET_BYTES;
        // Each shard asks for one set more than it uses, see below.
        let shard_count = (sets_count / 64).clamp(1, SHARDS_MAX);
        let shard_sets_count = (sets_count / shard_count).saturating_sub(1);
        if shard_sets_count == 0 {
            return Self {
                shards: Box::default(),
            };
        }
        let shards = (0..shard_count).map(|_| Mutex::new(Shard::new(shard_sets_count)));
        Self {
            shards: shards.collect(),
        }
    }

    /// Returns whether the key is held, and makes it the most recent of its set.
    pub(super) fn contains(&self, key: UrlKey) -> bool {
        self.with_set(key, |set| {
            let Some(place) = set.iter().position(|held| *held == key.as_u128()) else {
                return false;
            };
            set[..=place].rotate_right(1);
            true
        })
    }

    /// Holds a key, in place of the least recent of its set.
    pub(super) fn insert(&self, key: UrlKey) {
        self.with_set(key, |set| {
            let place = set
                .iter()
                .position(|held| *held == key.as_u128())
                .unwrap_or(WAYS - 1);
            set[..=place].rotate_right(1);
            set[0] = key.as_u128();
            true
        });
    }

    /// Runs `act` on the set of a key, unless there is none.
    fn with_set(&self, key: UrlKey, act: impl FnOnce(&mut [u128]) -> bool) -> bool {
        if self.shards.is_empty() || key.as_u128() == EMPTY {
            return false;
        }
        let (shard, hash) = scale(low_half(key), self.shards.len());
        let mut shard = self.shards[shard]
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let (set, _) = scale(hash, shard.sets_count);
        let first = shard.first_key + set * WAYS;
        act(&mut shard.keys[first..first + WAYS])
    }
}

impl Shard {
    fn new(sets_count: usize) -> Self {
        // Zeroed by the system, page by page, at the first touch. The allocator aligns to less than a cache line, so
        // one set more is asked for, and a part of it left unused.
        let keys = vec![EMPTY; (sets_count + 1) * WAYS];
        let first_key = keys.as_ptr().align_offset(SET_BYTES).min(WAYS);
        Self {
            keys,
            first_key,
            sets_count,
        }
    }
}

/// Maps a hash to one of `count` places evenly, and returns the place and what is left of the hash.
#[expect(
    clippy::cast_possible_truncation,
    reason = "the place is below count, and the low half is what is left"
)]
const fn scale(hash: u64, count: usize) -> (usize, u64) {
    let product = hash as u128 * count as u128;
    ((product >> 64) as usize, product as u64)
}

/// Returns the low half of a key, all of it hash.
#[expect(clippy::cast_possible_truncation, reason = "the low half is wanted")]
fn low_half(key: UrlKey) -> u64 {
    key.as_u128() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(count: u32) -> Vec<UrlKey> {
        let mut random = fastrand::Rng::with_seed(5);
        (0..count)
            .map(|_| UrlKey::from_u128(random.u128(..)))
            .collect()
    }

    #[test]
    fn holds_most_of_a_working_set_of_its_size_and_only_what_was_inserted() {
        let cache = RecentKeys::new(16 * 10_000);
        let keys = keys(15_000);
        for key in &keys[..10_000] {
            cache.insert(*key);
        }
        let held_count = keys[..10_000]
            .iter()
            .filter(|key| cache.contains(**key))
            .count();
        // Sets of four lose what is beyond the fourth: a fifth of a full cache.
        assert!((7_500..8_500).contains(&held_count), "{held_count}");
        assert!(!keys[10_000..].iter().any(|key| cache.contains(*key)));
    }

    #[test]
    fn keeps_what_is_asked_for_over_what_is_not() {
        let cache = RecentKeys::new(16 * 10_000);
        let keys = keys(100_000);
        let (hot, cold) = keys.split_at(1_000);
        for key in hot {
            cache.insert(*key);
        }
        let mut hits_count = 0;
        for cold in cold.chunks(1_000) {
            for (hot, cold) in hot.iter().zip(cold) {
                if cache.contains(*hot) {
                    hits_count += 1;
                } else {
                    cache.insert(*hot);
                }
                cache.insert(*cold);
            }
        }
        assert!(hits_count > 97_000, "{hits_count} of 99,000");
    }

    #[test]
    fn a_key_is_held_once_and_evicted_in_order_of_use() {
        // One set.
        let cache = RecentKeys::new(2 * SET_BYTES);
        let keys = keys(5);
        for key in &keys[..4] {
            cache.insert(*key);
        }
        cache.insert(keys[0]);
        assert!(cache.contains(keys[1]));
        cache.insert(keys[4]);
        let held: Vec<bool> = keys.iter().map(|key| cache.contains(*key)).collect();
        assert_eq!(held, [true, true, false, true, true]);
    }

    #[test]
    fn never_asks_for_more_than_it_may() {
        for bytes_max in [0, 1, 64, 127, 128, 5_000, 1 << 20] {
            let cache = RecentKeys::new(bytes_max);
            let bytes: usize = cache
                .shards
                .iter()
                .map(|shard| shard.lock().expect("not poisoned").keys.capacity() * 16)
                .sum();
            assert!(bytes <= bytes_max, "{bytes} of {bytes_max}");
            assert!(
                bytes_max < 128 || bytes > bytes_max * 9 / 10 - 64,
                "{bytes} of {bytes_max}"
            );
        }
    }

    #[test]
    fn the_key_zero_is_never_claimed() {
        let cache = RecentKeys::new(1 << 12);
        let zero = UrlKey::from_u128(EMPTY);
        assert!(!cache.contains(zero));
        cache.insert(zero);
        assert!(!cache.contains(zero));
    }
}
