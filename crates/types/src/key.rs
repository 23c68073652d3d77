//! URL keys: the 128-bit names under which the seen test and the store know a URL.

use xxhash_rust::xxh3::xxh3_128_with_seed;

use crate::CanonicalUrl;

/// The version of the rule that turns a canonical URL into a [`UrlKey`]; stored with every crawl.
pub const KEY_VERSION: u16 = 1;

/// The secret seed of one crawl's keys, so that no site can craft URLs that collide.
///
/// Drawn at random when a crawl is created and stored with its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeySeed(u64);

impl KeySeed {
    /// Wraps a 64-bit seed.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns the 64-bit seed, to be stored.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// Returns the key of `url`: eight bits of partition (a hash of its host), then the low 120 bits of
    /// xxh3-128 of its canonical text, both seeded.
    ///
    /// Carrying the partition inside the key costs no stored byte and sorts keys by partition. Among
    /// 10^9 URLs the chance of any collision in 120 bits is about 4e-19.
    #[must_use]
    pub fn key(self, url: &CanonicalUrl) -> UrlKey {
        let partition = self.partition(url.host_str());
        let hash = xxh3_128_with_seed(url.as_str().as_bytes(), self.0);
        UrlKey((u128::from(partition.0) << 120) | (hash & (u128::MAX >> 8)))
    }

    /// Returns the partition of a host, given as scheme and authority (`https://example.org`).
    #[must_use]
    pub fn partition(self, host: &str) -> Partition {
        Partition((xxh3_128_with_seed(host.as_bytes(), self.0) >> 120) as u8)
    }
}

/// One of the 256 partitions into which a crawl's hosts are hashed; the unit of ownership beyond one machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Partition(u8);

impl Partition {
    /// Returns the partition's number, 0 to 255.
    #[must_use]
    pub const fn get(self) -> u8 {
        self.0
    }
}

/// The 128-bit key of a canonical URL; its first byte is the partition of the URL's host.
///
/// Keys order as their big-endian bytes do, so sorted keys are sorted in every store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UrlKey(u128);

impl UrlKey {
    /// Rebuilds a key from its number; for stores and tests, since only [`KeySeed::key`] makes new ones.
    #[must_use]
    pub const fn from_u128(value: u128) -> Self {
        Self(value)
    }

    /// Returns the key as a number.
    #[must_use]
    pub const fn as_u128(self) -> u128 {
        self.0
    }

    /// Rebuilds a key from the 16 big-endian bytes of [`UrlKey::to_bytes`].
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(u128::from_be_bytes(bytes))
    }

    /// Returns the key as 16 big-endian bytes, the form in which stores keep it.
    #[must_use]
    pub const fn to_bytes(self) -> [u8; 16] {
        self.0.to_be_bytes()
    }

    /// Returns the partition of the URL's host.
    #[must_use]
    pub const fn partition(self) -> Partition {
        Partition((self.0 >> 120) as u8)
    }
}
