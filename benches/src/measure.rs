//! What benches with a harness of their own measure with: processor time, medians, options, and keys made on the spot.

use std::{
    env,
    fmt::Display,
    io::{self, Write as _},
    process,
    str::FromStr,
};

/// Returns the processor time that this thread has used, in seconds.
///
/// Other work on the machine lengthens the time that passes, but hardly the time that is used; so figures and ratios of
/// one run are of processor time where nothing else is said.
#[must_use]
#[cfg(unix)]
#[expect(
    clippy::cast_precision_loss,
    reason = "seconds of processor time are far below 2^53"
)]
pub fn thread_seconds() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Returns the time that has passed, in seconds: this system does not tell that of one thread.
#[must_use]
#[cfg(not(unix))]
pub fn thread_seconds() -> f64 {
    static START: std::sync::LazyLock<std::time::Instant> =
        std::sync::LazyLock::new(std::time::Instant::now);
    START.elapsed().as_secs_f64()
}

/// Runs `work` and returns the processor time it took of this thread, in seconds, with its result.
pub fn timed<T>(work: impl FnOnce() -> T) -> (f64, T) {
    let start = thread_seconds();
    let result = work();
    (thread_seconds() - start, result)
}

/// Returns the median of figures; of an even number of them the mean of the middle two. 0 of none.
#[must_use]
pub fn median(figures: &[f64]) -> f64 {
    let mut sorted = figures.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => 0.0,
        len if len % 2 == 1 => sorted[len / 2],
        len => f64::midpoint(sorted[len / 2 - 1], sorted[len / 2]),
    }
}

/// Returns the key with a number: each number has another, and they are as good as random.
///
/// Keys are made of their numbers instead of kept, so that 50 million of them take no memory and no cache.
#[must_use]
pub const fn key(number: u64) -> u128 {
    let low = mixed(number.wrapping_mul(2).wrapping_add(1));
    ((mixed(low ^ 0x9e37_79b9_7f4a_7c15) as u128) << 64) | low as u128
}

/// Spreads every bit over all others, one to one (the finalizer of `SplitMix64`).
const fn mixed(bits: u64) -> u64 {
    let bits = bits.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

/// Returns the value after the option `--name` on the command line, or `default` without it. Ends the process with exit
/// code 2 and a word on what would be right if the value cannot be read.
#[must_use]
pub fn option<T: FromStr>(name: &str, default: T, right: &str) -> T
where
    T::Err: Display,
{
    let wanted = format!("--{name}");
    let mut arguments = env::args().skip(1);
    while let Some(argument) = arguments.next() {
        if argument == wanted {
            let text = arguments.next().unwrap_or_default();
            return text.parse().unwrap_or_else(|error| {
                let _ = writeln!(
                    io::stderr(),
                    "error: {wanted} {text:?}: {error}; give {right}"
                );
                process::exit(2);
            });
        }
    }
    default
}

/// Returns whether this is a bench run, as `cargo bench` says by `--bench`; else it is a test of the bench itself, which
/// should be quick.
#[must_use]
pub fn is_bench() -> bool {
    env::args().any(|argument| argument == "--bench")
}

/// Returns whether a test runner only asks which tests are here; a bench with a harness of its own has none.
#[must_use]
pub fn is_listing() -> bool {
    env::args().any(|argument| argument == "--list")
}

/// A number of things, written `5000`, `64k`, `50M` or `1G`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Count(pub u64);

impl FromStr for Count {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (digits, factor) = match text.chars().last() {
            Some('k') => (&text[..text.len() - 1], 1_000),
            Some('M') => (&text[..text.len() - 1], 1_000_000),
            Some('G') => (&text[..text.len() - 1], 1_000_000_000),
            _ => (text, 1),
        };
        let number: u64 = digits
            .parse()
            .map_err(|error: std::num::ParseIntError| error.to_string())?;
        number
            .checked_mul(factor)
            .filter(|count| *count > 0)
            .map(Self)
            .ok_or_else(|| "out of range".to_owned())
    }
}

impl Display for Count {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (unit, size) in [("G", 1_000_000_000), ("M", 1_000_000), ("k", 1_000)] {
            if self.0 >= size && self.0.is_multiple_of(size / 10) {
                let tenths = self.0 / (size / 10);
                return if tenths.is_multiple_of(10) {
                    write!(formatter, "{} {unit}", tenths / 10)
                } else {
                    write!(formatter, "{}.{} {unit}", tenths / 10, tenths % 10)
                };
            }
        }
        write!(formatter, "{}", self.0)
    }
}

/// Prints a line of results. A reader that went away is no fault.
pub fn line(text: impl Display) {
    let mut stdout = io::stdout().lock();
    let _ = writeln!(stdout, "{text}");
    let _ = stdout.flush();
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    #[expect(clippy::float_cmp, reason = "the medians of whole numbers are exact")]
    fn the_median_is_the_middle() {
        assert_eq!(median(&[]), 0.0);
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
    }

    #[test]
    fn counts_have_units() {
        for (text, count) in [("7", 7), ("64k", 64_000), ("50M", 50_000_000)] {
            assert_eq!(text.parse(), Ok(Count(count)));
        }
        for text in ["", "M", "0", "-1", "1x", "99999999999999G"] {
            assert!(text.parse::<Count>().is_err(), "{text}");
        }
        assert_eq!(Count(1_500_000).to_string(), "1.5 M");
        assert_eq!(Count(50_000_000).to_string(), "50 M");
        assert_eq!(Count(1_234).to_string(), "1234");
    }

    #[test]
    fn keys_differ_and_use_both_halves() {
        let keys: HashSet<u128> = (0..10_000).map(key).collect();
        assert_eq!(keys.len(), 10_000);
        for half in [0, 64] {
            let ones: u32 = (keys.iter())
                .map(|key| ((key >> half) & u128::from(u64::MAX)).count_ones())
                .sum();
            assert!((315_000..325_000).contains(&ones), "{ones}");
        }
    }
}
