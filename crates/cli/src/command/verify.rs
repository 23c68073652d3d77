//! `bloomcrawl verify`: whether all that a crawl left agrees.

use std::{fmt::Write as _, time::Duration};

use engine::{FilterFinding, Verification};

use super::effective;
use crate::{
    clean::clean,
    failure::{Exit, Failure},
    flags::VerifyCommand,
    printer::{self, Printer},
    progress::Display,
    rows::Page,
    unit::{counted, grouped, human_duration, percent},
};

/// The longest text of a violation or a remark, in characters.
const TEXT_CHARS_MAX: usize = 1_000;

/// Checks the crawl in the data folder and its store. Exit code 1 if something does not agree.
///
/// # Errors
///
/// Fails when there is no such crawl, when it runs, and when its store cannot be read.
pub(super) fn run(command: &VerifyCommand) -> Result<Exit, Failure> {
    let effective = effective(&command.config, &command.flags.0)?;
    let printer = Printer {
        verbosity: effective.verbosity()?,
    };
    for warning in &effective.warnings {
        printer.warning(warning);
    }
    let config = effective.settings.crawl_config()?;
    let mut display = Display::new(printer.verbosity);
    let verified = engine::verify(&config, &mut |step| display.checking(&step, &printer));
    display.finish();
    let verification = verified?;
    if effective.settings.is_json {
        printer::json(serde_json::to_string(&verification))?;
    } else {
        printer::data(&text(&verification))?;
    }
    Ok(if verification.is_clean {
        Exit::Done
    } else {
        Exit::Internal
    })
}

fn text(verification: &Verification) -> String {
    let mut text = String::new();
    for violation in &verification.violations {
        let meaning = violation.kind.meaning();
        for shown in &violation.shown {
            // Writing to a string does not fail.
            let _ = writeln!(
                text,
                "violation: {meaning}: {}",
                clean(shown, TEXT_CHARS_MAX)
            );
        }
        let more = violation.count - violation.shown.len() as u64;
        if more > 0 {
            let _ = writeln!(text, "violation: {meaning}: {} more", grouped(more));
        }
    }
    for remark in &verification.remarks {
        let _ = writeln!(text, "note: {}", clean(remark, TEXT_CHARS_MAX));
    }
    text.push_str(&summary(verification));
    text
}

fn summary(verification: &Verification) -> String {
    let mut page = Page::default();
    let count: u64 = verification
        .violations
        .iter()
        .map(|found| found.count)
        .sum();
    page.section(&match count {
        0 => "Verified: everything agrees.".to_owned(),
        1 => "1 violation.".to_owned(),
        count => format!("{} violations.", grouped(count)),
    });
    page.count("keys", verification.keys);
    page.row_with(
        "queued",
        &grouped(verification.queued),
        &format!("on {}", counted(verification.hosts, "host")),
    );
    page.count("finished", verification.finished);
    page.count("lines of pages.jsonl", verification.lines);
    page.count("archived responses", verification.archived);
    filter(&mut page, &verification.filter);
    let elapsed = Duration::try_from_secs_f64(verification.elapsed_seconds).unwrap_or_default();
    page.row("time", &human_duration(elapsed));
    page.into_text()
}

fn filter(page: &mut Page, filter: &FilterFinding) {
    if !filter.is_usable {
        page.row("saved filter", "none");
        return;
    }
    page.row_with(
        "keys in the saved filter",
        &grouped(filter.items),
        &format!("{} of them by the log", grouped(filter.replayed)),
    );
    page.row(
        "  false positives predicted",
        &percent(filter.predicted_rate),
    );
    page.row("  measured", &percent(filter.measured_rate));
}

#[cfg(test)]
mod tests {
    use engine::{Violation, ViolationKind};

    use super::*;

    fn verification(violations: Vec<Violation>) -> Verification {
        Verification {
            crawl_id: "c".to_owned(),
            is_clean: violations.is_empty(),
            violations,
            remarks: vec!["something is cut on resume".to_owned()],
            keys: 12_345,
            queued: 45,
            hosts: 3,
            finished: 12_300,
            lines: 12_300,
            archived: 12_000,
            filter: FilterFinding::default(),
            elapsed_seconds: 1.5,
        }
    }

    #[test]
    fn each_violation_is_one_line_and_those_left_out_are_counted() {
        let text = text(&verification(vec![Violation {
            kind: ViolationKind::LineTwice,
            count: 1_003,
            shown: vec!["http://a/1".to_owned(), "http://a/2".to_owned()],
        }]));
        let expected = "violation: in pages.jsonl twice: http://a/1\n\
            violation: in pages.jsonl twice: http://a/2\n\
            violation: in pages.jsonl twice: 1,001 more\n\
            note: something is cut on resume\n\
            1,003 violations.\n";
        assert!(text.starts_with(expected), "{text}");
    }

    #[test]
    fn a_clean_crawl_is_told_with_what_was_checked() {
        let text = text(&verification(Vec::new()));
        for part in ["everything agrees", "12,345", "on 3 hosts", "12,000"] {
            assert!(text.contains(part), "{part:?} is missing in\n{text}");
        }
    }
}
