//! The tiered seen test: is this URL new to the crawl? Shared by all threads that parse.
//!
//! A candidate passes, in this order, the duplicates of its own page, the scope, the recent-key cache, the table of
//! unwritten notes and the filter. What the filter does not know is new. What it claims to know becomes a suspect,
//! whose verdict the store gives and [`SeenTest::settle`] takes.

mod cache;
mod unwritten;

use std::{
    collections::HashSet,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
};

use filter::{Filter, FilterError};
use types::{Candidate, PageTally, QueuePosition, QueuedUrl, UrlKey, Verdict};

use crate::Scope;
use cache::RecentKeys;
use unwritten::{Answer, BuildKeyHasher, Unwritten};

/// Keys that [`SeenTest::load`] hands to the filter at a time.
const LOAD_KEYS: usize = 1_024;

/// Names one admission (of a page, or of a batch of seeds) whose finish is to be ordered; used once in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PageToken(pub u64);

/// The sizes of a seen test.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SeenConfig {
    /// URLs that the filter is sized for; at least 1.
    pub expected_urls: u64,
    /// The false-positive rate that it is sized for, above 0 and below 1.
    pub false_positive_rate: f64,
    /// For tests: bits for this many URLs, whatever is expected.
    pub fixed_filter_urls: Option<u64>,
    /// The most memory of the recent-key cache, in bytes, 16 a key; 0: no cache.
    pub cache_bytes: usize,
}

/// The seen test. All methods take `&self`.
pub struct SeenTest {
    filter: Filter,
    recent: RecentKeys,
    unwritten: Unwritten,
    /// The sequence of the next note.
    next_sequence: AtomicU64,
}

/// What became of a page's candidates, those that ended in its tally left out.
#[derive(Debug, Default)]
pub struct Admission {
    /// Admitted at once: notes to be written.
    pub fresh: Vec<QueuedUrl>,
    /// Claimed by the filter: to be confirmed by the store, each exactly once, and then settled.
    pub suspects: Vec<Candidate>,
    /// Suspects, its own and other pages', whose settling this page has to wait for.
    pub waits: usize,
    /// Every note that the page relies on, its own and those its duplicates were dropped for, has a sequence below.
    pub depends_on: u64,
}

/// What became of a suspect.
#[derive(Debug, Default)]
pub struct Settled {
    /// The note to be written if the suspect was a false positive.
    pub note: Option<QueuedUrl>,
    /// The pages that waited for it, each once.
    pub released: Vec<PageToken>,
    /// One more than the sequence of `note`; 0 without one.
    pub depends_on: u64,
}

/// The seen test's vital signs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SeenStats {
    /// Keys that the filter was sized for.
    pub filter_expected_count: u64,
    /// The false-positive rate that it was sized for.
    pub filter_target_rate: f64,
    /// Its memory in bytes.
    pub filter_bytes: u64,
    /// Keys that were new to it.
    pub filter_item_count: u64,
    /// The share of its bits that are set, 0 to 1.
    pub filter_fill: f64,
    /// The false-positive rate that the fill predicts.
    pub filter_predicted_rate: f64,
    /// Suspects not yet settled.
    pub suspect_count: u64,
    /// Notes not yet known to be durable.
    pub unwritten_count: u64,
    /// The sequence of the next note.
    pub next_sequence: u64,
}

impl SeenTest {
    /// Makes a seen test that knows no key; `next_sequence` is the store's next free sequence.
    ///
    /// # Errors
    ///
    /// Fails when the filter cannot be made: a rate or a number of URLs out of range, or too much memory.
    pub fn new(config: &SeenConfig, next_sequence: u64) -> Result<Self, FilterError> {
        let filter_urls = config.fixed_filter_urls.unwrap_or(config.expected_urls);
        Ok(Self {
            filter: Filter::with_rate(filter_urls, config.false_positive_rate)?,
            recent: RecentKeys::new(config.cache_bytes),
            unwritten: Unwritten::new(),
            next_sequence: AtomicU64::new(next_sequence),
        })
    }

    /// Enters keys that the store has, when a crawl is resumed; before the first [`SeenTest::admit`].
    pub fn load(&self, keys: &[UrlKey]) {
        let mut numbers = [0; LOAD_KEYS];
        let mut is_new = [false; LOAD_KEYS];
        for keys in keys.chunks(LOAD_KEYS) {
            for (number, key) in numbers.iter_mut().zip(keys) {
                *number = key.as_u128();
            }
            self.filter
                .check_and_insert_batch(&numbers[..keys.len()], &mut is_new[..keys.len()]);
        }
    }

    /// Judges the candidates of one page. Each ends in `tally`, in [`Admission::fresh`] or in [`Admission::suspects`].
    pub fn admit(
        &self,
        page: PageToken,
        candidates: Vec<Candidate>,
        scope: &Scope,
        tally: &mut PageTally,
    ) -> Admission {
        let mut admission = Admission::default();
        let mut in_page =
            HashSet::with_capacity_and_hasher(candidates.len(), BuildKeyHasher::default());
        let mut is_dependent = false;
        for candidate in candidates {
            if !in_page.insert(candidate.key) {
                tally.duplicates.in_page += 1;
            } else if let Err(reason) = scope.admits(&candidate) {
                tally.reject(reason);
            } else {
                is_dependent = true;
                self.judge(page, candidate, tally, &mut admission);
            }
        }
        if is_dependent {
            // Whatever made a candidate of this page a duplicate was seen under a lock that its note's claim came
            // before, so this reads a value above that note's sequence.
            admission.depends_on = self.next_sequence.load(Relaxed);
        }
        admission
    }

    /// Takes one candidate through the tiers that all pages share.
    fn judge(
        &self,
        page: PageToken,
        candidate: Candidate,
        tally: &mut PageTally,
        admission: &mut Admission,
    ) {
        let key = candidate.key;
        if self.recent.contains(key) {
            tally.duplicates.cache += 1;
            return;
        }
        let answer = self.unwritten.enter(key, page, || {
            self.filter
                .check_and_insert(key.as_u128())
                .then(|| self.claim())
        });
        match answer {
            Answer::Fresh(sequence) => {
                // Not durable yet, but what a hit relies on is below the sequence that the page depends on.
                self.recent.insert(key);
                admission.fresh.push(queued(candidate, sequence));
            }
            Answer::Suspect => {
                admission.waits += 1;
                admission.suspects.push(candidate);
            }
            Answer::KnownNote => tally.duplicates.unwritten += 1,
            Answer::KnownSuspect => {
                admission.waits += 1;
                tally.duplicates.unwritten += 1;
            }
        }
    }

    /// Takes the store's verdict on a suspect. The verdict must come from a read that began after the suspect was
    /// handed out. A suspect that is none (any more) changes nothing.
    pub fn settle(&self, suspect: Candidate, verdict: Verdict) -> Settled {
        let key = suspect.key;
        let claim = || (verdict == Verdict::FalsePositive).then(|| self.claim());
        let Some((sequence, released)) = self.unwritten.settle(key, claim) else {
            debug_assert!(false, "settled {} which is no suspect", suspect.url);
            return Settled::default();
        };
        self.recent.insert(key);
        Settled {
            note: sequence.map(|sequence| queued(suspect, sequence)),
            released,
            depends_on: sequence.map_or(0, |sequence| sequence + 1),
        }
    }

    /// Forgets notes that the store now has durably; it answers for them from here on.
    pub fn noted(&self, keys: impl IntoIterator<Item = UrlKey>) {
        for key in keys {
            self.unwritten.remove_note(key);
        }
    }

    /// Returns the vital signs; each is right by itself, together they are of about one moment.
    #[must_use]
    pub fn stats(&self) -> SeenStats {
        let in_flight = self.unwritten.counts();
        SeenStats {
            filter_expected_count: self.filter.expected_count(),
            filter_target_rate: self.filter.target_rate(),
            filter_bytes: self.filter.size_bytes(),
            filter_item_count: self.filter.item_count(),
            filter_fill: self.filter.fill(),
            filter_predicted_rate: self.filter.predicted_rate(),
            suspect_count: in_flight.suspects,
            unwritten_count: in_flight.notes,
            next_sequence: self.next_sequence.load(Relaxed),
        }
    }

    /// Takes the next sequence; called under the lock of the key's entry in the unwritten table.
    fn claim(&self) -> u64 {
        self.next_sequence.fetch_add(1, Relaxed)
    }
}

/// Turns an admitted candidate into a queue entry.
fn queued(candidate: Candidate, sequence: u64) -> QueuedUrl {
    QueuedUrl {
        url: candidate.url,
        key: candidate.key,
        position: QueuePosition {
            priority: 0,
            depth: candidate.depth,
            sequence,
        },
        via: candidate.via,
        redirect_count: candidate.redirect_count,
        referrer: candidate.referrer,
        attempt: 0,
    }
}

#[cfg(test)]
mod tests;
