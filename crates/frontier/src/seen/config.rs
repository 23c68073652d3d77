//! How a seen test is asked to work: its mode and its sizes.

use std::{fmt, str::FromStr};

use filter::{Exact, GrowthConfig, Pages};
use thiserror::Error;

/// What answers whether a URL is known.
///
/// Only the first is meant for crawls; the others are what it is compared with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum SeenMode {
    /// The filter, and the store where the filter says "yes": exact, in little memory, with few reads.
    #[default]
    BloomStore,
    /// The filter alone: its false positives are lost.
    Bloom,
    /// A set of all keys in memory: exact, in 19 to 39 bytes a key.
    Exact,
    /// The store alone: exact, with a read for every link that is no repeat in its page or of a URL just under way.
    Store,
}

impl SeenMode {
    /// Every mode.
    pub const ALL: [Self; 4] = [Self::BloomStore, Self::Bloom, Self::Exact, Self::Store];

    /// Returns the name in settings and reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::BloomStore => "bloom+store",
            Self::Bloom => "bloom",
            Self::Exact => "exact",
            Self::Store => "store",
        }
    }

    /// Returns whether a crawl begun in mode `before` may go on in this one, so that it stays exact and its counts mean the
    /// same: in the same mode, and between the filter with the store and the set of all keys.
    #[must_use]
    pub fn continues(self, before: Self) -> bool {
        let is_exact = |mode| matches!(mode, Self::BloomStore | Self::Exact);
        self == before || (is_exact(self) && is_exact(before))
    }
}

impl fmt::Display for SeenMode {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// A text that names no mode.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0:?} is no mode of the seen test: give bloom+store, bloom, exact or store")]
pub struct UnknownMode(String);

impl FromStr for SeenMode {
    type Err = UnknownMode;

    fn from_str(text: &str) -> Result<Self, UnknownMode> {
        Self::ALL
            .into_iter()
            .find(|mode| mode.name() == text)
            .ok_or_else(|| UnknownMode(text.to_owned()))
    }
}

/// The mode and the sizes of a seen test.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SeenConfig {
    /// What answers.
    pub mode: SeenMode,
    /// URLs that the filter is sized for; at least 1. It grows with more.
    pub expected_urls: u64,
    /// The false-positive rate that it stays below, above 0 and below 1.
    pub false_positive_rate: f64,
    /// For tests: bits for this many URLs from the first on, whatever is expected, and no growth.
    pub fixed_filter_urls: Option<u64>,
    /// The most memory of the recent-key cache, in bytes, 64 for six keys; it grows with use. 0: no cache.
    pub cache_bytes: usize,
    /// Whether filter and cache ask for huge pages.
    pub huge_pages: bool,
}

impl Default for SeenConfig {
    /// Ten million URLs at 1 %, and 64 MB of recent keys.
    fn default() -> Self {
        Self {
            mode: SeenMode::BloomStore,
            expected_urls: 10_000_000,
            false_positive_rate: 0.01,
            fixed_filter_urls: None,
            cache_bytes: 64_000_000,
            huge_pages: true,
        }
    }
}

impl SeenConfig {
    /// Returns what the filter is to be; `None` when there is none.
    pub(super) fn growth(&self) -> Option<GrowthConfig> {
        let exact = match self.mode {
            SeenMode::Store => return None,
            SeenMode::Exact => Exact::Always,
            SeenMode::BloomStore | SeenMode::Bloom if self.fixed_filter_urls.is_some() => {
                Exact::Never
            }
            SeenMode::BloomStore | SeenMode::Bloom => Exact::Small,
        };
        Some(GrowthConfig {
            expected_count: self.fixed_filter_urls.unwrap_or(self.expected_urls),
            rate: self.false_positive_rate,
            exact,
            grows: self.fixed_filter_urls.is_none(),
            pages: self.pages(),
        })
    }

    /// Returns the pages of the memory.
    pub(super) const fn pages(&self) -> Pages {
        if self.huge_pages {
            Pages::Huge
        } else {
            Pages::System
        }
    }

    /// Returns the memory of the recent-key cache: where every answer is certain, or none is to be, there is none.
    pub(super) const fn cache_bytes_in_use(&self) -> usize {
        match self.mode {
            SeenMode::BloomStore | SeenMode::Bloom => self.cache_bytes,
            SeenMode::Exact | SeenMode::Store => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::SeenMode;

    #[test]
    fn modes_are_read_as_they_are_written() {
        for mode in SeenMode::ALL {
            assert_eq!(mode.to_string().parse(), Ok(mode));
        }
        let error = "Bloom".parse::<SeenMode>().expect_err("no mode");
        assert!(error.to_string().starts_with("\"Bloom\" is no mode"));
    }
}
