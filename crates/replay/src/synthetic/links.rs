//! Which pages a page links to.

use super::{layout::Layout, random::Random};

/// At most this many of a page's links are first links to a page; the rest of the web's links are repeats too.
const CHILD_COUNT_MAX: u64 = 10;

/// Returns the targets of a page's links: its children in the tree, the navigation, then by chance.
pub(super) fn targets(layout: &Layout, seed: u64, links_per_page: u32, index: u64) -> Vec<u64> {
    let link_count = u64::from(links_per_page);
    let child_count = (link_count / 3).clamp(1, CHILD_COUNT_MAX);
    let mut random = Random::new(seed, index);
    let mut targets = Vec::with_capacity(usize::try_from(link_count).unwrap_or_default());
    // Page i has the children ci+1 to ci+c: each page but the first has exactly one parent, with a lower number.
    let children =
        (1..=child_count).filter_map(|child| index.checked_mul(child_count)?.checked_add(child));
    targets.extend(children.filter(|child| *child < layout.page_count));
    let host = layout.host_of(index);
    let hot_count = layout
        .hot_count(host)
        .min(link_count - targets.len() as u64);
    targets.extend((0..hot_count).map(|position| layout.host_page(host, position)));
    for _ in targets.len() as u64..link_count {
        let target = if layout.host_count > 1 && random.below(100) < 15 {
            let foreign = random.skewed_below(layout.host_count);
            layout.host_page(
                foreign,
                random.skewed_below(layout.host_page_count(foreign)),
            )
        } else {
            layout.host_page(host, random.skewed_below(layout.host_page_count(host)))
        };
        targets.push(target);
    }
    targets
}
