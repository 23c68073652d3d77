//! `bloomcrawl filter check`: the false positives of a saved filter, measured, beside what the formula says.

use std::path::Path;

use engine::false_positive_rate;
use filter::{FilterStats, sizing};
use serde_json::json;

use super::{print, saved};
use crate::{
    failure::{Exit, Failure},
    printer,
    rows::Page,
    unit::{grouped, percent},
};

/// Keys asked for that no crawl has, by [`false_positive_rate`].
const PROBES_COUNT: u32 = 1_000_000;

/// How far the measured rate may be from the predicted one, or over the target: 0.5 percentage points. By chance it is a
/// tenth of that off at most, but where there are few lines: see [`Rates::tolerance`].
const DEVIATION_MAX: f64 = 0.005;

/// Measured beside predicted, each 0 to 1.
#[derive(Clone, Copy, Debug)]
struct Rates {
    measured: f64,
    /// By the share of bits that are set.
    by_fill: f64,
    /// By the number of URLs and the memory, of a filter that has not grown.
    by_count: Option<f64>,
    target: f64,
    lines_count: u64,
}

/// Measures the snapshot at `path`. Exit code 1 if it is not as the formula says.
///
/// # Errors
///
/// Fails when there is none, and when it is not whole.
pub(super) fn run(path: &Path, is_json: bool) -> Result<Exit, Failure> {
    let saved = saved::load(path)?;
    let stats = saved.filter.stats();
    let rates = Rates {
        measured: false_positive_rate(&saved.filter),
        by_fill: stats.predicted_rate,
        by_count: by_count(&stats),
        target: stats.target_rate,
        lines_count: lines_count(&stats),
    };
    let faults = rates.faults();
    let object = json!({
        "path": saved.path.display().to_string(),
        "urls": stats.item_count,
        "is_exact": stats.is_exact,
        "probes": PROBES_COUNT,
        "measured_rate": rates.measured,
        "predicted_rate": rates.by_fill,
        "predicted_rate_by_count": rates.by_count,
        "target_rate": rates.target,
        "is_as_predicted": rates.is_as_predicted(),
        "is_within_target": rates.is_within_target(),
    });
    print(&object, &text(&stats, &rates), is_json)?;
    for fault in faults {
        printer::warn(&fault);
    }
    Ok(if rates.is_as_predicted() {
        Exit::Done
    } else {
        Exit::Internal
    })
}

/// Returns the rate that follows from the number of URLs alone.
///
/// The URLs in the filter are those that were new to it; false positives came beside them, and make their lines neither
/// fuller nor emptier. So at a rate `p` each new URL stands for `1 / (1 - p)` that came.
#[expect(clippy::cast_precision_loss, reason = "counts are below 2^53")]
fn by_count(stats: &FilterStats) -> Option<f64> {
    const STEPS: u32 = 500;
    let lines_count = lines_count(stats);
    if stats.slice_count != 1 || lines_count == 0 {
        return None;
    }
    let step = stats.item_count as f64 / lines_count as f64 / f64::from(STEPS);
    let load = (0..STEPS).fold(0.0, |load, _| {
        let rate = sizing::rate_of_load(load + step / 2.0);
        load + step / (1.0 - rate).max(0.000_1)
    });
    Some(sizing::rate_of_load(load))
}

fn lines_count(stats: &FilterStats) -> u64 {
    stats.size_bytes / sizing::LINE_BYTES
}

impl Rates {
    fn is_as_predicted(&self) -> bool {
        [Some(self.by_fill), self.by_count]
            .into_iter()
            .flatten()
            .all(|predicted| (self.measured - predicted).abs() <= self.tolerance(predicted))
    }

    /// Returns how far the measured rate may be from a predicted one. The rates of single lines differ by about their
    /// mean, so the rate of a filter of a few hundred lines is not that of the formula.
    #[expect(clippy::cast_precision_loss, reason = "a bound with room to spare")]
    fn tolerance(&self, predicted: f64) -> f64 {
        let by_lines = 3.0 * predicted / (self.lines_count.max(1) as f64).sqrt();
        by_lines.max(DEVIATION_MAX)
    }

    fn is_within_target(&self) -> bool {
        self.measured <= self.target + DEVIATION_MAX
    }

    fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        if !self.is_as_predicted() {
            faults.push(format!(
                "the filter answers {} false positives, over 0.5 percentage points from the formula: it, or the hash before it, has a fault; remove the snapshot, and the next run makes the filter anew from the store",
                percent(self.measured)
            ));
        }
        if !self.is_within_target() {
            faults.push(format!(
                "the filter answers {} false positives where {} were asked for: it holds more URLs than it is sized for; raise --expected-urls",
                percent(self.measured),
                percent(self.target)
            ));
        }
        faults
    }
}

fn text(stats: &FilterStats, rates: &Rates) -> String {
    let mut page = Page::default();
    page.section(&format!(
        "False positives among {} keys that are not in the filter",
        grouped(PROBES_COUNT.into())
    ));
    page.row_with(
        "URLs in it",
        &grouped(stats.item_count),
        "as of the last clean end",
    );
    page.row("measured", &percent(rates.measured));
    let exact = if stats.is_exact {
        "an exact set has none"
    } else {
        ""
    };
    page.row_with(
        "predicted from the bits set",
        &percent(rates.by_fill),
        exact,
    );
    if let Some(by_count) = rates.by_count {
        page.row("predicted from the URLs", &percent(by_count));
    }
    page.row("asked for, at most", &percent(rates.target));
    page.line(if rates.is_as_predicted() && rates.is_within_target() {
        "The filter does as it should."
    } else if rates.is_as_predicted() {
        "The filter does as its formula says, and holds more URLs than it is sized for."
    } else {
        "The filter does NOT do as it should."
    });
    page.into_text()
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a failed set-up fails the test")]

    use filter::{Exact, GrowingFilter, GrowthConfig};

    use super::*;

    fn checked(exact: Exact, grows: bool, keys_count: usize) -> (FilterStats, Rates) {
        let filter = GrowingFilter::new(&GrowthConfig {
            expected_count: 20_000,
            exact,
            grows,
            ..GrowthConfig::default()
        })
        .unwrap();
        let mut random = fastrand::Rng::with_seed(1);
        let keys: Vec<u128> = (0..keys_count).map(|_| random.u128(..)).collect();
        filter.enter(&keys);
        let stats = filter.stats();
        let rates = Rates {
            measured: false_positive_rate(&filter),
            by_fill: stats.predicted_rate,
            by_count: by_count(&stats),
            target: stats.target_rate,
            lines_count: lines_count(&stats),
        };
        (stats, rates)
    }

    #[test]
    fn a_sound_filter_is_as_predicted_whatever_its_form() {
        for (exact, grows, keys_count) in [
            (Exact::Always, true, 5_000),
            (Exact::Never, true, 15_000),
            (Exact::Never, true, 100_000),
        ] {
            let (stats, rates) = checked(exact, grows, keys_count);
            assert!(rates.faults().is_empty(), "{rates:?}");
            assert!(text(&stats, &rates).contains("as it should."));
            assert_eq!(rates.measured > 0.0, exact == Exact::Never);
        }
    }

    #[test]
    fn an_overfull_filter_is_as_predicted_and_over_its_target() {
        let (stats, rates) = checked(Exact::Never, false, 40_000);
        assert!(
            rates.is_as_predicted() && !rates.is_within_target(),
            "{rates:?}"
        );
        assert_eq!(rates.faults().len(), 1);
        assert!(text(&stats, &rates).contains("more URLs than it is sized for"));
    }

    #[test]
    fn a_filter_that_answers_otherwise_than_its_formula_is_a_fault() {
        let sound = Rates {
            measured: 0.01,
            by_fill: 0.0101,
            by_count: Some(0.0099),
            target: 0.01,
            lines_count: 1_000_000,
        };
        assert!(sound.is_as_predicted() && sound.is_within_target());
        for wrong in [
            Rates {
                measured: 0.0152,
                ..sound
            },
            Rates {
                by_fill: 0.004,
                ..sound
            },
            Rates {
                by_count: Some(0.02),
                ..sound
            },
        ] {
            assert!(
                !wrong.is_as_predicted() && !wrong.faults().is_empty(),
                "{wrong:?}"
            );
        }
    }
}
