//! The fetch stage: leases become requests on the async runtime, and outcomes go back to the owner or to the parsers.

use std::sync::Arc;

use crossbeam_channel::Sender;
use fetcher::{Fetched, Fetcher};
use jiff::Timestamp;
use tokio::{runtime::Runtime, sync::Semaphore};
use types::{FailureKind, FetchFailure, FetchOutcome, Host, Lease, Purpose, Resolution};

use crate::{
    EngineError,
    live::Live,
    message::{FetchedPage, OwnerEvent, ParseJob},
};

/// Names being resolved at one time; more would only queue in the system's resolver threads.
const RESOLVES_MAX: usize = 64;

/// Starts fetches; it holds the runtime, and dropping it ends all that is under way.
pub(crate) struct FetchStage {
    runtime: Option<Runtime>,
    fetcher: Fetcher,
    owner: Sender<OwnerEvent>,
    parse: Sender<ParseJob>,
    live: Arc<Live>,
    resolves: Arc<Semaphore>,
}

impl FetchStage {
    /// Builds the runtime.
    pub(crate) fn new(
        fetcher: Fetcher,
        owner: Sender<OwnerEvent>,
        parse: Sender<ParseJob>,
        live: Arc<Live>,
    ) -> Result<Self, EngineError> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .thread_name("fetch")
            .enable_all()
            .build()
            .map_err(|error| {
                EngineError::Internal(format!("the async runtime did not start: {error}"))
            })?;
        let resolves = Arc::new(Semaphore::new(RESOLVES_MAX));
        Ok(Self {
            runtime: Some(runtime),
            fetcher,
            owner,
            parse,
            live,
            resolves,
        })
    }

    /// Sends the request of a lease. A page's outcome goes to the owner, which knows whether to try again;
    /// a robots.txt goes to the parsers at once.
    pub(crate) fn fetch(&self, lease: Lease) {
        let Some(runtime) = &self.runtime else { return };
        let fetcher = self.fetcher.clone();
        let (owner, parse, live) = (
            self.owner.clone(),
            self.parse.clone(),
            Arc::clone(&self.live),
        );
        runtime.spawn(async move {
            let fetched_at = Timestamp::now();
            live.count_request();
            let url = lease.url().clone();
            // A task of its own, so that a panic in it ends in a failure of this URL and not in a lease without end.
            let Fetched { outcome, hold } = tokio::spawn(async move { fetcher.fetch(&url).await })
                .await
                .unwrap_or_else(|_| Fetched {
                    outcome: FetchOutcome::Failed(own_fault()),
                    hold: None,
                });
            match &outcome {
                FetchOutcome::Failed(failure) if failure.kind == FailureKind::OutOfFiles => {
                    let fault = EngineError::OutOfFiles(failure.detail.clone());
                    drop(owner.send(OwnerEvent::Fault(fault)));
                    return;
                }
                FetchOutcome::Failed(_) => {}
                FetchOutcome::Response(_) | FetchOutcome::Redirect(_) => live.note_answer(),
            }
            let is_page = matches!(lease.purpose, Purpose::Page(_));
            let page = Box::new(FetchedPage {
                lease,
                outcome,
                fetched_at,
                hold,
            });
            // Both channels hold as many messages as there are leases. They are closed only when the crawl ends at
            // once, and the outcome is not wanted any more then.
            if is_page {
                drop(owner.send(OwnerEvent::Fetched(page)));
            } else {
                drop(parse.send(ParseJob::Robots(page)));
            }
        });
    }

    /// Resolves a host.
    pub(crate) fn resolve(&self, host: Host) {
        let Some(runtime) = &self.runtime else { return };
        let fetcher = self.fetcher.clone();
        let owner = self.owner.clone();
        let resolves = Arc::clone(&self.resolves);
        runtime.spawn(async move {
            let Ok(_permit) = resolves.acquire().await else {
                return;
            };
            let asked = host.clone();
            let resolution = tokio::spawn(async move { fetcher.resolve(&asked).await })
                .await
                .unwrap_or_else(|_| Resolution::Failed(own_fault()));
            drop(owner.send(OwnerEvent::Resolved(host, resolution)));
        });
    }
}

fn own_fault() -> FetchFailure {
    FetchFailure {
        kind: FailureKind::Internal,
        detail: "the fetcher met a fault of its own".to_owned(),
    }
}

impl Drop for FetchStage {
    fn drop(&mut self) {
        // Resolver threads may be stuck in the system; nobody waits for them.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
