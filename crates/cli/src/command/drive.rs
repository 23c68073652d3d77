//! Drives a crawl to its end: progress, Ctrl-C, and the report.

use std::{
    process,
    sync::{
        LazyLock,
        atomic::{AtomicU32, Ordering},
        mpsc::{RecvTimeoutError, sync_channel},
    },
    thread,
    time::Duration,
};

use engine::{Crawl, CrawlConfig, EngineError, Report};
use types::CanonicalUrl;

use crate::{
    failure::{Exit, Failure, unusable_folder},
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

/// Starts a crawl, obeying Ctrl-C meanwhile: to open a large or a remote store takes time. The first Ctrl-C is kept for
/// [`to_end`]; the second ends the process, since nothing was begun that would have to be finished.
///
/// # Errors
///
/// Returns the failure to start. A data folder that cannot be used is one of configuration.
pub(super) fn start(
    config: CrawlConfig,
    seeds: Vec<CanonicalUrl>,
    printer: &Printer,
) -> Result<Crawl, Failure> {
    stop_requests()?;
    let data = config.data.clone();
    let (sender, started) = sync_channel(1);
    let opening = thread::spawn(move || {
        // The receiver outlives the opening, or the process has ended.
        drop(sender.send(Crawl::start(config, &seeds)));
    });
    let mut is_told = false;
    let result = loop {
        match started.recv_timeout(POLL_INTERVAL) {
            Ok(result) => break result,
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                break Err(EngineError::Internal(
                    "the crawl was not opened, by a fault of its own".to_owned(),
                ));
            }
        }
        let asked = stop_requests()?;
        if asked > 0 && !is_told {
            is_told = true;
            printer.message("stopping as soon as the crawl is open; Ctrl-C again ends at once");
        }
        if asked > 1 {
            process::exit(Exit::Stopped as i32);
        }
    };
    // It has sent its result, or has panicked and said so.
    drop(opening.join());
    result.map_err(|error| match &error {
        EngineError::File { path, .. } if path.starts_with(&data) => unusable_folder(&data, &error),
        _ => error.into(),
    })
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
