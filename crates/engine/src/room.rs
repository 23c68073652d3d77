//! Where parse threads wait for memory: until less of what they made waits for a commit, and for the right to take up a
//! large page.

use std::{
    ops::Deref,
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use types::CanonicalUrl;

/// Memory of a link on its way to the store beside its URL and its referrer, in bytes: its entry among the unwritten, its
/// queue entry, its place in the ledger.
pub(crate) const LINK_BYTES: u64 = 300;

/// Returns the memory of a link on its way to the store: what is counted when it sets out, and given back when it arrives.
/// The links of a page share their referrer, but one link alone keeps all of it.
pub(crate) fn link_bytes(url: &CanonicalUrl, referrer: Option<&Arc<str>>) -> u64 {
    let text_bytes = url.as_str().len() + referrer.map_or(0, |referrer| referrer.len());
    LINK_BYTES + text_bytes as u64
}

/// How often a thread that waits for commits looks whether the crawl is over, of which nobody tells it.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);

/// What the parse threads made and no commit wrote yet, in bytes: records for the archive and links.
///
/// A thread looks before it takes a page, and not again, so each can exceed the bound by one page. Whatever is counted here
/// gets to a commit without the threads that wait, so they wait for nothing that waits for them.
#[derive(Debug)]
pub(crate) struct Backlog {
    bytes_max: u64,
    archive_bytes: AtomicU64,
    /// Of links that were neither refused nor known in memory.
    link_bytes: AtomicU64,
    /// Held between a look at the bytes and the wait for fewer, so that no wake-up falls between the two.
    waiting: Mutex<()>,
    shrunk: Condvar,
}

impl Backlog {
    /// Makes an empty one.
    pub(crate) const fn new(bytes_max: u64) -> Self {
        Self {
            bytes_max,
            archive_bytes: AtomicU64::new(0),
            link_bytes: AtomicU64::new(0),
            waiting: Mutex::new(()),
            shrunk: Condvar::new(),
        }
    }

    /// Counts records until they are dropped.
    pub(crate) fn hold(self: &Arc<Self>, bytes: Vec<u8>) -> HeldBytes {
        self.archive_bytes.fetch_add(bytes.len() as u64, Relaxed);
        HeldBytes {
            bytes,
            backlog: Arc::clone(self),
        }
    }

    /// Counts links that a commit will settle, by their [`link_bytes`].
    pub(crate) fn add_links(&self, bytes: u64) {
        self.link_bytes.fetch_add(bytes, Relaxed);
    }

    /// Gives back what was counted of links that are settled.
    pub(crate) fn settle_links(&self, bytes: u64) {
        self.link_bytes.fetch_sub(bytes, Relaxed);
        self.wake();
    }

    /// Returns once more may be made, or soon after `is_over`.
    pub(crate) fn wait_for_room(&self, is_over: impl Fn() -> bool) {
        let mut waiting = self.lock();
        while self.is_full() && !is_over() {
            (waiting, _) = self
                .shrunk
                .wait_timeout(waiting, LOOK_INTERVAL)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn wake(&self) {
        drop(self.lock());
        self.shrunk.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, ()> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether no more should be made now.
    fn is_full(&self) -> bool {
        let archive_bytes = self.archive_bytes.load(Relaxed);
        archive_bytes.saturating_add(self.link_bytes.load(Relaxed)) >= self.bytes_max
    }
}

/// Records that are counted in the backlog as long as they are there.
#[derive(Debug)]
pub(crate) struct HeldBytes {
    bytes: Vec<u8>,
    backlog: Arc<Backlog>,
}

impl Deref for HeldBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for HeldBytes {
    fn drop(&mut self) {
        let bytes = self.bytes.len() as u64;
        self.backlog.archive_bytes.fetch_sub(bytes, Relaxed);
        self.backlog.wake();
    }
}

/// How many large pages may be taken up at one time.
#[derive(Debug)]
pub(crate) struct LargePages {
    free_count: Mutex<usize>,
    freed: Condvar,
}

/// The right to take up one large page.
#[derive(Debug)]
pub(crate) struct LargePage<'a>(&'a LargePages);

impl LargePages {
    /// Allows `count` at a time, at least one.
    pub(crate) fn new(count: usize) -> Self {
        Self {
            free_count: Mutex::new(count.max(1)),
            freed: Condvar::new(),
        }
    }

    /// Returns once there is a place. Whoever has one only computes and waits for nobody, so there will be one; a page at
    /// the caps keeps it for as long as its decoding and parsing, or its compression, takes.
    pub(crate) fn enter(&self) -> LargePage<'_> {
        let free_count = self
            .free_count
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let mut free_count = self
            .freed
            .wait_while(free_count, |free_count| *free_count == 0)
            .unwrap_or_else(PoisonError::into_inner);
        *free_count -= 1;
        LargePage(self)
    }
}

impl Drop for LargePage<'_> {
    fn drop(&mut self) {
        *self
            .0
            .free_count
            .lock()
            .unwrap_or_else(PoisonError::into_inner) += 1;
        self.0.freed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::atomic::AtomicBool, thread};

    use types::Canonicalizer;

    use super::*;

    #[test]
    fn records_and_links_fill_the_backlog_until_they_are_written() {
        let backlog = Arc::new(Backlog::new(1_000));
        assert!(!backlog.is_full());
        let held = backlog.hold(vec![0; 500]);
        backlog.add_links(499);
        assert!(!backlog.is_full());
        backlog.add_links(1);
        assert!(backlog.is_full());
        backlog.settle_links(1);
        assert!(!backlog.is_full(), "a link was settled");
        backlog.add_links(2);
        assert!(backlog.is_full());
        drop(held);
        assert!(!backlog.is_full(), "the records were written");
    }

    #[test]
    fn a_thread_waits_until_something_is_written_or_all_is_over() {
        let backlog = Arc::new(Backlog::new(2));
        let held = backlog.hold(vec![0; 1]);
        backlog.add_links(2);
        backlog.wait_for_room(|| true);
        let (is_settled, is_written) = (AtomicBool::new(false), AtomicBool::new(false));
        thread::scope(|scope| {
            scope.spawn(|| {
                backlog.wait_for_room(|| false);
                assert!(is_settled.load(Relaxed) && is_written.load(Relaxed));
            });
            is_settled.store(true, Relaxed);
            backlog.settle_links(1);
            is_written.store(true, Relaxed);
            drop(held);
        });
    }

    #[test]
    fn a_link_counts_with_its_url_and_referrer() {
        let url = Canonicalizer::default().canonicalize("http://site.example/");
        let url = url.expect("a URL in canonical form");
        assert_eq!(link_bytes(&url, None), LINK_BYTES + 20);
        assert_eq!(link_bytes(&url, Some(&"abc".into())), LINK_BYTES + 23);
    }

    #[test]
    fn large_pages_are_taken_up_one_after_the_other() {
        let pages = LargePages::new(1);
        let at_once = AtomicU64::new(0);
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..50 {
                        let _page = pages.enter();
                        assert_eq!(at_once.fetch_add(1, Relaxed), 0);
                        thread::yield_now();
                        at_once.fetch_sub(1, Relaxed);
                    }
                });
            }
        });
    }
}
