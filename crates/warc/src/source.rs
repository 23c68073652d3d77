//! The bytes under a reader: plain, or inflated from gzip members whose places are kept in mind.

use std::io::{self, BufRead, Read};

use flate2::bufread::GzDecoder;

/// Enough to inflate in strides; a record of the usual size passes through in a few.
const BUFFER_BYTES: usize = 32 * 1_024;

/// The first byte of a gzip member (RFC 1952 section 2.3.1).
const GZIP_MAGIC: u8 = 0x1f;

/// Where a record begins in its file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// Bytes of the file before the record, or before the gzip member that it begins in.
    pub offset: u64,
    /// Inflated bytes of that member before the record: 0 where each record has a member of its own, and in plain
    /// files.
    pub inflated_bytes_before: u64,
}

/// A reader that knows how many bytes were taken from it.
pub(crate) struct Counting<R> {
    inner: R,
    count: u64,
}

impl<R: Read> Read for Counting<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.count += count as u64;
        Ok(count)
    }
}

impl<R: BufRead> BufRead for Counting<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.inner.fill_buf()
    }

    fn consume(&mut self, amount: usize) {
        self.inner.consume(amount);
        self.count += amount as u64;
    }
}

enum Input<R> {
    Unread(Counting<R>),
    Plain(Counting<R>),
    Gzip(Box<GzDecoder<Counting<R>>>),
    Ended,
}

/// Bytes of one gzip member at a time, so that the place of the next byte is always known.
pub(crate) struct Source<R> {
    input: Input<R>,
    buffer: Box<[u8]>,
    begin: usize,
    end: usize,
    /// Offset of the member that the buffer's bytes come from; for plain files, of the start of reading.
    member_offset: u64,
    /// Bytes taken since then.
    taken: u64,
    is_gzip: bool,
    /// The failure that ended the input: it is met again at every further look.
    failure: Option<(io::ErrorKind, String)>,
}

impl<R: BufRead> Source<R> {
    /// Reads from `inner`, whose next byte has the offset `offset` in its file.
    pub(crate) fn new(inner: R, offset: u64) -> Self {
        Self {
            input: Input::Unread(Counting {
                inner,
                count: offset,
            }),
            buffer: vec![0; BUFFER_BYTES].into_boxed_slice(),
            begin: 0,
            end: 0,
            member_offset: offset,
            taken: 0,
            is_gzip: false,
            failure: None,
        }
    }

    /// Returns the place of the next byte; exact once [`Self::peek`] was called.
    pub(crate) fn position(&self) -> Position {
        if self.is_gzip {
            Position {
                offset: self.member_offset,
                inflated_bytes_before: self.taken,
            }
        } else {
            Position {
                offset: self.member_offset + self.taken,
                inflated_bytes_before: 0,
            }
        }
    }

    /// Returns the bytes at hand, at least one unless the input has ended.
    pub(crate) fn peek(&mut self) -> io::Result<&[u8]> {
        if self.begin == self.end
            && let Err(error) = self.fill()
        {
            self.failure = Some((error.kind(), error.to_string()));
            return Err(error);
        }
        Ok(&self.buffer[self.begin..self.end])
    }

    /// Fills the empty buffer, unless the input has ended.
    fn fill(&mut self) -> io::Result<()> {
        if let Some((kind, text)) = &self.failure {
            return Err(io::Error::new(*kind, text.clone()));
        }
        while self.begin == self.end {
            self.begin = 0;
            self.end = 0;
            match &mut self.input {
                Input::Ended => break,
                Input::Unread(_) => self.begin_member()?,
                Input::Plain(input) => {
                    self.end = input.read(&mut self.buffer)?;
                    if self.end == 0 {
                        self.input = Input::Ended;
                    }
                }
                Input::Gzip(decoder) => {
                    self.end = decoder.read(&mut self.buffer)?;
                    if self.end == 0 {
                        self.begin_member()?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Takes bytes that [`Self::peek`] showed.
    pub(crate) fn take(&mut self, count: usize) {
        let count = count.min(self.end - self.begin);
        self.begin += count;
        self.taken += count as u64;
    }

    /// Passes from one gzip member to the next, or from nothing to the first bytes.
    fn begin_member(&mut self) -> io::Result<()> {
        let (mut input, is_first) = match std::mem::replace(&mut self.input, Input::Ended) {
            Input::Unread(input) => (input, true),
            Input::Gzip(decoder) => (decoder.into_inner(), false),
            Input::Plain(_) | Input::Ended => return Ok(()),
        };
        let next = if is_first {
            input.fill_buf()?.first().copied()
        } else {
            skip_padding(&mut input)?
        };
        self.member_offset = input.count;
        self.taken = 0;
        match next {
            None => {}
            Some(GZIP_MAGIC) => {
                self.is_gzip = true;
                self.input = Input::Gzip(Box::new(GzDecoder::new(input)));
            }
            Some(_) if is_first => self.input = Input::Plain(input),
            Some(byte) => {
                let text = format!("byte {byte:#04x} where a gzip member should begin");
                return Err(io::Error::new(io::ErrorKind::InvalidData, text));
            }
        }
        Ok(())
    }
}

/// Skips the zero bytes that block devices and some writers leave after a member; returns the byte after them.
fn skip_padding<R: BufRead>(input: &mut Counting<R>) -> io::Result<Option<u8>> {
    loop {
        let bytes = input.fill_buf()?;
        let zero_count = bytes.iter().take_while(|byte| **byte == 0).count();
        let next = bytes.get(zero_count).copied();
        let is_end = bytes.is_empty();
        input.consume(zero_count);
        if next.is_some() || is_end {
            return Ok(next);
        }
    }
}
