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

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::{KEY_VERSION, KeySeed, UrlKey};
    use crate::{CanonicalUrl, Canonicalizer};

    fn url(text: &str) -> CanonicalUrl {
        Canonicalizer::default()
            .canonicalize(text)
            .expect("the text is a URL")
    }

    #[test]
    fn the_first_byte_is_the_partition_of_the_host() {
        let seed = KeySeed::new(7);
        for text in [
            "http://a/",
            "http://a/b?c",
            "https://a/",
            "http://a:81/",
            "http://b/",
        ] {
            let url = url(text);
            let key = seed.key(&url);
            assert_eq!(key.to_bytes()[0], key.partition().get());
            assert_eq!(key.partition(), seed.partition(url.host_str()), "{text}");
        }
        let partition = |text| seed.key(&url(text)).partition();
        assert_eq!(partition("http://a/"), partition("http://a/another/page"));
    }

    #[test]
    fn the_seed_changes_every_part_of_the_key() {
        let url = url("http://example.org/page");
        let keys: Vec<UrlKey> = (0..64).map(|seed| KeySeed::new(seed).key(&url)).collect();
        let partitions: HashSet<u8> = keys.iter().map(|key| key.partition().get()).collect();
        let rests: HashSet<u128> = keys.iter().map(|key| key.as_u128() << 8).collect();
        assert!(
            partitions.len() > 32,
            "{} partitions under 64 seeds",
            partitions.len()
        );
        assert_eq!(rests.len(), 64);
    }

    /// The figures were computed with the reference implementation of xxh3; a change of them is a new version.
    #[test]
    fn the_rule_of_version_1_is_fixed() {
        let url = url("http://example.org/");
        assert_eq!(KEY_VERSION, 1);
        for (seed, key) in [
            (0, 0x37da_b8d4_2ad2_2180_70c0_1982_47c2_304a),
            (
                0x0123_4567_89ab_cdef,
                0x2ad2_0510_84ef_62f0_bf36_c010_033e_2252,
            ),
        ] {
            assert_eq!(KeySeed::new(seed).key(&url), UrlKey::from_u128(key));
        }
    }

    #[test]
    fn equal_urls_share_a_key_and_others_do_not() {
        let seed = KeySeed::new(1);
        let same = ["http://a.:80/%7Eb?#c", "HTTP://A/~b", "http://u@a/./~b?"];
        let keys: HashSet<UrlKey> = same.iter().map(|text| seed.key(&url(text))).collect();
        assert_eq!(keys.len(), 1);
        let different = [
            "http://a/b",
            "http://a/b/",
            "http://a/B",
            "https://a/b",
            "http://a/b?c",
        ];
        let keys: HashSet<UrlKey> = different.iter().map(|text| seed.key(&url(text))).collect();
        assert_eq!(keys.len(), different.len());
    }

    #[test]
    fn hosts_spread_evenly_over_the_partitions() {
        let mut host_counts = [0_u32; 256];
        for seed in [0, u64::MAX] {
            for host in 0..12_800 {
                let partition = KeySeed::new(seed).partition(&format!("http://host{host}.example"));
                host_counts[usize::from(partition.get())] += 1;
            }
        }
        // 25,600 hosts make 100 a partition, give or take a standard deviation of 10.
        assert!(
            host_counts.iter().all(|count| (50..=150).contains(count)),
            "{host_counts:?}"
        );
    }

    #[test]
    fn every_bit_below_the_partition_is_a_coin() {
        let mut one_counts = [0_u32; 120];
        for page in 0..4_096 {
            let key = KeySeed::new(3)
                .key(&url(&format!("http://a/{page}")))
                .as_u128();
            for (bit, count) in one_counts.iter_mut().enumerate() {
                *count += u32::from(key >> bit & 1 == 1);
            }
        }
        // 2,048 ones a bit are expected, with a standard deviation of 32.
        assert!(
            one_counts
                .iter()
                .all(|count| (1_856..=2_240).contains(count)),
            "{one_counts:?}"
        );
    }

    #[test]
    fn bytes_and_numbers_come_back_and_keep_the_order() {
        let mut keys: Vec<UrlKey> = (0..1_000)
            .map(|page| KeySeed::new(9).key(&url(&format!("http://h{page}/"))))
            .collect();
        for key in &keys {
            assert_eq!(UrlKey::from_bytes(key.to_bytes()), *key);
            assert_eq!(UrlKey::from_u128(key.as_u128()), *key);
        }
        keys.sort_unstable();
        assert!(keys.is_sorted_by_key(|key| key.to_bytes()));
        assert!(keys.is_sorted_by_key(|key| key.partition()));
        assert_eq!(KeySeed::new(42).get(), 42);
    }
}
