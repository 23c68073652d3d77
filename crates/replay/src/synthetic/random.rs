//! A tiny generator whose sequence is part of what a seed means, so it may never change.

/// `SplitMix64` (Steele, Lea and Flood, 2014): every seed gives an independent sequence.
pub(super) struct Random(u64);

impl Random {
    /// Begins the sequence for one subject, say a page, under a seed.
    pub(super) const fn new(seed: u64, subject: u64) -> Self {
        let mut mixed = Self(subject.wrapping_mul(0xD1B5_4A32_D192_ED03) ^ seed);
        let start = mixed.next();
        Self(start)
    }

    /// Returns the next 64 bits.
    pub(super) const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let bits = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        bits ^ (bits >> 31)
    }

    /// Returns a number below `bound`, uniformly; 0 when `bound` is 0.
    pub(super) fn below(&mut self, bound: u64) -> u64 {
        scale(self.next(), bound)
    }

    /// Returns a number below `bound` that is `floor(bound * u * u)` of a uniform `u`: small ones are frequent.
    pub(super) fn skewed_below(&mut self, bound: u64) -> u64 {
        let uniform = self.next();
        scale(scale(uniform, uniform), bound)
    }
}

/// Returns `bound * (bits / 2^64)`.
fn scale(bits: u64, bound: u64) -> u64 {
    let product = u128::from(bits) * u128::from(bound);
    u64::try_from(product >> 64).unwrap_or(0)
}
