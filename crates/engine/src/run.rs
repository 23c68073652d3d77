//! The supervisor of a crawl: runs the stages on their threads, ends them in order, and writes the report.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    thread::JoinHandle,
};

use crossbeam_channel::{Receiver, Sender, bounded};
use frontier::{PageToken, SeenMode, SeenTest};
use store::{CommitBatch, Store};
use types::{Candidate, CanonicalUrl};

use crate::{
    CrawlConfig, EngineError, FilterReport, LinkReport, MemoryParts, Outcome, OutputReport, Report,
    StoreReport,
    checkpoint::Saver,
    committer::Committer,
    confirmer, key_log,
    live::Live,
    message::{Durable, OwnerEvent, ParseJob, Settlement, SideMessage},
    opening::Opened,
    output::{PAGES_FILE, WARC_FOLDER},
    owner::{Ended, Ending, Owner, RefillRequest},
    page::{ParseOutlets, ParseStage},
    patience::patiently,
    ratio::per_second,
    report,
    saved::SavedProgress,
    seen::SnapshotUse,
    snapshot::{self, SnapshotLabel},
    status::StatusWriter,
    watch::{Watch, panicked},
};

/// Events of the owner that may wait; senders block beyond, and the owner never does.
const OWNER_EVENTS_MAX: usize = 4_096;
/// Commits of which the owner may still have to be told; a commit waits beyond, so that the URLs on their way to the windows
/// are few.
const COMMITS_MAX: usize = 1;
/// Messages beside the settlements of leases that may wait.
const SIDE_MESSAGES_MAX: usize = 64;
/// Batches of suspects that may wait.
const SUSPECT_BATCHES_MAX: usize = 1_024;
/// Refills that may wait: more than the workbench has under way at a time (64), so that the owner never blocks.
const REFILLS_MAX: usize = 256;
/// Seeds in one batch.
const SEED_BATCH: usize = 1_000;

/// Both ends of every channel.
pub(crate) struct Channels {
    pub(crate) owner: (Sender<OwnerEvent>, Receiver<OwnerEvent>),
    pub(crate) durable: (Sender<Durable>, Receiver<Durable>),
    pub(crate) parse: (Sender<ParseJob>, Receiver<ParseJob>),
    pub(crate) commit: (Sender<Box<Settlement>>, Receiver<Box<Settlement>>),
    pub(crate) side: (Sender<SideMessage>, Receiver<SideMessage>),
    pub(crate) suspects: (Sender<Vec<Candidate>>, Receiver<Vec<Candidate>>),
    pub(crate) refill: (Sender<RefillRequest>, Receiver<RefillRequest>),
}

impl Channels {
    /// Makes the channels; those of the owner have room for every lease.
    pub(crate) fn new(config: &CrawlConfig) -> Self {
        // Each lease has at most one message in either channel.
        let leases = config.leases_in_force() as usize + config.concurrency as usize + 1;
        Self {
            owner: bounded(OWNER_EVENTS_MAX),
            durable: bounded(COMMITS_MAX),
            parse: bounded(leases),
            commit: bounded(leases),
            side: bounded(SIDE_MESSAGES_MAX),
            suspects: bounded(SUSPECT_BATCHES_MAX),
            refill: bounded(REFILLS_MAX),
        }
    }
}

/// The stages before they run.
pub(crate) struct Stages {
    pub(crate) committer: Committer,
    pub(crate) saver: Saver,
    pub(crate) owner: Owner,
    pub(crate) parse_stage: ParseStage,
    pub(crate) seeds: Vec<CanonicalUrl>,
    pub(crate) channels: Channels,
}

/// What the supervisor keeps for the report.
pub(crate) struct Run {
    config: CrawlConfig,
    memory: MemoryParts,
    live: Arc<Live>,
    seen: Arc<SeenTest>,
    store: Arc<dyn Store>,
    before: SavedProgress,
    snapshot: SnapshotLabel,
    snapshot_use: SnapshotUse,
}

impl Run {
    /// Remembers the progress of earlier runs.
    pub(crate) fn new(
        config: CrawlConfig,
        memory: MemoryParts,
        live: &Arc<Live>,
        opened: &Opened,
    ) -> Self {
        Self {
            config,
            memory,
            live: Arc::clone(live),
            seen: Arc::clone(&opened.seen),
            store: Arc::clone(&opened.store),
            before: opened.saved.clone(),
            snapshot: opened.snapshot.clone(),
            snapshot_use: opened.snapshot_use,
        }
    }

    /// Returns the settings.
    pub(crate) const fn config(&self) -> &CrawlConfig {
        &self.config
    }

    /// Runs every stage to its end. A stage that fails ends the crawl, and its error is the crawl's.
    pub(crate) fn supervise(&self, stages: Stages) -> Result<Report, EngineError> {
        let Stages {
            committer,
            saver,
            owner,
            parse_stage,
            seeds,
            channels,
        } = stages;
        let (saved_sender, saved) = bounded(1);
        let watch = Watch::new(channels.owner.0.clone(), &self.live);
        let threads = self.start_stages(
            committer,
            parse_stage,
            seeds,
            channels,
            &watch,
            saved_sender,
        );
        let threads = threads.and_then(|mut threads| {
            threads.push(watch.stage("checkpoint", move || {
                saver.run();
                Ok(())
            })?);
            Ok(threads)
        });
        let ending = threads.and_then(|threads| {
            let ending = catch_unwind(AssertUnwindSafe(|| owner.run()))
                .map_err(|panic| panicked("owner", panic.as_ref()));
            let ending = ending
                .inspect_err(|_| self.live.halt())
                .map(Ended::await_commits);
            for thread in threads {
                // A panic inside was caught and is among the faults.
                drop(thread.join());
            }
            ending
        });
        if let Some(fault) = watch.first_fault() {
            return Err(fault);
        }
        let mut ending = ending?;
        if let Some(fault) = ending.fault.take() {
            return Err(fault);
        }
        let (saved, status) = saved.recv().map_err(|_| {
            EngineError::Internal("the commit stage ended without its progress".to_owned())
        })?;
        self.conclude(&ending, saved, &status)
    }

    /// Starts every stage but the owner's. Each holds the channel ends that it needs and no other: a channel whose last
    /// sender or receiver is gone is how a stage learns that the crawl ends.
    fn start_stages(
        &self,
        committer: Committer,
        parse_stage: ParseStage,
        seeds: Vec<CanonicalUrl>,
        channels: Channels,
        watch: &Watch,
        saved: Sender<(SavedProgress, StatusWriter)>,
    ) -> Result<Vec<JoinHandle<()>>, EngineError> {
        let Channels {
            owner: (events, _),
            durable: _,
            parse: (parse_sender, jobs),
            commit: (settlements_sender, settlements),
            side: (side, side_messages),
            suspects: (suspects_sender, suspects),
            refill: (refill_sender, refills),
        } = channels;
        drop((parse_sender, refill_sender));
        let outlets = ParseOutlets {
            owner: events.clone(),
            commit: settlements_sender,
            side: side.clone(),
            suspects: suspects_sender,
        };
        let mut threads = vec![watch.stage("commit", move || {
            drop(saved.send(committer.run(&settlements, &side_messages)?));
            Ok(())
        })?];
        let (store, seen, live) = self.shared();
        let leases_max = self.config.leases_in_force();
        threads.push(watch.stage("confirm", move || {
            confirmer::run(store.as_ref(), &seen, &live, &suspects, &side, leases_max)
        })?);
        let (store, _, live) = self.shared();
        threads.push(watch.stage("refill", move || {
            run_refills(store.as_ref(), &live, &refills, &events)
        })?);
        let parse_stage = Arc::new(parse_stage);
        for _ in 0..self.config.parse_threads_in_force() {
            let (stage, jobs, outlets) = (Arc::clone(&parse_stage), jobs.clone(), outlets.clone());
            threads.push(watch.stage("parse", move || {
                stage.run(&jobs, &outlets);
                Ok(())
            })?);
        }
        threads.push(watch.stage("seeds", move || {
            offer_seeds(&parse_stage, &seeds, &outlets);
            Ok(())
        })?);
        Ok(threads)
    }

    fn shared(&self) -> (Arc<dyn Store>, Arc<SeenTest>, Arc<Live>) {
        (
            Arc::clone(&self.store),
            Arc::clone(&self.seen),
            Arc::clone(&self.live),
        )
    }

    /// Stores how the run ended and writes the report.
    fn conclude(
        &self,
        ending: &Ending,
        mut saved: SavedProgress,
        status: &StatusWriter,
    ) -> Result<Report, EngineError> {
        if ending.is_drained {
            saved.leases_at_risk = 0;
        }
        saved.is_finished = ending.outcome == Outcome::Finished;
        if saved.is_finished && saved.counts.queued != 0 {
            return Err(EngineError::Internal(format!(
                "nothing is left to fetch, but {} URLs are queued in the store",
                saved.counts.queued
            )));
        }
        let progress = saved.to_bytes();
        patiently(&self.live, || {
            self.store.commit(&CommitBatch {
                notes: &[],
                finished: &[],
                progress: &progress,
            })
        })?;
        patiently(&self.live, || self.store.sync())?;
        if let Err(error) = self.keep_snapshot(&saved) {
            // The store has all that matters; the next run only starts more slowly.
            self.live.notice(format!(
                "the filter was not kept for the next run, which will rebuild it from the store: {error}"
            ));
        }
        let nothing_done = self.live.request_count() == 0
            && saved.counts.finished() == self.before.counts.finished();
        let outcome = if saved.is_finished && self.before.is_finished && nothing_done {
            Outcome::AlreadyFinished
        } else {
            ending.outcome
        };
        status.conclude(&saved, outcome, &ending.waiting);
        Ok(self.report(outcome, saved))
    }

    /// Keeps the filter for the next run. Keys that are held exactly are not kept twice: those of a small crawl are read
    /// from the store quickly enough.
    fn keep_snapshot(&self, saved: &SavedProgress) -> Result<(), EngineError> {
        let data = &self.config.data;
        let stats = self.seen.stats();
        let key_count = saved.counts.queued + saved.counts.finished();
        let label = self.snapshot.at(key_count, saved.key_sum);
        if self.snapshot_use != SnapshotUse::None && label == self.snapshot {
            // Nothing is new, so the one that is there is as good as ever.
            return Ok(());
        }
        if stats.filter.is_exact || stats.filter.size_bytes == 0 {
            key_log::remove(data, ..);
            return snapshot::remove(data);
        }
        // After a stop at once, what was dropped under way is in the filter, but not in the store. Where nobody asks the
        // store, that would be lost.
        let is_in_store = stats.suspect_count == 0
            && stats.unwritten_count == 0
            && stats.next_sequence == key_count;
        if stats.mode == SeenMode::Bloom && !is_in_store {
            return Ok(());
        }
        snapshot::save(data, &label, &self.seen)?;
        key_log::remove(data, ..);
        Ok(())
    }

    fn report(&self, outcome: Outcome, saved: SavedProgress) -> Report {
        let elapsed_seconds = self.live.elapsed().as_secs_f64();
        let pages_this_run = saved.totals.pages - self.before.totals.pages;
        let backend = self.config.store.backend();
        let filter = FilterReport::new(&self.seen.stats(), &saved);
        Report {
            outcome,
            elapsed_seconds,
            pages: saved.totals.pages,
            pages_this_run,
            pages_per_second: per_second(pages_this_run, elapsed_seconds),
            wire_bytes: saved.totals.wire_bytes,
            body_bytes: saved.totals.body_bytes,
            bytes_per_second: per_second(
                saved.totals.wire_bytes - self.before.totals.wire_bytes,
                elapsed_seconds,
            ),
            by_status_class: saved.totals.by_status_class,
            failures: saved.totals.failures,
            requests_this_run: self.live.request_count(),
            identity_holds: saved.counts.identity_holds(),
            links: LinkReport::new(&saved.counts),
            filter,
            counts: saved.counts,
            store: StoreReport::new(backend, self.store.counters()),
            leases_max: u64::from(self.config.leases_in_force()),
            resumed_leases_max: self.before.leases_at_risk,
            peak_memory_bytes: report::peak_memory_bytes(),
            memory_plan_bytes: self.memory,
            outputs: OutputReport {
                pages_jsonl: self.config.data.join(PAGES_FILE).display().to_string(),
                warc_folder: self
                    .config
                    .warc
                    .then(|| self.config.data.join(WARC_FOLDER).display().to_string()),
            },
        }
    }
}

/// Reads queues from the store until no one asks any more, or the crawl ends at once.
fn run_refills(
    store: &dyn Store,
    live: &Live,
    requests: &Receiver<RefillRequest>,
    events: &Sender<OwnerEvent>,
) -> Result<(), EngineError> {
    for RefillRequest { host, from, limit } in requests {
        if live.is_halted() {
            break;
        }
        let urls = patiently(live, || store.read_queue(&host, from, limit))?;
        if events.send(OwnerEvent::Refilled(host, urls)).is_err() {
            break;
        }
    }
    Ok(())
}

/// Offers the seeds in batches, each under a token of its own, counted down from the top so that none is a lease's.
fn offer_seeds(stage: &ParseStage, seeds: &[CanonicalUrl], outlets: &ParseOutlets) {
    let mut batch_count = 0;
    for batch in seeds.chunks(SEED_BATCH) {
        if stage
            .offer_seeds(PageToken(u64::MAX - batch_count), batch, outlets)
            .is_none()
        {
            return;
        }
        batch_count += 1;
    }
    drop(outlets.owner.send(OwnerEvent::SeedsOffered(batch_count)));
}
