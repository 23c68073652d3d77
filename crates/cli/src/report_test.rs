//! Tests of the report's text.

use engine::{FilterReport, LinkReport, MemoryParts, OutputReport, StoreReport};
use types::{CrawlCounts, RejectReason};

use super::*;
use crate::rows::VALUE_CHARS;

const HUGE: u64 = 123_456_789_012;

fn huge() -> Report {
    let mut counts = CrawlCounts {
        discovered: 9 * HUGE,
        queued: HUGE,
        succeeded: HUGE,
        failed: HUGE,
        ..Default::default()
    };
    counts.rejected = RejectReason::ALL
        .iter()
        .map(|reason| (*reason, HUGE))
        .collect();
    Report {
        outcome: Outcome::LimitReached,
        elapsed_seconds: 4e5,
        pages: HUGE,
        pages_this_run: HUGE,
        pages_per_second: 123_456.7,
        by_status_class: [("2xx".to_owned(), HUGE), ("5xx".to_owned(), 1)].into(),
        failures: [
            ("robots-unreachable".to_owned(), HUGE),
            ("a\u{1b}[2J".to_owned(), 1),
        ]
        .into(),
        wire_bytes: 999 << 40,
        body_bytes: 999 << 40,
        bytes_per_second: 999e6,
        requests_this_run: HUGE,
        identity_holds: counts.identity_holds(),
        counts,
        links: LinkReport {
            discovered: HUGE,
            filter_no: HUGE / 3,
            without_store: 0.999_999,
            ..Default::default()
        },
        filter: FilterReport {
            mode: "bloom+store".to_owned(),
            is_exact: false,
            slices: 12,
            expected_urls: HUGE,
            target_rate: 0.000_01,
            bytes: 99 << 30,
            items: HUGE,
            fill: 0.5,
            predicted_rate: 0.01,
            measured_rate: 0.009_876,
            expected_lost: 1e9,
            growth_error: None,
        },
        store: StoreReport {
            backend: "postgres".to_owned(),
            confirm_round_trips: HUGE,
            confirmed_keys: HUGE,
            commits: HUGE,
            queue_reads: HUGE,
        },
        leases_max: 65_536,
        resumed_leases_max: 65_536,
        peak_memory_bytes: 99 << 30,
        memory_plan_bytes: MemoryParts {
            bodies: 99 << 30,
            ..MemoryParts::default()
        },
        outputs: OutputReport {
            pages_jsonl: "d/pages.jsonl".to_owned(),
            warc_folder: Some("d/warc".to_owned()),
        },
    }
}

#[test]
fn every_line_fits_80_columns_and_none_drives_the_terminal() {
    let text = text(&huge(), true);
    for line in text.lines() {
        assert!(
            line.chars().count() <= 80,
            "{} columns: {line}",
            line.chars().count()
        );
        assert!(!line.chars().any(char::is_control), "{line:?}");
    }
}

#[test]
fn the_report_says_what_was_counted() {
    let text = text(&huge(), false);
    for part in [
        "A limit was reached",
        "status 2xx",
        "robots-unreachable",
        "33.33 %",
        "99.99 %",
        "0.99 %",
        "confirm round trips",
        "commits",
        "discovered = rejected + duplicates + suspects + queued + leased + finished",
        "d/pages.jsonl",
        "d/warc",
        "<= 65,536",
    ] {
        assert!(text.contains(part), "{part:?} is missing in\n{text}");
    }
}

#[test]
fn the_seen_test_is_told_by_its_mode_and_form() {
    let of = |mode: SeenMode, is_exact: bool| {
        let mut report = huge();
        report.filter.mode = mode.to_string();
        report.filter.is_exact = is_exact;
        report.links.exact_hits = u64::from(is_exact) * 4_321;
        report.links.filter_hits = u64::from(mode == SeenMode::Bloom) * 1_234;
        text(&report, false)
    };
    for (text, present, absent) in [
        (
            of(SeenMode::BloomStore, false),
            &["12 slices", "grown", "measured", "filter says no: new"][..],
            &["exact set", "lost", "dropped"][..],
        ),
        (
            of(SeenMode::BloomStore, true),
            &["exact set: seen", "4,321", "no false positives"],
            &["slices", "bits set", "predicted"],
        ),
        (
            of(SeenMode::Bloom, false),
            &[
                "dropped",
                "1,234",
                "URLs lost, most likely",
                "1,000,000,000",
            ],
            &["measured"],
        ),
        (
            of(SeenMode::Exact, true),
            &["mode exact", "exact set"],
            &["URLs expected"],
        ),
        (
            of(SeenMode::Store, false),
            &["mode store", "none", "store read: new"],
            &["filter says", "slices", "false positive"],
        ),
    ] {
        for part in present {
            assert!(text.contains(part), "{part:?} is missing in\n{text}");
        }
        for part in absent {
            assert!(!text.contains(part), "{part:?} is in\n{text}");
        }
        assert!(text.lines().all(|line| line.chars().count() <= 80));
    }
}

#[test]
fn a_filter_that_could_not_grow_is_shouted() {
    let mut report = huge();
    report.filter.growth_error = Some("no memory".to_owned());
    assert!(text(&report, false).contains("COULD NOT GROW"));
}

#[test]
fn accounts_that_do_not_add_up_are_shouted() {
    let mut report = huge();
    assert!(text(&report, false).contains("DO NOT ADD UP"));
    report.counts.discovered = report.counts.accounted();
    report.identity_holds = true;
    assert!(!text(&report, false).contains("DO NOT ADD UP"));
}

#[test]
fn values_stand_in_one_column() {
    let text = text(&huge(), false);
    let ends: std::collections::BTreeSet<usize> = text
        .lines()
        .take_while(|line| *line != "Accounts")
        .filter(|line| line.starts_with("  "))
        .map(|line| {
            line.get(2 + NAME_CHARS..2 + NAME_CHARS + VALUE_CHARS)
                .map_or(0, |value| value.trim_end().len())
        })
        .collect();
    assert_eq!(ends.len(), 1, "values end at {ends:?} in\n{text}");
}

#[test]
fn memory_and_what_a_kill_costs_are_of_the_run_and_not_of_the_store() {
    let text = text(&huge(), false);
    let section_of = |row: &str| {
        let before = &text[..text.find(row).expect("the row is there")];
        before
            .lines()
            .rfind(|line| !line.starts_with(' ') && !line.is_empty())
            .map(str::to_owned)
    };
    for row in ["peak memory", "fetched again after a kill"] {
        assert_eq!(section_of(row).as_deref(), Some("This run"), "{row}");
    }
    assert_eq!(
        section_of("queue reads").as_deref(),
        Some("Store (postgres), this run")
    );
}
