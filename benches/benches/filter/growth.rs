//! Growth: ten times the keys that were planned, inserted by two threads, and what that does to rate, pauses and memory.

use std::{fs, ops::Range, thread, time::Instant};

use benches::measure::{Count, key, line, median, timed};
use filter::{Answer, Exact, Filter, GrowingFilter, GrowthConfig, Pages, sizing};

use crate::{
    demand::Demands,
    subject::BATCH,
    table::{ABSENT, RATE},
};

/// Threads that insert.
const THREADS: u64 = 2;

/// Keys inserted for each that is planned.
const FACTOR: u64 = 10;

/// Parts of the planned keys after each of which the rate is measured.
const PARTS: u64 = 10;

/// Keys asked for at each measurement of the rate.
const PROBES: u64 = 500_000;

/// The longest that one batch of a page's links took.
#[derive(Clone, Copy, Default)]
struct Pause {
    by_clock_ms: f64,
    by_processor_ms: f64,
}

impl Pause {
    const fn or_longer(self, other: Self) -> Self {
        Self {
            by_clock_ms: self.by_clock_ms.max(other.by_clock_ms),
            by_processor_ms: self.by_processor_ms.max(other.by_processor_ms),
        }
    }
}

/// Grows a filter, and prints what came of it.
pub(crate) fn run(keys_count: u64, rounds: u32, demands: &mut Demands) {
    let planned_count = (keys_count / 50).max(10_000);
    let all_count = planned_count * FACTOR;
    line(format!(
        "\nGrowth from {} keys planned to {} actual, inserted by {THREADS} threads, at {} %",
        Count(planned_count),
        Count(all_count),
        RATE * 100.0
    ));
    let filter = GrowingFilter::new(&GrowthConfig {
        expected_count: planned_count,
        rate: RATE,
        exact: Exact::Small,
        grows: true,
        pages: Pages::Huge,
    })
    .expect("a size that fits in memory");
    let memory = Memory::begin();
    let (pause, rate_max, size_max) = grow(&filter, planned_count, all_count);
    let peak_bytes = memory.peak_bytes();
    report_end(
        &filter, all_count, pause, rate_max, size_max, peak_bytes, demands,
    );
    look_ups(&filter, all_count, rounds);
}

/// Inserts part by part. Returns the longest pause, the highest rate measured and the most memory in use between parts.
fn grow(filter: &GrowingFilter, planned_count: u64, all_count: u64) -> (Pause, f64, u64) {
    line(format!(
        "{:<22}{:>8}{:>14}{:>14}{:>14}{:>12}",
        "keys", "slices", "FP measured", "FP predicted", "bytes", "bytes / key"
    ));
    let part_count = planned_count / PARTS;
    let mut pause = Pause::default();
    let (mut rate_max, mut size_max, mut shape) = (0.0_f64, 0, None);
    for part in 0..all_count / part_count {
        let first = part * part_count;
        let end = first + part_count;
        pause = pause.or_longer(insert(filter, first..end));
        let stats = filter.stats();
        let rate = measured_rate(filter);
        rate_max = rate_max.max(rate);
        size_max = size_max.max(stats.size_bytes);
        let found = Some((stats.is_exact, stats.slice_count));
        if shape != found || end == all_count {
            shape = found;
            print_state(filter, end, rate);
        }
    }
    (pause, rate_max, size_max)
}

#[expect(clippy::cast_precision_loss, reason = "counts are below 2^53")]
fn print_state(filter: &GrowingFilter, keys_count: u64, rate: f64) {
    let stats = filter.stats();
    let slices = if stats.is_exact {
        "exact".to_owned()
    } else {
        stats.slice_count.to_string()
    };
    line(format!(
        "{keys_count:<22}{slices:>8}{:>12.3} %{:>12.3} %{:>14}{:>12.2}",
        rate * 100.0,
        stats.predicted_rate * 100.0,
        stats.size_bytes,
        stats.size_bytes as f64 / keys_count as f64
    ));
}

/// Inserts the keys with some numbers, every second batch by another thread, and returns the longest pause.
fn insert(filter: &GrowingFilter, numbers: Range<u64>) -> Pause {
    let batch_count = BATCH as u64;
    thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| {
                let numbers = numbers.clone();
                scope.spawn(move || {
                    let mut pause = Pause::default();
                    let mut answers = [Answer::New; BATCH];
                    let mut first = numbers.start + thread * batch_count;
                    while first < numbers.end {
                        let end = (first + batch_count).min(numbers.end);
                        let keys: Vec<u128> = (first..end).map(key).collect();
                        let answers = &mut answers[..keys.len()];
                        let begun = Instant::now();
                        let (seconds, ()) = timed(|| filter.check_and_insert_batch(&keys, answers));
                        pause = pause.or_longer(Pause {
                            by_clock_ms: begun.elapsed().as_secs_f64() * 1e3,
                            by_processor_ms: seconds * 1e3,
                        });
                        first += THREADS * batch_count;
                    }
                    pause
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().expect("a thread ends"))
            .fold(Pause::default(), Pause::or_longer)
    })
}

#[expect(clippy::cast_precision_loss, reason = "counts are below 2^53")]
fn measured_rate(filter: &GrowingFilter) -> f64 {
    present_count(filter, ABSENT..ABSENT + PROBES) as f64 / PROBES as f64
}

fn present_count(filter: &GrowingFilter, numbers: Range<u64>) -> u64 {
    let mut answers = [Answer::New; BATCH];
    let mut count = 0;
    for first in numbers.clone().step_by(BATCH) {
        let end = (first + BATCH as u64).min(numbers.end);
        let keys: Vec<u128> = (first..end).map(key).collect();
        let answers = &mut answers[..keys.len()];
        filter.contains_batch(&keys, answers);
        count += answers
            .iter()
            .map(|answer| u64::from(*answer != Answer::New))
            .sum::<u64>();
    }
    count
}

#[expect(clippy::cast_precision_loss, reason = "counts are below 2^53")]
fn report_end(
    filter: &GrowingFilter,
    all_count: u64,
    pause: Pause,
    rate_max: f64,
    size_max: u64,
    peak_bytes: Option<u64>,
    demands: &mut Demands,
) {
    let stats = filter.stats();
    let absent_count = all_count - present_count(filter, 0..all_count);
    assert_eq!(absent_count, 0, "false \"no\" for keys that are in it");
    let ideal_bytes = sizing::lines_for(all_count, RATE) * sizing::LINE_BYTES;
    let ratio = stats.size_bytes as f64 / ideal_bytes as f64;
    line(format!(
        "No false \"no\". Longest batch of {BATCH}: {:.2} ms by the clock, {:.2} ms of processor time.",
        pause.by_clock_ms, pause.by_processor_ms
    ));
    let peak = peak_bytes.map_or("the system does not say".to_owned(), |bytes| {
        format!("{bytes} bytes more than before it")
    });
    line(format!(
        "Memory at the end {} bytes, {ratio:.2} times one filter of the final size; the most at any part's end {size_max}; \
         peak of the process while it grew: {peak}.",
        stats.size_bytes
    ));
    demands.at_most(
        "growth: false positives at worst, %",
        rate_max * 100.0,
        RATE * 100.0,
    );
    demands.at_most(
        "growth: longest batch, ms by the clock",
        pause.by_clock_ms,
        50.0,
    );
    demands.at_most("growth: memory to one filter of the final size", ratio, 2.2);
}

/// Compares look-ups in the chain of slices with those in one filter for all keys.
#[expect(clippy::cast_precision_loss, reason = "counts are below 2^53")]
fn look_ups(filter: &GrowingFilter, all_count: u64, rounds: u32) {
    let whole = Filter::with_pages(all_count, RATE, Pages::Huge).expect("a size that fits");
    for first in (0..all_count).step_by(BATCH) {
        let keys: Vec<u128> = (first..(first + BATCH as u64).min(all_count))
            .map(key)
            .collect();
        whole.check_and_insert_batch(&keys, &mut [false; BATCH][..keys.len()]);
    }
    let probes_count = (all_count / 5).min(2_000_000);
    let absent: Vec<u128> = (ABSENT..ABSENT + probes_count).map(key).collect();
    // Spread over all ages, since old keys are in the first slices and most are in the last.
    let present: Vec<u128> = (0..probes_count)
        .map(|number| key(number * (all_count / probes_count)))
        .collect();
    for (name, keys) in [("negative", &absent), ("positive", &present)] {
        let (mut chain_seconds, mut whole_seconds) = (Vec::new(), Vec::new());
        for _ in 0..rounds {
            chain_seconds.push(timed(|| ask_chain(filter, keys)).0);
            whole_seconds.push(timed(|| ask_whole(&whole, keys)).0);
        }
        let each_ns = |seconds: &[f64]| median(seconds) * 1e9 / probes_count as f64;
        let (chain_ns, whole_ns) = (each_ns(&chain_seconds), each_ns(&whole_seconds));
        line(format!(
            "{name} look-up, batches of {BATCH}: {chain_ns:.1} ns in the chain of {}, {whole_ns:.1} ns in one filter ({:.2})",
            filter.stats().slice_count,
            chain_ns / whole_ns
        ));
    }
}

fn ask_chain(filter: &GrowingFilter, keys: &[u128]) {
    let mut answers = [Answer::New; BATCH];
    for keys in keys.chunks(BATCH) {
        filter.contains_batch(keys, &mut answers[..keys.len()]);
        std::hint::black_box(&answers);
    }
}

fn ask_whole(filter: &Filter, keys: &[u128]) {
    let mut answers = [false; BATCH];
    for keys in keys.chunks(BATCH) {
        filter.contains_batch(keys, &mut answers[..keys.len()]);
        std::hint::black_box(&answers);
    }
}

/// The memory of the process, where the system says.
struct Memory {
    before_bytes: Option<u64>,
}

impl Memory {
    /// Takes note of what is in use, and lets the system's peak begin anew.
    fn begin() -> Self {
        // Linux alone; see proc_pid_clear_refs(5). Without it the peak is not told.
        let is_reset = fs::write("/proc/self/clear_refs", "5").is_ok();
        Self {
            before_bytes: is_reset.then(|| status_bytes("VmRSS:")).flatten(),
        }
    }

    fn peak_bytes(&self) -> Option<u64> {
        Some(status_bytes("VmHWM:")?.saturating_sub(self.before_bytes?))
    }
}

fn status_bytes(name: &str) -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1_024)
}
