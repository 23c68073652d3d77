//! The committer: the one writer of outputs and store. It owns the ledger, which says when a page may be finished.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use crossbeam_channel::{Receiver, Sender, select};
use frontier::{Batch, Ledger, SeenTest};
use store::{CommitBatch, FinishedUrl, Store};
use types::QueuedUrl;

use crate::{
    EngineError,
    checkpoint::Checkpoints,
    live::Live,
    message::{Durable, Finish, FinishedPage, Settlement, SideMessage},
    output::Outputs,
    patience::patiently,
    room::{Backlog, link_bytes},
    saved::SavedProgress,
    status::StatusWriter,
};

/// The most notes in one commit; a commit this large is still well under a second in either store.
const NOTES_MAX: usize = 20_000;
/// Messages taken in before a commit is made of them.
const MESSAGES_MAX: usize = 4_096;
/// How often everything is made to survive a power cut, and the status is written.
const SYNC_INTERVAL: Duration = Duration::from_secs(5);
/// When it first is.
pub(crate) const SYNC_FIRST: Duration = Duration::from_secs(1);

/// The committer's state.
pub(crate) struct Committer {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) seen: Arc<SeenTest>,
    pub(crate) ledger: Ledger<Finish>,
    pub(crate) outputs: Outputs,
    pub(crate) checkpoints: Checkpoints,
    pub(crate) saved: SavedProgress,
    pub(crate) status: StatusWriter,
    /// URLs that earlier runs expected to have lost.
    pub(crate) lost_before: f64,
    pub(crate) backlog: Arc<Backlog>,
    pub(crate) live: Arc<Live>,
    pub(crate) durable: Sender<Durable>,
    pub(crate) next_sync: Instant,
}

impl Committer {
    /// Runs until every sender is gone; then everything that may be finished is, and is synced. Returns the progress, and
    /// what writes the status, for the last words.
    pub(crate) fn run(
        mut self,
        settlements: &Receiver<Box<Settlement>>,
        side: &Receiver<SideMessage>,
    ) -> Result<(SavedProgress, StatusWriter), EngineError> {
        self.announce()?;
        self.status.write(&self.saved);
        loop {
            select! {
                recv(settlements) -> settlement => match settlement {
                    Ok(settlement) => self.arrive(*settlement),
                    Err(_) => break,
                },
                recv(side) -> message => match message {
                    Ok(message) => self.take_side(message)?,
                    Err(_) => break,
                },
                default(self.next_sync.saturating_duration_since(Instant::now())) => {}
            }
            for settlement in settlements.try_iter().take(MESSAGES_MAX) {
                self.arrive(*settlement);
            }
            for message in side.try_iter().take(MESSAGES_MAX) {
                self.take_side(message)?;
            }
            self.commit_ready()?;
        }
        // One channel is closed; what the other still brings is settled before the end.
        for settlement in settlements {
            self.arrive(*settlement);
        }
        for message in side {
            self.take_side(message)?;
        }
        self.commit_ready()?;
        self.sync()?;
        Ok((self.saved, self.status))
    }

    /// Stores that leases may be under way from here on, before the first of them is.
    fn announce(&mut self) -> Result<(), EngineError> {
        let progress = self.saved.to_bytes();
        let commit = CommitBatch {
            notes: &[],
            finished: &[],
            progress: &progress,
        };
        patiently(&self.live, || self.store.commit(&commit))
    }

    fn arrive(&mut self, settlement: Settlement) {
        let Settlement {
            token,
            admission,
            finish,
        } = settlement;
        self.ledger.arrive(token, admission, finish);
    }

    fn take_side(&mut self, message: SideMessage) -> Result<(), EngineError> {
        match message {
            SideMessage::Verdicts {
                settled,
                seen_link_bytes,
            } => {
                for settled in settled {
                    self.ledger.settled(settled);
                }
                self.backlog.settle_links(seen_link_bytes);
            }
            SideMessage::Batch(settlement) => self.arrive(*settlement),
            SideMessage::Archive(members) => self.outputs.archive(&members)?,
        }
        Ok(())
    }

    /// Commits all that is ready, unless the crawl ends at once: what is not written then is requested again, and whoever
    /// stopped the crawl does not wait for it.
    fn commit_ready(&mut self) -> Result<(), EngineError> {
        while !self.live.is_halted() {
            let batch = self.ledger.take_batch(NOTES_MAX);
            if batch.is_empty() {
                break;
            }
            self.commit(batch)?;
            self.checkpoints.begin_if_due();
        }
        if Instant::now() >= self.next_sync {
            self.sync()?;
        }
        Ok(())
    }

    fn commit(&mut self, batch: Batch<Finish>) -> Result<(), EngineError> {
        self.count_notes(&batch);
        let mut finished = Vec::with_capacity(batch.finished.len());
        let mut leases = Vec::with_capacity(batch.finished.len());
        let mut batch_count = 0;
        for finish in batch.finished {
            self.saved.counts.add_tally(&finish.tally);
            match finish.page {
                Some(page) => {
                    leases.push(page.lease);
                    finished.push(self.finish_page(page)?);
                }
                None => batch_count += 1,
            }
        }
        self.saved.outputs = self.outputs.flush()?;
        self.saved.expected_lost = self.lost_before + self.seen.expected_lost();
        // A store whose commits survive a power cut must not speak of outputs that do not.
        if self.store.is_durable_at_commit() && !finished.is_empty() {
            self.outputs.sync()?;
        }
        self.checkpoints.log(&batch.notes);
        self.saved.key_sum = self.checkpoints.key_sum();
        let progress = self.saved.to_bytes();
        let commit = CommitBatch {
            notes: &batch.notes,
            finished: &finished,
            progress: &progress,
        };
        patiently(&self.live, || self.store.commit(&commit))?;
        self.seen.noted(batch.notes.iter().map(|note| note.key));
        let bytes_of = |note: &QueuedUrl| link_bytes(&note.url, note.referrer.as_ref());
        let note_bytes = batch.notes.iter().map(bytes_of).sum();
        self.live.publish(&self.saved);
        // What is durable stays so if the owner is gone. Until it takes in the last commit, the links of this one count.
        drop(self.durable.send(Durable {
            notes: batch.notes,
            leases,
            batch_count,
        }));
        self.backlog.settle_links(note_bytes);
        Ok(())
    }

    /// Every note was discovered, and is queued by this commit.
    fn count_notes(&mut self, batch: &Batch<Finish>) {
        let counts = &mut self.saved.counts;
        let note_count = batch.notes.len() as u64;
        counts.discovered += note_count + batch.store_duplicate_count;
        counts.queued += note_count;
        counts.false_positives += batch.false_positive_count;
        counts.filter_no += note_count - batch.false_positive_count;
        counts.duplicates.store += batch.store_duplicate_count;
    }

    fn finish_page(&mut self, mut page: FinishedPage) -> Result<FinishedUrl, EngineError> {
        self.saved.counts.finish(page.disposition);
        self.saved.totals.add(&page.record);
        let record = self.outputs.append(&mut page)?;
        Ok(FinishedUrl {
            host: page.queued.url.host(),
            position: page.queued.position,
            key: page.queued.key,
            record,
        })
    }

    fn sync(&mut self) -> Result<(), EngineError> {
        self.saved.outputs = self.outputs.flush()?;
        self.outputs.sync()?;
        self.checkpoints.sync();
        patiently(&self.live, || self.store.sync())?;
        self.status.write(&self.saved);
        self.next_sync = Instant::now() + SYNC_INTERVAL;
        Ok(())
    }
}
