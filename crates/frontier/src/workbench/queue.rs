//! The queue of one host: a bounded window in memory, the rest known by count only and read back from the store.

use std::collections::{BTreeMap, BTreeSet};

use types::{QueuePosition, QueuedUrl};

/// One host's URLs. Each is in exactly one place: in the window, leased, or spilled, which is to say only in the store.
///
/// No spilled URL stands before `spilled_from`. The window mostly stands before it, and where it does not (URLs that
/// were put back, or that arrived while a refill was under way) the refill meets URLs it knows, and skips them.
#[derive(Debug, Default)]
pub(super) struct HostQueue {
    window: BTreeMap<QueuePosition, QueuedUrl>,
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
    /// the order holds; the window never grows beyond `window_max`.
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
        self.spilled_count > 0 && self.refill.is_none() && self.window.len() <= window_max / 2
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
        for (position, queued) in window {
            if queued.attempt > 0 {
                self.window.insert(position, queued);
            } else {
                self.spill(position);
            }
        }
    }

    fn insert(&mut self, queued: QueuedUrl, window_max: usize) {
        self.window.insert(queued.position, queued);
        if self.window.len() > window_max {
            let last = self
                .window
                .iter()
                .rev()
                .find(|(_, queued)| queued.attempt == 0);
            if let Some(position) = last.map(|(position, _)| *position) {
                self.window.remove(&position);
                self.spill(position);
            }
        }
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

/// Returns the least position after `position`.
const fn after(position: QueuePosition) -> QueuePosition {
    QueuePosition {
        sequence: position.sequence.saturating_add(1),
        ..position
    }
}
