//! Numbers with units, as people write them and as they are printed: counts, bytes, durations, shares.

use std::{fmt::Write as _, time::Duration};

/// Factors of counts: powers of 1,000.
const COUNT_UNITS: &[(&str, u64)] = &[
    ("", 1),
    ("k", 1_000),
    ("K", 1_000),
    ("M", 1_000_000),
    ("G", 1_000_000_000),
    ("B", 1_000_000_000),
];

/// Factors of sizes. A bare `k` is 1,024, as in curl and wget; `kB` is 1,000, as in the SI.
const BYTE_UNITS: &[(&str, u64)] = &[
    ("", 1),
    ("b", 1),
    ("k", 1 << 10),
    ("kib", 1 << 10),
    ("m", 1 << 20),
    ("mib", 1 << 20),
    ("g", 1 << 30),
    ("gib", 1 << 30),
    ("t", 1 << 40),
    ("tib", 1 << 40),
    ("kb", 1_000),
    ("mb", 1_000_000),
    ("gb", 1_000_000_000),
    ("tb", 1_000_000_000_000),
];

/// Factors of durations, in milliseconds. A bare number is seconds.
const TIME_UNITS: &[(&str, u64)] = &[
    ("", 1_000),
    ("ms", 1),
    ("s", 1_000),
    ("m", 60_000),
    ("min", 60_000),
    ("h", 3_600_000),
    ("d", 86_400_000),
];

/// Reads a count: `500`, `10_000`, `64k`, `1.5M`. `None` if the text is no count or does not fit.
pub(crate) fn parse_count(text: &str) -> Option<u64> {
    let (number, unit) = split_number(text);
    scale(number, factor(COUNT_UNITS, unit)?)
}

/// Reads a size in bytes: `4096`, `64k`, `10MiB`, `1GB`. `None` if the text is no size or does not fit.
pub(crate) fn parse_bytes(text: &str) -> Option<u64> {
    let (number, unit) = split_number(text);
    scale(number, factor(BYTE_UNITS, &unit.to_ascii_lowercase())?)
}

/// Reads a duration: `2` (seconds), `500ms`, `1.5s`, `10m`, `1h30m`. `None` if the text is no duration or does not fit.
pub(crate) fn parse_duration(text: &str) -> Option<Duration> {
    let mut rest = text.trim();
    let mut total_ms: u64 = 0;
    loop {
        let (number, tail) = split_number(rest);
        let unit_bytes = tail
            .find(|c: char| c.is_ascii_digit())
            .unwrap_or(tail.len());
        let (unit, next) = tail.split_at(unit_bytes);
        let part = scale(number, factor(TIME_UNITS, unit.trim())?)?;
        total_ms = total_ms.checked_add(part)?;
        if next.is_empty() {
            return Some(Duration::from_millis(total_ms));
        }
        rest = next;
    }
}

/// The lowest rate of false positives that is taken; an exact set of keys takes less memory long before.
const RATE_MIN: f64 = 1e-9;

/// Reads a rate of false positives, from 1e-9 to below 1: `0.01`, `1%`, `0.5 %`. `None` if the text is none.
pub(crate) fn parse_rate(text: &str) -> Option<f64> {
    let text = text.trim();
    let (number, whole) = match text.strip_suffix('%') {
        Some(number) => (number.trim_end(), 100.0),
        None => (text, 1.0),
    };
    let rate = number.parse::<f64>().ok()? / whole;
    (RATE_MIN..1.0).contains(&rate).then_some(rate)
}

fn split_number(text: &str) -> (&str, &str) {
    let text = text.trim();
    let end = text
        .find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '_'))
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    (number, unit.trim())
}

fn factor(units: &[(&str, u64)], unit: &str) -> Option<u64> {
    units
        .iter()
        .find(|(name, _)| *name == unit)
        .map(|(_, factor)| *factor)
}

/// Multiplies a decimal number by `factor` without floating point; what is below one is cut off.
fn scale(number: &str, factor: u64) -> Option<u64> {
    let digits = number.replace('_', "");
    let (whole, fraction) = digits.split_once('.').unwrap_or((&digits, "0"));
    if fraction.len() > 9 {
        return None;
    }
    let whole: u64 = whole.parse().ok()?;
    let part: u64 = fraction.parse().ok()?;
    let below_one =
        u128::from(part) * u128::from(factor) / 10_u128.pow(u32::try_from(fraction.len()).ok()?);
    whole
        .checked_mul(factor)?
        .checked_add(u64::try_from(below_one).ok()?)
}

/// Writes a count so that it is read back the same, and as TOML: `10_000_000`.
pub(crate) fn count_text(count: u64) -> String {
    group(count, '_')
}

/// Writes a size so that it is read back the same: `10MiB`, `1GB`, `4095`.
pub(crate) fn bytes_text(bytes: u64) -> String {
    const NAMES: [(&str, u64); 8] = [
        ("TiB", 1 << 40),
        ("GiB", 1 << 30),
        ("MiB", 1 << 20),
        ("KiB", 1 << 10),
        ("TB", 1_000_000_000_000),
        ("GB", 1_000_000_000),
        ("MB", 1_000_000),
        ("kB", 1_000),
    ];
    // The unit that makes the number smallest: 62,500 KiB are 64 MB.
    NAMES
        .into_iter()
        .filter(|(_, size)| bytes >= *size && bytes.is_multiple_of(*size))
        .max_by_key(|(_, size)| *size)
        .map_or_else(
            || bytes.to_string(),
            |(name, size)| format!("{}{name}", bytes / size),
        )
}

/// Writes a duration so that it is read back the same, to the millisecond: `500ms`, `90s`, `2m`, `1h`.
pub(crate) fn duration_text(duration: Duration) -> String {
    let ms = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    for (name, size) in [("h", 3_600_000), ("m", 60_000), ("s", 1_000)] {
        if ms >= size && ms.is_multiple_of(size) {
            return format!("{}{name}", ms / size);
        }
    }
    if ms == 0 {
        "0s".to_owned()
    } else {
        format!("{ms}ms")
    }
}

/// Writes a count for people: `1,234,567`.
pub(crate) fn grouped(count: u64) -> String {
    group(count, ',')
}

/// Writes an estimate of a count for people: `1,235`, and below ten `1.2`.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "rounded, and negative estimates are zero"
)]
pub(crate) fn estimate_text(estimate: f64) -> String {
    if estimate > 0.0 && estimate < 9.95 {
        format!("{estimate:.1}")
    } else {
        grouped(estimate.max(0.0).round() as u64)
    }
}

/// Writes a number of things, by the word for one: `1 slice`, `3 slices`.
pub(crate) fn counted(count: u64, one: &str) -> String {
    if count == 1 {
        format!("1 {one}")
    } else {
        format!("{} {one}s", grouped(count))
    }
}

fn group(count: u64, separator: char) -> String {
    let digits = count.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3 + 1);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(separator);
        }
        text.push(digit);
    }
    text
}

/// Writes what is held against `--memory` as that is given, rounded up to a tenth: `542.1 MB`. All other sizes are
/// written by [`human_bytes`].
pub(crate) fn megabytes(bytes: u64) -> String {
    let tenths = bytes.div_ceil(100_000);
    format!("{}.{} MB", grouped(tenths / 10), tenths % 10)
}

/// Writes bytes for people, at most 9 characters wide: `12.3 MiB`.
#[expect(clippy::cast_precision_loss, reason = "shown with at most four digits")]
pub(crate) fn human_bytes(bytes: u64) -> String {
    scaled_bytes(bytes as f64)
}

/// Writes a rate of bytes for people: `12.3 MiB/s`.
pub(crate) fn human_byte_rate(bytes_per_second: f64) -> String {
    format!("{}/s", scaled_bytes(bytes_per_second))
}

fn scaled_bytes(bytes: f64) -> String {
    if !(1_024.0..).contains(&bytes) {
        return format!("{:.0} B", bytes.max(0.0));
    }
    let mut value = bytes;
    let mut unit = "B";
    for name in ["KiB", "MiB", "GiB", "TiB", "PiB"] {
        if value < 999.5 && unit != "B" {
            break;
        }
        value /= 1_024.0;
        unit = name;
    }
    let decimals = usize::from(value < 99.95);
    format!("{value:.decimals$} {unit}")
}

/// Writes a rate of things for people: `0.25/s`, `12.5/s`, `9,876/s`.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "rounded, and negative rates are zero"
)]
pub(crate) fn human_rate(per_second: f64) -> String {
    let rate = if per_second.is_finite() {
        per_second.max(0.0)
    } else {
        0.0
    };
    if rate >= 999.5 {
        format!("{}/s", grouped(rate.round() as u64))
    } else if rate >= 1.0 || rate == 0.0 {
        format!("{rate:.1}/s")
    } else {
        format!("{rate:.2}/s")
    }
}

/// Writes a share between 0 and 1 in per cent; never rounds up to 100 nor down to 0.
pub(crate) fn percent(share: f64) -> String {
    let percent = if share.is_finite() {
        share * 100.0
    } else {
        0.0
    };
    if percent <= 0.0 {
        "0 %".to_owned()
    } else if percent < 0.000_1 {
        "<0.0001 %".to_owned()
    } else if percent < 0.1 {
        format!("{percent:.4} %")
    } else if (99.99..100.0).contains(&percent) {
        "99.99 %".to_owned()
    } else if percent >= 100.0 {
        "100 %".to_owned()
    } else {
        format!("{percent:.2} %")
    }
}

/// Returns `part / whole` in per cent, for counts.
#[expect(clippy::cast_precision_loss, reason = "shown with at most six digits")]
pub(crate) fn percent_of(part: u64, whole: u64) -> String {
    if whole == 0 {
        "0 %".to_owned()
    } else {
        percent(part as f64 / whole as f64)
    }
}

/// Writes a duration for people: `0.4s`, `12s`, `1m 23s`, `2h 05m`, `3d 04h`.
pub(crate) fn human_duration(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let mut text = String::new();
    // Writing to a string does not fail.
    let _ = match seconds {
        0..10 => write!(text, "{:.1}s", duration.as_secs_f64()),
        10..60 => write!(text, "{seconds}s"),
        60..3_600 => write!(text, "{}m {:02}s", seconds / 60, seconds % 60),
        3_600..86_400 => write!(text, "{}h {:02}m", seconds / 3_600, seconds / 60 % 60),
        _ => write!(text, "{}d {:02}h", seconds / 86_400, seconds / 3_600 % 24),
    };
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_read_with_and_without_units() {
        for (text, count) in [
            ("0", 0),
            ("500", 500),
            ("10_000", 10_000),
            ("64k", 64_000),
            ("50M", 50_000_000),
            ("1.5M", 1_500_000),
            (" 7 ", 7),
            ("18446744073709551615", u64::MAX),
        ] {
            assert_eq!(parse_count(text), Some(count), "{text:?}");
        }
        for text in [
            "",
            "k",
            "-1",
            "1x",
            "1 2",
            "18446744073709551616",
            "99999999999G",
            ".",
            "1.2.3",
            "0x10",
            "١",
        ] {
            assert_eq!(parse_count(text), None, "{text:?}");
        }
    }

    #[test]
    fn sizes_are_binary_unless_they_say_otherwise() {
        for (text, bytes) in [
            ("4096", 4_096),
            ("64k", 65_536),
            ("64 KiB", 65_536),
            ("10MiB", 10 << 20),
            ("10mb", 10_000_000),
            ("1.5G", 3 << 29),
            ("0", 0),
        ] {
            assert_eq!(parse_bytes(text), Some(bytes), "{text:?}");
        }
        for text in ["MiB", "-1", "1 QiB", "999999999TiB"] {
            assert_eq!(parse_bytes(text), None, "{text:?}");
        }
    }

    #[test]
    fn durations_are_read_in_every_form() {
        for (text, ms) in [
            ("0", 0),
            ("2", 2_000),
            ("0.25", 250),
            ("500ms", 500),
            ("2s", 2_000),
            ("10m", 600_000),
            ("1h30m", 5_400_000),
            ("1d", 86_400_000),
        ] {
            assert_eq!(
                parse_duration(text),
                Some(Duration::from_millis(ms)),
                "{text:?}"
            );
        }
        for text in ["", "s", "-1s", "1y", "1h30x", "18446744073709551615h"] {
            assert_eq!(parse_duration(text), None, "{text:?}");
        }
    }

    #[test]
    fn rates_are_read_as_shares_and_in_per_cent() {
        for (text, rate) in [
            ("0.01", 0.01),
            ("1%", 0.01),
            ("0.5 %", 0.005),
            (" 1e-6 ", 0.000_001),
        ] {
            assert_eq!(parse_rate(text), Some(rate), "{text:?}");
        }
        for text in [
            "", "%", "0", "0%", "1", "100%", "-1%", "NaN", "inf", "1%%", "x",
        ] {
            assert_eq!(parse_rate(text), None, "{text:?}");
        }
    }

    #[test]
    fn what_is_written_exactly_is_read_back_the_same() {
        for count in [0, 1, 999, 1_000, 1_234_567, u64::MAX] {
            assert_eq!(parse_count(&count_text(count)), Some(count));
            assert_eq!(parse_bytes(&bytes_text(count)), Some(count));
        }
        for bytes in [1 << 10, 3 << 20, 1 << 30, 1_000_000_000, 1_500, 10 << 40] {
            assert_eq!(parse_bytes(&bytes_text(bytes)), Some(bytes));
        }
        for ms in [
            0, 1, 999, 1_000, 1_500, 60_000, 90_000, 3_600_000, 5_400_000,
        ] {
            let duration = Duration::from_millis(ms);
            assert_eq!(parse_duration(&duration_text(duration)), Some(duration));
        }
    }

    #[test]
    fn numbers_for_people_stay_short_and_honest() {
        assert_eq!(grouped(1_234_567), "1,234,567");
        assert_eq!(estimate_text(0.0), "0");
        assert_eq!(estimate_text(1.26), "1.3");
        assert_eq!(estimate_text(1_234.6), "1,235");
        assert_eq!(counted(1, "slice"), "1 slice");
        assert_eq!(counted(3_000, "slice"), "3,000 slices");
        assert_eq!(human_bytes(0), "0 B");
        assert_eq!(human_bytes(1_536), "1.5 KiB");
        assert_eq!(human_bytes(1_023 << 20), "1.0 GiB");
        assert_eq!(megabytes(542_000_001), "542.1 MB");
        assert_eq!(megabytes(1_234_500_000), "1,234.5 MB");
        assert_eq!(human_byte_rate(12.34 * 1_048_576.0), "12.3 MiB/s");
        assert_eq!(percent(1.0), "100 %");
        assert_eq!(percent(0.999_999), "99.99 %");
        assert_eq!(percent(0.000_000_1), "<0.0001 %");
        assert_eq!(percent(0.0), "0 %");
        assert_eq!(percent(f64::NAN), "0 %");
        assert_eq!(human_rate(f64::INFINITY), "0.0/s");
        assert_eq!(human_rate(9_876.4), "9,876/s");
        assert_eq!(human_duration(Duration::from_secs(83)), "1m 23s");
        assert_eq!(human_duration(Duration::from_mins(125)), "2h 05m");
    }
}
