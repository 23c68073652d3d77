//! The recent-key cache: an exact, bounded set of the keys that were used last.

use std::{
    mem,
    sync::{
        Mutex, PoisonError, RwLock, RwLockReadGuard,
        atomic::{
            AtomicBool, AtomicU64 as Counter,
            Ordering::{Acquire, Relaxed, Release},
        },
    },
};

use crate::{
    FilterError, Pages,
    line::{self, Line, WORDS},
    lines::Lines,
};

/// Keys of a set, which fill a cache line with the lock.
const WAYS: usize = 6;

/// The words that hold the upper parts of the tags, 16 bits each: of four tags, and of two. The lock is in the second.
const UPPER_WORDS: [usize; 2] = [6, 7];

/// The lock: whoever turns it from 0 to 1 is the only one to read and write the set until it stores the word without it.
const LOCK: u64 = 1 << 63;

/// A cache begins with at most this many sets, 1 MiB, unless it may double no more often.
const SETS_AT_FIRST: usize = 16_384;

/// A cache doubles at most this often: each time takes one bit from what tells keys apart.
const DOUBLINGS_MAX: u32 = 12;

/// A cache of keys, set-associative: a key may be in one cache line only, which holds six, most recently used first. A
/// miss says nothing. A hit is certain, as certain as a hash can be.
///
/// What its place says of a key need not be stored, nor all of the rest: of each key 80 bits are kept, of which at
/// least 68 are not in its place. So a key that was never inserted is taken for one of the six that were with a
/// probability of at most 6 in 2^68, at 64 MiB of 6 in 2^74: once in 3 * 10^10 crawls of 10^11 links. In return half as
/// many keys again fit into the same memory, which is worth half of the misses.
///
/// It begins small and doubles when it is full, up to the memory that it may take. All methods take `&self` and may be
/// called from any number of threads.
pub struct RecentKeys {
    level: RwLock<Level>,
    /// Sets at first.
    base_count: usize,
    doublings_max: u32,
    pages: Pages,
    /// Held by the one thread that makes it grow.
    growth: Mutex<()>,
    /// Whether memory for growth was refused, so that not every batch tries again.
    is_refused: AtomicBool,
}

/// The sets at a size.
struct Level {
    sets: Lines,
    /// How often their number was doubled.
    doublings: u32,
    /// Keys that took a place that was empty.
    held_count: Counter,
}

/// The right to ask for keys while the cache keeps its size. Keep it for a batch, not for longer, and call
/// [`RecentKeys::grow_if_full`] afterwards.
pub struct RecentReader<'a> {
    level: RwLockReadGuard<'a, Level>,
    base_count: usize,
}

/// Where a key belongs, and the bits that are kept of it.
struct Address {
    index: usize,
    tag: Tag,
}

/// The bits that are kept of a key. The upper ones are those that follow on its place among the sets of the first size,
/// so they say where it belongs when the sets are doubled.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Tag {
    upper: u16,
    lower: u64,
}

/// An empty place. A key that happens to have this tag is never held.
const EMPTY: Tag = Tag { upper: 0, lower: 0 };

/// The tags of one set.
type Set = [Tag; WAYS];

impl RecentKeys {
    /// Makes an empty cache that grows to at most `bytes_max` bytes; below 128 it holds nothing. While it doubles, the half
    /// that it had is held too.
    ///
    /// # Errors
    ///
    /// Fails when the system does not give the memory of its first size.
    pub fn new(bytes_max: usize, pages: Pages) -> Result<Self, FilterError> {
        // The memory of the lines is that of one line more.
        let sets_max = (bytes_max / size_of::<Line>()).saturating_sub(1);
        let mut doublings_max = 0;
        while sets_max >> doublings_max > SETS_AT_FIRST && doublings_max < DOUBLINGS_MAX {
            doublings_max += 1;
        }
        let base_count = sets_max >> doublings_max;
        Ok(Self {
            level: RwLock::new(Level::new(base_count, 0, pages)?),
            base_count,
            doublings_max,
            pages,
            growth: Mutex::new(()),
            is_refused: AtomicBool::new(false),
        })
    }

    /// Gives the right to ask for keys.
    #[must_use]
    pub fn read(&self) -> RecentReader<'_> {
        RecentReader {
            level: self.level.read().unwrap_or_else(PoisonError::into_inner),
            base_count: self.base_count,
        }
    }

    /// Holds one key. For many, ask for the right to do so once.
    pub fn insert(&self, key: u128) {
        self.read().insert(key);
        self.grow_if_full();
    }

    /// Doubles the cache if half of its places are taken and it may; all that it holds stays, but for what other threads
    /// insert meanwhile: they do not wait. Returns whether it did. Where the memory is refused it stays as it is.
    pub fn grow_if_full(&self) -> bool {
        if !self.is_due(&self.read().level) {
            return false;
        }
        // One thread grows; the others go on as it is meanwhile.
        let Ok(_growth) = self.growth.try_lock() else {
            return false;
        };
        // Nobody else can double it meanwhile.
        let reader = self.read();
        let doublings = reader.level.doublings + 1;
        if !self.is_due(&reader.level) {
            return false;
        }
        let Ok(next) = Level::new(self.base_count << doublings, doublings, self.pages) else {
            self.is_refused.store(true, Relaxed);
            return false;
        };
        reader.level.copy_to(&next);
        drop(reader);
        let mut level = self.level.write().unwrap_or_else(PoisonError::into_inner);
        let old = mem::replace(&mut *level, next);
        // Its memory is given back when nobody waits for the lock any more.
        drop(level);
        drop(old);
        true
    }

    /// Returns the memory in bytes.
    #[must_use]
    pub fn size_bytes(&self) -> u64 {
        self.read().level.sets.size_bytes()
    }

    fn is_due(&self, level: &Level) -> bool {
        level.doublings < self.doublings_max
            && level.held_count.load(Relaxed) >= level.full_count()
            && !self.is_refused.load(Relaxed)
    }
}

impl Level {
    fn new(sets_count: usize, doublings: u32, pages: Pages) -> Result<Self, FilterError> {
        Ok(Self {
            sets: Lines::new(sets_count, pages)?,
            doublings,
            held_count: Counter::new(0),
        })
    }

    /// Returns how many keys make it full. Sets fill unevenly: with half of all places taken, one or two keys in a hundred
    /// have been lost to sets that had six already, and from there on ever more are.
    const fn full_count(&self) -> u64 {
        (self.sets.count() * WAYS) as u64 / 2
    }

    /// Enters all keys in a level of twice the sets, in the order of their use, which no other thread may use yet. Others may
    /// go on with this one; what they hold in a set that was copied already is forgotten, as a cache may.
    fn copy_to(&self, next: &Self) {
        let mut held_count = 0;
        for index in 0..self.sets.count() {
            let line = self.sets.line(index);
            let last_word = lock(line);
            let set = load(line, last_word);
            line[UPPER_WORDS[1]].store(last_word, Release);
            let mut halves = [Set::default(); 2];
            let mut lengths = [0; 2];
            for tag in set.into_iter().filter(|tag| *tag != EMPTY) {
                let half = usize::from(tag.upper >> (16 - next.doublings) & 1);
                halves[half][lengths[half]] = tag;
                lengths[half] += 1;
            }
            for (half, set) in halves.iter().enumerate() {
                store(next.sets.line(index * 2 + half), set);
            }
            held_count += (lengths[0] + lengths[1]) as u64;
        }
        next.held_count.store(held_count, Relaxed);
    }
}

impl RecentReader<'_> {
    /// Begins to bring the set of a key into the processor's cache.
    #[inline]
    pub fn prefetch(&self, key: u128) {
        if self.base_count > 0 {
            self.level.sets.prefetch(self.address_of(key).index);
        }
    }

    /// Returns whether the key is held, and makes it the most recent of its set.
    #[must_use]
    pub fn contains(&self, key: u128) -> bool {
        let Address { index, tag } = self.address_of(key);
        if self.base_count == 0 || tag == EMPTY {
            return false;
        }
        find(self.level.sets.line(index), tag)
    }

    /// Holds a key, in place of the least recent of its set.
    pub fn insert(&self, key: u128) {
        let Address { index, tag } = self.address_of(key);
        if self.base_count == 0 || tag == EMPTY {
            return;
        }
        if hold(self.level.sets.line(index), tag) == EMPTY {
            self.level.held_count.fetch_add(1, Relaxed);
        }
    }

    /// Finds the set of a key by its topmost bits of hash; the 16 bits that follow on those of the place at the first size
    /// are kept, with the low half of the key.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the parts of a key are wanted, and the index is below the number of sets"
    )]
    fn address_of(&self, key: u128) -> Address {
        let product = (key >> 56 & u128::from(u64::MAX)) * self.base_count as u128;
        let (base, rest) = ((product >> 64) as usize, product as u64);
        let doublings = self.level.doublings;
        let below = if doublings == 0 {
            0
        } else {
            rest >> (64 - doublings)
        };
        Address {
            index: base << doublings | below as usize,
            tag: Tag {
                upper: (rest >> 48) as u16,
                lower: key as u64,
            },
        }
    }
}

/// Returns whether a set has a tag, and makes it the most recent.
fn find(line: &Line, tag: Tag) -> bool {
    let last_word = lock(line);
    let mut set = load(line, last_word);
    let place = set.iter().position(|held| *held == tag);
    match place {
        Some(place) if place > 0 => {
            set[..=place].rotate_right(1);
            store(line, &set);
        }
        _ => line[UPPER_WORDS[1]].store(last_word, Release),
    }
    place.is_some()
}

/// Puts a tag into a set as the most recent, and returns the one whose place it took: itself, if the set had it.
fn hold(line: &Line, tag: Tag) -> Tag {
    let mut set = load(line, lock(line));
    let place = set.iter().position(|held| *held == tag).unwrap_or(WAYS - 1);
    let replaced = set[place];
    set[..=place].rotate_right(1);
    set[0] = tag;
    store(line, &set);
    replaced
}

/// Takes the lock of a set and returns the last word without it.
fn lock(line: &Line) -> u64 {
    let last = &line[UPPER_WORDS[1]];
    let mut spins_count = 0;
    loop {
        let word = last.load(Relaxed);
        if word & LOCK == 0
            && last
                .compare_exchange_weak(word, word | LOCK, Acquire, Relaxed)
                .is_ok()
        {
            return word;
        }
        spins_count += 1;
        line::pause(spins_count);
    }
}

/// Reads the tags of a set whose lock is held.
fn load(line: &Line, last_word: u64) -> Set {
    let upper_words = [line[UPPER_WORDS[0]].load(Relaxed), last_word];
    std::array::from_fn(|way| Tag {
        upper: upper_part(upper_words, way),
        lower: line[way].load(Relaxed),
    })
}

/// Writes the tags of a set whose lock is held, and gives the lock back.
fn store(line: &Line, set: &Set) {
    let mut upper_words = [0; 2];
    for (way, tag) in set.iter().enumerate() {
        line[way].store(tag.lower, Relaxed);
        upper_words[way / 4] |= u64::from(tag.upper) << (16 * (way % 4));
    }
    line[UPPER_WORDS[0]].store(upper_words[0], Relaxed);
    line[UPPER_WORDS[1]].store(upper_words[1], Release);
}

#[expect(clippy::cast_possible_truncation, reason = "16 bits are wanted")]
const fn upper_part(words: [u64; 2], way: usize) -> u16 {
    (words[way / 4] >> (16 * (way % 4))) as u16
}

const _: () = assert!(WAYS + UPPER_WORDS.len() == WORDS, "a set is a cache line");

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn keys(count: usize) -> Vec<u128> {
        let mut random = fastrand::Rng::with_seed(5);
        (0..count).map(|_| random.u128(..)).collect()
    }

    fn cache(bytes_max: usize) -> RecentKeys {
        RecentKeys::new(bytes_max, Pages::System).expect("it fits")
    }

    fn has(cache: &RecentKeys, key: u128) -> bool {
        cache.read().contains(key)
    }

    fn held_count(cache: &RecentKeys, keys: &[u128]) -> usize {
        keys.iter().filter(|key| has(cache, **key)).count()
    }

    #[test]
    fn holds_most_of_a_working_set_of_its_size_and_only_what_was_inserted() {
        // 1,000 sets, and as many as come of three doublings.
        for factor in [1, 128] {
            let cache = cache(64 * (1_000 * factor + 1));
            let keys = keys(9_000 * factor);
            let (inserted, others) = keys.split_at(6_000 * factor);
            for key in inserted {
                cache.insert(*key);
            }
            // Sets of six lose what is beyond the sixth: a sixth of a full cache.
            let share = held_count(&cache, inserted) * 100 / inserted.len();
            assert!((82..86).contains(&share), "{share} % at {factor}");
            assert_eq!(held_count(&cache, others), 0);
        }
    }

    #[test]
    fn keeps_what_is_asked_for_over_what_is_not() {
        let cache = cache(64 * 2_000);
        let keys = keys(100_000);
        let (hot, cold) = keys.split_at(1_000);
        for key in hot {
            cache.insert(*key);
        }
        let mut hits_count = 0;
        for cold in cold.chunks(1_000) {
            for (hot, cold) in hot.iter().zip(cold) {
                if has(&cache, *hot) {
                    hits_count += 1;
                } else {
                    cache.insert(*hot);
                }
                cache.insert(*cold);
            }
        }
        assert!(hits_count > 98_500, "{hits_count} of 99,000");
    }

    #[test]
    fn a_key_is_held_once_and_evicted_in_order_of_use() {
        // One set.
        let cache = cache(128);
        let keys = keys(7);
        for key in &keys[..6] {
            cache.insert(*key);
        }
        cache.insert(keys[0]);
        assert!(has(&cache, keys[1]));
        cache.insert(keys[6]);
        let held: Vec<bool> = keys.iter().map(|key| has(&cache, *key)).collect();
        assert_eq!(held, [true, true, false, true, true, true, true]);
    }

    #[test]
    fn memory_follows_use_and_growth_forgets_nothing() {
        let cache = cache(8 << 20);
        let keys = keys(600_000);
        let mut size_bytes = cache.size_bytes();
        assert!(size_bytes <= 1 << 20);
        for (index, key) in keys.iter().enumerate() {
            cache.read().insert(*key);
            let before = cache.level.read().expect("whole").held_count.load(Relaxed);
            if cache.grow_if_full() {
                size_bytes *= 2;
                let after = cache.level.read().expect("whole").held_count.load(Relaxed);
                assert_eq!((cache.size_bytes(), after), (size_bytes, before));
                assert_eq!(held_count(&cache, &keys[..=index]) as u64, before);
            }
            // A key takes 10.7 bytes of a full set, and four times as much when the sets have just been doubled.
            assert!(size_bytes <= 1 << 20 || size_bytes <= 43 * (index as u64 + 1));
        }
        assert!(size_bytes > (8 << 20) * 9 / 10 && size_bytes <= 8 << 20);
    }

    #[test]
    fn keys_that_differ_in_one_bit_are_told_apart_at_every_size() {
        let mut random = fastrand::Rng::with_seed(9);
        for doublings in [0, 2, 4] {
            let cache = cache(64 * ((16_000 << doublings) + 1));
            while cache.level.read().expect("whole").doublings < doublings {
                cache.insert(random.u128(..));
            }
            let key = random.u128(..);
            // The partition is no hash, and not looked at.
            for bit in 0..120 {
                cache.insert(key);
                let other = key ^ 1 << bit;
                assert!(has(&cache, key));
                // In the middle of the place and what follows on it a bit may change neither.
                if !(56..120).contains(&bit) || bit >= 100 {
                    assert!(!has(&cache, other), "bit {bit} of {doublings}");
                }
            }
        }
    }

    #[test]
    fn never_asks_for_more_than_it_may() {
        for bytes_max in [0, 1, 64, 127, 128, 5_000, 1 << 20, 3_333_333] {
            let cache = cache(bytes_max);
            let mut random = fastrand::Rng::with_seed(9);
            for _ in 0..bytes_max / 5 {
                cache.insert(random.u128(..));
            }
            assert!(cache.size_bytes() <= bytes_max as u64);
            assert!(cache.size_bytes() + 128 + bytes_max as u64 / 512 > bytes_max as u64);
            cache.insert(7);
            assert_eq!(has(&cache, 7), bytes_max >= 128);
        }
    }

    #[test]
    fn the_key_of_an_empty_place_is_never_claimed() {
        let cache = cache(1 << 12);
        for key in [0, 1 << 120, u128::MAX << 120] {
            assert!(!has(&cache, key));
            cache.insert(key);
            assert!(!has(&cache, key));
        }
    }

    #[test]
    fn threads_that_share_a_set_never_mix_up_keys() {
        let cache = cache(128);
        let keys = keys(80);
        let (inserted, others) = keys.split_at(40);
        std::thread::scope(|scope| {
            for part in inserted.chunks(10) {
                let cache = &cache;
                scope.spawn(move || {
                    for _ in 0..2_000 {
                        for key in part {
                            cache.insert(*key);
                        }
                        assert_eq!(held_count(cache, others), 0);
                    }
                });
            }
        });
        assert_eq!(held_count(&cache, inserted), 6);
    }

    #[test]
    fn threads_go_on_while_it_grows() {
        let cache = cache(4 << 20);
        let keys = keys(400_000);
        let (inserted, others) = keys.split_at(320_000);
        std::thread::scope(|scope| {
            for part in inserted.chunks(80_000) {
                let cache = &cache;
                scope.spawn(move || {
                    for (key, other) in part.iter().zip(others) {
                        cache.insert(*key);
                        assert!(!has(cache, *other));
                    }
                });
            }
        });
        // What was inserted while it doubled may be forgotten; from then on all is as ever.
        let again = &inserted[..10_000];
        for key in again {
            cache.insert(*key);
        }
        assert!(held_count(&cache, again) > 9_900);
    }
}

/// Run by `RUSTFLAGS="--cfg loom" cargo test -p filter --lib`.
#[cfg(all(test, loom))]
mod interleavings {
    use loom::{sync::Arc, thread};

    use super::*;
    use crate::line::AtomicU64;

    fn tag(upper: u16) -> Tag {
        Tag { upper, lower: 1 }
    }

    #[test]
    fn tags_that_two_threads_hold_are_both_held_and_others_never_seem_so() {
        loom::model(|| {
            let line: Arc<Line> = Arc::new(std::array::from_fn(|_| AtomicU64::new(0)));
            let there = Arc::clone(&line);
            let other = thread::spawn(move || {
                hold(&there, tag(2));
                // Parts of both tags that are held.
                assert!(!find(&there, Tag { upper: 3, lower: 1 }));
            });
            hold(&line, tag(1));
            assert!(find(&line, tag(1)));
            other.join().expect("the other thread ends");
            assert!(find(&line, tag(1)) && find(&line, tag(2)));
        });
    }
}
