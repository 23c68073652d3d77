//! What the engine stores with every commit: the accounts, the totals, and how far the outputs reach.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use types::{CrawlCounts, Disposition, PageRecord};

use crate::EngineError;

/// The progress of a crawl as of one commit. It changes only with what it counts, so it holds after any death.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct SavedProgress {
    /// The accounts.
    pub(crate) counts: CrawlCounts,
    /// Sums over the finished pages.
    pub(crate) totals: Totals,
    /// How far each output file reaches; what lies beyond belongs to no finished page and is cut on resume.
    pub(crate) outputs: OutputPositions,
    /// The cap on leases of the run that wrote this, or 0 after a clean end.
    pub(crate) leases_at_risk: u64,
    /// Whether the crawl had nothing left to do.
    pub(crate) is_finished: bool,
    /// The mode of the seen test; empty before the first run.
    pub(crate) seen_mode: String,
    /// URLs that mode `bloom` expects to have lost in all runs.
    pub(crate) expected_lost: f64,
    /// The sum over the keys of all notes (see [`crate::snapshot::SnapshotLabel`]).
    pub(crate) key_sum: u64,
}

/// Sums over the finished pages.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Totals {
    /// Pages with a response.
    pub(crate) pages: u64,
    /// Responses by class (`2xx`).
    pub(crate) by_status_class: BTreeMap<String, u64>,
    /// Failed and disregarded URLs by kind of failure.
    pub(crate) failures: BTreeMap<String, u64>,
    /// Bytes of bodies on the wire.
    pub(crate) wire_bytes: u64,
    /// Bytes of bodies after content decoding.
    pub(crate) body_bytes: u64,
}

/// How far each output reaches.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct OutputPositions {
    /// The length of `pages.jsonl` in bytes.
    pub(crate) jsonl_bytes: u64,
    /// How many WARC files were begun.
    pub(crate) warc_files: u64,
    /// The name of the WARC file being written, if any.
    pub(crate) warc_name: Option<String>,
    /// Its length in bytes.
    pub(crate) warc_bytes: u64,
}

impl SavedProgress {
    /// Reads stored bytes.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Result<Self, EngineError> {
        let saved = Self::from_bytes_unchecked(bytes)?;
        if saved.counts.identity_holds() {
            Ok(saved)
        } else {
            Err(corrupt("its accounts do not add up"))
        }
    }

    /// Reads stored bytes, whether or not their accounts add up.
    pub(crate) fn from_bytes_unchecked(bytes: &[u8]) -> Result<Self, EngineError> {
        serde_json::from_slice(bytes).map_err(|error| corrupt(&error.to_string()))
    }

    /// Returns the bytes to store.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("maps with text keys and numbers always serialize")
    }
}

fn corrupt(problem: &str) -> EngineError {
    EngineError::Store(store::StoreError::Corrupt(format!(
        "the crawl's progress: {problem}"
    )))
}

impl Totals {
    /// Adds a finished page.
    pub(crate) fn add(&mut self, record: &PageRecord) {
        if let Some(status) = record.status {
            self.pages += 1;
            *self
                .by_status_class
                .entry(format!("{}xx", status / 100))
                .or_default() += 1;
        }
        if record.disposition != Disposition::Succeeded {
            let name = record.error.map_or("unknown", types::FailureKind::name);
            *self.failures.entry(name.to_owned()).or_default() += 1;
        }
        self.wire_bytes += record.wire_bytes;
        self.body_bytes += record.body_bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_stored_comes_back_to_the_last_bit() {
        for step in 1..2_000_u32 {
            let saved = SavedProgress {
                expected_lost: f64::from(step).sqrt() * 17.3,
                key_sum: u64::MAX - u64::from(step),
                ..SavedProgress::default()
            };
            let read = SavedProgress::from_bytes(&saved.to_bytes()).expect("what was written");
            assert_eq!(read, saved);
        }
    }
}
