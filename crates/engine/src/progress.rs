//! Progress: what a crawl tells while it opens, and its vital signs while it runs, for a live display.

use std::time::Duration;

use filter::FilterError;
use types::AwaitedHost;

/// What opening a crawl tells of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OpeningEvent {
    /// The filter was read from the snapshot that an earlier run kept, so nothing is rebuilt.
    SnapshotLoaded {
        /// Keys of the crawl.
        key_count: u64,
        /// How many of them are of after the snapshot, and were read from the log of keys.
        replayed_count: u64,
    },
    /// The filter is being rebuilt from the keys in the store. Told before the first key, after every few thousand, and
    /// after the last; never of a crawl without keys.
    Rebuilding {
        /// Keys read so far.
        key_count: u64,
        /// Keys that there are, by the crawl's accounts.
        expected_count: u64,
    },
    /// Something that the user should know and that keeps nothing from going on.
    Notice(String),
}

/// The vital signs at one moment. Rates are over the last few seconds.
#[derive(Clone, Debug, Default)]
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
    /// Slices that the filter has grown to; 0 while the keys are held exactly.
    pub filter_slice_count: u64,
    /// The rate of false positives that the fill predicts, 0 to 1.
    pub filter_predicted_rate: f64,
    /// Keys in the filter.
    pub filter_item_count: u64,
    /// Keys that it was planned for.
    pub filter_expected_count: u64,
    /// Why the filter, or the set of keys in its place, could not grow, if it had to and could not.
    pub filter_growth_error: Option<FilterError>,
    /// The host that the whole crawl waits for, where that is one that could not be reached.
    pub awaited: Option<AwaitedHost>,
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
