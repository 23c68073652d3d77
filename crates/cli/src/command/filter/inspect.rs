//! `bloomcrawl filter inspect`: what a saved filter holds.

use std::path::Path;

use filter::FilterStats;
use serde_json::json;

use super::{
    print,
    saved::{self, Saved},
};
use crate::{
    clean::clean,
    failure::{Exit, Failure},
    rows::Page,
    unit::{counted, estimate_text, grouped, human_bytes, percent},
};

/// The longest path shown, in characters.
const PATH_CHARS_MAX: usize = 1_000;

/// The longest name of a crawl shown, in characters.
const NAME_CHARS_MAX: usize = 60;

/// Prints what the snapshot at `path` holds.
///
/// # Errors
///
/// Fails when there is none, and when it is not whole.
pub(super) fn run(path: &Path, is_json: bool) -> Result<Exit, Failure> {
    let saved = saved::load(path)?;
    let stats = saved.filter.stats();
    let object = json!({
        "path": saved.path.display().to_string(),
        "file_bytes": saved.file_bytes,
        "label": saved.label,
        "is_exact": stats.is_exact,
        "slices": stats.slice_count,
        "urls": stats.item_count,
        "expected_urls": stats.expected_count,
        "target_rate": stats.target_rate,
        "grows": saved.filter.config().grows,
        "bytes": stats.size_bytes,
        "fill": stats.fill,
        "predicted_rate": stats.predicted_rate,
        "expected_false_positives": stats.expected_lost,
    });
    print(&object, &text(&saved, &stats), is_json)?;
    Ok(Exit::Done)
}

fn text(saved: &Saved, stats: &FilterStats) -> String {
    let mut page = Page::default();
    page.section(&format!(
        "{}: whole",
        clean(&saved.path.display().to_string(), PATH_CHARS_MAX)
    ));
    if let Some(crawl_id) = saved.label["crawl_id"].as_str() {
        page.line(&format!("  of crawl {}", clean(crawl_id, NAME_CHARS_MAX)));
    }
    page.row("size of the file", &human_bytes(saved.file_bytes));
    if stats.is_exact {
        page.row_with("form", "exact set", "no false positives");
    } else {
        page.row_with(
            "form",
            &counted(stats.slice_count, "slice"),
            growth(saved, stats),
        );
    }
    page.count("URLs in it", stats.item_count);
    page.row_with(
        "URLs expected",
        &grouped(stats.expected_count),
        &format!("at {}", percent(stats.target_rate)),
    );
    page.row("memory", &human_bytes(stats.size_bytes));
    if !stats.is_exact {
        page.row("bits set", &percent(stats.fill));
        page.row("false positives predicted", &percent(stats.predicted_rate));
        page.row_with(
            "false positives so far",
            &estimate_text(stats.expected_lost),
            "by the formula",
        );
    }
    page.into_text()
}

fn growth(saved: &Saved, stats: &FilterStats) -> &'static str {
    if !saved.filter.config().grows {
        "it does not grow"
    } else if stats.slice_count > 1 {
        "it has grown"
    } else {
        "it grows at 80 % of its URLs"
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a failed set-up fails the test")]

    use filter::{GrowingFilter, GrowthConfig};

    use super::*;

    fn saved(expected_count: u64, keys_count: u128) -> Saved {
        let filter = GrowingFilter::new(&GrowthConfig {
            expected_count,
            ..GrowthConfig::default()
        })
        .unwrap();
        let mut random = fastrand::Rng::with_seed(2);
        let keys: Vec<u128> = (0..keys_count).map(|_| random.u128(..)).collect();
        filter.enter(&keys);
        Saved {
            path: "d/filter.snapshot".into(),
            file_bytes: 2_048,
            label: json!({ "crawl_id": "the\u{1b}[2Jfirst" }),
            filter,
        }
    }

    #[test]
    fn each_form_is_named_with_its_figures() {
        for (saved, parts) in [
            (
                saved(1_000_000, 5_000),
                ["exact set", "5,000", "no false positives"],
            ),
            (
                saved(20_000, 12_000),
                ["1 slice", "20,000", "it grows at 80 %"],
            ),
            (saved(10_000, 50_000), ["slices", "10,000", "it has grown"]),
        ] {
            let text = text(&saved, &saved.filter.stats());
            for part in
                parts
                    .into_iter()
                    .chain(["2.0 KiB", "at 1.00 %", "of crawl the\\u{1b}[2Jfirst"])
            {
                assert!(text.contains(part), "{part:?} is missing in\n{text}");
            }
            assert!(
                text.lines().all(|line| line.chars().count() <= 80),
                "{text}"
            );
        }
    }
}
