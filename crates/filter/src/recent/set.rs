//! One set of the recent-key cache: six tags and a lock in a cache line.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::line::{self, Line, WORDS};

/// Keys of a set, which fill a cache line with the lock.
pub(super) const WAYS: usize = 6;

/// The words that hold the upper parts of the tags, 16 bits each: of four tags, and of two. The lock is in the second.
const UPPER_WORDS: [usize; 2] = [6, 7];

/// The lock: whoever turns it from 0 to 1 is the only one to read and write the set until it stores the word without it.
const LOCK: u64 = 1 << 63;

/// The bits that are kept of a key. The upper ones are those that follow on its place among the sets of the first size,
/// so they say where it belongs when the sets are doubled.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Tag {
    pub(super) upper: u16,
    pub(super) lower: u64,
}

/// An empty place. A key that happens to have this tag is never held.
pub(super) const EMPTY: Tag = Tag { upper: 0, lower: 0 };

/// The tags of one set.
pub(super) type Set = [Tag; WAYS];

/// Returns whether a set has a tag, and makes it the most recent.
pub(super) fn find(line: &Line, tag: Tag) -> bool {
    let last_word = lock(line);
    let mut set = load(line, last_word);
    let place = set.iter().position(|held| *held == tag);
    match place {
        Some(place) if place > 0 => {
            set[..=place].rotate_right(1);
            store(line, &set);
        }
        _ => line[UPPER_WORDS[1]].store(last_word, Release),
    }
    place.is_some()
}

/// Puts a tag into a set as the most recent, and returns the one whose place it took: itself, if the set had it.
pub(super) fn hold(line: &Line, tag: Tag) -> Tag {
    let mut set = load(line, lock(line));
    let place = set.iter().position(|held| *held == tag).unwrap_or(WAYS - 1);
    let replaced = set[place];
    set[..=place].rotate_right(1);
    set[0] = tag;
    store(line, &set);
    replaced
}

/// Puts tags into the empty places of a set, as less recent than all that it has, and returns how many it did not have.
pub(super) fn append(line: &Line, tags: impl Iterator<Item = Tag>) -> u64 {
    let mut set = load(line, lock(line));
    let mut appended_count = 0;
    for tag in tags {
        // An empty place that comes before the tag means that the set has no such tag.
        let place = set.iter().position(|held| *held == tag || *held == EMPTY);
        if let Some(place) = place.filter(|place| set[*place] == EMPTY) {
            set[place] = tag;
            appended_count += 1;
        }
    }
    store(line, &set);
    appended_count
}

/// Reads the tags of a set.
pub(super) fn read(line: &Line) -> Set {
    let last_word = lock(line);
    let set = load(line, last_word);
    line[UPPER_WORDS[1]].store(last_word, Release);
    set
}

/// Takes the lock of a set and returns the last word without it.
fn lock(line: &Line) -> u64 {
    let last = &line[UPPER_WORDS[1]];
    let mut spins_count = 0;
    loop {
        let word = last.load(Relaxed);
        if word & LOCK == 0
            && last
                .compare_exchange_weak(word, word | LOCK, Acquire, Relaxed)
                .is_ok()
        {
            return word;
        }
        spins_count += 1;
        line::pause(spins_count);
    }
}

/// Reads the tags of a set whose lock is held.
fn load(line: &Line, last_word: u64) -> Set {
    let upper_words = [line[UPPER_WORDS[0]].load(Relaxed), last_word];
    std::array::from_fn(|way| Tag {
        upper: upper_part(upper_words, way),
        lower: line[way].load(Relaxed),
    })
}

/// Writes the tags of a set whose lock is held, and gives the lock back.
fn store(line: &Line, set: &Set) {
    let mut upper_words = [0; 2];
    for (way, tag) in set.iter().enumerate() {
        line[way].store(tag.lower, Relaxed);
        upper_words[way / 4] |= u64::from(tag.upper) << (16 * (way % 4));
    }
    line[UPPER_WORDS[0]].store(upper_words[0], Relaxed);
    line[UPPER_WORDS[1]].store(upper_words[1], Release);
}

#[expect(clippy::cast_possible_truncation, reason = "16 bits are wanted")]
const fn upper_part(words: [u64; 2], way: usize) -> u16 {
    (words[way / 4] >> (16 * (way % 4))) as u16
}

const _: () = assert!(WAYS + UPPER_WORDS.len() == WORDS, "a set is a cache line");

/// Run by `RUSTFLAGS="--cfg loom" cargo test -p filter --lib`.
#[cfg(all(test, loom))]
mod interleavings {
    use loom::{sync::Arc, thread};

    use super::*;
    use crate::line::AtomicU64;

    fn tag(upper: u16) -> Tag {
        Tag { upper, lower: 1 }
    }

    #[test]
    fn tags_that_two_threads_hold_are_both_held_and_others_never_seem_so() {
        loom::model(|| {
            let line: Arc<Line> = Arc::new(std::array::from_fn(|_| AtomicU64::new(0)));
            let there = Arc::clone(&line);
            let other = thread::spawn(move || {
                hold(&there, tag(2));
                // Parts of both tags that are held.
                assert!(!find(&there, Tag { upper: 3, lower: 1 }));
            });
            hold(&line, tag(1));
            assert!(find(&line, tag(1)));
            other.join().expect("the other thread ends");
            assert!(find(&line, tag(1)) && find(&line, tag(2)));
        });
    }
}
