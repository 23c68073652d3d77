//! The queue: every entry is of a known URL that is not finished, and stands where it belongs.

use store::StoreError;
use types::{Host, QueuePosition, QueuedUrl};

use super::{Check, ViolationKind, keys::Known};
use crate::EngineError;

/// Entries read at a time.
const BATCH: usize = 1_000;

/// What the queue holds.
pub(super) struct QueueSize {
    pub(super) queued: u64,
    pub(super) hosts: u64,
}

/// Reads every host's queue.
pub(super) fn check(check: &mut Check<'_>, known: &mut Known) -> Result<QueueSize, EngineError> {
    let mut hosts = Vec::new();
    check
        .store
        .queued_hosts(&mut |host, count, first| hosts.push((host, count, first)))?;
    let mut queued = 0;
    for (host, count, first) in &hosts {
        let found = check_host(check, known, host, *first, queued)?;
        if let Some(found) = found
            && found != *count
        {
            let what = format!("{host}: {count} by number, {found} in order");
            check.findings.add(ViolationKind::QueueUnreadable, &what);
        }
        queued += count;
    }
    let accounted = check.saved.counts.queued;
    check.findings.equal("queued URLs", queued, accounted);
    Ok(QueueSize {
        queued,
        hosts: hosts.len() as u64,
    })
}

/// Reads the queue of one host in order and returns how many URLs it has, or `None` where it cannot be read.
fn check_host(
    check: &mut Check<'_>,
    known: &mut Known,
    host: &Host,
    first: QueuePosition,
    read_before: u64,
) -> Result<Option<u64>, EngineError> {
    let mut from = first;
    let mut count = 0;
    loop {
        let batch = match check.store.read_queue(host, from, BATCH) {
            Ok(batch) => batch,
            Err(StoreError::Corrupt(problem)) => {
                let what = format!("{host}: {problem}");
                check.findings.add(ViolationKind::QueueUnreadable, &what);
                return Ok(None);
            }
            Err(error) => return Err(error.into()),
        };
        for queued in &batch {
            check_entry(check, known, host, queued);
        }
        count += batch.len() as u64;
        let done = read_before + count;
        check.teller.tell("queue", done, check.saved.counts.queued);
        match batch.last() {
            // Nothing stands twice in one place, so the next batch begins behind it.
            Some(last) if batch.len() == BATCH => {
                from = QueuePosition {
                    sequence: last.position.sequence.saturating_add(1),
                    ..last.position
                };
            }
            _ => return Ok(Some(count)),
        }
    }
}

fn check_entry(check: &mut Check<'_>, known: &mut Known, host: &Host, queued: &QueuedUrl) {
    let url = queued.url.as_str();
    let findings = &mut check.findings;
    let is_own_place = queued.url.host_str() == host.as_str()
        && queued.position.sequence < check.next_sequence
        && queued.key == check.key_seed.key(&queued.url);
    if !is_own_place {
        findings.add(ViolationKind::QueueForeign, url);
    }
    let mark = known.find_or_add(queued.key, || {
        findings.add(ViolationKind::QueueKeyMissing, url);
    });
    if mark.is_queued() {
        check.findings.add(ViolationKind::QueueTwice, url);
    }
    mark.set_queued();
}
