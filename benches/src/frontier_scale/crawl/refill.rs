//! The reads of the queue, as the engine makes them, and the account of how long they take.

use std::{
    mem,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use anyhow::Result;
use crossbeam_channel::{Receiver, Sender};
use store::Store;

use super::{OwnerEvent, RefillRequest};

/// The account of reads of the queue.
#[derive(Debug, Default)]
pub struct ReadMeter(Mutex<Reads>);

/// Reads of the queue in a stretch of the crawl.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reads {
    /// How many there were.
    pub count: u32,
    /// Entries that they brought.
    pub entry_count: u64,
    /// The time of all of them.
    pub total: Duration,
    /// The longest of them.
    pub longest: Duration,
}

impl ReadMeter {
    fn add(&self, took: Duration, entry_count: usize) {
        let mut reads = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        reads.count += 1;
        reads.entry_count += entry_count as u64;
        reads.total += took;
        reads.longest = reads.longest.max(took);
    }

    /// Returns the account since the last call.
    #[must_use]
    pub fn take(&self) -> Reads {
        mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Reads {
    /// Returns the account of two stretches as of one.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            count: self.count + other.count,
            entry_count: self.entry_count + other.entry_count,
            total: self.total + other.total,
            longest: self.longest.max(other.longest),
        }
    }

    /// Returns the mean time of a read, in microseconds.
    #[must_use]
    pub fn mean_us(&self) -> f64 {
        self.total.as_secs_f64() * 1e6 / f64::from(self.count.max(1))
    }
}

/// Reads queues from the store until no one asks any more.
#[expect(
    clippy::needless_pass_by_value,
    reason = "a stage that ends must drop its ends of the channels"
)]
pub(super) fn run(
    store: &dyn Store,
    reads: &ReadMeter,
    requests: Receiver<RefillRequest>,
    events: Sender<OwnerEvent>,
) -> Result<()> {
    for RefillRequest { host, from, limit } in requests {
        let began = Instant::now();
        let urls = store.read_queue(&host, from, limit)?;
        reads.add(began.elapsed(), urls.len());
        if events.send(OwnerEvent::Refilled(host, urls)).is_err() {
            break;
        }
    }
    Ok(())
}
