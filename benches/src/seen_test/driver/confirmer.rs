//! The confirmer's part: asks the store about suspects in sorted batches, one at a time, as the engine's confirmer does.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender};
use frontier::{SeenTest, Settled};
use store::Store;
use types::{Candidate, UrlKey, Verdict};

/// A batch is asked at this size at the latest.
const BATCH_MAX: usize = 4_096;
/// A suspect waits at most this long for company.
const DEADLINE: Duration = Duration::from_millis(100);

/// Runs until every sender of suspects is gone. Each message has the suspects of one page, and at most `pages_max` pages wait
/// for company.
#[expect(
    clippy::needless_pass_by_value,
    reason = "a stage that ends must drop its ends of the channels"
)]
pub(crate) fn run(
    store: &dyn Store,
    seen: &SeenTest,
    suspects: Receiver<Vec<Candidate>>,
    verdicts: Sender<Vec<Settled>>,
    pages_max: usize,
) -> Result<()> {
    while let Ok(first) = suspects.recv() {
        let batch = gather(first, &suspects, pages_max);
        if verdicts.send(confirm(store, seen, batch)?).is_err() {
            break;
        }
    }
    Ok(())
}

fn gather(
    first: Vec<Candidate>,
    suspects: &Receiver<Vec<Candidate>>,
    pages_max: usize,
) -> Vec<Candidate> {
    let mut batch = first;
    let deadline = Instant::now() + DEADLINE;
    let mut page_count = 1;
    while batch.len() < BATCH_MAX && page_count < pages_max {
        match suspects.recv_deadline(deadline) {
            Ok(more) => {
                batch.extend(more);
                page_count += 1;
            }
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => break,
        }
    }
    batch
}

fn confirm(store: &dyn Store, seen: &SeenTest, batch: Vec<Candidate>) -> Result<Vec<Settled>> {
    let by_key: BTreeMap<UrlKey, Candidate> = batch
        .into_iter()
        .map(|candidate| (candidate.key, candidate))
        .collect();
    let keys: Vec<UrlKey> = by_key.keys().copied().collect();
    let answers = store.confirm(&keys)?;
    ensure!(
        answers.len() == keys.len(),
        "the store answered {} of {} questions",
        answers.len(),
        keys.len()
    );
    Ok(by_key
        .into_values()
        .zip(answers)
        .map(|(candidate, is_present)| {
            let verdict = if is_present {
                Verdict::Seen
            } else {
                Verdict::FalsePositive
            };
            seen.settle(candidate, verdict)
        })
        .collect())
}
