//! The memory of a filter: its lines, side by side, each at a cache line's boundary.

use crate::{
    FilterError,
    line::{AtomicU64, Line, WORDS},
    sizing::LINE_BYTES,
};

/// Which pages the memory of a filter is asked for in. They hold the same; only the speed differs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pages {
    /// Huge pages where the system has them, and the filter is large enough to gain: a look-up is a random access, and
    /// with small pages it misses the address translation too.
    #[default]
    Huge,
    /// What the system gives unasked.
    System,
}

/// Memory below this gains nothing from huge pages, and would take up more of them than it uses.
const HUGE_BYTES_MIN: usize = 8 << 20;

/// Lines, all of them empty at first.
pub(crate) struct Lines {
    words: Box<[AtomicU64]>,
    /// Words before the first cache line boundary.
    first_word: usize,
    count: usize,
}

impl Lines {
    /// Asks for the memory of `count` lines; the system hands it over, zeroed, as it is touched first.
    pub(crate) fn new(count: usize, pages: Pages) -> Result<Self, FilterError> {
        // The allocator aligns to less than a cache line, so one line more is asked for, and a part of it left unused.
        let words_count = count.saturating_add(1).saturating_mul(WORDS);
        let words = zeroed(words_count).ok_or(FilterError::OutOfMemory {
            bytes: (words_count as u64).saturating_mul(size_of::<u64>() as u64),
        })?;
        if pages == Pages::Huge && size_of_val(&*words) >= HUGE_BYTES_MIN {
            ask_for_huge_pages(&words);
        }
        let first_word = words.as_ptr().align_offset(size_of::<Line>()).min(WORDS);
        Ok(Self {
            words,
            first_word,
            count,
        })
    }

    /// Returns the number of lines.
    pub(crate) const fn count(&self) -> usize {
        self.count
    }

    /// Returns the memory of the lines in bytes.
    pub(crate) const fn size_bytes(&self) -> u64 {
        self.count as u64 * LINE_BYTES
    }

    /// Returns one line.
    ///
    /// # Panics
    ///
    /// Panics when `index` is so far beyond [`Lines::count`] that it is no memory of the filter's.
    #[inline]
    pub(crate) fn line(&self, index: usize) -> &Line {
        let first = self.first_word + index * WORDS;
        self.words[first..]
            .first_chunk()
            .expect("the index is below the count")
    }

    /// Returns the index of the line of a key, from the low half of the key.
    #[inline]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the low half is wanted, and the index is below the count"
    )]
    pub(crate) const fn index_of(&self, key: u128) -> usize {
        ((key as u64 as u128 * self.count as u128) >> 64) as usize
    }

    /// Begins to bring a line into the processor's cache.
    #[inline]
    pub(crate) fn prefetch(&self, index: usize) {
        prefetch(self.line(index));
    }
}

/// Asks for words that are 0, and touches none of them: the system zeroes a page when it is touched first.
#[cfg(not(loom))]
fn zeroed(count: usize) -> Option<Box<[AtomicU64]>> {
    bytemuck::allocation::try_zeroed_slice_box(count).ok()
}

#[cfg(loom)]
fn zeroed(count: usize) -> Option<Box<[AtomicU64]>> {
    Some((0..count).map(|_| AtomicU64::new(0)).collect())
}

// Neither of the two `unsafe` calls below reads or writes memory, so there is nothing in them for Miri to see; it knows
// neither, and goes without.

#[cfg(all(target_arch = "x86_64", not(loom), not(miri)))]
#[inline]
fn prefetch(line: &Line) {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    // SAFETY: a prefetch reads and writes nothing that a program can see, and never faults, whatever the address; every
    // x86-64 processor has it (SSE).
    unsafe { _mm_prefetch::<_MM_HINT_T0>(line.as_ptr().cast()) }
}

/// Without an instruction for it, a load whose value nobody waits for begins the same transfer.
#[cfg(not(any(all(target_arch = "x86_64", not(miri)), loom)))]
#[inline]
fn prefetch(line: &Line) {
    std::hint::black_box(line[0].load(std::sync::atomic::Ordering::Relaxed));
}

#[cfg(loom)]
fn prefetch(_line: &Line) {}

/// Asks for huge pages. Where there are none the memory serves as it is, so no answer is awaited.
#[cfg(all(target_os = "linux", not(loom), not(miri)))]
fn ask_for_huge_pages(words: &[AtomicU64]) {
    use rustix::mm::{Advice, madvise};
    let page_bytes = rustix::param::page_size();
    let address = words.as_ptr().cast_mut().cast::<u8>();
    let skipped_bytes = address.align_offset(page_bytes);
    let Some(whole_bytes) = size_of_val(words).checked_sub(skipped_bytes) else {
        return;
    };
    let whole_bytes = whole_bytes / page_bytes * page_bytes;
    // SAFETY: the range lies within the allocation of `words`: it begins at its first page boundary, and both its begin
    // and its length are cut to whole pages. This advice changes which pages hold the memory, never what it holds, so it
    // may be given for memory that is in use.
    let _ = unsafe {
        madvise(
            address.add(skipped_bytes).cast(),
            whole_bytes,
            Advice::LinuxHugepage,
        )
    };
}

#[cfg(not(all(target_os = "linux", not(loom), not(miri))))]
fn ask_for_huge_pages(_words: &[AtomicU64]) {}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::sync::atomic::Ordering::Relaxed;

    use super::*;

    #[test]
    fn lines_begin_at_cache_lines_are_empty_and_do_not_overlap() {
        for pages in [Pages::Huge, Pages::System] {
            for count in [1, 2, 1_000, HUGE_BYTES_MIN / 64 + 3] {
                let lines = Lines::new(count, pages).expect("it fits");
                assert_eq!(lines.size_bytes(), count as u64 * 64);
                for index in 0..count {
                    let line = lines.line(index);
                    assert_eq!(line.as_ptr().addr() % 64, 0);
                    assert!(line.iter().all(|word| word.load(Relaxed) == 0));
                    line[0].store(1, Relaxed);
                    line[7].store(1, Relaxed);
                    lines.prefetch(index);
                }
            }
        }
    }

    #[test]
    fn keys_reach_every_line_and_no_other() {
        let lines = Lines::new(10, Pages::System).expect("it fits");
        let mut counts = [0; 10];
        let mut random = fastrand::Rng::with_seed(2);
        for _ in 0..10_000 {
            counts[lines.index_of(random.u128(..))] += 1;
        }
        assert!(
            counts.iter().all(|count| (800..1_200).contains(count)),
            "{counts:?}"
        );
        assert_eq!(lines.index_of(u128::MAX), 9);
        assert_eq!(lines.index_of(u128::MAX << 64), 0);
    }
}
