//! Compaction in a thread of the store's own, for as long as there is something to compact.
//!
//! The engine's worker takes one step of compaction after each flush, and nothing else asks for any. A step rewrites the few
//! tables that cost least, so where a level below is full more tables come to the first level than leave it; with thirty
//! of them the engine halts every writer until a compaction, for which nobody asks then. A crawl of over five million URLs
//! hung like that. And a worker that compacts flushes nothing meanwhile, so that memtables grow by hundreds of megabytes. Here
//! the worker only flushes, this thread takes steps until none is left, and commits wait for flushes ([`wait_for_flushes`]).

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use fjall::{AbstractTree as _, Database, Keyspace, compaction::Leveled};

use super::failure::failure;
use crate::StoreError;

/// The pause before it is looked again whether there is something to compact.
const LOOK_INTERVAL: Duration = Duration::from_millis(50);
/// The pause after a failure.
const FAILURE_PAUSE: Duration = Duration::from_secs(1);

/// The longest wait of one commit: a worker that has failed flushes no more, which the next commit is told.
const FLUSH_WAIT_MAX: Duration = Duration::from_secs(10);

/// Waits until the memtables take no more than `bytes_max` together. The engine has its worker exchange one that is full, but
/// lets it grow until the worker gets to it.
pub(super) fn wait_for_flushes(database: &Database, bytes_max: u64) {
    let began = Instant::now();
    while database.write_buffer_size() > bytes_max && began.elapsed() < FLUSH_WAIT_MAX {
        thread::sleep(Duration::from_millis(1));
    }
}

/// The strategy of the engine's worker: no level is ever too large for it. It still moves tables down that overlap with
/// nothing there, which costs no more than a rename.
pub(super) fn passive() -> Leveled {
    Leveled::default()
        .with_l0_threshold(u8::MAX)
        .with_table_target_size(1 << 48)
}

/// The thread. It ends, after the step it is at, when this is dropped.
pub(super) struct Compactor {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    is_ending: AtomicBool,
    failure: Mutex<Option<StoreError>>,
}

impl Compactor {
    /// Starts to compact the keyspaces of the store in `folder` into tables of `table_bytes`.
    pub(super) fn start(
        folder: &Path,
        database: &Database,
        keyspaces: Vec<Keyspace>,
        table_bytes: u64,
    ) -> std::io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let run = Run {
            folder: folder.to_owned(),
            database: database.clone(),
            keyspaces,
            strategy: Arc::new(Leveled::default().with_table_target_size(table_bytes)),
            shared: Arc::clone(&shared),
        };
        let thread = thread::Builder::new()
            .name("compaction".to_owned())
            .spawn(move || run.to_end())?;
        Ok(Self {
            shared,
            thread: Some(thread),
        })
    }

    /// Tells of a failure, once; what failed is tried again.
    ///
    /// # Errors
    ///
    /// Returns that failure.
    pub(super) fn check(&self) -> Result<(), StoreError> {
        let failure = self.shared.failure.lock();
        let failure = failure.unwrap_or_else(PoisonError::into_inner).take();
        failure.map_or(Ok(()), Err)
    }
}

impl Drop for Compactor {
    fn drop(&mut self) {
        self.shared.is_ending.store(true, Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // A panic was printed, and there is nothing to return it to.
            drop(thread.join());
        }
    }
}

/// What the thread has.
struct Run {
    folder: PathBuf,
    database: Database,
    keyspaces: Vec<Keyspace>,
    strategy: Arc<Leveled>,
    shared: Arc<Shared>,
}

impl Run {
    fn to_end(&self) {
        while !self.shared.is_ending.load(Relaxed) {
            match self.round() {
                Ok(true) => {}
                // Flushes go on without a word to this thread.
                Ok(false) => thread::park_timeout(LOOK_INTERVAL),
                Err(error) => {
                    let failure = self.shared.failure.lock();
                    *failure.unwrap_or_else(PoisonError::into_inner) = Some(error);
                    thread::park_timeout(FAILURE_PAUSE);
                }
            }
        }
    }

    /// Takes a step in each keyspace, and returns whether any changed something.
    fn round(&self) -> Result<bool, StoreError> {
        let mut has_changed = false;
        for keyspace in &self.keyspaces {
            if self.shared.is_ending.load(Relaxed) {
                return Ok(false);
            }
            let before = level_counts(keyspace);
            // Older versions of a row are dropped if no snapshot can see them any more.
            let visible_from = self
                .database
                .supervisor
                .snapshot_tracker
                .get_seqno_safe_to_gc();
            let strategy = Arc::clone(&self.strategy);
            keyspace
                .tree
                .compact(strategy, visible_from)
                .map_err(|error| failure(&self.folder, error.into()))?;
            has_changed |= level_counts(keyspace) != before;
        }
        Ok(has_changed)
    }
}

/// Counts the tables of each level. Every step takes some from a level.
fn level_counts(keyspace: &Keyspace) -> Vec<usize> {
    (0..)
        .map_while(|level| keyspace.tree.level_table_count(level))
        .collect()
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a failed set-up fails the test")]

    use std::sync::mpsc;

    use super::*;
    use crate::embedded::layout::{self, Keyspaces};

    /// Memtables and tables are a 256th of their usual size, so that this stands for gigabytes.
    const SHRINK: u64 = 256;
    const BATCHES: u64 = 150;
    const ROWS: u64 = 1_000;

    #[test]
    fn writers_are_not_halted_for_ever_and_what_is_in_memory_stays_bounded() {
        let folder = tempfile::tempdir().unwrap();
        let database = layout::open_database(folder.path()).unwrap();
        let keyspaces = Keyspaces::open(&database, SHRINK).unwrap();
        let queue = keyspaces.queue.clone();
        let table_bytes = layout::TABLE_BYTES / SHRINK;
        let compactor =
            Compactor::start(folder.path(), &database, keyspaces.all(), table_bytes).unwrap();
        let buffered_bytes = layout::BUFFERED_BYTES_MAX / SHRINK;
        let (done, is_done) = mpsc::sync_channel(1);
        let writer = thread::spawn(move || {
            let mut random = fastrand::Rng::with_seed(1);
            let mut buffered_max = 0;
            for _ in 0..BATCHES {
                let mut batch = database.batch();
                for _ in 0..ROWS {
                    let row: [u64; 24] = std::array::from_fn(|_| random.u64(..));
                    let row: Vec<u8> = row.iter().flat_map(|word| word.to_be_bytes()).collect();
                    batch.insert(&queue, &row[..24], &row[24..]);
                }
                batch.commit().unwrap();
                wait_for_flushes(&database, buffered_bytes);
                buffered_max = buffered_max.max(database.write_buffer_size());
            }
            done.send((queue, buffered_max)).unwrap();
        });
        let (queue, buffered_max) = is_done
            .recv_timeout(Duration::from_mins(2))
            .expect("the writer is halted");
        writer.join().unwrap();
        compactor.check().unwrap();
        assert!(buffered_max <= buffered_bytes, "{buffered_max} bytes");
        let rows = queue.iter().count() as u64;
        assert_eq!(rows, BATCHES * ROWS);
    }
}
