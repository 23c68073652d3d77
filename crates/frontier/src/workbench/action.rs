//! The workbench's words: its settings, what it asks of its owner, and what it is told.

use std::{sync::Arc, time::Duration};

use types::{AwaitedHost, CanonicalUrl, FetchFailure, Host, Lease, QueuePosition};

/// The limits and the manners of a crawl.
#[derive(Clone, Debug)]
pub struct WorkbenchConfig {
    /// Requests under way in all.
    pub concurrency: u32,
    /// Page leases that are not durably released.
    pub leases_max: u32,
    /// Requests under way to one host.
    pub per_host: u32,
    /// Requests under way to one IP address, over all hosts on it.
    pub per_ip: u32,
    /// The pause between the end of a host's response and the start of its next request.
    pub delay: Duration,
    /// The most that a Crawl-delay can raise the pause to.
    pub crawl_delay_max: Duration,
    /// Tries of a URL in all.
    pub attempts_max: u16,
    /// Tries of a host's name and of its robots.txt in all: more than of a URL, since all URLs of the host end with the
    /// last. With the default pauses five take 75 seconds, in which a server restarts.
    pub host_attempts_max: u16,
    /// Pages with a response, in the whole crawl.
    pub max_pages: Option<u64>,
    /// Pages with a response of one registered domain, in the whole crawl.
    pub domain_pages_max: Option<u64>,
    /// Whether robots.txt is asked for and obeyed.
    pub obey_robots: bool,
    /// How long an answer to a request for robots.txt holds.
    pub robots_ttl: Duration,
    /// Hosts whose next URLs are held in memory.
    pub active_hosts_max: usize,
    /// URLs held in memory for one of them.
    pub window_max: usize,
    /// Hosts without work that are remembered, so that the pause after a response outlives a queue that was empty for a
    /// moment, and robots.txt is not asked for again. Of those whose pause still runs, up to as many more are.
    pub idle_hosts_max: usize,
    /// The memory that rules may take before those of hosts without work, and of those that become inactive, are forgotten, in
    /// bytes.
    pub rules_bytes_max: usize,
    /// The pause after a first failure; it doubles with each further one.
    pub backoff_base: Duration,
    /// The longest pause after a failure.
    pub backoff_max: Duration,
    /// Failures to connect in a row at which a host is given up.
    pub host_failures_max: u32,
}

impl Default for WorkbenchConfig {
    fn default() -> Self {
        Self {
            concurrency: 64,
            leases_max: 128,
            per_host: 1,
            per_ip: 4,
            delay: Duration::from_secs(1),
            crawl_delay_max: Duration::from_mins(1),
            attempts_max: 3,
            host_attempts_max: 5,
            max_pages: None,
            domain_pages_max: None,
            obey_robots: true,
            robots_ttl: Duration::from_hours(24),
            active_hosts_max: 2_000,
            window_max: 64,
            idle_hosts_max: 50_000,
            rules_bytes_max: 64 << 20,
            backoff_base: Duration::from_secs(5),
            backoff_max: Duration::from_mins(5),
            host_failures_max: 10,
        }
    }
}

/// What the owner of the workbench is to do next.
#[derive(Clone, Debug)]
pub enum Action {
    /// Send a request; answer with [`fetched`](super::Workbench::fetched) for a page, and with
    /// [`robots_answered`](super::Workbench::robots_answered) for a robots.txt.
    Fetch(Lease),
    /// Record a URL as finished without a request, for this reason; then say
    /// [`finished`](super::Workbench::finished).
    Disregard(Lease, FetchFailure),
    /// Resolve a host; answer with [`resolved`](super::Workbench::resolved).
    Resolve(Host),
    /// Read a host's queue from the store; answer with [`refilled`](super::Workbench::refilled).
    Refill {
        /// The host.
        host: Host,
        /// The first position of interest.
        from: QueuePosition,
        /// The most entries to read. Fewer in the answer mean that the store has no more.
        limit: usize,
    },
    /// Nothing now: call again at this time since the crawl's start, or, if `None`, after the next input.
    Wait(Option<Duration>),
}

/// What came of the request for a page.
#[derive(Clone, Copy, Debug)]
pub enum Fetched<'a> {
    /// A response.
    Response {
        /// Its status code.
        status: u16,
        /// The pause that its Retry-After field asks for.
        retry_after: Option<Duration>,
    },
    /// No complete response.
    Failed(&'a FetchFailure),
}

/// What is to become of a URL whose request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextStep {
    /// Parse and record the response; then say [`finished`](super::Workbench::finished).
    Keep,
    /// Nothing: the URL is queued again, and the lease is over.
    Retry,
    /// Record the URL as failed; then say [`finished`](super::Workbench::finished).
    GiveUp,
}

/// What came of the request for a robots.txt.
#[derive(Clone, Debug)]
pub enum RobotsAnswer {
    /// A file was read.
    Rules(Arc<robots::Rules>),
    /// The response points elsewhere.
    Redirect(CanonicalUrl),
    /// A 4xx status other than 429: there are no rules (RFC 9309, section 2.3.1.3).
    Unavailable,
    /// 5xx, 429, or no complete response: everything is disallowed for now (RFC 9309, section 2.3.1.4).
    Unreachable {
        /// What went wrong.
        failure: FetchFailure,
        /// The pause that the response's Retry-After field asks for.
        retry_after: Option<Duration>,
    },
}

/// The workbench's vital signs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkbenchStats {
    /// URLs that wait, in memory and in the store.
    pub queued_count: u64,
    /// Those of them that are in memory: at most a window for each active host, and besides only URLs that failed
    /// and are to be tried again.
    pub in_memory_count: u64,
    /// Hosts with waiting URLs.
    pub host_count: u64,
    /// Requests under way, those for robots.txt included.
    pub fetching_count: u64,
    /// Page leases that are not durably released.
    pub leased_count: u64,
    /// Pages with a response, in the whole crawl.
    pub pages_count: u64,
    /// The host that all others wait behind, where that is one that could not be reached.
    pub awaited: Option<AwaitedHost>,
}
