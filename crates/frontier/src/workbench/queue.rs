//! The queue of one host: a bounded window in memory, the rest known by count only and read back from the store.

use std::collections::{BTreeMap, BTreeSet};

use types::{QueuePosition, QueuedUrl};

use super::WorkbenchConfig;

/// Memory of an entry beside its texts, in bytes: the entry itself, its node in the tree, two allocations.
const ENTRY_BYTES: usize = 200;

impl WorkbenchConfig {
    /// Memory of a queue entry in a window, in bytes, that the bound on a window allows for: one with a URL of a hundred
    /// bytes and a referrer as long. Of longer ones the window holds fewer.
    pub const WINDOW_URL_BYTES: usize = 400;

    /// Returns the memory of one window in bytes at the most, without URLs that were tried: `window_max` usual entries, or
    /// half as many and the largest, whose URL and referrer have `url_bytes_max` each.
    #[must_use]
    pub const fn window_bytes_max(window_max: usize, url_bytes_max: usize) -> usize {
        let usual = window_max.saturating_mul(Self::WINDOW_URL_BYTES);
        let largest = ENTRY_BYTES.saturating_add(url_bytes_max.saturating_mul(2));
        let with_largest = (usual / 2).saturating_add(largest);
        if usual > with_largest {
            usual
        } else {
            with_largest
        }
    }
}

/// One host's URLs. Each is in exactly one place: in the window, leased, or spilled, which is to say only in the store.
///
/// No spilled URL stands before `spilled_from`. The window mostly stands before it, and where it does not (URLs that
/// were put back, or that arrived while a refill was under way) the refill meets URLs it knows, and skips them.
#[derive(Debug, Default)]
pub(super) struct HostQueue {
    window: BTreeMap<QueuePosition, QueuedUrl>,
    /// The memory of the window.
    window_bytes: usize,
    leased: BTreeSet<QueuePosition>,
    spilled_count: u64,
    spilled_from: QueuePosition,
    refill: Option<Box<PendingRefill>>,
}

/// A read of the store that is under way.
#[derive(Debug)]
struct PendingRefill {
    limit: usize,
    /// Finished since the read was asked for: the read may still have met them.
    finished: BTreeSet<QueuePosition>,
    /// The first of the URLs spilled since then: the read may have missed them.
    spilled_from: Option<QueuePosition>,
}

impl HostQueue {
    /// Counts the URLs that wait.
    pub(super) fn queued_count(&self) -> u64 {
        self.window.len() as u64 + self.spilled_count
    }

    pub(super) fn window_count(&self) -> usize {
        self.window.len()
    }

    pub(super) fn leased_count(&self) -> usize {
        self.leased.len()
    }

    pub(super) const fn is_refilling(&self) -> bool {
        self.refill.is_some()
    }

    /// Returns the first URL of the window.
    pub(super) fn head(&self) -> Option<&QueuedUrl> {
        self.window.first_key_value().map(|(_, queued)| queued)
    }

    /// Adds a URL that is new to the queue. It goes to the window if it stands before all that is spilled, so that
    /// the order holds; the window never grows beyond `window_max`, nor beyond the memory of as many usual URLs.
    pub(super) fn push(&mut self, queued: QueuedUrl, window_max: usize) {
        if self.spilled_count > 0 && queued.position >= self.spilled_from {
            self.spill(queued.position);
        } else {
            self.insert(queued, window_max);
        }
    }

    /// Adds `count` URLs of which the store holds all, the first at `first`.
    pub(super) fn push_spilled(&mut self, count: u64, first: QueuePosition) {
        if count > 0 {
            self.spill(first);
            self.spilled_count += count - 1;
        }
    }

    /// Moves the window's first URL to the leased.
    pub(super) fn lease_head(&mut self) -> Option<QueuedUrl> {
        let (position, queued) = self.window.pop_first()?;
        self.window_bytes -= entry_bytes(&queued);
        self.leased.insert(position);
        Some(queued)
    }

    /// Puts a leased URL back. It stays in memory, for only memory knows how often it was tried.
    pub(super) fn put_back(&mut self, queued: QueuedUrl, window_max: usize) {
        self.leased.remove(&queued.position);
        self.insert(queued, window_max);
    }

    /// Forgets a leased URL that is finished durably.
    pub(super) fn finish(&mut self, position: QueuePosition) {
        self.leased.remove(&position);
        if let Some(pending) = &mut self.refill {
            pending.finished.insert(position);
        }
    }

    /// Says whether the window runs low while the store has more.
    pub(super) fn wants_refill(&self, window_max: usize) -> bool {
        self.spilled_count > 0
            && self.refill.is_none()
            && self.window.len() <= window_max / 2
            && self.window_bytes <= half_bytes(window_max)
    }

    /// Begins a refill; returns what to read: from where, and how many.
    pub(super) fn begin_refill(&mut self, window_max: usize) -> (QueuePosition, usize) {
        let from = self.spilled_from;
        let known_count = self.window.range(from..).count() + self.leased.range(from..).count();
        let limit = window_max.saturating_sub(self.window.len()).max(1) + known_count;
        self.refill = Some(Box::new(PendingRefill {
            limit,
            finished: BTreeSet::new(),
            spilled_from: None,
        }));
        (from, limit)
    }

    /// Ends a refill with what the store had. `sequence_end` is one more than the highest sequence ever announced:
    /// what stands at or after it is durable already, but will only be announced, and is left out until then.
    pub(super) fn end_refill(
        &mut self,
        read: Vec<QueuedUrl>,
        sequence_end: u64,
        window_max: usize,
    ) {
        let Some(pending) = self.refill.take() else {
            return;
        };
        let is_full = read.len() >= pending.limit;
        let read_end = read.last().map(|last| after(last.position));
        let mut taken = Vec::with_capacity(read.len());
        for queued in read {
            let position = queued.position;
            let is_known = self.window.contains_key(&position)
                || self.leased.contains(&position)
                || pending.finished.contains(&position);
            if !is_known && position.sequence < sequence_end {
                taken.push(queued);
            }
        }
        self.spilled_count = self.spilled_count.saturating_sub(taken.len() as u64);
        let rest_from = if is_full { read_end } else { None };
        match (rest_from, pending.spilled_from) {
            (Some(rest), Some(spilled)) => self.spilled_from = rest.min(spilled),
            (Some(position), None) | (None, Some(position)) => self.spilled_from = position,
            // The store has no more, and nothing came meanwhile: its word counts more than our count.
            (None, None) => self.spilled_count = 0,
        }
        for queued in taken {
            self.insert(queued, window_max);
        }
    }

    /// Drops the window, all but the URLs that were tried before: the store has the rest.
    pub(super) fn drop_window(&mut self) {
        let window = std::mem::take(&mut self.window);
        self.window_bytes = 0;
        for (position, queued) in window {
            if queued.attempt > 0 {
                self.keep(queued);
            } else {
                self.spill(position);
            }
        }
    }

    fn insert(&mut self, queued: QueuedUrl, window_max: usize) {
        self.keep(queued);
        while let Some(position) = self.surplus(window_max) {
            if let Some(queued) = self.window.remove(&position) {
                self.window_bytes -= entry_bytes(&queued);
            }
            self.spill(position);
        }
    }

    fn keep(&mut self, queued: QueuedUrl) {
        self.window_bytes += entry_bytes(&queued);
        if let Some(replaced) = self.window.insert(queued.position, queued) {
            self.window_bytes -= entry_bytes(&replaced);
        }
    }

    /// Returns the URL that the window has to give up: the last that was not tried before. One that goes beyond the bytes
    /// may stay where without it a refill would be wanted, which else would read it again and again.
    fn surplus(&self, window_max: usize) -> Option<QueuePosition> {
        let is_long = self.window.len() > window_max;
        let half_bytes = half_bytes(window_max);
        if !is_long && self.window_bytes <= half_bytes.saturating_mul(2) {
            return None;
        }
        let mut from_last = self.window.values().rev();
        let last = from_last.find(|queued| queued.attempt == 0)?;
        let rest_bytes = self.window_bytes - entry_bytes(last);
        (is_long || rest_bytes > half_bytes).then_some(last.position)
    }

    fn spill(&mut self, position: QueuePosition) {
        self.spilled_from = if self.spilled_count == 0 {
            position
        } else {
            self.spilled_from.min(position)
        };
        self.spilled_count += 1;
        if let Some(pending) = &mut self.refill {
            pending.spilled_from = Some(
                pending
                    .spilled_from
                    .map_or(position, |first| first.min(position)),
            );
        }
    }
}

/// Returns the memory of a queue entry, its referrer taken as its own.
fn entry_bytes(queued: &QueuedUrl) -> usize {
    let referrer_bytes = queued
        .referrer
        .as_ref()
        .map_or(0, |referrer| referrer.len());
    ENTRY_BYTES + queued.url.as_str().len() + referrer_bytes
}

/// Returns the memory of half of a full window of usual URLs.
const fn half_bytes(window_max: usize) -> usize {
    window_max.saturating_mul(WorkbenchConfig::WINDOW_URL_BYTES) / 2
}

/// Returns the least position after `position`.
const fn after(position: QueuePosition) -> QueuePosition {
    QueuePosition {
        sequence: position.sequence.saturating_add(1),
        ..position
    }
}

#[cfg(test)]
mod tests {
    use types::{Canonicalizer, KeySeed, Via};

    use super::*;

    const WINDOW_MAX: usize = 64;
    const COUNT: u64 = 300;

    /// An entry whose URL and referrer have so many bytes each.
    fn queued(sequence: u64, url_bytes: usize) -> QueuedUrl {
        let text = format!(
            "http://example.org/{sequence:0>width$}",
            width = url_bytes - 19
        );
        let url = Canonicalizer::default()
            .canonicalize(&text)
            .expect("a URL in canonical form");
        QueuedUrl {
            key: KeySeed::new(1).key(&url),
            position: QueuePosition {
                sequence,
                ..QueuePosition::default()
            },
            via: Via::Link,
            redirect_count: 0,
            referrer: Some(url.as_str().into()),
            attempt: 0,
            url,
        }
    }

    /// Long URLs among usual ones leave in order, each once, and a window never holds more bytes than it may.
    #[test]
    fn a_window_is_bounded_in_bytes_and_gives_out_every_url_in_order() {
        for url_bytes in [100, 1_000, 4_096] {
            let all: Vec<QueuedUrl> = (0..COUNT)
                .map(|sequence| queued(sequence, if sequence % 5 == 1 { 100 } else { url_bytes }))
                .collect();
            let bytes_max = WorkbenchConfig::window_bytes_max(WINDOW_MAX, url_bytes);
            let mut queue = HostQueue::default();
            for queued in &all {
                queue.push(queued.clone(), WINDOW_MAX);
                assert!(queue.window_bytes <= bytes_max);
            }
            let mut refill_count = 0;
            for next in 0..COUNT {
                while queue.wants_refill(WINDOW_MAX) {
                    let waiting = queue.window_count();
                    let (from, limit) = queue.begin_refill(WINDOW_MAX);
                    let rest = all.iter().filter(|queued| queued.position >= from);
                    queue.end_refill(rest.take(limit).cloned().collect(), COUNT, WINDOW_MAX);
                    assert!(queue.window_count() > waiting, "it read for nothing");
                    assert!(queue.window_bytes <= bytes_max);
                    refill_count += 1;
                }
                let leased = queue.lease_head().expect("a URL waits");
                assert_eq!(leased.position.sequence, next);
                queue.finish(leased.position);
            }
            assert_eq!((queue.queued_count(), queue.window_bytes), (0, 0));
            assert!(refill_count < COUNT, "{refill_count} refills");
        }
    }
}
