//! Threads that offer the same keys at the same time.

#![cfg(not(loom))]
#![expect(
    clippy::cast_precision_loss,
    reason = "counts below 2^53 become ratios"
)]

use std::{
    sync::{
        Barrier,
        atomic::{AtomicU8, Ordering::Relaxed},
    },
    thread,
};

use filter::Filter;

const THREADS: usize = 8;
const KEYS: usize = 200_000;

#[test]
fn no_key_is_new_to_two_threads() {
    let mut random = fastrand::Rng::with_seed(3);
    let keys: Vec<u128> = (0..KEYS).map(|_| random.u128(..)).collect();
    let new_counts: Vec<AtomicU8> = (0..KEYS).map(|_| AtomicU8::new(0)).collect();
    let filter = Filter::with_rate(KEYS as u64, 0.01).expect("in range");
    let start = Barrier::new(THREADS);
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let (keys, new_counts, filter, start) = (&keys, &new_counts, &filter, &start);
            scope.spawn(move || {
                start.wait();
                // Half of them begin elsewhere, so that fresh lines are met from two sides.
                let first = if thread % 2 == 0 { 0 } else { KEYS / 2 };
                for index in (first..KEYS).chain(0..first) {
                    if filter.check_and_insert(keys[index]) {
                        new_counts[index].fetch_add(1, Relaxed);
                    }
                }
            });
        }
    });
    let counts: Vec<u8> = new_counts.into_iter().map(AtomicU8::into_inner).collect();
    assert_eq!(counts.iter().max(), Some(&1));
    let new_count: usize = counts.iter().map(|count| usize::from(*count)).sum();
    assert_eq!(filter.item_count(), new_count as u64);
    // A key is new to nobody only as a false positive, and the rate of those was lower while the filter filled.
    let missed_rate = (KEYS - new_count) as f64 / KEYS as f64;
    assert!(missed_rate < filter.predicted_rate(), "{missed_rate}");
    assert!(keys.iter().all(|key| filter.contains(*key)));
}
