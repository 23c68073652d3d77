//! The keys of the store, and what was found of each so far.

use std::collections::HashMap;

use types::UrlKey;
use xxhash_rust::xxh3::xxh3_64;

use super::{Check, Findings, ViolationKind};
use crate::{EngineError, snapshot::SnapshotLabel};

/// What was found of one key: three flags, and above them a part of the hash of its record.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Mark(u32);

impl Mark {
    const QUEUED: u32 = 1;
    const RECORDED: u32 = 2;
    const LINED: u32 = 4;
    const FLAGS_BITS: u32 = 3;

    pub(super) const fn is_queued(self) -> bool {
        self.0 & Self::QUEUED != 0
    }

    pub(super) const fn is_recorded(self) -> bool {
        self.0 & Self::RECORDED != 0
    }

    pub(super) const fn is_lined(self) -> bool {
        self.0 & Self::LINED != 0
    }

    pub(super) const fn set_queued(&mut self) {
        self.0 |= Self::QUEUED;
    }

    pub(super) const fn set_lined(&mut self) {
        self.0 |= Self::LINED;
    }

    pub(super) fn set_record(&mut self, record: &[u8]) {
        self.0 |= Self::RECORDED | hash_part(record);
    }

    /// Returns whether `record` is the one that was set; a wrong "yes" has a chance of one in 500 million.
    pub(super) fn has_record(self, record: &[u8]) -> bool {
        self.0 >> Self::FLAGS_BITS == hash_part(record) >> Self::FLAGS_BITS
    }
}

#[expect(clippy::cast_possible_truncation, reason = "a part is meant")]
fn hash_part(record: &[u8]) -> u32 {
    (xxh3_64(record) as u32) << Mark::FLAGS_BITS
}

/// The key table in memory.
pub(super) struct Known {
    /// Sorted, each once.
    keys: Vec<UrlKey>,
    marks: Vec<Mark>,
    /// Keys of queue and records that the table lacks: a violation each, so few.
    strays: HashMap<UrlKey, Mark>,
}

/// Reads the key table, and holds its number and sum against the accounts.
pub(super) fn read(check: &mut Check<'_>) -> Result<Known, EngineError> {
    let counts = &check.saved.counts;
    let accounted = counts.queued + counts.finished();
    let mut keys: Vec<UrlKey> = Vec::new();
    // Where the number is damaged, the memory may not be had; it is only asked for to spare copies.
    drop(keys.try_reserve_exact(usize::try_from(accounted).unwrap_or(0)));
    let mut holds = SnapshotLabel::new(String::new(), 0, 0);
    let teller = &mut check.teller;
    check.store.scan_keys(&mut |batch| {
        keys.extend_from_slice(batch);
        holds.add(batch.iter().copied());
        teller.tell("keys", keys.len() as u64, accounted);
    })?;
    let findings = &mut check.findings;
    findings.equal("known keys", holds.next_sequence(), accounted);
    findings.equal("URLs numbered so far", check.next_sequence, accounted);
    if holds.next_sequence() == accounted && holds.key_sum() != check.saved.key_sum {
        let what = "the sum of all keys is not theirs, so some are others";
        findings.add(ViolationKind::Accounts, what);
    }
    keys.sort_unstable();
    for pair in keys.windows(2) {
        if pair[0] == pair[1] {
            findings.add_key(ViolationKind::KeyTwice, pair[0]);
        }
    }
    keys.dedup();
    let marks = vec![Mark::default(); keys.len()];
    Ok(Known {
        keys,
        marks,
        strays: HashMap::new(),
    })
}

impl Known {
    pub(super) const fn count(&self) -> u64 {
        self.keys.len() as u64
    }

    pub(super) fn keys(&self) -> &[UrlKey] {
        &self.keys
    }

    /// Returns what was found of a key, if it was met before.
    pub(super) fn find(&mut self, key: UrlKey) -> Option<&mut Mark> {
        match self.keys.binary_search(&key) {
            Ok(index) => Some(&mut self.marks[index]),
            Err(_) => self.strays.get_mut(&key),
        }
    }

    /// Returns what was found of a key; `missing` is called if the table lacks it.
    pub(super) fn find_or_add(&mut self, key: UrlKey, missing: impl FnOnce()) -> &mut Mark {
        if let Ok(index) = self.keys.binary_search(&key) {
            &mut self.marks[index]
        } else {
            missing();
            self.strays.entry(key).or_default()
        }
    }

    /// Finds the keys that are neither queued nor finished.
    pub(super) fn find_orphans(&self, findings: &mut Findings) {
        for (key, mark) in self.keys.iter().zip(&self.marks) {
            if !mark.is_queued() && !mark.is_recorded() {
                findings.add_key(ViolationKind::KeyOrphaned, *key);
            }
        }
    }

    /// Finds the finished URLs without a line.
    pub(super) fn find_missing_lines(&self, findings: &mut Findings) {
        let known = self.keys.iter().copied().zip(self.marks.iter().copied());
        let strays = self.strays.iter().map(|(key, mark)| (*key, *mark));
        for (key, mark) in known.chain(strays) {
            if mark.is_recorded() && !mark.is_lined() {
                findings.add_key(ViolationKind::LineMissing, key);
            }
        }
    }
}
