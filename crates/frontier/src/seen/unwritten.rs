//! The exact table of keys in flight: notes on their way to the store, and suspects waiting for its verdict.

use std::{
    collections::{HashMap, hash_map::Entry as Slot},
    mem,
    sync::{Mutex, MutexGuard, PoisonError},
};

use filter::BuildKeyHasher;
use types::UrlKey;

use super::PageToken;

/// Shards, each behind a lock of its own: many times the threads, so that these seldom meet.
const SHARDS: usize = 1 << u8::BITS;

/// The one arbiter of which thread admits a key. An entry is made, and the filter asked, under the lock of its shard.
pub(super) struct Unwritten {
    shards: Box<[Mutex<Shard>]>,
}

#[derive(Default)]
struct Shard {
    entries: HashMap<UrlKey, Entry, BuildKeyHasher>,
    suspects_count: usize,
}

enum Entry {
    /// A note that the store does not have durably yet.
    Note,
    /// A key that the store is asked about, and the pages that wait for its verdict.
    Suspect(Vec<PageToken>),
}

/// What is known of a key that the table does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Claim {
    /// It is certainly new, and its note has this sequence.
    New(u64),
    /// The store has to say.
    Suspect,
    /// It is taken as seen.
    Seen,
}

/// What the table says of a key.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// It was entered as a note with this sequence.
    Fresh(u64),
    /// It was entered as a suspect, the page as the first to wait for it.
    Suspect,
    /// It is taken as seen, and was not entered.
    Seen,
    /// It is there as a note.
    KnownNote,
    /// It is there as a suspect, and the page now waits for it too.
    KnownSuspect,
}

/// Entries by kind.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct InFlight {
    pub(super) notes: u64,
    pub(super) suspects: u64,
}

impl Unwritten {
    pub(super) fn new() -> Self {
        Self {
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
        }
    }

    /// Enters a key unless it is there, or seen. `claim`, called under the lock, says what is known of it.
    pub(super) fn enter(
        &self,
        key: UrlKey,
        page: PageToken,
        claim: impl FnOnce() -> Claim,
    ) -> Answer {
        let mut shard = self.shard(key);
        let shard = &mut *shard;
        match shard.entries.entry(key) {
            Slot::Occupied(mut slot) => match slot.get_mut() {
                Entry::Note => Answer::KnownNote,
                Entry::Suspect(waiting) => {
                    waiting.push(page);
                    Answer::KnownSuspect
                }
            },
            Slot::Vacant(slot) => match claim() {
                Claim::New(sequence) => {
                    slot.insert(Entry::Note);
                    Answer::Fresh(sequence)
                }
                Claim::Suspect => {
                    slot.insert(Entry::Suspect(vec![page]));
                    shard.suspects_count += 1;
                    Answer::Suspect
                }
                Claim::Seen => Answer::Seen,
            },
        }
    }

    /// Ends the wait for a suspect and returns the pages that waited. `claim`, called under the lock, gives the
    /// sequence that turns it into a note, or `None` to drop it. Returns `None` when the key is no suspect.
    pub(super) fn settle(
        &self,
        key: UrlKey,
        claim: impl FnOnce() -> Option<u64>,
    ) -> Option<(Option<u64>, Vec<PageToken>)> {
        let mut shard = self.shard(key);
        let shard = &mut *shard;
        let Slot::Occupied(mut slot) = shard.entries.entry(key) else {
            return None;
        };
        let Entry::Suspect(waiting) = slot.get_mut() else {
            return None;
        };
        let waiting = mem::take(waiting);
        let sequence = claim();
        if sequence.is_some() {
            slot.insert(Entry::Note);
        } else {
            slot.remove();
        }
        shard.suspects_count -= 1;
        Some((sequence, waiting))
    }

    /// Removes the entry of a note; a suspect stays.
    pub(super) fn remove_note(&self, key: UrlKey) {
        let mut shard = self.shard(key);
        if let Slot::Occupied(slot) = shard.entries.entry(key)
            && matches!(slot.get(), Entry::Note)
        {
            slot.remove();
        }
    }

    pub(super) fn counts(&self) -> InFlight {
        let mut counts = InFlight::default();
        for shard in &self.shards {
            let shard = lock(shard);
            counts.suspects += shard.suspects_count as u64;
            counts.notes += (shard.entries.len() - shard.suspects_count) as u64;
        }
        counts
    }

    #[expect(clippy::cast_possible_truncation, reason = "eight bits are wanted")]
    fn shard(&self, key: UrlKey) -> MutexGuard<'_, Shard> {
        // Bits that neither the map of the shard (the low half) nor the partition (the top eight) uses.
        let index = usize::from((key.as_u128() >> 64) as u8);
        lock(&self.shards[index])
    }
}

/// Locks although another thread panicked: no step of ours leaves an entry half changed.
fn lock(shard: &Mutex<Shard>) -> MutexGuard<'_, Shard> {
    shard.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: UrlKey = UrlKey::from_u128(3 << 64 | 5);
    const FIRST: PageToken = PageToken(1);
    const SECOND: PageToken = PageToken(2);

    #[test]
    fn a_note_is_known_until_it_is_removed() {
        let table = Unwritten::new();
        assert_eq!(table.enter(KEY, FIRST, || Claim::New(9)), Answer::Fresh(9));
        assert_eq!(
            table.enter(KEY, SECOND, || Claim::New(10)),
            Answer::KnownNote
        );
        assert_eq!(table.settle(KEY, || None), None);
        assert_eq!(
            table.counts(),
            InFlight {
                notes: 1,
                suspects: 0
            }
        );
        table.remove_note(KEY);
        assert_eq!(table.counts(), InFlight::default());
    }

    #[test]
    fn a_key_that_is_seen_is_not_entered() {
        let table = Unwritten::new();
        assert_eq!(table.enter(KEY, FIRST, || Claim::Seen), Answer::Seen);
        assert_eq!(table.counts(), InFlight::default());
    }

    #[test]
    fn a_suspect_gathers_waiters_and_outlives_remove_note() {
        let table = Unwritten::new();
        assert_eq!(table.enter(KEY, FIRST, || Claim::Suspect), Answer::Suspect);
        assert_eq!(
            table.enter(KEY, SECOND, || Claim::New(1)),
            Answer::KnownSuspect
        );
        table.remove_note(KEY);
        assert_eq!(
            table.counts(),
            InFlight {
                notes: 0,
                suspects: 1
            }
        );
        assert_eq!(
            table.settle(KEY, || Some(4)),
            Some((Some(4), vec![FIRST, SECOND]))
        );
        assert_eq!(
            table.counts(),
            InFlight {
                notes: 1,
                suspects: 0
            }
        );
        assert_eq!(
            table.enter(KEY, FIRST, || Claim::Suspect),
            Answer::KnownNote
        );
    }
}
