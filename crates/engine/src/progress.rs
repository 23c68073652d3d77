//! Progress: the vital signs of a running crawl, for a live display.

use std::time::Duration;

/// The vital signs at one moment. Rates are over the last few seconds.
#[derive(Clone, Copy, Debug, Default)]
pub struct Progress {
    /// Time since this run began.
    pub elapsed: Duration,
    /// Pages with a response, in the whole crawl.
    pub pages: u64,
    /// Pages a second.
    pub pages_per_second: f64,
    /// URLs waiting or leased.
    pub queued: u64,
    /// Hosts with waiting URLs.
    pub hosts: u64,
    /// Links extracted, in the whole crawl.
    pub links: u64,
    /// Links a second.
    pub links_per_second: f64,
    /// The share of links that needed no store read, 0 to 1.
    pub links_without_store: f64,
    /// The share of the filter's bits that are set, 0 to 1.
    pub filter_fill: f64,
    /// URLs that failed.
    pub errors: u64,
    /// Bytes of bodies on the wire, in the whole crawl.
    pub wire_bytes: u64,
    /// Bytes a second.
    pub bytes_per_second: f64,
    /// How much of the nearest limit is used up, 0 to 1; `None` without a limit.
    pub limit_used: Option<f64>,
    /// The time left until that limit, by the recent rate.
    pub eta: Option<Duration>,
}
