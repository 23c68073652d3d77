//! Reads WARC files record by record, as tolerant as real files need.

use std::io::{self, BufRead};

use thiserror::Error;

use crate::{Fields, HttpError, HttpResponse, Position, parse_http_response, source::Source};

/// What a version line begins with.
const VERSION_PREFIX: &[u8] = b"WARC/";

/// Bounds on what a reader keeps in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReaderLimits {
    /// The longest record header, in bytes; a longer one is an error.
    pub header_bytes_max: usize,
    /// How much of a block is kept, in bytes; the rest is read over, and the record says so.
    pub content_bytes_max: usize,
}

impl Default for ReaderLimits {
    /// 256 KiB of header, 1 GiB of content.
    fn default() -> Self {
        Self {
            header_bytes_max: 256 * 1_024,
            content_bytes_max: 1 << 30,
        }
    }
}

/// A record as read.
#[derive(Clone, Debug)]
pub struct ReadRecord {
    /// Where it begins.
    pub position: Position,
    /// Bytes that it takes in the file with its separator; `None` when it shares a gzip member with others.
    pub stored_bytes: Option<u64>,
    /// Bytes between the record before and this one that belong to neither, as after a wrong `Content-Length`.
    pub stray_bytes_before: u64,
    /// The version line, such as `WARC/1.1`.
    pub version: String,
    /// The header fields.
    pub fields: Fields,
    /// The block, up to the limit.
    pub content: Vec<u8>,
    /// The block's length as the header states it.
    pub content_bytes: u64,
}

impl ReadRecord {
    /// Returns `WARC-Type`, empty when missing.
    #[must_use]
    pub fn kind(&self) -> &str {
        self.fields.get("WARC-Type").unwrap_or_default()
    }

    /// Returns the target URI, without the angle brackets that wget and the letter of WARC 1.0 put around it.
    #[must_use]
    pub fn target_uri(&self) -> Option<&str> {
        let uri = self.fields.get("WARC-Target-URI")?;
        Some(
            uri.strip_prefix('<')
                .and_then(|uri| uri.strip_suffix('>'))
                .unwrap_or(uri),
        )
    }

    /// Returns whether the block was longer than the limit.
    #[must_use]
    pub fn is_cut(&self) -> bool {
        self.content_bytes > self.content.len() as u64
    }

    /// Parses the block as an HTTP response.
    ///
    /// # Errors
    ///
    /// Returns what keeps it from being one.
    pub fn http_response(&self) -> Result<HttpResponse<'_>, HttpError> {
        parse_http_response(&self.content)
    }
}

/// Why a file cannot be read on.
#[derive(Debug, Error)]
#[error("at byte {offset}: {kind}")]
pub struct ReadError {
    /// Where the unreadable record, or its gzip member, begins in the file.
    pub offset: u64,
    /// What is wrong with it.
    #[source]
    pub kind: ReadErrorKind,
}

/// What is wrong with a record.
#[derive(Debug, Error)]
pub enum ReadErrorKind {
    /// The bytes could not be read.
    #[error("the file cannot be read: {0}")]
    Io(io::Error),
    /// The gzip data is damaged.
    #[error("damaged gzip data: {0}")]
    Gzip(io::Error),
    /// No version line begins here.
    #[error("a record begins with WARC/ and a version, found {found:?}")]
    NotARecord {
        /// The first bytes found instead, at most 32, escaped.
        found: String,
    },
    /// The header does not end within the limit.
    #[error("the record header is over {bytes_max} bytes long")]
    HeaderTooLong {
        /// The limit in force.
        bytes_max: usize,
    },
    /// `Content-Length` is missing or no number.
    #[error("Content-Length should be a number of bytes, found {found:?}")]
    ContentLength {
        /// Its value, empty when missing, at most 32 characters.
        found: String,
    },
    /// The file ends within the record.
    #[error("the file ends within the record")]
    Truncated,
}

/// Reads records from plain files, from gzip files with a member a record, and from gzip files made as a whole.
///
/// It bears with line ends of a lone LF, missing or odd separators, folded and repeated fields, lines without a colon,
/// padding between members, and stray bytes between records, which it counts. An error ends the iteration: the records
/// before it stand.
pub struct Reader<R> {
    source: Source<R>,
    limits: ReaderLimits,
    /// Whether a record was read, so that this is a WARC file, and stray bytes in it may be passed over.
    has_record: bool,
    is_done: bool,
}

impl<R: BufRead> Reader<R> {
    /// Reads a file from its beginning.
    pub fn new(input: R, limits: ReaderLimits) -> Self {
        Self {
            source: Source::new(input, 0),
            limits,
            has_record: false,
            is_done: false,
        }
    }

    /// Reads on from a record's position; `input` must stand at its `offset` already.
    ///
    /// # Errors
    ///
    /// Returns an error when the gzip member is damaged or ends before the position.
    pub fn at(input: R, position: Position, limits: ReaderLimits) -> Result<Self, ReadError> {
        let mut source = Source::new(input, position.offset);
        let error = |kind| ReadError {
            offset: position.offset,
            kind,
        };
        let skipped =
            copy(&mut source, position.inflated_bytes_before, &mut |_| ()).map_err(error)?;
        if skipped < position.inflated_bytes_before {
            return Err(error(ReadErrorKind::Truncated));
        }
        Ok(Self {
            source,
            limits,
            has_record: false,
            is_done: false,
        })
    }

    fn read_record(&mut self) -> Result<Option<ReadRecord>, ReadError> {
        let skipped = skip_line_ends(&mut self.source);
        let begin = self.source.position();
        let error = |kind| ReadError {
            offset: begin.offset,
            kind,
        };
        if skipped.map_err(error)? {
            return Ok(None);
        }
        let (version, position, stray_bytes_before) = self.find_version_line().map_err(error)?;
        let error = |kind| ReadError {
            offset: position.offset,
            kind,
        };
        let fields = self.read_fields(version.len()).map_err(error)?;
        let content_bytes = content_length(&fields).map_err(error)?;
        let content = self.read_content(content_bytes).map_err(error)?;
        self.has_record = true;
        // A failure here belongs to the next record, where it comes up again: a source repeats its errors.
        let is_separated = skip_line_ends(&mut self.source).is_ok();
        let end = self.source.position();
        let is_alone = position.inflated_bytes_before == 0 && end.inflated_bytes_before == 0;
        let stored_bytes = (is_separated && is_alone).then(|| end.offset - position.offset);
        let version = String::from_utf8_lossy(version.trim_ascii()).into_owned();
        let record = ReadRecord {
            position,
            stored_bytes,
            stray_bytes_before,
            version,
            fields,
            content,
            content_bytes,
        };
        Ok(Some(record))
    }

    /// Returns the next version line, where it begins, and how many bytes had to be passed over to find it.
    fn find_version_line(&mut self) -> Result<(Vec<u8>, Position, u64), ReadErrorKind> {
        let mut stray_bytes = 0;
        let mut not_a_record = None;
        loop {
            let bytes = self.source.peek().map_err(classify)?;
            let is_likely = bytes
                .iter()
                .zip(VERSION_PREFIX)
                .all(|(byte, expected)| byte == expected);
            if !is_likely && not_a_record.is_none() {
                let found = bytes[..bytes.len().min(32)].escape_ascii().to_string();
                not_a_record = Some(ReadErrorKind::NotARecord { found });
            }
            if let Some(failure) = not_a_record.take_if(|_| !self.has_record) {
                return Err(failure);
            }
            let position = self.source.position();
            let mut bytes_left = self.limits.header_bytes_max;
            let line = match self.read_line(&mut bytes_left) {
                Ok(line) => line,
                // Bytes that cannot be passed over are reported as what they were at first.
                Err(failure) => return Err(not_a_record.unwrap_or(failure)),
            };
            if line.starts_with(VERSION_PREFIX) {
                return Ok((line, position, stray_bytes));
            }
            stray_bytes += line.len() as u64;
        }
    }

    fn read_fields(&mut self, version_bytes: usize) -> Result<Fields, ReadErrorKind> {
        let mut bytes_left = self.limits.header_bytes_max.saturating_sub(version_bytes);
        let mut fields = Fields::default();
        loop {
            let line = self.read_line(&mut bytes_left)?;
            if line.trim_ascii().is_empty() {
                return Ok(fields);
            }
            fields.push_line(&line);
        }
    }

    fn read_content(&mut self, content_bytes: u64) -> Result<Vec<u8>, ReadErrorKind> {
        let content_bytes_max = self.limits.content_bytes_max;
        let mut content = Vec::new();
        let read = copy(&mut self.source, content_bytes, &mut |bytes| {
            let room = content_bytes_max - content.len();
            content.extend_from_slice(&bytes[..bytes.len().min(room)]);
        })?;
        if read < content_bytes {
            Err(ReadErrorKind::Truncated)
        } else {
            Ok(content)
        }
    }

    /// Reads a line with its end; the end of the file, too, is an error.
    fn read_line(&mut self, bytes_left: &mut usize) -> Result<Vec<u8>, ReadErrorKind> {
        let mut line = Vec::new();
        loop {
            let bytes = self.source.peek().map_err(classify)?;
            if bytes.is_empty() {
                return Err(ReadErrorKind::Truncated);
            }
            let line_end = bytes.iter().position(|byte| *byte == b'\n');
            let count = line_end.map_or(bytes.len(), |at| at + 1);
            if count > *bytes_left {
                return Err(ReadErrorKind::HeaderTooLong {
                    bytes_max: self.limits.header_bytes_max,
                });
            }
            *bytes_left -= count;
            line.extend_from_slice(&bytes[..count]);
            self.source.take(count);
            if line_end.is_some() {
                return Ok(line);
            }
        }
    }
}

impl<R: BufRead> Iterator for Reader<R> {
    type Item = Result<ReadRecord, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_done {
            return None;
        }
        let item = self.read_record().transpose();
        self.is_done = !matches!(item, Some(Ok(_)));
        item
    }
}

fn content_length(fields: &Fields) -> Result<u64, ReadErrorKind> {
    let text = fields.get("Content-Length").unwrap_or_default();
    text.parse().map_err(|_| ReadErrorKind::ContentLength {
        found: text.chars().take(32).collect(),
    })
}

/// Passes `count` bytes to `sink`; returns how many there were.
fn copy<R: BufRead>(
    source: &mut Source<R>,
    count: u64,
    sink: &mut dyn FnMut(&[u8]),
) -> Result<u64, ReadErrorKind> {
    let mut copied = 0;
    while copied < count {
        let bytes = source.peek().map_err(classify)?;
        if bytes.is_empty() {
            break;
        }
        let step =
            usize::try_from(count - copied).map_or(bytes.len(), |left| bytes.len().min(left));
        sink(&bytes[..step]);
        source.take(step);
        copied += step as u64;
    }
    Ok(copied)
}

/// Skips CR and LF, the separator of records; returns whether the input ended.
fn skip_line_ends<R: BufRead>(source: &mut Source<R>) -> Result<bool, ReadErrorKind> {
    loop {
        let bytes = source.peek().map_err(classify)?;
        let count = bytes
            .iter()
            .take_while(|byte| matches!(byte, b'\r' | b'\n'))
            .count();
        let is_end = bytes.is_empty();
        let is_whole = count == bytes.len();
        source.take(count);
        if is_end || !is_whole {
            return Ok(is_end);
        }
    }
}

fn classify(error: io::Error) -> ReadErrorKind {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => ReadErrorKind::Truncated,
        io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData => ReadErrorKind::Gzip(error),
        _ => ReadErrorKind::Io(error),
    }
}
