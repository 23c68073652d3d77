//! Numbers as people write and read them: `10M`, `64MB`, `1%`.

/// Reads a count: digits, with `k`, `M` or `G` for thousands, millions or milliards.
///
/// # Errors
///
/// Says what is wrong with the text.
pub fn count(text: &str) -> Result<u64, String> {
    let (digits, factor) = match text.char_indices().last() {
        Some((at, 'k')) => (&text[..at], 1_000),
        Some((at, 'M')) => (&text[..at], 1_000_000),
        Some((at, 'G')) => (&text[..at], 1_000_000_000),
        _ => (text, 1),
    };
    digits
        .parse::<u64>()
        .ok()
        .and_then(|number| number.checked_mul(factor))
        .ok_or_else(|| format!("{text:?} is no count: write 5000, 100k or 10M"))
}

/// Reads a count below 2^32.
///
/// # Errors
///
/// Says what is wrong with the text.
pub fn small_count(text: &str) -> Result<u32, String> {
    u32::try_from(count(text)?).map_err(|_| format!("{text} is 2^32 or more"))
}

/// Reads bytes: a count with `B` after it, or without.
///
/// # Errors
///
/// Says what is wrong with the text.
pub fn bytes(text: &str) -> Result<u64, String> {
    count(text.strip_suffix('B').unwrap_or(text))
        .map_err(|_| format!("{text:?} is no size: write 16MB or 500kB"))
}

/// Reads a share above 0 and below 1: `1%` or `0.01`.
///
/// # Errors
///
/// Says what is wrong with the text.
pub fn share(text: &str) -> Result<f64, String> {
    let (digits, divisor) = text
        .strip_suffix('%')
        .map_or((text, 1.0), |head| (head, 100.0));
    let share = digits.parse::<f64>().map(|number| number / divisor);
    share
        .ok()
        .filter(|share| *share > 0.0 && *share < 1.0)
        .ok_or_else(|| format!("{text:?} is no share between 0 and 1: write 1% or 0.01"))
}

/// Writes a whole number with commas between thousands.
#[must_use]
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{bytes, count, grouped, share, small_count};

    #[test]
    fn numbers_are_read_as_people_write_them() {
        assert_eq!(count("100k"), Ok(100_000));
        assert_eq!(count("7"), Ok(7));
        assert_eq!(bytes("64MB"), Ok(64_000_000));
        assert_eq!(bytes("64M"), Ok(64_000_000));
        assert_eq!(share("1%"), Ok(0.01));
        assert_eq!(share("0.5"), Ok(0.5));
        for text in ["", "k", "-1", "1.5M", "99999999999G"] {
            assert!(count(text).is_err(), "{text:?}");
        }
        assert!(small_count("5G").is_err());
        for text in ["0", "100%", "1", "x%", "NaN"] {
            assert!(share(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn long_numbers_are_grouped() {
        let texts = [0, 999, 1_000, 459_775, 12_345_678].map(grouped);
        assert_eq!(texts, ["0", "999", "1,000", "459,775", "12,345,678"]);
    }
}
