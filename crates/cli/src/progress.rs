//! The progress of a running crawl: a live block on a terminal, a plain line every ten seconds elsewhere.

use std::{
    io::{IsTerminal as _, stderr},
    time::{Duration, Instant},
};

use engine::{Progress, VerifyStep};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use types::AwaitedHost;

use crate::{
    clean::clean,
    printer::{Printer, Verbosity},
    unit::{
        counted, grouped, human_byte_rate, human_bytes, human_duration, human_rate, percent,
        percent_of,
    },
};

/// How often the live block is redrawn, at most, in times a second.
const REDRAWS_PER_SECOND_MAX: u8 = 10;

/// The time between two plain lines.
const PLAIN_INTERVAL: Duration = Duration::from_secs(10);

/// The characters of the bar that shows how much of the limit is used.
const BAR_CHARS: usize = 30;

/// The longest line of the live block.
const BLOCK_CHARS: usize = 79;

/// The longest host and the longest reason shown in a line of the log.
const TEXT_CHARS_MAX: usize = 300;

/// Shows progress.
pub(crate) struct Display {
    form: Form,
    /// Slices of the filter when it was last looked at.
    slice_count: Option<u64>,
    /// Whether it was said that the filter cannot grow.
    is_refusal_told: bool,
}

/// The way of showing that suits where stderr goes.
enum Form {
    /// Nothing is shown.
    None,
    /// A block that is drawn over itself.
    Live(ProgressBar),
    /// A line now and then.
    Plain {
        /// When the last line was printed.
        last: Instant,
    },
}

impl Display {
    /// Chooses by the verbosity, and by whether stderr is a terminal. Nothing is coloured, so `NO_COLOR` holds.
    pub(crate) fn new(verbosity: Verbosity) -> Self {
        Self {
            form: Form::new(verbosity),
            slice_count: None,
            is_refusal_told: false,
        }
    }

    /// Shows the vital signs of now, unless that was just done, and says so when the filter has grown.
    pub(crate) fn update(&mut self, progress: &Progress, printer: &Printer) {
        let before = self.slice_count.replace(progress.filter_slice_count);
        if before.is_some_and(|before| progress.filter_slice_count > before.max(1)) {
            self.message(&grown(progress), printer);
        }
        if let Some(error) = progress.filter_growth_error
            && !std::mem::replace(&mut self.is_refusal_told, true)
        {
            self.message(&format!("the filter cannot grow: {error}"), printer);
        }
        self.show(printer, || live_block(progress), || plain_line(progress));
    }

    /// Shows how far the filter has been rebuilt from the store.
    pub(crate) fn rebuilding(&mut self, key_count: u64, expected_count: u64, printer: &Printer) {
        let line = || {
            format!(
                "reading the keys of the store: {} of {} URLs ({})",
                grouped(key_count),
                grouped(expected_count),
                percent_of(key_count, expected_count)
            )
        };
        self.show(printer, line, line);
    }

    /// Shows how far a check has come.
    pub(crate) fn checking(&mut self, step: &VerifyStep, printer: &Printer) {
        let line = || {
            format!(
                "checking the {}: {} of {} ({})",
                step.what,
                grouped(step.done),
                grouped(step.expected),
                percent_of(step.done, step.expected)
            )
        };
        self.show(printer, line, line);
    }

    fn show(
        &mut self,
        printer: &Printer,
        block: impl FnOnce() -> String,
        line: impl FnOnce() -> String,
    ) {
        match &mut self.form {
            Form::None => {}
            Form::Live(bar) => bar.set_message(block()),
            Form::Plain { last } => {
                if last.elapsed() >= PLAIN_INTERVAL {
                    *last = Instant::now();
                    printer.message(&line());
                }
            }
        }
    }

    /// Prints a message without tearing the live block.
    pub(crate) fn message(&self, text: &str, printer: &Printer) {
        self.beside(|| printer.message(text));
    }

    /// Prints a warning without tearing the live block.
    pub(crate) fn warning(&self, text: &str, printer: &Printer) {
        self.beside(|| printer.warning(text));
    }

    /// Has something printed while the live block is away.
    fn beside(&self, print: impl FnOnce()) {
        match &self.form {
            Form::Live(bar) => bar.suspend(print),
            _ => print(),
        }
    }

    /// Takes the live block away.
    pub(crate) fn finish(self) {
        if let Form::Live(bar) = self.form {
            bar.finish_and_clear();
        }
    }
}

impl Form {
    fn new(verbosity: Verbosity) -> Self {
        if verbosity == Verbosity::Quiet {
            return Self::None;
        }
        if stderr().is_terminal() {
            let target = ProgressDrawTarget::stderr_with_hz(REDRAWS_PER_SECOND_MAX);
            // A terminal that cannot move its cursor (TERM=dumb) hides the block; lines serve it better.
            if !target.is_hidden() {
                return Self::live(target);
            }
        }
        Self::Plain {
            last: Instant::now(),
        }
    }

    fn live(target: ProgressDrawTarget) -> Self {
        Self::Live(ProgressBar::with_draw_target(None, target).with_style(message_only()))
    }
}

fn message_only() -> ProgressStyle {
    ProgressStyle::with_template("{msg}").unwrap_or_else(|_| ProgressStyle::default_spinner())
}

/// Returns the live block: lines of at most 79 columns with all vital signs.
fn live_block(progress: &Progress) -> String {
    let rows = [
        [
            cell(
                "pages",
                &grouped(progress.pages),
                &human_rate(progress.pages_per_second),
            ),
            cell("queued", &grouped(progress.queued), ""),
            cell("hosts", &grouped(progress.hosts), ""),
        ],
        [
            cell(
                "links",
                &grouped(progress.links),
                &human_rate(progress.links_per_second),
            ),
            cell("no store", &percent(progress.links_without_store), ""),
            cell("filter", &filter_text(progress), ""),
        ],
        [
            cell(
                "bytes",
                &human_bytes(progress.wire_bytes),
                &human_byte_rate(progress.bytes_per_second),
            ),
            cell("errors", &grouped(progress.errors), ""),
            cell("time", &human_duration(progress.elapsed), ""),
        ],
    ];
    let mut lines: Vec<String> = rows
        .iter()
        .map(|[a, b, c]| format!("{a:<36} {b:<22} {c}").trim_end().to_owned())
        .collect();
    if let Some(used) = progress.limit_used {
        let left = progress.eta.map_or(String::new(), |eta| {
            format!("  ETA {}", human_duration(eta))
        });
        lines.push(format!(
            "limit {} {}{left}",
            bar(used),
            percent(used.clamp(0.0, 1.0))
        ));
    }
    if let Some(awaited) = &progress.awaited {
        let line: String = waiting(awaited).chars().take(BLOCK_CHARS).collect();
        lines.push(line);
    }
    lines.join("\n")
}

/// Returns the word on the host that the crawl waits for. What matters most is first, where the line is cut.
fn waiting(awaited: &AwaitedHost) -> String {
    let others = match awaited.other_count {
        0 => String::new(),
        count => format!(" and {}", counted(count, "more host")),
    };
    let reason = awaited.reason.as_ref().map_or_else(String::new, |reason| {
        format!(" ({})", clean(reason, TEXT_CHARS_MAX))
    });
    format!(
        "next try in {} after {}: waiting for {}{others}{reason}",
        human_duration(awaited.pause),
        counted(awaited.failure_count.into(), "failure"),
        clean(awaited.host.as_str(), TEXT_CHARS_MAX),
    )
}

fn cell(name: &str, value: &str, rate: &str) -> String {
    if rate.is_empty() {
        format!("{name:<8} {value}")
    } else {
        format!("{name:<5} {value} ({rate})")
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a share of 30 characters"
)]
#[expect(clippy::cast_precision_loss, reason = "30 is exact")]
fn bar(used: f64) -> String {
    let filled = ((used.clamp(0.0, 1.0) * BAR_CHARS as f64) as usize).min(BAR_CHARS);
    format!("[{}{}]", "#".repeat(filled), "-".repeat(BAR_CHARS - filled))
}

/// Returns how full the filter is; while there is none, a dash.
fn filter_text(progress: &Progress) -> String {
    match progress.filter_slice_count {
        0 => "-".to_owned(),
        1 => percent(progress.filter_fill),
        slices => format!("{:.0} % of {slices}", progress.filter_fill * 100.0),
    }
}

/// Returns the word on a filter that has grown.
fn grown(progress: &Progress) -> String {
    format!(
        "the filter grew to {} slices at {} URLs ({} expected); false positives stay below the rate asked for, now {} by the formula. A crawl of this size takes less memory with a higher --expected-urls",
        progress.filter_slice_count,
        grouped(progress.filter_item_count),
        grouped(progress.filter_expected_count),
        percent(progress.filter_predicted_rate)
    )
}

/// Returns the vital signs in one line, for logs; where the crawl stands still, the reason first.
fn plain_line(progress: &Progress) -> String {
    let eta = progress.eta.map_or(String::new(), |eta| {
        format!(", ETA {}", human_duration(eta))
    });
    let awaited = progress
        .awaited
        .as_ref()
        .map_or_else(String::new, |awaited| format!("{}; ", waiting(awaited)));
    format!(
        "{}: {awaited}pages {} ({}), queued {}, hosts {}, links {} ({}, {} without the store), {}, errors {}, {}{eta}",
        human_duration(progress.elapsed),
        grouped(progress.pages),
        human_rate(progress.pages_per_second),
        grouped(progress.queued),
        grouped(progress.hosts),
        grouped(progress.links),
        human_rate(progress.links_per_second),
        percent(progress.links_without_store),
        match progress.filter_slice_count {
            0 => "no filter".to_owned(),
            1 => format!("filter {} full", percent(progress.filter_fill)),
            slices => format!(
                "filter of {slices} slices {} full",
                percent(progress.filter_fill)
            ),
        },
        grouped(progress.errors),
        human_byte_rate(progress.bytes_per_second),
    )
}

#[cfg(test)]
#[path = "progress_screen_test.rs"]
mod screen_tests;

#[cfg(test)]
mod tests {
    use types::Host;

    use super::*;

    fn large() -> Progress {
        Progress {
            elapsed: Duration::from_secs(400_000),
            pages: 123_456_789,
            pages_per_second: 12_345.6,
            queued: 9_876_543_210,
            hosts: 1_234_567,
            links: 12_345_678_901,
            links_per_second: 987_654.3,
            links_without_store: 0.991_234,
            filter_fill: 0.4321,
            filter_slice_count: 12,
            filter_predicted_rate: 0.008,
            filter_item_count: 4_000_000,
            filter_growth_error: None,
            filter_expected_count: 5_000_000,
            awaited: Some(AwaitedHost {
                host: Host::new("https://\u{1b}[2J.example"),
                pause: Duration::from_secs(37),
                failure_count: 2,
                reason: Some("connect: refused".to_owned()),
                other_count: 1_234_566,
            }),
            errors: 1_234_567,
            wire_bytes: 12 << 40,
            bytes_per_second: 123.4 * 1_048_576.0,
            limit_used: Some(0.5),
            eta: Some(Duration::from_secs(400_000)),
        }
    }

    #[test]
    fn the_live_block_fits_80_columns_and_holds_every_vital_sign() {
        for progress in [large(), Progress::default()] {
            let block = live_block(&progress);
            for line in block.lines() {
                assert!(
                    line.chars().count() < 80,
                    "{} columns: {line}",
                    line.chars().count()
                );
            }
        }
        let block = live_block(&large());
        for sign in [
            "123,456,789",
            "12,346/s",
            "9,876,543,210",
            "1,234,567",
            "12,345,678,901",
            "987,654/s",
            "99.12 %",
            "43 % of 12",
            "12.0 TiB",
            "123 MiB/s",
            "4d 15h",
            "ETA",
            "50.00 %",
        ] {
            assert!(block.contains(sign), "{sign} is missing in\n{block}");
        }
    }

    #[test]
    fn the_filter_is_told_by_what_it_is() {
        let of = |filter_slice_count| Progress {
            filter_slice_count,
            ..large()
        };
        assert!(plain_line(&of(0)).contains("no filter,"));
        assert!(plain_line(&of(1)).contains("filter 43.21 % full,"));
        assert!(plain_line(&of(3)).contains("filter of 3 slices 43.21 % full,"));
        assert_eq!(filter_text(&of(0)), "-");
        assert!(
            grown(&of(3)).contains("3 slices at 4,000,000 URLs (5,000,000 expected)")
                && grown(&of(3)).contains("0.80 %")
        );
    }

    #[test]
    fn the_bar_follows_the_limit() {
        assert_eq!(bar(0.0).matches('#').count(), 0);
        assert_eq!(bar(0.5).matches('#').count(), 15);
        assert_eq!(bar(7.0).matches('#').count(), BAR_CHARS);
        assert_eq!(bar(f64::NAN).chars().count(), BAR_CHARS + 2);
        assert!(!live_block(&Progress::default()).contains("ETA"));
    }

    #[test]
    fn a_crawl_that_stands_still_says_for_whom_and_until_when() {
        let mut progress = large();
        let text = "next try in 37s after 2 failures: waiting for https://\\u{1b}[2J.example and 1,234,566 more hosts (connect: refused)";
        assert!(plain_line(&progress).contains(&format!(": {text}; pages ")));
        let block = live_block(&progress);
        let last = block.lines().last().expect("a line");
        assert!(
            text.starts_with(last) && last.contains("waiting for https://"),
            "{last}"
        );
        progress.awaited = Some(AwaitedHost {
            host: Host::new("http://127.0.0.1:8080"),
            pause: Duration::from_secs(5),
            failure_count: 1,
            reason: None,
            other_count: 0,
        });
        assert!(plain_line(&progress).contains(
            ": next try in 5.0s after 1 failure: waiting for http://127.0.0.1:8080; pages "
        ));
        progress.awaited = None;
        assert!(!plain_line(&progress).contains("waiting"));
    }

    #[test]
    fn the_plain_line_is_one_line() {
        let line = plain_line(&large());
        assert!(
            !line.contains('\n')
                && line.contains("99.12 % without the store")
                && line.contains("ETA 4d 15h")
        );
    }
}
