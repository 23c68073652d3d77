//! One crawl: bounded stages, shutdown, checkpoint, resume, progress, report. This crate knows neither flags nor terminals.

mod config;
mod progress;
mod report;

pub use config::{CrawlConfig, Limits, StoreConfig};
pub use progress::Progress;
pub use report::{FilterReport, LinkReport, Outcome, OutputReport, Report, StoreReport};
