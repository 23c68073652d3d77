//! The keys within the bytes of a binary `COPY` of the key table, taken as they come.
//!
//! The server sends one message a row at present, but promises no such thing, so a row may begin and end anywhere.
//! Reading 50 million keys this way costs the client less than a row object each would.

use types::UrlKey;

use crate::StoreError;

/// What every binary copy begins with (`PostgreSQL` manual, COPY, "Binary Format").
const SIGNATURE: &[u8; 11] = b"PGCOPY\n\xff\r\n\0";
/// Signature, flags, and the length of the extension that follows.
const HEADER_BYTES: usize = SIGNATURE.len() + 4 + 4;
/// Flags whose meaning a reader has to know; none is set where rows have no hidden columns.
const CRITICAL_FLAGS: u32 = 0xffff_0000;
/// A row of one column of 16 bytes: the number of columns, the length of the value, the value.
const ROW_HEAD: [u8; 6] = [0, 1, 0, 0, 0, 16];
const ROW_BYTES: usize = ROW_HEAD.len() + 16;
/// What stands for the number of columns after the last row.
const TRAILER: [u8; 2] = [0xff, 0xff];
/// Extensions of the header longer than this are not believed; no server sends any.
const EXTENSION_BYTES_MAX: usize = 1 << 16;

/// What the next bytes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Header,
    Rows,
    End,
}

/// Reads keys from chunks of the stream.
#[derive(Debug)]
pub(super) struct CopiedKeys {
    part: Part,
    /// The beginning of a header or row whose rest has not come yet.
    pending: Vec<u8>,
}

impl CopiedKeys {
    /// Begins before the header.
    pub(super) const fn new() -> Self {
        Self {
            part: Part::Header,
            pending: Vec::new(),
        }
    }

    /// Takes in the next bytes, and adds the keys of all rows that are whole to `keys`.
    pub(super) fn take(&mut self, chunk: &[u8], keys: &mut Vec<UrlKey>) -> Result<(), StoreError> {
        if self.pending.is_empty() {
            let taken = self.parse(chunk, keys)?;
            self.pending.extend_from_slice(&chunk[taken..]);
        } else {
            let mut bytes = std::mem::take(&mut self.pending);
            bytes.extend_from_slice(chunk);
            let taken = self.parse(&bytes, keys)?;
            bytes.drain(..taken);
            self.pending = bytes;
        }
        Ok(())
    }

    /// Makes sure that the stream ended where it should.
    pub(super) fn finish(&self) -> Result<(), StoreError> {
        if self.part == Part::End {
            Ok(())
        } else {
            Err(damaged("it ended before its last row"))
        }
    }

    /// Reads all that is whole, and returns how many bytes that was.
    fn parse(&mut self, bytes: &[u8], keys: &mut Vec<UrlKey>) -> Result<usize, StoreError> {
        let mut rest = bytes;
        if self.part == Part::Header {
            let Some(after) = after_header(rest)? else {
                return Ok(0);
            };
            rest = after;
            self.part = Part::Rows;
        }
        while self.part == Part::Rows
            && let Some((row, after)) = rest.split_first_chunk::<ROW_BYTES>()
        {
            let Some(key) = row.strip_prefix(&ROW_HEAD) else {
                break;
            };
            let key = <[u8; 16]>::try_from(key).map_err(|_| damaged("a key is cut"))?;
            keys.push(UrlKey::from_bytes(key));
            rest = after;
        }
        if self.part == Part::Rows && rest.starts_with(&TRAILER) {
            self.part = Part::End;
            rest = &rest[TRAILER.len()..];
        }
        let is_plausible = match self.part {
            Part::End => rest.is_empty(),
            _ => {
                rest.iter()
                    .zip(&ROW_HEAD)
                    .all(|(found, right)| found == right)
                    || rest == &TRAILER[..1]
            }
        };
        if is_plausible {
            Ok(bytes.len() - rest.len())
        } else {
            Err(damaged("a row is not one column of 16 bytes"))
        }
    }
}

/// Returns what follows the header, or `None` while it is not whole.
fn after_header(bytes: &[u8]) -> Result<Option<&[u8]>, StoreError> {
    let shared = bytes.len().min(SIGNATURE.len());
    if bytes[..shared] != SIGNATURE[..shared] {
        return Err(damaged("it does not begin with the signature of one"));
    }
    let Some((header, rest)) = bytes.split_first_chunk::<HEADER_BYTES>() else {
        return Ok(None);
    };
    let number = |at: usize| u32::from_be_bytes([0, 1, 2, 3].map(|index| header[at + index]));
    if number(SIGNATURE.len()) & CRITICAL_FLAGS != 0 {
        return Err(damaged("its header has flags that are not known"));
    }
    let extension_bytes = number(SIGNATURE.len() + 4) as usize;
    if extension_bytes > EXTENSION_BYTES_MAX {
        return Err(damaged("its header is too long"));
    }
    Ok(rest.get(extension_bytes..))
}

fn damaged(problem: &str) -> StoreError {
    StoreError::Corrupt(format!(
        "the binary copy of the key table cannot be read: {problem}"
    ))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a failed set-up fails the test")]

    use super::*;

    fn stream(keys: &[u128], extension: &[u8]) -> Vec<u8> {
        let mut bytes = SIGNATURE.to_vec();
        bytes.extend_from_slice(&0_u32.to_be_bytes());
        bytes.extend_from_slice(&u32::try_from(extension.len()).unwrap().to_be_bytes());
        bytes.extend_from_slice(extension);
        for key in keys {
            bytes.extend_from_slice(&ROW_HEAD);
            bytes.extend_from_slice(&key.to_be_bytes());
        }
        bytes.extend_from_slice(&TRAILER);
        bytes
    }

    fn read(bytes: &[u8], chunk_bytes: usize) -> Result<Vec<u128>, StoreError> {
        let mut copied = CopiedKeys::new();
        let mut keys = Vec::new();
        for chunk in bytes.chunks(chunk_bytes) {
            copied.take(chunk, &mut keys)?;
        }
        copied.finish()?;
        Ok(keys.iter().map(|key| key.as_u128()).collect())
    }

    #[test]
    fn rows_may_be_cut_anywhere() {
        let keys = [0, 1, u128::MAX, 0xffff_ffff << 96, 7 << 64];
        for extension in [&b""[..], b"\xff\xffPG"] {
            let bytes = stream(&keys, extension);
            for chunk_bytes in 1..=bytes.len() {
                assert_eq!(read(&bytes, chunk_bytes).unwrap(), keys, "{chunk_bytes}");
            }
        }
        assert_eq!(read(&stream(&[], b""), 4).unwrap(), Vec::<u128>::new());
    }

    #[test]
    fn what_is_no_copy_of_the_key_table_is_refused() {
        let whole = stream(&[1, 2, 3], b"");
        for cut in 0..whole.len() {
            assert!(read(&whole[..cut], 9).is_err(), "cut at {cut}");
        }
        let spoilt = |at: usize, byte: u8| {
            let mut bytes = whole.clone();
            bytes[at] = byte;
            bytes
        };
        let first_row = HEADER_BYTES;
        let mut longer = whole.clone();
        longer.push(0);
        for (bytes, words) in [
            (spoilt(0, b'Q'), "signature"),
            (spoilt(SIGNATURE.len() + 1, 1), "flags"),
            (spoilt(SIGNATURE.len() + 4, 0x7f), "too long"),
            (spoilt(first_row + 1, 2), "one column"),
            (spoilt(first_row + 5, 15), "one column"),
            (spoilt(first_row + ROW_BYTES + 2, 0xff), "one column"),
            (longer, "one column"),
        ] {
            for chunk_bytes in [1, 5, 1_000] {
                let error = read(&bytes, chunk_bytes).unwrap_err().to_string();
                assert!(error.contains(words), "{error}");
            }
        }
    }
}
