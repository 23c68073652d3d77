//! The contract: the [`Store`] trait and the values that cross it.

use types::{Host, QueuePosition, QueuedUrl, UrlKey};

use crate::{StoreCounters, StoreError};

/// The durable state of one crawl.
///
/// Methods block; they are called from plain threads, concurrently: one thread commits, one confirms, one reads the
/// queue. Whatever [`Store::commit`] has returned from survives the death of the process. A callback must not call
/// the store.
pub trait Store: Send + Sync {
    /// Says which of `keys` (sorted ascending, distinct) the store has; one round trip for up to 10,000. The answer has one entry a key,
    /// in order. Every key of a commit that returned before this call began is found.
    ///
    /// # Errors
    ///
    /// Fails when the backend does.
    fn confirm(&self, keys: &[UrlKey]) -> Result<Vec<bool>, StoreError>;

    /// Writes a batch as one atomic change, all or nothing: notes enter the key table and the queue, finished URLs
    /// leave the queue and enter the page records, and `progress` replaces what was stored of it.
    /// A note whose key is already there is not entered again.
    ///
    /// # Errors
    ///
    /// Fails when the backend does; nothing of the batch is stored then, or all of it, if only the answer was lost.
    fn commit(&self, batch: &CommitBatch<'_>) -> Result<(), StoreError>;

    /// Returns whether a commit that has returned survives a power cut, without [`Store::sync`].
    fn is_durable_at_commit(&self) -> bool;

    /// Makes all that was committed survive a power cut as well.
    ///
    /// # Errors
    ///
    /// Fails when the backend does.
    fn sync(&self) -> Result<(), StoreError>;

    /// Reads the queue of one host in order, from the first entry at or after `from`, at most `limit` entries.
    ///
    /// # Errors
    ///
    /// Fails when the backend does, or when a row cannot be read back.
    fn read_queue(
        &self,
        host: &Host,
        from: QueuePosition,
        limit: usize,
    ) -> Result<Vec<QueuedUrl>, StoreError>;

    /// Calls `each` once for every host with queued URLs: the host, how many it has, and its first position.
    ///
    /// # Errors
    ///
    /// Fails when the backend does.
    fn queued_hosts(
        &self,
        each: &mut dyn FnMut(Host, u64, QueuePosition),
    ) -> Result<(), StoreError>;

    /// Calls `each` with every stored key, in batches of bounded size and any order; to rebuild the filter.
    /// Returns how many there were.
    ///
    /// # Errors
    ///
    /// Fails when the backend does.
    fn scan_keys(&self, each: &mut dyn FnMut(&[UrlKey])) -> Result<u64, StoreError>;

    /// Calls `each` with every page record as stored, in any order.
    ///
    /// # Errors
    ///
    /// Fails when the backend does.
    fn scan_pages(&self, each: &mut dyn FnMut(UrlKey, &[u8])) -> Result<(), StoreError>;

    /// Returns the next free sequence number: one more than the highest of any note ever committed, 0 at first.
    ///
    /// # Errors
    ///
    /// Fails when the backend does.
    fn next_sequence(&self) -> Result<u64, StoreError>;

    /// Returns the counters of the calls so far.
    fn counters(&self) -> StoreCounters;
}

/// One atomic change.
#[derive(Clone, Copy, Debug)]
pub struct CommitBatch<'a> {
    /// Newly admitted URLs: key and queue entry.
    pub notes: &'a [QueuedUrl],
    /// URLs that are done with.
    pub finished: &'a [FinishedUrl],
    /// The engine's progress (counts, output positions), opaque to the store.
    pub progress: &'a [u8],
}

/// A URL that leaves the queue for the page records.
#[derive(Clone, Debug)]
pub struct FinishedUrl {
    /// Its host.
    pub host: Host,
    /// Its place in the queue.
    pub position: QueuePosition,
    /// Its key.
    pub key: UrlKey,
    /// The page record as JSON.
    pub record: Vec<u8>,
}

/// What identifies a crawl; drawn once, when it is created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CrawlIdentity {
    /// A random name, 32 hex digits; the data folder and the store must agree on it.
    pub crawl_id: String,
    /// The seed of its keys.
    pub key_seed: u64,
    /// The version of the key rule ([`types::KEY_VERSION`]).
    pub key_version: u16,
}

/// A store that was opened, with what it remembers.
pub struct OpenedStore {
    /// The store.
    pub store: Box<dyn Store>,
    /// The identity of the crawl it holds: the stored one, or the one offered if it was empty.
    pub identity: CrawlIdentity,
    /// The progress of the last commit; `None` for a new crawl.
    pub progress: Option<Vec<u8>>,
}
