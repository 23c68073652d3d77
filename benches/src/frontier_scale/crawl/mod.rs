//! The crawl: owner, parse threads, confirmer, committer and refills, joined as the engine joins them. A fetch takes no
//! time, every host is polite at once, and no robots.txt forbids anything.

mod committer;
mod owner;
mod parse;
mod refill;

use std::{thread, time::Duration};

use anyhow::{Context as _, Result, anyhow};
use crossbeam_channel::{Receiver, Sender, bounded};
use frontier::{Scope, SeenTest, Settled, Workbench, WorkbenchConfig};
use store::{FinishedUrl, Store};
use types::{Candidate, Host, Lease, LeaseId, PageTally, QueuePosition, QueuedUrl};

pub use self::refill::{ReadMeter, Reads};
use self::{committer::Committer, owner::Owner, parse::Outlets};
use super::{mark::Marks, web::Web};
use crate::{
    committing,
    seen_test::{
        driver::{confirmer, scope_of_everything},
        meter::Aside,
    },
};

/// Events of the owner that may wait, as in the engine.
const OWNER_EVENTS_MAX: usize = 4_096;
/// Messages beside the settlements of leases that may wait, as in the engine.
const VERDICTS_MAX: usize = 64;
/// Pages' suspects that may wait for the confirmer, as in the engine.
const SUSPECT_BATCHES_MAX: usize = 1_024;
/// Refills that may wait, as in the engine.
const REFILLS_MAX: usize = 256;
/// One in so many leases may wait for verdicts before they are asked for, as in the engine.
const WAITING_SHARE: u32 = 4;
/// If nothing happens for so long, a stage has failed.
const SILENCE_MAX: Duration = Duration::from_mins(2);

/// What the crawl works on.
pub struct Crawl<'a> {
    /// The pages and their links.
    pub web: &'a Web,
    /// Seeds: the web's first URLs.
    pub seed_count: u64,
    /// The store, empty.
    pub store: &'a dyn Store,
    /// The seen test, which knows nothing.
    pub seen: &'a SeenTest,
    /// The account of what the harness itself takes.
    pub aside: &'a Aside,
    /// The account of reads of the queue.
    pub reads: &'a ReadMeter,
    /// Threads that make links and admit them.
    pub thread_count: usize,
    /// Page leases that are not durably released.
    pub leases_max: u32,
    /// The seed of the random numbers.
    pub seed: u64,
}

/// What reaches the owner of the workbench.
enum OwnerEvent {
    Refilled(Host, Vec<QueuedUrl>),
    Durable {
        notes: Vec<QueuedUrl>,
        leases: Vec<LeaseId>,
        counts: Counts,
    },
}

/// Sums over the commits so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    /// URLs admitted, durably.
    pub known: u64,
    /// Pages finished, durably.
    pub finished: u64,
    /// Links whose fate is durable.
    pub links: u64,
}

/// A host's queue to be read from the store.
struct RefillRequest {
    host: Host,
    from: QueuePosition,
    limit: usize,
}

type Settlement = committing::Settlement<Finish>;

/// What is written when a page is finished.
struct Finish {
    tally: PageTally,
    /// `None` for the seeds.
    page: Option<(LeaseId, FinishedUrl)>,
}

/// Both ends of every channel.
struct Channels {
    events: (Sender<OwnerEvent>, Receiver<OwnerEvent>),
    pages: (Sender<Lease>, Receiver<Lease>),
    settlements: (Sender<Settlement>, Receiver<Settlement>),
    verdicts: (Sender<Vec<Settled>>, Receiver<Vec<Settled>>),
    suspects: (Sender<Vec<Candidate>>, Receiver<Vec<Candidate>>),
    refills: (Sender<RefillRequest>, Receiver<RefillRequest>),
}

impl Channels {
    fn new(leases_max: u32) -> Self {
        let leases = leases_max as usize + 1;
        Self {
            events: bounded(OWNER_EVENTS_MAX),
            pages: bounded(leases),
            settlements: bounded(leases),
            verdicts: bounded(VERDICTS_MAX),
            suspects: bounded(SUSPECT_BATCHES_MAX),
            refills: bounded(REFILLS_MAX),
        }
    }
}

impl Crawl<'_> {
    /// Crawls until `marks` has seen enough. Every stage holds the channel ends that it needs and no other, so that one that
    /// fails ends the others.
    ///
    /// # Errors
    ///
    /// Fails when the store does, or when the crawl comes to a standstill.
    pub fn run(&self, marks: &mut Marks<'_>) -> Result<()> {
        let scope = Scope::new(&scope_of_everything(), &[])?;
        let channels = Channels::new(self.leases_max);
        thread::scope(|threads| {
            let Channels {
                events: (events_sender, events),
                pages: (pages_sender, pages),
                settlements: (settlements_sender, settlements),
                verdicts: (verdicts_sender, verdicts),
                suspects: (suspects_sender, suspects),
                refills: (refills_sender, refills),
            } = channels;
            let committer = Committer::new(self, events_sender.clone());
            let stages = [
                threads.spawn(move || committer.run(settlements, verdicts)),
                threads.spawn(move || {
                    let pages_max = (self.leases_max / WAITING_SHARE) as usize;
                    confirmer::run(self.store, self.seen, suspects, verdicts_sender, pages_max)
                }),
                threads.spawn(move || refill::run(self.store, self.reads, refills, events_sender)),
            ];
            let outlets = Outlets {
                settlements: settlements_sender,
                suspects: suspects_sender,
            };
            for thread in 0..self.thread_count.max(1) {
                let (pages, outlets, scope) = (pages.clone(), outlets.clone(), &scope);
                threads.spawn(move || parse::run(self, scope, thread as u64, &pages, &outlets));
            }
            drop(pages);
            parse::offer_seeds(self, &scope, &outlets);
            drop(outlets);
            let owner = Owner {
                workbench: Workbench::new(self.workbench_config(), 0, 0),
                events,
                pages: pages_sender,
                refills: refills_sender,
                now: Duration::ZERO,
            };
            let ended = owner.run(marks);
            for stage in stages {
                stage.join().map_err(|_| anyhow!("a stage panicked"))??;
            }
            ended.context("the crawl stands still")
        })
    }

    fn workbench_config(&self) -> WorkbenchConfig {
        WorkbenchConfig {
            concurrency: (self.leases_max / 2).max(1),
            leases_max: self.leases_max,
            delay: Duration::ZERO,
            ..WorkbenchConfig::default()
        }
    }
}
