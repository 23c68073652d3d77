//! The embedded store's keyspaces, their settings, and the identity they carry.

use std::{path::Path, sync::Arc};

use fjall::{
    CompressionType, Database, Keyspace, KeyspaceCreateOptions, PersistMode,
    config::{BlockSizePolicy, CompressionPolicy, FilterPolicy, PinningPolicy},
};
use serde::{Deserialize, Serialize};

use super::{compaction, failure::failure};
use crate::{CrawlIdentity, StoreError, stored::FORMAT_VERSION};

pub(super) const META_PROGRESS: &str = "progress";
pub(super) const META_NEXT_SEQUENCE: &str = "next_sequence";
const META_FORMAT: &str = "format";
const META_IDENTITY: &str = "identity";

/// Blocks of the tables kept in memory, in bytes, over all keyspaces.
const CACHE_BYTES: u64 = 8 << 20;

/// The engine's smallest bound on its journals, in bytes; what a reopening replays after a kill.
const JOURNAL_BYTES_MAX: u64 = 64 << 20;

/// The length of a table on disk, in bytes. The first level holds four of them and is rewritten at every fourth flush,
/// and what is in memory of a table while it is written grows with it; so the engine's 64 MiB suit neither.
pub(super) const TABLE_BYTES: u64 = 8 << 20;

/// What all memtables may take before a commit waits for flushes, in bytes: each keyspace's, and one more of each that is
/// written out.
pub(super) const BUFFERED_BYTES_MAX: u64 = (2 * (8 + 16 + 8 + 1)) << 20;

/// A block of the queue, in bytes: a read takes a few dozen URLs of one host out of each table.
const QUEUE_BLOCK_BYTES: u32 = 4 << 10;

/// A block of what is read as a whole, in bytes.
const RUN_BLOCK_BYTES: u32 = 16 << 10;

/// The levels whose text is not compressed: the first two hold tens of megabytes, are rewritten most often, and are where
/// a read of the queue finds most tables.
const PLAIN_LEVELS: usize = 2;

/// The four keyspaces. Each memtable is written out as a table for the first level, and four of these with all of the
/// second level, so larger memtables save most of what [`compaction`] does, which falls behind else and leaves reads with
/// many tables to look into.
pub(super) struct Keyspaces {
    pub(super) keys: Keyspace,
    pub(super) queue: Keyspace,
    pub(super) pages: Keyspace,
    pub(super) meta: Keyspace,
}

impl Keyspaces {
    /// Opens the keyspaces, or makes them with memtables of their size divided by `shrink`, which is 1 but in tests.
    pub(super) fn open(database: &Database, shrink: u64) -> fjall::Result<Self> {
        let text = |memtable_bytes: u64, block_bytes| {
            move || text_options(memtable_bytes / shrink, block_bytes)
        };
        Ok(Self {
            keys: database.keyspace("keys", || keys_options((8 << 20) / shrink))?,
            queue: database.keyspace("queue", text(16 << 20, QUEUE_BLOCK_BYTES))?,
            pages: database.keyspace("pages", text(8 << 20, RUN_BLOCK_BYTES))?,
            // Every commit writes a whole progress value, and a memtable keeps all of them until it is flushed.
            meta: database.keyspace("meta", text(1 << 20, RUN_BLOCK_BYTES))?,
        })
    }

    /// Returns all of them.
    pub(super) fn all(&self) -> Vec<Keyspace> {
        [&self.keys, &self.queue, &self.pages, &self.meta]
            .map(Clone::clone)
            .into()
    }
}

pub(super) fn open_database(folder: &Path) -> fjall::Result<Database> {
    Database::builder(folder)
        .cache_size(CACHE_BYTES)
        .max_journaling_size(JOURNAL_BYTES_MAX)
        .worker_threads(1)
        .open()
}

/// Keys are random bytes, which no compression shortens, and are looked up one by one: small blocks, and filters (10
/// bits a key) and indexes that stay in memory whatever else is read.
fn keys_options(memtable_bytes_max: u64) -> KeyspaceCreateOptions {
    options(memtable_bytes_max)
        .data_block_size_policy(BlockSizePolicy::all(4 << 10))
        .data_block_compression_policy(CompressionPolicy::all(CompressionType::None))
        .filter_block_pinning_policy(PinningPolicy::all(true))
        .index_block_pinning_policy(PinningPolicy::all(true))
}

/// URLs and JSON are text that repeats itself: compressed blocks, and no filters.
fn text_options(memtable_bytes_max: u64, block_bytes: u32) -> KeyspaceCreateOptions {
    let mut compression = vec![CompressionType::None; PLAIN_LEVELS];
    compression.push(CompressionType::Lz4);
    options(memtable_bytes_max)
        .data_block_size_policy(BlockSizePolicy::all(block_bytes))
        .data_block_compression_policy(CompressionPolicy::new(compression))
        .filter_policy(FilterPolicy::disabled())
}

fn options(memtable_bytes_max: u64) -> KeyspaceCreateOptions {
    KeyspaceCreateOptions::default()
        .max_memtable_size(memtable_bytes_max)
        .compaction_strategy(Arc::new(compaction::passive()))
}

#[derive(Serialize, Deserialize)]
struct StoredIdentity {
    crawl_id: String,
    key_seed: u64,
    key_version: u16,
}

/// Returns the identity stored, after a look at the format version; a new store takes on the one offered.
pub(super) fn identity(
    database: &Database,
    keyspaces: &Keyspaces,
    folder: &Path,
    offered: &CrawlIdentity,
) -> Result<CrawlIdentity, StoreError> {
    let failed = |error| failure(folder, error);
    let meta = &keyspaces.meta;
    let Some(format) = meta.get(META_FORMAT).map_err(failed)? else {
        write_identity(database, keyspaces, folder, offered)?;
        return Ok(offered.clone());
    };
    if *format != FORMAT_VERSION.to_be_bytes() {
        let found = <[u8; 4]>::try_from(&*format).map_or_else(
            |_| "?".to_owned(),
            |bytes| u32::from_be_bytes(bytes).to_string(),
        );
        return Err(StoreError::Incompatible(format!(
            "{} holds a store of format {found}, this version reads format {FORMAT_VERSION}",
            folder.display()
        )));
    }
    let damaged =
        || StoreError::Corrupt(format!("{}: the identity of the crawl", folder.display()));
    let text = meta
        .get(META_IDENTITY)
        .map_err(failed)?
        .ok_or_else(damaged)?;
    let stored: StoredIdentity = serde_json::from_slice(&text).map_err(|_| damaged())?;
    Ok(CrawlIdentity {
        crawl_id: stored.crawl_id,
        key_seed: stored.key_seed,
        key_version: stored.key_version,
    })
}

/// Format and identity are written together, and made to last before any key is made with the seed.
fn write_identity(
    database: &Database,
    keyspaces: &Keyspaces,
    folder: &Path,
    offered: &CrawlIdentity,
) -> Result<(), StoreError> {
    let failed = |error| failure(folder, error);
    if !keyspaces.keys.is_empty().map_err(failed)? || !keyspaces.queue.is_empty().map_err(failed)? {
        return Err(StoreError::Incompatible(format!(
            "{} holds keys but no format version, it is not a store of this program",
            folder.display()
        )));
    }
    let stored = StoredIdentity {
        crawl_id: offered.crawl_id.clone(),
        key_seed: offered.key_seed,
        key_version: offered.key_version,
    };
    let text = serde_json::to_vec(&stored).map_err(|error| {
        StoreError::Backend(format!("the crawl's identity cannot be written: {error}"))
    })?;
    let mut write = database.batch();
    write.insert(&keyspaces.meta, META_FORMAT, FORMAT_VERSION.to_be_bytes());
    write.insert(&keyspaces.meta, META_IDENTITY, text);
    write
        .durability(Some(PersistMode::SyncAll))
        .commit()
        .map_err(failed)
}
