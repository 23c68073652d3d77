//! The confirmer: asks the store about suspects in sorted batches, off the critical path.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender};
use frontier::SeenTest;
use store::Store;
use types::{Candidate, UrlKey, Verdict};

use crate::{EngineError, live::Live, message::SideMessage, patience::patiently, room::link_bytes};

/// A batch is asked at this size at the latest; the round trip, not the row, is what a database feels.
const BATCH_MAX: usize = 4_096;
/// A suspect waits at most this long for company, so that a quiet crawl does not stand still.
const DEADLINE: Duration = Duration::from_millis(100);
/// One in so many leases may wait for verdicts before they are asked for: more would leave connections idle.
const WAITING_SHARE: u32 = 4;

/// Runs until every sender of suspects is gone, or the crawl ends at once. Each message has the suspects of one page, whose
/// lease goes on until their verdict; there are at most `leases_max` leases.
pub(crate) fn run(
    store: &dyn Store,
    seen: &SeenTest,
    live: &Live,
    suspects: &Receiver<Vec<Candidate>>,
    verdicts: &Sender<SideMessage>,
    leases_max: u32,
) -> Result<(), EngineError> {
    while let Ok(first) = suspects.recv() {
        if live.is_halted() {
            return Ok(());
        }
        let batch = gather(first, suspects, leases_max / WAITING_SHARE);
        let settled = confirm(store, seen, live, batch)?;
        if verdicts.send(settled).is_err() {
            return Ok(());
        }
    }
    Ok(())
}

/// Collects suspects until the batch is full, `pages_max` pages wait, or the first has waited long enough.
fn gather(
    first: Vec<Candidate>,
    suspects: &Receiver<Vec<Candidate>>,
    pages_max: u32,
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

/// Asks the store once about all of `batch` and settles each suspect.
fn confirm(
    store: &dyn Store,
    seen: &SeenTest,
    live: &Live,
    batch: Vec<Candidate>,
) -> Result<SideMessage, EngineError> {
    // The seen test holds one suspect a key, so the map loses none.
    let by_key: BTreeMap<UrlKey, Candidate> = batch
        .into_iter()
        .map(|candidate| (candidate.key, candidate))
        .collect();
    let keys: Vec<UrlKey> = by_key.keys().copied().collect();
    let answers = patiently(live, || store.confirm(&keys))?;
    if answers.len() != by_key.len() {
        return Err(EngineError::Internal(format!(
            "the store answered {} of {} questions",
            answers.len(),
            by_key.len()
        )));
    }
    let mut seen_link_bytes = 0;
    let settled = by_key
        .into_values()
        .zip(answers)
        .map(|(candidate, is_present)| {
            let verdict = if is_present {
                Verdict::Seen
            } else {
                Verdict::FalsePositive
            };
            let bytes = link_bytes(&candidate.url, candidate.referrer.as_ref());
            let settled = seen.settle(candidate, verdict);
            // A note gives its bytes back when it is committed.
            if settled.note.is_none() {
                seen_link_bytes += bytes;
            }
            settled
        })
        .collect();
    Ok(SideMessage::Verdicts {
        settled,
        seen_link_bytes,
    })
}
