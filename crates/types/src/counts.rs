//! The crawl's accounts, and the identity that they obey.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{Disposition, RejectReason};

/// Duplicates by the tier of the seen test that answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DuplicateCounts {
    /// Repeats within one page.
    pub in_page: u64,
    /// Answered by the recent-key cache.
    pub cache: u64,
    /// Answered by the unwritten notes.
    pub unwritten: u64,
    /// Answered by the store: suspects that were true duplicates.
    pub store: u64,
}

impl DuplicateCounts {
    /// Returns the sum over the tiers.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.in_page + self.cache + self.unwritten + self.store
    }
}

/// What one page (or the seed list) adds to the accounts beside its fresh URLs: the candidates that ended there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PageTally {
    /// Candidates refused, by reason.
    pub rejected: BTreeMap<RejectReason, u64>,
    /// Candidates dropped as duplicates, by tier; suspects settled later are not among them.
    pub duplicates: DuplicateCounts,
}

impl PageTally {
    /// Counts one refused candidate.
    pub fn reject(&mut self, reason: RejectReason) {
        self.reject_many(reason, 1);
    }

    /// Counts `count` refused candidates.
    pub fn reject_many(&mut self, reason: RejectReason, count: u64) {
        if count > 0 {
            *self.rejected.entry(reason).or_default() += count;
        }
    }

    /// Returns how many candidates ended here.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.duplicates.total() + self.rejected.values().sum::<u64>()
    }
}

/// The accounts of a crawl. At every checkpoint
/// `discovered = rejected + duplicates + suspects + queued + leased + finished`.
///
/// They change only with a commit, in the same transaction as what they count, so they hold after any death.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CrawlCounts {
    /// Candidates that were offered: seeds, links, redirect targets.
    pub discovered: u64,
    /// Candidates refused before the seen test, by reason.
    pub rejected: BTreeMap<RejectReason, u64>,
    /// Candidates dropped as seen, by tier.
    pub duplicates: DuplicateCounts,
    /// Suspects waiting for the store's verdict.
    pub suspects: u64,
    /// URLs admitted and waiting.
    pub queued: u64,
    /// URLs being fetched, parsed or settled.
    pub leased: u64,
    /// URLs that ended with a response.
    pub succeeded: u64,
    /// URLs that ended without.
    pub failed: u64,
    /// URLs that were never requested.
    pub disregarded: u64,
    /// Keys that the filter answered "no" for: admitted without a store read.
    pub filter_no: u64,
    /// Suspects that the store did not have: admitted after a store read.
    pub false_positives: u64,
}

impl CrawlCounts {
    /// Returns the refused candidates.
    #[must_use]
    pub fn rejected_total(&self) -> u64 {
        self.rejected.values().sum()
    }

    /// Returns the URLs that are done with.
    #[must_use]
    pub const fn finished(&self) -> u64 {
        self.succeeded + self.failed + self.disregarded
    }

    /// Returns the right side of the identity.
    #[must_use]
    pub fn accounted(&self) -> u64 {
        self.rejected_total()
            + self.duplicates.total()
            + self.suspects
            + self.queued
            + self.leased
            + self.finished()
    }

    /// Returns whether every discovered candidate is accounted for.
    #[must_use]
    pub fn identity_holds(&self) -> bool {
        self.discovered == self.accounted()
    }

    /// Returns the store reads the seen test made: one for each settled suspect.
    #[must_use]
    pub const fn store_reads(&self) -> u64 {
        self.duplicates.store + self.false_positives
    }

    /// Adds a page's tally: candidates that were discovered and ended at once.
    pub fn add_tally(&mut self, tally: &PageTally) {
        self.discovered += tally.total();
        for (reason, count) in &tally.rejected {
            *self.rejected.entry(*reason).or_default() += count;
        }
        self.duplicates.in_page += tally.duplicates.in_page;
        self.duplicates.cache += tally.duplicates.cache;
        self.duplicates.unwritten += tally.duplicates.unwritten;
        self.duplicates.store += tally.duplicates.store;
    }

    /// Counts one URL that left the queue for good.
    pub const fn finish(&mut self, disposition: Disposition) {
        self.queued -= 1;
        match disposition {
            Disposition::Succeeded => self.succeeded += 1,
            Disposition::Failed => self.failed += 1,
            Disposition::Disregarded => self.disregarded += 1,
        }
    }
}
