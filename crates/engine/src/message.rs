//! What the stages of a crawl send each other. Every channel is bounded, and the owner of the workbench never blocks:
//! its channels hold as many messages as there can be leases.

use crossbeam_channel::Sender;
use fetcher::BodyHold;
use frontier::{Admission, PageToken, RobotsAnswer, Settled, WaitingHosts};
use jiff::Timestamp;
use types::{
    Disposition, FetchOutcome, Host, Lease, LeaseId, PageRecord, PageTally, QueuedUrl, Resolution,
};

use crate::{EngineError, room::HeldBytes};

/// What reaches the owner of the workbench.
pub(crate) enum OwnerEvent {
    /// The request of a page lease ended.
    Fetched(Box<FetchedPage>),
    /// A robots lease ended.
    Robots {
        /// The lease.
        lease: LeaseId,
        /// With this answer.
        answer: RobotsAnswer,
        /// How many batches of sitemaps were offered with it.
        batch_count: u64,
    },
    /// A host was resolved.
    Resolved(Host, Resolution),
    /// The store's answer to a refill.
    Refilled(Host, Vec<QueuedUrl>),
    /// Tell which hosts have work.
    CountHosts(Sender<WaitingHosts>),
    /// All seeds were offered, in so many batches.
    SeedsOffered(u64),
    /// Stop: let the leases drain.
    Stop,
    /// Stop at once.
    StopNow,
    /// Stop at once, for this reason.
    Fault(EngineError),
}

/// What a commit made durable, for the owner.
pub(crate) struct Durable {
    /// Newly queued URLs.
    pub(crate) notes: Vec<QueuedUrl>,
    /// Leases that are over.
    pub(crate) leases: Vec<LeaseId>,
    /// Batches of seeds or sitemaps of which every URL is settled.
    pub(crate) batch_count: u64,
}

/// A page lease with what came of it.
pub(crate) struct FetchedPage {
    /// The lease.
    pub(crate) lease: Lease,
    /// What came of it.
    pub(crate) outcome: FetchOutcome,
    /// When the request began.
    pub(crate) fetched_at: Timestamp,
    /// The memory that its body takes, given back with it.
    pub(crate) hold: Option<BodyHold>,
}

/// Work for the parse threads.
pub(crate) enum ParseJob {
    /// A page whose outcome is kept.
    Page(Box<FetchedPage>),
    /// A robots.txt answer.
    Robots(Box<FetchedPage>),
}

/// What reaches the committer beside the settlements of leases. It has a channel of its own, on which senders may
/// block: the channel of settlements must always have room for every lease, or the owner could block.
pub(crate) enum SideMessage {
    /// Suspects were settled.
    Verdicts {
        /// What became of each.
        settled: Vec<Settled>,
        /// What those of them that are no new links had in the backlog, in bytes.
        seen_link_bytes: u64,
    },
    /// A batch of seeds, or of the sitemaps of a robots.txt file, was settled as far as memory can tell.
    Batch(Box<Settlement>),
    /// Records for the archive that belong to no page.
    Archive(HeldBytes),
}

/// A page (or batch of seeds or sitemaps) with everything that must be durable before it is finished.
pub(crate) struct Settlement {
    /// Its name in the seen test and the ledger.
    pub(crate) token: PageToken,
    /// What the seen test said of its candidates, suspects already handed to the confirmer.
    pub(crate) admission: Admission,
    /// What remains to be written once they are settled.
    pub(crate) finish: Finish,
}

/// What is written when a page is finished.
pub(crate) struct Finish {
    /// The candidates that ended in memory.
    pub(crate) tally: PageTally,
    /// The page; `None` for a batch of seeds or sitemaps.
    pub(crate) page: Option<FinishedPage>,
}

/// A finished page on its way to the outputs.
pub(crate) struct FinishedPage {
    /// The lease that ends.
    pub(crate) lease: LeaseId,
    /// Its queue entry.
    pub(crate) queued: QueuedUrl,
    /// How it ended.
    pub(crate) disposition: Disposition,
    /// The record, without its place in the WARC files.
    pub(crate) record: PageRecord,
    /// Its WARC records, compressed.
    pub(crate) warc: Option<WarcMembers>,
}

/// The compressed WARC records of one exchange.
pub(crate) struct WarcMembers {
    /// Gzip members, one a record.
    pub(crate) bytes: HeldBytes,
    /// Where the response record begins within them.
    pub(crate) response_offset: u64,
    /// Its compressed length.
    pub(crate) response_bytes: u64,
}
