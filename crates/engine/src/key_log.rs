//! The key log: `keys-N.log` in the data folder, the keys committed since a snapshot of the filter, in the order of their
//! notes. A start reads them into the snapshot, so it need not read all keys of the store.
//!
//! A segment begins at the sequence in its name. All numbers are little-endian. Header: the magic, the first sequence, the
//! xxh3-64 of the crawl's id, the xxh3-64 of all that. Then a frame for each commit: its first sequence, the number of keys
//! (u32), the keys of 16 bytes, the xxh3-64 of all that. A frame is handed to the system before the store commits its
//! notes; so after a kill the log reaches at least as far as the store, and what goes beyond is left unread.

use std::{
    fs::{self, File},
    io::{BufReader, ErrorKind, Read, Write as _},
    path::{Path, PathBuf},
};

use types::UrlKey;
use xxhash_rust::xxh3::xxh3_64;

use crate::{EngineError, snapshot::SnapshotLabel};

const MAGIC: [u8; 8] = *b"BLMKEYS1";
const HEADER_BYTES: usize = 32;
/// First sequence and number of keys.
const FRAME_HEAD_BYTES: usize = 12;
const KEY_BYTES: usize = size_of::<u128>();
const SUM_BYTES: usize = 8;
/// More keys than any commit has, so that a damaged number asks for no memory.
const FRAME_KEYS_MAX: u32 = 1 << 20;

/// The segment that is being written.
pub(crate) struct KeyLog {
    path: PathBuf,
    file: File,
    next_sequence: u64,
    frame: Vec<u8>,
}

impl KeyLog {
    /// Begins a segment, in place of what may have the same name.
    pub(crate) fn begin(data: &Path, crawl_id: &str, first: u64) -> Result<Self, EngineError> {
        let path = segment_path(data, first);
        // What is there, perhaps a link to elsewhere, is not written through. If it cannot be removed it cannot be made.
        drop(fs::remove_file(&path));
        let file = File::create_new(&path)
            .and_then(|mut file| file.write_all(&header(crawl_id, first)).map(|()| file))
            .map_err(EngineError::file(&path))?;
        Ok(Self {
            path,
            file,
            next_sequence: first,
            frame: Vec::new(),
        })
    }

    /// Appends the keys of one commit, and hands them to the system.
    pub(crate) fn append(
        &mut self,
        keys: impl ExactSizeIterator<Item = UrlKey>,
    ) -> Result<(), EngineError> {
        if keys.len() == 0 {
            return Ok(());
        }
        let count = u32::try_from(keys.len())
            .ok()
            .filter(|count| *count <= FRAME_KEYS_MAX)
            .expect("a commit has far fewer notes");
        self.frame.clear();
        self.frame.extend(self.next_sequence.to_le_bytes());
        self.frame.extend(count.to_le_bytes());
        for key in keys {
            self.frame.extend(key.as_u128().to_le_bytes());
        }
        let sum = xxh3_64(&self.frame);
        self.frame.extend(sum.to_le_bytes());
        self.file
            .write_all(&self.frame)
            .map_err(EngineError::file(&self.path))?;
        self.next_sequence += u64::from(count);
        Ok(())
    }

    /// Makes what was appended survive a power cut.
    pub(crate) fn sync(&self) -> Result<(), EngineError> {
        self.file.sync_data().map_err(EngineError::file(&self.path))
    }
}

/// Hands the keys with the sequences from `from` on, up to the last one of `wanted`, to `take`, in order.
///
/// # Errors
///
/// Says why they are not all there; some may have been handed out then.
pub(crate) fn read(
    data: &Path,
    wanted: &SnapshotLabel,
    from: u64,
    take: &mut dyn FnMut(&[UrlKey]),
) -> Result<(), String> {
    let to = wanted.next_sequence();
    if from == to {
        return Ok(());
    }
    let starts = segment_starts(data).map_err(|error| format!("cannot be listed: {error}"))?;
    let mut at = from;
    while at < to {
        if starts.binary_search(&at).is_err() {
            return Err(format!(
                "end at URL {at}, but the store has {to}, as after a power cut"
            ));
        }
        // What a segment holds beyond the start of the next was never committed.
        let end = starts
            .iter()
            .copied()
            .find(|&start| start > at)
            .map_or(to, |next| next.min(to));
        let reached = read_segment(&segment_path(data, at), wanted.crawl_id(), at, end, take)
            .map_err(|error| format!("cannot be read: {error}"))?;
        if reached == at {
            return Err(format!("are damaged at URL {at}"));
        }
        at = reached;
    }
    Ok(())
}

/// Removes the segments that begin in `range`; what cannot be removed is of no harm but the room it takes.
pub(crate) fn remove(data: &Path, range: impl std::ops::RangeBounds<u64>) {
    for start in segment_starts(data).unwrap_or_default() {
        if range.contains(&start) {
            drop(fs::remove_file(segment_path(data, start)));
        }
    }
}

/// Reads one segment up to `end`, to a frame that is not whole, or to its own end, and returns where that is.
fn read_segment(
    path: &Path,
    crawl_id: &str,
    first: u64,
    end: u64,
    take: &mut dyn FnMut(&[UrlKey]),
) -> std::io::Result<u64> {
    // To open a pipe would be to wait for somebody to write to it.
    if !fs::metadata(path)?.is_file() {
        return Err(std::io::Error::other("it is no regular file"));
    }
    let mut file = BufReader::new(File::open(path)?);
    let mut bytes = vec![0; HEADER_BYTES];
    let mut at = first;
    if !is_filled(&mut file, &mut bytes)? || bytes != header(crawl_id, first) {
        return Ok(at);
    }
    let mut keys = Vec::new();
    while at < end {
        bytes.resize(FRAME_HEAD_BYTES, 0);
        if !is_filled(&mut file, &mut bytes)? {
            break;
        }
        let (sequence, count) = (number(&bytes[..8]), number(&bytes[8..]));
        let frame_end = at.checked_add(count).filter(|&frame_end| {
            sequence == at && count <= u64::from(FRAME_KEYS_MAX) && frame_end <= end
        });
        let Some(frame_end) = frame_end.filter(|&frame_end| frame_end > at) else {
            break;
        };
        let keys_end = FRAME_HEAD_BYTES + usize::try_from(count).unwrap_or(0) * KEY_BYTES;
        bytes.resize(keys_end + SUM_BYTES, 0);
        if !is_filled(&mut file, &mut bytes[FRAME_HEAD_BYTES..])? {
            break;
        }
        let (framed, sum) = bytes.split_at(keys_end);
        if xxh3_64(framed) != number(sum) {
            break;
        }
        keys.clear();
        keys.extend(framed[FRAME_HEAD_BYTES..].chunks_exact(KEY_BYTES).map(key));
        take(&keys);
        at = frame_end;
    }
    Ok(at)
}

/// Reads until `bytes` is full; `false` at an end before that.
fn is_filled(file: &mut impl Read, bytes: &mut [u8]) -> std::io::Result<bool> {
    match file.read_exact(bytes) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}

fn header(crawl_id: &str, first: u64) -> Vec<u8> {
    let mut header = Vec::with_capacity(HEADER_BYTES);
    header.extend(MAGIC);
    header.extend(first.to_le_bytes());
    header.extend(xxh3_64(crawl_id.as_bytes()).to_le_bytes());
    let sum = xxh3_64(&header);
    header.extend(sum.to_le_bytes());
    header
}

/// Returns at most eight little-endian bytes as a number.
fn number(bytes: &[u8]) -> u64 {
    let mut all = [0; 8];
    all[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(all)
}

fn key(bytes: &[u8]) -> UrlKey {
    let mut all = [0; KEY_BYTES];
    all.copy_from_slice(bytes);
    UrlKey::from_u128(u128::from_le_bytes(all))
}

fn segment_path(data: &Path, first: u64) -> PathBuf {
    data.join(format!("keys-{first}.log"))
}

/// Returns where the segments begin, in order.
fn segment_starts(data: &Path) -> std::io::Result<Vec<u64>> {
    let mut starts = Vec::new();
    for entry in fs::read_dir(data)? {
        let name = entry?.file_name();
        let start: Option<u64> = name
            .to_str()
            .and_then(|name| name.strip_prefix("keys-")?.strip_suffix(".log"))
            .and_then(|start| start.parse().ok());
        starts.extend(start);
    }
    starts.sort_unstable();
    Ok(starts)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a failed set-up fails the test")]

    use std::io::{Seek as _, SeekFrom};

    use super::*;

    const CRAWL: &str = "c";

    fn keys(range: std::ops::Range<u64>) -> Vec<UrlKey> {
        range
            .map(|number| UrlKey::from_u128(u128::from(number) << 70 | u128::from(number)))
            .collect()
    }

    /// Writes a segment with a frame for each of `frames`.
    fn write(data: &Path, first: u64, frames: &[std::ops::Range<u64>]) {
        let mut log = KeyLog::begin(data, CRAWL, first).unwrap();
        for frame in frames {
            log.append(keys(frame.clone()).into_iter()).unwrap();
        }
        log.sync().unwrap();
    }

    fn read_back(data: &Path, from: u64, to: u64) -> Result<Vec<UrlKey>, String> {
        let wanted = SnapshotLabel::new(CRAWL.to_owned(), to, 0);
        let mut all = Vec::new();
        read(data, &wanted, from, &mut |keys| {
            all.extend_from_slice(keys);
        })
        .map(|()| all)
    }

    #[test]
    fn segments_follow_each_other_and_what_was_not_committed_is_left() {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path();
        assert_eq!(read_back(data, 5, 5), Ok(Vec::new()));
        // The run that began at 5 died after it had logged up to 30, of which the store took what is below 20.
        write(data, 5, &[5..6, 6..20, 20..30]);
        write(data, 20, &[20..25, 25..40]);
        assert_eq!(read_back(data, 5, 40), Ok(keys(5..40)));
        assert_eq!(read_back(data, 5, 25), Ok(keys(5..25)));
        assert_eq!(read_back(data, 20, 40), Ok(keys(20..40)));
        // No commit ends there, so the log is of another history.
        assert!(read_back(data, 5, 24).is_err());
        assert!(read_back(data, 5, 41).is_err());
        assert!(read_back(data, 6, 40).is_err());
        remove(data, 20..);
        assert_eq!(read_back(data, 5, 20), Ok(keys(5..20)));
        remove(data, ..20);
        assert!(read_back(data, 5, 20).is_err());
    }

    #[test]
    fn a_flipped_bit_or_a_cut_is_seen_wherever_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path();
        write(data, 7, &[7..9, 9..12]);
        let path = segment_path(data, 7);
        let whole = fs::read(&path).unwrap();
        for at in 0..whole.len() {
            let mut file = fs::OpenOptions::new().write(true).open(&path).unwrap();
            file.seek(SeekFrom::Start(at as u64)).unwrap();
            file.write_all(&[whole[at] ^ 1 << (at % 8)]).unwrap();
            assert!(read_back(data, 7, 12).is_err(), "bit flipped in byte {at}");
            fs::write(&path, &whole[..at]).unwrap();
            assert!(read_back(data, 7, 12).is_err(), "cut at byte {at}");
            fs::write(&path, &whole).unwrap();
        }
        assert_eq!(read_back(data, 7, 12), Ok(keys(7..12)));
    }

    #[test]
    fn a_segment_of_another_crawl_or_another_place_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path();
        write(data, 0, &[0..2, 2..3]);
        let foreign = SnapshotLabel::new("d".to_owned(), 3, 0);
        assert!(read(data, &foreign, 0, &mut |_| ()).is_err());
        fs::rename(segment_path(data, 0), segment_path(data, 1)).unwrap();
        assert!(read_back(data, 1, 3).is_err());
        fs::create_dir(segment_path(data, 0)).unwrap();
        assert!(read_back(data, 0, 3).is_err());
    }
}
