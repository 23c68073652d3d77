//! The tiered seen test: is this URL new to the crawl? Shared by all threads that parse.
//!
//! A candidate passes, in this order, the duplicates of its own page, the scope, the recent-key cache, the table of
//! unwritten notes and the filter. What the filter does not know is new. What it claims to know becomes a suspect,
//! whose verdict the store gives and [`SeenTest::settle`] takes. While there are few keys they are held exactly in place
//! of the filter, and nothing becomes a suspect.

mod config;
mod unwritten;

use std::{
    collections::HashSet,
    io,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
};

use filter::{
    BuildKeyHasher, FilterError, FilterStats, GrowingFilter, GrowthConfig, Reader, RecentKeys,
};
use types::{Candidate, PageTally, QueuePosition, QueuedUrl, UrlKey, Verdict};

use crate::{Scope, scope::HostMemo};
pub use config::{SeenConfig, SeenMode, UnknownMode};
use unwritten::{Answer, Claim, Unwritten};

/// Candidates whose memory is fetched at a time: those of a usual page.
const CHUNK: usize = 64;

/// Keys that [`SeenTest::load`] hands to the filter at a time.
const LOAD_KEYS: usize = 1_024;

/// Names one admission (of a page, or of a batch of seeds) whose finish is to be ordered; used once in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PageToken(pub u64);

/// The seen test. All methods take `&self`.
pub struct SeenTest {
    mode: SeenMode,
    /// What is known in memory; `None` in the mode that asks the store for everything.
    known: Option<GrowingFilter>,
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
    /// What answers.
    pub mode: SeenMode,
    /// The filter, or the exact set in its place; all zero in the mode that has neither.
    pub filter: FilterStats,
    /// The memory of the recent-key cache in bytes, taken up as it is used.
    pub cache_bytes: u64,
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
        let known = config
            .growth()
            .map(|growth| GrowingFilter::new(&growth))
            .transpose()?;
        Self::from_parts(config, known, next_sequence)
    }

    /// Makes a seen test that knows what a snapshot holds, which must be every key below `next_sequence`. Returns `None`
    /// when the filter is not of the kind and size that `config` asks for.
    ///
    /// # Errors
    ///
    /// Fails when there is not enough memory for the recent-key cache.
    pub fn resume(
        config: &SeenConfig,
        known: GrowingFilter,
        next_sequence: u64,
    ) -> Result<Option<Self>, FilterError> {
        let is_wanted = config.growth().is_some_and(|growth| {
            let has = known.config();
            // One that was made for more keys than are expected now serves as well, and on any pages.
            let expected_count = growth.expected_count.max(has.expected_count);
            *has == GrowthConfig {
                expected_count,
                pages: has.pages,
                ..growth
            }
        });
        if !is_wanted {
            return Ok(None);
        }
        known.restart_loss_estimate();
        Self::from_parts(config, Some(known), next_sequence).map(Some)
    }

    fn from_parts(
        config: &SeenConfig,
        known: Option<GrowingFilter>,
        next_sequence: u64,
    ) -> Result<Self, FilterError> {
        Ok(Self {
            mode: config.mode,
            known,
            recent: RecentKeys::new(config.cache_bytes_in_use(), config.pages())?,
            unwritten: Unwritten::new(),
            next_sequence: AtomicU64::new(next_sequence),
        })
    }

    /// Enters keys that the store has, when a crawl is resumed; before the first [`SeenTest::admit`].
    pub fn load(&self, keys: &[UrlKey]) {
        let Some(known) = &self.known else {
            return;
        };
        let mut numbers = [0; LOAD_KEYS];
        for keys in keys.chunks(LOAD_KEYS) {
            for (number, key) in numbers.iter_mut().zip(keys) {
                *number = key.as_u128();
            }
            known.enter(&numbers[..keys.len()]);
        }
    }

    /// Writes a snapshot of what is known, with a label that [`GrowingFilter::load`] returns with it. Returns whether
    /// there was anything to write.
    ///
    /// # Errors
    ///
    /// Fails as `to` does.
    pub fn save(&self, label: &[u8], to: &mut dyn io::Write) -> io::Result<bool> {
        match &self.known {
            Some(known) => known.save(label, to).map(|()| true),
            None => Ok(false),
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
        let mut chunk = Vec::with_capacity(candidates.len().min(CHUNK));
        let mut memo = HostMemo::default();
        let mut is_dependent = false;
        for candidate in candidates {
            if !in_page.insert(candidate.key) {
                tally.duplicates.in_page += 1;
            } else if let Err(reason) = scope.admits_in_turn(&candidate, &mut memo) {
                tally.reject(reason);
            } else {
                is_dependent = true;
                chunk.push(candidate);
                if chunk.len() == CHUNK {
                    self.judge(page, &mut chunk, tally, &mut admission);
                }
            }
        }
        self.judge(page, &mut chunk, tally, &mut admission);
        if is_dependent {
            // Whatever made a candidate of this page a duplicate was seen under a lock that its note's claim came
            // before, so this reads a value above that note's sequence.
            admission.depends_on = self.next_sequence.load(Relaxed);
        }
        admission
    }

    /// Takes candidates through the tiers that all pages share, and leaves `chunk` empty.
    fn judge(
        &self,
        page: PageToken,
        chunk: &mut Vec<Candidate>,
        tally: &mut PageTally,
        admission: &mut Admission,
    ) {
        let reader = self.known.as_ref().map(GrowingFilter::read);
        // Where the keys are held exactly, a cache of some of them would only take memory.
        let is_cached = reader.as_ref().is_some_and(|reader| !reader.is_exact());
        if is_cached {
            self.drop_recent(chunk, tally);
        }
        if let Some(reader) = &reader {
            for candidate in &*chunk {
                reader.prefetch(candidate.key.as_u128());
            }
        }
        for candidate in chunk.drain(..) {
            self.judge_one(page, candidate, reader.as_ref(), tally, admission);
        }
        drop(reader);
        self.recent.grow_if_full();
        if let Some(known) = &self.known {
            // What was certain so far is what the cache should be certain of from here on.
            known.grow_if_full(|key| self.recent.insert(key));
        }
    }

    /// Drops the candidates that the cache knows.
    fn drop_recent(&self, chunk: &mut Vec<Candidate>, tally: &mut PageTally) {
        let recent = self.recent.read();
        for candidate in &*chunk {
            recent.prefetch(candidate.key.as_u128());
        }
        chunk.retain(|candidate| {
            let is_recent = recent.contains(candidate.key.as_u128());
            tally.duplicates.cache += u64::from(is_recent);
            !is_recent
        });
    }

    /// Takes one candidate that the cache did not know through the tiers that follow.
    fn judge_one(
        &self,
        page: PageToken,
        candidate: Candidate,
        reader: Option<&Reader<'_>>,
        tally: &mut PageTally,
        admission: &mut Admission,
    ) {
        let key = candidate.key;
        let answer = self.unwritten.enter(key, page, || {
            let known = reader.map(|reader| reader.check_and_insert(key.as_u128()));
            match known {
                Some(filter::Answer::New) => Claim::New(self.claim()),
                Some(filter::Answer::Present) => Claim::Seen,
                Some(filter::Answer::Claimed) if self.mode == SeenMode::Bloom => Claim::Seen,
                Some(filter::Answer::Claimed) | None => Claim::Suspect,
            }
        });
        match answer {
            Answer::Fresh(sequence) => {
                if reader.is_some_and(|reader| !reader.is_exact()) {
                    // Not durable yet, but what a hit relies on is below the sequence that the page depends on.
                    self.recent.read().insert(key.as_u128());
                }
                admission.fresh.push(queued(candidate, sequence));
            }
            Answer::Seen if reader.is_some_and(Reader::is_exact) => tally.duplicates.exact += 1,
            Answer::Seen => {
                self.recent.read().insert(key.as_u128());
                tally.duplicates.filter += 1;
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
        self.recent.insert(key.as_u128());
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

    /// Returns how many URLs were lost as far as one can expect: in mode `bloom`, where nobody asks whether the filter is
    /// right, else 0.
    #[must_use]
    pub fn expected_lost(&self) -> f64 {
        match (&self.known, self.mode) {
            (Some(known), SeenMode::Bloom) => known.stats().expected_lost,
            _ => 0.0,
        }
    }

    /// Returns the vital signs; each is right by itself, together they are of about one moment.
    #[must_use]
    pub fn stats(&self) -> SeenStats {
        let in_flight = self.unwritten.counts();
        SeenStats {
            mode: self.mode,
            filter: self
                .known
                .as_ref()
                .map(GrowingFilter::stats)
                .unwrap_or_default(),
            cache_bytes: self.recent.size_bytes(),
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
