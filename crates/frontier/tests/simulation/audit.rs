//! The audit: what must hold after every step, judged from outside the frontier.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
    time::Duration,
};

use frontier::{Workbench, WorkbenchConfig};
use types::{CanonicalUrl, Host, Lease, LeaseId, Purpose};

/// What one run is seen to do.
#[derive(Default)]
pub(crate) struct Audit {
    fetching: BTreeMap<LeaseId, Lease>,
    host_in_flight: BTreeMap<Host, u32>,
    ip_in_flight: BTreeMap<IpAddr, u32>,
    last_end: BTreeMap<Host, Duration>,
    /// The pause of hosts that have one of their own.
    pauses: BTreeMap<Host, Duration>,
    /// No request to the host before this time.
    not_before: BTreeMap<Host, Duration>,
    page_leases: BTreeMap<LeaseId, CanonicalUrl>,
    /// URLs leased in this run, and not to be leased again.
    taken: BTreeSet<CanonicalUrl>,
    /// URLs that failed and wait for another try.
    to_retry: BTreeSet<CanonicalUrl>,
    /// URLs that the workbench was told of, less those it was told are finished.
    pub(crate) known_count: u64,
    pub(crate) kept_count: u64,
    pub(crate) domain_pages: BTreeMap<String, u64>,
}

impl Audit {
    pub(crate) fn page_leased(&mut self, lease: &Lease) {
        let url = lease.url().clone();
        assert!(self.taken.insert(url.clone()), "{url} is leased twice");
        self.to_retry.remove(&url);
        self.page_leases.insert(lease.id, url);
    }

    pub(crate) fn started(&mut self, lease: &Lease, now: Duration, config: &WorkbenchConfig) {
        let host = lease.url().host();
        assert_eq!(host, lease.host, "a lease names the host of its URL");
        let pause = self
            .pauses
            .get(&host)
            .copied()
            .unwrap_or_default()
            .max(config.delay);
        let paused = self
            .last_end
            .get(&host)
            .map(|end| *end + pause)
            .unwrap_or_default();
        let not_before = self
            .not_before
            .get(&host)
            .copied()
            .unwrap_or_default()
            .max(paused);
        assert!(
            now >= not_before,
            "{host} is asked at {now:?}, not before {not_before:?}"
        );
        let in_flight = self.host_in_flight.entry(host.clone()).or_default();
        *in_flight += 1;
        assert!(
            *in_flight <= config.per_host,
            "{host} has {in_flight} requests at once"
        );
        if let Some(address) = lease.address {
            let in_flight = self.ip_in_flight.entry(address).or_default();
            *in_flight += 1;
            assert!(
                *in_flight <= config.per_ip,
                "{address} has {in_flight} requests at once"
            );
        }
        if matches!(lease.purpose, Purpose::Page(_)) {
            let pages_count = self.domain_pages.get(host.domain()).copied();
            assert!(
                config
                    .domain_pages_max
                    .is_none_or(|max| pages_count < Some(max)),
                "{host} is asked for more pages than its domain may bring"
            );
            self.page_leased(lease);
        }
        self.fetching.insert(lease.id, lease.clone());
        assert!(
            self.fetching.len() <= config.concurrency as usize,
            "too many requests at once"
        );
    }

    /// A page was kept.
    pub(crate) fn kept(&mut self, host: &Host) {
        self.kept_count += 1;
        *self
            .domain_pages
            .entry(host.domain().to_owned())
            .or_default() += 1;
    }

    /// From now on a host's pause is at least so long.
    pub(crate) fn slow_down(&mut self, host: &Host, pause: Duration) {
        self.pauses.insert(host.clone(), pause);
    }

    pub(crate) fn ended(&mut self, id: LeaseId, now: Duration) {
        let lease = self.fetching.remove(&id).expect("what ends had begun");
        self.last_end.insert(lease.host.clone(), now);
        *self.host_in_flight.get_mut(&lease.host).expect("counted") -= 1;
        if let Some(address) = lease.address {
            *self.ip_in_flight.get_mut(&address).expect("counted") -= 1;
        }
    }

    pub(crate) fn postpone(&mut self, host: &Host, until: Duration) {
        let not_before = self.not_before.entry(host.clone()).or_default();
        *not_before = (*not_before).max(until);
    }

    pub(crate) fn retried(&mut self, id: LeaseId) {
        let url = self.page_leases.remove(&id).expect("leased");
        self.taken.remove(&url);
        self.to_retry.insert(url);
    }

    pub(crate) fn finished(&mut self, id: LeaseId) {
        self.page_leases.remove(&id).expect("leased");
        self.known_count -= 1;
    }

    pub(crate) fn check(&self, workbench: &Workbench, config: &WorkbenchConfig) {
        let stats = workbench.stats();
        assert_eq!(
            stats.leased_count,
            self.page_leases.len() as u64,
            "page leases"
        );
        assert!(
            stats.leased_count <= u64::from(config.leases_max),
            "{stats:?}"
        );
        assert_eq!(stats.fetching_count, self.fetching.len() as u64, "requests");
        assert_eq!(
            stats.queued_count + stats.leased_count,
            self.known_count,
            "a URL is lost, or counted twice"
        );
        assert_eq!(stats.pages_count, self.kept_count, "pages");
        assert_eq!(
            workbench.is_drained(),
            self.known_count == 0 && self.fetching.is_empty()
        );
        assert_eq!(
            workbench.has_leases(),
            !self.page_leases.is_empty() || !self.fetching.is_empty()
        );
        assert_eq!(stats.host_count == 0, stats.queued_count == 0);
        let window_max = config.active_hosts_max * config.window_max + self.to_retry.len();
        assert!(
            stats.in_memory_count <= stats.queued_count.min(window_max as u64),
            "{stats:?}"
        );
        let fetching_pages = self
            .fetching
            .values()
            .filter(|lease| matches!(lease.purpose, Purpose::Page(_)))
            .count() as u64;
        if let Some(max) = config.max_pages {
            assert!(
                stats.pages_count + fetching_pages <= max.max(stats.pages_count),
                "{stats:?}, at most {max} pages"
            );
        }
    }
}
