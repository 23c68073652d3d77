//! Unit tests of growth: the switch from the exact set, the chain, and what its figures say.

use super::*;

fn keys(count: usize, seed: u64) -> Vec<u128> {
    let mut random = fastrand::Rng::with_seed(seed);
    (0..count).map(|_| random.u128(..)).collect()
}

fn growing(expected_count: u64, exact: Exact) -> GrowingFilter {
    let config = GrowthConfig {
        expected_count,
        exact,
        ..GrowthConfig::default()
    };
    GrowingFilter::new(&config).expect("in range")
}

fn offer(filter: &GrowingFilter, keys: &[u128]) -> Vec<Answer> {
    let mut answers = vec![Answer::New; keys.len()];
    filter.check_and_insert_batch(keys, &mut answers);
    answers
}

fn count(answers: &[Answer], kind: Answer) -> usize {
    answers.iter().filter(|answer| **answer == kind).count()
}

fn measured_rate(filter: &GrowingFilter) -> f64 {
    let negatives = keys(200_000, 99);
    let mut answers = vec![Answer::New; negatives.len()];
    filter.contains_batch(&negatives, &mut answers);
    let claimed = u32::try_from(count(&answers, Answer::Claimed)).expect("few");
    f64::from(claimed) / 200_000.0
}

#[test]
fn a_small_set_is_exact_and_the_switch_to_the_filter_loses_no_key() {
    let filter = growing(100_000, Exact::Small);
    let keys = keys(30_000, 1);
    let (few, rest) = keys.split_at(10_000);
    assert_eq!(count(&offer(&filter, few), Answer::New), few.len());
    assert_eq!(count(&offer(&filter, few), Answer::Present), few.len());
    assert!(filter.stats().is_exact);
    assert_eq!(count(&offer(&filter, &rest[..1]), Answer::New), 1);
    let stats = filter.stats();
    assert!(!stats.is_exact && stats.slice_count == 1);
    assert!((9_900..=10_001).contains(&stats.item_count));
    assert!(
        stats.expected_lost < 0.01,
        "exact keys are never lost: {stats:?}"
    );
    assert!(count(&offer(&filter, rest), Answer::New) > 19_900);
    assert_eq!(count(&offer(&filter, &keys), Answer::Claimed), keys.len());
}

#[test]
fn a_filter_that_follows_a_larger_exact_set_has_room_for_it() {
    let filter = growing(100, Exact::Small);
    offer(&filter, &keys(15_000, 1));
    let stats = filter.stats();
    assert_eq!((stats.is_exact, stats.slice_count), (false, 1));
    assert!(stats.predicted_rate < 0.01, "{stats:?}");
}

#[test]
fn memory_follows_use_whatever_is_planned() {
    let filter = growing(50_000_000, Exact::Small);
    assert!(filter.stats().size_bytes < 4_096);
    offer(&filter, &keys(60_000, 1));
    let stats = filter.stats();
    assert!(stats.is_exact && stats.size_bytes < 3_000_000, "{stats:?}");
    offer(&filter, &keys(250_001, 2));
    let stats = filter.stats();
    assert!(
        !stats.is_exact && stats.size_bytes > 60_000_000,
        "{stats:?}"
    );
}

#[test]
fn always_exact_never_becomes_a_filter_and_never_exact_never_is_one() {
    let filter = growing(1_000, Exact::Always);
    let keys = keys(300_000, 1);
    assert_eq!(count(&offer(&filter, &keys), Answer::New), keys.len());
    assert!(filter.stats().is_exact);
    let filter = growing(1_000_000, Exact::Never);
    offer(&filter, &keys[..1]);
    assert!(!filter.stats().is_exact);
}

#[test]
fn the_rate_stays_below_the_target_through_fifty_times_the_planned_keys() {
    let filter = growing(10_000, Exact::Never);
    let keys = keys(500_000, 1);
    let mut slice_count = 1;
    for (index, part) in keys.chunks(10_000).enumerate() {
        offer(&filter, part);
        let stats = filter.stats();
        assert!(stats.predicted_rate < 0.01, "{stats:?}");
        if stats.slice_count > slice_count || index == 49 {
            slice_count = stats.slice_count;
            let rate = measured_rate(&filter);
            // Four standard deviations of 200,000 draws.
            assert!(
                (rate - stats.predicted_rate).abs() < 0.001,
                "{rate} {stats:?}"
            );
        }
    }
    assert_eq!(count(&offer(&filter, &keys), Answer::Claimed), keys.len());
    assert_eq!(slice_count, 6);
}

#[test]
fn a_filter_that_may_not_grow_exceeds_its_rate() {
    let config = GrowthConfig {
        expected_count: 10_000,
        exact: Exact::Never,
        grows: false,
        ..GrowthConfig::default()
    };
    let filter = GrowingFilter::new(&config).expect("in range");
    offer(&filter, &keys(20_000, 1));
    let rate = measured_rate(&filter);
    assert!((0.14..0.18).contains(&rate), "{rate}");
    assert_eq!(filter.stats().slice_count, 1);
}

#[test]
fn what_it_expects_to_have_lost_is_what_was_lost() {
    for (expected_count, key_count) in [(100_000, 100_000), (100_000, 400_000), (10_000, 400_000)] {
        let filter = growing(expected_count, Exact::Never);
        let lost = f64::from(
            u32::try_from(count(&offer(&filter, &keys(key_count, 3)), Answer::Claimed))
                .expect("few"),
        );
        let expected = filter.stats().expected_lost;
        // The number lost is about Poisson distributed.
        assert!(
            (lost - expected).abs() < 5.0 * expected.sqrt() + 5.0,
            "{lost} of {expected}"
        );
    }
}

/// Where most keys are claimed, those that were new to it tell less and less of how many it was offered.
#[test]
fn what_it_expects_to_have_lost_holds_at_any_rate() {
    for (rate, entered_share) in [(0.5, 0), (0.9, 0), (0.5, 4), (0.9, 4)] {
        let filter = GrowingFilter::new(&GrowthConfig {
            expected_count: 400_000,
            rate,
            exact: Exact::Never,
            grows: false,
            ..GrowthConfig::default()
        })
        .expect("in range");
        let keys = keys(400_000, 8);
        let (entered, offered) = keys.split_at(keys.len() * entered_share / 10);
        filter.enter(entered);
        let lost = count(&offer(&filter, offered), Answer::Claimed);
        let lost = f64::from(u32::try_from(lost).expect("few"));
        let stats = filter.stats();
        assert!((stats.predicted_rate - rate).abs() < 0.01, "{stats:?}");
        let off_by = (stats.expected_lost / lost - 1.0).abs();
        assert!(
            off_by < 0.02,
            "{} for {lost} at {rate}",
            stats.expected_lost
        );
    }
}

#[test]
fn keys_that_were_entered_while_they_were_held_exactly_are_certain_and_the_others_are_not() {
    let filter = growing(20_000, Exact::Small);
    let keys = keys(200_000, 5);
    let (entered, offered) = keys.split_at(9_000);
    filter.enter(entered);
    let lost = count(&offer(&filter, offered), Answer::Claimed);
    let lost = f64::from(u32::try_from(lost).expect("few"));
    let expected = filter.stats().expected_lost;
    assert!(
        (lost - expected).abs() < 5.0 * expected.sqrt() + 5.0,
        "{lost} of {expected}"
    );
    filter.restart_loss_estimate();
    assert!(filter.stats().expected_lost < 0.01);
}

#[test]
fn threads_that_find_it_full_together_add_one_slice() {
    for exact in [Exact::Small, Exact::Never] {
        let filter = growing(20_000, exact);
        let keys = keys(40_000, 6);
        std::thread::scope(|scope| {
            for part in keys.chunks(5_000) {
                let filter = &filter;
                scope.spawn(move || offer(filter, part));
            }
        });
        let stats = filter.stats();
        // The first is full at 16,000 keys, and the second is for more than there are.
        assert_eq!(stats.slice_count, 2, "{stats:?}");
        assert!(stats.predicted_rate < 0.01, "{stats:?}");
        assert_eq!(count(&offer(&filter, &keys), Answer::Claimed), keys.len());
    }
}

#[test]
fn entered_keys_are_there_and_count_as_not_lost() {
    let filter = growing(100_000, Exact::Never);
    let keys = keys(150_000, 4);
    filter.enter(&keys);
    let mut answers = vec![Answer::New; keys.len()];
    filter.contains_batch(&keys, &mut answers);
    assert_eq!(count(&answers, Answer::Claimed), keys.len());
    assert!(filter.stats().expected_lost < 1.0, "{:?}", filter.stats());
}

#[test]
fn what_cannot_be_had_is_refused_before_the_first_key() {
    for (expected_count, rate) in [(0, 0.01), (1, 0.0), (1, 1.0), (u64::MAX, 0.01)] {
        for exact in [Exact::Small, Exact::Always, Exact::Never] {
            let config = GrowthConfig {
                expected_count,
                rate,
                exact,
                ..GrowthConfig::default()
            };
            assert!(GrowingFilter::new(&config).is_err(), "{config:?}");
        }
    }
}
