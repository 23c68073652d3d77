//! The slices of a filter that has grown: how large the next one is, and what all of them together say.

use std::sync::Arc;

use crate::{Filter, FilterError, growing::GrowthConfig, sizing};

/// The share of its planned keys at which the first slice stops taking keys. It then has a third of its planned rate;
/// the rest is for the slices to come.
const FULL_SHARE: f64 = 0.8;

/// A new slice takes this many keys for each one that there is already. With ten times the planned keys there are four
/// slices, which take 1.9 times the memory of a single filter of that size. A factor of 1 would make it five slices and
/// 2.1 times, one of 2 would leave more unused.
const GROWTH: f64 = 1.5;

/// A filter and the number of keys at which the next one takes over.
pub(crate) struct Slice {
    pub(crate) filter: Filter,
    pub(crate) full_count: u64,
}

impl Slice {
    /// Makes the first slice, which is to begin with `item_count` keys.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a share of a count is not negative, and rounding it changes nothing"
    )]
    pub(crate) fn first(config: &GrowthConfig, item_count: u64) -> Result<Self, FilterError> {
        let expected_count = config.expected_count.max(item_count.saturating_mul(2));
        let filter = Filter::with_pages(expected_count, config.rate, config.pages)?;
        let full_count = (expected_count as f64 * FULL_SHARE) as u64;
        Ok(Self {
            filter,
            full_count: full_count.max(1),
        })
    }

    /// Makes the slice that follows on `slices`.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a multiple of a count is not negative, and rounding it changes nothing"
    )]
    pub(crate) fn next(config: &GrowthConfig, slices: &[Arc<Self>]) -> Result<Self, FilterError> {
        let item_count: u64 = slices.iter().map(|slice| slice.filter.item_count()).sum();
        let full_count = ((item_count as f64 * GROWTH) as u64).max(1);
        // What is left may be next to nothing, if the rate was exceeded in a rush of keys; a rate of 0 has no filter.
        let left = config.rate - compound_rate(slices);
        let rate = (left / 2.0).max(config.rate / 1_024.0);
        let filter = Filter::with_pages(full_count, rate, config.pages)?;
        Ok(Self { filter, full_count })
    }
}

/// Adds up a figure of each slice.
pub(crate) fn sum(slices: &[Arc<Slice>], figure: impl Fn(&Filter) -> u64) -> u64 {
    slices.iter().map(|slice| figure(&slice.filter)).sum()
}

/// Returns the share of all bits that is set.
#[expect(clippy::cast_precision_loss, reason = "a ratio for people")]
pub(crate) fn fill(slices: &[Arc<Slice>]) -> f64 {
    sum(slices, Filter::bit_count) as f64 / sum(slices, Filter::bits_all) as f64
}

/// Returns the rate at which a key that is in none of the slices is claimed by at least one.
pub(crate) fn compound_rate(slices: &[Arc<Slice>]) -> f64 {
    let clear: f64 = slices
        .iter()
        .map(|slice| 1.0 - slice.filter.predicted_rate())
        .product();
    1.0 - clear
}

/// Returns how many keys were claimed though they were new, most likely, while the slices filled up: at a rate `p` each
/// key that is taken as new stands for `p / (1 - p)` that were not. The first `entered_count` keys were not asked for.
#[expect(clippy::cast_precision_loss, reason = "an estimate for people")]
pub(crate) fn expected_lost(slices: &[Arc<Slice>], entered_count: u64) -> f64 {
    let mut before_count = 0;
    let mut clear_before = 1.0;
    let mut lost = 0.0;
    for slice in slices {
        let filter = &slice.filter;
        let item_count = filter.item_count();
        let first = entered_count.saturating_sub(before_count).min(item_count);
        let mut filling = Filling::new(filter.lines().count() as f64);
        filling.take(first as f64, clear_before);
        lost += filling.take((item_count - first) as f64, clear_before);
        before_count += item_count;
        clear_before *= 1.0 - filter.predicted_rate();
    }
    lost
}

/// How a slice fills up, by the number of distinct keys that it was offered. A key that it took for known has all its
/// bits set already, so the slice is as if each of them had been put in; the keys that were new to it are fewer, and
/// above a rate of a tenth or so they alone no longer tell the rate.
struct Filling {
    lines_count: f64,
    offered_count: f64,
}

impl Filling {
    /// Steps of a reckoning; each goes by the rate in its middle.
    const STEPS: u32 = 64;
    /// Below this share of clear answers the number of offered keys cannot be told any more, and counts as no higher.
    const CLEAR_MIN: f64 = 0.001;

    const fn new(lines_count: f64) -> Self {
        Self {
            lines_count,
            offered_count: 0.0,
        }
    }

    /// Takes in `new_count` keys that were new to it, and returns how many beside them were claimed, by it or by the slices
    /// before, which take the share `clear_before` of new keys for new.
    fn take(&mut self, new_count: f64, clear_before: f64) -> f64 {
        let step = new_count / f64::from(Self::STEPS);
        if step <= 0.0 {
            return 0.0;
        }
        let mut lost = 0.0;
        for _ in 0..Self::STEPS {
            let to_middle = step / 2.0 / self.clear_at(self.offered_count);
            let clear = self.clear_at(self.offered_count + to_middle);
            self.offered_count += step / clear;
            lost += step / (clear_before * clear).max(Self::CLEAR_MIN) - step;
        }
        lost
    }

    fn clear_at(&self, offered_count: f64) -> f64 {
        let rate = sizing::rate_of_load(offered_count / self.lines_count);
        (1.0 - rate).max(Self::CLEAR_MIN)
    }
}
