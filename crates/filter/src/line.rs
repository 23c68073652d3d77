//! The line: 64 bytes that hold one bit a word for each of their keys, and the lock that makes insertion atomic.

#[cfg(loom)]
pub(crate) use loom::sync::atomic::AtomicU64;
#[cfg(not(loom))]
pub(crate) use std::sync::atomic::AtomicU64;

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

/// The words of a line, and so the bits of a key.
pub(crate) const WORDS: usize = 8;

/// One line. The top bit of word 0 is the lock; every other bit belongs to keys and, once set, stays set.
pub(crate) type Line = [AtomicU64; WORDS];

/// The lock: whoever turns it from 0 to 1 is the one writer of the line until it stores word 0 without it.
const LOCK: u64 = 1 << 63;

/// Bits of word 0 that belong to keys.
const WORD_0_BITS: u64 = 63;

/// Tries the lock this often before giving the processor to a holder that may have lost it.
#[cfg(not(loom))]
const SPINS_MAX: u32 = 64;

/// The bits of one key, one a word, as the places that its mixed high half draws.
#[derive(Clone, Copy, Default)]
pub(crate) struct Pattern(u64);

impl Pattern {
    /// Draws the bits of a key from its high half.
    pub(crate) const fn of(key: u128) -> Self {
        Self(mix((key >> 64) as u64))
    }

    /// Returns the place of the key's bit in a word, 0 to 63: six bits of the hash for each word but the first.
    #[inline]
    const fn place(self, word: usize) -> u64 {
        if word == 0 {
            // 22 of the 64 bits are left for one of 63 places; the bias is below 2^-16.
            ((self.0 >> 42) * WORD_0_BITS) >> 22
        } else {
            (self.0 >> (6 * (word - 1))) & 63
        }
    }

    /// Returns the key's bit in a word.
    #[inline]
    const fn bit(self, word: usize) -> u64 {
        1 << self.place(word)
    }
}

/// Spreads every bit over all others (the finalizer of `MurmurHash3`), since the top eight of a key may be constant.
const fn mix(mut bits: u64) -> u64 {
    bits ^= bits >> 33;
    bits = bits.wrapping_mul(0xff51_afd7_ed55_8ccd);
    bits ^= bits >> 33;
    bits = bits.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    bits ^ (bits >> 33)
}

/// Returns whether every bit of the key is set. Takes no lock: bits are never taken back.
#[inline]
pub(crate) fn contains(line: &Line, pattern: Pattern) -> bool {
    // All eight words without a branch: in a cache line that is there, a mispredicted one would cost more than they do.
    let mut all = 1;
    for (index, word) in line.iter().enumerate() {
        all &= word.load(Relaxed) >> pattern.place(index);
    }
    all & 1 == 1
}

/// Sets the bits of the key and returns how many were not set: 0 says that the line had the key already.
///
/// Of all calls with one key, under any interleaving, at most one returns more than 0: the bits of a key are looked at
/// and set under the lock, so whoever comes second finds them set. A call that finds all bits set without the lock may
/// overtake the one that is setting them; that one still returns more than 0.
#[inline]
pub(crate) fn insert(line: &Line, pattern: Pattern) -> u64 {
    if contains(line, pattern) {
        return 0;
    }
    let first_word = lock(line);
    let mut had_count = first_word >> pattern.place(0) & 1;
    for (index, word) in line.iter().enumerate().skip(1) {
        // Only the holder of the lock writes these words, so load and store need not be one step.
        let old = word.load(Relaxed);
        had_count += old >> pattern.place(index) & 1;
        word.store(old | pattern.bit(index), Relaxed);
    }
    // Sets the bit of word 0 and gives the lock back. Nobody else can have changed the word meanwhile: those who wait
    // only read it.
    line[0].store(first_word | pattern.bit(0), Release);
    WORDS as u64 - had_count
}

/// Returns word `index` of a line without the lock, for a copy of it.
pub(crate) fn without_lock(line: &Line, index: usize) -> u64 {
    let word = line[index].load(Relaxed);
    if index == 0 { word & !LOCK } else { word }
}

/// Sets an empty line to a copy of one, 64 little-endian bytes, and returns how many bits that sets.
pub(crate) fn restore(line: &Line, copy: &[u8]) -> u64 {
    let mut bit_count = 0;
    for (index, (word, bytes)) in line.iter().zip(copy.as_chunks::<8>().0).enumerate() {
        let mut bits = u64::from_le_bytes(*bytes);
        if index == 0 {
            bits &= !LOCK;
        }
        word.store(bits, Relaxed);
        bit_count += u64::from(bits.count_ones());
    }
    bit_count
}

/// Takes the lock and returns word 0 without it.
fn lock(line: &Line) -> u64 {
    let mut spins_count = 0;
    loop {
        let word = line[0].load(Relaxed);
        if word & LOCK == 0
            && line[0]
                .compare_exchange_weak(word, word | LOCK, Acquire, Relaxed)
                .is_ok()
        {
            return word;
        }
        spins_count += 1;
        pause(spins_count);
    }
}

#[cfg(not(loom))]
pub(crate) fn pause(spins_count: u32) {
    if spins_count < SPINS_MAX {
        std::hint::spin_loop();
    } else {
        std::thread::yield_now();
    }
}

#[cfg(loom)]
pub(crate) fn pause(_spins_count: u32) {
    loom::thread::yield_now();
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn no_key_has_the_lock_bit_and_every_other_place_is_used() {
        let mut places = [0_u64; WORDS];
        let mut random = fastrand::Rng::with_seed(1);
        for _ in 0..10_000 {
            // A constant top byte, as keys of one partition have.
            let pattern = Pattern::of(random.u128(..) >> 8);
            for (word, all) in places.iter_mut().enumerate() {
                *all |= pattern.bit(word);
            }
        }
        assert_eq!(places[0], !LOCK);
        assert_eq!(places[1..], [u64::MAX; 7]);
    }

    #[test]
    fn insertion_counts_the_bits_it_sets_and_leaves_the_lock_free() {
        let line = Line::default();
        let pattern = Pattern::of(7 << 64);
        assert!(!contains(&line, pattern));
        assert_eq!(insert(&line, pattern), 8);
        assert!(contains(&line, pattern));
        assert_eq!(insert(&line, pattern), 0);
        assert_eq!(line[0].load(Relaxed) & LOCK, 0);
    }
}

/// Run by `RUSTFLAGS="--cfg loom" cargo test -p filter --lib`.
#[cfg(all(test, loom))]
mod interleavings {
    use loom::{sync::Arc, thread};

    use super::*;

    /// Two keys that share bits: the same place in words 1 to 6, other places in words 0 and 7.
    fn overlapping() -> (Pattern, Pattern) {
        (Pattern(0), Pattern(1 << 63 | 1 << 36))
    }

    fn empty_line() -> Arc<Line> {
        Arc::new(std::array::from_fn(|_| AtomicU64::new(0)))
    }

    #[test]
    fn one_of_two_threads_is_told_that_a_key_is_new() {
        loom::model(|| {
            let line = empty_line();
            let (pattern, _) = overlapping();
            let there = Arc::clone(&line);
            let other = thread::spawn(move || insert(&there, pattern));
            let here_count = insert(&line, pattern);
            let there_count = other.join().expect("the other thread ends");
            assert_eq!(here_count.min(there_count), 0);
            assert_eq!(here_count.max(there_count), 8);
            assert!(contains(&line, pattern));
        });
    }

    #[test]
    fn keys_that_share_bits_lose_none() {
        loom::model(|| {
            let line = empty_line();
            let (pattern, overlapping) = overlapping();
            let there = Arc::clone(&line);
            let other = thread::spawn(move || insert(&there, overlapping));
            let here_count = insert(&line, pattern);
            let there_count = other.join().expect("the other thread ends");
            assert_eq!(
                (here_count.min(there_count), here_count.max(there_count)),
                (2, 8)
            );
            assert!(contains(&line, pattern) && contains(&line, overlapping));
        });
    }
}
