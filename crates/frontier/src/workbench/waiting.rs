//! Which hosts have work, and which have the most.

use std::cmp::Reverse;

use types::Host;

use super::Workbench;

/// The hosts with URLs that wait or are leased.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WaitingHosts {
    /// How many there are.
    pub host_count: u64,
    /// How many URLs they have, in memory and in the store.
    pub url_count: u64,
    /// Those with the most URLs, most first, and of equals in the order of their names; each with the number of its URLs.
    pub top: Vec<(Host, u64)>,
}

impl WaitingHosts {
    /// Counts one more host, and keeps it if it is among the `top_max` with the most URLs. A host without any is none.
    pub fn add(&mut self, host: &Host, url_count: u64, top_max: usize) {
        if url_count == 0 {
            return;
        }
        self.host_count += 1;
        self.url_count += url_count;
        // Nearly all hosts end here.
        let last = self.top.last().filter(|_| self.top.len() >= top_max);
        if last.is_some_and(|(_, least)| url_count < *least) {
            return;
        }
        let place = self.top.partition_point(|(other, count)| {
            (Reverse(*count), other) < (Reverse(url_count), host)
        });
        self.top.insert(place, (host.clone(), url_count));
        self.top.truncate(top_max);
    }
}

impl Workbench {
    /// Counts the hosts with URLs that wait or are leased, and names the `top_max` with the most. It looks at every host,
    /// so it is not for every turn.
    #[must_use]
    pub fn waiting_hosts(&self, top_max: usize) -> WaitingHosts {
        let mut waiting = WaitingHosts::default();
        for state in self.hosts.states() {
            let url_count = state.queue.queued_count() + state.queue.leased_count() as u64;
            waiting.add(&state.host, url_count, top_max);
        }
        waiting
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use types::{QueuePosition, Resolution};

    use super::*;
    use crate::{Action, WorkbenchConfig};

    #[test]
    fn hosts_count_by_what_waits_and_what_is_leased_and_those_with_the_most_come_first() {
        let config = WorkbenchConfig {
            obey_robots: false,
            ..WorkbenchConfig::default()
        };
        let mut bench = Workbench::new(config, 0, 10);
        assert_eq!(bench.waiting_hosts(9), WaitingHosts::default());
        for (host, url_count) in [("http://b", 1), ("http://c", 7), ("http://a", 1)] {
            bench.restore_host(Host::new(host), url_count, QueuePosition::default());
        }
        let named = |bench: &Workbench, top_max| {
            let waiting = bench.waiting_hosts(top_max);
            let top = waiting.top.iter();
            let top: Vec<_> = top.map(|(host, count)| format!("{host} {count}")).collect();
            (waiting.host_count, top.join(", "))
        };
        let all = "http://c 7, http://a 1, http://b 1";
        assert_eq!(named(&bench, 9), (3, all.to_owned()));
        assert_eq!(named(&bench, 1), (3, "http://c 7".to_owned()));
        assert_eq!(bench.waiting_hosts(0).url_count, 9);
        // What is read from the store and leased counts on, until it is finished.
        let mut lease = None;
        while lease.is_none() {
            match bench.next_action(Duration::ZERO) {
                Action::Resolve(host) => bench.resolved(&host, Resolution::Exempt, Duration::ZERO),
                Action::Refill { host, .. } if host.as_str() == "http://a" => {
                    let url = types::CanonicalUrl::from_stored("http://a/".to_owned());
                    let url = url.expect("a canonical URL");
                    let queued = types::QueuedUrl {
                        key: types::KeySeed::new(1).key(&url),
                        url,
                        position: QueuePosition::default(),
                        via: types::Via::Link,
                        redirect_count: 0,
                        referrer: None,
                        attempt: 0,
                    };
                    bench.refilled(&host, vec![queued], Duration::ZERO);
                }
                Action::Refill { .. } => {}
                Action::Fetch(fetch) => lease = Some(fetch.id),
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(named(&bench, 9), (3, all.to_owned()));
        bench.finished(lease.expect("a page of a"));
        assert_eq!(named(&bench, 9), (2, "http://c 7, http://b 1".to_owned()));
    }
}
