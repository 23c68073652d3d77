//! What a running crawl shows of itself: the figures of the last commit and of the owner's last turn.

use std::{
    collections::VecDeque,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use filter::FilterStats;
use frontier::WorkbenchStats;
use types::AwaitedHost;

use crate::{
    Limits, Progress,
    ratio::{per_second, share, time_at},
    saved::SavedProgress,
};

/// Rates are taken over the samples of this long.
const RATE_WINDOW: Duration = Duration::from_secs(5);
/// Samples closer together than this add nothing.
const SAMPLE_INTERVAL: Duration = Duration::from_millis(100);

/// Shared by the stages, which write, and by whoever watches.
pub(crate) struct Live {
    begun: Instant,
    limits: Limits,
    saved: Mutex<SavedProgress>,
    samples: Mutex<VecDeque<Sample>>,
    notices: Mutex<Vec<String>>,
    queued: AtomicU64,
    hosts: AtomicU64,
    awaited: Mutex<Option<AwaitedHost>>,
    requests: AtomicU64,
    unrecorded_bytes: AtomicU64,
    is_answered: AtomicBool,
    is_ended: AtomicBool,
    is_halted: AtomicBool,
}

#[derive(Clone, Copy)]
struct Sample {
    at: Instant,
    pages: u64,
    links: u64,
    wire_bytes: u64,
}

/// Takes a lock whose data stays whole whatever its holder did.
fn hold<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Live {
    /// Begins with the progress of earlier runs.
    pub(crate) fn new(limits: Limits, saved: &SavedProgress) -> Self {
        Self {
            begun: Instant::now(),
            limits,
            saved: Mutex::new(saved.clone()),
            samples: Mutex::new(VecDeque::new()),
            notices: Mutex::new(Vec::new()),
            queued: AtomicU64::new(saved.counts.queued),
            hosts: AtomicU64::new(0),
            awaited: Mutex::new(None),
            requests: AtomicU64::new(0),
            unrecorded_bytes: AtomicU64::new(0),
            is_answered: AtomicBool::new(false),
            is_ended: AtomicBool::new(false),
            is_halted: AtomicBool::new(false),
        }
    }

    /// Takes the figures of a commit.
    pub(crate) fn publish(&self, saved: &SavedProgress) {
        hold(&self.saved).clone_from(saved);
    }

    /// Takes the owner's figures.
    pub(crate) fn publish_workbench(&self, stats: &WorkbenchStats) {
        self.queued
            .store(stats.queued_count + stats.leased_count, Ordering::Relaxed);
        self.hosts.store(stats.host_count, Ordering::Relaxed);
        hold(&self.awaited).clone_from(&stats.awaited);
    }

    /// Counts one request sent.
    pub(crate) fn count_request(&self) {
        self.requests.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the requests sent in this run.
    pub(crate) fn request_count(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }

    /// Notes that a host answered.
    pub(crate) fn note_answer(&self) {
        self.is_answered.store(true, Ordering::Relaxed);
    }

    /// Returns whether any host answered in this run.
    pub(crate) fn is_answered(&self) -> bool {
        self.is_answered.load(Ordering::Relaxed)
    }

    /// Counts bytes that no page record speaks of: of responses that are fetched again, and of robots.txt files.
    pub(crate) fn count_unrecorded(&self, wire_bytes: u64) {
        self.unrecorded_bytes
            .fetch_add(wire_bytes, Ordering::Relaxed);
    }

    /// Keeps what the user should know of the opening, before all that came up since.
    pub(crate) fn notice_first(&self, notices: Vec<String>) {
        hold(&self.notices).splice(0..0, notices);
    }

    /// Keeps something that the user should know.
    pub(crate) fn notice(&self, notice: String) {
        hold(&self.notices).push(notice);
    }

    /// Keeps something that the user should know, unless that was kept before.
    pub(crate) fn notice_once(&self, notice: String) {
        let mut notices = hold(&self.notices);
        if !notices.contains(&notice) {
            notices.push(notice);
        }
    }

    /// Returns what the user should know, in the order in which it came up.
    pub(crate) fn notices(&self) -> Vec<String> {
        hold(&self.notices).clone()
    }

    /// Tells that no URL will be fetched any more, so that no more seeds need be offered in this run.
    pub(crate) fn end(&self) {
        self.is_ended.store(true, Ordering::Relaxed);
    }

    /// Returns whether the run fetches no more.
    pub(crate) fn is_ended(&self) -> bool {
        self.is_ended.load(Ordering::Relaxed)
    }

    /// Tells every stage to drop what it has not begun.
    pub(crate) fn halt(&self) {
        self.is_halted.store(true, Ordering::Relaxed);
    }

    /// Returns whether the crawl is to end at once.
    pub(crate) fn is_halted(&self) -> bool {
        self.is_halted.load(Ordering::Relaxed)
    }

    /// Returns the time since this run began.
    pub(crate) fn elapsed(&self) -> Duration {
        self.begun.elapsed()
    }

    /// Returns whether the limit on time or bytes is reached.
    pub(crate) fn is_limit_reached(&self) -> bool {
        self.limits
            .max_time
            .is_some_and(|max| self.elapsed() >= max)
            || self
                .limits
                .max_bytes
                .is_some_and(|max| self.wire_bytes() >= max)
    }

    /// Returns the bytes of bodies on the wire, those of this run that no record speaks of included.
    fn wire_bytes(&self) -> u64 {
        hold(&self.saved).totals.wire_bytes + self.unrecorded_bytes.load(Ordering::Relaxed)
    }

    /// Returns the vital signs.
    pub(crate) fn progress(&self, filter: &FilterStats) -> Progress {
        let saved = hold(&self.saved).clone();
        let now = Sample {
            at: Instant::now(),
            pages: saved.totals.pages,
            links: saved.counts.discovered,
            wire_bytes: saved.totals.wire_bytes,
        };
        let oldest = self.sample(now);
        let seconds = now.at.duration_since(oldest.at).as_secs_f64();
        let rate = |new: u64, old: u64| per_second(new - old, seconds);
        let mut progress = Progress {
            elapsed: self.elapsed(),
            pages: now.pages,
            pages_per_second: rate(now.pages, oldest.pages),
            queued: self.queued.load(Ordering::Relaxed),
            hosts: self.hosts.load(Ordering::Relaxed),
            links: now.links,
            links_per_second: rate(now.links, oldest.links),
            links_without_store: crate::report::without_store(&saved.counts),
            filter_fill: filter.fill,
            filter_slice_count: filter.slice_count,
            filter_predicted_rate: filter.predicted_rate,
            filter_item_count: filter.item_count,
            filter_expected_count: filter.expected_count,
            filter_growth_error: filter.growth_error,
            awaited: hold(&self.awaited).clone(),
            errors: saved.counts.failed,
            wire_bytes: now.wire_bytes,
            bytes_per_second: rate(now.wire_bytes, oldest.wire_bytes),
            limit_used: None,
            eta: None,
        };
        self.add_limit(&mut progress);
        progress
    }

    /// Adds a sample and returns the oldest of the window.
    fn sample(&self, now: Sample) -> Sample {
        let mut samples = hold(&self.samples);
        while samples
            .front()
            .is_some_and(|old| now.at.duration_since(old.at) > RATE_WINDOW)
        {
            samples.pop_front();
        }
        if samples
            .back()
            .is_none_or(|last| now.at.duration_since(last.at) >= SAMPLE_INTERVAL)
        {
            samples.push_back(now);
        }
        samples.front().copied().unwrap_or(now)
    }

    /// Fills in how near the nearest limit is, and when it will be reached at the recent rate.
    fn add_limit(&self, progress: &mut Progress) {
        let limits = [
            self.limits.max_pages.map(|max| {
                let left = max.saturating_sub(progress.pages);
                (
                    share(progress.pages, max, 1.0),
                    time_at(left, progress.pages_per_second),
                )
            }),
            self.limits.max_bytes.map(|max| {
                let left = max.saturating_sub(progress.wire_bytes);
                (
                    share(progress.wire_bytes, max, 1.0),
                    time_at(left, progress.bytes_per_second),
                )
            }),
            self.limits.max_time.map(|max| {
                let left = max.saturating_sub(progress.elapsed);
                (
                    progress.elapsed.as_secs_f64() / max.as_secs_f64().max(f64::MIN_POSITIVE),
                    Some(left),
                )
            }),
        ];
        let nearest = limits
            .into_iter()
            .flatten()
            .max_by(|one, other| one.0.total_cmp(&other.0));
        progress.limit_used = nearest.map(|(used, _)| used.min(1.0));
        progress.eta = nearest.and_then(|(_, eta)| eta);
    }
}
