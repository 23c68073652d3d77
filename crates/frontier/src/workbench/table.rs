//! The host table: every host with work, and of the others those that were used last.

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    net::IpAddr,
    ops::{Index, IndexMut},
    time::Duration,
};

use types::{CanonicalUrl, FetchFailure, Host, QueuePosition};

use super::{domains::DomainId, queue::HostQueue, ready::Place, rules::RobotsState};

/// Idle hosts looked at, at the most, to find one that may be forgotten: more than one, so that those that may be are found
/// sooner than new ones come.
const IDLE_LOOKS_MAX: usize = 4;

/// A host's number; used again when the host is forgotten.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct HostId(u32);

impl HostId {
    /// The least and the greatest.
    pub(super) const FIRST: Self = Self(0);
    pub(super) const LAST: Self = Self(u32::MAX);
}

/// What is known of one host.
#[derive(Debug)]
pub(super) struct HostState {
    pub(super) host: Host,
    pub(super) queue: HostQueue,
    pub(super) place: Place,
    pub(super) standing: Standing,
    /// It is in the list of those that wait for a refill to be asked for.
    pub(super) wants_refill: bool,
    /// Leases since it became active.
    pub(super) lease_count: u32,
    /// Requests under way.
    pub(super) in_flight: u32,
    /// No request starts before this time.
    pub(super) ready_at: Duration,
    pub(super) resolution: ResolutionState,
    pub(super) resolve_attempt: u16,
    pub(super) robots: RobotsState,
    pub(super) robots_attempt: u16,
    /// No URL was leased by the last answer yet. It holds for one however late that comes, or a host whose turn takes
    /// longer than answers hold would never be done.
    pub(super) is_answer_unused: bool,
    /// The pause that its rules ask for; it holds until other rules are read.
    pub(super) crawl_delay: Duration,
    /// Requests for another host's robots.txt that a redirect sent here.
    pub(super) errands: VecDeque<Errand>,
    /// Failures to connect since the last response.
    pub(super) failures_in_row: u32,
    /// It is among the [setbacks](super::Setbacks).
    pub(super) is_setback_noted: bool,
    /// Why no request is sent to it any more.
    pub(super) given_up: Option<Box<FetchFailure>>,
    /// Its registered domain, if domains have a budget and it ever had a URL.
    pub(super) domain: Option<DomainId>,
    /// Whether the rules allow the first URL, so that each is asked about once.
    pub(super) head_allowed: Option<(QueuePosition, bool)>,
    idle_since: Option<u64>,
}

/// Whether a host may hold a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// It has no URLs, or its domain may bring no more pages.
    Out,
    /// It waits for its turn.
    InLine,
    /// Its window is filled and its pages are fetched.
    Active,
    /// It had its turn, and makes room when its leases have ended.
    Leaving,
}

/// What is known of a host's address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum ResolutionState {
    #[default]
    Unknown,
    Asked,
    /// The address that counts, or `None` where no limit applies.
    Known(Option<IpAddr>),
}

/// A request for a robots.txt to be sent to another host than the one it is for.
#[derive(Clone, Debug)]
pub(super) struct Errand {
    pub(super) url: CanonicalUrl,
    pub(super) of: HostId,
    pub(super) hop: u8,
}

impl HostState {
    fn new(host: Host) -> Self {
        Self {
            host,
            queue: HostQueue::default(),
            place: Place::Nowhere,
            standing: Standing::Out,
            wants_refill: false,
            lease_count: 0,
            in_flight: 0,
            ready_at: Duration::ZERO,
            resolution: ResolutionState::Unknown,
            resolve_attempt: 0,
            robots: RobotsState::Unknown,
            robots_attempt: 0,
            is_answer_unused: false,
            crawl_delay: Duration::ZERO,
            errands: VecDeque::new(),
            failures_in_row: 0,
            is_setback_noted: false,
            given_up: None,
            domain: None,
            head_allowed: None,
            idle_since: None,
        }
    }

    /// Postpones the next request until `at`, unless it is postponed longer.
    pub(super) fn postpone(&mut self, at: Duration) {
        self.ready_at = self.ready_at.max(at);
    }

    /// Says whether no URL and no request is left of it.
    pub(super) fn is_empty(&self) -> bool {
        self.queue.queued_count() == 0
            && self.queue.leased_count() == 0
            && !self.queue.is_refilling()
            && self.in_flight == 0
    }

    /// Says whether it could be forgotten without losing anything but its manners.
    pub(super) fn is_idle(&self) -> bool {
        self.is_empty()
            && self.standing == Standing::Out
            && !self.wants_refill
            && self.errands.is_empty()
            && self.resolution != ResolutionState::Asked
            && !matches!(self.robots, RobotsState::Asked)
    }
}

/// The hosts by number and by name.
#[derive(Debug, Default)]
pub(super) struct HostTable {
    states: Vec<Option<HostState>>,
    free: Vec<HostId>,
    /// Only ever looked up: its order is random.
    ids: HashMap<Host, HostId>,
    idle: BTreeMap<u64, HostId>,
    idle_tick: u64,
    /// Hosts that are idle since before this tick were told by [`HostTable::next_idle`].
    told_tick: u64,
}

impl HostTable {
    pub(super) fn find(&self, host: &Host) -> Option<HostId> {
        self.ids.get(host).copied()
    }

    /// Returns what is known of every host, in no order that means anything.
    pub(super) fn states(&self) -> impl Iterator<Item = &HostState> {
        self.states.iter().flatten()
    }

    /// Returns the host's number; a new host enters the table.
    pub(super) fn find_or_add(&mut self, host: Host) -> HostId {
        if let Some(id) = self.find(&host) {
            return id;
        }
        let state = Some(HostState::new(host.clone()));
        let id = if let Some(id) = self.free.pop() {
            self.states[id.0 as usize] = state;
            id
        } else {
            let number =
                u32::try_from(self.states.len()).expect("memory ends before four billion hosts do");
            self.states.push(state);
            HostId(number)
        };
        self.ids.insert(host, id);
        id
    }

    /// Notes whether a host is idle, and forgets the one that is idle longest if there are more than `idle_max`; returns
    /// that one. A host whose pause still runs is not forgotten, for its pause would be too, unless there are twice as many.
    pub(super) fn update_idle(
        &mut self,
        id: HostId,
        idle_max: usize,
        now: Duration,
    ) -> Option<HostState> {
        let is_idle = self[id].is_idle();
        match (self[id].idle_since, is_idle) {
            (None, true) => self.note_idle(id),
            (Some(tick), false) => {
                self[id].idle_since = None;
                self.idle.remove(&tick);
            }
            _ => {}
        }
        for _ in 0..IDLE_LOOKS_MAX {
            if self.idle.len() <= idle_max {
                return None;
            }
            let (_, oldest) = self.idle.pop_first()?;
            let is_pausing = self[oldest].is_idle() && self[oldest].ready_at > now;
            if !is_pausing || self.idle.len() >= idle_max.saturating_mul(2) {
                return self.forget(oldest);
            }
            self.note_idle(oldest);
        }
        None
    }

    /// Puts a host at the end of the idle ones.
    fn note_idle(&mut self, id: HostId) {
        let tick = self.idle_tick;
        self.idle_tick += 1;
        self[id].idle_since = Some(tick);
        self.idle.insert(tick, id);
    }

    /// Returns the host that is idle longest of those that this did not tell yet. It may have work by now.
    pub(super) fn next_idle(&mut self) -> Option<HostId> {
        let (tick, id) = self.idle.range(self.told_tick..).next()?;
        self.told_tick = tick + 1;
        Some(*id)
    }

    /// Forgets a host that was idle when last looked at, unless it has work by now.
    fn forget(&mut self, id: HostId) -> Option<HostState> {
        self[id].idle_since = None;
        if !self[id].is_idle() {
            return None;
        }
        let state = self.states[id.0 as usize].take()?;
        self.ids.remove(&state.host);
        self.free.push(id);
        Some(state)
    }
}

impl Index<HostId> for HostTable {
    type Output = HostState;

    fn index(&self, id: HostId) -> &HostState {
        self.states[id.0 as usize]
            .as_ref()
            .expect("a host with work is never forgotten")
    }
}

impl IndexMut<HostId> for HostTable {
    fn index_mut(&mut self, id: HostId) -> &mut HostState {
        self.states[id.0 as usize]
            .as_mut()
            .expect("a host with work is never forgotten")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Adds a host that is idle and pauses until `ready_at`; returns the host forgotten for it.
    fn add_idle(table: &mut HostTable, number: u32, ready_at: Duration) -> Option<String> {
        let id = table.find_or_add(Host::new(&format!("http://h{number}.test")));
        table[id].postpone(ready_at);
        let forgotten = table.update_idle(id, 2, Duration::from_secs(10));
        forgotten.map(|state| state.host.to_string())
    }

    #[test]
    fn a_host_is_not_forgotten_while_it_pauses_unless_very_many_do() {
        let mut table = HostTable::default();
        let (over, runs) = (Duration::from_secs(9), Duration::from_secs(99));
        assert_eq!(add_idle(&mut table, 0, runs), None);
        for number in 1..3 {
            add_idle(&mut table, number, over);
        }
        assert_eq!(table.states().count(), 2);
        for number in 3..50 {
            let forgotten = add_idle(&mut table, number, over);
            assert_ne!(forgotten.expect("more than two"), "http://h0.test");
        }
        for number in 50..53 {
            add_idle(&mut table, number, runs);
        }
        assert!(table.find(&Host::new("http://h0.test")).is_some());
        assert_eq!(table.states().count(), 4, "all four pause");
        assert!(add_idle(&mut table, 53, runs).is_some());
        assert_eq!(table.states().count(), 4);
    }
}
