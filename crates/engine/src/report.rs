//! The final report: what a crawl did, and what the filter saved.

use std::collections::BTreeMap;

use frontier::{SeenMode, SeenStats};
use serde::{Deserialize, Serialize};
use store::StoreCounters;
use types::CrawlCounts;

use crate::{MemoryParts, ratio::share, saved::SavedProgress};

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// Every URL in scope is finished.
    Finished,
    /// The crawl had been finished before this run.
    AlreadyFinished,
    /// A limit was reached; a higher one goes on.
    LimitReached,
    /// Stopped on request; the same command resumes.
    Stopped,
}

/// The final report. Counts are of the whole crawl, over all its runs, unless said otherwise.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Report {
    /// How this run ended.
    pub outcome: Outcome,
    /// Seconds of this run.
    pub elapsed_seconds: f64,
    /// Pages with a response.
    pub pages: u64,
    /// Pages with a response in this run.
    pub pages_this_run: u64,
    /// Pages a second in this run.
    pub pages_per_second: f64,
    /// Responses by class (`2xx`), redirects included.
    pub by_status_class: BTreeMap<String, u64>,
    /// Failed and disregarded URLs by kind of failure.
    pub failures: BTreeMap<String, u64>,
    /// Bytes of bodies on the wire.
    pub wire_bytes: u64,
    /// Bytes of bodies after content decoding.
    pub body_bytes: u64,
    /// Wire bytes a second in this run.
    pub bytes_per_second: f64,
    /// Requests sent in this run, robots.txt and retries included.
    pub requests_this_run: u64,
    /// The accounts.
    pub counts: CrawlCounts,
    /// Whether the accounting identity holds.
    pub identity_holds: bool,
    /// Links by tier of the seen test.
    pub links: LinkReport,
    /// The filter.
    pub filter: FilterReport,
    /// The store, this run.
    pub store: StoreReport,
    /// The cap on leases not yet durably released: the most URLs fetched again after a kill.
    pub leases_max: u64,
    /// URLs that an earlier run had under way when it died, at most; fetched again by this one.
    pub resumed_leases_max: u64,
    /// The most memory the process held, in bytes; 0 where the system does not say.
    pub peak_memory_bytes: u64,
    /// The most memory that each part was planned to take, in bytes.
    pub memory_plan_bytes: MemoryParts,
    /// Where the outputs are.
    pub outputs: OutputReport,
}

/// Links by the tier of the seen test that answered; their sum with the rejected is `discovered`.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct LinkReport {
    /// Candidates offered: seeds, links, redirect targets.
    pub discovered: u64,
    /// Refused before the seen test.
    pub rejected: u64,
    /// Repeats within a page.
    pub in_page_duplicates: u64,
    /// Answered by the recent-key cache.
    pub cache_hits: u64,
    /// Answered by the unwritten notes.
    pub unwritten_hits: u64,
    /// Answered by the exact set that stands in for the filter of a small crawl.
    pub exact_hits: u64,
    /// Dropped at the filter's word, in the mode without a store; some were new.
    pub filter_hits: u64,
    /// The filter's exact "no": new.
    pub filter_no: u64,
    /// Store reads that found a true duplicate.
    pub store_duplicates: u64,
    /// Store reads that found a false positive of the filter.
    pub false_positives: u64,
    /// Store reads in all.
    pub store_reads: u64,
    /// The share of candidates that needed no store read, 0 to 1.
    pub without_store: f64,
}

/// The filter's size and quality.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct FilterReport {
    /// What answers whether a URL is known: `bloom+store`, `bloom`, `exact` or `store`.
    pub mode: String,
    /// Whether the keys are held exactly, as those of a small crawl are.
    pub is_exact: bool,
    /// Slices that it has grown to; 0 while the keys are held exactly.
    pub slices: u64,
    /// URLs it was sized for.
    pub expected_urls: u64,
    /// The rate it was sized for.
    pub target_rate: f64,
    /// Its memory in bytes.
    pub bytes: u64,
    /// Keys in it.
    pub items: u64,
    /// The share of bits set.
    pub fill: f64,
    /// The rate of false positives that the fill predicts now.
    pub predicted_rate: f64,
    /// False positives among the new URLs of this crawl.
    pub measured_rate: f64,
    /// URLs that the mode without a store is expected to have lost, in all runs.
    pub expected_lost: f64,
    /// Why it could not grow, if it had to and could not.
    pub growth_error: Option<String>,
}

/// What the store was asked, this run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct StoreReport {
    /// `embedded` or `postgres`.
    pub backend: String,
    /// Requests that confirmed suspects.
    pub confirm_round_trips: u64,
    /// Suspects in them.
    pub confirmed_keys: u64,
    /// Commits.
    pub commits: u64,
    /// Reads of the queue.
    pub queue_reads: u64,
}

/// Where the outputs are.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct OutputReport {
    /// The page records, one JSON object a line.
    pub pages_jsonl: String,
    /// The folder of WARC files, if they were written.
    pub warc_folder: Option<String>,
}

impl LinkReport {
    /// Arranges the accounts by tier.
    #[must_use]
    pub fn new(counts: &CrawlCounts) -> Self {
        Self {
            discovered: counts.discovered,
            rejected: counts.rejected_total(),
            in_page_duplicates: counts.duplicates.in_page,
            cache_hits: counts.duplicates.cache,
            unwritten_hits: counts.duplicates.unwritten,
            exact_hits: counts.duplicates.exact,
            filter_hits: counts.duplicates.filter,
            filter_no: counts.filter_no,
            store_duplicates: counts.duplicates.store,
            false_positives: counts.false_positives,
            store_reads: counts.store_reads(),
            without_store: without_store(counts),
        }
    }
}

/// Returns the share of candidates that needed no store read, 0 to 1.
pub(crate) fn without_store(counts: &CrawlCounts) -> f64 {
    1.0 - share(counts.store_reads(), counts.discovered, 0.0)
}

impl FilterReport {
    /// Takes the filter's own figures; the measured rate is the share of false positives among the new URLs.
    pub(crate) fn new(stats: &SeenStats, saved: &SavedProgress) -> Self {
        let counts = &saved.counts;
        let new_urls = counts.filter_no + counts.false_positives;
        let filter = &stats.filter;
        // Without a filter, what the store did not have was no false positive.
        let measured_rate = if stats.mode == SeenMode::Store {
            0.0
        } else {
            share(counts.false_positives, new_urls, 0.0)
        };
        Self {
            mode: stats.mode.to_string(),
            is_exact: filter.is_exact,
            slices: filter.slice_count,
            expected_urls: filter.expected_count,
            target_rate: filter.target_rate,
            bytes: filter.size_bytes,
            items: filter.item_count,
            fill: filter.fill,
            predicted_rate: filter.predicted_rate,
            measured_rate,
            expected_lost: saved.expected_lost,
            growth_error: filter.growth_error.map(|error| error.to_string()),
        }
    }
}

impl StoreReport {
    /// Names the backend of `counters`.
    pub(crate) fn new(backend: &str, counters: StoreCounters) -> Self {
        Self {
            backend: backend.to_owned(),
            confirm_round_trips: counters.confirm_round_trips,
            confirmed_keys: counters.confirmed_keys,
            commits: counters.commits,
            queue_reads: counters.queue_reads,
        }
    }
}

/// Returns the most memory the process held, in bytes; 0 where the system does not say.
pub(crate) fn peak_memory_bytes() -> u64 {
    let Ok(status) = std::fs::read_to_string("/proc/self/status") else {
        return 0;
    };
    status
        .lines()
        .find_map(|line| {
            line.strip_prefix("VmHWM:")?
                .trim()
                .strip_suffix("kB")?
                .trim()
                .parse::<u64>()
                .ok()
        })
        .map_or(0, |kibibytes| kibibytes * 1_024)
}
