//! Leases: what is under way, and what it holds until it ends.

use std::{net::IpAddr, time::Duration};

use types::{FetchFailure, Lease, LeaseId, Purpose, QueuedUrl};

use super::{
    Workbench,
    action::Action,
    ready::Lane,
    rules::RobotsState,
    table::{Errand, HostId, ResolutionState, Standing},
};

/// A lease that is not over.
#[derive(Debug)]
pub(super) struct OpenLease {
    /// The host that the request goes to.
    pub(super) id: HostId,
    /// The address whose slot it holds.
    pub(super) address: Option<IpAddr>,
    /// Whether its request is under way.
    pub(super) is_fetching: bool,
    pub(super) kind: LeaseKind,
}

#[derive(Debug)]
pub(super) enum LeaseKind {
    Page(QueuedUrl),
    Robots { of: HostId, hop: u8 },
}

impl Workbench {
    /// Leases the request that a host stands in `lane` for. The slot of its address is taken already.
    pub(super) fn lease_request(
        &mut self,
        id: HostId,
        lane: Lane,
        now: Duration,
    ) -> Option<Action> {
        let ResolutionState::Known(address) = self.hosts[id].resolution else {
            return None;
        };
        let lease = if lane == Lane::Page {
            let queued = self.take_head(id)?;
            self.page_fetching_count += 1;
            self.open_page(id, queued, address, true)
        } else {
            self.open_robots(id, address)
        };
        self.hosts[id].in_flight += 1;
        self.fetching_count += 1;
        self.settle(id, now);
        Some(Action::Fetch(lease))
    }

    /// Leases the first URL of a host that is not to be requested, and says why.
    pub(super) fn lease_disregard(&mut self, id: HostId, now: Duration) -> Option<Action> {
        let failure = self.why_disregard(id);
        let queued = self.take_head(id)?;
        let lease = self.open_page(id, queued, None, false);
        self.settle(id, now);
        Some(Action::Disregard(lease, failure))
    }

    fn why_disregard(&self, id: HostId) -> FetchFailure {
        let host = &self.hosts[id];
        match (&host.given_up, &host.robots) {
            (Some(failure), _) | (None, RobotsState::Unreachable { failure, .. }) => {
                FetchFailure::clone(failure)
            }
            _ => FetchFailure {
                kind: types::FailureKind::RobotsDisallowed,
                detail: format!("by {}/robots.txt", host.host)
                    .chars()
                    .take(200)
                    .collect(),
            },
        }
    }

    fn take_head(&mut self, id: HostId) -> Option<QueuedUrl> {
        let queued = self.change_queue(id, super::queue::HostQueue::lease_head)?;
        let host = &mut self.hosts[id];
        host.is_answer_unused = false;
        host.lease_count += 1;
        if host.lease_count >= self.leases_per_turn && !self.line.is_empty() {
            host.standing = Standing::Leaving;
        }
        Some(queued)
    }

    fn open_page(
        &mut self,
        id: HostId,
        queued: QueuedUrl,
        address: Option<IpAddr>,
        is_fetching: bool,
    ) -> Lease {
        self.page_lease_count += 1;
        let purpose = Purpose::Page(queued.clone());
        self.open(
            OpenLease {
                id,
                address,
                is_fetching,
                kind: LeaseKind::Page(queued),
            },
            purpose,
        )
    }

    /// An errand comes first; the host's own file is asked for otherwise.
    fn open_robots(&mut self, id: HostId, address: Option<IpAddr>) -> Lease {
        let errand = self.hosts[id].errands.pop_front();
        let Errand { url, of, hop } = errand.unwrap_or_else(|| {
            self.set_robots(id, RobotsState::Asked);
            Errand {
                url: robots_url(&self.hosts[id].host),
                of: id,
                hop: 0,
            }
        });
        let purpose = Purpose::Robots {
            url,
            of: self.hosts[of].host.clone(),
            hop,
        };
        self.open(
            OpenLease {
                id,
                address,
                is_fetching: true,
                kind: LeaseKind::Robots { of, hop },
            },
            purpose,
        )
    }

    fn open(&mut self, open: OpenLease, purpose: Purpose) -> Lease {
        let name = LeaseId(self.next_lease);
        self.next_lease += 1;
        let lease = Lease {
            id: name,
            host: self.hosts[open.id].host.clone(),
            address: open.address,
            purpose,
        };
        self.leases.insert(name, open);
        lease
    }

    /// Frees what the request of a lease held, and begins the host's pause.
    pub(super) fn end_request(&mut self, lease: &OpenLease, now: Duration) {
        if !lease.is_fetching {
            return;
        }
        self.hosts[lease.id].in_flight -= 1;
        self.fetching_count -= 1;
        if matches!(lease.kind, LeaseKind::Page(_)) {
            self.page_fetching_count -= 1;
        }
        self.pause(lease.id, now);
        if let Some(address) = lease.address {
            self.slots.give_back(address);
            self.wake(address);
        }
    }
}

/// Returns the URL of a host's robots.txt (RFC 9309, section 2.3).
fn robots_url(host: &types::Host) -> types::CanonicalUrl {
    types::CanonicalUrl::from_stored(format!("{host}/robots.txt"))
        .expect("a host and a path make a URL")
}
