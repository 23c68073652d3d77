//! `bloomcrawl status`: what a crawl holds, by its own word, whether it runs or not.

use std::time::Duration;

use engine::{CrawlState, FilterReport, Status, StatusFigures};

use super::effective;
use crate::{
    clean::clean,
    failure::{Exit, Failure},
    flags::StatusCommand,
    printer,
    report::filter_head,
    rows::Page,
    unit::{counted, grouped, human_bytes, human_duration, percent},
};

/// The longest host, path or remark shown, in characters.
const TEXT_CHARS_MAX: usize = 1_000;
/// A crawl writes its figures at its start, after this time, and then every five seconds.
const SECOND_WRITE_SECONDS: f64 = 1.0;
/// Figures that are older than this are worth a word.
const FRESH_SECONDS_MAX: f64 = 60.0;

/// Prints the status of the crawl in the data folder.
///
/// # Errors
///
/// Fails when the folder is of no crawl, and when it cannot be read.
pub(super) fn run(command: &StatusCommand) -> Result<Exit, Failure> {
    let effective = effective(&command.config, &command.flags.0)?;
    for warning in &effective.warnings {
        printer::warn(warning);
    }
    let data = &effective.settings.crawl.data;
    let status = engine::status(data)?;
    if effective.settings.is_json {
        printer::json(serde_json::to_string(&status))?;
    } else {
        let title = format!("Crawl in {}", data.display());
        printer::data(&text(&clean(&title, TEXT_CHARS_MAX), &status))?;
    }
    Ok(Exit::Done)
}

fn text(title: &str, status: &Status) -> String {
    let mut page = Page::default();
    page.section(&format!("{title}: {}", state_text(status)));
    if let Some(remark) = &status.remark {
        page.line(&format!("  {}", clean(remark, TEXT_CHARS_MAX)));
    }
    let Some(figures) = &status.figures else {
        page.line(if status.is_running {
            "  There are no figures yet; a crawl writes some as soon as it is open."
        } else {
            "  There are no figures; the next run writes some."
        });
        return page.into_text();
    };
    let age = status.age_seconds.unwrap_or_default();
    page.row_with(
        "figures of",
        &ago(age),
        match status.state {
            CrawlState::Running if age > FRESH_SECONDS_MAX => {
                "it is being opened or verified, or waits"
            }
            // What the run has done since is not in them.
            CrawlState::Running if figures.elapsed_seconds < SECOND_WRITE_SECONDS => {
                "as the run began, none newer"
            }
            CrawlState::Interrupted => "what came after is in the store",
            _ => "",
        },
    );
    counts(&mut page, figures);
    filter(&mut page, &figures.filter);
    hosts(&mut page, figures);
    page.into_text()
}

const fn state_text(status: &Status) -> &'static str {
    match status.state {
        CrawlState::Running => "running",
        CrawlState::Finished => "not running; finished, every URL in scope is done",
        CrawlState::LimitReached => "not running; a limit was reached",
        CrawlState::Stopped => "not running; stopped, the same command resumes",
        CrawlState::Interrupted => "not running; killed or failed, the same command resumes",
    }
}

fn ago(seconds: f64) -> String {
    let age = Duration::try_from_secs_f64(seconds).unwrap_or_default();
    format!("{} ago", human_duration(age))
}

fn counts(page: &mut Page, figures: &StatusFigures) {
    let counts = &figures.counts;
    page.section("URLs, by state");
    page.row_with(
        "waiting, or being fetched",
        &grouped(counts.queued + counts.leased),
        &format!("on {}", counted(figures.hosts, "host")),
    );
    page.count("finished", counts.finished());
    page.count("  succeeded", counts.succeeded);
    page.count("  failed", counts.failed);
    page.count("  disregarded", counts.disregarded);
    page.section("Links");
    page.count("discovered", counts.discovered);
    page.count("refused (scope, limits, form)", counts.rejected_total());
    page.count("duplicates", counts.duplicates.total());
    if counts.suspects > 0 {
        page.count("suspects", counts.suspects);
    }
    if !figures.identity_holds {
        page.line("  THE ACCOUNTS DO NOT ADD UP");
    }
    page.section("Fetched");
    page.count("pages with a response", figures.pages);
    page.row("bytes on the wire", &human_bytes(figures.wire_bytes));
    page.row("store", &clean(&figures.store, TEXT_CHARS_MAX));
}

fn filter(page: &mut Page, filter: &FilterReport) {
    if !filter_head(page, filter) {
        return;
    }
    page.row("memory", &human_bytes(filter.bytes));
    if !filter.is_exact {
        page.row("bits set", &percent(filter.fill));
        page.row("false positives predicted", &percent(filter.predicted_rate));
    }
}

fn hosts(page: &mut Page, figures: &StatusFigures) {
    if figures.top_hosts.is_empty() {
        return;
    }
    page.section("Hosts with the most to do");
    for waiting in &figures.top_hosts {
        page.line(&format!(
            "  {:>14}  {}",
            grouped(waiting.queued),
            clean(&waiting.host, TEXT_CHARS_MAX)
        ));
    }
}

#[cfg(test)]
mod tests {
    use engine::WaitingHost;
    use types::CrawlCounts;

    use super::*;

    fn status(is_running: bool, age_seconds: f64) -> Status {
        Status {
            crawl_id: Some("c".to_owned()),
            state: if is_running {
                CrawlState::Running
            } else {
                CrawlState::Interrupted
            },
            is_running,
            figures: Some(StatusFigures {
                crawl_id: "c".to_owned(),
                written_at: "2026-11-30T10:00:00.000Z".to_owned(),
                outcome: None,
                elapsed_seconds: 3.0,
                counts: CrawlCounts {
                    queued: 1_234_567,
                    ..CrawlCounts::default()
                },
                identity_holds: true,
                pages: 7,
                wire_bytes: 8,
                filter: FilterReport {
                    mode: "bloom+store".to_owned(),
                    fill: 0.25,
                    slices: 2,
                    ..FilterReport::default()
                },
                store: "embedded".to_owned(),
                hosts: 2,
                top_hosts: vec![WaitingHost {
                    host: "http://a\u{1b}[2J.example".to_owned(),
                    queued: 1_234_566,
                }],
            }),
            age_seconds: Some(age_seconds),
            remark: None,
        }
    }

    #[test]
    fn the_text_names_state_age_counts_and_hosts() {
        let running = text("Crawl in data", &status(true, 3.0));
        for part in [
            "Crawl in data: running\n",
            "ago",
            "1,234,567",
            "on 2 hosts",
            "2 slices",
            "25.00 %",
            "http://a\\u{1b}[2J.example",
        ] {
            assert!(running.contains(part), "{part:?} is missing in\n{running}");
        }
        assert!(!running.contains("verified"), "{running}");
        assert!(
            running.lines().all(|line| line.chars().count() <= 80),
            "{running}"
        );
        assert!(!running.contains("as the run began"), "{running}");
        let mut begun = status(true, 3.0);
        if let Some(figures) = &mut begun.figures {
            figures.elapsed_seconds = 0.1;
        }
        let begun = text("Crawl in data", &begun);
        assert!(
            begun.contains("as the run began, none newer")
                && begun.lines().all(|line| line.chars().count() <= 80),
            "{begun}"
        );
        assert!(text("x", &status(true, 90.0)).contains("being opened or verified"));
        let killed = text("Crawl in data", &status(false, 3_600.0));
        assert!(
            killed.contains("not running; killed or failed, the same command resumes"),
            "{killed}"
        );
        assert!(
            killed.contains("what came after is in the store"),
            "{killed}"
        );
    }

    #[test]
    fn a_crawl_without_figures_says_so() {
        let mut status = status(false, 0.0);
        status.figures = None;
        status.remark = Some("status.json is of another crawl".to_owned());
        let text = text("x", &status);
        assert!(
            text.contains("of another crawl") && text.contains("no figures;"),
            "{text}"
        );
        status.is_running = true;
        assert!(super::text("x", &status).contains("no figures yet;"));
    }
}
