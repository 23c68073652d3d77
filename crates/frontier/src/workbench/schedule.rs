//! Scheduling: what a host may do now, where it stands for it, and who goes next.

use std::{net::IpAddr, time::Duration};

use super::{
    REFILLING_MAX, Workbench,
    action::Action,
    ready::{Key, Lane, Place},
    rules::RobotsState,
    table::{HostId, ResolutionState, Standing},
};

impl Workbench {
    /// Says what to do next. To be called again until it says [`Action::Wait`].
    pub fn next_action(&mut self, now: Duration) -> Action {
        self.now = now;
        if self.is_stopped || self.is_limit_reached() {
            return Action::Wait(None);
        }
        if let Some(action) = self.next_refill(now) {
            return action;
        }
        loop {
            match self.lanes.first(|lane| self.is_open(lane)) {
                None => return Action::Wait(None),
                Some((_, key)) if key.at > now => return Action::Wait(Some(key.at)),
                Some((lane, key)) => {
                    if let Some(action) = self.act(lane, key.id, now) {
                        return action;
                    }
                }
            }
        }
    }

    /// Says whether the bounds of the whole crawl let a lane proceed.
    fn is_open(&self, lane: Lane) -> bool {
        let may_lease = self.page_lease_count < self.config.leases_max;
        let may_fetch = self.fetching_count < self.config.concurrency && self.is_within_pages();
        match lane {
            Lane::Resolve => self.resolving_count < self.resolving_max,
            Lane::Disregard => may_lease,
            Lane::Robots => may_fetch,
            Lane::Page => may_lease && may_fetch,
        }
    }

    /// Says whether one more page could be fetched without passing the limit.
    fn is_within_pages(&self) -> bool {
        let maybe_pages = self
            .pages_count
            .saturating_add(u64::from(self.page_fetching_count));
        self.config.max_pages.is_none_or(|max| maybe_pages < max)
    }

    fn next_refill(&mut self, now: Duration) -> Option<Action> {
        while self.refilling_count < REFILLING_MAX
            && let Some(id) = self.refills.pop_front()
        {
            let host = &mut self.hosts[id];
            host.wants_refill = false;
            if host.standing == Standing::Active && host.queue.wants_refill(self.config.window_max)
            {
                self.refilling_count += 1;
                let (from, limit) = host.queue.begin_refill(self.config.window_max);
                return Some(Action::Refill {
                    host: host.host.clone(),
                    from,
                    limit,
                });
            }
            self.settle(id, now);
        }
        None
    }

    /// Lets the first host of a lane do what it stands there for; `None` if it cannot after all.
    fn act(&mut self, lane: Lane, id: HostId, now: Duration) -> Option<Action> {
        if self.want(id, now) != Some(lane) {
            // Something ran out meanwhile: rules do, by the passage of time alone.
            self.settle(id, now);
            return None;
        }
        match lane {
            Lane::Resolve => {
                self.unplace(id);
                self.resolving_count += 1;
                self.hosts[id].resolution = ResolutionState::Asked;
                Some(Action::Resolve(self.hosts[id].host.clone()))
            }
            Lane::Disregard => {
                self.unplace(id);
                self.lease_disregard(id, now)
            }
            Lane::Robots | Lane::Page => {
                if let Some(address) = self.address(id)
                    && !self.slots.take(address)
                {
                    self.park(id, address);
                    return None;
                }
                self.unplace(id);
                self.lease_request(id, lane, now)
            }
        }
    }

    /// Returns what the host may do, at its ready time if that is a request; `None` if only an input can change that.
    fn want(&self, id: HostId, now: Duration) -> Option<Lane> {
        let host = &self.hosts[id];
        let has_errand = !host.errands.is_empty();
        let has_urls = host.standing == Standing::Active
            && host.queue.queued_count() > 0
            && !self.is_spent(id);
        if !has_errand && !has_urls {
            return None;
        }
        let has_head = has_urls && host.queue.window_count() > 0;
        let is_robots_due =
            self.config.obey_robots && !host.is_answer_unused && host.robots.is_due(now);
        let is_shut = matches!(host.robots, RobotsState::Unreachable { .. }) && !is_robots_due;
        if host.given_up.is_some() || (is_shut && !has_errand) {
            return has_head.then_some(Lane::Disregard);
        }
        match host.resolution {
            ResolutionState::Unknown => return Some(Lane::Resolve),
            ResolutionState::Asked => return None,
            ResolutionState::Known(_) => {}
        }
        let has_slot = host.in_flight < self.config.per_host;
        if has_errand || is_robots_due {
            return has_slot.then_some(Lane::Robots);
        }
        if !has_head || matches!(host.robots, RobotsState::Asked) {
            return None;
        }
        if host.head_allowed.is_some_and(|(_, is_allowed)| !is_allowed) {
            return Some(Lane::Disregard);
        }
        has_slot.then_some(Lane::Page)
    }

    /// Brings a host's standing in line with its state; to be called after every change of it.
    pub(super) fn settle(&mut self, id: HostId, now: Duration) {
        self.stand_down_if_spent(id);
        let host = &mut self.hosts[id];
        let has_left = host.standing == Standing::Leaving
            && host.queue.leased_count() == 0
            && host.in_flight == 0
            && !host.queue.is_refilling();
        if has_left || (host.standing == Standing::Active && host.is_empty()) {
            host.standing = Standing::Out;
            self.active_count -= 1;
            self.end_turn_in_domain(id);
            self.change_queue(id, super::queue::HostQueue::drop_window);
            self.join_line(id);
            self.trim_rules(id);
        }
        self.place(id, now);
        while self.active_count < self.config.active_hosts_max
            && let Some(next) = self.line.pop_front()
        {
            if self.is_spent(next) {
                self.hosts[next].standing = Standing::Out;
                continue;
            }
            self.activate(next);
            self.place(next, now);
        }
    }

    /// Lets a host hold a window.
    pub(super) fn activate(&mut self, id: HostId) {
        let host = &mut self.hosts[id];
        host.standing = Standing::Active;
        host.lease_count = 0;
        self.active_count += 1;
        self.begin_turn_in_domain(id);
    }

    /// Puts a host that has URLs and is not active at the end of the line, unless its domain is spent.
    pub(super) fn join_line(&mut self, id: HostId) {
        let is_spent = self.is_spent(id);
        let host = &mut self.hosts[id];
        if !is_spent && host.standing == Standing::Out && host.queue.queued_count() > 0 {
            host.standing = Standing::InLine;
            self.line.push_back(id);
        }
    }

    fn place(&mut self, id: HostId, now: Duration) {
        self.check_head(id);
        let window_max = self.config.window_max;
        let host = &mut self.hosts[id];
        if host.standing == Standing::Active
            && !host.wants_refill
            && host.queue.wants_refill(window_max)
        {
            host.wants_refill = true;
            self.refills.push_back(id);
        }
        let want = self.want(id, now);
        let host = &self.hosts[id];
        let earliest = if want == Some(Lane::Disregard) {
            Duration::ZERO
        } else {
            host.ready_at
        };
        let stays = match host.place {
            Place::Nowhere => want.is_none(),
            Place::Ready { lane, key, .. } => want == Some(lane) && key.at >= earliest,
            Place::Parked { lane, key, address } => {
                want == Some(lane) && key.at >= earliest && self.address(id) == Some(address)
            }
        };
        if !stays {
            self.unplace(id);
            if let Some(lane) = want {
                let key = Key {
                    at: earliest.max(now),
                    tick: self.next_tick,
                    id,
                };
                self.next_tick += 1;
                self.lanes.insert(lane, key);
                self.hosts[id].place = Place::Ready {
                    lane,
                    key,
                    woken_on: None,
                };
            }
        }
        let idle_max = self.config.idle_hosts_max;
        if let Some(forgotten) = self.hosts.update_idle(id, idle_max, now) {
            self.rules_bytes -= forgotten.robots.size_bytes();
        }
    }

    /// Asks the rules about the window's first URL, once.
    fn check_head(&mut self, id: HostId) {
        let host = &mut self.hosts[id];
        let (Some(head), RobotsState::Known { rules, .. }) = (host.queue.head(), &host.robots)
        else {
            host.head_allowed = None;
            return;
        };
        if host
            .head_allowed
            .is_none_or(|(position, _)| position != head.position)
        {
            host.head_allowed = Some((head.position, rules.allows(head.url.path_and_query())));
        }
    }

    /// Takes a host out of where it stands. Had a free slot brought it there, the next host hears of that slot.
    fn unplace(&mut self, id: HostId) {
        match std::mem::take(&mut self.hosts[id].place) {
            Place::Nowhere => {}
            Place::Parked { key, address, .. } => self.slots.unpark(address, key),
            Place::Ready {
                lane,
                key,
                woken_on,
            } => {
                self.lanes.remove(lane, key);
                if let Some(address) = woken_on {
                    self.wake(address);
                }
            }
        }
    }

    /// Moves a host whose address has no free slot out of its lane, until one is.
    fn park(&mut self, id: HostId, address: IpAddr) {
        if let Place::Ready { lane, key, .. } = self.hosts[id].place {
            self.lanes.remove(lane, key);
            self.slots.park(address, key);
            self.hosts[id].place = Place::Parked { lane, key, address };
        }
    }

    /// Brings the first host that is parked on an address back to its lane if there is a free slot.
    pub(super) fn wake(&mut self, address: IpAddr) {
        let Some(key) = self.slots.wake(address) else {
            return;
        };
        if let Place::Parked { lane, .. } = self.hosts[key.id].place {
            self.lanes.insert(lane, key);
            self.hosts[key.id].place = Place::Ready {
                lane,
                key,
                woken_on: Some(address),
            };
        }
    }

    fn address(&self, id: HostId) -> Option<IpAddr> {
        match self.hosts[id].resolution {
            ResolutionState::Known(address) => address,
            ResolutionState::Unknown | ResolutionState::Asked => None,
        }
    }
}
