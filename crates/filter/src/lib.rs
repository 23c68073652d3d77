//! A sharded concurrent Bloom filter over 128-bit keys: layout, sizing and exactly-once insertion.
//!
//! A key touches one cache line: its low half chooses the line, its high half one bit in each of the line's eight
//! words. Keys must be hashes: uniform in their low 120 bits. The top 8 bits may be anything, such as the number of a
//! partition.
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
mod line;
pub mod sizing;

pub use blocked::{Filter, FilterError, SIZE_BYTES_MAX};
