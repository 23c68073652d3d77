//! The contenders: what a link stream is taken through.

use clap::ValueEnum;
use frontier::SeenMode;

/// A way to say which links are new.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Contender {
    /// The product's default: every tier, and the store asked about the filter's "yes".
    #[value(name = "bloom+store")]
    BloomStore,
    /// The product with every link asked of the store, in batches.
    #[value(name = "store")]
    Store,
    /// The product with an exact set in memory.
    #[value(name = "exact")]
    Exact,
    /// The product with the filter's word as the last: URLs are lost.
    #[value(name = "bloom")]
    Bloom,
    /// `INSERT ... ON CONFLICT DO NOTHING` for each link, awaited, on 8 connections to `PostgreSQL`.
    #[value(name = "store-one")]
    StoreOne,
    /// Redis `SADD`, the links of a page pipelined.
    #[value(name = "redis")]
    Redis,
    /// Redis `SADD`, one awaited for each link, on 8 connections.
    #[value(name = "redis-one")]
    RedisOne,
}

impl Contender {
    /// Returns the name, as the command line and the table have it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::BloomStore => SeenMode::BloomStore.name(),
            Self::Store => SeenMode::Store.name(),
            Self::Exact => SeenMode::Exact.name(),
            Self::Bloom => SeenMode::Bloom.name(),
            Self::StoreOne => "store-one",
            Self::Redis => "redis",
            Self::RedisOne => "redis-one",
        }
    }

    /// Returns the mode of the product's seen test, if it is one.
    #[must_use]
    pub const fn seen_mode(self) -> Option<SeenMode> {
        match self {
            Self::BloomStore => Some(SeenMode::BloomStore),
            Self::Store => Some(SeenMode::Store),
            Self::Exact => Some(SeenMode::Exact),
            Self::Bloom => Some(SeenMode::Bloom),
            Self::StoreOne | Self::Redis | Self::RedisOne => None,
        }
    }

    /// Returns whether it is a Redis set.
    #[must_use]
    pub const fn is_redis(self) -> bool {
        matches!(self, Self::Redis | Self::RedisOne)
    }

    /// Returns whether one statement or command is awaited for each link, so that a stream takes long.
    #[must_use]
    pub const fn is_one_by_one(self) -> bool {
        matches!(self, Self::StoreOne | Self::RedisOne)
    }

    /// Returns whether the size of the recent-key cache matters.
    #[must_use]
    pub const fn has_cache(self) -> bool {
        matches!(self, Self::BloomStore | Self::Bloom)
    }
}
