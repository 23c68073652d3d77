//! What is compared: ways to keep a set of keys, each filled and asked in pages of 64 keys.

use std::hint::black_box;

use fastbloom::{AtomicBloomFilter, BloomFilter};
use filter::{Filter, Pages};
use memmap2::MmapMut;
use prefetch_index::prefetch_index;

/// Keys asked for at a time: about the links of a page.
pub(crate) const BATCH: usize = 64;

/// Bytes of a cache line.
pub(crate) const LINE_BYTES: usize = 64;

/// A way to keep a set of keys.
pub(crate) trait Subject {
    /// Returns the memory of the set in bytes.
    fn size_bytes(&self) -> u64;

    /// Inserts at most [`BATCH`] keys, and returns how many were new.
    fn insert(&mut self, keys: &[u128]) -> u64;

    /// Returns how many of at most [`BATCH`] keys are said to be in the set.
    fn count_present(&self, keys: &[u128]) -> u64;
}

/// What can be built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Our filter.
    Ours {
        /// Whether it is asked in batches, else key by key.
        is_batched: bool,
        /// Whether it asks for huge pages.
        is_huge: bool,
    },
    /// fastbloom's filter for one thread.
    Fastbloom,
    /// The same, taking half a key for its hash, so that it need not hash the key.
    FastbloomHashed,
    /// fastbloom's filter for many threads.
    FastbloomAtomic,
    /// Lines of memory that are read and written without a thought: the hardware's limit.
    Raw {
        /// Whether it asks for huge pages.
        is_huge: bool,
    },
}

impl Kind {
    /// All of them, in the order of the table.
    pub(crate) const ALL: [Self; 9] = [
        Self::Ours {
            is_batched: true,
            is_huge: true,
        },
        Self::Ours {
            is_batched: true,
            is_huge: false,
        },
        Self::Ours {
            is_batched: false,
            is_huge: true,
        },
        Self::Ours {
            is_batched: false,
            is_huge: false,
        },
        Self::Fastbloom,
        Self::FastbloomHashed,
        Self::FastbloomAtomic,
        Self::Raw { is_huge: true },
        Self::Raw { is_huge: false },
    ];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Ours {
                is_batched: true,
                is_huge: true,
            } => "ours, batches of 64, huge pages",
            Self::Ours {
                is_batched: true,
                is_huge: false,
            } => "ours, batches of 64",
            Self::Ours {
                is_batched: false,
                is_huge: true,
            } => "ours, key by key, huge pages",
            Self::Ours {
                is_batched: false,
                is_huge: false,
            } => "ours, key by key",
            Self::Fastbloom => "fastbloom",
            Self::FastbloomHashed => "fastbloom, keys taken for hashes",
            Self::FastbloomAtomic => "fastbloom, atomic",
            Self::Raw { is_huge: true } => "raw prefetched line, huge pages",
            Self::Raw { is_huge: false } => "raw prefetched line",
        }
    }

    /// Returns whether it is a filter, whose answers can be judged.
    pub(crate) const fn is_filter(self) -> bool {
        !matches!(self, Self::Raw { .. })
    }

    /// Makes an empty set for a number of keys at a false-positive rate.
    pub(crate) fn make(self, keys_count: u64, rate: f64) -> Box<dyn Subject> {
        match self {
            Self::Ours {
                is_batched,
                is_huge,
            } => {
                let filter = ours(keys_count, rate, is_huge);
                if is_batched {
                    Box::new(Batched(filter))
                } else {
                    Box::new(OneByOne(filter))
                }
            }
            Self::Fastbloom => Box::new(plain(keys_count, rate)),
            Self::FastbloomHashed => Box::new(Hashed(plain(keys_count, rate))),
            Self::FastbloomAtomic => Box::new(theirs(keys_count, rate)),
            Self::Raw { is_huge } => Box::new(Raw::new(keys_count, rate, is_huge)),
        }
    }
}

/// Makes our filter.
pub(crate) fn ours(keys_count: u64, rate: f64, is_huge: bool) -> Filter {
    let pages = if is_huge { Pages::Huge } else { Pages::System };
    Filter::with_pages(keys_count, rate, pages).expect("a size that fits in memory")
}

/// Makes fastbloom's filter for one thread, with its default hasher (SipHash-1-3).
fn plain(keys_count: u64, rate: f64) -> BloomFilter {
    BloomFilter::with_false_pos(rate)
        .seed(&1)
        .expected_items(usize::try_from(keys_count).expect("64-bit"))
}

/// Makes fastbloom's filter for many threads, with its default hasher (SipHash-1-3).
pub(crate) fn theirs(keys_count: u64, rate: f64) -> AtomicBloomFilter {
    AtomicBloomFilter::with_false_pos(rate)
        .seed(&1)
        .expected_items(usize::try_from(keys_count).expect("64-bit"))
}

struct Batched(Filter);

impl Subject for Batched {
    fn size_bytes(&self) -> u64 {
        self.0.size_bytes()
    }

    fn insert(&mut self, keys: &[u128]) -> u64 {
        let mut answers = [false; BATCH];
        let answers = &mut answers[..keys.len()];
        self.0.check_and_insert_batch(keys, answers);
        answers.iter().map(|is_new| u64::from(*is_new)).sum()
    }

    fn count_present(&self, keys: &[u128]) -> u64 {
        let mut answers = [false; BATCH];
        let answers = &mut answers[..keys.len()];
        self.0.contains_batch(keys, answers);
        answers
            .iter()
            .map(|is_present| u64::from(*is_present))
            .sum()
    }
}

struct OneByOne(Filter);

impl Subject for OneByOne {
    fn size_bytes(&self) -> u64 {
        self.0.size_bytes()
    }

    fn insert(&mut self, keys: &[u128]) -> u64 {
        keys.iter()
            .map(|key| u64::from(self.0.check_and_insert(*key)))
            .sum()
    }

    fn count_present(&self, keys: &[u128]) -> u64 {
        keys.iter()
            .map(|key| u64::from(self.0.contains(*key)))
            .sum()
    }
}

impl Subject for BloomFilter {
    fn size_bytes(&self) -> u64 {
        self.num_bits() as u64 / 8
    }

    fn insert(&mut self, keys: &[u128]) -> u64 {
        keys.iter()
            .map(|key| u64::from(!Self::insert(self, key)))
            .sum()
    }

    fn count_present(&self, keys: &[u128]) -> u64 {
        keys.iter().map(|key| u64::from(self.contains(key))).sum()
    }
}

impl Subject for AtomicBloomFilter {
    fn size_bytes(&self) -> u64 {
        self.num_bits() as u64 / 8
    }

    fn insert(&mut self, keys: &[u128]) -> u64 {
        keys.iter()
            .map(|key| u64::from(!Self::insert(self, key)))
            .sum()
    }

    fn count_present(&self, keys: &[u128]) -> u64 {
        keys.iter().map(|key| u64::from(self.contains(key))).sum()
    }
}

struct Hashed(BloomFilter);

#[expect(clippy::cast_possible_truncation, reason = "half a key is wanted")]
impl Subject for Hashed {
    fn size_bytes(&self) -> u64 {
        self.0.num_bits() as u64 / 8
    }

    fn insert(&mut self, keys: &[u128]) -> u64 {
        keys.iter()
            .map(|key| u64::from(!self.0.insert_hash(*key as u64)))
            .sum()
    }

    fn count_present(&self, keys: &[u128]) -> u64 {
        keys.iter()
            .map(|key| u64::from(self.0.contains_hash(*key as u64)))
            .sum()
    }
}

/// As many lines as our filter has. Of a batch, each key's line is asked for first, then each is read whole, and for an
/// insertion written back.
struct Raw {
    memory: MmapMut,
    lines_count: u64,
}

impl Raw {
    fn new(keys_count: u64, rate: f64, is_huge: bool) -> Self {
        let lines_count = filter::sizing::lines_for(keys_count, rate);
        let bytes = usize::try_from(lines_count).expect("64-bit") * LINE_BYTES;
        let memory = MmapMut::map_anon(bytes).expect("a size that fits in memory");
        #[cfg(target_os = "linux")]
        if is_huge {
            // Without huge pages the row is as the one below it.
            let _ = memory.advise(memmap2::Advice::HugePage);
        }
        #[cfg(not(target_os = "linux"))]
        let _ = is_huge;
        Self {
            memory,
            lines_count,
        }
    }

    fn lines(&self) -> &[[u8; LINE_BYTES]] {
        self.memory.as_chunks().0
    }

    /// Asks for the line of each key, and returns where they are.
    fn prefetch(&self, keys: &[u128]) -> [usize; BATCH] {
        let lines = self.lines();
        let mut places = [0; BATCH];
        for (place, key) in places.iter_mut().zip(keys) {
            *place = place_of(*key, self.lines_count);
            prefetch_index(lines, *place);
        }
        places
    }
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "the low half is wanted, and the index is below the number of lines"
)]
fn place_of(key: u128, lines_count: u64) -> usize {
    ((u128::from(key as u64) * u128::from(lines_count)) >> 64) as usize
}

impl Subject for Raw {
    fn size_bytes(&self) -> u64 {
        self.memory.len() as u64
    }

    fn insert(&mut self, keys: &[u128]) -> u64 {
        let places = self.prefetch(keys);
        let lines: &mut [[u8; LINE_BYTES]] = self.memory.as_chunks_mut().0;
        for (place, key) in places.iter().zip(keys) {
            let bit = 1_u64 << ((key >> 64) & 63);
            for word in lines[*place].as_chunks_mut().0 {
                *word = (u64::from_ne_bytes(*word) | bit).to_ne_bytes();
            }
        }
        0
    }

    fn count_present(&self, keys: &[u128]) -> u64 {
        let places = self.prefetch(keys);
        let lines = self.lines();
        let mut sum = 0;
        for place in &places[..keys.len()] {
            for word in lines[*place].as_chunks().0 {
                sum ^= u64::from_ne_bytes(*word);
            }
        }
        black_box(sum);
        0
    }
}
