//! The final report for people: aligned columns, at most 80 of them.

use std::time::Duration;

use engine::{FilterReport, Outcome, Report, SeenMode};

use crate::{
    clean::clean,
    rows::{NAME_CHARS, Page},
    unit::{
        counted, estimate_text, grouped, human_byte_rate, human_bytes, human_duration, human_rate,
        megabytes, percent,
    },
};

/// The longest path shown, in characters.
const PATH_CHARS_MAX: usize = 1_000;

/// Writes the report. When `is_full`, rows that are zero are shown too, and the refused links by reason.
pub(crate) fn text(report: &Report, is_full: bool) -> String {
    let mut page = Page::default();
    page.section(headline(report.outcome));
    fetched(&mut page, report);
    this_run(&mut page, report);
    failures(&mut page, report);
    links(&mut page, report, is_full);
    filter(&mut page, report);
    store(&mut page, report);
    accounts(&mut page, report, is_full);
    outputs(&mut page, report);
    page.into_text()
}

const fn headline(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Finished => "Finished: every URL in scope is done.",
        Outcome::AlreadyFinished => "This crawl was finished before; nothing is left to do.",
        Outcome::LimitReached => {
            "A limit was reached; the same command goes on when the limit leaves room."
        }
        Outcome::Stopped => "Stopped; the same command resumes.",
    }
}

fn fetched(page: &mut Page, report: &Report) {
    page.row_with(
        "pages with a response",
        &grouped(report.pages),
        &format!("{} in this run", grouped(report.pages_this_run)),
    );
    for (class, count) in &report.by_status_class {
        page.share(
            &format!("  status {}", clean(class, 10)),
            *count,
            report.pages,
        );
    }
    page.row_with(
        "bytes on the wire",
        &human_bytes(report.wire_bytes),
        &human_byte_rate(report.bytes_per_second),
    );
    page.row("bytes decoded", &human_bytes(report.body_bytes));
}

fn this_run(page: &mut Page, report: &Report) {
    page.section("This run");
    let elapsed = Duration::try_from_secs_f64(report.elapsed_seconds).unwrap_or_default();
    page.row_with(
        "time",
        &human_duration(elapsed),
        &format!("{} pages", human_rate(report.pages_per_second)),
    );
    page.count("requests", report.requests_this_run);
    if report.peak_memory_bytes > 0 {
        page.row_with(
            "peak memory",
            &megabytes(report.peak_memory_bytes),
            &format!("{} planned", megabytes(report.memory_plan_bytes.total())),
        );
    }
    let again = if report.resumed_leases_max == 0 {
        String::new()
    } else {
        format!("{} at most this time", grouped(report.resumed_leases_max))
    };
    page.row_with(
        "fetched again after a kill",
        &format!("<= {}", grouped(report.leases_max)),
        &again,
    );
}

fn failures(page: &mut Page, report: &Report) {
    if report.failures.is_empty() {
        return;
    }
    page.section("URLs that failed or were never asked for, by kind");
    for (kind, count) in &report.failures {
        page.count(&clean(kind, NAME_CHARS), *count);
    }
}

fn links(page: &mut Page, report: &Report, is_full: bool) {
    let links = &report.links;
    let whole = links.discovered;
    page.section("Links, by the tier of the seen test that answered");
    page.share("discovered", whole, whole);
    page.share("refused (scope, limits, form)", links.rejected, whole);
    if is_full {
        for (reason, count) in &report.counts.rejected {
            page.share(&format!("  {}", reason.name()), *count, whole);
        }
    }
    page.share("repeats within a page", links.in_page_duplicates, whole);
    page.share("recent-key cache: seen", links.cache_hits, whole);
    page.share("unwritten notes: seen", links.unwritten_hits, whole);
    if is_full || links.exact_hits > 0 {
        page.share("exact set: seen", links.exact_hits, whole);
    }
    if is_full || links.filter_hits > 0 {
        page.share("filter says yes: dropped", links.filter_hits, whole);
    }
    let has_filter = report.filter.mode != SeenMode::Store.name();
    if has_filter {
        page.share(no_name(&report.filter), links.filter_no, whole);
    }
    page.share("store read: seen", links.store_duplicates, whole);
    let absent = if has_filter {
        "store read: false positive"
    } else {
        "store read: new"
    };
    page.share(absent, links.false_positives, whole);
    page.row_with(
        "answered without the store",
        &percent(links.without_store),
        &format!("{} store reads", grouped(links.store_reads)),
    );
}

/// Returns the name of the row of links that are new by the word of what is in memory.
const fn no_name(filter: &FilterReport) -> &'static str {
    if filter.is_exact {
        "exact set says no: new"
    } else {
        "filter says no: new"
    }
}

/// Begins the section on the filter: its mode, its form with a word on its growth, the URLs in it. Returns whether there is a
/// filter, or a set in its place.
pub(crate) fn filter_head(page: &mut Page, filter: &FilterReport) -> bool {
    page.section(&format!(
        "Seen test, mode {}",
        clean(&filter.mode, NAME_CHARS)
    ));
    if filter.mode == SeenMode::Store.name() {
        page.row_with("filter", "none", "the store is asked instead");
        return false;
    }
    if filter.is_exact {
        page.row_with("form", "exact set", "no false positives");
    } else {
        page.row_with("form", &counted(filter.slices, "slice"), growth(filter));
    }
    page.count("URLs in it", filter.items);
    true
}

fn filter(page: &mut Page, report: &Report) {
    let filter = &report.filter;
    if !filter_head(page, filter) {
        return;
    }
    if filter.mode != SeenMode::Exact.name() {
        page.row_with(
            "URLs expected",
            &grouped(filter.expected_urls),
            &format!("at {}", percent(filter.target_rate)),
        );
    }
    page.row("memory", &human_bytes(filter.bytes));
    if filter.is_exact {
        return;
    }
    page.row("bits set", &percent(filter.fill));
    page.row("false positives predicted", &percent(filter.predicted_rate));
    if filter.mode == SeenMode::Bloom.name() {
        page.row_with(
            "URLs lost, most likely",
            &estimate_text(filter.expected_lost),
            "of all that were offered",
        );
    } else {
        page.row("false positives measured", &percent(filter.measured_rate));
    }
}

const fn growth(filter: &FilterReport) -> &'static str {
    if filter.growth_error.is_some() {
        "IT COULD NOT GROW"
    } else if filter.slices > 1 {
        "grown; see --expected-urls"
    } else {
        ""
    }
}

fn store(page: &mut Page, report: &Report) {
    let store = &report.store;
    page.section(&format!(
        "Store ({}), this run",
        clean(&store.backend, NAME_CHARS)
    ));
    page.row_with(
        "confirm round trips",
        &grouped(store.confirm_round_trips),
        &format!("{} keys asked", grouped(store.confirmed_keys)),
    );
    page.count("commits", store.commits);
    page.count("queue reads", store.queue_reads);
}

fn accounts(page: &mut Page, report: &Report, is_full: bool) {
    let counts = &report.counts;
    page.section("Accounts");
    let terms = [
        ("rejected", counts.rejected_total()),
        ("duplicates", counts.duplicates.total()),
        ("suspects", counts.suspects),
        ("queued", counts.queued),
        ("leased", counts.leased),
        ("finished", counts.finished()),
    ];
    let names: Vec<&str> = terms.iter().map(|(name, _)| *name).collect();
    let numbers: Vec<String> = terms.iter().map(|(_, count)| grouped(*count)).collect();
    page.line(&format!("  discovered = {}", names.join(" + ")));
    for line in wrapped_sum(&grouped(counts.discovered), &numbers) {
        page.line(&format!("  {line}"));
    }
    if !report.identity_holds {
        page.line(&format!(
            "  THE ACCOUNTS DO NOT ADD UP: {} are accounted for",
            grouped(counts.accounted())
        ));
    }
    if is_full || counts.failed + counts.disregarded > 0 {
        page.line(&format!(
            "  finished = {} succeeded + {} failed + {} disregarded",
            grouped(counts.succeeded),
            grouped(counts.failed),
            grouped(counts.disregarded)
        ));
    }
}

/// Returns `total = a + b + ...`, in lines that fit.
fn wrapped_sum(total: &str, terms: &[String]) -> Vec<String> {
    const LINE_CHARS_MAX: usize = 77;
    let mut lines = vec![format!("{total} =")];
    for (index, term) in terms.iter().enumerate() {
        let piece = if index == 0 {
            format!(" {term}")
        } else {
            format!(" + {term}")
        };
        let last = lines.last_mut().expect("there is always a last line");
        if last.len() + piece.len() <= LINE_CHARS_MAX {
            last.push_str(&piece);
        } else {
            lines.push(format!("   {piece}"));
        }
    }
    lines
}

fn outputs(page: &mut Page, report: &Report) {
    page.section("Outputs");
    let path = |text: &str| clean(text, PATH_CHARS_MAX);
    page.line(&format!("  pages  {}", path(&report.outputs.pages_jsonl)));
    if let Some(folder) = &report.outputs.warc_folder {
        page.line(&format!("  WARC   {}", path(folder)));
    }
}

#[cfg(test)]
#[path = "report_test.rs"]
mod tests;
