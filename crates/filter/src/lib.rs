//! Concurrent sets of 128-bit keys in little memory: a sharded Bloom filter that grows, and a cache of recent keys.
//!
//! - [`Filter`] has a fixed size. A key touches one cache line of it: its low half chooses the line, its high half one bit
//!   in each of the line's eight words. A lock in the line makes "new" an answer that each key gets at most once.
//! - [`GrowingFilter`] begins as an exact set, turns into a filter while that is still small, and grows by slices; it can be
//!   saved and loaded.
//! - [`RecentKeys`] answers exactly for the keys that were used last.
//!
//! Keys must be hashes: uniform in their low 120 bits. The top 8 bits may be anything, such as the number of a partition.
//!
//! No key can be taken out again: its bits may belong to others too. A filter that counts its bits could (at four times the
//! memory), but then a key that was never in it could be taken out and others with it. Here a filter is made anew from the
//! keys that remain, which takes less than two seconds of processor time for 50 million.
//!
//! ```
//! # fn main() -> Result<(), filter::FilterError> {
//! let filter = filter::Filter::with_rate(1_000_000, 0.01)?;
//! let key = 0x00c0_ffee_0123_4567_89ab_cdef_0f1e_2d3c;
//! assert!(filter.check_and_insert(key), "the first to offer a key is told that it is new");
//! assert!(!filter.check_and_insert(key), "nobody else is");
//! # Ok(())
//! # }
//! ```

mod blocked;
mod chain;
mod exact;
mod growing;
mod key_hash;
mod line;
mod lines;
mod recent;
pub mod sizing;
mod snapshot;

pub use blocked::{Filter, FilterError, SIZE_BYTES_MAX};
pub use growing::{Answer, Exact, FilterStats, GrowingFilter, GrowthConfig, Reader};
pub use key_hash::{BuildKeyHasher, KeyHasher};
pub use lines::Pages;
pub use recent::{RecentKeys, RecentReader};
pub use snapshot::{LABEL_BYTES_MAX, SNAPSHOT_VERSION, SnapshotError};
