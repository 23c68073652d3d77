//! Reading the queue: order, ranges, hosts.

use types::{Host, QueuePosition};

use crate::place::{Place, commit, finished, hosts, note_at, notes_of, position, queue_of};

pub(crate) fn order_is_priority_depth_sequence(place: &Place) {
    let store = place.open();
    let mut positions = Vec::new();
    for (sequence, (priority, depth)) in [
        (1, 0),
        (0, 300),
        (255, 0),
        (0, 2),
        (1, 0),
        (128, 1),
        (0, 70_000),
        (0, 2),
    ]
    .into_iter()
    .enumerate()
    {
        positions.push(position(priority, depth, 1_000 + sequence as u64));
    }
    let notes: Vec<_> = positions
        .iter()
        .map(|position| {
            note_at(
                &format!("http://a.example/{}", position.sequence),
                *position,
            )
        })
        .collect();
    commit(&*store, &notes, &[]);
    positions.sort();
    let read = store
        .read_queue(
            &Host::new("http://a.example"),
            QueuePosition::default(),
            100,
        )
        .unwrap();
    assert_eq!(
        read.iter()
            .map(|queued| queued.position)
            .collect::<Vec<_>>(),
        positions
    );
    assert_eq!(
        read.iter()
            .map(|queued| queued.position.sequence % 10)
            .collect::<Vec<_>>(),
        [3, 7, 1, 6, 0, 4, 5, 2]
    );
}

pub(crate) fn reading_starts_at_from_and_stops_at_the_limit(place: &Place) {
    let store = place.open();
    let notes = notes_of("http://a.example", 0, 10);
    commit(&*store, &notes, &[]);
    let host = Host::new("http://a.example");
    let read = |from, limit| -> Vec<u64> {
        let read = store.read_queue(&host, from, limit).unwrap();
        read.iter().map(|queued| queued.position.sequence).collect()
    };
    assert_eq!(read(position(1, 1, 4), 3), [4, 5, 6]);
    assert_eq!(
        read(position(1, 0, 9), 2),
        [0, 1],
        "a smaller depth comes before any sequence"
    );
    assert_eq!(read(position(1, 1, 8), 100), [8, 9]);
    assert!(read(position(1, 2, 0), 100).is_empty());
    assert!(read(position(u8::MAX, u32::MAX, u64::MAX), 100).is_empty());
    assert!(read(QueuePosition::default(), 0).is_empty());
    commit(&*store, &[], &[finished(&notes[4])]);
    assert_eq!(
        read(position(1, 1, 4), 1),
        [5],
        "a finished place is passed over"
    );
}

pub(crate) fn hosts_do_not_mix(place: &Place) {
    let store = place.open();
    let all = [
        "http://a.example",
        "https://a.example",
        "http://a.example:81",
        "http://a.example.org",
        "http://a.exampl",
        "http://xn--mgbh0fb.example",
        "http://[::1]",
        "http://A.example",
    ];
    for (host, sequence) in all.iter().zip(0..) {
        commit(&*store, &notes_of(host, sequence, 1), &[]);
    }
    for (host, sequence) in all.iter().zip(0..) {
        assert_eq!(queue_of(&*store, host), [format!("{host}/page/{sequence}")]);
    }
    assert!(queue_of(&*store, "http://unknown.example").is_empty());
}

pub(crate) fn queued_hosts_counts_and_names_the_first(place: &Place) {
    let store = place.open();
    assert!(hosts(&*store).is_empty());
    let mut notes = notes_of("http://a.example", 0, 30);
    notes.extend(notes_of("https://b.example", 30, 5));
    notes.push(note_at("https://b.example/urgent", position(0, 9, 40)));
    notes.push(note_at(
        "https://b.example/urgent-later",
        position(0, 9, 41),
    ));
    notes.push(note_at("https://b.example/deep", position(0, 10, 20)));
    notes.push(note_at("http://c.example/only", position(3, 1, 42)));
    commit(&*store, &notes, &[]);
    let first_b = position(0, 9, 40);
    let found = |host: &str, count, first| (host.to_owned(), count, first);
    let last = found("http://c.example", 1, position(3, 1, 42));
    assert_eq!(
        hosts(&*store),
        [
            found("http://a.example", 30, position(1, 1, 0)),
            last.clone(),
            found("https://b.example", 8, first_b)
        ]
    );
    let done: Vec<_> = notes[..30]
        .iter()
        .chain([&notes[35]])
        .map(finished)
        .collect();
    commit(&*store, &[], &done);
    assert_eq!(
        hosts(&*store),
        [last, found("https://b.example", 7, position(0, 9, 41))]
    );
}

pub(crate) fn the_greatest_position_fits(place: &Place) {
    let store = place.open();
    let greatest = position(u8::MAX, u32::MAX, i64::MAX.cast_unsigned() - 1);
    let notes = [
        note_at("http://a.example/last", greatest),
        note_at("http://a.example/first", position(0, 0, 0)),
    ];
    commit(&*store, &notes, &[]);
    let read = store
        .read_queue(&Host::new("http://a.example"), greatest, 10)
        .unwrap();
    assert_eq!(read[0].position, greatest);
    assert_eq!(queue_of(&*store, "http://a.example").len(), 2);
    assert_eq!(store.next_sequence().unwrap(), i64::MAX.cast_unsigned());
}
