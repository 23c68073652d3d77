//! Gzip members, one after another from one compressor.

use flate2::{Compress, Compression, Crc, FlushCompress, Status};

/// What a member begins with (RFC 1952, section 2.3): deflate, no flags, no time, a system that is not said.
const HEADER: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];
/// The least room made for what comes next of a member, in bytes.
const ROOM_BYTES_MIN: usize = 4 << 10;

/// Makes gzip members. Its state, a quarter of a MiB, is made once: to make it anew for each record costs as much time
/// as to compress a short one, and memory in the midst of what else is made of a page.
#[derive(Debug)]
pub struct Compressor(Compress);

impl Compressor {
    /// Makes a compressor; `level` is 0 (stored) to 9 (smallest), larger values count as 9.
    #[must_use]
    pub fn new(level: u32) -> Self {
        Self(Compress::new(Compression::new(level.min(9)), false))
    }

    /// Appends one member that holds `parts`, in order.
    ///
    /// # Panics
    ///
    /// Never: compression in memory does not fail.
    pub(crate) fn append(&mut self, parts: &[&[u8]], out: &mut Vec<u8>) {
        self.0.reset();
        let mut sum = Crc::new();
        out.extend_from_slice(&HEADER);
        for part in parts {
            sum.update(part);
            let end = self.0.total_in() + part.len() as u64;
            let mut rest = *part;
            while !rest.is_empty() {
                self.step(rest, out, FlushCompress::None);
                let left = usize::try_from(end - self.0.total_in()).unwrap_or(0);
                rest = &part[part.len() - left..];
            }
        }
        while self.step(&[], out, FlushCompress::Finish) != Status::StreamEnd {}
        out.extend_from_slice(&sum.sum().to_le_bytes());
        out.extend_from_slice(&sum.amount().to_le_bytes());
    }

    fn step(&mut self, bytes: &[u8], out: &mut Vec<u8>, flush: FlushCompress) -> Status {
        if out.capacity() - out.len() < ROOM_BYTES_MIN / 4 {
            out.reserve(ROOM_BYTES_MIN.max(bytes.len() / 4));
        }
        self.0
            .compress_vec(bytes, out, flush)
            .expect("compression in memory does not fail")
    }
}
