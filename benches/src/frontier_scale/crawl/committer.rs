//! The committer's part: writes notes and finished pages, and tells the owner what is durable.

use std::time::{Duration, Instant};

use anyhow::Result;
use crossbeam_channel::{Receiver, Sender};
use frontier::{Batch, Settled};
use store::CommitBatch;

use super::{Counts, Crawl, Finish, OwnerEvent, Settlement};
use crate::committing::{self, PROGRESS, Writer};

/// How often everything is made to survive a power cut, as in the engine.
const SYNC_INTERVAL: Duration = Duration::from_secs(5);

pub(super) struct Committer<'a> {
    crawl: &'a Crawl<'a>,
    owner: Sender<OwnerEvent>,
    counts: Counts,
    last_sync: Instant,
}

impl<'a> Committer<'a> {
    pub(super) fn new(crawl: &'a Crawl<'a>, owner: Sender<OwnerEvent>) -> Self {
        Self {
            crawl,
            owner,
            counts: Counts::default(),
            last_sync: Instant::now(),
        }
    }

    /// Runs until every sender is gone.
    pub(super) fn run(
        mut self,
        settlements: Receiver<Settlement>,
        verdicts: Receiver<Vec<Settled>>,
    ) -> Result<()> {
        committing::run(settlements, verdicts, &mut self)?;
        Ok(self.crawl.store.sync()?)
    }
}

impl Writer<Finish> for Committer<'_> {
    fn write(&mut self, batch: Batch<Finish>) -> Result<()> {
        let note_count = batch.notes.len() as u64;
        self.counts.known += note_count;
        self.counts.links += note_count + batch.store_duplicate_count;
        let (mut leases, mut finished) = (Vec::new(), Vec::new());
        for Finish { tally, page } in batch.finished {
            self.counts.links += tally.total();
            if let Some((lease, page)) = page {
                leases.push(lease);
                finished.push(page);
            }
        }
        self.counts.finished += finished.len() as u64;
        self.crawl.store.commit(&CommitBatch {
            notes: &batch.notes,
            finished: &finished,
            progress: PROGRESS,
        })?;
        self.crawl
            .seen
            .noted(batch.notes.iter().map(|note| note.key));
        // The owner may have seen enough.
        drop(self.owner.send(OwnerEvent::Durable {
            notes: batch.notes,
            leases,
            counts: self.counts,
        }));
        Ok(())
    }

    fn rest(&mut self) -> Result<()> {
        if self.last_sync.elapsed() >= SYNC_INTERVAL {
            self.crawl.store.sync()?;
            self.last_sync = Instant::now();
        }
        Ok(())
    }
}
