//! The zstd content coding (RFC 8878).

use std::borrow::Cow;

use ruzstd::decoding::{
    StreamingDecoder,
    errors::{FrameDecoderError, ReadFrameHeaderError},
};

use crate::decode::{Cut, Fault, Output, PARTS_MAX};

/// The window that every zstd content coding may ask for (RFC 9659).
const WINDOW_BYTES: usize = 8 << 20;
/// An empty last block, and a checksum, which the decoder passes over.
const CLOSING: [u8; 7] = [1, 0, 0, 0, 0, 0, 0];

/// Undoes zstd: frames one behind the other, skippable ones passed over.
pub(crate) fn decode_zstd(mut input: &[u8], output: &mut Output, cut: Cut) -> Result<(), Fault> {
    // A larger window than the cap on the output could only serve a body that is refused anyway.
    let window_bytes_max = output.bytes_max.max(WINDOW_BYTES) as u64;
    for _ in 0..PARTS_MAX {
        if input.is_empty() {
            return Ok(());
        }
        let frame_bytes = frame_bytes(input);
        let frame = match (&frame_bytes, cut) {
            (Extent::Cut(whole), Cut::Accept) => Cow::Owned([&input[..*whole], &CLOSING].concat()),
            _ => Cow::Borrowed(input),
        };
        let mut rest = frame.as_ref();
        match StreamingDecoder::new_with_max_window_size(&mut rest, window_bytes_max) {
            Ok(decoder) => output.drain(decoder)?,
            Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                length,
                ..
            })) => {
                let length = usize::try_from(length).unwrap_or(usize::MAX);
                rest = rest.get(length..).ok_or_else(Fault::early_end)?;
            }
            Err(error) => return Err(Fault::broken(error)),
        }
        if matches!(frame, Cow::Owned(_)) {
            return Ok(());
        }
        input = &input[input.len() - rest.len()..];
    }
    Err(Fault::broken(format_args!("more than {PARTS_MAX} frames")))
}

/// How far a frame goes.
enum Extent {
    /// To its end, or it is none that ends in a block: the decoder will say.
    Whole,
    /// The input ends within it; so many bytes hold its header and its whole blocks.
    Cut(usize),
}

/// Walks the blocks of a frame. The decoder keeps back a window's worth of output until it has seen the last block, so
/// a cut frame has to be closed behind its last whole one, or a short body would decode to nothing.
fn frame_bytes(input: &[u8]) -> Extent {
    let Some(&descriptor) = input
        .get(4)
        .filter(|_| input.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]))
    else {
        return Extent::Whole;
    };
    // Section 3.1.1.1: descriptor, window unless there is a single segment, dictionary id, content size.
    let is_single = descriptor & 0x20 != 0;
    let dictionary_bytes = [0, 1, 2, 4][usize::from(descriptor & 3)];
    let size_bytes = [usize::from(is_single), 2, 4, 8][usize::from(descriptor >> 6)];
    let mut whole = 5 + usize::from(!is_single) + dictionary_bytes + size_bytes;
    if whole > input.len() {
        return Extent::Whole;
    }
    // Section 3.1.1.2: three bytes hold whether the block is the last, its type, and its size.
    while let Some(header) = input.get(whole..whole + 3) {
        let header = u32::from_le_bytes([header[0], header[1], header[2], 0]);
        let is_run = header >> 1 & 3 == 1;
        let content_bytes = if is_run { 1 } else { header >> 3 };
        let end = whole + 3 + content_bytes as usize;
        if end > input.len() {
            break;
        }
        whole = end;
        if header & 1 == 1 {
            return Extent::Whole;
        }
    }
    Extent::Cut(whole)
}
