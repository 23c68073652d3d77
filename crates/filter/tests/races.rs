//! Threads that offer the same keys at the same time, beside a control that shows that they do meet.
//!
//! The short form runs by default; `BLOOMCRAWL_LONG=1` asks for the long one: 2 million keys, 20 runs. A machine with one
//! core has no races to show, and skips all of it.

#![cfg(not(loom))]
#![expect(
    clippy::cast_precision_loss,
    reason = "counts below 2^53 become ratios"
)]

use std::{
    env, hint,
    sync::atomic::{
        AtomicU8, AtomicU64, AtomicUsize,
        Ordering::{AcqRel, Acquire, Relaxed},
    },
    thread,
};

use filter::{Answer, Exact, Filter, GrowingFilter, GrowthConfig, sizing};

const THREADS: usize = 8;

/// Threads wait for each other before every so many keys, so that they offer the same ones at the same time.
const STEP: usize = 1_024;

const RATE: f64 = 0.01;

/// Runs of the control until its threads met often enough, at most.
const CONTROL_RUNS_MAX: usize = 60;

/// How much is done.
struct Extent {
    keys_count: usize,
    runs_count: usize,
    /// Keys that two threads of the control must have been told to be new, over all its runs.
    control_doubles_min: usize,
}

const SHORT: Extent = Extent {
    keys_count: 200_000,
    runs_count: 3,
    control_doubles_min: 100,
};

const LONG: Extent = Extent {
    keys_count: 2_000_000,
    runs_count: 20,
    control_doubles_min: 1_000,
};

#[expect(
    clippy::print_stderr,
    reason = "a skipped test says so, and the figures are part of the test's worth"
)]
fn report(text: &str) {
    eprintln!("{text}");
}

/// Returns how much to do; `None`, with a word on why, where threads cannot meet.
fn extent() -> Option<&'static Extent> {
    if thread::available_parallelism().is_ok_and(|cores| cores.get() == 1) {
        report("skipped: threads do not meet on one core");
        return None;
    }
    let is_long = env::var_os("BLOOMCRAWL_LONG").is_some_and(|value| value == "1");
    Some(if is_long { &LONG } else { &SHORT })
}

/// A filter of the same layout that takes no care: each bit is set by itself.
struct Control(Vec<[AtomicU64; 8]>);

impl Control {
    fn new(keys_count: usize) -> Self {
        let lines_count = sizing::lines_for(keys_count as u64, RATE);
        Self((0..lines_count).map(|_| Default::default()).collect())
    }

    #[expect(
        clippy::cast_possible_truncation,
        reason = "the low half is wanted, and the place is below the number of lines"
    )]
    fn check_and_insert(&self, key: u128) -> bool {
        let place = (u128::from(key as u64) * self.0.len() as u128) >> 64;
        let mut bits = (key >> 64) as u64;
        let mut is_new = false;
        for word in &self.0[place as usize] {
            let bit = 1 << (bits & 63);
            is_new |= word.fetch_or(bit, Relaxed) & bit == 0;
            bits >>= 7;
        }
        is_new
    }
}

/// Waits until all threads have come to a step.
fn await_step(arrived_count: &AtomicUsize, step: usize) {
    arrived_count.fetch_add(1, AcqRel);
    let mut spins_count = 0_u32;
    while arrived_count.load(Acquire) < step * THREADS {
        spins_count += 1;
        // There are more threads than cores, as a rule.
        if spins_count.is_multiple_of(64) {
            thread::yield_now();
        } else {
            hint::spin_loop();
        }
    }
}

/// Lets all threads offer all keys in step. Returns how often each was new: `offer` says so for a step of keys.
fn raced(keys: &[u128], offer: &(dyn Fn(&[u128], &mut [bool]) + Sync)) -> Vec<u8> {
    let new_counts: Vec<AtomicU8> = keys.iter().map(|_| AtomicU8::new(0)).collect();
    let arrived_count = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                let mut is_new = [false; STEP];
                let steps = keys.chunks(STEP).zip(new_counts.chunks(STEP));
                for (step, (keys, new_counts)) in (1..).zip(steps) {
                    await_step(&arrived_count, step);
                    let is_new = &mut is_new[..keys.len()];
                    offer(keys, is_new);
                    for (count, is_new) in new_counts.iter().zip(is_new) {
                        count.fetch_add(u8::from(*is_new), Relaxed);
                    }
                }
            });
        }
    });
    new_counts.into_iter().map(AtomicU8::into_inner).collect()
}

fn random_keys(seed: u64, count: usize) -> Vec<u128> {
    let mut random = fastrand::Rng::with_seed(seed);
    (0..count).map(|_| random.u128(..)).collect()
}

fn doubles(new_counts: &[u8]) -> usize {
    new_counts.iter().filter(|count| **count > 1).count()
}

/// Fails unless each key was new once, or was a false positive when it came: of those about `expected`. Returns how many
/// keys were new.
fn assert_exactly_once(new_counts: &[u8], expected: f64) -> u64 {
    assert_eq!(
        doubles(new_counts),
        0,
        "keys that two threads were told to be new"
    );
    let new_count: usize = new_counts.iter().map(|count| usize::from(*count)).sum();
    let missed = (new_counts.len() - new_count) as f64;
    // Six standard deviations of such a count.
    assert!(
        (missed - expected).abs() < 6.0 * expected.sqrt(),
        "{missed} keys were new to nobody, and about {expected:.0} are false positives"
    );
    new_count as u64
}

/// Returns how many of the keys that fill a filter are false positives when they come.
fn expected_false_positives(keys_count: usize) -> f64 {
    let full = sizing::load_of_rate(RATE);
    let parts = 1_000;
    let sum: f64 = (0..parts)
        .map(|part| sizing::rate_of_load(full * (f64::from(part) + 0.5) / f64::from(parts)))
        .sum();
    keys_count as f64 * sum / f64::from(parts)
}

#[test]
fn no_key_is_new_to_two_threads_though_they_meet() {
    let Some(extent) = extent() else { return };
    let keys_count = extent.keys_count;
    let mut control_doubles = 0;
    for run in 0..extent.runs_count {
        let keys = random_keys(run as u64, keys_count);
        control_doubles += raced_control(&keys);
        let filter = Filter::with_rate(keys_count as u64, RATE).expect("in range");
        let new_counts = if run % 2 == 0 {
            raced(&keys, &|keys, is_new| {
                filter.check_and_insert_batch(keys, is_new);
            })
        } else {
            raced(&keys, &|keys, is_new| {
                for (key, is_new) in keys.iter().zip(is_new) {
                    *is_new = filter.check_and_insert(*key);
                }
            })
        };
        let expected = expected_false_positives(keys_count);
        assert_eq!(
            assert_exactly_once(&new_counts, expected),
            filter.item_count()
        );
        assert!(keys.iter().all(|key| filter.contains(*key)));
    }
    // On a machine that is busy with other work threads meet less often, so the control may go on alone.
    for run in extent.runs_count..CONTROL_RUNS_MAX {
        if control_doubles >= extent.control_doubles_min {
            break;
        }
        control_doubles += raced_control(&random_keys(run as u64, keys_count));
    }
    report(&format!(
        "the control told two threads {control_doubles} times that a key was new, the filter never"
    ));
    assert!(
        control_doubles >= extent.control_doubles_min,
        "the control saw {control_doubles} races, so this proves nothing"
    );
}

fn raced_control(keys: &[u128]) -> usize {
    let control = Control::new(keys.len());
    doubles(&raced(keys, &|keys, is_new| {
        for (key, is_new) in keys.iter().zip(is_new) {
            *is_new = control.check_and_insert(*key);
        }
    }))
}

/// The exact set at first, then a slice, then more of them: all while the keys come.
#[test]
fn no_key_is_new_to_two_threads_while_the_filter_grows() {
    let Some(extent) = extent() else { return };
    for run in 0..extent.runs_count.min(5) {
        let keys = random_keys(run as u64, extent.keys_count);
        let filter = GrowingFilter::new(&GrowthConfig {
            expected_count: extent.keys_count as u64 / 10,
            rate: RATE,
            exact: Exact::Small,
            ..GrowthConfig::default()
        })
        .expect("in range");
        let new_counts = raced(&keys, &|keys, is_new| {
            let mut answers = [Answer::New; STEP];
            let answers = &mut answers[..keys.len()];
            filter.check_and_insert_batch(keys, answers);
            for (is_new, answer) in is_new.iter_mut().zip(answers) {
                *is_new = *answer == Answer::New;
            }
        });
        let stats = filter.stats();
        assert!(!stats.is_exact && stats.slice_count > 2, "{stats:?}");
        assert!(stats.predicted_rate < RATE, "{stats:?}");
        let new_count = assert_exactly_once(&new_counts, stats.expected_lost);
        // Of the keys that were exact, those count no longer that the first slice took for known.
        let uncounted = new_count.checked_sub(stats.item_count);
        assert!(uncounted.is_some_and(|count| count < 100), "{stats:?}");
        let mut answers = vec![Answer::New; keys.len()];
        filter.contains_batch(&keys, &mut answers);
        assert!(answers.iter().all(|answer| *answer == Answer::Claimed));
    }
}
