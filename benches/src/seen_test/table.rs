//! The tables: Markdown with even columns, so that they read well in a terminal too.

use super::{measured::Measured, options::Options, quantity::grouped, stream::Census};

/// Columns: heading and width.
const COLUMNS: [(&str, usize); 20] = [
    ("mode", 26),
    ("links", 11),
    ("distinct", 10),
    ("links/s", 9),
    ("own CPU-s/M", 11),
    ("server CPU-s/M", 14),
    ("store reads/M", 13),
    ("round trips/M", 13),
    ("commits/M", 9),
    ("in page %", 9),
    ("cache %", 7),
    ("unwritten %", 11),
    ("exact %", 7),
    ("filter yes %", 12),
    ("new at once %", 13),
    ("store %", 7),
    ("memory MB", 9),
    ("lost", 7),
    ("twice", 5),
    ("making CPU-s/M", 14),
];

/// Says how to read the tables, and what holds for all of them.
#[must_use]
pub fn legend(options: &Options) -> String {
    format!(
        "# Seen test: store {}, filter sized for {} at {} %, {} threads that admit pages, {} pages in flight\n\n\
         M: a million links. links/s: by the clock, from the first page to the last durable note, making the links \
         included.\nown CPU: this process, client of the server included, without making links (canonical URLs, model) \
         and keeping the truth,\nwhich are the last column. server CPU: all its processes, the final checkpoint \
         included. store reads: keys asked about;\nround trips: the requests that carried them. The percentages say \
         which tier answered, and add up to all links.\nmemory: peak of the process beyond stream and truth. lost, \
         twice: judged by exact books apart from the measured part.\n\
         The product writes a new URL to the key table and to the queue, in batches; store-one writes key and URL as one \
         row, each\nawaited, on 8 connections; redis keeps URLs in memory alone, those of a page pipelined; redis-one \
         awaits each, on 8 connections.\nA temporary PostgreSQL runs without fsync, which spares store-one most.",
        options.store.name(),
        options.expected.map_or_else(
            || "the distinct URLs".to_owned(),
            |count| format!("{} URLs", grouped(count))
        ),
        options.rate * 100.0,
        options.threads,
        options.pages
    )
}

/// Says what shape a stream has.
#[must_use]
pub fn shape(census: &Census) -> String {
    format!(
        "{} pages, {} links, {} distinct: {:.1} % duplicates, {:.1} % repeats within the page\n",
        grouped(census.page_count),
        grouped(census.link_count),
        grouped(census.distinct_count),
        census.duplicate_share() * 100.0,
        census.in_page_share() * 100.0
    )
}

/// Returns the two lines that begin a table.
#[must_use]
pub fn head() -> String {
    let names = line(COLUMNS.iter().map(|(name, _)| (*name).to_owned()));
    let rules = COLUMNS.iter().enumerate().map(|(at, (_, width))| {
        let end = if at == 0 { "-" } else { ":" };
        "-".repeat(width - 1) + end
    });
    format!("{names}\n{}", line(rules))
}

/// Returns the line of one contender.
#[must_use]
pub fn row(label: &str, measured: &Measured) -> String {
    let links = number(measured.link_count);
    let a_million = |amount: f64| amount * 1e6 / links.max(1.0);
    let percent = |count: u64| {
        if count == 0 {
            "-".to_owned()
        } else {
            format!("{:.3}", number(count) * 100.0 / links.max(1.0))
        }
    };
    let seconds = |seconds: f64| format!("{:.3}", a_million(seconds));
    let count = |count: u64| {
        let amount = a_million(number(count));
        if amount < 100.0 {
            format!("{amount:.1}")
        } else {
            grouped(whole(amount))
        }
    };
    let tiers = &measured.tiers;
    line([
        label.to_owned(),
        grouped(measured.link_count),
        grouped(measured.distinct_count),
        grouped(whole(links / measured.wall_seconds.max(1e-9))),
        seconds(measured.own_cpu_seconds),
        measured.server_cpu_seconds.map_or_else(none, seconds),
        count(measured.store_reads),
        count(measured.confirm_round_trips),
        count(measured.commits),
        percent(tiers.in_page),
        percent(tiers.cache),
        percent(tiers.unwritten),
        percent(tiers.exact),
        percent(tiers.filter),
        percent(tiers.new),
        percent(tiers.store),
        measured
            .memory_bytes
            .map_or_else(none, |bytes| format!("{:.1}", number(bytes) / 1e6)),
        grouped(measured.lost_count),
        grouped(measured.twice_count),
        seconds(measured.aside_cpu_seconds),
    ])
}

fn none() -> String {
    "-".to_owned()
}

fn line(cells: impl IntoIterator<Item = String>) -> String {
    let mut text = String::from("|");
    for (at, (cell, (_, width))) in cells.into_iter().zip(COLUMNS).enumerate() {
        let padding = " ".repeat(width.saturating_sub(cell.chars().count()));
        let (before, after) = if at == 0 {
            ("", &*padding)
        } else {
            (&*padding, "")
        };
        for part in [" ", before, &cell, after, " |"] {
            text.push_str(part);
        }
    }
    text
}

#[expect(clippy::cast_precision_loss, reason = "printed with few digits")]
const fn number(count: u64) -> f64 {
    count as f64
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "rates and counts are positive and far below 2^63"
)]
fn whole(amount: f64) -> u64 {
    amount.round() as u64
}

#[cfg(test)]
mod tests {
    use super::{COLUMNS, head, row};
    use crate::seen_test::measured::{Measured, Tiers};

    #[test]
    fn a_row_has_the_columns_of_the_head_and_counts_a_million_links() {
        let measured = Measured {
            link_count: 500_000,
            wall_seconds: 2.0,
            own_cpu_seconds: 1.0,
            store_reads: 5_000,
            confirm_round_trips: 7,
            tiers: Tiers {
                in_page: 250_000,
                ..Tiers::default()
            },
            memory_bytes: Some(12_300_000),
            ..Measured::default()
        };
        let row = row("bloom+store", &measured);
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        assert_eq!(cells.len(), COLUMNS.len());
        let cell = |name: &str| {
            let at = COLUMNS.iter().position(|(column, _)| *column == name);
            cells[at.expect("a column")]
        };
        assert_eq!(cell("links/s"), "250,000");
        assert_eq!(cell("own CPU-s/M"), "2.000");
        assert_eq!(cell("server CPU-s/M"), "-");
        assert_eq!(cell("store reads/M"), "10,000");
        assert_eq!(cell("round trips/M"), "14.0");
        assert_eq!(cell("in page %"), "50.000");
        assert_eq!(cell("memory MB"), "12.3");
        for line in head().lines() {
            assert_eq!(line.len(), row.len());
        }
    }
}
