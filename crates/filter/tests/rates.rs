//! Sizing judged by outcome: the rate of false positives that is measured, and the memory that it costs.

#![cfg(not(loom))]
#![expect(
    clippy::cast_precision_loss,
    reason = "counts below 2^53 become ratios"
)]

use filter::{Filter, FilterError, SIZE_BYTES_MAX};

/// Keys as the crawler makes them: 120 random bits below the number of a partition.
fn keys(seed: u64, partition: u8, count: usize) -> impl Iterator<Item = u128> {
    let mut random = fastrand::Rng::with_seed(seed);
    (0..count).map(move |_| (u128::from(partition) << 120) | (random.u128(..) >> 8))
}

/// Inserts `count` keys into a filter made for `expected`, and returns it with the measured rate.
fn filled(expected: u64, rate: f64, partition: u8, count: usize) -> (Filter, f64) {
    let filter = Filter::with_rate(expected, rate).expect("the arguments are in range");
    for key in keys(1, partition, count) {
        filter.check_and_insert(key);
    }
    let probes = 1_000_000;
    let wrong = keys(2, partition, probes)
        .filter(|key| filter.contains(*key))
        .count();
    (filter, wrong as f64 / probes as f64)
}

#[test]
fn one_percent_is_met_at_a_million_keys_whatever_the_partition() {
    for partition in [0, 0xff] {
        let (filter, measured) = filled(1_000_000, 0.01, partition, 1_000_000);
        assert!((0.009..=0.0105).contains(&measured), "measured {measured}");
        assert!((filter.predicted_rate() / measured - 1.0).abs() < 0.05);
        assert!(
            filter.size_bytes() as f64 <= 1.30 * 1e6,
            "{}",
            filter.size_bytes()
        );
        // Keys that were false positives when they came are the only ones not counted.
        assert!((990_000..1_000_000).contains(&filter.item_count()));
    }
}

#[test]
fn other_rates_are_met_too() {
    for (rate, tolerance) in [(0.2, 0.03), (0.001, 0.15)] {
        let (_, measured) = filled(200_000, rate, 7, 200_000);
        assert!((measured / rate - 1.0).abs() < tolerance, "{measured}");
    }
}

#[test]
fn an_overfull_filter_predicts_its_worse_rate() {
    let (filter, measured) = filled(100_000, 0.01, 7, 300_000);
    let predicted = filter.predicted_rate();
    assert!(measured > 0.2);
    assert!((predicted / measured - 1.0).abs() < 0.05);
}

#[test]
fn a_saturated_filter_predicts_certainty() {
    let (filter, measured) = filled(500, 0.01, 7, 60_000);
    assert!(filter.fill() > 0.999 && measured > 0.999);
    assert!(filter.predicted_rate() > 0.99);
}

#[test]
fn arguments_out_of_range_are_named() {
    for rate in [0.0, 1.0, -0.1, f64::INFINITY] {
        assert_eq!(
            Filter::with_rate(1, rate).expect_err("out of range"),
            FilterError::Rate(rate)
        );
    }
    assert!(matches!(
        Filter::with_rate(1, f64::NAN),
        Err(FilterError::Rate(_))
    ));
    assert!(matches!(
        Filter::with_rate(0, 0.01),
        Err(FilterError::ExpectedCount)
    ));
    for expected_count in [SIZE_BYTES_MAX, u64::MAX] {
        let error = Filter::with_rate(expected_count, 0.01).expect_err("over the limit");
        assert_eq!(
            error,
            FilterError::TooLarge {
                expected_count,
                rate: 0.01
            }
        );
        assert!(error.to_string().contains("expect fewer keys"), "{error}");
    }
    assert!(matches!(
        Filter::with_rate(1, f64::MIN_POSITIVE),
        Err(FilterError::TooLarge { .. })
    ));
}

#[test]
fn the_smallest_filter_works() {
    let filter = Filter::with_rate(1, 0.999).expect("in range");
    assert_eq!((filter.size_bytes(), filter.expected_count()), (64, 1));
    assert!(filter.check_and_insert(9) && !filter.check_and_insert(9));
}
