//! What survives closing and opening, and which openings are refused.

use store::{CommitBatch, CrawlIdentity, StoreError};

use crate::place::{
    Place, commit, finished, hosts, identity, keys, note, notes_of, pages, queue_of,
};

pub(crate) fn everything_survives(place: &Place) {
    let store = place.open();
    let notes = notes_of("http://a.example", 0, 40);
    let done: Vec<_> = notes[..15].iter().map(finished).collect();
    store
        .commit(&CommitBatch {
            notes: &notes,
            finished: &[],
            progress: b"one",
        })
        .unwrap();
    store
        .commit(&CommitBatch {
            notes: &[],
            finished: &done,
            progress: b"two",
        })
        .unwrap();
    let before = (
        keys(&*store),
        pages(&*store),
        queue_of(&*store, "http://a.example"),
        hosts(&*store),
    );
    drop(store);
    let opened = place.open_as(&identity()).unwrap();
    let store = &*opened.store;
    assert_eq!(opened.progress.as_deref(), Some(&b"two"[..]));
    assert_eq!(store.next_sequence().unwrap(), 40);
    assert_eq!(
        (
            keys(store),
            pages(store),
            queue_of(store, "http://a.example"),
            hosts(store)
        ),
        before
    );
    assert_eq!(
        (before.0.len(), before.1.len(), before.2.len()),
        (40, 15, 25)
    );
    assert_eq!(store.counters().commits, 0, "counters are of one opening");
}

pub(crate) fn whether_it_is_there_is_told_without_making_it(place: &Place) {
    assert!(!place.is_there());
    assert!(!place.is_there(), "looking has made it");
    let store = place.open();
    assert!(place.is_there(), "also while it is open");
    drop(store);
    assert!(place.is_there());
}

pub(crate) fn the_identity_is_kept(place: &Place) {
    let opened = place.open_as(&identity()).unwrap();
    assert_eq!(opened.identity, identity());
    drop(opened);
    let other = CrawlIdentity {
        crawl_id: "f".repeat(32),
        key_seed: 7,
        key_version: u16::MAX,
    };
    let opened = place.open_as(&other).unwrap();
    assert_eq!(opened.identity, identity(), "also before the first commit");
    assert_eq!(opened.progress, None);
}

pub(crate) fn a_second_opening_is_refused(place: &Place) {
    let store = place.open();
    let refused = place.open_as(&identity()).err();
    assert!(
        matches!(refused, Some(StoreError::Locked(_))),
        "{refused:?}"
    );
    commit(&*store, &[note("http://a.example/", 0)], &[]);
    drop(store);
    assert_eq!(keys(&*place.open()).len(), 1);
}

pub(crate) fn another_format_is_refused(place: &Place) {
    drop(place.open());
    place.spoil_format();
    let refused = place.open_as(&identity()).err();
    match refused {
        Some(StoreError::Incompatible(text)) => {
            assert!(text.contains("99") && text.contains("format 1"), "{text}");
        }
        other => panic!("expected Incompatible, got {other:?}"),
    }
}

pub(crate) fn the_next_sequence_never_goes_back(place: &Place) {
    let store = place.open();
    assert_eq!(store.next_sequence().unwrap(), 0);
    commit(
        &*store,
        &[
            note("http://a.example/1", 41),
            note("http://a.example/2", 7),
        ],
        &[],
    );
    assert_eq!(store.next_sequence().unwrap(), 42);
    commit(&*store, &[note("http://a.example/3", 8)], &[]);
    commit(&*store, &[], &[finished(&note("http://a.example/1", 41))]);
    assert_eq!(store.next_sequence().unwrap(), 42);
    drop(store);
    assert_eq!(place.open().next_sequence().unwrap(), 42);
}
