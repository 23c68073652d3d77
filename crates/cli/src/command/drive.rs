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

use engine::{Crawl, CrawlConfig, EngineError, MemoryPlan, OpeningEvent, Report};
use types::CanonicalUrl;

use crate::{
    failure::{Exit, Failure, unusable_folder},
    printer::{self, Printer, Verbosity},
    progress::Display,
    report,
    unit::{grouped, megabytes},
};

/// How often the crawl is looked at; also the longest that a Ctrl-C waits to be acted on.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Steps of an opening that wait to be shown, at most.
const STEPS_MAX: usize = 64;

/// Parts of the memory plan are named if they are at least one in so many of all of it.
const MEMORY_SHARE_MIN: u64 = 20;

/// What the opening of a crawl comes to.
enum Step {
    Event(OpeningEvent),
    Opened(Box<Result<Crawl, EngineError>>),
}

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

/// Starts a crawl under a headline, obeying Ctrl-C meanwhile: to open a large or a remote store takes time. The first Ctrl-C
/// is kept for [`to_end`]; the second ends the process, since nothing was begun that would have to be finished.
///
/// # Errors
///
/// Returns the failure to start. A data folder that cannot be used is one of configuration.
pub(super) fn start(
    config: CrawlConfig,
    seeds: Vec<CanonicalUrl>,
    headline: &str,
    printer: &Printer,
) -> Result<Crawl, Failure> {
    stop_requests()?;
    let plan = MemoryPlan::new(&config).map_err(EngineError::from)?;
    printer.message(headline);
    print_memory(&plan, printer);
    let data = config.data.clone();
    let (sender, steps) = sync_channel(STEPS_MAX);
    let opening = thread::spawn(move || {
        // The receiver outlives the opening, or the process has ended.
        let mut observer = |event| drop(sender.send(Step::Event(event)));
        let result = Crawl::start_observed(config, &seeds, &mut observer);
        drop(sender.send(Step::Opened(Box::new(result))));
    });
    let mut display = Display::new(printer.verbosity);
    let mut is_told = false;
    let result = loop {
        match steps.recv_timeout(POLL_INTERVAL) {
            Ok(Step::Event(event)) => show(&event, &mut display, printer),
            Ok(Step::Opened(result)) => break *result,
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
            display.message(
                "stopping as soon as the crawl is open; Ctrl-C again ends at once",
                printer,
            );
        }
        if asked > 1 {
            process::exit(Exit::Stopped as i32);
        }
    };
    display.finish();
    // It has sent its result, or has panicked and said so.
    drop(opening.join());
    result.map_err(|error| match &error {
        EngineError::File { path, .. } if path.starts_with(&data) => unusable_folder(&data, &error),
        _ => error.into(),
    })
}

/// Prints what the crawl may take of memory, by its parts; those too small to matter only when verbose.
fn print_memory(plan: &MemoryPlan, printer: &Printer) {
    let parts = plan.bytes();
    let total = parts.total();
    let rows = parts.rows();
    let mut main: Vec<_> = rows
        .iter()
        .filter(|(_, bytes, _)| *bytes >= total / MEMORY_SHARE_MIN)
        .collect();
    main.sort_by_key(|(_, bytes, _)| std::cmp::Reverse(*bytes));
    let main: Vec<String> = main
        .into_iter()
        .map(|(name, bytes, _)| format!("{name} {}", megabytes(*bytes)))
        .collect();
    printer.message(&format!(
        "memory: at most {}, less for small crawls ({})",
        megabytes(total),
        main.join(", ")
    ));
    for (name, bytes, settings) in rows {
        printer.detail(&format!(
            "memory for {name}: at most {}{}",
            megabytes(bytes),
            if settings.is_empty() {
                String::new()
            } else {
                format!(" ({settings})")
            }
        ));
    }
}

/// Shows a step of the opening.
fn show(event: &OpeningEvent, display: &mut Display, printer: &Printer) {
    match event {
        OpeningEvent::SnapshotLoaded {
            key_count,
            replayed_count,
        } => printer.detail(&format!(
            "the filter was read from its snapshot: {} URLs, {} of them logged since",
            grouped(*key_count),
            grouped(*replayed_count)
        )),
        OpeningEvent::Rebuilding {
            key_count,
            expected_count,
        } => display.rebuilding(*key_count, *expected_count, printer),
        OpeningEvent::Notice(notice) => printer.warning(notice),
    }
}

/// Waits for the end of `crawl`, showing progress and obeying Ctrl-C: the first stops it gracefully, the second at once.
///
/// # Errors
///
/// Returns the crawl's failure.
pub(super) fn to_end(crawl: &Crawl, printer: &Printer) -> Result<Report, Failure> {
    let mut display = Display::new(printer.verbosity);
    let (mut obeyed, mut told_count) = (0, 0);
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
        for notice in new_notices(crawl, &mut told_count) {
            display.warning(&notice, printer);
        }
        display.update(&crawl.progress(), printer);
    };
    display.finish();
    for notice in new_notices(crawl, &mut told_count) {
        printer.warning(&notice);
    }
    let report = result?;
    if let Some(error) = &report.filter.growth_error {
        let effect = if report.filter.is_exact {
            "the keys could not be turned into a filter, and are held exactly on: memory grows with them"
        } else {
            "the filter could not grow, and answers more false positives than asked for"
        };
        printer.warning(&format!("{effect}: {error}"));
    }
    Ok(report)
}

/// Returns the notices that have come up since the first `told_count`.
fn new_notices(crawl: &Crawl, told_count: &mut usize) -> Vec<String> {
    let mut notices = crawl.notices();
    let new = notices.split_off(*told_count);
    *told_count += new.len();
    new
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
        return printer::json(serde_json::to_string(report));
    }
    printer.block(&report::text(
        report,
        printer.verbosity >= Verbosity::Verbose,
    ));
    Ok(())
}
