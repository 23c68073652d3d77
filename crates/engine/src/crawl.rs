//! A running crawl, as its caller sees it: start, watch, stop, wait.

use std::{
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use crossbeam_channel::{Receiver, Sender, bounded};
use fetcher::{FetchConfig, Fetcher};
use frontier::{Ledger, Scope, ScopeConfig, SeenTest};
use parser::{Parser, ParserConfig};
use types::{CanonicalUrl, Canonicalizer, KeySeed};

use crate::{
    CrawlConfig, EngineError, Progress, Report,
    archive::Archivist,
    committer::Committer,
    fetching::FetchStage,
    live::Live,
    message::OwnerEvent,
    opening::{self, Opened},
    owner::{Owner, SeedBatches},
    page::ParseStage,
    run::{Channels, Run, Stages},
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
    pub fn start(config: CrawlConfig, seeds: Vec<CanonicalUrl>) -> Result<Self, EngineError> {
        check(&config)?;
        let fetch = FetchConfig {
            idle_per_host_max: config.per_host as usize,
            ..config.fetch.clone()
        };
        let fetcher =
            Fetcher::new(fetch).map_err(|error| EngineError::Config(error.to_string()))?;
        let scope = scope(&config, &seeds)?;
        let Opened {
            store,
            seen,
            workbench,
            outputs,
            mut saved,
            key_seed,
            next_sequence,
            mut random,
            lock,
        } = opening::open(&config)?;
        let live = Arc::new(Live::new(config.limits, &saved));
        let seen = Arc::new(seen);
        let channels = Channels::new(&config);
        let owner = channels.owner.0.clone();
        let archivist = config.warc.then(|| Archivist::new(random.fork()));
        let parse_stage = parse_stage(&config, scope, &seen, key_seed, archivist);
        let run = Run::new(config, &live, &seen, &store, &saved);
        saved.leases_at_risk = u64::from(run.leases_max());
        saved.is_finished = false;
        let committer = Committer {
            store,
            seen: Arc::clone(&seen),
            ledger: Ledger::new(next_sequence),
            outputs,
            saved,
            live: Arc::clone(&live),
            owner: owner.clone(),
            last_sync: Instant::now(),
        };
        let fetching = FetchStage::new(
            fetcher,
            owner.clone(),
            channels.parse.0.clone(),
            Arc::clone(&live),
        )?;
        let owner_stage = Owner {
            workbench,
            fetching,
            events: channels.owner.1.clone(),
            parse: channels.parse.0.clone(),
            commit: channels.commit.0.clone(),
            refill: channels.refill.0.clone(),
            live: Arc::clone(&live),
            begun: Instant::now(),
            seeds: SeedBatches::default(),
            ending: None,
        };
        let stages = Stages {
            committer,
            owner: owner_stage,
            parse_stage,
            seeds,
            channels,
        };
        let (done_sender, done) = bounded(1);
        spawn("crawl", move || {
            let result = run.supervise(stages);
            // The folder and the store are free for the next process before anyone hears of the end.
            drop(run);
            drop(lock);
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
        self.live.progress(self.seen.stats().filter_fill)
    }

    /// Asks the crawl to stop: no new request begins, what is under way is finished and written.
    pub fn stop(&self) {
        drop(self.owner.send(OwnerEvent::Stop));
    }

    /// Asks the crawl to stop at once: what is under way is dropped, and fetched again on resume.
    pub fn stop_now(&self) {
        drop(self.owner.send(OwnerEvent::StopNow));
    }

    /// Waits for the end, at most `timeout`. `None`: the crawl still runs, or its result was handed out before.
    ///
    /// # Errors
    ///
    /// The inner result is an error when the crawl had to stop for a fault of ours; it can be resumed.
    #[must_use]
    pub fn wait(&self, timeout: Duration) -> Option<Result<Report, EngineError>> {
        self.done.recv_timeout(timeout).ok()
    }
}

fn parse_stage(
    config: &CrawlConfig,
    scope: Scope,
    seen: &Arc<SeenTest>,
    key_seed: KeySeed,
    archivist: Option<Archivist>,
) -> ParseStage {
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
        decoded_bytes_max: config.fetch.decoded_bytes_max,
        product_token: config.product_token().to_owned(),
        obey_nofollow: config.nofollow,
        archivist,
    }
}

/// Refuses settings that no crawl can run with.
fn check(config: &CrawlConfig) -> Result<(), EngineError> {
    let refuse =
        |setting: &str, right: &str| Err(EngineError::Config(format!("{setting} must be {right}")));
    if config.concurrency == 0 || config.concurrency > 100_000 {
        return refuse("concurrency", "between 1 and 100,000");
    }
    if config.per_host == 0 || config.per_ip == Some(0) {
        return refuse("per-host and per-ip", "at least 1");
    }
    if config.leases_max == Some(0) {
        return refuse("leases-max", "at least 1");
    }
    if config.attempts_max == 0 {
        return refuse("attempts-max", "at least 1");
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
    };
    Scope::new(&scope, seeds).map_err(|error| EngineError::Config(error.to_string()))
}

pub(crate) fn spawn(
    name: &str,
    work: impl FnOnce() + Send + 'static,
) -> Result<thread::JoinHandle<()>, EngineError> {
    thread::Builder::new()
        .name(name.to_owned())
        .spawn(work)
        .map_err(|error| EngineError::Internal(format!("the {name} thread did not start: {error}")))
}
