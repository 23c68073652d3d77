//! The committer's part: owns the ledger and writes what may be written, in batches, as the engine's committer does.

use std::time::{Duration, Instant};

use anyhow::Result;
use crossbeam_channel::{Receiver, Sender, select};
use frontier::{Batch, Ledger, Settled};
use store::CommitBatch;

use super::{Counts, Crawl, Finish, OwnerEvent, Settlement};

/// The most notes in one commit, as in the engine.
const NOTES_MAX: usize = 20_000;
/// Messages taken in before a commit is made of them, as in the engine.
const MESSAGES_MAX: usize = 4_096;
/// How often everything is made to survive a power cut, as in the engine.
const SYNC_INTERVAL: Duration = Duration::from_secs(5);
/// Stands for the progress that the engine stores with each commit.
const PROGRESS: &[u8] = &[b'p'; 1_000];

pub(super) struct Committer<'a> {
    crawl: &'a Crawl<'a>,
    ledger: Ledger<Finish>,
    owner: Sender<OwnerEvent>,
    counts: Counts,
    last_sync: Instant,
}

impl<'a> Committer<'a> {
    pub(super) fn new(
        crawl: &'a Crawl<'a>,
        ledger: Ledger<Finish>,
        owner: Sender<OwnerEvent>,
    ) -> Self {
        Self {
            crawl,
            ledger,
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
        for settlement in settlements {
            self.arrive(settlement);
        }
        for settled in verdicts {
            self.settled(settled);
        }
        self.commit_ready()?;
        Ok(self.crawl.store.sync()?)
    }

    fn arrive(&mut self, settlement: Settlement) {
        let Settlement {
            token,
            admission,
            finish,
        } = settlement;
        self.ledger.arrive(
            token,
            admission.fresh,
            admission.waits,
            admission.depends_on,
            finish,
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
                break;
            }
            self.commit(batch)?;
        }
        if self.last_sync.elapsed() >= SYNC_INTERVAL {
            self.crawl.store.sync()?;
            self.last_sync = Instant::now();
        }
        Ok(())
    }

    fn commit(&mut self, batch: Batch<Finish>) -> Result<()> {
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
}
