//! The marks of a run: meters that are read as the known URLs grow, and the table made of them.

use std::time::{Duration, Instant};

use anyhow::Result;
use frontier::{SeenTest, WorkbenchStats};

use super::{
    crawl::{Counts, ReadMeter, Reads},
    disk::Part,
};
use crate::{
    measure::{Count, line},
    seen_test::meter::{self, Aside, ServerProcess},
};

/// Stretches of a run; a rate is of one of them.
const STRETCHES: u64 = 20;
/// The marks, as the number of stretches that lie before them.
const MARKS: [u64; 4] = [2, 4, 10, 20];
/// While no URL is new, this part of the known URLs is finished.
const DRAIN_DIVISOR: u64 = 10;

/// What the marks are read from.
pub struct Meters<'a> {
    /// The seen test.
    pub seen: &'a SeenTest,
    /// The account of what the harness itself takes.
    pub aside: &'a Aside,
    /// The account of reads of the queue.
    pub reads: &'a ReadMeter,
    /// The store's server, if it has one on this machine.
    pub server: Option<ServerProcess>,
    /// Says what the store takes on disk.
    pub disk: &'a dyn Fn() -> Result<Vec<Part>>,
    /// To be done before only claims go on.
    pub before_drain: &'a dyn Fn() -> Result<()>,
}

/// The state at a mark.
#[derive(Clone, Debug)]
pub struct Mark {
    /// The most memory of the process so far, in megabytes.
    pub peak_mb: f64,
    /// Filter and recent-key cache, in megabytes.
    pub planned_mb: f64,
    /// What the store takes on disk.
    pub disk: Vec<Part>,
    known_count: u64,
}

/// What happened between two readings.
#[derive(Clone, Copy, Debug, Default)]
pub struct Stretch {
    counts: Counts,
    wall: Duration,
    cpu: Duration,
    aside: Duration,
    server_cpu: Duration,
    /// Reads of the queue.
    pub reads: Reads,
}

/// Follows a run.
pub struct Marks<'a> {
    meters: Meters<'a>,
    known_count: u64,
    stretches: Vec<Stretch>,
    drain: Stretch,
    passed: Vec<Mark>,
    last: Meter,
    finished_until: Option<u64>,
    is_complete: bool,
}

#[derive(Clone, Copy)]
struct Meter {
    counts: Counts,
    at: Instant,
    cpu: Duration,
    aside: Duration,
    server_cpu: Duration,
}

impl<'a> Marks<'a> {
    /// Begins to follow a run of `known_count` URLs, and prints the table's head.
    #[must_use]
    pub fn new(meters: Meters<'a>, known_count: u64) -> Self {
        line(format_args!(
            "{:>9}{:>9}{:>8}{:>8}{:>9}{:>9}{:>10}{:>9}{:>9}{:>7}{:>9}{:>9}{:>9}{:>9}{:>9}{:>9}",
            "known",
            "pending",
            "RSS",
            "peak",
            "filter+",
            "in win-",
            "links",
            "new",
            "new/CPU",
            "links",
            "server",
            "claims",
            "queue",
            "mean",
            "longest",
            "disk"
        ));
        line(format_args!(
            "{:>9}{:>9}{:>8}{:>8}{:>9}{:>9}{:>10}{:>9}{:>9}{:>7}{:>9}{:>9}{:>9}{:>9}{:>9}{:>9}",
            "",
            "",
            "MB",
            "MB",
            "cache MB",
            "dows",
            "/ s",
            "/ s",
            "s",
            "made %",
            "CPU-s/M",
            "/ s",
            "reads/s",
            "us",
            "ms",
            "B/known"
        ));
        let last = Meter::read(&meters, Counts::default());
        Self {
            meters,
            known_count: known_count.max(STRETCHES),
            stretches: Vec::new(),
            drain: Stretch::default(),
            passed: Vec::new(),
            last,
            finished_until: None,
            is_complete: false,
        }
    }

    /// Says whether the run has seen all that it is for.
    #[must_use]
    pub const fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// Takes in how far the crawl has come.
    ///
    /// # Errors
    ///
    /// Fails when the store does not say what it takes on disk.
    pub fn take(&mut self, counts: Counts, stats: &WorkbenchStats) -> Result<()> {
        if self.is_complete {
            return Ok(());
        }
        if let Some(until) = self.finished_until {
            if counts.finished >= until {
                self.drain = self.stretch(counts);
                let (drain, last) = (self.drain, self.mark(counts)?);
                line("The queue is worked off, no URL is new:");
                print(&last, counts, stats, &drain);
                self.is_complete = true;
            }
            return Ok(());
        }
        let step = self.stretches.len() as u64 + 1;
        if counts.known < self.known_count * step / STRETCHES {
            return Ok(());
        }
        let stretch = self.stretch(counts);
        self.stretches.push(stretch);
        if MARKS.contains(&step) {
            let since = MARKS.into_iter().take_while(|mark| *mark < step).last();
            let since = usize::try_from(since.unwrap_or_default())?;
            let mark = self.mark(counts)?;
            print(&mark, counts, stats, &sum(&self.stretches[since..]));
            self.passed.push(mark);
        }
        if step == STRETCHES {
            (self.meters.before_drain)()?;
            // What was just done is not the crawl's.
            let _ = self.stretch(counts);
            self.finished_until = Some(counts.finished + self.known_count / DRAIN_DIVISOR);
        }
        Ok(())
    }

    /// Returns what demands are made of; `None` before the run is complete.
    #[must_use]
    pub fn judged(&self) -> Option<super::demand::Judged<'_>> {
        let [first, .., last] = &*self.passed else {
            return None;
        };
        let early = *self.stretches.get(1)?;
        let late = *self.stretches.last()?;
        Some(super::demand::Judged {
            marks: [first, last],
            stretches: [early, late],
            whole: sum(&self.stretches),
            drain: self.drain,
        })
    }

    fn stretch(&mut self, counts: Counts) -> Stretch {
        let now = Meter::read(&self.meters, counts);
        let before = std::mem::replace(&mut self.last, now);
        Stretch {
            counts: Counts {
                known: now.counts.known - before.counts.known,
                finished: now.counts.finished - before.counts.finished,
                links: now.counts.links - before.counts.links,
            },
            wall: now.at - before.at,
            cpu: now.cpu.saturating_sub(before.cpu),
            aside: now.aside.saturating_sub(before.aside),
            server_cpu: now.server_cpu.saturating_sub(before.server_cpu),
            reads: self.meters.reads.take(),
        }
    }

    fn mark(&self, counts: Counts) -> Result<Mark> {
        let stats = self.meters.seen.stats();
        Ok(Mark {
            peak_mb: megabytes(meter::peak_bytes()),
            planned_mb: megabytes(stats.filter.size_bytes + stats.cache_bytes),
            disk: (self.meters.disk)()?,
            known_count: counts.known,
        })
    }
}

impl Meter {
    fn read(meters: &Meters<'_>, counts: Counts) -> Self {
        Self {
            counts,
            at: Instant::now(),
            cpu: meter::process_cpu(),
            aside: meters.aside.spent(),
            server_cpu: meters.server.map(ServerProcess::cpu).unwrap_or_default(),
        }
    }
}

impl Mark {
    /// Returns the bytes on disk for each known URL.
    #[must_use]
    pub fn disk_per_known(&self) -> f64 {
        let bytes = self.disk.iter().map(|(_, bytes)| bytes).sum();
        float(bytes) / float(self.known_count.max(1))
    }

    /// Prints what each part of the store takes on disk for each known URL.
    pub fn print_disk(&self) {
        line("\nOn disk, bytes for each known URL");
        for (name, bytes) in &self.disk {
            let each = float(*bytes) / float(self.known_count.max(1));
            line(format_args!("  {name:<24}{each:>8.1}"));
        }
    }
}

impl Stretch {
    /// Returns the new URLs for a CPU second of the whole process, making the links included.
    #[must_use]
    pub fn new_per_cpu(&self) -> f64 {
        float(self.counts.known) / self.cpu.as_secs_f64().max(1e-9)
    }

    /// Returns the new URLs for a second by the clock.
    #[must_use]
    pub fn new_per_second(&self) -> f64 {
        self.per_second(self.counts.known)
    }

    fn per_second(&self, count: u64) -> f64 {
        float(count) / self.wall.as_secs_f64().max(1e-9)
    }
}

fn sum(stretches: &[Stretch]) -> Stretch {
    let mut sum = Stretch::default();
    for stretch in stretches {
        sum.counts.known += stretch.counts.known;
        sum.counts.finished += stretch.counts.finished;
        sum.counts.links += stretch.counts.links;
        sum.wall += stretch.wall;
        sum.cpu += stretch.cpu;
        sum.aside += stretch.aside;
        sum.server_cpu += stretch.server_cpu;
        sum.reads = sum.reads.and(stretch.reads);
    }
    sum
}

/// Prints a row: the state at the mark, and the rates since the mark before.
fn print(mark: &Mark, counts: Counts, stats: &WorkbenchStats, since: &Stretch) {
    let made_percent = 100.0 * since.aside.as_secs_f64() / since.cpu.as_secs_f64().max(1e-9);
    let millions = float(since.counts.known.max(since.counts.finished)) / 1e6;
    line(format_args!(
        "{:>9}{:>9}{:>8.1}{:>8.1}{:>9.1}{:>9}{:>10.0}{:>9.0}{:>9.0}{:>7.1}{:>9.1}{:>9.0}{:>9.0}{:>9.0}{:>9.1}{:>9.0}",
        rounded(counts.known),
        rounded(stats.queued_count),
        megabytes(meter::resident_bytes()),
        mark.peak_mb,
        mark.planned_mb,
        stats.in_memory_count,
        since.per_second(since.counts.links),
        since.new_per_second(),
        since.new_per_cpu(),
        made_percent,
        since.server_cpu.as_secs_f64() / millions.max(1e-9),
        since.per_second(since.counts.finished),
        since.per_second(u64::from(since.reads.count)),
        since.reads.mean_us(),
        since.reads.longest.as_secs_f64() * 1e3,
        mark.disk_per_known(),
    ));
}

/// Returns a count to about a hundredth, so that it has a unit.
fn rounded(count: u64) -> String {
    let unit = match count {
        1_000_000.. => 100_000,
        _ => 1_000,
    };
    Count((count + unit / 2) / unit * unit).to_string()
}

fn megabytes(bytes: u64) -> f64 {
    float(bytes) / 1e6
}

#[expect(clippy::cast_precision_loss, reason = "counts here are below 2^53")]
const fn float(number: u64) -> f64 {
    number as f64
}
