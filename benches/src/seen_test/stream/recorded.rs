//! A stream held in memory: pages of numbers into a table of canonical URLs.

use std::{
    collections::{HashMap, hash_map::Entry},
    sync::atomic::{AtomicUsize, Ordering},
};

use anyhow::{Context as _, Result};
use types::{CanonicalUrl, Canonicalizer};

use super::{LinkId, LinkStream};

/// A stream that was read or crawled beforehand; its URLs are canonical already.
pub struct Recorded {
    pages: Vec<Box<[u32]>>,
    urls: Vec<CanonicalUrl>,
    numbers: HashMap<CanonicalUrl, u32>,
    rejected_count: u64,
    next: AtomicUsize,
}

/// Gathers the pages of a [`Recorded`] stream.
#[derive(Default)]
pub struct RecordedBuilder {
    canonicalizer: Canonicalizer,
    pages: Vec<Box<[u32]>>,
    page: Vec<u32>,
    urls: Vec<CanonicalUrl>,
    numbers: HashMap<CanonicalUrl, u32>,
    rejected_count: u64,
}

impl RecordedBuilder {
    /// Adds a link to the page under way. A text that is no URL, or none that is crawled, is counted and left out.
    ///
    /// # Errors
    ///
    /// Fails when there are more than 2^32 URLs.
    pub fn text(&mut self, text: &str) -> Result<()> {
        let Ok(url) = self.canonicalizer.canonicalize(text) else {
            self.rejected_count += 1;
            return Ok(());
        };
        self.url(url).map(drop)
    }

    /// Adds a link to the page under way, and returns whether its target is new to the stream.
    ///
    /// # Errors
    ///
    /// Fails when there are more than 2^32 URLs.
    pub fn url(&mut self, url: CanonicalUrl) -> Result<bool> {
        match self.numbers.entry(url) {
            Entry::Occupied(slot) => {
                self.page.push(*slot.get());
                Ok(false)
            }
            Entry::Vacant(slot) => {
                let number = u32::try_from(self.urls.len()).context("more than 2^32 URLs")?;
                self.urls.push(slot.key().clone());
                slot.insert(number);
                self.page.push(number);
                Ok(true)
            }
        }
    }

    /// Counts a link that is not followed.
    pub const fn reject(&mut self) {
        self.rejected_count += 1;
    }

    /// Returns how many links the page under way has.
    #[must_use]
    pub const fn page_len(&self) -> usize {
        self.page.len()
    }

    /// Ends the page under way; one without links is no page of the stream.
    pub fn end_page(&mut self) {
        if !self.page.is_empty() {
            self.pages.push(self.page.as_slice().into());
            self.page.clear();
        }
    }

    /// Ends the stream; the pages come `passes` times in a row.
    #[must_use]
    pub fn finish(mut self, passes: usize) -> Recorded {
        self.end_page();
        let page_count = self.pages.len();
        for _ in 1..passes {
            self.pages.extend_from_within(..page_count);
        }
        Recorded {
            pages: self.pages,
            urls: self.urls,
            numbers: self.numbers,
            rejected_count: self.rejected_count,
            next: AtomicUsize::new(0),
        }
    }
}

impl Recorded {
    /// Keeps whole pages from the beginning, until they have at least `links_max` links.
    #[must_use]
    pub fn first(mut self, links_max: u64) -> Self {
        let mut link_count = 0;
        let kept = self.pages.iter().take_while(|page| {
            let is_wanted = link_count < links_max;
            link_count += page.len() as u64;
            is_wanted
        });
        let kept = kept.count();
        self.pages.truncate(kept);
        self
    }

    /// Returns how many links were left out because they cannot be followed.
    #[must_use]
    pub const fn rejected_count(&self) -> u64 {
        self.rejected_count
    }
}

impl LinkStream for Recorded {
    fn next_page(&self, links: &mut Vec<LinkId>) -> Option<u64> {
        links.clear();
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let page = self.pages.get(number)?;
        links.extend(page.iter().map(|link| LinkId(u64::from(*link))));
        Some(number as u64)
    }

    fn rewind(&self) {
        self.next.store(0, Ordering::Relaxed);
    }

    #[expect(
        clippy::cast_possible_truncation,
        reason = "the numbers of this stream are of 32 bits"
    )]
    fn url(&self, link: LinkId) -> CanonicalUrl {
        self.urls[link.0 as usize].clone()
    }

    fn link_of(&self, url: &CanonicalUrl) -> Option<LinkId> {
        self.numbers.get(url).map(|link| LinkId(u64::from(*link)))
    }

    fn slot(&self, link: LinkId) -> u64 {
        link.0
    }

    fn slot_count(&self) -> u64 {
        self.urls.len() as u64
    }
}
