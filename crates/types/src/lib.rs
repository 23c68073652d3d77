//! The nouns that Bloomcrawl's crates hand to each other, and canonicalization, the only maker of
//! [`CanonicalUrl`] and [`UrlKey`]. This crate knows no I/O, no clock, no threads.

mod candidate;
mod canonical;
mod counts;
mod host;
mod key;
mod outcome;
mod page;
mod queue;
mod text;

pub use candidate::{Candidate, RejectReason, Verdict, Via};
pub use canonical::{CanonicalOptions, CanonicalUrl, Canonicalizer, QueryEncoder, UrlRejection};
pub use counts::{CrawlCounts, DuplicateCounts, PageTally};
pub use host::Host;
pub use key::{KEY_VERSION, KeySeed, Partition, UrlKey};
pub use outcome::{
    FailureKind, FetchFailure, FetchOutcome, Headers, HttpVersion, Redirect, Resolution, Response,
    RetryClass, Timings, Truncation,
};
pub use page::{Directives, Disposition, LinkKind, Outlink, PageRecord, ParsedPage, WarcLocation};
pub use queue::{AwaitedHost, Lease, LeaseId, Purpose, QueuePosition, QueuedUrl};
pub use text::is_unprintable;
