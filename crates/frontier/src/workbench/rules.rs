//! What robots.txt says of a host, and how the answers to requests for it are taken.

use std::{sync::Arc, time::Duration};

use robots::Rules;
use types::{FailureKind, FetchFailure, LeaseId};

use super::{
    Workbench,
    action::{Fetched, RobotsAnswer},
    lease::LeaseKind,
    retry::{RETRY_AFTER_MAX, backoff, because, counts, is_worth_retrying},
    table::{Errand, HostId},
};

/// Redirects of a robots.txt that are followed in a row (RFC 9309, section 2.3.1.2).
const ROBOTS_HOPS_MAX: u8 = 5;

/// What is known of a host's robots.txt.
#[derive(Clone, Debug, Default)]
pub(super) enum RobotsState {
    /// To be asked for.
    #[default]
    Unknown,
    /// Asked for, here or, after a redirect, at another host.
    Asked,
    Known {
        rules: Arc<Rules>,
        until: Duration,
    },
    /// Not to be had, so everything is disallowed, for this reason.
    Unreachable {
        failure: Box<FetchFailure>,
        until: Duration,
    },
}

impl RobotsState {
    /// Says whether it has to be asked for (again).
    pub(super) fn is_due(&self, now: Duration) -> bool {
        match self {
            Self::Unknown => true,
            Self::Asked => false,
            Self::Known { until, .. } | Self::Unreachable { until, .. } => *until <= now,
        }
    }

    pub(super) fn size_bytes(&self) -> usize {
        match self {
            Self::Known { rules, .. } => rules.size_bytes(),
            _ => 0,
        }
    }
}

impl Workbench {
    /// Takes the answer to a request for a robots.txt, which ends its lease.
    pub fn robots_answered(&mut self, lease: LeaseId, answer: RobotsAnswer, now: Duration) {
        self.now = now;
        let Some(ended) = self.leases.remove(&lease) else {
            return;
        };
        self.end_request(&ended, now);
        let LeaseKind::Robots { of, hop } = ended.kind else {
            return;
        };
        let asked = ended.id;
        match &answer {
            RobotsAnswer::Unreachable { failure, .. } => {
                self.count_contact(asked, Some(failure), now);
            }
            _ => self.count_contact(asked, None, now),
        }
        match answer {
            RobotsAnswer::Redirect(url) if hop < ROBOTS_HOPS_MAX => {
                self.send_errand(
                    Errand {
                        url,
                        of,
                        hop: hop + 1,
                    },
                    now,
                );
            }
            RobotsAnswer::Rules(rules) => self.set_rules(of, rules, now),
            RobotsAnswer::Redirect(_) | RobotsAnswer::Unavailable => {
                self.set_rules(of, Arc::new(Rules::allow_all()), now);
            }
            RobotsAnswer::Unreachable {
                failure,
                retry_after,
            } => {
                if let Some(pause) = retry_after {
                    self.hosts[asked].postpone(now.saturating_add(pause.min(RETRY_AFTER_MAX)));
                }
                self.robots_failed(of, asked, &failure, now);
            }
        }
        // The rules just read may ask for a longer pause than the one that began with this response.
        if !self.hosts[of].crawl_delay.is_zero() {
            self.pause(of, now);
        }
        self.settle(asked, now);
        self.settle(of, now);
    }

    /// Has a file asked for at the host that a redirect names, in the line and by the manners of that host.
    fn send_errand(&mut self, errand: Errand, now: Duration) {
        let target = self.hosts.find_or_add(errand.url.host());
        if let Some(failure) = self.hosts[target].given_up.clone() {
            self.robots_failed(errand.of, target, &failure, now);
        } else {
            self.hosts[target].errands.push_back(errand);
        }
        self.settle(target, now);
    }

    fn set_rules(&mut self, of: HostId, rules: Arc<Rules>, now: Duration) {
        let until = now.saturating_add(self.config.robots_ttl);
        let crawl_delay = rules.crawl_delay().unwrap_or_default();
        self.set_robots(of, RobotsState::Known { rules, until });
        self.trim_idle_rules();
        let state = &mut self.hosts[of];
        state.crawl_delay = crawl_delay;
        state.is_answer_unused = true;
        state.robots_attempt = 0;
        state.head_allowed = None;
    }

    /// Asks again after a pause, or, after the last attempt, disallows everything. The failure is that of the host that was
    /// `asked`, which a redirect may have named.
    pub(super) fn robots_failed(
        &mut self,
        of: HostId,
        asked: HostId,
        failure: &FetchFailure,
        now: Duration,
    ) {
        let state = &mut self.hosts[of];
        let attempt = state.robots_attempt;
        state.robots_attempt = attempt.saturating_add(u16::from(counts(&Fetched::Failed(failure))));
        let may_try_again = attempt.saturating_add(1) < self.config.host_attempts_max;
        if is_worth_retrying(failure, may_try_again) {
            let pause = backoff(&self.config, attempt);
            state.postpone(now.saturating_add(pause));
            self.set_robots(of, RobotsState::Unknown);
            self.note_setback(asked, failure, pause);
        } else {
            state.robots_attempt = 0;
            state.is_answer_unused = true;
            let failure = because(FailureKind::RobotsUnreachable, failure);
            let until = now.saturating_add(self.config.robots_ttl);
            self.set_robots(
                of,
                RobotsState::Unreachable {
                    failure: Box::new(failure),
                    until,
                },
            );
        }
    }

    /// Changes what is known of a host's robots.txt, and the total of memory with it.
    pub(super) fn set_robots(&mut self, of: HostId, robots: RobotsState) {
        let before = std::mem::replace(&mut self.hosts[of].robots, robots);
        self.rules_bytes =
            self.rules_bytes + self.hosts[of].robots.size_bytes() - before.size_bytes();
    }

    /// Forgets the rules of hosts without work, those that have been so longest first, while those of all hosts take too
    /// much memory.
    fn trim_idle_rules(&mut self) {
        while self.rules_bytes > self.config.rules_bytes_max
            && let Some(idle) = self.hosts.next_idle()
        {
            if self.hosts[idle].is_idle() {
                self.trim_rules(idle);
            }
        }
    }

    /// Forgets the rules of a host that is no longer active if those of all hosts take too much memory. They are asked
    /// for again when the host is active again.
    pub(super) fn trim_rules(&mut self, id: HostId) {
        if self.rules_bytes > self.config.rules_bytes_max
            && matches!(self.hosts[id].robots, RobotsState::Known { .. })
        {
            self.set_robots(id, RobotsState::Unknown);
        }
    }
}
