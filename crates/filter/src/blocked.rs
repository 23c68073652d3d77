//! The filter: shards of lines, with statistics that need no scan.

use std::{fmt, sync::atomic::Ordering::Relaxed};

use thiserror::Error;

use crate::{
    line::{self, AtomicU64, Line, Pattern, WORDS},
    sizing::{self, LINE_BYTES},
};

/// The most memory that a filter may take: 1 TiB.
pub const SIZE_BYTES_MAX: u64 = 1 << 40;

/// Shards of a filter that is large enough for them, so that threads seldom meet at one shard's counters.
const SHARDS_MAX: u64 = 64;

/// Smaller filters have fewer shards, each of at least this many lines, so that rounding up costs next to nothing.
const SHARD_LINES_MIN: u64 = 1_024;

/// Why a filter cannot be made.
#[derive(Clone, Copy, Debug, PartialEq, Error)]
pub enum FilterError {
    /// The rate is no probability that a filter can have.
    #[error("false-positive rate {0} is out of range: give one above 0 and below 1, such as 0.01")]
    Rate(f64),
    /// No keys are expected.
    #[error("expected count 0 is out of range: give at least 1")]
    ExpectedCount,
    /// It would be over [`SIZE_BYTES_MAX`].
    #[error(
        "a filter for {expected_count} keys at a false-positive rate of {rate} is over the limit of {SIZE_BYTES_MAX} \
         bytes: expect fewer keys or accept a higher rate"
    )]
    TooLarge {
        /// The keys expected.
        expected_count: u64,
        /// The rate asked for.
        rate: f64,
    },
    /// The system does not give that much memory.
    #[error(
        "a filter of {bytes} bytes does not fit in memory: expect fewer keys or accept a higher rate"
    )]
    OutOfMemory {
        /// Its size.
        bytes: u64,
    },
}

/// A set of 128-bit keys that answers "not in it" exactly and "in it" wrongly at a known rate.
///
/// All methods take `&self` and may be called from any number of threads.
pub struct Filter {
    shards: Vec<Shard>,
    /// `log2` of the number of shards.
    shard_bits: u32,
    expected_count: u64,
    target_rate: f64,
}

impl Filter {
    /// Makes an empty filter whose rate of false positives reaches `rate` when `expected_count` keys are in it.
    ///
    /// Memory is asked for at once; where the system gives zeroed pages at their first touch, an optimized build takes
    /// it up only as keys come.
    ///
    /// # Errors
    ///
    /// Fails when `rate` is not between 0 and 1, when `expected_count` is 0, and when the filter would be over
    /// [`SIZE_BYTES_MAX`] or over what the system gives.
    pub fn with_rate(expected_count: u64, rate: f64) -> Result<Self, FilterError> {
        if !(rate > 0.0 && rate < 1.0) {
            return Err(FilterError::Rate(rate));
        }
        if expected_count == 0 {
            return Err(FilterError::ExpectedCount);
        }
        let lines_count = sizing::lines_for(expected_count, rate);
        let too_large = FilterError::TooLarge {
            expected_count,
            rate,
        };
        if lines_count > SIZE_BYTES_MAX / LINE_BYTES {
            return Err(too_large);
        }
        let shard_bits = (lines_count / SHARD_LINES_MIN).clamp(1, SHARDS_MAX).ilog2();
        let shard_count = 1_usize << shard_bits;
        let shard_lines_count =
            usize::try_from(lines_count.div_ceil(shard_count as u64)).map_err(|_| too_large)?;
        // Asks for all of it first, since the zeroed allocations below abort the process where this one fails.
        let words_count = Shard::words_for(shard_lines_count).saturating_mul(shard_count);
        Vec::<u64>::new()
            .try_reserve_exact(words_count)
            .map_err(|_| FilterError::OutOfMemory {
                bytes: words_count as u64 * (LINE_BYTES / WORDS as u64),
            })?;
        let shards = (0..shard_count)
            .map(|_| Shard::new(shard_lines_count))
            .collect();
        Ok(Self {
            shards,
            shard_bits,
            expected_count,
            target_rate: rate,
        })
    }

    /// Inserts a key and returns whether it is new: `true` says for certain that the filter did not have it.
    ///
    /// Of all calls with one key, whatever the threads, at most one returns `true`; none does if the key is a false
    /// positive, its bits having been set by other keys.
    #[expect(clippy::must_use_candidate, reason = "inserting is half of its use")]
    pub fn check_and_insert(&self, key: u128) -> bool {
        let (shard, line) = self.locate(key);
        let added_count = line::insert(line, &Pattern::of(key));
        if added_count == 0 {
            return false;
        }
        shard.item_count.fetch_add(1, Relaxed);
        shard.bit_count.fetch_add(u64::from(added_count), Relaxed);
        true
    }

    /// Inserts keys in order, and sets `is_new[i]` to whether `keys[i]` is new, as [`Filter::check_and_insert`] says.
    ///
    /// # Panics
    ///
    /// Panics when the slices differ in length.
    pub fn check_and_insert_batch(&self, keys: &[u128], is_new: &mut [bool]) {
        assert_eq!(keys.len(), is_new.len(), "a batch has one answer a key");
        for (key, is_new) in keys.iter().zip(is_new) {
            *is_new = self.check_and_insert(*key);
        }
    }

    /// Returns whether the filter says that it has the key: `false` is certain, `true` may be wrong.
    #[must_use]
    pub fn contains(&self, key: u128) -> bool {
        let (_, line) = self.locate(key);
        line::contains(line, &Pattern::of(key))
    }

    /// Returns how many keys were new.
    #[must_use]
    pub fn item_count(&self) -> u64 {
        self.shards
            .iter()
            .map(|shard| shard.item_count.load(Relaxed))
            .sum()
    }

    /// Returns the share of bits that are set, 0 to 1.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a ratio for people")]
    pub fn fill(&self) -> f64 {
        let set_count: u64 = self
            .shards
            .iter()
            .map(|shard| shard.bit_count.load(Relaxed))
            .sum();
        // One bit a line is its lock.
        let all_count = self.lines_count() * (LINE_BYTES * 8 - 1);
        set_count as f64 / all_count as f64
    }

    /// Returns the rate of false positives that the fill predicts now, 0 to 1.
    #[must_use]
    pub fn predicted_rate(&self) -> f64 {
        sizing::rate_of_load(sizing::load_of_fill(self.fill()))
    }

    /// Returns the memory of the lines in bytes.
    #[must_use]
    pub fn size_bytes(&self) -> u64 {
        self.lines_count() * LINE_BYTES
    }

    /// Returns how many keys the filter was made for.
    #[must_use]
    pub const fn expected_count(&self) -> u64 {
        self.expected_count
    }

    /// Returns the rate of false positives that the filter was made for.
    #[must_use]
    pub const fn target_rate(&self) -> f64 {
        self.target_rate
    }

    fn lines_count(&self) -> u64 {
        self.shards
            .iter()
            .map(|shard| shard.lines_count as u64)
            .sum()
    }

    /// Finds the line of a key by its low half: the top bits name the shard, the rest the line.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the low half is wanted, and both indexes are in range"
    )]
    fn locate(&self, key: u128) -> (&Shard, &Line) {
        let hash = u128::from(key as u64) << self.shard_bits;
        let shard = &self.shards[(hash >> 64) as usize];
        let in_shard = u128::from(hash as u64);
        (
            shard,
            shard.line(((in_shard * shard.lines_count as u128) >> 64) as usize),
        )
    }
}

impl fmt::Debug for Filter {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Filter")
            .field("expected_count", &self.expected_count)
            .field("target_rate", &self.target_rate)
            .field("size_bytes", &self.size_bytes())
            .field("item_count", &self.item_count())
            .finish_non_exhaustive()
    }
}

/// A part of the lines with the counters of their keys, on a cache line of its own.
#[repr(align(64))]
struct Shard {
    /// The lines, from `first_word` on.
    words: Vec<AtomicU64>,
    /// Words before the first cache line boundary.
    first_word: usize,
    lines_count: usize,
    item_count: AtomicU64,
    bit_count: AtomicU64,
}

impl Shard {
    /// Words of a shard. The allocator aligns to less than a line, so one line more is asked for, and a part of it left
    /// unused.
    const fn words_for(lines_count: usize) -> usize {
        (lines_count + 1) * WORDS
    }

    /// Makes a shard of empty lines.
    fn new(lines_count: usize) -> Self {
        // Zeroed by the system, page by page, at the first touch: an optimized build wraps the words in place and so
        // touches none.
        let words: Vec<AtomicU64> = vec![0_u64; Self::words_for(lines_count)]
            .into_iter()
            .map(AtomicU64::new)
            .collect();
        let first_word = words.as_ptr().align_offset(size_of::<Line>()).min(WORDS);
        Self {
            words,
            first_word,
            lines_count,
            item_count: AtomicU64::new(0),
            bit_count: AtomicU64::new(0),
        }
    }

    fn line(&self, index: usize) -> &Line {
        let first = self.first_word + index * WORDS;
        self.words[first..]
            .first_chunk()
            .expect("a shard holds all its lines")
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn filled(keys_count: u64) -> Filter {
        let filter = Filter::with_rate(keys_count, 0.01).expect("in range");
        let mut random = fastrand::Rng::with_seed(4);
        for _ in 0..keys_count {
            filter.check_and_insert(random.u128(..));
        }
        filter
    }

    #[test]
    fn fill_is_what_a_count_of_the_bits_says() {
        let filter = filled(20_000);
        let ones_count: u64 = (filter.shards.iter())
            .flat_map(|shard| &shard.words)
            .map(|word| u64::from(word.load(Relaxed).count_ones()))
            .sum();
        let set_count: u64 = (filter.shards.iter())
            .map(|shard| shard.bit_count.load(Relaxed))
            .sum();
        assert_eq!(ones_count, set_count);
        assert!((0.5..0.6).contains(&filter.fill()), "{}", filter.fill());
    }

    #[test]
    fn keys_spread_over_shards_and_lines_which_begin_at_cache_lines() {
        let filter = filled(4_000_000);
        assert_eq!(filter.shards.len(), 64);
        for shard in &filter.shards {
            let items_count = shard.item_count.load(Relaxed);
            assert!((60_000..65_000).contains(&items_count), "{items_count}");
            let lines = (0..shard.lines_count).map(|index| shard.line(index));
            for line in lines {
                assert_eq!(line.as_ptr().addr() % 64, 0);
                assert_ne!(line[1].load(Relaxed), 0, "a line that no key reaches");
            }
        }
    }
}
