//! Unit tests of the order in which notes and finishes leave the ledger.

#![expect(clippy::unwrap_used, reason = "a failed set-up fails the test")]

use types::{Canonicalizer, KeySeed, QueuePosition, Via};

use super::*;

fn note(sequence: u64) -> QueuedUrl {
    let url = Canonicalizer::default()
        .canonicalize(&format!("http://example.org/{sequence}"))
        .unwrap();
    QueuedUrl {
        key: KeySeed::new(1).key(&url),
        url,
        position: QueuePosition {
            priority: 0,
            depth: 0,
            sequence,
        },
        via: Via::Link,
        redirect_count: 0,
        referrer: None,
        attempt: 0,
    }
}

fn admission<const N: usize>(fresh: [u64; N], waits: usize, depends_on: u64) -> Admission {
    Admission {
        fresh: fresh.map(note).into(),
        waits,
        depends_on,
        ..Admission::default()
    }
}

fn duplicate(released: &[u64]) -> Settled {
    Settled {
        note: None,
        released: released.iter().copied().map(PageToken).collect(),
        depends_on: 0,
    }
}

fn false_positive(sequence: u64, released: &[u64]) -> Settled {
    Settled {
        note: Some(note(sequence)),
        depends_on: sequence + 1,
        ..duplicate(released)
    }
}

/// Takes a batch and returns its sequences, its two counts and its finishes.
fn take(
    ledger: &mut Ledger<&'static str>,
    notes_max: usize,
) -> (Vec<u64>, (u64, u64), Vec<&'static str>) {
    let batch = ledger.take_batch(notes_max);
    let sequences = batch
        .notes
        .iter()
        .map(|note| note.position.sequence)
        .collect();
    (
        sequences,
        (batch.false_positive_count, batch.store_duplicate_count),
        batch.finished,
    )
}

#[test]
fn notes_with_long_texts_leave_in_more_batches() {
    let mut ledger = Ledger::new(0);
    let mut long = admission([0, 1, 2, 3], 0, 4);
    for url in &mut long.fresh {
        url.referrer = Some("x".repeat(BATCH_TEXT_BYTES_MAX / 2).into());
    }
    ledger.arrive(PageToken(1), long, "one");
    assert_eq!(take(&mut ledger, 9), (vec![0, 1], (0, 0), vec![]));
    assert_eq!(take(&mut ledger, 9), (vec![2, 3], (0, 0), vec!["one"]));
}

#[test]
fn notes_leave_in_order_and_not_before_a_gap_is_filled() {
    let mut ledger = Ledger::new(10);
    ledger.arrive(PageToken(1), admission([12, 11], 0, 13), "one");
    assert_eq!(take(&mut ledger, 9), (vec![], (0, 0), vec![]));
    ledger.arrive(PageToken(2), admission([10], 0, 11), "two");
    assert_eq!((ledger.page_count(), ledger.note_count()), (2, 3));
    assert_eq!(take(&mut ledger, 2), (vec![10, 11], (0, 0), vec!["two"]));
    assert_eq!(take(&mut ledger, 2), (vec![12], (0, 0), vec!["one"]));
    assert!(ledger.is_empty());
}

#[test]
fn a_page_waits_for_notes_of_others_that_it_depends_on() {
    let mut ledger = Ledger::new(0);
    // All its links were duplicates of a note that is still on the way.
    ledger.arrive(PageToken(1), admission([], 0, 1), "duplicates");
    ledger.arrive(PageToken(2), admission([], 0, 0), "no links");
    assert_eq!(take(&mut ledger, 9), (vec![], (0, 0), vec!["no links"]));
    ledger.arrive(PageToken(3), admission([0], 0, 1), "origin");
    assert_eq!(take(&mut ledger, 0), (vec![], (0, 0), vec![]));
    assert_eq!(
        take(&mut ledger, 9),
        (vec![0], (0, 0), vec!["duplicates", "origin"])
    );
}

#[test]
fn a_page_waits_for_its_suspects_and_for_what_they_became() {
    let mut ledger = Ledger::new(0);
    ledger.arrive(PageToken(1), admission([0], 2, 1), "one");
    assert_eq!(take(&mut ledger, 9), (vec![0], (0, 0), vec![]));
    ledger.settled(duplicate(&[1]));
    assert!(!ledger.is_empty());
    assert_eq!(take(&mut ledger, 9), (vec![], (0, 1), vec![]));
    // The second suspect's note is the one after a note that has not come.
    ledger.settled(false_positive(2, &[1]));
    assert_eq!(take(&mut ledger, 9), (vec![], (0, 0), vec![]));
    ledger.arrive(PageToken(2), admission([1], 0, 2), "two");
    assert_eq!(take(&mut ledger, 1), (vec![1], (0, 0), vec!["two"]));
    assert_eq!(take(&mut ledger, 1), (vec![2], (1, 0), vec!["one"]));
    assert!(ledger.is_empty());
}

#[test]
fn releases_may_come_before_their_page() {
    let mut ledger = Ledger::new(0);
    ledger.settled(duplicate(&[1]));
    ledger.settled(false_positive(0, &[1]));
    assert_eq!(ledger.page_count(), 0);
    assert_eq!(take(&mut ledger, 0), (vec![], (0, 1), vec![]));
    ledger.arrive(PageToken(1), admission([], 2, 0), "one");
    assert_eq!(
        take(&mut ledger, 0),
        (vec![], (0, 0), vec![]),
        "its suspect's note has not left"
    );
    assert_eq!(take(&mut ledger, 1), (vec![0], (1, 0), vec!["one"]));
    assert!(ledger.is_empty() && ledger.page_count() == 0);
}

#[test]
fn pages_leave_in_the_order_in_which_they_became_ready() {
    let mut ledger = Ledger::new(0);
    ledger.arrive(PageToken(0), admission([0, 1, 2], 0, 3), "origin");
    assert_eq!(take(&mut ledger, 9).2, ["origin"]);
    ledger.arrive(PageToken(1), admission([], 1, 0), "waits");
    ledger.arrive(PageToken(2), admission([], 0, 3), "first");
    ledger.arrive(PageToken(3), admission([], 0, 1), "second");
    ledger.settled(duplicate(&[1]));
    assert_eq!(take(&mut ledger, 9).2, ["first", "second", "waits"]);
}

#[test]
fn settling_what_is_no_suspect_counts_nothing() {
    let mut ledger = Ledger::<()>::new(0);
    ledger.settled(Settled::default());
    assert!(ledger.is_empty() && ledger.take_batch(1).is_empty());
}

#[test]
#[should_panic(expected = "came twice")]
fn a_page_that_comes_twice_is_refused() {
    let mut ledger = Ledger::new(0);
    ledger.arrive(PageToken(1), admission([], 1, 0), "one");
    ledger.arrive(PageToken(1), admission([], 1, 0), "again");
}
