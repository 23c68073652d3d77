//! The recent-key cache: an exact, bounded set of the keys that were used last.

mod set;
#[cfg(all(test, not(loom)))]
mod tests;

use std::{
    mem,
    sync::{
        Mutex, PoisonError, RwLock, RwLockReadGuard,
        atomic::{AtomicBool, AtomicU64 as Counter, Ordering::Relaxed},
    },
};

use self::set::{EMPTY, Tag, WAYS};
use crate::{FilterError, Pages, line::Line, lines::Lines};

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
    levels: RwLock<Levels>,
    /// Sets at first.
    base_count: usize,
    doublings_max: u32,
    pages: Pages,
    /// Held by the one thread that makes it grow.
    growth: Mutex<()>,
    /// Whether memory for growth was refused, so that not every batch tries again.
    is_refused: AtomicBool,
}

/// The sets in use, and while they are doubled those that will take their place.
struct Levels {
    current: Level,
    /// Takes all insertions too, and meanwhile what the sets in use hold.
    next: Option<Level>,
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
    levels: RwLockReadGuard<'a, Levels>,
    base_count: usize,
}

/// Where a key belongs, and the bits that are kept of it.
struct Address {
    index: usize,
    tag: Tag,
}

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
            levels: RwLock::new(Levels {
                current: Level::new(base_count, 0, pages)?,
                next: None,
            }),
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
            levels: self.levels.read().unwrap_or_else(PoisonError::into_inner),
            base_count: self.base_count,
        }
    }

    /// Holds one key. For many, ask for the right to do so once.
    pub fn insert(&self, key: u128) {
        self.read().insert(key);
        self.grow_if_full();
    }

    /// Doubles the cache if half of its places are taken and it may; all that it holds stays, and other threads do not wait.
    /// Returns whether it did. Where the memory is refused it stays as it is.
    pub fn grow_if_full(&self) -> bool {
        if !self.is_due(&self.read().levels.current) {
            return false;
        }
        // One thread grows; the others go on as it is meanwhile.
        let Ok(_growth) = self.growth.try_lock() else {
            return false;
        };
        // Nobody else can double it from here on.
        let reader = self.read();
        let doublings = reader.levels.current.doublings + 1;
        if !self.is_due(&reader.levels.current) {
            return false;
        }
        drop(reader);
        let Ok(next) = Level::new(self.base_count << doublings, doublings, self.pages) else {
            self.is_refused.store(true, Relaxed);
            return false;
        };
        self.change(|levels| levels.next = Some(next));
        self.read().levels.copy_to_next();
        let old = self.change(|levels| {
            let next = levels.next.take()?;
            Some(mem::replace(&mut levels.current, next))
        });
        // Its memory is given back when nobody waits for the lock any more.
        drop(old);
        true
    }

    fn change<T>(&self, change: impl FnOnce(&mut Levels) -> T) -> T {
        change(&mut self.levels.write().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns the memory in bytes.
    #[must_use]
    pub fn size_bytes(&self) -> u64 {
        self.read().levels.current.sets.size_bytes()
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

    /// Finds the set of a key by its topmost bits of hash; the 16 bits that follow on those of the place at the first size
    /// are kept, with the low half of the key.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the parts of a key are wanted, and the index is below the number of sets"
    )]
    fn address_of(&self, key: u128, base_count: usize) -> Address {
        let product = (key >> 56 & u128::from(u64::MAX)) * base_count as u128;
        let (base, rest) = ((product >> 64) as usize, product as u64);
        let below = if self.doublings == 0 {
            0
        } else {
            rest >> (64 - self.doublings)
        };
        Address {
            index: base << self.doublings | below as usize,
            tag: Tag {
                upper: (rest >> 48) as u16,
                lower: key as u64,
            },
        }
    }

    /// Holds a tag; returns the one whose place it took, `EMPTY` if none did.
    fn insert(&self, Address { index, tag }: Address) -> Tag {
        if tag == EMPTY {
            return EMPTY;
        }
        let replaced = set::hold(self.sets.line(index), tag);
        if replaced == EMPTY {
            self.held_count.fetch_add(1, Relaxed);
        }
        replaced
    }

    /// Holds tags of one set of half the sets behind all that is there, where there is room.
    fn append(&self, index: usize, tags: &[Tag]) {
        for half in 0..2 {
            let is_there = |tag: &Tag| usize::from(tag.upper >> (16 - self.doublings) & 1) == half;
            let tags = tags.iter().copied().filter(|tag| *tag != EMPTY);
            let line = self.sets.line(index * 2 + half);
            let appended_count = set::append(line, tags.filter(is_there));
            self.held_count.fetch_add(appended_count, Relaxed);
        }
    }
}

impl Levels {
    /// Enters what the sets in use hold in those of twice the number, behind what was inserted there meanwhile, which is
    /// used more recently.
    fn copy_to_next(&self) {
        let Some(next) = &self.next else { return };
        for index in 0..self.current.sets.count() {
            next.append(index, &set::read(self.current.sets.line(index)));
        }
    }

    /// Holds a key. While the sets are doubled, what it drives out may not have been copied yet.
    fn insert(&self, key: u128, base_count: usize) {
        let Self { current, next } = self;
        let address = current.address_of(key, base_count);
        let index = address.index;
        let replaced = current.insert(address);
        if let Some(next) = next {
            next.append(index, &[replaced]);
            next.insert(next.address_of(key, base_count));
        }
    }
}

impl RecentReader<'_> {
    /// Begins to bring the set of a key into the processor's cache.
    #[inline]
    pub fn prefetch(&self, key: u128) {
        if self.base_count > 0 {
            let current = &self.levels.current;
            current
                .sets
                .prefetch(current.address_of(key, self.base_count).index);
        }
    }

    /// Returns whether the key is held, and makes it the most recent of its set.
    #[must_use]
    pub fn contains(&self, key: u128) -> bool {
        let current = &self.levels.current;
        let Address { index, tag } = current.address_of(key, self.base_count);
        if self.base_count == 0 || tag == EMPTY {
            return false;
        }
        set::find(current.sets.line(index), tag)
    }

    /// Holds a key, in place of the least recent of its set.
    pub fn insert(&self, key: u128) {
        if self.base_count == 0 {
            return;
        }
        self.levels.insert(key, self.base_count);
    }
}
