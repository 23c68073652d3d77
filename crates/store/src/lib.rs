//! What survives a restart: keys, queue, page records, crawl metadata. One interface, [`Store`], with two backends
//! that obey one behaviour suite. This crate knows neither the filter nor politeness.

mod contract;
mod counters;
pub mod embedded;
mod error;
pub mod postgres;
mod stored;
#[cfg(feature = "testing")]
pub mod testing;

pub use contract::{CommitBatch, CrawlIdentity, FinishedUrl, OpenedStore, Store};
pub use counters::StoreCounters;
pub use error::StoreError;
