//! The owner's part: asks the workbench what to do, and answers requests and resolutions on the spot.

use std::{
    net::{IpAddr, Ipv4Addr},
    time::Duration,
};

use anyhow::{Result, ensure};
use crossbeam_channel::{Receiver, Sender};
use frontier::{Action, Fetched, RobotsAnswer, Workbench};
use types::{Lease, Purpose, Resolution};

use super::{OwnerEvent, RefillRequest, SILENCE_MAX};
use crate::frontier_scale::mark::Marks;

/// Events taken in before the workbench is asked again, as in the engine.
const EVENTS_MAX: usize = 1_024;
/// What a request takes by the crawl's own clock.
const REQUEST: Duration = Duration::from_micros(1);

pub(super) struct Owner {
    pub(super) workbench: Workbench,
    pub(super) events: Receiver<OwnerEvent>,
    pub(super) pages: Sender<Lease>,
    pub(super) refills: Sender<RefillRequest>,
    /// The crawl's clock: it moves with requests, and nothing waits for it.
    pub(super) now: Duration,
}

impl Owner {
    /// Runs until `marks` has seen enough and every lease is over.
    pub(super) fn run(mut self, marks: &mut Marks<'_>) -> Result<()> {
        loop {
            self.act();
            if marks.is_complete() && !self.workbench.has_leases() {
                return Ok(());
            }
            // Every sender is gone when the committer has failed.
            let first = self.events.recv_timeout(SILENCE_MAX)?;
            self.take(first, marks)?;
            for _ in 0..EVENTS_MAX {
                let Ok(event) = self.events.try_recv() else {
                    break;
                };
                self.take(event, marks)?;
            }
            if marks.is_complete() {
                self.workbench.stop_leasing();
            }
        }
    }

    fn act(&mut self) {
        loop {
            self.now += REQUEST;
            match self.workbench.next_action(self.now) {
                Action::Fetch(lease) => self.fetch(lease),
                Action::Resolve(host) => {
                    let address = Resolution::Address(address_of(host.as_str()));
                    self.workbench.resolved(&host, address, self.now);
                }
                Action::Refill { host, from, limit } => {
                    drop(self.refills.send(RefillRequest { host, from, limit }));
                }
                // No rules forbid anything, and no host is given up.
                Action::Disregard(..) => {}
                Action::Wait(_) => return,
            }
        }
    }

    fn fetch(&mut self, lease: Lease) {
        if let Purpose::Robots { .. } = lease.purpose {
            let answer = RobotsAnswer::Unavailable;
            self.workbench.robots_answered(lease.id, answer, self.now);
            return;
        }
        let response = Fetched::Response {
            status: 200,
            retry_after: None,
        };
        self.workbench.fetched(lease.id, response, self.now);
        drop(self.pages.send(lease));
    }

    fn take(&mut self, event: OwnerEvent, marks: &mut Marks<'_>) -> Result<()> {
        match event {
            OwnerEvent::Refilled(host, urls) => self.workbench.refilled(&host, urls, self.now),
            OwnerEvent::Durable {
                notes,
                leases,
                counts,
            } => {
                self.workbench.enqueue(notes, self.now);
                for lease in leases {
                    self.workbench.finished(lease);
                }
                let stats = self.workbench.stats();
                let waiting_count = stats.queued_count + stats.leased_count;
                ensure!(
                    waiting_count == counts.known - counts.finished,
                    "{waiting_count} URLs wait or are leased, {} are known and {} finished",
                    counts.known,
                    counts.finished
                );
                marks.take(counts, &stats)?;
            }
        }
        Ok(())
    }
}

/// Makes up a host's address: a few hosts share one.
fn address_of(host: &str) -> IpAddr {
    let mut bits = 0xcbf2_9ce4_8422_2325_u64;
    for byte in host.bytes() {
        bits = (bits ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    let [.., third, fourth] = bits.to_be_bytes();
    IpAddr::V4(Ipv4Addr::new(198, 18, third, fourth))
}
