//! A random history of commits and reopenings, compared with a model that is plain maps.

use std::collections::{BTreeMap, BTreeSet};

use store::{CommitBatch, Store};
use types::{Host, QueuePosition, QueuedUrl, UrlKey};

use crate::place::{Place, finished, hosts, identity, keys, note_at, pages, position};

#[derive(Default)]
struct Model {
    keys: BTreeSet<UrlKey>,
    queue: BTreeMap<(String, QueuePosition), QueuedUrl>,
    pages: BTreeMap<UrlKey, Vec<u8>>,
    next_sequence: u64,
}

impl Model {
    fn commit(&mut self, batch: &CommitBatch<'_>) {
        for note in batch.notes {
            self.next_sequence = self.next_sequence.max(note.position.sequence + 1);
            if self.keys.insert(note.key) {
                self.queue.insert(
                    (note.url.host_str().to_owned(), note.position),
                    note.clone(),
                );
            }
        }
        for done in batch.finished {
            self.queue
                .remove(&(done.host.as_str().to_owned(), done.position));
            self.pages.insert(done.key, done.record.clone());
        }
    }

    fn compare(&self, store: &dyn Store) {
        assert_eq!(keys(store), self.keys.iter().copied().collect::<Vec<_>>());
        assert_eq!(
            pages(store),
            self.pages.clone().into_iter().collect::<Vec<_>>()
        );
        assert_eq!(store.next_sequence().unwrap(), self.next_sequence);
        let mut expected: BTreeMap<&str, (u64, QueuePosition)> = BTreeMap::new();
        for (host, position) in self.queue.keys() {
            expected.entry(host).or_insert((0, *position)).0 += 1;
        }
        let expected: Vec<_> = expected
            .into_iter()
            .map(|(host, (count, first))| (host.to_owned(), count, first))
            .collect();
        assert_eq!(hosts(store), expected);
        for (host, _, _) in expected {
            let read = store
                .read_queue(&Host::new(&host), QueuePosition::default(), usize::MAX)
                .unwrap();
            let read: Vec<_> = read
                .into_iter()
                .map(|queued| (queued.position, queued.key))
                .collect();
            let queue = self.queue.range((host.clone(), QueuePosition::default())..);
            let queue = queue.take_while(|((other, _), _)| *other == host);
            assert_eq!(
                read,
                queue
                    .map(|((_, position), queued)| (*position, queued.key))
                    .collect::<Vec<_>>()
            );
        }
    }
}

pub(crate) fn a_random_history_matches_the_model(place: &Place) {
    let mut random = fastrand::Rng::with_seed(20_261_130);
    let mut model = Model::default();
    let mut store = place.open();
    for step in 0..150_u32 {
        let notes: Vec<QueuedUrl> = (0..random.u64(0..40))
            .map(|index| {
                let sequence = model.next_sequence + index;
                let text = format!("http://h{}.example/{}", random.u8(0..6), random.u16(0..500));
                note_at(&text, position(random.u8(0..2), random.u32(0..4), sequence))
            })
            .collect();
        let waiting: Vec<&QueuedUrl> = model.queue.values().chain(&notes).collect();
        let done_count = random.usize(0..=waiting.len().min(20));
        let done: Vec<_> = random
            .choose_multiple(waiting, done_count)
            .into_iter()
            .map(finished)
            .collect();
        let progress = step.to_be_bytes();
        let batch = CommitBatch {
            notes: &notes,
            finished: &done,
            progress: &progress,
        };
        model.commit(&batch);
        store.commit(&batch).unwrap();
        if random.u8(0..4) == 0 {
            store.commit(&batch).unwrap();
        }
        if step % 25 == 24 {
            model.compare(&*store);
            drop(store);
            let opened = place.open_as(&identity()).unwrap();
            assert_eq!(opened.progress.as_deref(), Some(&progress[..]));
            store = opened.store;
            model.compare(&*store);
        }
    }
    assert!(model.pages.len() > 300 && model.keys.len() > 1_000);
}
