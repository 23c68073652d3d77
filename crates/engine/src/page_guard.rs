//! The guard around the reading of one page: a panic in it costs that page, and neither its host, nor a thread, nor the
//! crawl.

use std::panic::{AssertUnwindSafe, catch_unwind};

use types::{Candidate, Disposition, FailureKind, PageRecord, PageTally};

/// Has a page read, which completes its record and counts the links that are not followed. Where that panics, the page is
/// recorded as failed and the crawl goes on: otherwise the page would end the crawl in every run.
pub(crate) fn guarded(
    record: &mut PageRecord,
    tally: &mut PageTally,
    read: impl FnOnce(&mut PageRecord, &mut PageTally) -> Vec<Candidate>,
) -> Vec<Candidate> {
    let before = record.clone();
    catch_unwind(AssertUnwindSafe(|| read(record, tally))).unwrap_or_else(|_| {
        *record = before;
        *tally = PageTally::default();
        record.disposition = Disposition::Failed;
        record.error = Some(FailureKind::Internal);
        record.error_detail = Some("the page could not be parsed".to_owned());
        Vec::new()
    })
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a failed set-up fails the test")]

    use jiff::Timestamp;
    use types::{CanonicalUrl, FetchFailure, KeySeed, QueuePosition, QueuedUrl, RejectReason, Via};

    use super::*;
    use crate::record;

    /// retresco/Spyder#9: a worker that died took its URL along, and its host was blocked for ever.
    #[test]
    fn spyder_9_a_page_on_which_a_worker_panics_is_recorded_as_failed() {
        let url = CanonicalUrl::from_stored("http://site.example/".to_owned()).unwrap();
        let queued = QueuedUrl {
            key: KeySeed::new(1).key(&url),
            url,
            position: QueuePosition::default(),
            via: Via::Seed,
            redirect_count: 0,
            referrer: None,
            attempt: 0,
        };
        let no_failure = FetchFailure {
            kind: FailureKind::Connect,
            detail: String::new(),
        };
        let now = Timestamp::UNIX_EPOCH;
        let whole = record::of_failure(&queued, &no_failure, Disposition::Succeeded, now);
        let (mut record, mut tally) = (whole.clone(), PageTally::default());
        let candidates = guarded(&mut record, &mut tally, |record, tally| {
            record.outlink_count = 7;
            tally.reject(RejectReason::Nofollow);
            panic!("on this page");
        });
        assert!(candidates.is_empty() && tally.total() == 0);
        let failed = PageRecord {
            disposition: Disposition::Failed,
            error: Some(FailureKind::Internal),
            error_detail: Some("the page could not be parsed".to_owned()),
            ..whole
        };
        assert_eq!(record, failed, "nothing of the half-read page is left");
    }
}
