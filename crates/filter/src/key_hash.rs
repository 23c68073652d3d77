//! A hasher for maps whose keys are hashes already.

use std::hash::{BuildHasherDefault, Hasher};

/// Hashes a 128-bit key by taking its low half. For keys that are hashes, and none else.
#[derive(Clone, Copy, Debug, Default)]
pub struct KeyHasher(u64);

/// Builds [`KeyHasher`]s.
pub type BuildKeyHasher = BuildHasherDefault<KeyHasher>;

impl Hasher for KeyHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    #[expect(clippy::cast_possible_truncation, reason = "the low half is wanted")]
    fn write_u128(&mut self, key: u128) {
        self.0 = key as u64;
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }
}
