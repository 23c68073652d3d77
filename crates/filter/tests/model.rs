//! The filter against an exact set: a key that was inserted is never denied, and "new" is never said twice.

#![cfg(not(loom))]

use std::collections::HashSet;

use filter::Filter;
use proptest::prelude::*;

/// Keys from a small pool, so that repeats abound.
fn offers() -> impl Strategy<Value = Vec<u128>> {
    (any::<u64>(), prop::collection::vec(0..400_u64, 0..2_000)).prop_map(|(seed, numbers)| {
        let key = |number| fastrand::Rng::with_seed(seed ^ number).u128(..);
        numbers.into_iter().map(key).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn agrees_with_an_exact_set(offers in offers(), expected in 1..500_u64, batch in 1..50_usize) {
        let filter = Filter::with_rate(expected, 0.01).expect("in range");
        let batched = Filter::with_rate(expected, 0.01).expect("in range");
        let mut model = HashSet::new();
        let mut new_count = 0;
        for keys in offers.chunks(batch) {
            let mut is_new = vec![false; keys.len()];
            batched.check_and_insert_batch(keys, &mut is_new);
            for (key, is_new) in keys.iter().zip(is_new) {
                let was_claimed = filter.contains(*key);
                let answer = filter.check_and_insert(*key);
                prop_assert_eq!(answer, !was_claimed);
                prop_assert_eq!(answer, is_new, "a batch answers as single calls do");
                let is_first = model.insert(*key);
                prop_assert!(is_first || !answer, "{:x} was new twice", key);
                new_count += u64::from(answer);
            }
        }
        prop_assert_eq!(filter.item_count(), new_count);
        for key in &model {
            prop_assert!(filter.contains(*key), "{:x} was denied", key);
        }
    }
}
