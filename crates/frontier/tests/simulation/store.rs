//! The model store: what a crash leaves behind.

use std::collections::{BTreeMap, BTreeSet};

use types::{CanonicalUrl, Disposition, Host, LeaseId, QueuePosition, QueuedUrl, UrlKey};

/// How a page is to be recorded; `None` for the seed list, which is no page.
pub(crate) type Finish = Option<FinishedPage>;

pub(crate) struct FinishedPage {
    pub(crate) lease: LeaseId,
    pub(crate) queued: QueuedUrl,
    pub(crate) disposition: Disposition,
    /// Keys of its outlinks in scope: all must be durable with it.
    pub(crate) outlinks: Vec<UrlKey>,
}

#[derive(Default)]
pub(crate) struct Store {
    pub(crate) keys: BTreeSet<UrlKey>,
    pub(crate) queue: BTreeMap<Host, BTreeMap<QueuePosition, QueuedUrl>>,
    pub(crate) pages: BTreeMap<CanonicalUrl, Disposition>,
    pub(crate) next_sequence: u64,
    /// Pages with a response.
    pub(crate) pages_count: u64,
    /// The same by registered domain.
    pub(crate) domain_pages: BTreeMap<String, u64>,
}

impl Store {
    pub(crate) fn commit(&mut self, notes: &[QueuedUrl], finished: &[FinishedPage], kept: &[Host]) {
        for note in notes {
            assert!(self.keys.insert(note.key), "{} is noted twice", note.url);
            assert!(
                note.position.sequence >= self.next_sequence,
                "notes come in order"
            );
            self.next_sequence = note.position.sequence + 1;
            self.queue
                .entry(note.url.host())
                .or_default()
                .insert(note.position, note.clone());
        }
        for page in finished {
            let url = &page.queued.url;
            let host = url.host();
            let queue = self
                .queue
                .get_mut(&host)
                .expect("a finished URL was queued");
            assert!(
                queue.remove(&page.queued.position).is_some(),
                "{url} finishes unqueued"
            );
            if queue.is_empty() {
                self.queue.remove(&host);
            }
            assert!(
                self.pages.insert(url.clone(), page.disposition).is_none(),
                "{url} is finished twice"
            );
            for outlink in &page.outlinks {
                assert!(
                    self.keys.contains(outlink),
                    "{url} is finished before an outlink of it is durable"
                );
            }
        }
        self.pages_count += kept.len() as u64;
        for host in kept {
            *self
                .domain_pages
                .entry(host.domain().to_owned())
                .or_default() += 1;
        }
        assert_eq!(
            self.keys.len(),
            self.pages.len() + self.queued_count(),
            "every key is queued or finished"
        );
    }

    pub(crate) fn queued_count(&self) -> usize {
        self.queue.values().map(BTreeMap::len).sum()
    }

    pub(crate) fn read_queue(
        &self,
        host: &Host,
        from: QueuePosition,
        limit: usize,
    ) -> Vec<QueuedUrl> {
        let Some(queue) = self.queue.get(host) else {
            return Vec::new();
        };
        let read = queue
            .range(from..)
            .take(limit)
            .map(|(_, queued)| queued.clone());
        read.map(|queued| QueuedUrl {
            attempt: 0,
            ..queued
        })
        .collect()
    }
}
