//! The committing part of the pipelines that are measured: it owns the ledger and writes what may be written, in batches, as
//! the engine's committer does.

use anyhow::Result;
use crossbeam_channel::{Receiver, select};
use frontier::{Admission, Batch, Ledger, PageToken, Settled};

/// The most notes in one commit, as in the engine.
const NOTES_MAX: usize = 20_000;
/// Messages taken in before a commit is made of them, as in the engine.
const MESSAGES_MAX: usize = 4_096;
/// Stands for the progress that the engine stores with each commit.
pub(crate) const PROGRESS: &[u8] = &[b'p'; 1_000];

/// A page whose candidates were judged, as far as memory can tell. `T` is what is recorded when it is finished.
pub(crate) struct Settlement<T> {
    pub(crate) token: PageToken,
    pub(crate) admission: Admission,
    pub(crate) finish: T,
}

/// Where the batches go.
pub(crate) trait Writer<T> {
    /// Writes what may be written.
    fn write(&mut self, batch: Batch<T>) -> Result<()>;

    /// Is called when all that may be written is.
    fn rest(&mut self) -> Result<()> {
        Ok(())
    }

    /// Is called when no more pages come, or no more verdicts: what is under way is settled, and nothing more begins.
    fn close(&mut self) {}
}

/// Runs until every sender is gone and everything is written.
pub(crate) fn run<T>(
    settlements: Receiver<Settlement<T>>,
    verdicts: Receiver<Vec<Settled>>,
    writer: &mut impl Writer<T>,
) -> Result<()> {
    let mut ledger = Ledger::new(0);
    loop {
        select! {
            recv(settlements) -> settlement => match settlement {
                Ok(settlement) => arrive(&mut ledger, settlement),
                Err(_) => break,
            },
            recv(verdicts) -> settled => match settled {
                Ok(settled) => settle(&mut ledger, settled),
                Err(_) => break,
            },
        }
        for settlement in settlements.try_iter().take(MESSAGES_MAX) {
            arrive(&mut ledger, settlement);
        }
        for settled in verdicts.try_iter().take(MESSAGES_MAX) {
            settle(&mut ledger, settled);
        }
        write_ready(&mut ledger, writer)?;
    }
    writer.close();
    // One channel is closed; what the other still brings is settled before the end.
    for settlement in settlements {
        arrive(&mut ledger, settlement);
    }
    for settled in verdicts {
        settle(&mut ledger, settled);
    }
    write_ready(&mut ledger, writer)
}

fn arrive<T>(ledger: &mut Ledger<T>, settlement: Settlement<T>) {
    let Settlement {
        token,
        admission,
        finish,
    } = settlement;
    ledger.arrive(token, admission, finish);
}

fn settle<T>(ledger: &mut Ledger<T>, settled: Vec<Settled>) {
    for settled in settled {
        ledger.settled(settled);
    }
}

fn write_ready<T>(ledger: &mut Ledger<T>, writer: &mut impl Writer<T>) -> Result<()> {
    loop {
        let batch = ledger.take_batch(NOTES_MAX);
        if batch.is_empty() {
            return writer.rest();
        }
        writer.write(batch)?;
    }
}
