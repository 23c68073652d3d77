//! The filter that grows: an exact set while there are few keys, then a chain of slices with tightening rates.
//!
//! A slice is a [`Filter`] of a fixed size. Only the last one takes keys; when it has its share, it is left as it is and
//! a larger one is added, so nothing is ever moved, and no key is ever answered "no" wrongly. A key that is in none of
//! the slices is new. The rates of false positives add up, so each new slice may use half of what the others left of the
//! rate asked for: however many there are, the sum stays below it (Almeida et al., "Scalable Bloom Filters", 2007).

use std::{
    cell::Cell,
    fmt,
    sync::{
        Arc, Mutex, OnceLock, PoisonError, RwLock, RwLockReadGuard,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

use crate::{
    Filter, FilterError, Pages,
    blocked::{Added, BATCH_KEYS},
    chain::{self, Slice},
    exact::{self, ExactKeys},
    sizing,
};

/// A set of up to this many keys is always exact.
const EXACT_COUNT_MIN: u64 = 10_000;

/// A set of more keys is never exact: to turn it into a filter takes all threads' patience.
const EXACT_COUNT_MAX: u64 = 250_000;

/// When keys are held exactly, and not in a filter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Exact {
    /// While they take less than a third of the memory of the filter that is planned, or are fewer than 10,000; never
    /// beyond 250,000.
    #[default]
    Small,
    /// Always: there is no filter. Memory is 19 to 39 bytes a key.
    Always,
    /// Never.
    Never,
}

/// What a [`GrowingFilter`] is made for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GrowthConfig {
    /// Keys that are expected, at least 1. More make it grow.
    pub expected_count: u64,
    /// The rate of false positives that is never exceeded, above 0 and below 1.
    pub rate: f64,
    /// When keys are held exactly.
    pub exact: Exact,
    /// Whether it grows; otherwise the rate is exceeded beyond `expected_count` keys.
    pub grows: bool,
    /// The pages of its memory.
    pub pages: Pages,
}

/// What is known of a key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Answer {
    /// It was not there: certain.
    #[default]
    New,
    /// It was there: certain, since the keys are held exactly.
    Present,
    /// The filter says that it was there, which is wrong at the rate of false positives.
    Claimed,
}

/// Size, content and quality.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FilterStats {
    /// Whether the keys are held exactly.
    pub is_exact: bool,
    /// Slices of the filter; 0 while the keys are held exactly.
    pub slice_count: u64,
    /// Keys that were new.
    pub item_count: u64,
    /// Keys expected.
    pub expected_count: u64,
    /// The rate asked for.
    pub target_rate: f64,
    /// The share of bits that are set, 0 to 1.
    pub fill: f64,
    /// The rate of false positives that the fill predicts now, over all slices.
    pub predicted_rate: f64,
    /// Memory in bytes.
    pub size_bytes: u64,
    /// Keys that were most likely answered [`Answer::Claimed`] although they were not there, so far.
    pub expected_lost: f64,
    /// Why it could not grow, if it had to and could not: it goes on, and exceeds the rate, or as an exact set takes more
    /// memory with every key.
    pub growth_error: Option<FilterError>,
}

/// A set of 128-bit keys whose memory follows the number of keys, and whose rate of false positives stays below the one
/// asked for however many come.
///
/// All methods take `&self` and may be called from any number of threads. Of all calls with one key at most one is
/// answered [`Answer::New`], whatever the threads and whether it grows meanwhile.
///
/// Keys cannot be taken out: a bit may belong to many. Whoever has to forget keys makes a new filter from those that
/// remain, which costs a second of processor time for each 25 million.
///
/// ```
/// use filter::{Answer, GrowingFilter, GrowthConfig};
///
/// # fn main() -> Result<(), filter::FilterError> {
/// let filter = GrowingFilter::new(&GrowthConfig { expected_count: 50_000_000, ..GrowthConfig::default() })?;
/// let mut answers = [Answer::default(); 2];
/// filter.check_and_insert_batch(&[1 << 100 | 7, 1 << 100 | 7], &mut answers);
/// assert_eq!(answers, [Answer::New, Answer::Present]);
/// assert!(filter.stats().size_bytes < 10_000, "few keys take little memory");
/// # Ok(())
/// # }
/// ```
pub struct GrowingFilter {
    config: GrowthConfig,
    stage: RwLock<Stage>,
    /// The most keys that are held exactly.
    exact_count_max: u64,
    /// The first so many keys were certain to be new: held exactly at first, or entered without being offered.
    entered_count: AtomicU64,
    /// Held by the one thread that makes it grow.
    growth: Mutex<()>,
    /// Why growth failed, so that not every batch tries again.
    growth_error: OnceLock<FilterError>,
}

pub(crate) enum Stage {
    Exact(ExactKeys),
    /// The slices by age; the last takes keys. Shared with whoever saves them, so that nobody waits for that.
    Slices(Vec<Arc<Slice>>),
}

/// The right to ask for keys one by one while nothing grows. Keep it for a batch, not for longer, and call
/// [`GrowingFilter::grow_if_full`] afterwards: a thread that calls a method of the filter itself while it has one may wait
/// for ever.
pub struct Reader<'a> {
    pub(crate) stage: RwLockReadGuard<'a, Stage>,
    added: Cell<Added>,
    /// Where what was added is counted.
    line: Cell<usize>,
}

impl Default for GrowthConfig {
    /// A million keys at 1 %.
    fn default() -> Self {
        Self {
            expected_count: 1_000_000,
            rate: 0.01,
            exact: Exact::Small,
            grows: true,
            pages: Pages::default(),
        }
    }
}

impl GrowthConfig {
    /// Returns the most keys that are held exactly.
    fn exact_count_max(&self) -> u64 {
        match self.exact {
            Exact::Always => u64::MAX,
            Exact::Never => 0,
            Exact::Small => {
                let lines_count = sizing::lines_for(self.expected_count, self.rate);
                let bytes = lines_count.saturating_mul(sizing::LINE_BYTES);
                exact::count_within(bytes).clamp(EXACT_COUNT_MIN, EXACT_COUNT_MAX)
            }
        }
    }
}

impl GrowingFilter {
    /// Makes an empty one.
    ///
    /// # Errors
    ///
    /// Fails when the rate is not between 0 and 1, when no keys are expected, and when the filter for those expected
    /// would be over [`SIZE_BYTES_MAX`](crate::SIZE_BYTES_MAX) or over what the system gives.
    pub fn new(config: &GrowthConfig) -> Result<Self, FilterError> {
        // Also where none is needed yet: what cannot be had should be said before the first key.
        Filter::lines_for(config.expected_count, config.rate)?;
        let stage = match config.exact {
            Exact::Never => Stage::Slices(vec![Arc::new(Slice::first(config, 0)?)]),
            Exact::Small | Exact::Always => Stage::Exact(ExactKeys::new()),
        };
        Ok(Self::from_parts(*config, stage, 0))
    }

    pub(crate) fn from_parts(config: GrowthConfig, stage: Stage, entered_count: u64) -> Self {
        Self {
            config,
            exact_count_max: config.exact_count_max(),
            growth: Mutex::new(()),
            stage: RwLock::new(stage),
            entered_count: AtomicU64::new(entered_count),
            growth_error: OnceLock::new(),
        }
    }

    /// Returns what it was made for.
    #[must_use]
    pub const fn config(&self) -> &GrowthConfig {
        &self.config
    }

    /// Inserts keys in order, and sets `answers[i]` to what was known of `keys[i]` before.
    ///
    /// # Panics
    ///
    /// Panics when the slices differ in length.
    pub fn check_and_insert_batch(&self, keys: &[u128], answers: &mut [Answer]) {
        assert_eq!(keys.len(), answers.len(), "a batch has one answer a key");
        for (keys, answers) in keys.chunks(BATCH_KEYS).zip(answers.chunks_mut(BATCH_KEYS)) {
            self.answer(keys, answers, Reader::check_and_insert);
            self.grow_if_full(|_| {});
        }
    }

    /// Sets `answers[i]` to what is known of `keys[i]`.
    ///
    /// # Panics
    ///
    /// Panics when the slices differ in length.
    pub fn contains_batch(&self, keys: &[u128], answers: &mut [Answer]) {
        assert_eq!(keys.len(), answers.len(), "a batch has one answer a key");
        for (keys, answers) in keys.chunks(BATCH_KEYS).zip(answers.chunks_mut(BATCH_KEYS)) {
            self.answer(keys, answers, Reader::contains);
        }
    }

    /// Asks for each key with what is needed for all of them on its way from memory.
    fn answer<'a>(
        &'a self,
        keys: &[u128],
        answers: &mut [Answer],
        ask: impl Fn(&Reader<'a>, u128) -> Answer,
    ) {
        let reader = self.read();
        for key in keys {
            reader.prefetch(*key);
        }
        for (key, answer) in keys.iter().zip(answers) {
            *answer = ask(&reader, *key);
        }
    }

    /// Enters keys that are known from elsewhere, such as the store of a resumed crawl. Each is there afterwards.
    pub fn enter(&self, keys: &[u128]) {
        let mut answers = [Answer::default(); BATCH_KEYS];
        for keys in keys.chunks(BATCH_KEYS) {
            let was_exact = self.read().is_exact();
            let answers = &mut answers[..keys.len()];
            self.check_and_insert_batch(keys, answers);
            // Those of an exact set are counted when it turns into a filter.
            if !was_exact {
                self.count_entered(answers);
            }
        }
    }

    fn count_entered(&self, answers: &[Answer]) {
        let new_count = answers
            .iter()
            .filter(|answer| **answer == Answer::New)
            .count();
        self.entered_count.fetch_add(new_count as u64, Relaxed);
    }

    /// Begins [`FilterStats::expected_lost`] anew: the keys that are there are taken as certain, and it speaks of those to
    /// come.
    pub fn restart_loss_estimate(&self) {
        self.entered_count.store(self.stats().item_count, Relaxed);
    }

    /// Gives the right to ask for keys one by one.
    #[must_use]
    pub fn read(&self) -> Reader<'_> {
        Reader {
            stage: self.stage.read().unwrap_or_else(PoisonError::into_inner),
            added: Cell::default(),
            line: Cell::default(),
        }
    }

    /// Grows if the last slice, or the exact set, has its share of keys. It is called by every batch, and nearly always
    /// looks at a few counters only.
    ///
    /// When an exact set turns into a filter, `moved` is called with each of its keys, for whoever wants to remember which
    /// keys were certain. Where memory for growth is refused all goes on as it is; [`FilterStats::growth_error`] says so.
    pub fn grow_if_full(&self, moved: impl FnMut(u128)) {
        if !self.is_due(&self.read().stage) {
            return;
        }
        // One thread grows, and those that come by wait for it: went they on, they would fill what is full already.
        let _growth = self.growth.lock().unwrap_or_else(PoisonError::into_inner);
        let made = match &*self.read().stage {
            stage if !self.is_due(stage) => return,
            Stage::Exact(keys) => Slice::first(&self.config, keys.count()).inspect(|next| {
                // The memory comes page by page when it is first written to, so that is done while nobody waits.
                enter_all(keys, next);
            }),
            Stage::Slices(slices) => Slice::next(&self.config, slices),
        };
        let next = match made {
            Ok(next) => next,
            Err(error) => {
                self.growth_error.get_or_init(|| error);
                return;
            }
        };
        self.push(next).into_iter().for_each(moved);
    }

    /// Adds a slice, and returns the keys of the exact set whose place it takes.
    fn push(&self, next: Slice) -> Vec<u128> {
        let mut keys = Vec::new();
        let mut stage = self.stage.write().unwrap_or_else(PoisonError::into_inner);
        match &mut *stage {
            Stage::Slices(slices) => slices.push(Arc::new(next)),
            Stage::Exact(exact) => {
                // Again all of them: more may have come since.
                keys = enter_all(exact, &next);
                self.entered_count.store(next.filter.item_count(), Relaxed);
                *stage = Stage::Slices(vec![Arc::new(next)]);
            }
        }
        keys
    }

    /// Returns size, content and quality; each figure is right by itself, together they are of about one moment.
    #[must_use]
    pub fn stats(&self) -> FilterStats {
        let reader = self.read();
        let common = FilterStats {
            expected_count: self.config.expected_count,
            target_rate: self.config.rate,
            growth_error: self.growth_error.get().copied(),
            ..FilterStats::default()
        };
        match &*reader.stage {
            Stage::Exact(keys) => FilterStats {
                is_exact: true,
                item_count: keys.count(),
                size_bytes: keys.size_bytes(),
                ..common
            },
            Stage::Slices(slices) => FilterStats {
                slice_count: slices.len() as u64,
                item_count: chain::sum(slices, Filter::item_count),
                fill: chain::fill(slices),
                predicted_rate: chain::compound_rate(slices),
                size_bytes: chain::sum(slices, Filter::size_bytes),
                expected_lost: chain::expected_lost(slices, self.entered_count()),
                ..common
            },
        }
    }

    pub(crate) fn entered_count(&self) -> u64 {
        self.entered_count.load(Relaxed)
    }

    fn is_due(&self, stage: &Stage) -> bool {
        let is_full = match stage {
            Stage::Exact(keys) => keys.count() > self.exact_count_max,
            Stage::Slices(slices) => {
                self.config.grows
                    && slices
                        .last()
                        .is_none_or(|last| last.filter.item_count() >= last.full_count)
            }
        };
        is_full && self.growth_error.get().is_none()
    }
}

/// Inserts the keys of an exact set into the slice that follows it, and returns them.
fn enter_all(exact: &ExactKeys, slice: &Slice) -> Vec<u128> {
    let mut keys = Vec::new();
    exact.for_each(|key| keys.push(key));
    let mut is_new = vec![false; keys.len()];
    slice.filter.check_and_insert_batch(&keys, &mut is_new);
    keys
}

impl Reader<'_> {
    /// Returns whether the keys are held exactly.
    #[must_use]
    pub fn is_exact(&self) -> bool {
        matches!(&*self.stage, Stage::Exact(_))
    }

    /// Begins to bring what is asked of for a key into the processor's cache.
    #[inline]
    pub fn prefetch(&self, key: u128) {
        if let Stage::Slices(slices) = &*self.stage {
            for slice in slices {
                slice.filter.prefetch(key);
            }
        }
    }

    /// Inserts a key and returns what was known of it before.
    #[inline]
    #[must_use]
    pub fn check_and_insert(&self, key: u128) -> Answer {
        match &*self.stage {
            Stage::Exact(keys) if keys.insert(key) => Answer::New,
            Stage::Exact(_) => Answer::Present,
            Stage::Slices(slices) => {
                let Some((last, older)) = slices.split_last() else {
                    return Answer::Claimed;
                };
                if older.iter().any(|slice| slice.filter.contains(key)) {
                    return Answer::Claimed;
                }
                // The older slices do not change, so whoever is first in the last one is first in all.
                let mut added = self.added.get();
                let is_new = last.filter.insert_uncounted(key, &mut added);
                self.added.set(added);
                self.line.set(last.filter.lines().index_of(key));
                if is_new { Answer::New } else { Answer::Claimed }
            }
        }
    }

    /// Returns what is known of a key.
    #[inline]
    #[must_use]
    pub fn contains(&self, key: u128) -> Answer {
        match &*self.stage {
            Stage::Exact(keys) if keys.contains(key) => Answer::Present,
            Stage::Slices(slices) if slices.iter().any(|slice| slice.filter.contains(key)) => {
                Answer::Claimed
            }
            Stage::Exact(_) | Stage::Slices(_) => Answer::New,
        }
    }
}

impl Drop for Reader<'_> {
    /// Counts what was added, once for all keys.
    fn drop(&mut self) {
        if let Stage::Slices(slices) = &*self.stage
            && let Some(last) = slices.last()
        {
            last.filter.count(self.line.get(), self.added.get());
        }
    }
}

impl fmt::Debug for GrowingFilter {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("GrowingFilter")
            .field("config", &self.config)
            .field("stats", &self.stats())
            .finish_non_exhaustive()
    }
}

#[cfg(all(test, not(loom)))]
#[path = "growing_test.rs"]
mod tests;
