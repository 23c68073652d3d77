//! Drives a crawl to its end: progress, Ctrl-C, and the report.

use std::{
    process,
    sync::{
        LazyLock,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use engine::{Crawl, Report};

use crate::{
    failure::{Exit, Failure},
    printer::{self, Printer, Verbosity},
    progress::Display,
    report,
};

/// How often the crawl is looked at; also the longest that a Ctrl-C waits to be acted on.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Ctrl-C (SIGINT), SIGTERM and SIGHUP received so far.
static STOP_REQUESTS: AtomicU32 = AtomicU32::new(0);

/// Installs the handler once; a second installation in one process would fail.
static HANDLER: LazyLock<Result<(), String>> = LazyLock::new(|| {
    ctrlc::set_handler(|| {
        // Twice asks the crawl to end at once. A third time does not wait for it: what was committed stays valid.
        if STOP_REQUESTS.fetch_add(1, Ordering::SeqCst) >= 2 {
            process::exit(Exit::Stopped as i32);
        }
    })
    .map_err(|error| error.to_string())
});

/// Begins to listen for Ctrl-C and SIGTERM, and returns how often they came so far.
///
/// # Errors
///
/// Fails when the system refuses the handler.
pub(super) fn stop_requests() -> Result<u32, Failure> {
    HANDLER.clone().map_err(|error| {
        Failure::new(Exit::Internal, format!("Ctrl-C cannot be handled: {error}"))
    })?;
    Ok(STOP_REQUESTS.load(Ordering::SeqCst))
}

/// Waits for the end of `crawl`, showing progress and obeying Ctrl-C: the first stops it gracefully, the second at once.
///
/// # Errors
///
/// Returns the crawl's failure.
pub(super) fn to_end(crawl: &Crawl, printer: &Printer) -> Result<Report, Failure> {
    let mut display = Display::new(printer.verbosity);
    let mut obeyed = 0;
    let result = loop {
        if let Some(result) = crawl.wait(POLL_INTERVAL) {
            break result;
        }
        let asked = stop_requests()?;
        if asked > 0 && obeyed == 0 {
            obeyed = 1;
            crawl.stop();
            display.message(
                "stopping: requests under way are finished and written; Ctrl-C again stops at once",
                printer,
            );
        }
        if asked > 1 && obeyed == 1 {
            obeyed = 2;
            crawl.stop_now();
            display.message("stopping at once; the crawl can be resumed", printer);
        }
        display.update(&crawl.progress(), printer);
    };
    display.finish();
    Ok(result?)
}

/// Prints the report: as JSON to stdout, or for people to stderr.
///
/// # Errors
///
/// Fails when stdout cannot be written.
pub(super) fn print_report(
    report: &Report,
    is_json: bool,
    printer: &Printer,
) -> Result<(), Failure> {
    if is_json {
        let mut line = serde_json::to_string(report).map_err(|error| {
            Failure::new(
                Exit::Internal,
                format!("the report cannot be written as JSON: {error}"),
            )
        })?;
        line.push('\n');
        return printer::data(&line);
    }
    printer.block(&report::text(
        report,
        printer.verbosity >= Verbosity::Verbose,
    ));
    Ok(())
}
