//! One thread: memory, build, false positives, look-ups and insertions of each subject.

use benches::measure::{key, line, median, timed};

use crate::{
    demand::Demands,
    subject::{BATCH, Kind, Subject},
};

/// The false-positive rate that all filters are made for.
pub(crate) const RATE: f64 = 0.01;

/// Keys made at a time, outside of what is timed: 1 MiB of them, well within a core's own cache.
const CHUNK: usize = 65_536;

/// Where the numbers of keys that are never inserted begin.
pub(crate) const ABSENT: u64 = 1 << 40;

/// Where the numbers of keys begin that are inserted after the others.
const LATER: u64 = 1 << 41;

/// The figures of one subject in one round.
#[derive(Clone, Copy, Debug, Default)]
struct Figures {
    size_bytes: u64,
    build_seconds: f64,
    rate: f64,
    negative_ns: f64,
    positive_ns: f64,
    insert_ns: f64,
}

/// Measures `rounds` times all subjects in turn, and prints the medians.
pub(crate) fn run(keys_count: u64, rounds: u32, demands: &mut Demands) {
    let probes_count = (keys_count / 5).max(1);
    line(format!(
        "One thread, {keys_count} keys at {} %, {probes_count} look-ups of each kind, medians of {rounds} rounds",
        RATE * 100.0
    ));
    let mut figures = vec![Vec::new(); Kind::ALL.len()];
    for round in 0..rounds {
        for (kind, figures) in Kind::ALL.into_iter().zip(&mut figures) {
            figures.push(measure(kind, keys_count, probes_count, round == 0));
        }
    }
    let medians: Vec<Figures> = figures.iter().map(|figures| of_rounds(figures)).collect();
    let find = |kind| {
        let place = Kind::ALL.into_iter().position(|other| other == kind);
        medians[place.expect("all kinds are measured")]
    };
    let theirs = find(Kind::Fastbloom);
    print(keys_count, &medians, theirs, find);
    let ours = find(Kind::Ours {
        is_batched: true,
        is_huge: true,
    });
    judge(ours, theirs, find(Kind::Raw { is_huge: true }), demands);
}

fn of_rounds(figures: &[Figures]) -> Figures {
    let middle = |figure: fn(&Figures) -> f64| {
        let figures: Vec<f64> = figures.iter().map(figure).collect();
        median(&figures)
    };
    Figures {
        size_bytes: figures.first().map_or(0, |figures| figures.size_bytes),
        build_seconds: middle(|figures| figures.build_seconds),
        rate: middle(|figures| figures.rate),
        negative_ns: middle(|figures| figures.negative_ns),
        positive_ns: middle(|figures| figures.positive_ns),
        insert_ns: middle(|figures| figures.insert_ns),
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts are below 2^53")]
fn measure(kind: Kind, keys_count: u64, probes_count: u64, is_first: bool) -> Figures {
    let mut subject = kind.make(keys_count, RATE);
    let mut figures = Figures {
        size_bytes: subject.size_bytes(),
        ..Figures::default()
    };
    (figures.build_seconds, _) = over(0..keys_count, |batch| subject.insert(batch));
    if kind.is_filter() && is_first {
        let (_, present_count) = over(0..keys_count, |batch| subject.count_present(batch));
        assert_eq!(
            present_count,
            keys_count,
            "{}: false \"no\" for keys that are in it",
            kind.name()
        );
    }
    let per_key = 1e9 / probes_count as f64;
    let (seconds, wrong_count) = over(ABSENT..ABSENT + probes_count, |batch| {
        subject.count_present(batch)
    });
    figures.negative_ns = seconds * per_key;
    figures.rate = wrong_count as f64 / probes_count as f64;
    let (seconds, _) = over(0..probes_count, |batch| subject.count_present(batch));
    figures.positive_ns = seconds * per_key;
    figures.insert_ns = insertion(subject.as_mut(), probes_count) * per_key;
    figures
}

/// Offers keys of which every other one is in the set, and returns the seconds.
fn insertion(subject: &mut dyn Subject, probes_count: u64) -> f64 {
    let numbers = (0..probes_count).map(|number| {
        if number % 2 == 0 {
            number
        } else {
            LATER + number
        }
    });
    of_numbers(numbers, |batch| subject.insert(batch)).0
}

/// Hands the keys with some numbers to `work` in batches, and returns the seconds of that and the sum of its results.
fn over(numbers: std::ops::Range<u64>, work: impl FnMut(&[u128]) -> u64) -> (f64, u64) {
    of_numbers(numbers, work)
}

fn of_numbers(
    mut numbers: impl Iterator<Item = u64>,
    mut work: impl FnMut(&[u128]) -> u64,
) -> (f64, u64) {
    let mut keys = Vec::new();
    let (mut seconds, mut sum) = (0.0, 0);
    loop {
        keys.clear();
        keys.extend(numbers.by_ref().take(CHUNK).map(key));
        if keys.is_empty() {
            return (seconds, sum);
        }
        let (chunk_seconds, chunk_sum) = timed(|| keys.chunks(BATCH).map(&mut work).sum::<u64>());
        seconds += chunk_seconds;
        sum += chunk_sum;
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts are below 2^53")]
fn print(keys_count: u64, medians: &[Figures], theirs: Figures, find: impl Fn(Kind) -> Figures) {
    line(format!(
        "{:<34}{:>9}{:>8}{:>9}{:>10}{:>22}{:>22}{:>22}",
        "",
        "bytes",
        "FP",
        "build",
        "fastbloom",
        "negative look-up",
        "positive look-up",
        "check and insert"
    ));
    line(format!(
        "{:<34}{:>9}{:>8}{:>9}{:>10}{:>22}{:>22}{:>22}",
        "",
        "/ key",
        "%",
        "CPU s",
        "/ it",
        "ns   /raw  fastb./",
        "ns   /raw  fastb./",
        "ns   /raw  fastb./"
    ));
    for (kind, figures) in Kind::ALL.into_iter().zip(medians) {
        let is_huge = matches!(
            kind,
            Kind::Ours { is_huge: true, .. } | Kind::Raw { is_huge: true }
        );
        let raw = find(Kind::Raw { is_huge });
        let speed = |ns: f64, raw_ns: f64, their_ns: f64| {
            format!("{ns:.1}{:>7.2}{:>7.1}", ns / raw_ns, their_ns / ns)
        };
        let rate = if kind.is_filter() {
            format!("{:.3}", figures.rate * 100.0)
        } else {
            String::new()
        };
        line(format!(
            "{:<34}{:>9.3}{:>8}{:>9.2}{:>10.1}{:>22}{:>22}{:>22}",
            kind.name(),
            figures.size_bytes as f64 / keys_count as f64,
            rate,
            figures.build_seconds,
            theirs.build_seconds / figures.build_seconds,
            speed(figures.negative_ns, raw.negative_ns, theirs.negative_ns),
            speed(figures.positive_ns, raw.positive_ns, theirs.positive_ns),
            speed(figures.insert_ns, raw.insert_ns, theirs.insert_ns),
        ));
    }
    line(
        "No filter said \"no\" for any key in it. fastbloom hashes keys with its default hasher, SipHash-1-3.",
    );
    line("Check and insert: into the full set, every other key being in it.");
}

#[expect(clippy::cast_precision_loss, reason = "counts are below 2^53")]
fn judge(ours: Figures, theirs: Figures, raw: Figures, demands: &mut Demands) {
    demands.at_most(
        "bytes a key",
        ours.size_bytes as f64 / demands.keys_count as f64,
        1.28,
    );
    demands.at_most("false positives, %", ours.rate * 100.0, 1.02);
    demands.at_least(
        "fastbloom's build, in CPU seconds, to ours",
        theirs.build_seconds / ours.build_seconds,
        6.0,
    );
    for (name, ours, raw, theirs) in [
        (
            "negative",
            ours.negative_ns,
            raw.negative_ns,
            theirs.negative_ns,
        ),
        (
            "positive",
            ours.positive_ns,
            raw.positive_ns,
            theirs.positive_ns,
        ),
    ] {
        demands.at_most(
            &format!("{name} look-up to the raw line's"),
            ours / raw,
            2.0,
        );
        demands.at_least(
            &format!("fastbloom's {name} look-up to ours"),
            theirs / ours,
            5.0,
        );
    }
}
