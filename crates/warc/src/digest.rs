//! Digests as WARC files customarily write them: SHA-1 in Base32.

use sha1::{Digest, Sha1};

/// RFC 4648 section 6.
const BASE32_ALPHABET: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

/// Returns the labelled digest of `bytes` for `WARC-Block-Digest` and `WARC-Payload-Digest`: `sha1:` and 32 Base32
/// characters.
#[must_use]
pub fn payload_digest(bytes: &[u8]) -> String {
    let digest = Sha1::digest(bytes);
    let mut text = String::with_capacity(37);
    text.push_str("sha1:");
    // 20 bytes are four groups of 40 bits, so no padding ever occurs.
    for group in digest.chunks_exact(5) {
        let bits = group
            .iter()
            .fold(0_u64, |bits, byte| bits << 8 | u64::from(*byte));
        for index in (0..8).rev() {
            let letter = (bits >> (index * 5)) & 31;
            text.push(char::from(
                BASE32_ALPHABET[usize::try_from(letter).unwrap_or(0)],
            ));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::payload_digest;

    #[test]
    fn known_digests() {
        // The digest of nothing, seen throughout public archives.
        assert_eq!(payload_digest(b""), "sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ");
        // SHA-1("abc") = a9993e36 4706816a ba3e2571 7850c26c 9cd0d89d (FIPS 180-1).
        assert_eq!(
            payload_digest(b"abc"),
            "sha1:VGMT4NSHA2AWVOR6EVYXQUGCNSONBWE5"
        );
    }
}
