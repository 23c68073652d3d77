//! Commits and confirms: what is entered, what is not, and what comes back.

use store::{CommitBatch, FinishedUrl};
use types::{Host, QueuePosition, UrlKey, Via};

use crate::place::{
    Place, commit, finished, hosts, keys, note, note_at, notes_of, pages, position, queue_of,
    sorted_keys,
};

pub(crate) fn confirm_answers_in_order(place: &Place) {
    let store = place.open();
    let notes = notes_of("http://a.example", 0, 100);
    let entered: Vec<_> = notes.iter().step_by(3).cloned().collect();
    commit(&*store, &entered, &[]);
    let mut asked = sorted_keys(&notes);
    asked.insert(0, UrlKey::from_u128(0));
    asked.push(UrlKey::from_u128(u128::MAX));
    let expected: Vec<bool> = asked
        .iter()
        .map(|key| entered.iter().any(|note| note.key == *key))
        .collect();
    assert_eq!(store.confirm(&asked).unwrap(), expected);
    assert_eq!(expected.iter().filter(|present| **present).count(), 34);
    assert!(store.confirm(&[]).unwrap().is_empty());
}

pub(crate) fn a_commit_enters_keys_and_queue(place: &Place) {
    let store = place.open();
    let mut seed = note("http://a.example/", 0);
    seed.via = Via::Seed;
    seed.referrer = None;
    let mut target = note_at("http://a.example/moved", position(0, 4, 1));
    target.via = Via::Redirect;
    target.redirect_count = 255;
    target.attempt = 2;
    let mut listed = note("http://a.example/listed", 2);
    listed.via = Via::Sitemap;
    let notes = [seed, target, listed];
    commit(&*store, &notes, &[]);
    assert_eq!(keys(&*store), sorted_keys(&notes));
    let read = store
        .read_queue(&Host::new("http://a.example"), QueuePosition::default(), 10)
        .unwrap();
    let expected = [&notes[1], &notes[0], &notes[2]];
    assert_eq!(read.len(), expected.len());
    for (read, written) in read.iter().zip(expected) {
        assert_eq!(
            (&read.url, read.key, read.position),
            (&written.url, written.key, written.position)
        );
        assert_eq!(
            (read.via, read.redirect_count),
            (written.via, written.redirect_count)
        );
        assert_eq!((&read.referrer, read.attempt), (&written.referrer, 0));
    }
}

pub(crate) fn finished_urls_leave_the_queue_for_the_pages(place: &Place) {
    let store = place.open();
    let notes = notes_of("http://a.example", 0, 3);
    commit(&*store, &notes, &[]);
    commit(
        &*store,
        &notes_of("http://b.example", 3, 1),
        &[finished(&notes[1])],
    );
    assert_eq!(
        queue_of(&*store, "http://a.example"),
        ["http://a.example/page/0", "http://a.example/page/2"]
    );
    assert_eq!(
        queue_of(&*store, "http://b.example"),
        ["http://b.example/page/3"]
    );
    let record = b"{\"url\":\"http://a.example/page/1\"}".to_vec();
    assert_eq!(pages(&*store), [(notes[1].key, record)]);
    assert_eq!(keys(&*store).len(), 4, "a finished URL stays known");
}

pub(crate) fn a_note_finished_in_its_own_batch_is_not_queued(place: &Place) {
    let store = place.open();
    let notes = notes_of("http://a.example", 0, 3);
    commit(&*store, &notes, &[finished(&notes[0]), finished(&notes[2])]);
    assert_eq!(
        queue_of(&*store, "http://a.example"),
        ["http://a.example/page/1"]
    );
    assert_eq!(pages(&*store).len(), 2);
    assert_eq!(keys(&*store), sorted_keys(&notes));
}

pub(crate) fn a_known_key_is_not_entered_again(place: &Place) {
    let store = place.open();
    let queued = note("http://a.example/queued", 0);
    let done = note("http://a.example/done", 1);
    commit(&*store, &[queued, done.clone()], &[]);
    commit(&*store, &[], &[finished(&done)]);
    let again = [
        note("http://a.example/queued", 2),
        note("http://a.example/done", 3),
        note("http://a.example/new", 4),
    ];
    commit(&*store, &again, &[]);
    let read = store
        .read_queue(&Host::new("http://a.example"), QueuePosition::default(), 10)
        .unwrap();
    let places: Vec<_> = read
        .iter()
        .map(|queued| (queued.url.path_and_query(), queued.position.sequence))
        .collect();
    assert_eq!(places, [("/queued", 0), ("/new", 4)]);
    assert_eq!(store.next_sequence().unwrap(), 5);
}

pub(crate) fn a_repeated_commit_changes_nothing(place: &Place) {
    let store = place.open();
    let first = notes_of("http://a.example", 0, 50);
    let second = notes_of("http://a.example", 50, 50);
    let done: Vec<FinishedUrl> = first[..20]
        .iter()
        .chain(&second[..5])
        .map(finished)
        .collect();
    commit(&*store, &first, &[]);
    let batch = CommitBatch {
        notes: &second,
        finished: &done,
        progress: b"second",
    };
    store.commit(&batch).unwrap();
    let state = |store: &dyn store::Store| {
        (
            keys(store),
            pages(store),
            queue_of(store, "http://a.example"),
            hosts(store),
        )
    };
    let before = state(&*store);
    assert_eq!(
        (before.0.len(), before.1.len(), before.2.len()),
        (100, 25, 75)
    );
    store.commit(&batch).unwrap();
    store.commit(&batch).unwrap();
    assert_eq!(state(&*store), before);
    assert_eq!(store.next_sequence().unwrap(), 100);
}

pub(crate) fn of_two_notes_of_one_key_the_first_counts(place: &Place) {
    let store = place.open();
    let notes = [
        note("http://a.example/", 0),
        note("http://a.example/x", 1),
        note("http://a.example/", 2),
    ];
    commit(&*store, &notes, &[]);
    assert_eq!(
        hosts(&*store),
        [("http://a.example".to_owned(), 2, position(1, 1, 0))]
    );
    assert_eq!(store.next_sequence().unwrap(), 3);
}

pub(crate) fn an_empty_commit_writes_progress(place: &Place) {
    let opened = place.open_as(&crate::place::identity()).unwrap();
    assert_eq!(opened.progress, None);
    opened
        .store
        .commit(&CommitBatch {
            notes: &[],
            finished: &[],
            progress: b"",
        })
        .unwrap();
    drop(opened);
    let opened = place.open_as(&crate::place::identity()).unwrap();
    assert_eq!(opened.progress.as_deref(), Some(&b""[..]));
    let progress: Vec<u8> = (0..=255).cycle().take(100_000).collect();
    opened
        .store
        .commit(&CommitBatch {
            notes: &[],
            finished: &[],
            progress: &progress,
        })
        .unwrap();
    drop(opened);
    assert_eq!(
        place.open_as(&crate::place::identity()).unwrap().progress,
        Some(progress)
    );
}

pub(crate) fn large_batches_pass(place: &Place) {
    const COUNT: u64 = 20_000;
    let store = place.open();
    let notes = notes_of("https://large.example", 0, COUNT);
    commit(&*store, &notes, &[]);
    let mut asked = sorted_keys(&notes);
    assert!(
        store
            .confirm(&asked)
            .unwrap()
            .iter()
            .all(|present| *present)
    );
    assert_eq!(keys(&*store), asked);
    for key in &mut asked {
        *key = UrlKey::from_u128(key.as_u128() ^ 1);
    }
    asked.sort_unstable();
    assert!(
        store
            .confirm(&asked)
            .unwrap()
            .iter()
            .all(|present| !present)
    );
    let done: Vec<FinishedUrl> = notes.iter().skip(1).map(finished).collect();
    commit(
        &*store,
        &notes_of("https://next.example", COUNT, COUNT),
        &done,
    );
    assert_eq!(
        queue_of(&*store, "https://large.example"),
        ["https://large.example/page/0"]
    );
    assert_eq!(
        queue_of(&*store, "https://next.example").len() as u64,
        COUNT
    );
    assert_eq!(pages(&*store).len() as u64, COUNT - 1);
}

pub(crate) fn hostile_texts_are_read_back(place: &Place) {
    let store = place.open();
    let urls = [
        "http://a.example/';DROP/**/TABLE/**/queue;--",
        "http://a.example/\\x00\\u0000\\",
        "http://a.example/{a,\"b\",NULL}?$1",
        "http://a.example/?%00%FF%C0%80",
    ];
    let referrers = [
        "",
        "\u{202e}\u{feff}\u{10ffff}",
        "\r\n\t\u{1b}[31m\u{7f}\\",
        "NULL",
    ];
    let mut notes: Vec<_> = urls
        .iter()
        .zip(0..)
        .map(|(url, sequence)| note(url, sequence))
        .collect();
    for (note, referrer) in notes.iter_mut().zip(referrers) {
        note.referrer = Some(referrer.into());
    }
    commit(&*store, &notes, &[]);
    let read = store
        .read_queue(&Host::new("http://a.example"), QueuePosition::default(), 10)
        .unwrap();
    for (read, written) in read.iter().zip(&notes) {
        assert_eq!(
            (&read.url, &read.referrer),
            (&written.url, &written.referrer)
        );
    }
    assert_eq!(read.len(), urls.len());
}

pub(crate) fn a_nul_poisons_no_batch(place: &Place) {
    let store = place.open();
    let mut nul = note("http://a.example/1", 1);
    nul.referrer = Some("http://c.example/\0".into());
    let done = FinishedUrl {
        host: Host::new("http://a.example\0"),
        ..finished(&note("http://b.example/", 0))
    };
    commit(&*store, &[nul, note("http://a.example/2", 2)], &[done]);
    let read = store
        .read_queue(&Host::new("http://a.example"), QueuePosition::default(), 10)
        .unwrap();
    assert_eq!(read.len(), 2, "the rest of the batch is there");
    assert_eq!(read[0].referrer.as_deref(), Some("http://c.example/%00"));
    assert!(queue_of(&*store, "http://a.example\0").is_empty());
}

pub(crate) fn long_texts_poison_no_batch(place: &Place) {
    let store = place.open();
    // Not one letter over and over: a database may compress that to less than its limit.
    let mut random = fastrand::Rng::with_seed(7);
    let mut text = |length| {
        std::iter::repeat_with(|| random.alphanumeric())
            .take(length)
            .collect::<String>()
    };
    let long_host = format!("http://{}", text(60_000));
    let notes = [
        note("http://a.example/", 0),
        note(&format!("{long_host}/1"), 1),
        note(&format!("{long_host}x/2"), 2),
        note(&format!("http://a.example/{}", text(1_000_000)), 3),
    ];
    commit(&*store, &notes, &[]);
    assert_eq!(queue_of(&*store, "http://a.example").len(), 2);
    assert_eq!(queue_of(&*store, &long_host), [notes[1].url.as_str()]);
    assert_eq!(
        queue_of(&*store, &format!("{long_host}x")),
        [notes[2].url.as_str()]
    );
    commit(&*store, &[], &[finished(&notes[1]), finished(&notes[3])]);
    assert_eq!(hosts(&*store).len(), 2);
}

pub(crate) fn records_are_bytes(place: &Place) {
    let store = place.open();
    let notes = notes_of("http://a.example", 0, 4);
    commit(&*store, &notes, &[]);
    let large = vec![b'x'; 3_000_000];
    let records: [&[u8]; 4] = [
        b"{\"title\":\"\\u0000\"}",
        b"\0\xff\xfe not even JSON",
        b"",
        &large,
    ];
    let done: Vec<_> = notes
        .iter()
        .zip(records)
        .map(|(note, record)| FinishedUrl {
            record: record.to_vec(),
            ..finished(note)
        })
        .collect();
    commit(&*store, &[], &done);
    let mut expected: Vec<_> = done
        .into_iter()
        .map(|done| (done.key, done.record))
        .collect();
    expected.sort();
    assert_eq!(pages(&*store), expected);
}

pub(crate) fn counters_count_round_trips(place: &Place) {
    let store = place.open();
    let notes = notes_of("http://a.example", 0, 10);
    commit(&*store, &notes, &[]);
    commit(&*store, &[], &[]);
    store.confirm(&sorted_keys(&notes)).unwrap();
    store.confirm(&[]).unwrap();
    store.sync().unwrap();
    queue_of(&*store, "http://a.example");
    let counters = store.counters();
    assert_eq!(
        (
            counters.commits,
            counters.confirm_round_trips,
            counters.confirmed_keys
        ),
        (2, 1, 10)
    );
    assert_eq!(counters.queue_reads, 1);
}
