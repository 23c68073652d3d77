//! Hosts that could not be reached and are tried again after a pause: what a crawl tells of them while it waits.

use std::time::Duration;

use types::{AwaitedHost, FetchFailure, Host};

use super::{Workbench, retry::is_no_contact, table::HostId};

/// Hosts that are named; the others are only counted.
const NAMED_MAX: usize = 3;

/// The hosts that could not be reached, each counted once as long as it is remembered.
#[derive(Clone, Debug, Default)]
pub struct Setbacks {
    /// The first three.
    pub first: Vec<Setback>,
    /// How many there were, the first included.
    pub host_count: u64,
}

/// A host's first failure to connect.
#[derive(Clone, Debug)]
pub struct Setback {
    /// The host.
    pub host: Host,
    /// Why it could not be reached.
    pub failure: FetchFailure,
    /// The pause until it is tried again.
    pub pause: Duration,
}

impl Workbench {
    /// Returns the hosts that could not be reached, but were or are to be tried again.
    #[must_use]
    pub const fn setbacks(&self) -> &Setbacks {
        &self.setbacks
    }

    /// Returns the host that is tried next, if it could not be reached so far and nothing can be done before: so long the
    /// crawl stands still.
    pub(super) fn awaited(&self) -> Option<AwaitedHost> {
        let is_anything_under_way = !self.leases.is_empty()
            || self.resolving_count > 0
            || self.refilling_count > 0
            || !self.refills.is_empty();
        if is_anything_under_way || self.is_stopped {
            return None;
        }
        let (_, key) = self.lanes.first(|_| true)?;
        let next = &self.hosts[key.id];
        let failure_count = next
            .failures_in_row
            .saturating_add(next.resolve_attempt.into());
        if failure_count == 0 || key.at <= self.now {
            return None;
        }
        let mut first = self.setbacks.first.iter();
        let setback = first.find(|setback| setback.host == next.host);
        Some(AwaitedHost {
            host: next.host.clone(),
            pause: key.at.saturating_sub(self.now),
            failure_count,
            reason: setback.map(|setback| setback.failure.to_string()),
            other_count: self.host_count.saturating_sub(1),
        })
    }

    /// Notes that a host is tried again after `pause`, if `failure` means that it could not be spoken to at all.
    pub(super) fn note_setback(&mut self, id: HostId, failure: &FetchFailure, pause: Duration) {
        let host = &mut self.hosts[id];
        if !is_no_contact(failure.kind) || host.is_setback_noted {
            return;
        }
        host.is_setback_noted = true;
        self.setbacks.host_count += 1;
        if self.setbacks.first.len() < NAMED_MAX {
            self.setbacks.first.push(Setback {
                host: host.host.clone(),
                failure: failure.clone(),
                pause,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use types::{CanonicalUrl, FailureKind, KeySeed, QueuePosition, QueuedUrl, Resolution, Via};

    use super::*;
    use crate::{Action, WorkbenchConfig};

    #[test]
    fn each_host_is_counted_once_and_the_first_three_are_named() {
        let mut bench = Workbench::new(WorkbenchConfig::default(), 0, 0);
        for number in 0..5 {
            let host = Host::new(&format!("http://{number}.example"));
            bench.restore_host(host, 1, QueuePosition::default());
        }
        let failure = FetchFailure {
            kind: FailureKind::Dns,
            detail: "of the test".to_owned(),
        };
        let mut now = Duration::ZERO;
        // Each is tried twice.
        for _ in 0..2 {
            loop {
                match bench.next_action(now) {
                    Action::Resolve(host) => {
                        bench.resolved(&host, Resolution::Failed(failure.clone()), now);
                    }
                    Action::Refill { .. } => {}
                    Action::Wait(_) => break,
                    other => panic!("{other:?}"),
                }
            }
            now += Duration::from_mins(1);
        }
        let setbacks = bench.setbacks();
        assert_eq!((setbacks.host_count, setbacks.first.len()), (5, 3));
        let first = &setbacks.first[0];
        assert_eq!(first.host.as_str(), "http://0.example");
        assert_eq!(first.failure.to_string(), failure.to_string());
        assert_eq!(first.pause, Duration::from_secs(5));
    }

    #[test]
    fn the_host_that_all_wait_for_is_named_only_while_nothing_else_can_be_done() {
        let mut bench = Workbench::new(WorkbenchConfig::default(), 0, 0);
        let seed = |text: &str, sequence| {
            let url = CanonicalUrl::from_stored(text.to_owned()).expect("a canonical URL");
            QueuedUrl {
                key: KeySeed::new(1).key(&url),
                url,
                position: QueuePosition {
                    sequence,
                    ..QueuePosition::default()
                },
                via: Via::Seed,
                redirect_count: 0,
                referrer: None,
                attempt: 0,
            }
        };
        let seeds = vec![seed("http://a.example/", 0), seed("http://b.example/", 1)];
        bench.enqueue(seeds, Duration::ZERO);
        let failure = FetchFailure {
            kind: FailureKind::Dns,
            detail: "of the test".to_owned(),
        };
        let mut asked = Vec::new();
        while let Action::Resolve(host) = bench.next_action(Duration::ZERO) {
            asked.push(host);
        }
        let mut fail = |host: &Host, now| {
            bench.resolved(host, Resolution::Failed(failure.clone()), now);
            bench.stats().awaited
        };
        assert_eq!(fail(&asked[0], Duration::ZERO), None, "one is asked for");
        let awaited = AwaitedHost {
            host: asked[0].clone(),
            pause: Duration::from_secs(4),
            failure_count: 1,
            reason: Some("dns: of the test".to_owned()),
            other_count: 1,
        };
        assert_eq!(fail(&asked[1], Duration::from_secs(1)), Some(awaited));
        let due = Duration::from_secs(5);
        assert!(matches!(bench.next_action(due), Action::Resolve(_)));
        assert_eq!(bench.stats().awaited, None, "it is asked for again");
    }
}
