//! Candidates: URLs that were discovered and not yet judged, and the judgements.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{CanonicalUrl, UrlKey};

/// How a URL was discovered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Via {
    /// Named by the user.
    Seed,
    /// Extracted from a page.
    Link,
    /// The target of a redirect.
    Redirect,
    /// Named as a sitemap, by a robots.txt file or a sitemap index.
    Sitemap,
    /// An entry of a sitemap or a feed.
    Entry,
}

/// A discovered canonical URL on its way to the seen test.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// The canonical URL.
    pub url: CanonicalUrl,
    /// Its key under the crawl's seed.
    pub key: UrlKey,
    /// Links followed from a seed; a redirect, or a sitemap within another, does not add to it.
    pub depth: u32,
    /// How it was discovered.
    pub via: Via,
    /// Redirects, and sitemaps within sitemaps, followed in a row to get here; 0 unless `via` is [`Via::Redirect`] or
    /// [`Via::Sitemap`].
    pub redirect_count: u8,
    /// The canonical URL of the page that named it; `None` for seeds.
    pub referrer: Option<Arc<str>>,
}

/// Why a candidate was refused before the seen test; each reason is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RejectReason {
    /// Its text is no valid URL (WHATWG).
    Invalid,
    /// Its scheme is not http or https.
    Scheme,
    /// Its canonical text is over the length cap.
    TooLong,
    /// It lies outside the crawl's scope.
    OutOfScope,
    /// An exclude pattern matches, or no include pattern does.
    Filtered,
    /// It is deeper than `max-depth`.
    TooDeep,
    /// Too many redirects in a row led to it.
    TooManyRedirects,
    /// A directive (`nofollow`) asks not to follow it.
    Nofollow,
    /// Its page held more links than the limit.
    TooManyLinks,
    /// Parts of its path or query come again and again.
    Repeating,
}

impl RejectReason {
    /// Every reason, in the order of the report.
    pub const ALL: [Self; 10] = [
        Self::Invalid,
        Self::Scheme,
        Self::TooLong,
        Self::OutOfScope,
        Self::Filtered,
        Self::TooDeep,
        Self::TooManyRedirects,
        Self::Nofollow,
        Self::TooManyLinks,
        Self::Repeating,
    ];

    /// Returns the reason's name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Invalid => "invalid",
            Self::Scheme => "scheme",
            Self::TooLong => "too-long",
            Self::OutOfScope => "out-of-scope",
            Self::Filtered => "filtered",
            Self::TooDeep => "too-deep",
            Self::TooManyRedirects => "too-many-redirects",
            Self::Nofollow => "nofollow",
            Self::TooManyLinks => "too-many-links",
            Self::Repeating => "repeating",
        }
    }
}

/// What the store says of a suspect, a key the filter answered "yes" for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The store has the key: a true duplicate.
    Seen,
    /// The store lacks the key: the filter was wrong, and the URL is new.
    FalsePositive,
}

#[cfg(test)]
mod tests {
    use super::RejectReason;

    #[test]
    fn a_reason_has_one_name_in_reports_and_stores() {
        for reason in RejectReason::ALL {
            let stored = serde_json::to_string(&reason).expect("a reason serializes");
            assert_eq!(stored, format!("{:?}", reason.name()));
        }
        let mut names = RejectReason::ALL.map(RejectReason::name).to_vec();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), RejectReason::ALL.len());
    }
}
