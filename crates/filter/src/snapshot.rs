//! Snapshots: a growing filter as a stream of bytes, which is whole or refused.
//!
//! All numbers are little-endian. A header of 64 bytes: the magic `BLMFILTR`, the version, what kind of stage follows,
//! the expected count, the rate, how it grows, the keys entered, the lengths of label and table. Then the label, then the
//! table (for each slice: its planned keys, its rate, the keys at which it is full, its lines, its keys; for an exact set
//! its keys alone), then the checksum of all that, xxh3-64. Then the lines, or the exact keys, and their checksum. The
//! lock bit of a line is never among them.
//!
//! The checksum of the header comes before the content that it describes, so no damaged length of that is ever believed;
//! those of label and table are bounded by 64 KiB each.

use std::{
    io::{self, ErrorKind, Read, Write},
    sync::Arc,
};

use thiserror::Error;
use xxhash_rust::xxh3::Xxh3Default;

use crate::{
    Exact, Filter, FilterError, GrowingFilter, GrowthConfig, Pages, SIZE_BYTES_MAX,
    blocked::Added,
    chain::Slice,
    exact::ExactKeys,
    growing::Stage,
    line::{self, WORDS},
    lines::Lines,
    sizing::LINE_BYTES,
};

const MAGIC: [u8; 8] = *b"BLMFILTR";

/// The version that is written, and the only one that is read. Which bits a key sets is part of the format: a change of
/// that is another version, or loaded filters would answer "no" wrongly.
pub const SNAPSHOT_VERSION: u32 = 1;

const HEADER_BYTES: usize = 64;
/// Bytes that are read or written at a time; a whole number of lines and of keys.
const BLOCK_BYTES: usize = 256 << 10;
/// The longest label, in bytes.
pub const LABEL_BYTES_MAX: usize = 64 << 10;
/// More slices than any filter within [`SIZE_BYTES_MAX`] has.
const SLICES_MAX: usize = 256;
/// Numbers that describe a slice.
const SLICE_NUMBERS: usize = 5;

/// Why a snapshot is refused.
#[derive(Debug, Error)]
pub enum SnapshotError {
    /// It cannot be read.
    #[error("cannot be read: {0}")]
    Io(#[from] io::Error),
    /// It does not begin as snapshots do.
    #[error("is no snapshot of a filter: it does not begin with \"BLMFILTR\"")]
    NotASnapshot,
    /// It was written by another version of this program.
    #[error("has version {0} of the format; this program reads version {SNAPSHOT_VERSION}")]
    Version(u32),
    /// It ends too early.
    #[error("is cut short: it ends before all that its header speaks of")]
    Cut,
    /// A checksum is not right, or something follows the end.
    #[error("is damaged: {0}")]
    Damaged(&'static str),
    /// The memory it needs cannot be had.
    #[error("cannot be loaded: {0}")]
    Memory(#[from] FilterError),
}

/// What a snapshot is made of.
enum Copied {
    Exact(Vec<u128>),
    Slices(Vec<Arc<Slice>>),
}

impl GrowingFilter {
    /// Writes a snapshot. `label` comes back from [`GrowingFilter::load`]: what the application has to know to say
    /// whether the snapshot is of the state at hand.
    ///
    /// Every key that was inserted before the call is in it; of those inserted meanwhile any number. Nobody waits for it: the
    /// keys of an exact set are copied first, the slices of a filter are read as they are.
    ///
    /// # Errors
    ///
    /// Fails as `to` does, and when the label is over [`LABEL_BYTES_MAX`].
    pub fn save(&self, label: &[u8], to: &mut dyn Write) -> io::Result<()> {
        if label.len() > LABEL_BYTES_MAX {
            return Err(io::Error::new(
                ErrorKind::InvalidInput,
                "the label of a snapshot is over 64 KiB",
            ));
        }
        let mut to = Summed::new(to);
        match self.copy() {
            Copied::Exact(all) => {
                self.save_header(label, 0, &[all.len() as u64], &mut to)?;
                for keys in all.chunks(BLOCK_BYTES / size_of::<u128>()) {
                    let bytes: Vec<u8> = keys.iter().flat_map(|key| key.to_le_bytes()).collect();
                    to.write(&bytes)?;
                }
            }
            Copied::Slices(slices) => {
                let table: Vec<u64> = slices.iter().flat_map(|slice| slice.numbers()).collect();
                self.save_header(label, 1, &table, &mut to)?;
                for slice in &slices {
                    save_lines(slice.filter.lines(), &mut to)?;
                }
            }
        }
        to.end()
    }

    /// Takes what a snapshot is made of, so that nobody waits while that is written.
    fn copy(&self) -> Copied {
        match &*self.read().stage {
            Stage::Exact(keys) => {
                let mut all = Vec::new();
                keys.for_each(|key| all.push(key));
                Copied::Exact(all)
            }
            Stage::Slices(slices) => Copied::Slices(slices.clone()),
        }
    }

    fn save_header(
        &self,
        label: &[u8],
        kind: u32,
        table: &[u64],
        to: &mut Summed<&mut dyn Write>,
    ) -> io::Result<()> {
        let config = self.config();
        let exact = match config.exact {
            Exact::Small => 0_u8,
            Exact::Always => 1,
            Exact::Never => 2,
        };
        let mut header = Vec::with_capacity(HEADER_BYTES);
        header.extend(MAGIC);
        header.extend(SNAPSHOT_VERSION.to_le_bytes());
        header.extend(kind.to_le_bytes());
        header.extend(config.expected_count.to_le_bytes());
        header.extend(config.rate.to_bits().to_le_bytes());
        header.extend([
            exact,
            u8::from(config.grows),
            u8::from(config.pages == Pages::Huge),
            0,
        ]);
        header.extend(length(label.len()).to_le_bytes());
        header.extend(self.entered_count().to_le_bytes());
        header.extend(length(table.len()).to_le_bytes());
        header.resize(HEADER_BYTES, 0);
        to.write(&header)?;
        to.write(label)?;
        let table: Vec<u8> = table
            .iter()
            .flat_map(|number| number.to_le_bytes())
            .collect();
        to.write(&table)?;
        to.end()
    }

    /// Reads a snapshot to its end, and returns its label and the filter.
    ///
    /// # Errors
    ///
    /// Fails as `from` does, when the bytes are not a whole snapshot of [`SNAPSHOT_VERSION`], and when the memory cannot
    /// be had.
    pub fn load(from: &mut dyn Read) -> Result<(Vec<u8>, Self), SnapshotError> {
        let mut from = Summed::new(from);
        let header = Header::load(&mut from)?;
        let filter = Self::load_content(&header, &mut from)?;
        Ok((header.label, filter))
    }

    /// Reads a snapshot to its end if `is_wanted` says so of its label; otherwise returns `None` after the header.
    ///
    /// # Errors
    ///
    /// Fails as [`GrowingFilter::load`] does.
    pub fn load_if(
        from: &mut dyn Read,
        is_wanted: impl FnOnce(&[u8]) -> bool,
    ) -> Result<Option<Self>, SnapshotError> {
        let mut from = Summed::new(from);
        let header = Header::load(&mut from)?;
        if !is_wanted(&header.label) {
            return Ok(None);
        }
        Self::load_content(&header, &mut from).map(Some)
    }

    fn load_content(
        header: &Header,
        from: &mut Summed<&mut dyn Read>,
    ) -> Result<Self, SnapshotError> {
        let stage = if header.is_chain {
            let mut slices = Vec::new();
            for numbers in header.table.chunks_exact(SLICE_NUMBERS) {
                slices.push(Arc::new(load_slice(numbers, header.config.pages, from)?));
            }
            Stage::Slices(slices)
        } else {
            Stage::Exact(load_keys(header.table[0], from)?)
        };
        from.check("a checksum of its content is not right")?;
        if from.inner.read(&mut [0])? > 0 {
            return Err(SnapshotError::Damaged("something follows its end"));
        }
        Ok(Self::from_parts(header.config, stage, header.entered_count))
    }
}

impl Slice {
    /// Returns what describes the slice in the table.
    fn numbers(&self) -> [u64; SLICE_NUMBERS] {
        [
            self.filter.expected_count(),
            self.filter.target_rate().to_bits(),
            self.full_count,
            self.filter.lines().count() as u64,
            self.filter.item_count(),
        ]
    }
}

/// What comes before the content.
struct Header {
    config: GrowthConfig,
    is_chain: bool,
    entered_count: u64,
    label: Vec<u8>,
    table: Vec<u64>,
}

impl Header {
    fn load(from: &mut Summed<&mut dyn Read>) -> Result<Self, SnapshotError> {
        let mut bytes = [0; HEADER_BYTES];
        // Whatever is shorter than the magic is some other file.
        from.read(&mut bytes[..MAGIC.len()])
            .map_err(|error| match error {
                SnapshotError::Cut => SnapshotError::NotASnapshot,
                other => other,
            })?;
        if bytes[..MAGIC.len()] != MAGIC {
            return Err(SnapshotError::NotASnapshot);
        }
        from.read(&mut bytes[MAGIC.len()..])?;
        let version = number_32(&bytes, 8);
        if version != SNAPSHOT_VERSION {
            return Err(SnapshotError::Version(version));
        }
        let damaged = SnapshotError::Damaged("its header holds what no snapshot has");
        let (label_bytes, numbers_count) = (number_32(&bytes, 36), number_32(&bytes, 48));
        let (label_bytes, numbers_count) = (label_bytes as usize, numbers_count as usize);
        if label_bytes > LABEL_BYTES_MAX || numbers_count > SLICES_MAX * SLICE_NUMBERS {
            return Err(damaged);
        }
        let mut label = vec![0; label_bytes];
        from.read(&mut label)?;
        let mut table = vec![0; numbers_count * size_of::<u64>()];
        from.read(&mut table)?;
        from.check("the checksum of its header is not right")?;
        let table: Vec<u64> = (0..numbers_count)
            .map(|index| number_64(&table, index * 8))
            .collect();
        let is_chain = match number_32(&bytes, 12) {
            0 => false,
            1 => true,
            _ => return Err(damaged),
        };
        let is_table_whole = if is_chain {
            !table.is_empty() && table.len().is_multiple_of(SLICE_NUMBERS)
        } else {
            table.len() == 1
        };
        if !is_table_whole {
            return Err(damaged);
        }
        let config = GrowthConfig {
            expected_count: number_64(&bytes, 16),
            rate: f64::from_bits(number_64(&bytes, 24)),
            exact: match bytes[32] {
                0 => Exact::Small,
                1 => Exact::Always,
                2 => Exact::Never,
                _ => return Err(damaged),
            },
            grows: bytes[33] == 1,
            pages: if bytes[34] == 1 {
                Pages::Huge
            } else {
                Pages::System
            },
        };
        // What no filter can be made for was not written by one, whatever the checksum says.
        Filter::lines_for(config.expected_count, config.rate).map_err(|_| damaged)?;
        Ok(Self {
            config,
            is_chain,
            entered_count: number_64(&bytes, 40),
            label,
            table,
        })
    }
}

fn save_lines(lines: &Lines, to: &mut Summed<&mut dyn Write>) -> io::Result<()> {
    let mut block = Vec::with_capacity(BLOCK_BYTES);
    for index in 0..lines.count() {
        let line = lines.line(index);
        for word in 0..WORDS {
            block.extend(line::without_lock(line, word).to_le_bytes());
        }
        if block.len() == BLOCK_BYTES {
            to.write(&block)?;
            block.clear();
        }
    }
    to.write(&block)
}

fn load_slice(
    numbers: &[u64],
    pages: Pages,
    from: &mut Summed<&mut dyn Read>,
) -> Result<Slice, SnapshotError> {
    let &[expected_count, rate, full_count, lines_count, item_count] = numbers else {
        return Err(SnapshotError::Damaged("its table is not whole"));
    };
    let lines_count = usize::try_from(lines_count)
        .ok()
        .filter(|count| (1..=SIZE_BYTES_MAX / LINE_BYTES).contains(&(*count as u64)))
        .ok_or(SnapshotError::Damaged("it has a size that no filter has"))?;
    let lines = Lines::new(lines_count, pages)?;
    let mut block = vec![0; BLOCK_BYTES];
    let mut bit_count = 0;
    let mut index = 0;
    while index < lines_count {
        let count = (lines_count - index).min(BLOCK_BYTES / size_of::<line::Line>());
        let block = &mut block[..count * size_of::<line::Line>()];
        from.read(block)?;
        for (offset, bytes) in block.chunks_exact(size_of::<line::Line>()).enumerate() {
            bit_count += line::restore(lines.line(index + offset), bytes);
        }
        index += count;
    }
    let rate = f64::from_bits(rate);
    // Each key set at least one bit.
    if item_count > bit_count || full_count == 0 || Filter::lines_for(expected_count, rate).is_err()
    {
        return Err(SnapshotError::Damaged("its table holds what no filter has"));
    }
    let filter = Filter::from_parts(lines, expected_count, rate);
    filter.count(
        0,
        Added {
            item_count,
            bit_count,
        },
    );
    Ok(Slice { filter, full_count })
}

fn load_keys(count: u64, from: &mut Summed<&mut dyn Read>) -> Result<ExactKeys, SnapshotError> {
    let keys = ExactKeys::new();
    let mut block = vec![0; BLOCK_BYTES];
    let mut left_count = count;
    while left_count > 0 {
        let keys_count = usize::try_from(left_count)
            .unwrap_or(usize::MAX)
            .min(BLOCK_BYTES / size_of::<u128>());
        let block = &mut block[..keys_count * size_of::<u128>()];
        from.read(block)?;
        for key in block.as_chunks().0 {
            keys.insert(u128::from_le_bytes(*key));
        }
        left_count -= keys_count as u64;
    }
    Ok(keys)
}

/// A stream, and the checksum of what went through it since the last one.
struct Summed<T> {
    inner: T,
    sum: Xxh3Default,
}

impl<T> Summed<T> {
    fn new(inner: T) -> Self {
        Self {
            inner,
            sum: Xxh3Default::new(),
        }
    }
}

impl Summed<&mut dyn Write> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.sum.update(bytes);
        self.inner.write_all(bytes)
    }

    /// Writes the checksum and begins the next.
    fn end(&mut self) -> io::Result<()> {
        let sum = self.sum.digest();
        self.sum.reset();
        self.inner.write_all(&sum.to_le_bytes())
    }
}

impl Summed<&mut dyn Read> {
    fn read(&mut self, bytes: &mut [u8]) -> Result<(), SnapshotError> {
        self.read_unsummed(bytes)?;
        self.sum.update(bytes);
        Ok(())
    }

    /// Reads the checksum, compares it, and begins the next.
    fn check(&mut self, otherwise: &'static str) -> Result<(), SnapshotError> {
        let mut stored = [0; 8];
        self.read_unsummed(&mut stored)?;
        let sum = self.sum.digest();
        self.sum.reset();
        if u64::from_le_bytes(stored) == sum {
            Ok(())
        } else {
            Err(SnapshotError::Damaged(otherwise))
        }
    }

    fn read_unsummed(&mut self, bytes: &mut [u8]) -> Result<(), SnapshotError> {
        self.inner
            .read_exact(bytes)
            .map_err(|error| match error.kind() {
                ErrorKind::UnexpectedEof => SnapshotError::Cut,
                _ => SnapshotError::Io(error),
            })
    }
}

/// Returns a length that is bounded well below 2^32.
fn length(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

fn number_32(bytes: &[u8], at: usize) -> u32 {
    bytes[at..]
        .first_chunk()
        .map_or(0, |bytes| u32::from_le_bytes(*bytes))
}

fn number_64(bytes: &[u8], at: usize) -> u64 {
    bytes[at..]
        .first_chunk()
        .map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

#[cfg(all(test, not(loom)))]
#[path = "snapshot_test.rs"]
mod tests;
