//! One crawl: bounded stages, shutdown, checkpoint, resume, progress, report. This crate knows neither flags nor terminals.

mod archive;
mod checkpoint;
mod committer;
mod config;
mod confirmer;
mod crawl;
mod error;
mod fetching;
mod folder;
mod key_log;
mod live;
mod memory;
mod message;
mod opening;
mod output;
mod owner;
mod page;
mod page_guard;
mod patience;
mod progress;
mod ratio;
mod record;
mod report;
mod robots_stage;
mod room;
mod run;
mod saved;
mod seen;
mod snapshot;
mod status;
mod verify;
mod watch;

pub use fetcher::{ConnectTo, FetchConfig};
pub use frontier::{ScopeRule, SeenMode};

pub use crate::{
    config::{CrawlConfig, Limits, StoreConfig},
    crawl::Crawl,
    error::{EngineError, ErrorKind},
    memory::{MemoryError, MemoryParts, MemoryPlan},
    progress::{OpeningEvent, Progress},
    report::{FilterReport, LinkReport, Outcome, OutputReport, Report, StoreReport},
    snapshot::SNAPSHOT_FILE,
    status::{CrawlState, Status, StatusFigures, WaitingHost, status},
    verify::{
        FilterFinding, Verification, VerifyStep, Violation, ViolationKind, false_positive_rate,
        verify,
    },
};
