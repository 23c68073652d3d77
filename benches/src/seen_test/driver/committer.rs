//! The committer's part: owns the ledger and writes what may be written, in batches, as the engine's committer does.

use anyhow::Result;
use crossbeam_channel::{Receiver, never, select};
use frontier::{Batch, Ledger, SeenTest, Settled};
use store::CommitBatch;
use types::{CrawlCounts, PageTally};

use super::{Driver, Settlement};

/// The most notes in one commit.
const NOTES_MAX: usize = 20_000;
/// Messages taken in before a commit is made of them.
const MESSAGES_MAX: usize = 4_096;
/// Stands for the progress that the engine stores with each commit.
const PROGRESS: &[u8] = &[b'p'; 1_000];

pub(super) struct Committer<'a> {
    pub(super) driver: &'a Driver<'a>,
    pub(super) seen: &'a SeenTest,
    pub(super) ledger: Ledger<PageTally>,
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
        loop {
            select! {
                recv(settlements) -> settlement => match settlement {
                    Ok(settlement) => self.arrive(settlement),
                    Err(_) => break,
                },
                recv(verdicts) -> settled => match settled {
                    Ok(settled) => self.settled(settled),
                    Err(_) => break,
                },
            }
            for settlement in settlements.try_iter().take(MESSAGES_MAX) {
                self.arrive(settlement);
            }
            for settled in verdicts.try_iter().take(MESSAGES_MAX) {
                self.settled(settled);
            }
            self.commit_ready()?;
        }
        // Either the stream has ended, or the confirmer has failed; then no page may wait for a permit for ever.
        self.permits = never();
        // One channel is closed; what the other still brings is settled before the end.
        for settlement in settlements {
            self.arrive(settlement);
        }
        for settled in verdicts {
            self.settled(settled);
        }
        self.commit_ready()?;
        self.driver.store.sync()?;
        Ok(self.counts)
    }

    fn arrive(&mut self, settlement: Settlement) {
        let Settlement {
            token,
            admission,
            tally,
        } = settlement;
        self.ledger.arrive(
            token,
            admission.fresh,
            admission.waits,
            admission.depends_on,
            tally,
        );
    }

    fn settled(&mut self, settled: Vec<Settled>) {
        for settled in settled {
            self.ledger.settled(settled);
        }
    }

    fn commit_ready(&mut self) -> Result<()> {
        loop {
            let batch = self.ledger.take_batch(NOTES_MAX);
            if batch.is_empty() {
                return Ok(());
            }
            self.commit(&batch)?;
        }
    }

    fn commit(&mut self, batch: &Batch<PageTally>) -> Result<()> {
        self.count(batch);
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
