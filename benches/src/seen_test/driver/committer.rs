//! The committer's part: writes the notes, and keeps the accounts and the books.

use anyhow::Result;
use crossbeam_channel::{Receiver, never};
use frontier::{Batch, SeenTest, Settled};
use store::CommitBatch;
use types::{CrawlCounts, PageTally};

use super::{Driver, Settlement};
use crate::committing::{self, PROGRESS, Writer};

pub(super) struct Committer<'a> {
    pub(super) driver: &'a Driver<'a>,
    pub(super) seen: &'a SeenTest,
    pub(super) counts: CrawlCounts,
    /// Holds one entry a page under way.
    pub(super) permits: Receiver<()>,
}

impl Committer<'_> {
    /// Runs until every sender is gone and everything is written; returns the accounts.
    pub(super) fn run(
        mut self,
        settlements: Receiver<Settlement>,
        verdicts: Receiver<Vec<Settled>>,
    ) -> Result<CrawlCounts> {
        committing::run(settlements, verdicts, &mut self)?;
        self.driver.store.sync()?;
        Ok(self.counts)
    }

    fn count(&mut self, batch: &Batch<PageTally>) {
        let counts = &mut self.counts;
        let note_count = batch.notes.len() as u64;
        counts.discovered += note_count + batch.store_duplicate_count;
        counts.queued += note_count;
        counts.false_positives += batch.false_positive_count;
        counts.filter_no += note_count - batch.false_positive_count;
        counts.duplicates.store += batch.store_duplicate_count;
        for tally in &batch.finished {
            counts.add_tally(tally);
            // The page's own entry or another's: one page fewer is under way.
            let _ = self.permits.try_recv();
        }
    }
}

impl Writer<PageTally> for Committer<'_> {
    fn write(&mut self, batch: Batch<PageTally>) -> Result<()> {
        self.count(&batch);
        self.driver.store.commit(&CommitBatch {
            notes: &batch.notes,
            finished: &[],
            progress: PROGRESS,
        })?;
        self.seen.noted(batch.notes.iter().map(|note| note.key));
        let Driver {
            stream,
            truth,
            aside,
            ..
        } = self.driver;
        aside.does(|| {
            for note in &batch.notes {
                truth.admit(stream.link_of(&note.url).map(|link| stream.slot(link)));
            }
        });
        Ok(())
    }

    /// Either the stream has ended, or the confirmer has failed; then no page may wait for a permit for ever.
    fn close(&mut self) {
        self.permits = never();
    }
}
