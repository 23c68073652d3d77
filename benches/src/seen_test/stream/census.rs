//! The shape of a stream: how many links it has, and how many of them were seen before.

use super::{LinkId, LinkStream};
use crate::seen_test::truth::Bits;

/// What was counted in one pass over a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Census {
    /// Pages.
    pub page_count: u64,
    /// Links, repeats included.
    pub link_count: u64,
    /// Different targets.
    pub distinct_count: u64,
    /// Links that repeat an earlier one of their page.
    pub in_page_count: u64,
}

impl Census {
    /// Counts a stream from its beginning, and rewinds it.
    #[must_use]
    pub fn take(stream: &dyn LinkStream) -> Self {
        stream.rewind();
        let mut census = Self::default();
        let seen = Bits::new(stream.slot_count());
        let mut links: Vec<LinkId> = Vec::new();
        while stream.next_page(&mut links).is_some() {
            census.page_count += 1;
            census.link_count += links.len() as u64;
            links.sort_unstable();
            let before = links.len();
            links.dedup();
            census.in_page_count += (before - links.len()) as u64;
            for link in &links {
                census.distinct_count += u64::from(seen.set(stream.slot(*link)));
            }
        }
        stream.rewind();
        census
    }

    /// Returns the share of links that are duplicates, within their page or of an earlier one, 0 to 1.
    #[must_use]
    pub fn duplicate_share(&self) -> f64 {
        1.0 - share(self.distinct_count, self.link_count)
    }

    /// Returns the share of links that repeat an earlier one of their page, 0 to 1.
    #[must_use]
    pub fn in_page_share(&self) -> f64 {
        share(self.in_page_count, self.link_count)
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a share is read with few digits"
)]
fn share(part: u64, whole: u64) -> f64 {
    part as f64 / whole.max(1) as f64
}
