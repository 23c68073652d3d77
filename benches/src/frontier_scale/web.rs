//! The generated web: URLs by number, spread over hosts by a power law, and the links of a page.
//!
//! One page in so many has links, the others none, and of the links 55 % lead to URLs that nothing has linked to before;
//! so each page brings two new URLs in the mean, and half of the known URLs wait. Of the links to known URLs half lead to
//! one of the last 100,000, as navigation does, and half to any, which is the worst for caches.

use std::{
    fmt::Write as _,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
};

use fastrand::Rng;
use types::CanonicalUrl;

/// The share of links to URLs that are known already.
const KNOWN_SHARE: f64 = 0.45;
/// New URLs of a page, in the mean.
const NEW_PER_PAGE: f64 = 2.0;
/// The URLs that half of the links to known ones lead to.
const RECENT_COUNT: u64 = 100_000;

const WORDS: [&str; 16] = [
    "annual", "report", "garden", "history", "review", "market", "winter", "library", "science",
    "travel", "people", "summer", "kitchen", "museum", "letters", "weather",
];

/// The web; shared by the threads that parse.
#[derive(Debug)]
pub struct Web {
    host_count: u32,
    link_count: u32,
    /// Links lead to no number from here on.
    url_count: u64,
    /// The next URL that nothing has linked to.
    next: AtomicU64,
}

impl Web {
    /// Makes a web of `url_count` URLs on `host_count` hosts, with `link_count` links on each page that has any; the first
    /// `seed_count` URLs need no links to them.
    #[must_use]
    pub const fn new(url_count: u64, host_count: u32, link_count: u32, seed_count: u64) -> Self {
        Self {
            host_count,
            link_count,
            url_count,
            next: AtomicU64::new(seed_count),
        }
    }

    /// Returns whether a page has links, which must then be made. Once every URL was linked to, none has.
    pub fn has_links(&self, random: &mut Rng) -> bool {
        let new_per_linking_page = f64::from(self.link_count) * (1.0 - KNOWN_SHARE);
        random.f64() < NEW_PER_PAGE / new_per_linking_page
            && self.next.load(Relaxed) < self.url_count
    }

    /// Draws the numbers that the links of a page lead to.
    pub fn draw_links(&self, random: &mut Rng, numbers: &mut Vec<u64>) {
        numbers.clear();
        for _ in 0..self.link_count {
            let kind = random.f64();
            let next = self.next.load(Relaxed).min(self.url_count);
            let number = if kind < KNOWN_SHARE / 2.0 {
                next - 1 - random.u64(..RECENT_COUNT.min(next))
            } else if kind < KNOWN_SHARE {
                random.u64(..next)
            } else {
                self.next.fetch_add(1, Relaxed)
            };
            if number < self.url_count {
                numbers.push(number);
            }
        }
    }

    /// Returns the URL with a number.
    ///
    /// # Panics
    ///
    /// Never: the text is written in canonical form.
    #[must_use]
    pub fn url(&self, number: u64) -> CanonicalUrl {
        let bits = mixed(number);
        let word = |shift: u32| WORDS[(bits >> shift & 15) as usize];
        let mut text = String::with_capacity(80);
        let _ = write!(
            text,
            "https://www.site-{}.example/{}/{}-{}/{number:x}-{}.html",
            self.host(bits),
            word(0),
            word(4),
            word(8),
            word(12),
        );
        CanonicalUrl::from_stored(text).expect("the text is written in canonical form")
    }

    /// Spreads URLs so that the x-th part of hosts, from the greatest on, has the cube root of x of them.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_precision_loss,
        clippy::cast_sign_loss,
        reason = "between 0 and the number of hosts"
    )]
    fn host(&self, bits: u64) -> u32 {
        let share = (bits >> 16) as f64 / (1_u64 << 48) as f64;
        (f64::from(self.host_count) * share * share * share) as u32
    }
}

/// Spreads every bit over all others, one to one (the finalizer of `SplitMix64`).
const fn mixed(bits: u64) -> u64 {
    let bits = bits.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use fastrand::Rng;

    use super::Web;

    #[test]
    fn a_page_brings_two_new_urls_and_all_are_linked_to() {
        let web = Web::new(20_000, 50, 40, 100);
        let mut random = Rng::with_seed(1);
        let mut known: HashSet<u64> = (0..100).collect();
        let (mut page_count, mut link_count, mut numbers) = (0.0, 0.0, Vec::new());
        while known.len() < 20_000 {
            page_count += 1.0;
            if web.has_links(&mut random) {
                web.draw_links(&mut random, &mut numbers);
                link_count += f64::from(u32::try_from(numbers.len()).expect("few"));
                known.extend(&numbers);
            }
        }
        assert!(!(0..1_000).any(|_| web.has_links(&mut random)));
        let per_page = 19_900.0 / page_count;
        assert!((1.8..2.2).contains(&per_page), "{per_page}");
        let per_new = link_count / 19_900.0;
        assert!((1.75..1.88).contains(&per_new), "{per_new}");
    }

    #[test]
    fn urls_differ_and_hosts_are_unequal() {
        let web = Web::new(100_000, 1_000, 40, 0);
        let urls: HashSet<String> = (0..100_000)
            .map(|number| web.url(number).as_str().to_owned())
            .collect();
        assert_eq!(urls.len(), 100_000);
        let of_greatest = (0..100_000)
            .filter(|number| web.url(*number).host_str() == "https://www.site-0.example");
        assert!((9_000..11_000).contains(&of_greatest.count()));
    }
}
