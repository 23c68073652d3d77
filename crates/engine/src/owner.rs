//! The owner of the workbench: the one thread that decides what is fetched next.
//!
//! It never blocks on a send: each of its channels holds as many messages as there can be leases. So every stage that
//! sends to it makes progress, and no cycle of blocked stages can form.

use std::{
    ops::ControlFlow,
    sync::Arc,
    time::{Duration, Instant},
};

use crossbeam_channel::{Receiver, Sender, select};
use frontier::{Action, Admission, Fetched, NextStep, PageToken, WaitingHosts, Workbench};
use jiff::Timestamp;
use types::{
    Disposition, FailureKind, FetchFailure, FetchOutcome, Host, Lease, LeaseId, PageTally, Purpose,
    QueuePosition,
};

use crate::{
    EngineError, Outcome,
    fetching::FetchStage,
    live::Live,
    message::{Durable, FetchedPage, Finish, FinishedPage, OwnerEvent, ParseJob, Settlement},
    record,
    status::TOP_HOSTS_MAX,
};

/// The limits on time and bytes are looked at this often.
const LIMIT_INTERVAL: Duration = Duration::from_millis(100);
/// Events taken in before the workbench is asked again.
const EVENTS_MAX: usize = 1_024;

/// A host's queue to be read from the store.
pub(crate) struct RefillRequest {
    pub(crate) host: Host,
    pub(crate) from: QueuePosition,
    pub(crate) limit: usize,
}

/// How the owner's work ended.
pub(crate) struct Ending {
    pub(crate) outcome: Outcome,
    /// Whether every lease was durably released.
    pub(crate) is_drained: bool,
    /// Why it had to end, if nobody asked for it.
    pub(crate) fault: Option<EngineError>,
    /// The hosts that have work left.
    pub(crate) waiting: WaitingHosts,
}

/// The owner's work is over; commits may still be under way.
pub(crate) struct Ended {
    outcome: Outcome,
    fault: Option<EngineError>,
    workbench: Workbench,
    durable: Receiver<Durable>,
    at: Duration,
    /// Leases that were held back: nothing was requested for them.
    held_count: usize,
}

impl Ended {
    /// Takes in the last commits, until the committer is gone, and so ends.
    pub(crate) fn await_commits(mut self) -> Ending {
        for durable in &self.durable {
            enqueue(&mut self.workbench, durable, self.at);
        }
        Ending {
            outcome: self.outcome,
            is_drained: self.workbench.lease_count() == self.held_count,
            waiting: self.workbench.waiting_hosts(TOP_HOSTS_MAX),
            fault: self.fault,
        }
    }
}

/// Queues the URLs of a commit and ends its leases.
fn enqueue(workbench: &mut Workbench, durable: Durable, now: Duration) {
    workbench.enqueue(durable.notes, now);
    for lease in durable.leases {
        workbench.finished(lease);
    }
}

/// The owner's state.
pub(crate) struct Owner {
    pub(crate) workbench: Workbench,
    pub(crate) fetching: FetchStage,
    pub(crate) events: Receiver<OwnerEvent>,
    pub(crate) durable: Receiver<Durable>,
    pub(crate) parse: Sender<ParseJob>,
    pub(crate) commit: Sender<Box<Settlement>>,
    pub(crate) refill: Sender<RefillRequest>,
    pub(crate) live: Arc<Live>,
    pub(crate) begun: Instant,
    pub(crate) batches: Batches,
    pub(crate) drain_timeout: Duration,
    /// How the crawl is to end, and the time at which it no longer waits for its leases.
    pub(crate) ending: Option<(Outcome, Duration)>,
    /// URLs of hosts that were given up while no host at all had answered.
    pub(crate) held: Vec<(Lease, FetchFailure)>,
    pub(crate) fault: Option<EngineError>,
    /// Hosts that could not be reached of which the user was told.
    pub(crate) told_setback_count: usize,
    /// Domains without budget of which the user was told.
    pub(crate) told_spent_count: usize,
}

/// Batches of seeds and sitemaps, offered and settled; the crawl cannot end before they agree.
#[derive(Default)]
pub(crate) struct Batches {
    /// Of seeds; `None` until all of them were offered.
    seeds_offered: Option<u64>,
    sitemaps_offered: u64,
    /// Of both. One of sitemaps may be settled before it is known to be offered; until then its lease is under way.
    settled: u64,
}

impl Batches {
    fn are_settled(&self) -> bool {
        self.seeds_offered
            .is_some_and(|seeds| seeds + self.sitemaps_offered == self.settled)
    }
}

impl Owner {
    /// Runs the crawl until nothing is left, a limit is reached, or it is stopped.
    pub(crate) fn run(mut self) -> Ended {
        loop {
            let wait = self.act();
            self.live.publish_workbench(&self.workbench.stats());
            self.tell_setbacks();
            self.tell_spent();
            if self.fault.is_some() {
                return self.halt();
            }
            if self.is_drain_over() {
                self.live.notice(format!(
                    "requests that were still under way after {:?} were dropped; the same command makes them again",
                    self.drain_timeout
                ));
                return self.halt();
            }
            if let Some(outcome) = self.outcome() {
                self.live.end();
                return self.close(outcome);
            }
            if self.take_events(wait).is_break() {
                return self.halt();
            }
        }
    }

    /// Ends the crawl at once.
    fn halt(self) -> Ended {
        self.live.halt();
        let outcome = self.ending.map_or(Outcome::Stopped, |(outcome, _)| outcome);
        self.close(outcome)
    }

    fn close(mut self, outcome: Outcome) -> Ended {
        self.tell_setbacks();
        self.tell_spent();
        let untold_count = self.workbench.spent_domains().count - self.told_spent_count as u64;
        if untold_count > 0 {
            self.live.notice(format!(
                "{untold_count} more domains have had all the pages that max-pages-per-domain gives them"
            ));
        }
        let setbacks = self.workbench.setbacks();
        let untold_count = setbacks.host_count - setbacks.first.len() as u64;
        if untold_count > 0 {
            self.live.notice(format!(
                "{untold_count} more hosts could not be reached at some time"
            ));
        }
        Ended {
            outcome,
            at: self.now(),
            held_count: self.held.len(),
            fault: self.fault,
            workbench: self.workbench,
            durable: self.durable,
        }
    }

    /// Tells of hosts that cannot be reached: where no other has work, a crawl is silent while it waits for them.
    fn tell_setbacks(&mut self) {
        let first = &self.workbench.setbacks().first;
        for setback in &first[self.told_setback_count..] {
            self.live.notice(format!(
                "{} cannot be reached ({}); it is tried again in {:?}",
                setback.host, setback.failure, setback.pause
            ));
        }
        self.told_setback_count = first.len();
    }

    /// Tells of domains that may bring no more pages.
    fn tell_spent(&mut self) {
        let first = &self.workbench.spent_domains().first;
        for domain in &first[self.told_spent_count..] {
            self.live.notice(format!(
                "{domain} has had all the pages that max-pages-per-domain gives it; what is queued of it waits for a larger one"
            ));
        }
        self.told_spent_count = first.len();
    }

    fn now(&self) -> Duration {
        self.begun.elapsed()
    }

    /// Does all that the workbench asks for now; returns how long it can wait for an event.
    fn act(&mut self) -> Duration {
        if self.ending.is_none() && self.live.is_limit_reached() {
            self.end(Outcome::LimitReached);
        }
        loop {
            if self.live.is_answered() {
                for (lease, failure) in std::mem::take(&mut self.held) {
                    self.give_up(lease, &failure);
                }
            }
            let now = self.now();
            match self.workbench.next_action(now) {
                Action::Fetch(lease) => self.fetching.fetch(lease),
                Action::Disregard(lease, failure) => self.disregard(lease, failure),
                Action::Resolve(host) => self.fetching.resolve(host),
                Action::Refill { host, from, limit } => {
                    drop(self.refill.send(RefillRequest { host, from, limit }));
                }
                Action::Wait(until) => {
                    if until.is_none() {
                        self.check_reach();
                    }
                    let pause = until.map_or(LIMIT_INTERVAL, |until| until.saturating_sub(now));
                    return pause.min(LIMIT_INTERVAL);
                }
            }
        }
    }

    /// Returns how the crawl ended, if it did.
    fn outcome(&self) -> Option<Outcome> {
        if self.has_leases() {
            return None;
        }
        if let Some((Outcome::Stopped, _)) = self.ending {
            return Some(Outcome::Stopped);
        }
        // Only with all seeds is it known whether anything is left. A limit that ends a run does not wait for that, since
        // every run offers them; one that lets it make no request at all does.
        let is_all_known = self.batches.are_settled();
        if is_all_known && self.workbench.is_drained() {
            return Some(Outcome::Finished);
        }
        if is_all_known && self.workbench.has_only_spent() {
            return Some(Outcome::LimitReached);
        }
        let is_limit_reached = self.ending.is_some() || self.workbench.is_limit_reached();
        let may_end = is_all_known || self.live.request_count() > 0;
        (is_limit_reached && may_end).then_some(Outcome::LimitReached)
    }

    /// Lets the leases drain and ends with `outcome`.
    fn end(&mut self, outcome: Outcome) {
        self.ending = Some((outcome, self.now().saturating_add(self.drain_timeout)));
        self.workbench.stop_leasing();
    }

    /// Returns whether the crawl has waited long enough for its leases to drain.
    fn is_drain_over(&self) -> bool {
        self.ending
            .is_some_and(|(_, until)| self.has_leases() && self.now() >= until)
    }

    /// Waits for something to arrive and takes in all that has; breaks when the crawl is to stop at once.
    fn take_events(&mut self, wait: Duration) -> ControlFlow<()> {
        select! {
            // This stage holds a sender itself, so the channel is never closed under it.
            recv(self.events) -> event => if let Ok(event) = event {
                self.take_event(event)?;
            },
            recv(self.durable) -> durable => match durable {
                Ok(durable) => self.take_durable(durable),
                // Only a fault ends the committer before this stage.
                Err(_) => return ControlFlow::Break(()),
            },
            default(wait) => {}
        }
        for _ in 0..EVENTS_MAX {
            let Ok(event) = self.events.try_recv() else {
                break;
            };
            self.take_event(event)?;
        }
        ControlFlow::Continue(())
    }

    fn take_durable(&mut self, durable: Durable) {
        self.batches.settled += durable.batch_count;
        let now = self.now();
        enqueue(&mut self.workbench, durable, now);
    }

    fn take_event(&mut self, event: OwnerEvent) -> ControlFlow<()> {
        let now = self.now();
        match event {
            OwnerEvent::Fetched(fetched) => self.take_fetched(fetched, now),
            OwnerEvent::Robots {
                lease,
                answer,
                batch_count,
            } => {
                self.batches.sitemaps_offered += batch_count;
                self.workbench.robots_answered(lease, answer, now);
            }
            OwnerEvent::Resolved(host, resolution) => {
                self.workbench.resolved(&host, resolution, now);
            }
            OwnerEvent::Refilled(host, urls) => self.workbench.refilled(&host, urls, now),
            OwnerEvent::CountHosts(reply) => {
                // The committer asks, and means with all that it has said.
                if let Ok(durable) = self.durable.try_recv() {
                    self.take_durable(durable);
                }
                // It has room for the one answer.
                drop(reply.send(self.workbench.waiting_hosts(TOP_HOSTS_MAX)));
            }
            OwnerEvent::SeedsOffered(batch_count) => self.batches.seeds_offered = Some(batch_count),
            OwnerEvent::Stop => self.end(Outcome::Stopped),
            OwnerEvent::StopNow => return ControlFlow::Break(()),
            OwnerEvent::Fault(fault) => {
                self.fault = Some(fault);
                return ControlFlow::Break(());
            }
        }
        ControlFlow::Continue(())
    }

    /// Decides what becomes of a page's outcome.
    fn take_fetched(&mut self, fetched: Box<FetchedPage>, now: Duration) {
        let step = self
            .workbench
            .fetched(fetched.lease.id, summary(&fetched.outcome), now);
        match (step, &fetched.outcome) {
            (NextStep::Retry, outcome) => self.live.count_unrecorded(wire_bytes(outcome)),
            (NextStep::GiveUp, FetchOutcome::Failed(failure)) => {
                let failure = failure.clone();
                let FetchedPage {
                    lease, fetched_at, ..
                } = *fetched;
                self.finish_without_response(lease, &failure, Disposition::Failed, fetched_at);
            }
            (NextStep::Keep | NextStep::GiveUp, _) => {
                drop(self.parse.send(ParseJob::Page(fetched)));
            }
        }
    }

    /// Says whether anything is under way that ends by itself.
    fn has_leases(&self) -> bool {
        self.workbench.lease_count() > self.held.len()
    }

    /// Ends a URL without a request. While no host at all has answered, giving one up would more likely punish it for a fault
    /// on our side, and its URLs would be lost for good; so they are held back until another host answers.
    fn disregard(&mut self, lease: Lease, failure: FetchFailure) {
        if failure.kind == FailureKind::RobotsDisallowed || self.live.is_answered() {
            self.give_up(lease, &failure);
        } else {
            self.held.push((lease, failure));
        }
    }

    /// Ends the crawl if URLs are held back and no other host is left that could answer. The leases go with the run; their URLs
    /// stay queued in the store.
    fn check_reach(&mut self) {
        let is_all_tried = self.ending.is_none()
            && self.batches.are_settled()
            && self.workbench.is_idle()
            && !self.live.is_answered();
        if is_all_tried && let Some((lease, failure)) = self.held.first() {
            let fault = format!("{}: {failure}", lease.host);
            self.fault = Some(EngineError::NothingReached(fault));
        }
    }

    fn give_up(&mut self, lease: Lease, failure: &FetchFailure) {
        // What robots.txt forbids was never to be requested, and a host that was given up had no say; all else that
        // ends without a request failed.
        let disposition = match failure.kind {
            FailureKind::RobotsDisallowed
            | FailureKind::RobotsUnreachable
            | FailureKind::HostGivenUp => Disposition::Disregarded,
            _ => Disposition::Failed,
        };
        self.finish_without_response(lease, failure, disposition, Timestamp::now());
    }

    /// Sends a page without a response straight to the committer: it has no links to settle.
    fn finish_without_response(
        &self,
        lease: Lease,
        failure: &FetchFailure,
        disposition: Disposition,
        fetched_at: Timestamp,
    ) {
        let LeaseId(id) = lease.id;
        let Purpose::Page(queued) = lease.purpose else {
            return;
        };
        let record = record::of_failure(&queued, failure, disposition, fetched_at);
        let page = FinishedPage {
            lease: lease.id,
            queued,
            disposition,
            record,
            warc: None,
        };
        let settlement = Settlement {
            token: PageToken(id),
            admission: Admission::default(),
            finish: Finish {
                tally: PageTally::default(),
                page: Some(page),
            },
        };
        drop(self.commit.send(Box::new(settlement)));
    }
}

/// Returns the bytes of a body on the wire.
fn wire_bytes(outcome: &FetchOutcome) -> u64 {
    match outcome {
        FetchOutcome::Response(response) => response.wire_body.len() as u64,
        FetchOutcome::Redirect(redirect) => redirect.response.wire_body.len() as u64,
        FetchOutcome::Failed(_) => 0,
    }
}

/// Tells the workbench what it needs to know of an outcome.
fn summary(outcome: &FetchOutcome) -> Fetched<'_> {
    let response = match outcome {
        FetchOutcome::Response(response) => response,
        FetchOutcome::Redirect(redirect) => &redirect.response,
        FetchOutcome::Failed(failure) => return Fetched::Failed(failure),
    };
    Fetched::Response {
        status: response.status,
        retry_after: record::retry_after(response, Timestamp::now()),
    }
}
