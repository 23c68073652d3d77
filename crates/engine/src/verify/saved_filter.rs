//! The saved filter: if a run would use it, it knows every key, and has as many false positives as its formula says.

use filter::{Answer, FilterStats, GrowingFilter, sizing};
use serde::Serialize;
use types::UrlKey;

use super::{Check, ViolationKind, keys::Known};
use crate::{
    key_log,
    snapshot::{self, SNAPSHOT_FILE, SnapshotLabel},
};

/// Keys asked for at a time.
const BATCH: usize = 64;
/// Keys asked for that no crawl has.
const PROBES_COUNT: u32 = 1_000_000;
/// Batches in which they are asked for.
const PROBE_BATCHES: usize = 15_625;
const _: () = assert!(PROBE_BATCHES * BATCH == PROBES_COUNT as usize);
/// The seed of those keys, so that two checks of one filter say the same.
const PROBE_SEED: u64 = 0x0b10_0c4a;
/// How far the measured rate may be from the predicted one. By chance it is a tenth of that off at most, but where there
/// are few lines.
const DEVIATION_MAX: f64 = 0.005;

/// What was found of the saved filter. Without one, the next run makes it anew from the store.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct FilterFinding {
    /// Whether there is one that the next run can use.
    pub is_usable: bool,
    /// Keys in it.
    pub items: u64,
    /// How many of the store's keys it has by the log alone.
    pub replayed: u64,
    /// The rate of false positives that its fill predicts.
    pub predicted_rate: f64,
    /// That of a million keys that no crawl has.
    pub measured_rate: f64,
}

/// Reads the filter as a run would, and asks it for every key of the store. One that a run would not use is remarked.
pub(super) fn check(check: &mut Check<'_>, known: &Known, crawl_id: &str) -> FilterFinding {
    let wanted = SnapshotLabel::new(
        crawl_id.to_owned(),
        check.next_sequence,
        check.saved.key_sum,
    );
    match load(check, &wanted) {
        Ok(Some((filter, replayed))) => examine(check, known, &filter, replayed),
        Ok(None) => {
            check.findings.remark(format!(
                "there is no {SNAPSHOT_FILE}, which is no fault: it is written at checkpoints and when a run ends, and only once a crawl has a filter, which small ones have not; the next run reads the keys from the store"
            ));
            FilterFinding::default()
        }
        Err(refusal) => {
            check.findings.remark(refusal);
            FilterFinding::default()
        }
    }
}

/// Loads the snapshot and the keys logged since, and returns how many these were.
fn load(check: &Check<'_>, wanted: &SnapshotLabel) -> Result<Option<(GrowingFilter, u64)>, String> {
    let Some((mut reached, filter)) = snapshot::load(check.data, wanted)? else {
        return Ok(None);
    };
    let from = reached.next_sequence();
    key_log::read(check.data, wanted, from, &mut |keys| {
        for batch in keys.chunks(BATCH) {
            filter.enter(&numbers(batch)[..batch.len()]);
        }
        reached.add(keys.iter().copied());
    })
    .map_err(|error| {
        snapshot::refusal(&format!("cannot be used: the keys logged since {error}"))
    })?;
    if reached != *wanted {
        return Err(snapshot::refusal("is of other keys than the store's"));
    }
    Ok(Some((filter, wanted.next_sequence() - from)))
}

fn numbers(keys: &[UrlKey]) -> [u128; BATCH] {
    let mut numbers = [0; BATCH];
    for (number, key) in numbers.iter_mut().zip(keys) {
        *number = key.as_u128();
    }
    numbers
}

fn examine(
    check: &mut Check<'_>,
    known: &Known,
    filter: &GrowingFilter,
    replayed: u64,
) -> FilterFinding {
    let mut done = 0;
    for batch in known.keys().chunks(BATCH) {
        let mut answers = [Answer::New; BATCH];
        let answers = &mut answers[..batch.len()];
        filter.contains_batch(&numbers(batch)[..batch.len()], answers);
        for (key, answer) in batch.iter().zip(answers) {
            if *answer == Answer::New {
                check.findings.add_key(ViolationKind::FilterLacksKey, *key);
            }
        }
        done += batch.len() as u64;
        check.teller.tell("keys of the filter", done, known.count());
    }
    let stats = filter.stats();
    let measured_rate = false_positive_rate(filter);
    if (measured_rate - stats.predicted_rate).abs() > tolerance(&stats) {
        let what = format!(
            "{measured_rate:.4} of new keys are answered yes, {:.4} are predicted",
            stats.predicted_rate
        );
        check.findings.add(ViolationKind::FilterRate, &what);
    }
    FilterFinding {
        is_usable: true,
        items: stats.item_count,
        replayed,
        predicted_rate: stats.predicted_rate,
        measured_rate,
    }
}

/// Returns how far the measured rate may be from the predicted one. The rates of single lines differ by about their mean,
/// so the rate of a filter of a few hundred lines is not that of the formula.
#[expect(clippy::cast_precision_loss, reason = "a bound with room to spare")]
fn tolerance(stats: &FilterStats) -> f64 {
    let lines_count = (stats.size_bytes / sizing::LINE_BYTES).max(1);
    let by_lines = 3.0 * stats.predicted_rate / (lines_count as f64).sqrt();
    by_lines.max(DEVIATION_MAX)
}

/// Returns the share of a million keys, which are in no crawl, that a filter claims to have, 0 to 1.
#[must_use]
pub fn false_positive_rate(filter: &GrowingFilter) -> f64 {
    let mut random = fastrand::Rng::with_seed(PROBE_SEED);
    let mut keys = [0; BATCH];
    let mut answers = [Answer::New; BATCH];
    let mut wrong_count = 0_u32;
    for _ in 0..PROBE_BATCHES {
        for key in &mut keys {
            // As a crawl's keys are: 120 bits of hash below the number of a partition.
            *key = random.u128(..) >> 8;
        }
        filter.contains_batch(&keys, &mut answers);
        for answer in answers {
            wrong_count += u32::from(answer != Answer::New);
        }
    }
    f64::from(wrong_count) / f64::from(PROBES_COUNT)
}
