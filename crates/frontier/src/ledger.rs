//! The ledger: when a page may be recorded finished, so that none of its outlinks can be lost.
//!
//! Notes leave in the order of their sequences. A page may be recorded only when every suspect that it waits for is
//! settled, and with or after every note that it depends on.

use std::{
    cmp::Ordering,
    collections::{BTreeMap, BinaryHeap, HashMap},
    mem,
};

use types::QueuedUrl;

use crate::{Admission, PageToken, Settled};

/// Text of the notes of one batch beyond which no more are taken, in bytes: as much as 20,000 notes with URLs of the usual
/// length have. A store holds a batch several times over while it writes it.
const BATCH_TEXT_BYTES_MAX: usize = 4 << 20;

/// What is on the way to the store. One owner: the thread that commits. `T` is whatever records a page's finish.
#[derive(Debug)]
pub struct Ledger<T> {
    /// Notes not yet taken, by sequence.
    notes: BTreeMap<u64, Note>,
    /// Every note below was taken.
    watermark: u64,
    /// Pages that wait for suspects, or for which suspects were settled before they came.
    waiting: HashMap<PageToken, Waiting<T>>,
    /// Pages that wait for notes alone, and those that may leave.
    ready: BinaryHeap<Ready<T>>,
    /// Numbers the pages as they enter `ready`.
    ready_count: u64,
    /// Pages in `waiting` that have come.
    arrived_count: usize,
    /// Suspects settled as duplicates since the last batch.
    store_duplicate_count: u64,
}

#[derive(Debug)]
struct Note {
    url: QueuedUrl,
    is_false_positive: bool,
}

#[derive(Debug)]
struct Waiting<T> {
    /// Suspects to wait for less suspects settled; below 0 only before the page has come.
    outstanding_count: i64,
    depends_on: u64,
    /// `None` before the page has come.
    finish: Option<T>,
}

#[derive(Debug)]
struct Ready<T> {
    /// The watermark at which the page may leave.
    at: u64,
    /// Its number among the pages that entered.
    number: u64,
    finish: T,
}

/// What may be written in one commit.
#[derive(Debug)]
pub struct Batch<T> {
    /// Notes in the order of their sequences.
    pub notes: Vec<QueuedUrl>,
    /// How many of `notes` were false positives of the filter: admitted after a store read.
    pub false_positive_count: u64,
    /// Suspects settled as true duplicates since the last batch.
    pub store_duplicate_count: u64,
    /// Pages to be recorded finished, in the order in which they became ready.
    pub finished: Vec<T>,
}

impl<T> Batch<T> {
    /// Returns whether there is nothing to write.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.notes.is_empty() && self.store_duplicate_count == 0 && self.finished.is_empty()
    }
}

impl<T> Ledger<T> {
    /// Makes an empty ledger; `next_sequence` is that of the first note to come.
    #[must_use]
    pub fn new(next_sequence: u64) -> Self {
        Self {
            notes: BTreeMap::new(),
            watermark: next_sequence,
            waiting: HashMap::new(),
            ready: BinaryHeap::new(),
            ready_count: 0,
            arrived_count: 0,
            store_duplicate_count: 0,
        }
    }

    /// Takes in a page: what the seen test said of its candidates, and what records its finish. Its suspects are settled
    /// elsewhere, and may have been before.
    ///
    /// # Panics
    ///
    /// Panics when the token came before and its page has not left, or when a note's sequence came before: a finish or
    /// a note would be lost.
    pub fn arrive(&mut self, page: PageToken, admission: Admission, finish: T) {
        for url in admission.fresh {
            self.add_note(url, false);
        }
        let waits = i64::try_from(admission.waits).expect("a page has fewer links than 2^63");
        self.arrived_count += 1;
        let state = self.waiting.entry(page).or_insert_with(Waiting::nothing);
        assert!(state.finish.is_none(), "page {page:?} came twice");
        state.finish = Some(finish);
        self.update(page, waits, admission.depends_on);
    }

    /// Takes in a settled suspect: its note, if it has one, and the end of the wait of the pages it releases.
    ///
    /// # Panics
    ///
    /// Panics when the note's sequence came before.
    pub fn settled(&mut self, settled: Settled) {
        match settled.note {
            Some(url) => self.add_note(url, true),
            // Of what was no suspect nothing is counted.
            None if settled.released.is_empty() => {}
            None => self.store_duplicate_count += 1,
        }
        for page in settled.released {
            self.update(page, -1, settled.depends_on);
        }
    }

    /// Takes what may be written now: at most `notes_max` notes, fewer if their texts are long, and every page that may be
    /// recorded with them.
    #[must_use = "what a batch holds is in no other place"]
    pub fn take_batch(&mut self, notes_max: usize) -> Batch<T> {
        let mut batch = Batch {
            notes: Vec::new(),
            false_positive_count: 0,
            store_duplicate_count: mem::take(&mut self.store_duplicate_count),
            finished: Vec::new(),
        };
        let mut text_bytes = 0;
        while batch.notes.len() < notes_max
            && text_bytes < BATCH_TEXT_BYTES_MAX
            && let Some(note) = self.notes.remove(&self.watermark)
        {
            self.watermark += 1;
            text_bytes += note.url.url.as_str().len();
            text_bytes += note.url.referrer.as_deref().map_or(0, str::len);
            batch.false_positive_count += u64::from(note.is_false_positive);
            batch.notes.push(note.url);
        }
        while self
            .ready
            .peek()
            .is_some_and(|ready| ready.at <= self.watermark)
            && let Some(ready) = self.ready.pop()
        {
            batch.finished.push(ready.finish);
        }
        batch
    }

    /// Returns whether nothing is on the way: no note, no page, no count.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.notes.is_empty()
            && self.waiting.is_empty()
            && self.ready.is_empty()
            && self.store_duplicate_count == 0
    }

    /// Returns how many pages came and have not left.
    #[must_use]
    pub fn page_count(&self) -> usize {
        self.arrived_count + self.ready.len()
    }

    /// Returns how many notes came and have not left.
    #[must_use]
    pub fn note_count(&self) -> usize {
        self.notes.len()
    }

    fn add_note(&mut self, url: QueuedUrl, is_false_positive: bool) {
        let sequence = url.position.sequence;
        let earlier = self.notes.insert(
            sequence,
            Note {
                url,
                is_false_positive,
            },
        );
        assert!(
            sequence >= self.watermark && earlier.is_none(),
            "note {sequence} came twice"
        );
    }

    /// Changes what a page waits for, and lets it go on when that is no more suspect.
    fn update(&mut self, page: PageToken, outstanding_change: i64, depends_on: u64) {
        let state = self.waiting.entry(page).or_insert_with(Waiting::nothing);
        state.outstanding_count += outstanding_change;
        state.depends_on = state.depends_on.max(depends_on);
        if state.outstanding_count != 0 || state.finish.is_none() {
            return;
        }
        let Some(Waiting {
            depends_on,
            finish: Some(finish),
            ..
        }) = self.waiting.remove(&page)
        else {
            return;
        };
        self.arrived_count -= 1;
        self.ready.push(Ready {
            at: depends_on.max(self.watermark),
            number: self.ready_count,
            finish,
        });
        self.ready_count += 1;
    }
}

impl<T> Waiting<T> {
    const fn nothing() -> Self {
        Self {
            outstanding_count: 0,
            depends_on: 0,
            finish: None,
        }
    }
}

impl<T> Ready<T> {
    /// The order of leaving; the heap gives the greatest first, so it is reversed there.
    const fn order(&self) -> (u64, u64) {
        (self.at, self.number)
    }
}

impl<T> Ord for Ready<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        other.order().cmp(&self.order())
    }
}

impl<T> PartialOrd for Ready<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> PartialEq for Ready<T> {
    fn eq(&self, other: &Self) -> bool {
        self.order() == other.order()
    }
}

impl<T> Eq for Ready<T> {}

#[cfg(test)]
mod tests;
