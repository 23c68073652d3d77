//! What is demanded of the frontier at scale, and whether a run met it.

use super::mark::{Mark, Stretch};
use crate::{measure::line, seen_test::options::StoreKind};

/// The peak at the last mark to the first's, the planned bytes aside.
const PEAK_RATIO_MAX: f64 = 1.15;
/// The most memory of the process, in megabytes.
const PEAK_MB_MAX: f64 = 600.0;
/// The rate of admission at the last mark to the first's.
const RATE_RATIO_MIN: f64 = 0.8;
/// New URLs for a second of this process's CPU time.
const NEW_PER_CPU_MIN: f64 = 28_000.0;
/// The mean time of a read of the queue after many rows were deleted, to the one before.
const READ_RATIO_MAX: f64 = 2.0;

/// What was measured where demands are made.
#[derive(Clone, Copy, Debug)]
pub struct Judged<'a> {
    /// Where the known URLs are a tenth, and where they are all.
    pub marks: [&'a Mark; 2],
    /// The stretch before either, a twentieth of the whole.
    pub stretches: [Stretch; 2],
    /// From the first URL to the last.
    pub whole: Stretch,
    /// While no URL was new.
    pub drain: Stretch,
}

/// Prints the demands and whether they are met. Those on memory are of stores outside of this process's memory.
pub fn print(judged: &Judged<'_>, kind: StoreKind) {
    line("\nWhat is demanded (at 10 M known URLs)");
    let Judged {
        marks: [first, last],
        stretches: [early, late],
        whole,
        drain,
    } = judged;
    if kind != StoreKind::Memory {
        let planned_mb = last.planned_mb;
        at_most(
            "peak memory, MB; 1.15 times that at the first mark, and the planned bytes",
            last.peak_mb,
            PEAK_RATIO_MAX * first.peak_mb + planned_mb,
        );
        at_most("peak memory, MB", last.peak_mb, PEAK_MB_MAX);
    }
    at_least(
        "admissions for a CPU second at the last mark to those at the first",
        late.new_per_cpu() / early.new_per_cpu(),
        RATE_RATIO_MIN,
    );
    at_least(
        "admissions for a second by the clock at the last mark to those at the first",
        late.new_per_second() / early.new_per_second(),
        RATE_RATIO_MIN,
    );
    if kind == StoreKind::Embedded {
        at_least(
            "new URLs for a CPU second of the whole process",
            whole.new_per_cpu(),
            NEW_PER_CPU_MIN,
        );
    }
    at_most(
        "a mean read of the queue among deleted rows to one before",
        drain.reads.mean_us() / late.reads.mean_us(),
        READ_RATIO_MAX,
    );
}

fn at_most(name: &str, figure: f64, most: f64) {
    verdict(name, figure, figure <= most, &format!("at most {most:.2}"));
}

fn at_least(name: &str, figure: f64, least: f64) {
    let demand = format!("at least {least:.2}");
    verdict(name, figure, figure >= least, &demand);
}

fn verdict(name: &str, figure: f64, is_met: bool, demand: &str) {
    let verdict = if is_met { "PASS" } else { "FAIL" };
    line(format_args!(
        "{verdict} {name}: {figure:.2}, {demand} demanded"
    ));
}
