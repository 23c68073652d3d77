//! Reads a body chunk by chunk: bounded in bytes, between bytes, and in all.

use std::time::Duration;

use tokio::time::{Instant, timeout_at};
use types::Truncation;

/// Bytes reserved on the word of `Content-Length` alone.
const RESERVE_BYTES_MAX: usize = 1 << 20;

/// The limits of one body.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BodyLimits {
    /// Bytes as received.
    pub(crate) wire_bytes_max: usize,
    /// The longest time without a byte.
    pub(crate) read_timeout: Duration,
    /// When the whole fetch must end.
    pub(crate) deadline: Instant,
}

/// Reads what there is of a body, and says why it was cut if it was.
pub(crate) async fn read_body(
    response: &mut reqwest::Response,
    limits: BodyLimits,
) -> (Vec<u8>, Option<Truncation>) {
    let declared = response
        .content_length()
        .and_then(|length| usize::try_from(length).ok())
        .unwrap_or(0);
    let mut body = Vec::with_capacity(declared.min(limits.wire_bytes_max).min(RESERVE_BYTES_MAX));
    loop {
        let until = limits.deadline.min(Instant::now() + limits.read_timeout);
        let chunk = match timeout_at(until, response.chunk()).await {
            Ok(Ok(Some(chunk))) => chunk,
            Ok(Ok(None)) => return (body, None),
            Ok(Err(_)) => return (body, Some(Truncation::Disconnect)),
            Err(_) => return (body, Some(Truncation::Time)),
        };
        let room = limits.wire_bytes_max - body.len();
        if chunk.len() > room {
            body.extend_from_slice(&chunk[..room]);
            return (body, Some(Truncation::Length));
        }
        body.extend_from_slice(&chunk);
    }
}
