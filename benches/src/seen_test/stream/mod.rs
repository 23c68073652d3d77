//! Link streams: the links of a crawl, page by page, in the order in which a crawler meets them.

mod census;
mod documentation;
mod files;
mod model;
mod recorded;

use types::CanonicalUrl;

pub use census::Census;
pub use documentation::{Site, documentation, packaged_sites};
pub use files::{link_stream, url_list};
pub use model::{Model, ModelConfig};
pub use recorded::{Recorded, RecordedBuilder};

/// Names the target of a link within its stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(pub u64);

/// A stream of links. Threads share it; each takes whole pages.
pub trait LinkStream: Send + Sync {
    /// Takes the next page: puts its links into `links` (cleared before), in order, repeats included, and returns its
    /// number, counted from 0. `None` at the end.
    fn next_page(&self, links: &mut Vec<LinkId>) -> Option<u64>;

    /// Begins again, with the same pages.
    fn rewind(&self);

    /// Returns the URL of a link.
    fn url(&self, link: LinkId) -> CanonicalUrl;

    /// Returns the link that leads to a URL, unless none of this stream does.
    fn link_of(&self, url: &CanonicalUrl) -> Option<LinkId>;

    /// Returns the place of a link's target among all possible ones, below [`LinkStream::slot_count`].
    fn slot(&self, link: LinkId) -> u64;

    /// Returns how many targets there could be.
    fn slot_count(&self) -> u64;
}
