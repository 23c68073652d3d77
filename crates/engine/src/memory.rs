//! The memory plan: what each part of a crawl may take, and how a budget is shared out among them.

use std::{fmt, num::NonZero, thread};

use filter::sizing;
use frontier::{SeenMode, WorkbenchConfig};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::{CrawlConfig, StoreConfig, room::LINK_BYTES};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// The program, the allocator's own, the buffers of the outputs, the embedded store before it has anything: the peak of a
/// crawl of two pages, with some to spare. Each thread adds its stack, its compressor and its own part of the allocator.
const PROCESS_BYTES: u64 = 24 * MIB;
const THREAD_BYTES: u64 = MIB;

/// A key in an exact set that has just grown, and the most keys that one holds before a filter takes over (`filter`).
const EXACT_KEY_BYTES: u64 = 39;
const EXACT_COUNT_MAX: u64 = 250_000;

/// The memory that the recent-key cache begins with.
const CACHE_BYTES_MIN: u64 = MIB;
/// What the cache takes of what is left of a large budget goes up to this: the modelled web needs no more.
const CACHE_BYTES_MAX: u64 = 1 << 30;

/// What may wait for a commit, WARC records and links: enough for a second of a fast crawl.
const BACKLOG_BYTES: (u64, u64) = (4 * MIB, 64 * MIB);

/// A host in the table with its name, and its place in the lanes.
const HOST_BYTES: u64 = 700;
/// A name with its addresses in the cache of names.
const NAME_BYTES: u64 = 200;
/// The fewest hosts with a window that leave a choice to a polite crawl.
const ACTIVE_HOSTS_MIN: u64 = 64;
/// Hosts without work that are remembered, the memory of the robots.txt rules of all hosts, and names, at the least.
const IDLE_HOSTS_MIN: u64 = 5_000;
const RULES_BYTES_MIN: u64 = 4 * MIB;
const NAMES_MIN: u64 = 5_000;

/// The embedded store: four memtables (33 MiB), each with one more that is being written out, its cache of blocks, and the
/// tables that a compaction has open (`store/src/embedded/layout.rs`); and a commit in the making, whose text is there
/// several times over.
const EMBEDDED_BYTES: u64 = (2 * 33 + 8 + 16 + 24) * MIB;
/// Filter and index of the table of keys stay in memory: 11 bits a key.
const EMBEDDED_KEY_BITS: u64 = 11;
/// The buffers of the connections to the database, and a commit in the making.
const POSTGRES_BYTES: u64 = 40 * MIB;

/// A connection in use: TLS state, and what the client reads ahead of the body: over HTTP/1.1 at most twice 408 KiB, which
/// is what it has in hand and what it fills meanwhile; over HTTP/2 256 KiB.
const CONNECTION_BYTES: u64 = 860 * KIB;
/// A kept-alive one that waits; there is about one for each host with a window.
const IDLE_CONNECTION_BYTES: u64 = 40 * KIB;

/// Bytes of a body that are read without asking, at the least: most pages, so that they do not wait behind a slow server.
const BODY_FREE_BYTES_MIN: u64 = 32 * KIB;
/// What all longer bodies share, at the least.
const BODIES_BYTES_MIN: u64 = 8 * MIB;

/// Pages up to this size, on the wire and decoded, are taken up by every parse thread; of larger ones only so many at a
/// time as the budget allows.
pub(crate) const SMALL_PAGE_BYTES: usize = 256 << 10;
/// Text beyond which no tree is made, and the memory of the largest tree (`parser`).
const TREE_TEXT_BYTES: u64 = 16 * MIB;
const TREE_BYTES_MAX: u64 = 60_000_000;
/// Memory of a tree for each byte of text: an element of 240 bytes for a tag of three.
const TREE_BYTES_A_BYTE: u64 = 80;
/// Memory of a page for each decoded byte beside the tree: the byte itself, and up to three of UTF-8 made of it.
const TEXT_BYTES_A_BYTE: u64 = 4;

/// What each part of a crawl may take, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryParts {
    /// The program, its threads and its buffers.
    pub process: u64,
    /// The filter, or the exact set in its place.
    pub filter: u64,
    /// The cache of recent keys.
    pub cache: u64,
    /// Links and archive records that wait for a commit.
    pub unwritten: u64,
    /// The windows of the hosts' queues, the host table, robots.txt rules, names.
    pub hosts: u64,
    /// The store's own: memtables and blocks, or the connections to the database.
    pub store: u64,
    /// Connections and what they read ahead.
    pub connections: u64,
    /// Bodies that are being fetched or wait to be parsed.
    pub bodies: u64,
    /// Pages being decoded, parsed and archived.
    pub parsing: u64,
}

impl MemoryParts {
    /// Returns each part's name, its bytes, and the settings by which it can be lowered, that which does most first (none:
    /// an empty text).
    #[must_use]
    pub const fn rows(&self) -> [(&'static str, u64, &'static str); 9] {
        [
            ("process", self.process, "parse-threads"),
            ("filter", self.filter, "expected-urls"),
            ("cache", self.cache, "cache"),
            ("unwritten", self.unwritten, ""),
            ("hosts", self.hosts, "concurrency"),
            ("store", self.store, "expected-urls, if embedded"),
            ("connections", self.connections, "concurrency"),
            ("bodies", self.bodies, "max-body, leases-max"),
            (
                "parsing",
                self.parsing,
                "max-decoded-body, parse-threads, max-body, max-links, max-url-bytes",
            ),
        ]
    }

    /// Returns the sum.
    #[must_use]
    pub fn total(&self) -> u64 {
        let rows = self.rows().into_iter();
        rows.fold(0, |sum, (_, bytes, _)| sum.saturating_add(bytes))
    }
}

/// A budget that is too small for what is asked of the crawl.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub struct MemoryError {
    /// The budget in bytes.
    pub budget_bytes: u64,
    /// The least that each part needs.
    pub least: MemoryParts,
}

impl fmt::Display for MemoryError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "memory is {} MB, but the crawl needs at least",
            megabytes(self.budget_bytes)
        )?;
        let mut sign = "";
        for (name, bytes, settings) in self.least.rows() {
            write!(formatter, "{sign} {name} {}", megabytes(bytes))?;
            if !settings.is_empty() {
                write!(formatter, " ({settings})")?;
            }
            sign = " +";
        }
        write!(formatter, " = {} MB", megabytes(self.least.total()))?;
        let rows = self.least.rows().into_iter();
        // Most of the store's is fixed. Where expected-urls tell, they tell in the filter too.
        let largest = rows
            .filter(|(name, _, settings)| !settings.is_empty() && *name != "store")
            .max_by_key(|(_, bytes, _)| *bytes);
        match largest {
            Some((_, _, settings)) => write!(
                formatter,
                "; give as much, or lower the settings in brackets, first {}",
                settings.replacen(", ", ", then ", 1)
            ),
            None => Ok(()),
        }
    }
}

/// Writes bytes as millions of bytes, rounded up to a tenth.
fn megabytes(bytes: u64) -> String {
    let tenths = bytes.div_ceil(100_000);
    format!("{}.{}", tenths / 10, tenths % 10)
}

/// What the parts are allowed, so that they keep to the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MemorySizes {
    pub(crate) cache_bytes: u64,
    pub(crate) backlog_bytes: u64,
    pub(crate) active_hosts: u64,
    pub(crate) idle_hosts: u64,
    pub(crate) rules_bytes: u64,
    pub(crate) names: u64,
    pub(crate) body_free_bytes: u64,
    pub(crate) bodies_bytes: u64,
    pub(crate) large_pages: u64,
}

/// The memory plan of a crawl: an upper bound for each part. Small crawls stay far below it.
///
/// It holds for a crawl of at most four fifths of the URLs expected, beyond which the filter grows, and then the exact set and
/// what the embedded store keeps of its keys; and it grows by less than a kilobyte for each host with waiting URLs beyond a
/// hundred thousand. URLs count by their length; only the reads of up to 64 windows that run low are not in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryPlan {
    bytes: MemoryParts,
    sizes: MemorySizes,
}

impl MemoryPlan {
    /// Plans a crawl. Without a budget every part gets what it has use for. With one, filter, store, connections and a page
    /// for each parse thread come first; what is left is shared out among cache, hosts, bodies, what waits for a commit,
    /// and large pages, to each the same share of what it has use for. Of what is left then, half is for the cache.
    ///
    /// # Errors
    ///
    /// Refuses a budget that is below the least, with the arithmetic.
    pub fn new(config: &CrawlConfig) -> Result<Self, MemoryError> {
        let sizing = Sizing::new(config);
        let most = sizing.plan(Share::ALL);
        let Some(budget_bytes) = config.memory_bytes_max else {
            return Ok(most);
        };
        let least = sizing.plan(Share::NONE);
        let (least_bytes, most_bytes) = (least.bytes.total(), most.bytes.total());
        if budget_bytes < least_bytes {
            return Err(MemoryError {
                budget_bytes,
                least: least.bytes,
            });
        }
        if budget_bytes < most_bytes {
            return Ok(sizing.largest_within(budget_bytes));
        }
        Ok(sizing.with_larger_cache(most.sizes, budget_bytes - most_bytes))
    }

    /// Returns what each part may take.
    #[must_use]
    pub const fn bytes(&self) -> &MemoryParts {
        &self.bytes
    }

    pub(crate) const fn sizes(&self) -> &MemorySizes {
        &self.sizes
    }

    /// Returns the settings under which the parts keep to the plan.
    pub(crate) fn apply(&self, mut config: CrawlConfig) -> CrawlConfig {
        let sizes = &self.sizes;
        config.cache_bytes = to_usize(sizes.cache_bytes);
        config.active_hosts_max = to_usize(sizes.active_hosts);
        config.idle_hosts_max = to_usize(sizes.idle_hosts);
        config.rules_bytes_max = to_usize(sizes.rules_bytes);
        config.fetch.dns_entries_max = to_usize(sizes.names);
        config.fetch.body_free_bytes = to_usize(sizes.body_free_bytes);
        config.fetch.bodies_bytes_max = to_usize(sizes.bodies_bytes);
        config
    }
}

fn to_usize(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

/// A part of the whole, from none to all.
#[derive(Clone, Copy, Debug)]
struct Share {
    part: u64,
    whole: u64,
}

impl Share {
    const NONE: Self = Self { part: 0, whole: 1 };
    const ALL: Self = Self { part: 1, whole: 1 };

    /// Returns what lies this far between two bounds, rounded down.
    fn between(self, (low, high): (u64, u64)) -> u64 {
        let span = u128::from(high.saturating_sub(low));
        let part = span * u128::from(self.part) / u128::from(self.whole.max(1));
        low + u64::try_from(part).unwrap_or(u64::MAX)
    }
}

/// What of the settings the memory depends on.
struct Sizing<'a> {
    config: &'a CrawlConfig,
    threads: u64,
    wire_bytes_max: u64,
    decoded_bytes_max: u64,
}

impl<'a> Sizing<'a> {
    fn new(config: &'a CrawlConfig) -> Self {
        Self {
            config,
            threads: config.parse_threads_in_force() as u64,
            wire_bytes_max: config.fetch.wire_bytes_max as u64,
            decoded_bytes_max: config.fetch.decoded_bytes_max as u64,
        }
    }

    fn plan(&self, share: Share) -> MemoryPlan {
        let config = self.config;
        let cache_bytes = if self.has_cache() {
            config.cache_bytes as u64
        } else {
            0
        };
        let cache_least = if config.keeps_cache {
            cache_bytes
        } else {
            cache_bytes.min(CACHE_BYTES_MIN)
        };
        let active_hosts = config.active_hosts_max as u64;
        let active_least = u64::from(config.concurrency).max(ACTIVE_HOSTS_MIN);
        let names = config.fetch.dns_entries_max as u64;
        let free_bytes = (config.fetch.body_free_bytes as u64).min(self.wire_bytes_max);
        let from_least = |least: u64, most: u64| share.between((least.min(most), most));
        self.plan_of(MemorySizes {
            cache_bytes: from_least(cache_least, cache_bytes),
            backlog_bytes: share.between(BACKLOG_BYTES),
            active_hosts: from_least(active_least, active_hosts),
            idle_hosts: from_least(IDLE_HOSTS_MIN, config.idle_hosts_max as u64),
            rules_bytes: from_least(RULES_BYTES_MIN, config.rules_bytes_max as u64),
            names: from_least(NAMES_MIN, names),
            body_free_bytes: from_least(BODY_FREE_BYTES_MIN, free_bytes),
            bodies_bytes: from_least(BODIES_BYTES_MIN, config.fetch.bodies_bytes_max as u64),
            large_pages: share.between((1, self.threads)),
        })
    }

    /// Returns the plan of the largest share that keeps to a budget between the least and the most. It is searched for, since
    /// not every part grows evenly with its share; none gets smaller.
    fn largest_within(&self, budget_bytes: u64) -> MemoryPlan {
        const WHOLE: u64 = 1 << 20;
        let plan = |part| self.plan(Share { part, whole: WHOLE });
        let (mut within, mut beyond) = (0, WHOLE);
        while beyond - within > 1 {
            let middle = u64::midpoint(within, beyond);
            if plan(middle).bytes.total() <= budget_bytes {
                within = middle;
            } else {
                beyond = middle;
            }
        }
        plan(within)
    }

    /// Gives the cache half of what is left, unless its size was asked for.
    fn with_larger_cache(&self, mut sizes: MemorySizes, left_bytes: u64) -> MemoryPlan {
        if self.has_cache() && !self.config.keeps_cache {
            let larger = sizes.cache_bytes + left_bytes / 3;
            sizes.cache_bytes = larger.min(CACHE_BYTES_MAX).max(sizes.cache_bytes);
        }
        self.plan_of(sizes)
    }

    fn plan_of(&self, sizes: MemorySizes) -> MemoryPlan {
        let bytes = MemoryParts {
            process: PROCESS_BYTES + self.threads.saturating_add(cores()) * THREAD_BYTES,
            filter: self.filter_bytes(),
            // While it doubles, the half that it had is held too.
            cache: sizes.cache_bytes.saturating_mul(3) / 2,
            unwritten: sizes.backlog_bytes,
            hosts: self.hosts_bytes(&sizes),
            store: self.store_bytes(),
            connections: u64::from(self.config.concurrency) * CONNECTION_BYTES
                + sizes.active_hosts.saturating_mul(IDLE_CONNECTION_BYTES),
            bodies: self.bodies_bytes(&sizes),
            parsing: self.parsing_bytes(sizes.large_pages),
        };
        MemoryPlan { bytes, sizes }
    }

    const fn has_cache(&self) -> bool {
        matches!(
            self.config.seen_mode,
            SeenMode::BloomStore | SeenMode::Bloom
        )
    }

    /// The filter in its first slice, and beside it the exact set that it is made of.
    fn filter_bytes(&self) -> u64 {
        let config = self.config;
        match config.seen_mode {
            SeenMode::Store => 0,
            SeenMode::Exact => config.expected_urls.saturating_mul(EXACT_KEY_BYTES),
            SeenMode::BloomStore | SeenMode::Bloom => {
                let urls = config.fixed_filter_urls.unwrap_or(config.expected_urls);
                let bytes = sizing::lines_for(urls, config.false_positive_rate)
                    .saturating_mul(sizing::LINE_BYTES);
                bytes.saturating_add((bytes / 3).min(EXACT_COUNT_MAX * EXACT_KEY_BYTES))
            }
        }
    }

    fn store_bytes(&self) -> u64 {
        match self.config.store {
            StoreConfig::Embedded => {
                let keys = self.config.expected_urls;
                EMBEDDED_BYTES.saturating_add(keys.saturating_mul(EMBEDDED_KEY_BITS) / 8)
            }
            StoreConfig::Postgres { .. } => POSTGRES_BYTES,
        }
    }

    fn hosts_bytes(&self, sizes: &MemorySizes) -> u64 {
        let window_bytes = WorkbenchConfig::window_bytes_max(
            CrawlConfig::WINDOW_URLS_MAX,
            self.config.canonical.url_bytes_max,
        );
        // Twice as many idle ones if their pauses still run.
        let idle_hosts = sizes.idle_hosts.saturating_mul(2);
        let hosts = sizes.active_hosts.saturating_add(idle_hosts);
        (sizes.active_hosts.saturating_mul(window_bytes as u64))
            .saturating_add(hosts.saturating_mul(HOST_BYTES))
            .saturating_add(sizes.rules_bytes)
            .saturating_add(sizes.names.saturating_mul(NAME_BYTES))
    }

    /// What is free for each body, what the longer ones share, the reserve, and the longest that are being moved out of
    /// their pieces, one on each thread that fetches: all that is in pieces, where that is less. Requests for robots.txt are
    /// no leases of pages; of them there are at most as many as requests.
    fn bodies_bytes(&self, sizes: &MemorySizes) -> u64 {
        let config = self.config;
        let wire_bytes = self.wire_bytes_max;
        let bodies = u64::from(config.leases_in_force()) + u64::from(config.concurrency);
        let shared_bytes = sizes.bodies_bytes.saturating_add(wire_bytes);
        (bodies * sizes.body_free_bytes)
            .saturating_add(shared_bytes)
            .saturating_add(wire_bytes.saturating_mul(cores()).min(shared_bytes))
    }

    /// A large page for each place, and for each other thread a small one, or what it made of its last one while it waits
    /// for commits.
    fn parsing_bytes(&self, large_pages: u64) -> u64 {
        let links = self.links_bytes();
        let small = page_bytes(SMALL_PAGE_BYTES as u64, SMALL_PAGE_BYTES as u64, links);
        let large = page_bytes(self.decoded_bytes_max, self.wire_bytes_max, links).max(small);
        let waiting = self.wire_bytes_max.saturating_add(links);
        let small_pages = self.threads.saturating_sub(large_pages);
        (large_pages.saturating_mul(large))
            .saturating_add(small_pages.saturating_mul(small.max(waiting)))
    }

    /// The links of one page, or the entries of a sitemap, whose URLs come to as much as they may together; they share the referrer.
    fn links_bytes(&self) -> u64 {
        let url_bytes = self.config.canonical.url_bytes_max as u64;
        let links = self.config.outlinks_max.max(parser::ENTRIES_MAX) as u64;
        let together_bytes = parser::outlink_bytes_max(self.config.outlinks_max) as u64;
        (links.saturating_mul(url_bytes))
            .min(together_bytes)
            .saturating_add(links.saturating_mul(LINK_BYTES))
            .saturating_add(url_bytes)
    }
}

/// The most that one page takes: as a tree; or, after that, decoded with its links, or with them copied into a record that is
/// compressed into a buffer that grows by halves.
fn page_bytes(decoded_bytes: u64, wire_bytes: u64, links_bytes: u64) -> u64 {
    let in_tree = decoded_bytes.min(TREE_TEXT_BYTES);
    let with_tree = in_tree * TEXT_BYTES_A_BYTE + (in_tree * TREE_BYTES_A_BYTE).min(TREE_BYTES_MAX);
    let without_tree = decoded_bytes.saturating_mul(TEXT_BYTES_A_BYTE);
    let with_links = without_tree
        .max(wire_bytes.saturating_mul(3))
        .saturating_add(links_bytes);
    with_tree.max(with_links)
}

/// Returns the processors that the process may use.
fn cores() -> u64 {
    thread::available_parallelism().map_or(1, NonZero::get) as u64
}

#[cfg(test)]
#[path = "memory_test.rs"]
mod tests;
