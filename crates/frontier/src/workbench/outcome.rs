//! What requests and resolutions brought, and what follows for the URL and for its host.

use std::time::Duration;

use types::{FailureKind, FetchFailure, Host, LeaseId, Resolution, RetryClass};

use super::{
    Workbench,
    action::{Fetched, NextStep},
    lease::LeaseKind,
    retry::{RETRY_AFTER_MAX, backoff, because, counts, is_no_contact, judge},
    table::{HostId, ResolutionState},
};

impl Workbench {
    /// Takes the answer to [`Action::Resolve`](super::Action::Resolve).
    pub fn resolved(&mut self, host: &Host, resolution: Resolution, now: Duration) {
        self.now = now;
        let Some(id) = self.hosts.find(host) else {
            return;
        };
        let state = &mut self.hosts[id];
        if state.resolution != ResolutionState::Asked {
            return;
        }
        self.resolving_count -= 1;
        match resolution {
            Resolution::Address(address) => {
                self.set_resolution(id, ResolutionState::Known(Some(address)));
            }
            Resolution::Exempt => self.set_resolution(id, ResolutionState::Known(None)),
            Resolution::Failed(failure) => {
                let attempt = state.resolve_attempt;
                state.resolution = ResolutionState::Unknown;
                state.resolve_attempt = attempt.saturating_add(1);
                let may_try_again = state.resolve_attempt < self.config.host_attempts_max;
                if failure.kind.retry_class() == RetryClass::Never {
                    self.give_up(id, failure, now);
                } else if may_try_again {
                    let pause = backoff(&self.config, attempt);
                    state.postpone(now.saturating_add(pause));
                    self.note_setback(id, &failure, pause);
                } else {
                    self.give_up(id, because(FailureKind::HostGivenUp, &failure), now);
                }
            }
        }
        self.settle(id, now);
    }

    fn set_resolution(&mut self, id: HostId, resolution: ResolutionState) {
        let host = &mut self.hosts[id];
        host.resolution = resolution;
        host.resolve_attempt = 0;
    }

    /// Takes what came of the request of a page lease, which frees the slots of its host and its address, and says what
    /// is to become of the URL. A lease that is not under way is told to give up.
    pub fn fetched(&mut self, lease: LeaseId, fetched: Fetched<'_>, now: Duration) -> NextStep {
        self.now = now;
        let Some(mut open) = self.leases.remove(&lease) else {
            return NextStep::GiveUp;
        };
        let is_page = matches!(open.kind, LeaseKind::Page(_));
        if !open.is_fetching || !is_page {
            self.leases.insert(lease, open);
            return NextStep::GiveUp;
        }
        self.end_request(&open, now);
        open.is_fetching = false;
        let id = open.id;
        match fetched {
            Fetched::Failed(failure) => self.count_contact(id, Some(failure), now),
            Fetched::Response { retry_after, .. } => {
                self.count_contact(id, None, now);
                if let Some(pause) = retry_after {
                    self.hosts[id].postpone(now.saturating_add(pause.min(RETRY_AFTER_MAX)));
                }
            }
        }
        let step = match &mut open.kind {
            LeaseKind::Page(queued) => self.next_step(id, &fetched, queued.attempt),
            LeaseKind::Robots { .. } => NextStep::GiveUp,
        };
        match (step, open.kind) {
            (NextStep::Retry, LeaseKind::Page(mut queued)) => {
                self.page_lease_count -= 1;
                let pause = backoff(&self.config, queued.attempt);
                self.hosts[id].postpone(now.saturating_add(pause));
                if let Fetched::Failed(failure) = fetched {
                    self.note_setback(id, failure, pause);
                }
                queued.attempt += u16::from(counts(&fetched));
                let window_max = self.config.window_max;
                self.change_queue(id, |queue| queue.put_back(queued, window_max));
            }
            (_, kind) => {
                if step == NextStep::Keep {
                    self.count_page(id, now);
                }
                open.kind = kind;
                self.leases.insert(lease, open);
            }
        }
        self.settle(id, now);
        step
    }

    fn next_step(&self, id: HostId, fetched: &Fetched<'_>, attempt: u16) -> NextStep {
        match judge(fetched, attempt, self.config.attempts_max) {
            NextStep::Retry if self.hosts[id].given_up.is_some() => match fetched {
                Fetched::Response { .. } => NextStep::Keep,
                Fetched::Failed(_) => NextStep::GiveUp,
            },
            step => step,
        }
    }

    /// Begins a host's pause after the end of a response.
    pub(super) fn pause(&mut self, id: HostId, now: Duration) {
        let host = &mut self.hosts[id];
        let asked = host.crawl_delay.min(self.config.crawl_delay_max);
        host.postpone(now.saturating_add(self.config.delay.max(asked)));
    }

    /// Counts failures to connect in a row; too many, and the host is given up. `None` stands for a response.
    pub(super) fn count_contact(
        &mut self,
        id: HostId,
        failure: Option<&FetchFailure>,
        now: Duration,
    ) {
        let host = &mut self.hosts[id];
        let Some(failure) = failure.filter(|failure| failure.kind != FailureKind::ServerError)
        else {
            host.failures_in_row = 0;
            return;
        };
        if !is_no_contact(failure.kind) {
            return;
        }
        host.failures_in_row = host.failures_in_row.saturating_add(1);
        if matches!(host.resolution, ResolutionState::Known(_)) {
            // The name may have moved to another address.
            host.resolution = ResolutionState::Unknown;
        }
        if host.failures_in_row >= self.config.host_failures_max {
            self.give_up(id, because(FailureKind::HostGivenUp, failure), now);
        }
    }

    /// Sends no more requests to a host; its URLs end for this reason. Files of other hosts that it was to be asked for
    /// cannot be reached.
    fn give_up(&mut self, id: HostId, failure: FetchFailure, now: Duration) {
        let errands = std::mem::take(&mut self.hosts[id].errands);
        for errand in errands {
            self.robots_failed(errand.of, id, &failure, now);
            if errand.of != id {
                self.settle(errand.of, now);
            }
        }
        self.hosts[id].given_up = Some(Box::new(failure));
    }
}
