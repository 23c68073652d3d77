//! Reads a body chunk by chunk: bounded in bytes, between bytes, and in all, within the memory that all bodies share.

use std::time::Duration;

use tokio::time::{Instant, timeout_at};
use types::{FetchFailure, Truncation};

use crate::{budget::BodyHold, failure::framing_failure};

/// The length of a piece of a body.
const PIECE_BYTES: usize = 64 << 10;

/// The limits of one body.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BodyLimits {
    /// Bytes as received.
    pub(crate) wire_bytes_max: usize,
    /// The longest time without a byte.
    pub(crate) read_timeout: Duration,
    /// When the whole fetch must end; the time that the body waits for memory is added to it.
    pub(crate) deadline: Instant,
}

/// A body, or what there was of it.
pub(crate) struct ReadBody {
    pub(crate) bytes: Vec<u8>,
    /// Why it was cut, if it was.
    pub(crate) truncation: Option<Truncation>,
    /// How long nothing was read of it because there was no memory for it.
    pub(crate) waited: Duration,
}

/// Reads what there is of a body, and says why it was cut if it was. `hold` grows with it. A body whose framing is wrong is a
/// failure.
///
/// While it waits for memory nothing is read, so the server waits too, and no time-out runs: neither is its fault.
pub(crate) async fn read_body(
    response: &mut reqwest::Response,
    limits: BodyLimits,
    hold: &mut BodyHold,
) -> Result<ReadBody, FetchFailure> {
    let mut pieces = Pieces::default();
    let mut truncation = None;
    let mut waited = Duration::ZERO;
    loop {
        let deadline = limits.deadline + waited;
        let until = deadline.min(Instant::now() + limits.read_timeout);
        let chunk = match timeout_at(until, response.chunk()).await {
            Ok(Ok(Some(chunk))) => chunk,
            Ok(Ok(None)) => break,
            Ok(Err(error)) => {
                if let Some(failure) = framing_failure(&error) {
                    return Err(failure);
                }
                truncation = Some(Truncation::Disconnect);
                break;
            }
            Err(_) => {
                truncation = Some(Truncation::Time);
                break;
            }
        };
        let room = limits.wire_bytes_max - pieces.body_bytes;
        let piece = &chunk[..chunk.len().min(room)];
        let asked = Instant::now();
        hold.grow(pieces.body_bytes + piece.len()).await;
        waited += asked.elapsed();
        pieces.push(piece);
        if chunk.len() > room {
            truncation = Some(Truncation::Length);
            break;
        }
    }
    hold.trim(pieces.body_bytes);
    Ok(ReadBody {
        bytes: pieces.into_body(),
        truncation,
        waited,
    })
}

/// A body in the making: in pieces, since a long one that moves whenever it grows would leave behind, in the allocator's
/// hands, more than it takes.
#[derive(Default)]
struct Pieces {
    pieces: Vec<Vec<u8>>,
    body_bytes: usize,
}

impl Pieces {
    fn push(&mut self, mut bytes: &[u8]) {
        self.body_bytes += bytes.len();
        while !bytes.is_empty() {
            let room = self
                .pieces
                .last()
                .map_or(0, |last| PIECE_BYTES - last.len());
            if room == 0 {
                // The first grows as it must: most bodies are shorter than a piece.
                let capacity = if self.pieces.is_empty() {
                    bytes.len()
                } else {
                    PIECE_BYTES
                };
                self.pieces
                    .push(Vec::with_capacity(capacity.min(PIECE_BYTES)));
            }
            let Some(last) = self.pieces.last_mut() else {
                return;
            };
            let (now, later) = bytes.split_at(bytes.len().min(PIECE_BYTES - last.len()));
            last.extend_from_slice(now);
            bytes = later;
        }
    }

    /// Returns the whole, giving back each piece as it is copied.
    fn into_body(self) -> Vec<u8> {
        let mut pieces = self.pieces.into_iter();
        if pieces.len() <= 1 {
            let mut body = pieces.next().unwrap_or_default();
            body.shrink_to_fit();
            return body;
        }
        let mut body = Vec::with_capacity(self.body_bytes);
        for piece in pieces {
            body.extend_from_slice(&piece);
        }
        body
    }
}
