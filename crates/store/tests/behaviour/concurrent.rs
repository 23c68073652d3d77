//! Several threads on one store.

use std::{
    sync::{
        Barrier,
        atomic::{AtomicU64, Ordering},
    },
    thread,
};

use types::{Host, QueuePosition};

use crate::place::{Place, commit, finished, hosts, keys, note, notes_of, pages, sorted_keys};

pub(crate) fn commits_and_confirms_do_not_disturb_each_other(place: &Place) {
    const BATCHES: u64 = 60;
    const BATCH: u64 = 50;
    const ROUNDS: usize = 60;
    let store = place.open();
    let committed = AtomicU64::new(0);
    let commit_batch = |batch: u64| {
        let notes = notes_of("http://a.example", batch * BATCH, BATCH);
        let done: Vec<_> = notes[..10].iter().map(finished).collect();
        commit(&*store, &notes, &done);
        committed.store((batch + 1) * BATCH, Ordering::SeqCst);
    };
    commit_batch(0);
    let begun = Barrier::new(3);
    thread::scope(|scope| {
        scope.spawn(|| {
            begun.wait();
            (1..BATCHES).for_each(commit_batch);
        });
        scope.spawn(|| {
            begun.wait();
            for _ in 0..ROUNDS {
                let known = committed.load(Ordering::SeqCst);
                let count = known.min(500);
                let asked = notes_of("http://a.example", known - count, count);
                let answers = store.confirm(&sorted_keys(&asked)).unwrap();
                assert!(
                    answers.iter().all(|present| *present),
                    "a key of a commit that returned is found"
                );
                let unknown = notes_of("http://a.example", 1_000_000, 20);
                assert!(
                    !store
                        .confirm(&sorted_keys(&unknown))
                        .unwrap()
                        .contains(&true)
                );
            }
        });
        scope.spawn(|| {
            let host = Host::new("http://a.example");
            begun.wait();
            for _ in 0..ROUNDS {
                let known = committed.load(Ordering::SeqCst) / BATCH;
                let read = store
                    .read_queue(&host, QueuePosition::default(), 100_000)
                    .unwrap()
                    .len() as u64;
                assert_eq!(
                    read % (BATCH - 10),
                    0,
                    "a commit is seen whole or not at all"
                );
                assert!(read >= known * (BATCH - 10));
            }
        });
    });
    assert_eq!(keys(&*store).len() as u64, BATCHES * BATCH);
    assert_eq!(pages(&*store).len() as u64, BATCHES * 10);
}

pub(crate) fn one_key_of_many_threads_is_queued_once(place: &Place) {
    let store = place.open();
    thread::scope(|scope| {
        for thread in 0..8_u64 {
            let store = &store;
            scope.spawn(move || {
                for round in 0..20 {
                    let notes: Vec<_> = (0..10)
                        .map(|page| {
                            note(
                                &format!("http://a.example/{round}/{page}"),
                                round * 1_000 + thread * 10 + page,
                            )
                        })
                        .collect();
                    commit(&**store, &notes, &[]);
                }
            });
        }
    });
    assert_eq!(keys(&*store).len(), 200);
    assert_eq!(hosts(&*store)[0].1, 200);
}
