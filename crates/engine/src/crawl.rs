//! A running crawl, as its caller sees it: start, watch, stop, wait.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::{Duration, Instant},
};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};
use fastrand::Rng;
use fetcher::{FetchConfig, Fetcher};
use frontier::{Ledger, Scope, ScopeConfig, SeenTest};
use parser::{Parser, ParserConfig};
use types::{CanonicalUrl, Canonicalizer, KeySeed};

use crate::{
    CrawlConfig, EngineError, OpeningEvent, Progress, Report,
    archive::Archivist,
    checkpoint,
    committer::{self, Committer},
    fetching::FetchStage,
    folder::Folder,
    live::Live,
    memory::{MemoryPlan, MemorySizes},
    message::OwnerEvent,
    opening::{self, Opened},
    owner::{Batches, Owner},
    page::ParseStage,
    room::{Backlog, LargePages},
    run::{Channels, Run, Stages},
    seen::SnapshotUse,
    status::StatusWriter,
    watch::{panicked, spawn},
};

/// Pages nested deeper are read without building their tree, whose cost grows with the square of the depth; browsers
/// cut at 512.
const NESTING_MAX: usize = 512;

/// A crawl that runs on threads of its own.
pub struct Crawl {
    live: Arc<Live>,
    seen: Arc<SeenTest>,
    owner: Sender<OwnerEvent>,
    done: Receiver<Result<Report, EngineError>>,
}

impl Crawl {
    /// Opens the data folder and the store, resumes what they hold, and starts to crawl from `seeds`.
    ///
    /// # Errors
    ///
    /// Fails when a setting cannot be used, when another process crawls into the same folder or store, or when one of
    /// them cannot be opened.
    pub fn start(config: CrawlConfig, seeds: &[CanonicalUrl]) -> Result<Self, EngineError> {
        let mut notices = Vec::new();
        let crawl = Self::start_observed(config, seeds, &mut |event| {
            if let OpeningEvent::Notice(notice) = event {
                notices.push(notice);
            }
        })?;
        crawl.live.notice_first(notices);
        Ok(crawl)
    }

    /// Does what [`Crawl::start`] does, and tells `observer` how far it has come: to open a large store takes time.
    ///
    /// # Errors
    ///
    /// As [`Crawl::start`].
    pub fn start_observed(
        config: CrawlConfig,
        seeds: &[CanonicalUrl],
        observer: &mut dyn FnMut(OpeningEvent),
    ) -> Result<Self, EngineError> {
        check(&config)?;
        let plan = MemoryPlan::new(&config)?;
        let config = plan.apply(config);
        let fetch = FetchConfig {
            idle_per_host_max: config.per_host as usize,
            exempts_own_addresses: config.per_ip.is_none(),
            ..config.fetch.clone()
        };
        let fetcher =
            Fetcher::new(fetch).map_err(|error| EngineError::Config(error.to_string()))?;
        let folder = Folder::open(&config.data)?;
        // All seeds ever given: a run that died may have offered only some of its own.
        let seeds = folder.add_seeds(seeds)?;
        let scope = scope(&config, &seeds)?;
        let opened = opening::open(&config, &folder, observer)?;
        let live = Arc::new(Live::new(config.limits, &opened.saved));
        let run = Run::new(config, *plan.bytes(), &live, &opened);
        let sizes = plan.sizes();
        let (stages, seen, owner) =
            assemble(run.config(), sizes, opened, &live, fetcher, scope, seeds)?;
        let (done_sender, done) = bounded(1);
        spawn("crawl", move || {
            let result = catch_unwind(AssertUnwindSafe(|| run.supervise(stages)))
                .unwrap_or_else(|panic| Err(panicked("last", panic.as_ref())));
            // The folder and the store are free for the next process before anyone hears of the end.
            drop(run);
            drop(folder);
            drop(done_sender.send(result));
        })?;
        Ok(Self {
            live,
            seen,
            owner,
            done,
        })
    }

    /// Returns the vital signs.
    #[must_use]
    pub fn progress(&self) -> Progress {
        self.live.progress(&self.seen.stats().filter)
    }

    /// Returns what the user should know beside the result, in the order in which it came up: from the opening, unless an
    /// observer was told, and, once [`Crawl::wait`] has handed out the result, from the end.
    #[must_use]
    pub fn notices(&self) -> Vec<String> {
        self.live.notices()
    }

    /// Asks the crawl to stop: no new request begins, what is under way is finished and written.
    pub fn stop(&self) {
        drop(self.owner.send(OwnerEvent::Stop));
    }

    /// Asks the crawl to stop at once: what is under way is dropped, and fetched again on resume.
    pub fn stop_now(&self) {
        self.live.halt();
        drop(self.owner.send(OwnerEvent::StopNow));
    }

    /// Waits for the end, at most `timeout`. `None`: the crawl still runs. The result is handed out once.
    ///
    /// # Errors
    ///
    /// The inner result is an error when the crawl had to stop for a fault of ours, after which it can be resumed, and
    /// when the result was handed out before.
    #[must_use]
    pub fn wait(&self, timeout: Duration) -> Option<Result<Report, EngineError>> {
        match self.done.recv_timeout(timeout) {
            Ok(result) => Some(result),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => Some(Err(EngineError::Internal(
                "the crawl has ended, and its result was handed out before".to_owned(),
            ))),
        }
    }
}

/// Puts the stages together; they share the seen test, and each holds the channel ends that it needs.
fn assemble(
    config: &CrawlConfig,
    sizes: &MemorySizes,
    opened: Opened,
    live: &Arc<Live>,
    fetcher: Fetcher,
    scope: Scope,
    seeds: Vec<CanonicalUrl>,
) -> Result<(Stages, Arc<SeenTest>, Sender<OwnerEvent>), EngineError> {
    let Opened {
        store,
        seen,
        workbench,
        outputs,
        mut saved,
        key_seed,
        next_sequence,
        mut random,
        snapshot,
        snapshot_use,
    } = opened;
    let channels = Channels::new(config);
    let events = channels.owner.0.clone();
    let parse_stage = parse_stage(config, sizes, scope, &seen, key_seed, random.fork(), live);
    // From here on leases may be under way, and the store must say so before the first is.
    saved.leases_at_risk = u64::from(config.leases_in_force());
    saved.is_finished = false;
    saved.seen_mode = config.seen_mode.to_string();
    let crawl_id = snapshot.crawl_id().to_owned();
    let status = StatusWriter::new(config, crawl_id, events.clone(), &seen, live);
    let (checkpoints, saver) = checkpoint::pair(
        config,
        &seen,
        live,
        snapshot,
        snapshot_use == SnapshotUse::Loaded,
    );
    let committer = Committer {
        store,
        seen: Arc::clone(&seen),
        ledger: Ledger::new(next_sequence),
        outputs,
        checkpoints,
        lost_before: saved.expected_lost,
        saved,
        status,
        backlog: Arc::clone(&parse_stage.backlog),
        live: Arc::clone(live),
        durable: channels.durable.0.clone(),
        next_sync: Instant::now() + committer::SYNC_FIRST,
    };
    let parse = channels.parse.0.clone();
    let owner = Owner {
        workbench,
        fetching: FetchStage::new(fetcher, events.clone(), parse.clone(), Arc::clone(live))?,
        events: channels.owner.1.clone(),
        durable: channels.durable.1.clone(),
        parse,
        commit: channels.commit.0.clone(),
        refill: channels.refill.0.clone(),
        live: Arc::clone(live),
        begun: Instant::now(),
        batches: Batches::default(),
        drain_timeout: config.drain_timeout,
        ending: None,
        held: Vec::new(),
        fault: None,
        told_setback_count: 0,
        told_spent_count: 0,
    };
    let stages = Stages {
        committer,
        saver,
        owner,
        parse_stage,
        seeds,
        channels,
    };
    Ok((stages, seen, events))
}

fn parse_stage(
    config: &CrawlConfig,
    sizes: &MemorySizes,
    scope: Scope,
    seen: &Arc<SeenTest>,
    key_seed: KeySeed,
    random: Rng,
    live: &Arc<Live>,
) -> ParseStage {
    let backlog = Arc::new(Backlog::new(sizes.backlog_bytes));
    let canonicalizer = Canonicalizer::new(config.canonical.clone());
    let parser = Parser::new(ParserConfig {
        outlinks_max: config.outlinks_max,
        product_token: config.product_token().to_owned(),
        canonicalizer: canonicalizer.clone(),
        nesting_max: NESTING_MAX,
    });
    ParseStage {
        parser,
        canonicalizer,
        scope,
        seen: Arc::clone(seen),
        key_seed,
        takes_sitemaps: config.sitemaps,
        outlinks_max: config.outlinks_max,
        decoded_bytes_max: config.fetch.decoded_bytes_max,
        redirect_bytes_max: config.canonical.url_bytes_max,
        product_token: config.product_token().to_owned(),
        obey_nofollow: config.nofollow,
        archivist: config
            .warc
            .then(|| Archivist::new(random, Arc::clone(&backlog))),
        backlog,
        large_pages: LargePages::new(usize::try_from(sizes.large_pages).unwrap_or(usize::MAX)),
        live: Arc::clone(live),
    }
}

/// Refuses settings that no crawl can run with.
fn check(config: &CrawlConfig) -> Result<(), EngineError> {
    let settings = [
        ("concurrency", u64::from(config.concurrency), 100_000),
        ("per-host", u64::from(config.per_host), 100_000),
        ("per-ip", u64::from(config.per_ip.unwrap_or(1)), 100_000),
        ("leases-max", u64::from(config.leases_in_force()), 1_000_000),
        (
            "attempts-max",
            u64::from(config.attempts_max),
            u64::from(u16::MAX),
        ),
        (
            "parse-threads",
            config.parse_threads.unwrap_or(1) as u64,
            1_024,
        ),
    ];
    if config.robots && config.product_token().is_empty() {
        return Err(EngineError::Config(format!(
            "user-agent {:?} must begin with a product token of letters, `-` and `_`, by which robots.txt files can \
             address the crawler (RFC 9309, section 2.2.1)",
            config.fetch.user_agent
        )));
    }
    for (setting, value, max) in settings {
        if value == 0 || value > max {
            return Err(EngineError::Config(format!(
                "{setting} is {value}, but must be between 1 and {max}"
            )));
        }
    }
    Ok(())
}

fn scope(config: &CrawlConfig, seeds: &[CanonicalUrl]) -> Result<Scope, EngineError> {
    let scope = ScopeConfig {
        rule: config.scope,
        include: config.include.clone(),
        exclude: config.exclude.clone(),
        max_depth: config.limits.max_depth,
        redirects_max: config.redirects_max,
        repeats_max: config.repeats_max,
    };
    Scope::new(&scope, seeds).map_err(|error| EngineError::Config(error.to_string()))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a failed set-up fails the test")]

    use frontier::PageToken;

    use super::*;
    use crate::page::ParseOutlets;

    /// Offers one seed, ends the crawl at once or not, lets the committer run, and returns how many URLs it queued.
    fn queued_of_one_seed(is_halted: bool) -> u64 {
        let data = tempfile::tempdir().unwrap();
        let config = CrawlConfig {
            data: data.path().to_owned(),
            ..CrawlConfig::default()
        };
        let seeds = [CanonicalUrl::from_stored("http://a.example/".to_owned()).unwrap()];
        let folder = Folder::open(&config.data).unwrap();
        let opened = opening::open(&config, &folder, &mut |_| {}).unwrap();
        let live = Arc::new(Live::new(config.limits, &opened.saved));
        let fetcher = Fetcher::new(config.fetch.clone()).unwrap();
        let scope = scope(&config, &seeds).unwrap();
        let plan = MemoryPlan::new(&config).unwrap();
        let sizes = plan.sizes();
        let (stages, _, _) =
            assemble(&config, sizes, opened, &live, fetcher, scope, Vec::new()).unwrap();
        let Channels {
            owner: (owner, _events),
            durable: (durable_sender, durable),
            commit: (commit, settlements),
            side: (side, side_messages),
            suspects: (suspects, _),
            ..
        } = stages.channels;
        let outlets = ParseOutlets {
            owner,
            commit,
            side,
            suspects,
        };
        stages
            .parse_stage
            .offer_seeds(PageToken(u64::MAX), &seeds, &outlets)
            .unwrap();
        drop((outlets, stages.owner, durable_sender));
        if is_halted {
            live.halt();
        }
        let (saved, _) = stages.committer.run(&settlements, &side_messages).unwrap();
        let told_count: usize = durable.iter().map(|durable| durable.notes.len()).sum();
        assert_eq!(told_count as u64, saved.counts.queued);
        saved.counts.queued
    }

    #[test]
    fn what_is_ready_to_be_written_is_dropped_by_a_crawl_that_ends_at_once() {
        assert_eq!(queued_of_one_seed(false), 1);
        assert_eq!(queued_of_one_seed(true), 0);
    }
}
