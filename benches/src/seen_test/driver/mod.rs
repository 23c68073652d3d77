//! The driver: takes a link stream through seen test and store as the engine does, without fetching and parsing.
//!
//! Parse threads admit page by page, a confirmer asks the store about suspects in sorted batches, a committer owns the
//! ledger and writes notes in batches. What is measured begins with canonical URLs (each copied, as parsing would make
//! it, and its key computed) and ends when every note is durable.

mod committer;
pub(crate) mod confirmer;
mod parse;

use std::{thread, time::Instant};

use anyhow::{Context as _, Result, anyhow, ensure};
use crossbeam_channel::bounded;
use frontier::{Scope, ScopeConfig, ScopeRule, SeenConfig, SeenStats, SeenTest};
use store::Store;
use types::{CrawlCounts, KeySeed, PageTally};

use self::{committer::Committer, parse::Outlets};
use crate::{
    committing,
    seen_test::{meter::Aside, stream::LinkStream, truth::Truth},
};

/// The seed of the keys; any will do.
pub const KEY_SEED: KeySeed = KeySeed::new(0x005e_ed1e_57b3_9ac4);

/// Batches of verdicts that may wait for the committer, as in the engine.
const VERDICTS_MAX: usize = 64;
/// Pages' suspects that may wait for the confirmer, as in the engine.
const SUSPECT_BATCHES_MAX: usize = 1_024;

type Settlement = committing::Settlement<PageTally>;

/// What the driver works on.
pub struct Driver<'a> {
    /// The links.
    pub stream: &'a dyn LinkStream,
    /// The store, empty.
    pub store: &'a dyn Store,
    /// The books that losses and doubles are found by.
    pub truth: &'a Truth,
    /// The account of what is not measured.
    pub aside: &'a Aside,
    /// Threads that admit pages, at least 1.
    pub thread_count: usize,
    /// Pages under way between the stream and the last of their commits, at least 1: the engine's leases.
    pub pages_max: usize,
}

/// How a stream went through.
#[derive(Clone, Debug)]
pub struct Driven {
    /// The accounts, by tier.
    pub counts: CrawlCounts,
    /// The seen test's vital signs at the end.
    pub stats: SeenStats,
    /// Seconds from the first page to the last commit.
    pub wall_seconds: f64,
}

impl Driver<'_> {
    /// Takes the whole stream through a new seen test.
    ///
    /// # Errors
    ///
    /// Fails when the filter cannot be made, the store fails, or the accounts do not add up.
    pub fn run(&self, config: &SeenConfig) -> Result<Driven> {
        let start = Instant::now();
        let seen = SeenTest::new(config, 0).context("the filter cannot be made")?;
        let counts = self.drive(&seen)?;
        let wall_seconds = start.elapsed().as_secs_f64();
        ensure!(
            counts.identity_holds(),
            "{} links were discovered, and {} are accounted for: {counts:?}",
            counts.discovered,
            counts.accounted()
        );
        let stats = seen.stats();
        ensure!(
            (stats.suspect_count, stats.unwritten_count) == (0, 0),
            "something is left in flight: {stats:?}"
        );
        Ok(Driven {
            counts,
            stats,
            wall_seconds,
        })
    }

    /// Runs every stage to its end. Each holds the channel ends that it needs and no other, so that one that fails ends
    /// the others.
    fn drive(&self, seen: &SeenTest) -> Result<CrawlCounts> {
        let scope = Scope::new(&scope_of_everything(), &[])?;
        let (permits_sender, permits) = bounded(self.pages_max.max(1));
        let (settlements_sender, settlements) = bounded(self.pages_max.max(1));
        let (verdicts_sender, verdicts) = bounded(VERDICTS_MAX);
        let (suspects_sender, suspects) = bounded(SUSPECT_BATCHES_MAX);
        thread::scope(|threads| {
            let committer = Committer {
                driver: self,
                seen,
                counts: CrawlCounts::default(),
                permits,
            };
            let committer = threads.spawn(move || committer.run(settlements, verdicts));
            let confirmer =
                // No page holds a connection, so any number of them may wait.
                threads.spawn(move || confirmer::run(self.store, seen, suspects, verdicts_sender, usize::MAX));
            for _ in 0..self.thread_count.max(1) {
                let outlets = Outlets {
                    permits: permits_sender.clone(),
                    settlements: settlements_sender.clone(),
                    suspects: suspects_sender.clone(),
                };
                let scope = &scope;
                threads.spawn(move || parse::run(self, seen, scope, &outlets));
            }
            drop((permits_sender, settlements_sender, suspects_sender));
            confirmer
                .join()
                .map_err(|_| anyhow!("the confirmer panicked"))??;
            committer
                .join()
                .map_err(|_| anyhow!("the committer panicked"))?
        })
    }
}

/// Returns the scope that every URL is in.
pub(crate) fn scope_of_everything() -> ScopeConfig {
    ScopeConfig {
        rule: ScopeRule::Any,
        include: Vec::new(),
        exclude: Vec::new(),
        max_depth: None,
        redirects_max: 5,
        repeats_max: u16::MAX,
    }
}
