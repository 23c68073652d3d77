//! Threads: how many keys a second they insert, and how many keys two of them are told to be new.

use std::{
    hint,
    sync::{
        Barrier,
        atomic::{AtomicU8, AtomicUsize, Ordering},
    },
    thread,
    time::Instant,
};

use benches::measure::{key, line, median, timed};
use fastbloom::AtomicBloomFilter;
use filter::Filter;

use crate::{
    demand::Demands,
    subject::{BATCH, ours, theirs},
    table::RATE,
};

/// Keys that all threads of a race offer.
const RACE_KEYS_MAX: u64 = 2_000_000;

/// Keys after each of which all threads of a race wait for each other.
const STEP: usize = 16 * BATCH;

/// A set that threads share.
trait Shared: Sync {
    /// Inserts a batch and says of each key whether it is new.
    fn insert(&self, keys: &[u128], is_new: &mut [bool]);
}

impl Shared for Filter {
    fn insert(&self, keys: &[u128], is_new: &mut [bool]) {
        self.check_and_insert_batch(keys, is_new);
    }
}

impl Shared for AtomicBloomFilter {
    fn insert(&self, keys: &[u128], is_new: &mut [bool]) {
        for (key, is_new) in keys.iter().zip(is_new) {
            *is_new = !self.insert(key);
        }
    }
}

/// Measures both, and prints.
pub(crate) fn run(keys_count: u64, rounds: u32, demands: &mut Demands) {
    throughput(keys_count, rounds, demands);
    races(keys_count, demands);
}

/// Millions of keys a second, by the processor time of the slowest thread and by the clock.
#[derive(Clone, Copy)]
struct Speed {
    by_processor: f64,
    by_clock: f64,
}

fn throughput(keys_count: u64, rounds: u32, demands: &mut Demands) {
    let each_count = (keys_count / 8).max(1);
    line(format!(
        "\nThreads that insert {each_count} new keys each into a set for {keys_count}, million keys a second, medians of {rounds} rounds"
    ));
    line(format!(
        "{:<34}{:>22}{:>22}",
        "", "1 thread (by clock)", "2 threads (by clock)"
    ));
    let mut speeds = [const { [const { Vec::new() }; 2] }; 2];
    for _ in 0..rounds {
        for threads_count in [1, 2] {
            let ours = ours(keys_count, RATE, true);
            speeds[0][threads_count - 1].push(speed(&ours, threads_count, each_count));
            drop(ours);
            let theirs = theirs(keys_count, RATE);
            speeds[1][threads_count - 1].push(speed(&theirs, threads_count, each_count));
        }
    }
    let middle = |speeds: &[Speed], figure: fn(&Speed) -> f64| {
        let figures: Vec<f64> = speeds.iter().map(figure).collect();
        median(&figures)
    };
    for (name, speeds) in ["ours, batches of 64, huge pages", "fastbloom, atomic"]
        .iter()
        .zip(&speeds)
    {
        let shown = |speeds: &[Speed]| {
            format!(
                "{:.1} ({:.1})",
                middle(speeds, |speed| speed.by_processor),
                middle(speeds, |speed| speed.by_clock)
            )
        };
        line(format!(
            "{name:<34}{:>22}{:>22}",
            shown(&speeds[0]),
            shown(&speeds[1])
        ));
    }
    let two = |subject: usize| middle(&speeds[subject][1], |speed| speed.by_processor);
    demands.at_least(
        "check-and-insert of two threads to fastbloom's",
        two(0) / two(1),
        5.0,
    );
}

#[expect(clippy::cast_precision_loss, reason = "counts are below 2^53")]
fn speed(shared: &dyn Shared, threads_count: usize, each_count: u64) -> Speed {
    let start = Barrier::new(threads_count);
    let (slowest, clock) = thread::scope(|scope| {
        let threads: Vec<_> = (0..threads_count as u64)
            .map(|thread| {
                let start = &start;
                scope.spawn(move || {
                    let first = thread * each_count;
                    let keys: Vec<u128> = (first..first + each_count).map(key).collect();
                    start.wait();
                    let begun = Instant::now();
                    let (seconds, ()) = timed(|| {
                        let mut is_new = [false; BATCH];
                        for batch in keys.chunks(BATCH) {
                            shared.insert(batch, &mut is_new[..batch.len()]);
                        }
                    });
                    (seconds, begun.elapsed().as_secs_f64())
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().expect("a thread ends"))
            .fold(
                (0.0_f64, 0.0_f64),
                |(slowest, clock), (seconds, elapsed)| (slowest.max(seconds), clock.max(elapsed)),
            )
    });
    let millions = (each_count * threads_count as u64) as f64 / 1e6;
    Speed {
        by_processor: millions / slowest,
        by_clock: millions / clock,
    }
}

fn races(keys_count: u64, demands: &mut Demands) {
    let keys_count = keys_count.min(RACE_KEYS_MAX);
    let keys: Vec<u128> = (0..keys_count).map(key).collect();
    line(format!(
        "\nThreads that offer the same {keys_count} keys in step: keys that two were told to be new"
    ));
    line(format!(
        "{:<34}{:>12}{:>12}{:>12}",
        "", "2 threads", "4 threads", "8 threads"
    ));
    let counts = |make: &dyn Fn() -> Box<dyn Shared>| -> Vec<u64> {
        [2, 4, 8]
            .map(|threads_count| doubles(make().as_ref(), threads_count, &keys))
            .to_vec()
    };
    let ours_counts = counts(&|| Box::new(ours(keys_count, RATE, true)));
    let their_counts = counts(&|| Box::new(theirs(keys_count, RATE)));
    for (name, counts) in [
        ("ours, batches of 64, huge pages", &ours_counts),
        ("fastbloom, atomic", &their_counts),
    ] {
        line(format!(
            "{name:<34}{:>12}{:>12}{:>12}",
            counts[0], counts[1], counts[2]
        ));
    }
    #[expect(clippy::cast_precision_loss, reason = "counts are below 2^53")]
    demands.at_most(
        "keys that two threads were told to be new",
        ours_counts.iter().sum::<u64>() as f64,
        0.0,
    );
}

/// Lets threads offer the same keys at the same time, step by step, and returns how many keys were new to more than
/// one of them.
fn doubles(shared: &dyn Shared, threads_count: usize, keys: &[u128]) -> u64 {
    let new_counts: Vec<AtomicU8> = keys.iter().map(|_| AtomicU8::new(0)).collect();
    let arrived_count = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..threads_count {
            scope.spawn(|| {
                let steps = keys.chunks(STEP).zip(new_counts.chunks(STEP));
                for (step, (keys, new_counts)) in (1..).zip(steps) {
                    arrived_count.fetch_add(1, Ordering::AcqRel);
                    await_count(&arrived_count, step * threads_count);
                    offer(shared, keys, new_counts);
                }
            });
        }
    });
    new_counts
        .iter()
        .map(|count| u64::from(count.load(Ordering::Relaxed) > 1))
        .sum()
}

/// Inserts the keys of a step, and counts those that are new.
fn offer(shared: &dyn Shared, keys: &[u128], new_counts: &[AtomicU8]) {
    let mut is_new = [false; BATCH];
    for (keys, new_counts) in keys.chunks(BATCH).zip(new_counts.chunks(BATCH)) {
        shared.insert(keys, &mut is_new[..keys.len()]);
        for (count, is_new) in new_counts.iter().zip(is_new) {
            count.fetch_add(u8::from(is_new), Ordering::Relaxed);
        }
    }
}

/// Waits until all threads have come to a step.
fn await_count(arrived_count: &AtomicUsize, wanted_count: usize) {
    let mut spins_count = 0_u32;
    while arrived_count.load(Ordering::Acquire) < wanted_count {
        spins_count += 1;
        if spins_count.is_multiple_of(64) {
            thread::yield_now();
        } else {
            hint::spin_loop();
        }
    }
}
