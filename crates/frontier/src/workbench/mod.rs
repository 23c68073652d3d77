//! The workbench: host queues, politeness and leases; says which URL is fetched next.

mod action;
mod domains;
mod lease;
mod outcome;
mod queue;
mod ready;
mod retry;
mod rules;
mod schedule;
mod setback;
mod table;
#[cfg(test)]
mod tests;
mod waiting;

use std::{
    collections::{BTreeMap, VecDeque},
    time::Duration,
};

use types::{Host, LeaseId, QueuePosition, QueuedUrl};

pub use action::{Action, Fetched, NextStep, RobotsAnswer, WorkbenchConfig, WorkbenchStats};
pub use domains::SpentDomains;
pub use setback::{Setback, Setbacks};
pub use waiting::WaitingHosts;

use domains::Domains;
use lease::OpenLease;
use queue::HostQueue;
use ready::{IpSlots, Lanes};
use table::{HostId, HostTable, Standing};

/// A host's turn, in windows: after so many leases it makes room for hosts that wait to be active.
const WINDOWS_PER_TURN: usize = 16;

/// The fewest resolutions that may be under way at once, however few requests may be.
const RESOLVING_MIN: u32 = 16;

/// Reads of the store that may be under way at once.
const REFILLING_MAX: u32 = 64;

/// The host queues of one crawl, with their politeness. One owner calls it; it never blocks and never looks at a clock:
/// `now` is the time since the crawl's start, and must not go backwards.
///
/// It only ever sees URLs whose notes are durable, and hears of them in the order of their sequence numbers.
#[derive(Debug)]
pub struct Workbench {
    config: WorkbenchConfig,
    hosts: HostTable,
    lanes: Lanes,
    slots: IpSlots,
    leases: BTreeMap<LeaseId, OpenLease>,
    setbacks: Setbacks,
    domains: Domains,
    /// Hosts with URLs that wait to be active.
    line: VecDeque<HostId>,
    /// Hosts whose window runs low.
    refills: VecDeque<HostId>,
    /// The time of the last call that named one.
    now: Duration,
    next_lease: u64,
    next_tick: u64,
    /// One more than the highest sequence number heard of.
    sequence_end: u64,
    leases_per_turn: u32,
    resolving_max: u32,
    active_count: usize,
    resolving_count: u32,
    refilling_count: u32,
    fetching_count: u32,
    page_fetching_count: u32,
    page_lease_count: u32,
    queued_count: u64,
    window_count: usize,
    rules_bytes: usize,
    host_count: u64,
    pages_count: u64,
    is_stopped: bool,
}

impl Workbench {
    /// Makes an empty workbench. `pages_done` pages were had in earlier runs, and `next_sequence` is the sequence number
    /// of this run's first note: 0 for a new crawl. Bounds of 0 count as 1.
    #[must_use]
    pub fn new(mut config: WorkbenchConfig, pages_done: u64, next_sequence: u64) -> Self {
        for bound in [
            &mut config.concurrency,
            &mut config.leases_max,
            &mut config.per_host,
            &mut config.per_ip,
        ] {
            *bound = (*bound).max(1);
        }
        config.attempts_max = config.attempts_max.max(1);
        config.host_attempts_max = config.host_attempts_max.max(1);
        config.active_hosts_max = config.active_hosts_max.max(1);
        config.window_max = config.window_max.max(1);
        Self {
            hosts: HostTable::default(),
            lanes: Lanes::default(),
            slots: IpSlots::new(config.per_ip),
            leases: BTreeMap::new(),
            setbacks: Setbacks::default(),
            domains: Domains::default(),
            line: VecDeque::new(),
            refills: VecDeque::new(),
            now: Duration::ZERO,
            next_lease: 0,
            next_tick: 0,
            sequence_end: next_sequence,
            leases_per_turn: u32::try_from(config.window_max.saturating_mul(WINDOWS_PER_TURN))
                .unwrap_or(u32::MAX),
            resolving_max: config.concurrency.max(RESOLVING_MIN),
            active_count: 0,
            resolving_count: 0,
            refilling_count: 0,
            fetching_count: 0,
            page_fetching_count: 0,
            page_lease_count: 0,
            queued_count: 0,
            window_count: 0,
            rules_bytes: 0,
            host_count: 0,
            pages_count: pages_done,
            is_stopped: false,
            config,
        }
    }

    /// Adds URLs of any hosts, new to the crawl and durable in the store.
    pub fn enqueue(&mut self, urls: Vec<QueuedUrl>, now: Duration) {
        self.now = now;
        let window_max = self.config.window_max;
        let mut touched = Vec::new();
        for queued in urls {
            self.sequence_end = self
                .sequence_end
                .max(queued.position.sequence.saturating_add(1));
            let id = self.hosts.find_or_add(queued.url.host());
            self.note_domain(id);
            if matches!(
                self.hosts[id].standing,
                Standing::Active | Standing::Leaving
            ) {
                self.change_queue(id, |queue| queue.push(queued, window_max));
            } else if self.line.is_empty()
                && self.active_count < self.config.active_hosts_max
                && !self.is_spent(id)
            {
                self.activate(id);
                self.change_queue(id, |queue| queue.push(queued, window_max));
            } else {
                self.change_queue(id, |queue| queue.push_spilled(1, queued.position));
                self.join_line(id);
            }
            if touched.last() != Some(&id) {
                touched.push(id);
            }
        }
        touched.sort_unstable();
        touched.dedup();
        for id in touched {
            self.settle(id, now);
        }
    }

    /// Adds a host of an earlier run: it has `queued_count` URLs in the store, the first at `first`.
    pub fn restore_host(&mut self, host: Host, queued_count: u64, first: QueuePosition) {
        let id = self.hosts.find_or_add(host);
        self.note_domain(id);
        self.change_queue(id, |queue| queue.push_spilled(queued_count, first));
        self.join_line(id);
        self.settle(id, self.now);
    }

    /// Takes what the store had for [`Action::Refill`], in the order of the queue. The read must have begun after the
    /// action was handed out.
    pub fn refilled(&mut self, host: &Host, urls: Vec<QueuedUrl>, now: Duration) {
        self.now = now;
        let Some(id) = self.hosts.find(host) else {
            return;
        };
        if !self.hosts[id].queue.is_refilling() {
            return;
        }
        self.refilling_count -= 1;
        let (sequence_end, window_max) = (self.sequence_end, self.config.window_max);
        self.change_queue(id, |queue| queue.end_refill(urls, sequence_end, window_max));
        self.settle(id, now);
    }

    /// Ends a page lease: the URL's finish is durable. Notes of the same commit are to be enqueued first, or the
    /// workbench may seem drained.
    pub fn finished(&mut self, lease: LeaseId) {
        let Some(ended) = self.leases.remove(&lease) else {
            return;
        };
        if let lease::LeaseKind::Page(queued) = ended.kind {
            self.page_lease_count -= 1;
            self.change_queue(ended.id, |queue| queue.finish(queued.position));
            self.settle(ended.id, self.now);
        }
    }

    /// From now on nothing is fetched, resolved, refilled or disregarded; what is under way ends as it would.
    pub fn stop_leasing(&mut self) {
        self.is_stopped = true;
    }

    /// Returns the vital signs.
    #[must_use]
    pub fn stats(&self) -> WorkbenchStats {
        WorkbenchStats {
            queued_count: self.queued_count,
            in_memory_count: self.window_count as u64,
            host_count: self.host_count,
            fetching_count: u64::from(self.fetching_count),
            leased_count: u64::from(self.page_lease_count),
            pages_count: self.pages_count,
            awaited: self.awaited(),
        }
    }

    /// Says whether nothing is queued and nothing is leased.
    #[must_use]
    pub fn is_drained(&self) -> bool {
        self.queued_count == 0 && self.leases.is_empty()
    }

    /// Says whether the crawl has the pages it may have; no request that could bring one more is under way then.
    #[must_use]
    pub fn is_limit_reached(&self) -> bool {
        self.config
            .max_pages
            .is_some_and(|max| self.pages_count >= max)
    }

    /// Says whether any lease is not over, those for robots.txt included.
    #[must_use]
    pub fn has_leases(&self) -> bool {
        !self.leases.is_empty()
    }

    /// Returns how many leases are not over, those for robots.txt included.
    #[must_use]
    pub fn lease_count(&self) -> usize {
        self.leases.len()
    }

    /// Says whether nothing is under way that could bring news: no request, no look-up of a name, no read of a queue.
    #[must_use]
    pub const fn is_idle(&self) -> bool {
        self.fetching_count == 0 && self.resolving_count == 0 && self.refilling_count == 0
    }

    /// Changes a host's queue, and the totals with it.
    fn change_queue<R>(&mut self, id: HostId, change: impl FnOnce(&mut HostQueue) -> R) -> R {
        let queue = &mut self.hosts[id].queue;
        let (before, window_before) = (queue.queued_count(), queue.window_count());
        let result = change(queue);
        let (after, window_after) = (queue.queued_count(), queue.window_count());
        self.window_count = self.window_count + window_after - window_before;
        self.queued_count = self.queued_count + after - before;
        self.host_count = self.host_count + u64::from(after > 0) - u64::from(before > 0);
        result
    }
}
