//! The truth about a run: which URLs were offered and which were admitted, kept exactly and apart from what is measured.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A fixed number of bits, set by any thread.
pub struct Bits(Box<[AtomicU64]>);

impl Bits {
    /// Makes `count` bits, none of them set.
    ///
    /// # Panics
    ///
    /// Panics when there are more than memory can address.
    #[must_use]
    pub fn new(count: u64) -> Self {
        let words = usize::try_from(count.div_ceil(64)).expect("the bits fit into memory");
        Self((0..words).map(|_| AtomicU64::new(0)).collect())
    }

    /// Sets a bit and returns whether it was unset.
    ///
    /// # Panics
    ///
    /// Panics when there is no such bit.
    #[must_use = "whoever sets a bit twice should know"]
    pub fn set(&self, bit: u64) -> bool {
        let word = usize::try_from(bit / 64).expect("the bits fit into memory");
        let mask = 1 << (bit % 64);
        self.0[word].fetch_or(mask, Relaxed) & mask == 0
    }

    /// Returns how many bits are set here and not in `other`, which is as long.
    #[must_use]
    pub fn count_without(&self, other: &Self) -> u64 {
        let pairs = self.0.iter().zip(&other.0);
        pairs
            .map(|(mine, theirs)| {
                u64::from((mine.load(Relaxed) & !theirs.load(Relaxed)).count_ones())
            })
            .sum()
    }

    /// Returns how many bits are set.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.0
            .iter()
            .map(|word| u64::from(word.load(Relaxed).count_ones()))
            .sum()
    }
}

/// Which targets of a stream were offered, and which were admitted.
pub struct Truth {
    offered: Bits,
    admitted: Bits,
    twice_count: AtomicU64,
    stranger_count: AtomicU64,
}

/// How a run went, judged by the truth.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Judgement {
    /// Different URLs offered.
    pub distinct_count: u64,
    /// URLs that were offered and never admitted.
    pub lost_count: u64,
    /// Admissions of a URL that was admitted before.
    pub twice_count: u64,
    /// Admissions of what was never offered; anything but 0 is a fault of the harness.
    pub invented_count: u64,
}

impl Truth {
    /// Makes the books for targets in `slot_count` slots.
    #[must_use]
    pub fn new(slot_count: u64) -> Self {
        Self {
            offered: Bits::new(slot_count),
            admitted: Bits::new(slot_count),
            twice_count: AtomicU64::new(0),
            stranger_count: AtomicU64::new(0),
        }
    }

    /// Notes that the target in `slot` is offered.
    pub fn offer(&self, slot: u64) {
        let _ = self.offered.set(slot);
    }

    /// Notes that the target in `slot` was admitted; `None` if the stream knows no such target.
    pub fn admit(&self, slot: Option<u64>) {
        let Some(slot) = slot else {
            self.stranger_count.fetch_add(1, Relaxed);
            return;
        };
        if !self.admitted.set(slot) {
            self.twice_count.fetch_add(1, Relaxed);
        }
    }

    /// Judges the run, after its end.
    #[must_use]
    pub fn judge(&self) -> Judgement {
        Judgement {
            distinct_count: self.offered.count(),
            lost_count: self.offered.count_without(&self.admitted),
            twice_count: self.twice_count.load(Relaxed),
            invented_count: self.admitted.count_without(&self.offered)
                + self.stranger_count.load(Relaxed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Judgement, Truth};

    #[test]
    fn what_is_lost_doubled_or_invented_is_counted() {
        let truth = Truth::new(130);
        for slot in [0, 64, 64, 129] {
            truth.offer(slot);
        }
        for slot in [Some(0), Some(129), Some(0), Some(5), None] {
            truth.admit(slot);
        }
        let expected = Judgement {
            distinct_count: 3,
            lost_count: 1,
            twice_count: 1,
            invented_count: 2,
        };
        assert_eq!(truth.judge(), expected);
    }
}
