//! The crawl's accounts, and the identity that they obey.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{Disposition, RejectReason};

/// Duplicates by the tier of the seen test that answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DuplicateCounts {
    /// Repeats within one page.
    pub in_page: u64,
    /// Answered by the recent-key cache.
    pub cache: u64,
    /// Answered by the unwritten notes.
    pub unwritten: u64,
    /// Answered by the exact set that stands in for the filter of a small crawl.
    pub exact: u64,
    /// Dropped at the filter's word alone, as the mode without a store does; some were new.
    pub filter: u64,
    /// Answered by the store: suspects that were true duplicates.
    pub store: u64,
}

impl DuplicateCounts {
    /// Returns the sum over the tiers.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.in_page + self.cache + self.unwritten + self.exact + self.filter + self.store
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
    /// URLs that ended with a usable response: any status below 500 but 429, and a body that could be decoded.
    pub succeeded: u64,
    /// URLs that ended without one.
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
        self.duplicates.exact += tally.duplicates.exact;
        self.duplicates.filter += tally.duplicates.filter;
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

#[cfg(test)]
mod tests {
    use super::{CrawlCounts, DuplicateCounts, PageTally};
    use crate::{Disposition, RejectReason};

    fn tally() -> PageTally {
        let mut tally = PageTally {
            duplicates: DuplicateCounts {
                in_page: 5,
                cache: 4,
                unwritten: 3,
                exact: 7,
                filter: 8,
                store: 2,
            },
            ..PageTally::default()
        };
        tally.reject(RejectReason::Scheme);
        tally.reject_many(RejectReason::Scheme, 2);
        tally.reject_many(RejectReason::Invalid, 0);
        tally
    }

    #[test]
    fn a_tally_adds_up() {
        let tally = tally();
        assert_eq!(tally.total(), 32);
        assert_eq!(tally.rejected.get(&RejectReason::Scheme), Some(&3));
        assert!(
            !tally.rejected.contains_key(&RejectReason::Invalid),
            "zero leaves no entry"
        );
    }

    #[test]
    fn the_identity_holds_over_a_crawl_and_sees_each_account() {
        let mut counts = CrawlCounts {
            discovered: 6,
            queued: 4,
            leased: 1,
            suspects: 1,
            ..CrawlCounts::default()
        };
        assert!(counts.identity_holds());
        counts.add_tally(&tally());
        counts.add_tally(&tally());
        counts.finish(Disposition::Succeeded);
        counts.finish(Disposition::Failed);
        counts.finish(Disposition::Disregarded);
        assert_eq!(counts.discovered, 70);
        assert_eq!(counts.rejected_total(), 6);
        assert_eq!(counts.duplicates.total(), 58);
        assert_eq!((counts.queued, counts.finished()), (1, 3));
        assert!(counts.identity_holds());

        let accounts: [fn(&mut CrawlCounts); 14] = [
            |counts| counts.discovered -= 1,
            |counts| *counts.rejected.entry(RejectReason::TooDeep).or_default() += 1,
            |counts| counts.duplicates.in_page += 1,
            |counts| counts.duplicates.cache += 1,
            |counts| counts.duplicates.unwritten += 1,
            |counts| counts.duplicates.exact += 1,
            |counts| counts.duplicates.filter += 1,
            |counts| counts.duplicates.store += 1,
            |counts| counts.suspects += 1,
            |counts| counts.queued += 1,
            |counts| counts.leased += 1,
            |counts| counts.succeeded += 1,
            |counts| counts.failed += 1,
            |counts| counts.disregarded += 1,
        ];
        for (at, change) in accounts.iter().enumerate() {
            let mut changed = counts.clone();
            change(&mut changed);
            assert!(!changed.identity_holds(), "account {at} does not count");
        }
    }

    #[test]
    fn store_reads_are_the_settled_suspects() {
        let mut counts = CrawlCounts {
            false_positives: 3,
            filter_no: 100,
            ..CrawlCounts::default()
        };
        counts.add_tally(&tally());
        assert_eq!(counts.store_reads(), 5);
    }

    #[test]
    fn stored_counts_come_back_and_lacking_ones_are_zero() {
        let mut counts = CrawlCounts {
            discovered: 17,
            filter_no: 9,
            ..CrawlCounts::default()
        };
        counts.add_tally(&tally());
        let text = serde_json::to_string(&counts).expect("counts serialize");
        assert!(text.contains(r#""rejected":{"scheme":3}"#), "{text}");
        let back: CrawlCounts = serde_json::from_str(&text).expect("counts come back");
        assert_eq!(back, counts);
        let empty: CrawlCounts = serde_json::from_str("{}").expect("an older store's counts");
        assert_eq!(empty, CrawlCounts::default());
    }
}
