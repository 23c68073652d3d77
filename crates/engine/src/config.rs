//! What a crawl is asked to do: every setting, with its default and its unit.

use std::{num::NonZero, path::PathBuf, thread, time::Duration};

use fetcher::FetchConfig;
use frontier::{ScopeRule, SeenMode};
use types::CanonicalOptions;

/// Every setting of one crawl. [`CrawlConfig::default`] holds the documented defaults.
#[derive(Clone, Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a setting of its own, and none excludes another"
)]
pub struct CrawlConfig {
    /// The folder of the crawl's outputs, its lock, and the embedded store.
    pub data: PathBuf,
    /// Which store holds keys, queue and records.
    pub store: StoreConfig,
    /// When to stop before everything is fetched.
    pub limits: Limits,
    /// Requests under way in all.
    pub concurrency: u32,
    /// Requests under way to one host.
    pub per_host: u32,
    /// Requests under way to one IP address; `None`: 4, with loopback, proxy and connect-to addresses exempt.
    pub per_ip: Option<u32>,
    /// The pause between the end of one response of a host and the start of its next request.
    pub delay: Duration,
    /// The most leases not yet durably released, and so the most URLs fetched again after a kill;
    /// `None`: twice the concurrency, at least 128.
    pub leases_max: Option<u32>,
    /// Tries of a URL in all before it is given up.
    pub attempts_max: u16,
    /// Tries to resolve a host, and to get its robots.txt, before all its URLs are given up. The pauses between them
    /// double from five seconds: five tries take 75 seconds.
    pub host_attempts_max: u16,
    /// Which URLs belong to the crawl, relative to its seeds.
    pub scope: ScopeRule,
    /// If not empty, a URL must match one of these regular expressions.
    pub include: Vec<String>,
    /// A URL that matches one of these regular expressions is refused.
    pub exclude: Vec<String>,
    /// Redirects followed in a row.
    pub redirects_max: u8,
    /// How often a part of a link's path or query may come in it.
    pub repeats_max: u16,
    /// Whether robots.txt is obeyed. Off only for sites of one's own.
    pub robots: bool,
    /// Whether the sitemaps that robots.txt files name are read. Those that are seeds, or that pages link to, always are.
    pub sitemaps: bool,
    /// What answers whether a URL is known.
    pub seen_mode: SeenMode,
    /// URLs that the filter is sized for; it grows with more.
    pub expected_urls: u64,
    /// The false-positive rate that the filter stays below, between 0 and 1.
    pub false_positive_rate: f64,
    /// For tests: bits for this many URLs, whatever is expected, and no growth.
    pub fixed_filter_urls: Option<u64>,
    /// The memory that the crawl keeps to, in bytes; [`MemoryPlan`](crate::MemoryPlan) shares it out. `None`: every part has
    /// the bound that its own setting or its default gives it.
    pub memory_bytes_max: Option<u64>,
    /// The most memory of the recent-key cache, in bytes (64 for six keys).
    pub cache_bytes: usize,
    /// Whether the cache keeps that size whatever `memory_bytes_max` says.
    pub keeps_cache: bool,
    /// Hosts whose next URLs, 64 each, are held in memory; the plan may set it lower.
    pub active_hosts_max: usize,
    /// Hosts without work that are remembered; the plan may set it lower.
    pub idle_hosts_max: usize,
    /// The memory of robots.txt rules, in bytes, beyond which those of hosts that are not active are forgotten; the plan may
    /// set it lower.
    pub rules_bytes_max: usize,
    /// Whether filter and cache ask for huge pages.
    pub huge_pages: bool,
    /// The time between two snapshots of the filter while the crawl goes on.
    pub checkpoint_interval: Duration,
    /// The longest that a stop, or a limit, waits for the requests under way.
    pub drain_timeout: Duration,
    /// How URLs are made canonical.
    pub canonical: CanonicalOptions,
    /// How requests are sent.
    pub fetch: FetchConfig,
    /// Threads that parse; `None`: one a core.
    pub parse_threads: Option<usize>,
    /// Links taken from one page.
    pub outlinks_max: usize,
    /// Whether `nofollow` is obeyed: of links, of `<meta name=robots>`, of `X-Robots-Tag`.
    pub nofollow: bool,
    /// Whether WARC files are written.
    pub warc: bool,
    /// The size at which a WARC file is closed and the next begun, in bytes.
    pub warc_bytes_max: u64,
}

impl CrawlConfig {
    /// Requests under way to one IP address where nothing else is asked for.
    pub const PER_IP_DEFAULT: u32 = 4;

    /// URLs held in memory for one host.
    pub const WINDOW_URLS_MAX: usize = 64;

    /// Returns the number of parse threads: the one asked for, else one a core.
    #[must_use]
    pub fn parse_threads_in_force(&self) -> usize {
        let cores = || thread::available_parallelism().map_or(1, NonZero::get);
        self.parse_threads.unwrap_or_else(cores).max(1)
    }

    /// Returns the cap on leases in force: the one asked for, else twice the concurrency and at least 128.
    #[must_use]
    pub fn leases_in_force(&self) -> u32 {
        self.leases_max
            .unwrap_or_else(|| self.concurrency.saturating_mul(2).max(128))
    }

    /// Returns the product token of the user agent, the name that robots.txt files address (RFC 9309, section 2.2.1).
    #[must_use]
    pub fn product_token(&self) -> &str {
        let agent = self.fetch.user_agent.as_str();
        let end = agent
            .find(|letter: char| !(letter.is_ascii_alphabetic() || matches!(letter, '-' | '_')));
        &agent[..end.unwrap_or(agent.len())]
    }
}

/// Which store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreConfig {
    /// A key-value store within the data folder.
    Embedded,
    /// A `PostgreSQL` database.
    Postgres {
        /// Its connection string, `postgres://...`.
        uri: String,
        /// The schema that holds the crawl's tables; one crawl a schema.
        schema: String,
    },
}

impl StoreConfig {
    /// Returns the backend's name in reports.
    pub(crate) const fn backend(&self) -> &'static str {
        match self {
            Self::Embedded => "embedded",
            Self::Postgres { .. } => "postgres",
        }
    }
}

/// Limits at which a crawl stops; each can be raised to go on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Pages with a response.
    pub max_pages: Option<u64>,
    /// Pages with a response of one registered domain, over all runs; what is queued beyond stays queued.
    pub max_pages_per_domain: Option<u64>,
    /// Links followed from a seed; deeper candidates are refused.
    pub max_depth: Option<u32>,
    /// Time of this run.
    pub max_time: Option<Duration>,
    /// Bytes of bodies on the wire.
    pub max_bytes: Option<u64>,
}

impl Default for CrawlConfig {
    fn default() -> Self {
        Self {
            data: PathBuf::from("bloomcrawl-data"),
            store: StoreConfig::Embedded,
            limits: Limits::default(),
            concurrency: 64,
            per_host: 1,
            per_ip: None,
            delay: Duration::from_secs(1),
            leases_max: None,
            attempts_max: 3,
            host_attempts_max: 5,
            scope: ScopeRule::Domain,
            include: Vec::new(),
            exclude: Vec::new(),
            redirects_max: 10,
            repeats_max: 4,
            robots: true,
            sitemaps: true,
            seen_mode: SeenMode::BloomStore,
            expected_urls: 10_000_000,
            false_positive_rate: 0.01,
            fixed_filter_urls: None,
            memory_bytes_max: None,
            cache_bytes: 64_000_000,
            keeps_cache: false,
            active_hosts_max: 2_000,
            idle_hosts_max: 50_000,
            rules_bytes_max: 64 << 20,
            huge_pages: true,
            checkpoint_interval: Duration::from_mins(1),
            drain_timeout: Duration::from_secs(8),
            canonical: CanonicalOptions::default(),
            fetch: FetchConfig::default(),
            parse_threads: None,
            outlinks_max: 10_000,
            nofollow: true,
            warc: true,
            warc_bytes_max: 1_000_000_000,
        }
    }
}
