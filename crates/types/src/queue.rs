//! Queue entries and leases: what the frontier remembers of a URL until it is finished.

use std::{net::IpAddr, sync::Arc, time::Duration};

use crate::{CanonicalUrl, Host, UrlKey, Via};

/// The place of a URL in its host's queue. Order: priority (0 first), depth, then discovery.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QueuePosition {
    /// 0 is fetched first.
    pub priority: u8,
    /// Links followed from a seed.
    pub depth: u32,
    /// The note's number in the crawl's one order of notes; unique within a crawl.
    pub sequence: u64,
}

/// A URL admitted to the crawl and not finished: one entry of the queue.
#[derive(Clone, Debug)]
pub struct QueuedUrl {
    /// The canonical URL.
    pub url: CanonicalUrl,
    /// Its key.
    pub key: UrlKey,
    /// Its place in the queue of its host.
    pub position: QueuePosition,
    /// How it was discovered.
    pub via: Via,
    /// Redirects, and sitemaps within sitemaps, followed in a row to get here.
    pub redirect_count: u8,
    /// The canonical URL of the page that named it first; `None` for seeds.
    pub referrer: Option<Arc<str>>,
    /// Failed attempts so far in this run; not stored.
    pub attempt: u16,
}

/// A host that could not be reached, and that a crawl waits for with nothing else to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AwaitedHost {
    /// The host.
    pub host: Host,
    /// The time until it is tried again.
    pub pause: Duration,
    /// How often in a row it could not be reached.
    pub failure_count: u32,
    /// Why at first, in words; kept of a few hosts only.
    pub reason: Option<String>,
    /// The other hosts with work, which wait as well.
    pub other_count: u64,
}

/// The name of one lease, unique within a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LeaseId(pub u64);

/// The right to send one request now.
#[derive(Clone, Debug)]
pub struct Lease {
    /// Its name.
    pub id: LeaseId,
    /// The host that the request goes to.
    pub host: Host,
    /// The address that the host's politeness is counted against; `None` where exempt.
    pub address: Option<IpAddr>,
    /// What is to be fetched.
    pub purpose: Purpose,
}

impl Lease {
    /// Returns the URL to fetch.
    #[must_use]
    pub fn url(&self) -> &CanonicalUrl {
        match &self.purpose {
            Purpose::Page(queued) => &queued.url,
            Purpose::Robots { url, .. } => url,
        }
    }
}

/// What a lease is for.
#[derive(Clone, Debug)]
pub enum Purpose {
    /// A queued URL.
    Page(QueuedUrl),
    /// The robots.txt of `of`, or the target of its `hop`-th redirect, which may lie on another host.
    Robots {
        /// Where to ask.
        url: CanonicalUrl,
        /// The host whose rules are asked for.
        of: Host,
        /// Redirects followed so far, at most 5 (RFC 9309, section 2.3.1.2).
        hop: u8,
    },
}
