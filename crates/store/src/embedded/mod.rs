//! The embedded backend: a log-structured key-value engine (fjall) in one folder, for one process at a time.
//!
//! Four keyspaces: `keys` (16 bytes of URL key, no value), `queue` (see `codec`), `pages` (URL key to record) and
//! `meta`. A commit is one atomic batch over all of them, handed to the operating system before it returns.
//!
//! Measured on 2026-11-30 with `cargo run --release -p store --example confirm_mix -- FOLDER 1000000`: a million notes in
//! commits of 1,000, each followed by a confirm of 1,000 keys of which nine in ten are known, 20 CPU-s, compaction
//! included; a million confirms alone 7.8; reopening 0.4; reading all keys 0.3; 174 bytes a key on disk with queue, records
//! and journal. Peak memory 97 MiB. With tables of 64 MiB (the engine's default) and filters not pinned it takes far more.

mod codec;
mod compaction;
mod failure;
#[cfg(feature = "testing")]
mod fill;
mod layout;

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use fjall::{Database, PersistMode, Readable, Snapshot};
use types::{Host, KeySeed, QueuePosition, QueuedUrl, UrlKey};

use self::compaction::{Compactor, wait_for_flushes};
use self::failure::{failure, io_failure};
#[cfg(feature = "testing")]
pub use self::fill::create_with_keys;
use self::layout::{Keyspaces, META_NEXT_SEQUENCE, META_PROGRESS};
use crate::{
    CommitBatch, CrawlIdentity, OpenedStore, Store, StoreCounters, StoreError, counters::CallTally,
};

/// Keys handed to the callback of [`Store::scan_keys`] at a time.
const SCAN_KEYS_MAX: usize = 4_096;

/// Opens the store in `folder`, or creates it there with the identity `offered`.
///
/// # Errors
///
/// [`StoreError::Locked`] when another process (or another part of this one) has it open,
/// [`StoreError::Incompatible`] when what is there was written by another version, [`StoreError::DiskFull`] when there is
/// no room for it, and [`StoreError::Backend`] when the folder cannot be read or written.
pub fn open(folder: &Path, offered: &CrawlIdentity) -> Result<OpenedStore, StoreError> {
    if !has_entries(folder) {
        create(folder, offered)?;
    }
    let failed = |error| failure(folder, error);
    let database = layout::open_database(folder).map_err(failed)?;
    // `create` has made all of them; the engine drops one whose files are not whole, and would make it anew, empty.
    if let Some(name) = ["keys", "queue", "pages", "meta"]
        .into_iter()
        .find(|name| !database.keyspace_exists(name))
    {
        return Err(StoreError::Corrupt(format!(
            "{}: the keyspace {name} is gone; restore the folder from a copy, or begin a new crawl",
            folder.display()
        )));
    }
    let keyspaces = Keyspaces::open(&database, 1).map_err(failed)?;
    let identity = layout::identity(&database, &keyspaces, folder, offered)?;
    let progress = keyspaces
        .meta
        .get(META_PROGRESS)
        .map_err(failed)?
        .map(|value| value.to_vec());
    let next_sequence = match keyspaces.meta.get(META_NEXT_SEQUENCE).map_err(failed)? {
        None => 0,
        Some(value) => <[u8; 8]>::try_from(&*value)
            .map(u64::from_be_bytes)
            .map_err(|_| {
                StoreError::Corrupt(format!("{}: the next sequence number", folder.display()))
            })?,
    };
    let compactor = Compactor::start(folder, &database, keyspaces.all(), layout::TABLE_BYTES)
        .map_err(|error| io_failure("cannot start a thread to compact in", &error))?;
    let store = EmbeddedStore {
        compactor,
        folder: folder.to_owned(),
        key_seed: KeySeed::new(identity.key_seed),
        database,
        keyspaces,
        next_sequence: Mutex::new(next_sequence),
        tally: CallTally::default(),
    };
    Ok(OpenedStore {
        store: Box::new(store),
        identity,
        progress,
    })
}

/// Returns whether [`open`] would find a store in `folder`, and not make one.
#[must_use]
pub fn is_there(folder: &Path) -> bool {
    has_entries(folder)
}

fn has_entries(folder: &Path) -> bool {
    fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some())
}

/// Creates the store beside its folder and moves it there when it is whole: the engine takes several steps to create
/// one, and cannot open what a death between them leaves.
fn create(folder: &Path, offered: &CrawlIdentity) -> Result<(), StoreError> {
    let mut name = folder.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    let staged = folder.with_file_name(name);
    let io = |error| io_failure(&format!("cannot create {}", folder.display()), &error);
    if staged.exists() {
        fs::remove_dir_all(&staged).map_err(io)?;
    }
    fs::create_dir_all(&staged).map_err(io)?;
    let failed = |error| failure(folder, error);
    let database = layout::open_database(&staged).map_err(failed)?;
    let keyspaces = Keyspaces::open(&database, 1).map_err(failed)?;
    layout::identity(&database, &keyspaces, folder, offered)?;
    database.persist(PersistMode::SyncAll).map_err(failed)?;
    drop((keyspaces, database));
    // An empty folder is replaced.
    fs::rename(&staged, folder).map_err(io)
}

struct EmbeddedStore {
    /// Ends before the engine does.
    compactor: Compactor,
    folder: PathBuf,
    key_seed: KeySeed,
    database: Database,
    keyspaces: Keyspaces,
    /// Held for the whole of a commit, since whether a note is new must not change between the look and the write.
    next_sequence: Mutex<u64>,
    tally: CallTally,
}

impl EmbeddedStore {
    fn failed(&self, error: fjall::Error) -> StoreError {
        failure(&self.folder, error)
    }

    fn partition(&self, host: &str) -> u8 {
        self.key_seed.partition(host).get()
    }

    fn queue_key(&self, host: &str, position: QueuePosition) -> Result<Vec<u8>, StoreError> {
        codec::queue_key(self.partition(host), host, position)
    }

    fn has_key(&self, snapshot: &Snapshot, key: UrlKey) -> Result<bool, StoreError> {
        snapshot
            .contains_key(&self.keyspaces.keys, key.to_bytes())
            .map_err(|error| self.failed(error))
    }

    /// Adds key and queue entry of each note whose key is not there yet, and removes the queue entries of what is finished,
    /// whose queue keys ascend. A note that the same batch finishes gets no queue entry: within one batch the engine does
    /// not order a write and a removal of the same key.
    ///
    /// Each table is written in the order of its keys: the memtables are skip lists, and what one insertion has read on its
    /// way is then still in the processor's cache for the next.
    fn enter_notes(
        &self,
        write: &mut fjall::OwnedWriteBatch,
        notes: &[QueuedUrl],
        finished: Vec<Vec<u8>>,
    ) -> Result<(), StoreError> {
        let mut sorted: Vec<&QueuedUrl> = notes.iter().collect();
        // Of two notes of one key the first in the batch counts.
        sorted.sort_by_key(|note| note.key);
        sorted.dedup_by_key(|note| note.key);
        let mut queue = Vec::with_capacity(sorted.len() + finished.len());
        let snapshot = self.database.snapshot();
        for note in sorted {
            if self.has_key(&snapshot, note.key)? {
                continue;
            }
            write.insert(&self.keyspaces.keys, note.key.to_bytes(), []);
            let queue_key = self.queue_key(note.url.host_str(), note.position)?;
            if finished.binary_search(&queue_key).is_err() {
                queue.push((queue_key, Some(codec::encode_entry(note)?)));
            }
        }
        queue.extend(finished.into_iter().map(|queue_key| (queue_key, None)));
        queue.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        for (queue_key, entry) in queue {
            match entry {
                Some(entry) => write.insert(&self.keyspaces.queue, queue_key, entry),
                None => write.remove(&self.keyspaces.queue, queue_key),
            }
        }
        Ok(())
    }
}

impl Store for EmbeddedStore {
    fn confirm(&self, keys: &[UrlKey]) -> Result<Vec<bool>, StoreError> {
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        self.tally.confirmed(keys.len());
        let snapshot = self.database.snapshot();
        keys.iter()
            .map(|key| self.has_key(&snapshot, *key))
            .collect()
    }

    fn commit(&self, batch: &CommitBatch<'_>) -> Result<(), StoreError> {
        self.compactor.check()?;
        let mut next_sequence = self
            .next_sequence
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let mut finished_keys = batch
            .finished
            .iter()
            .map(|finished| self.queue_key(finished.host.as_str(), finished.position))
            .collect::<Result<Vec<_>, _>>()?;
        finished_keys.sort_unstable();
        let mut write = self.database.batch();
        self.enter_notes(&mut write, batch.notes, finished_keys)?;
        let mut finished: Vec<_> = batch.finished.iter().collect();
        finished.sort_unstable_by_key(|finished| finished.key);
        for finished in finished {
            write.insert(
                &self.keyspaces.pages,
                finished.key.to_bytes(),
                finished.record.as_slice(),
            );
        }
        let after_notes = batch
            .notes
            .iter()
            .map(|note| note.position.sequence.saturating_add(1))
            .max();
        let sequence = after_notes.map_or(*next_sequence, |after| after.max(*next_sequence));
        write.insert(
            &self.keyspaces.meta,
            META_NEXT_SEQUENCE,
            sequence.to_be_bytes(),
        );
        write.insert(&self.keyspaces.meta, META_PROGRESS, batch.progress);
        write
            .durability(Some(PersistMode::Buffer))
            .commit()
            .map_err(|error| self.failed(error))?;
        *next_sequence = sequence;
        self.tally.committed();
        wait_for_flushes(&self.database, layout::BUFFERED_BYTES_MAX);
        Ok(())
    }

    fn is_durable_at_commit(&self) -> bool {
        false
    }

    fn sync(&self) -> Result<(), StoreError> {
        self.database
            .persist(PersistMode::SyncAll)
            .map_err(|error| self.failed(error))
    }

    fn read_queue(
        &self,
        host: &Host,
        from: QueuePosition,
        limit: usize,
    ) -> Result<Vec<QueuedUrl>, StoreError> {
        self.tally.queue_read();
        let first = self.queue_key(host.as_str(), from)?;
        let last = self.queue_key(
            host.as_str(),
            QueuePosition {
                priority: u8::MAX,
                depth: u32::MAX,
                sequence: u64::MAX,
            },
        )?;
        let snapshot = self.database.snapshot();
        snapshot
            .range(&self.keyspaces.queue, first..=last)
            .take(limit)
            .map(|row| {
                let (key, entry) = row.into_inner().map_err(|error| self.failed(error))?;
                codec::decode_entry(&key, &entry)
            })
            .collect()
    }

    fn queued_hosts(
        &self,
        each: &mut dyn FnMut(Host, u64, QueuePosition),
    ) -> Result<(), StoreError> {
        let snapshot = self.database.snapshot();
        let mut current: Option<(Host, u64, QueuePosition)> = None;
        for row in snapshot.iter(&self.keyspaces.queue) {
            let key = row.key().map_err(|error| self.failed(error))?;
            let (host, position) = codec::parse_queue_key(&key)?;
            match &mut current {
                Some((same, count, _)) if *same == host => *count += 1,
                _ => {
                    if let Some((host, count, first)) = current.replace((host, 1, position)) {
                        each(host, count, first);
                    }
                }
            }
        }
        if let Some((host, count, first)) = current {
            each(host, count, first);
        }
        Ok(())
    }

    fn scan_keys(&self, each: &mut dyn FnMut(&[UrlKey])) -> Result<u64, StoreError> {
        let snapshot = self.database.snapshot();
        let mut keys = Vec::with_capacity(SCAN_KEYS_MAX);
        let mut count = 0;
        for row in snapshot.iter(&self.keyspaces.keys) {
            keys.push(url_key(&row.key().map_err(|error| self.failed(error))?)?);
            count += 1;
            if keys.len() == SCAN_KEYS_MAX {
                each(&keys);
                keys.clear();
            }
        }
        if !keys.is_empty() {
            each(&keys);
        }
        Ok(count)
    }

    fn scan_pages(&self, each: &mut dyn FnMut(UrlKey, &[u8])) -> Result<(), StoreError> {
        let snapshot = self.database.snapshot();
        for row in snapshot.iter(&self.keyspaces.pages) {
            let (key, record) = row.into_inner().map_err(|error| self.failed(error))?;
            each(url_key(&key)?, &record);
        }
        Ok(())
    }

    fn next_sequence(&self) -> Result<u64, StoreError> {
        Ok(*self
            .next_sequence
            .lock()
            .unwrap_or_else(PoisonError::into_inner))
    }

    fn counters(&self) -> StoreCounters {
        self.tally.read()
    }
}

fn url_key(bytes: &[u8]) -> Result<UrlKey, StoreError> {
    <[u8; 16]>::try_from(bytes)
        .map(UrlKey::from_bytes)
        .map_err(|_| {
            StoreError::Corrupt(format!("a URL key of {} bytes, 16 are right", bytes.len()))
        })
}
