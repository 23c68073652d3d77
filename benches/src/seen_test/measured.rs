//! What is measured of one contender on one stream; it crosses from the child's process to the parent's as JSON.

use serde::{Deserialize, Serialize};

/// Links by the tier that answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tiers {
    /// Repeats within a page.
    pub in_page: u64,
    /// Answered by the recent-key cache.
    pub cache: u64,
    /// Answered by the unwritten notes.
    pub unwritten: u64,
    /// Answered by an exact set in memory.
    pub exact: u64,
    /// Dropped at the filter's word.
    pub filter: u64,
    /// New at once: the filter, or the exact set, did not have them.
    pub new: u64,
    /// Answered by the store.
    pub store: u64,
}

impl Tiers {
    /// Returns the sum over the tiers.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.in_page
            + self.cache
            + self.unwritten
            + self.exact
            + self.filter
            + self.new
            + self.store
    }
}

/// The figures of one run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// Links offered.
    pub link_count: u64,
    /// Different URLs among them.
    pub distinct_count: u64,
    /// Seconds from the first page to the last durable answer, making the links included.
    pub wall_seconds: f64,
    /// CPU seconds of this process without those of making links and keeping the truth.
    pub own_cpu_seconds: f64,
    /// CPU seconds of making links and keeping the truth.
    pub aside_cpu_seconds: f64,
    /// CPU seconds of the server's processes, if there is one on this machine.
    pub server_cpu_seconds: Option<f64>,
    /// Keys that the store was asked about.
    pub store_reads: u64,
    /// Requests that carried them.
    pub confirm_round_trips: u64,
    /// Commits.
    pub commits: u64,
    /// Links by tier.
    pub tiers: Tiers,
    /// The most memory of this process beyond what stream and truth hold, in bytes; `None` where the store is in it.
    pub memory_bytes: Option<u64>,
    /// Of it, the filter, or the exact set in its place.
    pub filter_bytes: u64,
    /// Slices of the filter; 0 where keys are held exactly.
    pub filter_slice_count: u64,
    /// The most memory of the server's main process, where that is its data.
    pub server_memory_bytes: Option<u64>,
    /// URLs never admitted.
    pub lost_count: u64,
    /// URLs that the mode expects to have lost.
    pub expected_lost: Option<f64>,
    /// URLs admitted again.
    pub twice_count: u64,
    /// Suspects that the store did not have.
    pub false_positives: u64,
}
