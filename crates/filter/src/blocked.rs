//! The filter of a fixed size: lines, each with a lock of its own, and counters that need no scan.

use std::{
    fmt,
    sync::atomic::{AtomicU64 as Counter, Ordering::Relaxed},
};

use thiserror::Error;

use crate::{
    line::{self, Pattern},
    lines::{Lines, Pages},
    sizing::{self, LINE_BYTES},
};

/// The most memory that a filter may take: 1 TiB.
pub const SIZE_BYTES_MAX: u64 = 1 << 40;

/// Keys that a growing filter takes at a time, before it looks whether it is full: those of a usual page.
pub(crate) const BATCH_KEYS: usize = 64;

/// Keys of a batch whose lines are on their way from memory at a time: enough to keep the memory busy, few enough for the
/// first-level cache.
const AHEAD_KEYS: usize = 32;

/// Groups of lines with counters of their own, so that threads seldom meet at one.
const STRIPES: usize = 16;

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
        "{bytes} bytes, for a filter or for its cache, do not fit in memory: expect fewer keys, accept a higher rate or give \
         the cache less"
    )]
    OutOfMemory {
        /// Its size.
        bytes: u64,
    },
}

/// A set of 128-bit keys that answers "not in it" exactly and "in it" wrongly at a known rate.
///
/// All methods take `&self` and may be called from any number of threads: the filter is sharded by line, each of which
/// carries its lock, so threads meet only where they insert into the same 64 bytes.
pub struct Filter {
    lines: Lines,
    counters: [Stripe; STRIPES],
    expected_count: u64,
    target_rate: f64,
}

/// Counters, alone on their cache line.
#[derive(Default)]
#[repr(align(64))]
struct Stripe {
    item_count: Counter,
    bit_count: Counter,
}

/// What insertions added: keys that were new, and bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Added {
    pub(crate) item_count: u64,
    pub(crate) bit_count: u64,
}

/// A key as the filter sees it.
#[derive(Clone, Copy, Default)]
struct Probe {
    line: usize,
    pattern: Pattern,
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
        Self::with_pages(expected_count, rate, Pages::default())
    }

    /// Makes a filter as [`Filter::with_rate`] does, in the pages asked for.
    ///
    /// # Errors
    ///
    /// Fails as [`Filter::with_rate`] does.
    pub fn with_pages(expected_count: u64, rate: f64, pages: Pages) -> Result<Self, FilterError> {
        let lines_count = Self::lines_for(expected_count, rate)?;
        let lines = Lines::new(lines_count, pages)?;
        Ok(Self::from_parts(lines, expected_count, rate))
    }

    /// Makes a filter of lines; what they hold is yet to be counted.
    pub(crate) fn from_parts(lines: Lines, expected_count: u64, target_rate: f64) -> Self {
        Self {
            lines,
            counters: Default::default(),
            expected_count,
            target_rate,
        }
    }

    /// Returns the lines that a filter needs, or why it cannot be made.
    pub(crate) fn lines_for(expected_count: u64, rate: f64) -> Result<usize, FilterError> {
        if !(rate > 0.0 && rate < 1.0) {
            return Err(FilterError::Rate(rate));
        }
        if expected_count == 0 {
            return Err(FilterError::ExpectedCount);
        }
        let lines_count = sizing::lines_for(expected_count, rate);
        usize::try_from(lines_count)
            .ok()
            .filter(|_| lines_count <= SIZE_BYTES_MAX / LINE_BYTES)
            .ok_or(FilterError::TooLarge {
                expected_count,
                rate,
            })
    }

    /// Inserts a key and returns whether it is new: `true` says for certain that the filter did not have it.
    ///
    /// Of all calls with one key, whatever the threads, at most one returns `true`; none does if the key is a false
    /// positive, its bits having been set by other keys.
    pub fn check_and_insert(&self, key: u128) -> bool {
        let probe = self.probe(key);
        let mut added = Added::default();
        let is_new = self.insert(probe, &mut added);
        if is_new {
            self.count(probe.line, added);
        }
        is_new
    }

    /// Inserts keys in order, and sets `is_new[i]` to whether `keys[i]` is new, as [`Filter::check_and_insert`] says.
    ///
    /// The lines of many keys are on their way from memory at a time, so a batch of a page's links takes a fraction of
    /// the time of single calls. Of a key that the batch has twice, the first is new.
    ///
    /// # Panics
    ///
    /// Panics when the slices differ in length.
    pub fn check_and_insert_batch(&self, keys: &[u128], is_new: &mut [bool]) {
        assert_eq!(keys.len(), is_new.len(), "a batch has one answer a key");
        let mut added = Added::default();
        self.for_each_fetched(keys, |index, probe| {
            is_new[index] = self.insert(probe, &mut added);
        });
        if let Some(key) = keys.first() {
            self.count(self.lines.index_of(*key), added);
        }
    }

    /// Returns whether the filter says that it has the key: `false` is certain, `true` may be wrong.
    #[must_use]
    pub fn contains(&self, key: u128) -> bool {
        let probe = self.probe(key);
        line::contains(self.lines.line(probe.line), probe.pattern)
    }

    /// Sets `has[i]` to whether the filter says that it has `keys[i]`, as [`Filter::contains`] does, with the lines of
    /// many keys on their way from memory at a time.
    ///
    /// # Panics
    ///
    /// Panics when the slices differ in length.
    pub fn contains_batch(&self, keys: &[u128], has: &mut [bool]) {
        assert_eq!(keys.len(), has.len(), "a batch has one answer a key");
        self.for_each_fetched(keys, |index, probe| {
            has[index] = line::contains(self.lines.line(probe.line), probe.pattern);
        });
    }

    /// Begins to bring the line of a key into the processor's cache, for a caller that has work to do before it asks.
    #[inline]
    pub fn prefetch(&self, key: u128) {
        self.lines.prefetch(self.lines.index_of(key));
    }

    /// Returns how many keys were new.
    #[must_use]
    pub fn item_count(&self) -> u64 {
        self.counters
            .iter()
            .map(|stripe| stripe.item_count.load(Relaxed))
            .sum()
    }

    /// Returns the share of bits that are set, 0 to 1.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a ratio for people")]
    pub fn fill(&self) -> f64 {
        self.bit_count() as f64 / self.bits_all() as f64
    }

    /// Returns the rate of false positives that the fill predicts now, 0 to 1.
    #[must_use]
    pub fn predicted_rate(&self) -> f64 {
        sizing::rate_of_load(sizing::load_of_fill(self.fill()))
    }

    /// Returns the memory of the lines in bytes.
    #[must_use]
    pub const fn size_bytes(&self) -> u64 {
        self.lines.size_bytes()
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

    pub(crate) const fn lines(&self) -> &Lines {
        &self.lines
    }

    /// Returns the bits that are set.
    pub(crate) fn bit_count(&self) -> u64 {
        self.counters
            .iter()
            .map(|stripe| stripe.bit_count.load(Relaxed))
            .sum()
    }

    /// Returns all bits that keys can set.
    pub(crate) const fn bits_all(&self) -> u64 {
        // One bit a line is its lock.
        self.lines.count() as u64 * (LINE_BYTES * 8 - 1)
    }

    /// Inserts a key without counting it; what it added is for [`Filter::count`].
    #[inline]
    pub(crate) fn insert_uncounted(&self, key: u128, added: &mut Added) -> bool {
        self.insert(self.probe(key), added)
    }

    /// Adds to the counters near a line, for one thread seldom to meet another there.
    pub(crate) fn count(&self, line: usize, added: Added) {
        if added != Added::default() {
            let stripe = &self.counters[line % STRIPES];
            stripe.item_count.fetch_add(added.item_count, Relaxed);
            stripe.bit_count.fetch_add(added.bit_count, Relaxed);
        }
    }

    #[inline]
    fn probe(&self, key: u128) -> Probe {
        Probe {
            line: self.lines.index_of(key),
            pattern: Pattern::of(key),
        }
    }

    /// Hands each key to `act`, in order, with its line on the way from memory for as long as [`AHEAD_KEYS`] keys take.
    #[inline]
    fn for_each_fetched(&self, keys: &[u128], mut act: impl FnMut(usize, Probe)) {
        let mut probes = [Probe::default(); AHEAD_KEYS];
        let fetch = |key: u128| {
            let probe = self.probe(key);
            self.lines.prefetch(probe.line);
            probe
        };
        for (probe, key) in probes.iter_mut().zip(keys) {
            *probe = fetch(*key);
        }
        for index in 0..keys.len() {
            let place = &mut probes[index % AHEAD_KEYS];
            let probe = *place;
            if let Some(later) = keys.get(index + AHEAD_KEYS) {
                *place = fetch(*later);
            }
            act(index, probe);
        }
    }

    #[inline]
    fn insert(&self, probe: Probe, added: &mut Added) -> bool {
        let bit_count = line::insert(self.lines.line(probe.line), probe.pattern);
        added.item_count += u64::from(bit_count > 0);
        added.bit_count += bit_count;
        bit_count > 0
    }
}

impl fmt::Debug for Filter {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Filter")
            .field("size_bytes", &self.size_bytes())
            .field("item_count", &self.item_count())
            .field("expected_count", &self.expected_count)
            .field("target_rate", &self.target_rate)
            .finish_non_exhaustive()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn random_keys(count: usize, seed: u64) -> Vec<u128> {
        let mut random = fastrand::Rng::with_seed(seed);
        (0..count).map(|_| random.u128(..)).collect()
    }

    #[test]
    fn fill_is_what_a_count_of_the_bits_says() {
        let filter = Filter::with_rate(20_000, 0.01).expect("in range");
        for key in random_keys(20_000, 4) {
            filter.check_and_insert(key);
        }
        let ones_count: u64 = (0..filter.lines.count())
            .flat_map(|index| filter.lines.line(index))
            .map(|word| u64::from(word.load(Relaxed).count_ones()))
            .sum();
        assert_eq!(ones_count, filter.bit_count());
        assert!((0.5..0.6).contains(&filter.fill()), "{}", filter.fill());
    }

    #[test]
    fn batches_answer_and_count_as_single_calls_do() {
        let (single, batch) = (
            Filter::with_rate(3_000, 0.01).expect("in range"),
            Filter::with_rate(3_000, 0.01).expect("in range"),
        );
        let mut keys = random_keys(2_000, 6);
        keys.extend_from_within(500..1_300);
        let expected: Vec<bool> = keys
            .iter()
            .map(|key| single.check_and_insert(*key))
            .collect();
        let mut is_new = vec![false; keys.len()];
        batch.check_and_insert_batch(&keys, &mut is_new);
        assert_eq!(is_new, expected);
        assert_eq!(
            (batch.item_count(), batch.bit_count()),
            (single.item_count(), single.bit_count())
        );
        keys.extend(random_keys(2_000, 7));
        let expected: Vec<bool> = keys.iter().map(|key| single.contains(*key)).collect();
        let mut has = vec![false; keys.len()];
        batch.contains_batch(&keys, &mut has);
        assert_eq!(has, expected);
        assert!(has[..2_800].iter().all(|has| *has));
        batch.check_and_insert_batch(&[], &mut []);
        batch.contains_batch(&[], &mut []);
    }
}
