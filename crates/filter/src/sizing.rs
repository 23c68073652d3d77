//! Sizing: how many lines a number of keys needs at a rate of false positives, and back.
//!
//! A line's keys are few enough that their number varies: with a mean of `m` keys a line it is Poisson distributed.
//! A key that was never inserted is a false positive if its bit is set in each of the eight words of its line, which
//! in a line of `j` keys has the probability `(1 - (63/64)^j)^7 * (1 - (62/63)^j)`; the word with the lock bit has
//! only 63 places. The filter's rate is the Poisson mean of that. Fuller lines weigh more than emptier ones make up
//! for, so a blocked filter needs a little more memory than an unblocked one (10.2 bits a key instead of 9.6 at 1 %).

/// Bytes of a line.
pub const LINE_BYTES: u64 = 64;

/// Above this mean number of keys a line (ten for each bit) all bits are as good as set.
const LOAD_MAX: f64 = 640.0;

/// Returns the rate of false positives when lines hold `load` keys on average.
#[must_use]
pub fn rate_of_load(load: f64) -> f64 {
    if load.is_nan() || load <= 0.0 {
        return 0.0;
    }
    if load >= LOAD_MAX {
        return 1.0;
    }
    // Poisson terms by their recurrence, up to where the rest is below 1e-15 of the whole. A load of 640 begins at
    // e^-640, well within an f64.
    let keys_max = load + 12.0 * load.sqrt() + 30.0;
    let mut probability = (-load).exp();
    let mut rate = 0.0;
    let mut keys_count = 0.0;
    let (mut clear, mut clear_first) = (1.0_f64, 1.0_f64);
    while keys_count < keys_max {
        rate += probability * (1.0 - clear).powi(7) * (1.0 - clear_first);
        keys_count += 1.0;
        probability *= load / keys_count;
        clear *= 63.0 / 64.0;
        clear_first *= 62.0 / 63.0;
    }
    rate.min(1.0)
}

/// Returns the mean number of keys a line at which the rate of false positives is `rate`; at most 640.
#[must_use]
pub fn load_of_rate(rate: f64) -> f64 {
    // The rate grows with the load, so halving the interval finds it; 60 halvings exhaust an f64.
    let (mut low, mut high) = (0.0, LOAD_MAX);
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if rate_of_load(middle) < rate {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}

/// Returns the mean number of keys a line of a filter in which the share `fill` of all bits is set.
///
/// A bit of a word with 64 places is clear with the probability `e^(-load/64)`, the Poisson mean of `(63/64)^j`.
#[must_use]
pub fn load_of_fill(fill: f64) -> f64 {
    let clear = (1.0 - fill).max(f64::MIN_POSITIVE);
    (-64.0 * clear.ln()).clamp(0.0, LOAD_MAX)
}

/// Returns how many lines `expected_count` keys need so that the rate of false positives stays at `rate` when all are
/// inserted; at least 1. Saturates at `u64::MAX` where no rate above 0 is met.
#[must_use]
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a number of lines is not negative, and a 2^-53 part of it more or less changes no rate"
)]
pub fn lines_for(expected_count: u64, rate: f64) -> u64 {
    let lines = (expected_count as f64 / load_of_rate(rate)).ceil();
    (lines as u64).max(1)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn load_and_rate_are_inverse() {
        for rate in [0.5, 0.1, 0.01, 0.001, 1e-6, 1e-9] {
            let back = rate_of_load(load_of_rate(rate));
            assert!(
                (back / rate - 1.0).abs() < 1e-9,
                "{rate} came back as {back}"
            );
        }
    }

    #[test]
    fn the_rate_grows_with_the_load_up_to_one() {
        let rates: Vec<f64> = (0..700).map(|load| rate_of_load(f64::from(load))).collect();
        assert!(rates.is_sorted());
        assert!(rates[0] <= 0.0 && rates[699] >= 1.0);
        assert!(
            rates[639] > 0.999,
            "the step at the end is small: {}",
            rates[639]
        );
    }

    #[test]
    fn one_percent_costs_at_most_1_30_bytes_a_key() {
        let bytes_a_key = 64.0 / load_of_rate(0.01);
        assert!(bytes_a_key < 1.30, "{bytes_a_key}");
    }

    #[test]
    fn absurd_demands_saturate() {
        assert_eq!(lines_for(1, 0.999_999), 1);
        assert_eq!(lines_for(u64::MAX, f64::MIN_POSITIVE), u64::MAX);
    }
}
