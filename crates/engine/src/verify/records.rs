//! The page records of the store: each is of a known URL that is not queued, and together they are what the accounts say.

use std::collections::BTreeMap;

use types::{CanonicalUrl, Disposition, PageRecord, UrlKey};

use super::{Check, ViolationKind, keys::Known};
use crate::EngineError;

/// Reads every page record and returns how many there are.
pub(super) fn check(check: &mut Check<'_>, known: &mut Known) -> Result<u64, EngineError> {
    let store = check.store;
    let expected = check.saved.counts.finished();
    let mut tally = Tally::default();
    store.scan_pages(&mut |key, bytes| {
        tally.records += 1;
        check.teller.tell("records", tally.records, expected);
        check_record(check, known, &mut tally, key, bytes);
    })?;
    tally.compare(check);
    Ok(tally.records)
}

fn check_record(
    check: &mut Check<'_>,
    known: &mut Known,
    tally: &mut Tally,
    key: UrlKey,
    bytes: &[u8],
) {
    let findings = &mut check.findings;
    let record: Option<PageRecord> = serde_json::from_slice(bytes).ok();
    let url = record
        .as_ref()
        .and_then(|record| CanonicalUrl::from_stored(record.url.clone()).ok());
    let name = url.as_ref().map(CanonicalUrl::as_str);
    let mut add = |kind| match name {
        Some(name) => findings.add(kind, name),
        None => findings.add_key(kind, key),
    };
    if let Some(record) = &record {
        tally.add(record);
    }
    match &url {
        None => add(ViolationKind::RecordUnreadable),
        Some(url) if check.key_seed.key(url) != key => add(ViolationKind::RecordForeign),
        Some(_) => {}
    }
    let mark = known.find_or_add(key, || add(ViolationKind::RecordKeyMissing));
    mark.set_record(bytes);
    if mark.is_queued() {
        add(ViolationKind::QueueFinished);
    }
}

/// What the records add up to.
#[derive(Default)]
struct Tally {
    records: u64,
    pages: u64,
    by_disposition: BTreeMap<&'static str, u64>,
}

impl Tally {
    fn add(&mut self, record: &PageRecord) {
        self.pages += u64::from(record.status.is_some());
        *self
            .by_disposition
            .entry(name(record.disposition))
            .or_default() += 1;
    }

    fn compare(&self, check: &mut Check<'_>) {
        let counts = &check.saved.counts;
        let findings = &mut check.findings;
        findings.equal("page records", self.records, counts.finished());
        findings.equal("responses", self.pages, check.saved.totals.pages);
        for (disposition, accounted) in [
            (Disposition::Succeeded, counts.succeeded),
            (Disposition::Failed, counts.failed),
            (Disposition::Disregarded, counts.disregarded),
        ] {
            let name = name(disposition);
            let found = self.by_disposition.get(name).copied().unwrap_or_default();
            findings.equal(&format!("{name} URLs"), found, accounted);
        }
    }
}

const fn name(disposition: Disposition) -> &'static str {
    match disposition {
        Disposition::Succeeded => "succeeded",
        Disposition::Failed => "failed",
        Disposition::Disregarded => "disregarded",
    }
}
