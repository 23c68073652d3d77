//! Content codings: from the bytes on the wire to the bytes that were meant, bounded.

use std::{
    borrow::Cow,
    io::{self, Read},
};

use flate2::{Decompress, FlushDecompress, Status, bufread::GzDecoder};
use types::{FailureKind, FetchFailure, Headers};

use crate::{failure::failure, zstd::decode_zstd};

/// Codings that may be stacked on one body; servers that mean it use one, seldom two.
const CODINGS_MAX: usize = 4;
/// Gzip members or zstd frames of one body. Each costs a decoder, however little it holds.
pub(crate) const PARTS_MAX: usize = 10_000;
/// What gzip data begin with.
const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];
/// Bytes decoded in one step.
const STEP_BYTES: usize = 32 << 10;

/// A content coding (RFC 9110, section 8.4.1; RFC 7932; RFC 8878).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Coding {
    Gzip,
    Deflate,
    Brotli,
    Zstd,
}

/// What to do where the data end too early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    Refuse,
    Accept,
}

/// Undoes the content codings of a complete body, the last applied first.
///
/// # Errors
///
/// [`FailureKind::Decode`] where a coding is unknown or its data are broken or end early, and
/// [`FailureKind::DecodedTooLarge`] where any layer decodes to more than `decoded_bytes_max`.
pub fn decode_body<'a>(
    headers: &Headers,
    wire_body: &'a [u8],
    decoded_bytes_max: usize,
) -> Result<Cow<'a, [u8]>, FetchFailure> {
    decode(headers, wire_body, decoded_bytes_max, Cut::Refuse)
}

/// Undoes the content codings of a body that was cut on the wire ([`types::Response::truncation`]): returns what comes
/// before the cut, or before the first fault.
///
/// # Errors
///
/// As [`decode_body`], but broken or missing data end the body instead.
pub fn decode_cut_body<'a>(
    headers: &Headers,
    wire_body: &'a [u8],
    decoded_bytes_max: usize,
) -> Result<Cow<'a, [u8]>, FetchFailure> {
    decode(headers, wire_body, decoded_bytes_max, Cut::Accept)
}

/// Unpacks a file that is gzip data itself, such as `sitemap.xml.gz`: returns at most `bytes_max` bytes of it, and whether
/// there were more. Of a file that was cut on the wire (`is_cut`), what comes before the cut is all.
///
/// # Errors
///
/// [`FailureKind::Decode`] where the data of a whole file are broken or end early.
pub fn unpack_gzip(
    file: &[u8],
    is_cut: bool,
    bytes_max: usize,
) -> Result<(Vec<u8>, bool), FetchFailure> {
    let mut output = Output {
        bytes: Vec::new(),
        bytes_max,
    };
    match decode_gzip(file, &mut output) {
        Ok(()) => Ok((output.bytes, is_cut)),
        Err(Fault::TooLarge) => Ok((output.bytes, true)),
        Err(Fault::Broken(_)) if is_cut => Ok((output.bytes, true)),
        Err(Fault::Broken(reason)) => Err(failure(
            FailureKind::Decode,
            &format!("broken gzip file: {reason}"),
        )),
    }
}

/// Says whether a file begins as gzip data do (RFC 1952, section 2.3.1).
#[must_use]
pub fn is_gzip(file: &[u8]) -> bool {
    file.starts_with(&GZIP_MAGIC)
}

fn decode<'a>(
    headers: &Headers,
    wire_body: &'a [u8],
    decoded_bytes_max: usize,
    cut: Cut,
) -> Result<Cow<'a, [u8]>, FetchFailure> {
    let mut body = Cow::Borrowed(wire_body);
    // An empty body has no coding to undo, whatever its header says: answers to redirects often are such.
    if !wire_body.is_empty() {
        for coding in codings(headers)?.into_iter().rev() {
            let mut output = Output {
                bytes: Vec::new(),
                bytes_max: decoded_bytes_max,
            };
            let decoded = coding.decode(&body, &mut output, cut);
            match decoded {
                Ok(()) => {}
                Err(Fault::TooLarge) => return Err(too_large(decoded_bytes_max)),
                Err(Fault::Broken(_)) if cut == Cut::Accept => {}
                Err(Fault::Broken(reason)) => {
                    return Err(failure(
                        FailureKind::Decode,
                        &format!("broken {coding:?} data: {reason}"),
                    ));
                }
            }
            body = Cow::Owned(output.bytes);
        }
    }
    if body.len() > decoded_bytes_max {
        return Err(too_large(decoded_bytes_max));
    }
    Ok(body)
}

fn too_large(decoded_bytes_max: usize) -> FetchFailure {
    failure(
        FailureKind::DecodedTooLarge,
        &format!("decodes to more than {decoded_bytes_max} bytes"),
    )
}

/// Reads the codings in the order in which they were applied.
fn codings(headers: &Headers) -> Result<Vec<Coding>, FetchFailure> {
    let mut codings = Vec::new();
    for value in headers.get_all("content-encoding") {
        for token in value.split(|byte| *byte == b',') {
            let token = String::from_utf8_lossy(token.trim_ascii()).to_ascii_lowercase();
            match token.as_str() {
                "gzip" | "x-gzip" => codings.push(Coding::Gzip),
                "deflate" => codings.push(Coding::Deflate),
                "br" => codings.push(Coding::Brotli),
                "zstd" => codings.push(Coding::Zstd),
                // Servers also put here that there is none, or the charset; browsers let both pass.
                "" | "identity" | "none" | "utf-8" | "utf8" => {}
                unknown => {
                    return Err(failure(
                        FailureKind::Decode,
                        &format!("unknown content coding {unknown:?}"),
                    ));
                }
            }
            if codings.len() > CODINGS_MAX {
                return Err(failure(
                    FailureKind::Decode,
                    &format!("more than {CODINGS_MAX} content codings"),
                ));
            }
        }
    }
    Ok(codings)
}

/// Why a layer could not be undone.
#[derive(Debug)]
pub(crate) enum Fault {
    TooLarge,
    Broken(String),
}

impl Fault {
    pub(crate) fn broken(error: impl std::fmt::Display) -> Self {
        Self::Broken(error.to_string())
    }

    pub(crate) fn early_end() -> Self {
        Self::broken("the data end too early")
    }
}

/// Decoded bytes with a cap.
pub(crate) struct Output {
    bytes: Vec<u8>,
    pub(crate) bytes_max: usize,
}

impl Output {
    fn push(&mut self, bytes: &[u8]) -> Result<(), Fault> {
        if bytes.len() > self.bytes_max - self.bytes.len() {
            return Err(Fault::TooLarge);
        }
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    /// Takes all that a decoder gives.
    pub(crate) fn drain(&mut self, mut decoder: impl Read) -> Result<(), Fault> {
        let mut step = vec![0; STEP_BYTES];
        loop {
            match decoder.read(&mut step) {
                Ok(0) => return Ok(()),
                Ok(count) => self.push(&step[..count])?,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(Fault::broken(error)),
            }
        }
    }
}

impl Coding {
    fn decode(self, input: &[u8], output: &mut Output, cut: Cut) -> Result<(), Fault> {
        match self {
            Self::Gzip => decode_gzip(input, output),
            Self::Deflate => decode_deflate(input, output),
            Self::Brotli => output.drain(brotli_decompressor::Decompressor::new(input, STEP_BYTES)),
            Self::Zstd => decode_zstd(input, output, cut),
        }
    }
}

/// Undoes gzip (RFC 1952): one member or more. Bytes behind the last that begin no member are passed over, as browsers
/// do with padding.
fn decode_gzip(mut input: &[u8], output: &mut Output) -> Result<(), Fault> {
    for _ in 0..PARTS_MAX {
        let mut decoder = GzDecoder::new(input);
        output.drain(&mut decoder)?;
        input = decoder.into_inner();
        if !is_gzip(input) {
            return Ok(());
        }
    }
    Err(Fault::broken(format_args!("more than {PARTS_MAX} members")))
}

/// Undoes deflate: a zlib stream (RFC 1950), or the bare one (RFC 1951) that servers send all the same.
fn decode_deflate(mut input: &[u8], output: &mut Output) -> Result<(), Fault> {
    let is_zlib = match input {
        [method, flags, ..] => {
            method & 0x0f == 8 && u16::from_be_bytes([*method, *flags]) % 31 == 0
        }
        _ => false,
    };
    let mut decoder = Decompress::new(is_zlib);
    let mut step = vec![0; STEP_BYTES];
    loop {
        let (in_before, out_before) = (decoder.total_in(), decoder.total_out());
        let status = decoder
            .decompress(input, &mut step, FlushDecompress::None)
            .map_err(Fault::broken)?;
        let taken = usize::try_from(decoder.total_in() - in_before).unwrap_or(usize::MAX);
        let given = usize::try_from(decoder.total_out() - out_before).unwrap_or(usize::MAX);
        output.push(&step[..given.min(STEP_BYTES)])?;
        input = &input[taken.min(input.len())..];
        match status {
            Status::StreamEnd => return Ok(()),
            Status::Ok | Status::BufError if taken == 0 && given == 0 => {
                return Err(Fault::early_end());
            }
            Status::Ok | Status::BufError => {}
        }
    }
}
