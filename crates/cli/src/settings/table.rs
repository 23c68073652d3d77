//! The table of settings.

use std::{path::PathBuf, str::FromStr as _};

use engine::{ConnectTo, ScopeRule, SeenMode};

use super::{
    Kind, Schema, Setting, StoreUri, Value,
    convert::{
        bytes_of, count_of, duration, header_value, is_on, not_empty, number, optional,
        optional_count, patterns, positive_duration, proxy_url, put, rate, store_uri, text, texts,
    },
    row::{BYTES, COUNT, COUNT_FROM_1, count_to, setting, switch},
};

const OUTPUTS: &str = "Data and store";
const LIMITS: &str = "Limits";
const SCOPE: &str = "Scope";
const PACE: &str = "Pace and politeness";
const SEEN: &str = "The seen test";
const MEMORY: &str = "Memory";
const REQUESTS: &str = "Requests";
const CANONICAL: &str = "Canonical URLs";
const MESSAGES: &str = "Messages";

/// Every setting, in the order of the template and of `config show`.
pub(crate) static TABLE: &[Setting] = &[
    setting(
        OUTPUTS,
        "data",
        Kind::Text("DIR"),
        "The folder of the outputs and of the embedded store. A second run on the same folder resumes.",
        |s| Value::Text(s.crawl.data.display().to_string()),
        |s, v| {
            s.crawl.data = PathBuf::from(not_empty(text(v)?)?);
            Ok(())
        },
    )
    .for_demo(),
    setting(
        OUTPUTS,
        "store",
        Kind::Text("URI"),
        "Where keys, queue and records are kept: embedded: (within the data folder) or postgres://user@host/database.",
        |s| Value::Text(s.store.0.clone()),
        |s, v| {
            s.store = StoreUri(store_uri(text(v)?)?);
            Ok(())
        },
    )
    .secret()
    .for_demo(),
    setting(
        OUTPUTS,
        "schema",
        Kind::Text("NAME"),
        "The PostgreSQL schema that holds the crawl's tables; one crawl a schema.",
        |s| Value::Text(s.schema.0.clone()),
        |s, v| {
            s.schema = Schema(not_empty(text(v)?)?);
            Ok(())
        },
    )
    .for_demo(),
    setting(
        OUTPUTS,
        "warc",
        switch("no-warc"),
        "Write WARC files of all exchanges.",
        |s| Value::Switch(s.crawl.warc),
        |s, v| put(&mut s.crawl.warc, is_on(&v)),
    )
    .for_demo(),
    setting(
        OUTPUTS,
        "warc-size",
        BYTES,
        "The size at which a WARC file is closed and the next begun.",
        |s| Value::Bytes(s.crawl.warc_bytes_max),
        |s, v| put(&mut s.crawl.warc_bytes_max, number(v)),
    )
    .advanced(),
    setting(
        LIMITS,
        "max-pages",
        COUNT_FROM_1,
        "Stop after this many pages with a response, counted over all runs.",
        |s| optional_count(s.crawl.limits.max_pages),
        |s, v| put(&mut s.crawl.limits.max_pages, optional(v)),
    )
    .or_unset("no limit"),
    setting(
        LIMITS,
        "max-pages-per-domain",
        COUNT_FROM_1,
        "Fetch at most this many pages of one registered domain, counted over all runs; requests that are under way by then still count. What is queued of it stays, for a run with a larger limit.",
        |s| optional_count(s.crawl.limits.max_pages_per_domain),
        |s, v| put(&mut s.crawl.limits.max_pages_per_domain, optional(v)),
    )
    .advanced()
    .or_unset("no limit"),
    setting(
        LIMITS,
        "max-depth",
        COUNT,
        "Follow at most this many links in a row from a seed; 0 fetches the seeds alone.",
        |s| optional_count(s.crawl.limits.max_depth),
        |s, v| put(&mut s.crawl.limits.max_depth, optional(v)),
    )
    .or_unset("no limit"),
    setting(
        LIMITS,
        "max-time",
        Kind::Duration,
        "Begin no request after this time, and end when those under way have; each run has it anew.",
        |s| s.crawl.limits.max_time.map_or(Value::Unset, Value::Duration),
        |s, v| {
            s.crawl.limits.max_time = if v == Value::Unset { None } else { Some(duration(&v)?) };
            Ok(())
        },
    )
    .or_unset("no limit"),
    setting(
        LIMITS,
        "max-bytes",
        BYTES,
        "Stop after this many bytes of bodies on the wire, counted over all runs.",
        |s| s.crawl.limits.max_bytes.map_or(Value::Unset, Value::Bytes),
        |s, v| put(&mut s.crawl.limits.max_bytes, optional(v)),
    )
    .or_unset("no limit"),
    setting(
        SCOPE,
        "scope",
        Kind::Text("RULE"),
        "Which URLs belong to the crawl, relative to its seeds: host (the same host name, and port if it is not the scheme's own), domain (the same registered domain), prefix (below the folder of a seed), or any.",
        |s| Value::Text(s.crawl.scope.to_string()),
        |s, v| put(&mut s.crawl.scope, ScopeRule::from_str(&text(v)?).map_err(|error| error.to_string())),
    ),
    setting(
        SCOPE,
        "include",
        Kind::List("REGEX"),
        "Crawl only URLs that match one of these regular expressions; seeds, what they redirect to, and sitemaps need not match.",
        |s| Value::List(s.crawl.include.clone()),
        |s, v| put(&mut s.crawl.include, patterns(v)),
    ),
    setting(
        SCOPE,
        "exclude",
        Kind::List("REGEX"),
        "Never crawl URLs that match one of these regular expressions, seeds included.",
        |s| Value::List(s.crawl.exclude.clone()),
        |s, v| put(&mut s.crawl.exclude, patterns(v)),
    ),
    setting(
        SCOPE,
        "max-redirects",
        COUNT,
        "Follow at most this many redirects, or sitemaps within sitemaps, in a row.",
        |s| Value::Count(s.crawl.redirects_max.into()),
        |s, v| put(&mut s.crawl.redirects_max, number(v)),
    )
    .advanced(),
    setting(
        SCOPE,
        "max-repeats",
        count_to(u16::MAX as u64),
        "Refuse links in whose path a segment with a letter, or two neighbouring segments, come more often than this, or in whose query a parameter does with its value: servers that answer everything make such links without end.",
        |s| Value::Count(s.crawl.repeats_max.into()),
        |s, v| put(&mut s.crawl.repeats_max, number(v)),
    )
    .advanced(),
    setting(
        SCOPE,
        "max-links",
        COUNT,
        "Take at most this many links from one page, and 512 bytes of URLs for each (1 MiB at least); of a sitemap or feed as many bytes, and 50_000 links.",
        |s| count_of(s.crawl.outlinks_max),
        |s, v| put(&mut s.crawl.outlinks_max, number(v)),
    )
    .advanced()
    .for_demo(),
    setting(
        PACE,
        "concurrency",
        count_to(100_000),
        "Requests under way in all.",
        |s| Value::Count(s.crawl.concurrency.into()),
        |s, v| put(&mut s.crawl.concurrency, number(v)),
    )
    .for_demo(),
    setting(
        PACE,
        "per-host",
        count_to(100_000),
        "Requests under way to one host.",
        |s| Value::Count(s.crawl.per_host.into()),
        |s, v| put(&mut s.crawl.per_host, number(v)),
    ),
    setting(
        PACE,
        "per-ip",
        COUNT_FROM_1,
        "Requests under way to one IP address.",
        |s| optional_count(s.crawl.per_ip),
        |s, v| put(&mut s.crawl.per_ip, optional(v)),
    )
    .or_unset("4, with loopback, proxy and connect-to addresses exempt"),
    setting(
        PACE,
        "delay",
        Kind::Duration,
        "The pause between the end of one response of a host and its next request. A longer Crawl-delay or Retry-After of the host wins.",
        |s| Value::Duration(s.crawl.delay),
        |s, v| put(&mut s.crawl.delay, duration(&v)),
    ),
    setting(
        PACE,
        "attempts-max",
        COUNT_FROM_1,
        "Tries of a URL in all before it is given up.",
        |s| Value::Count(s.crawl.attempts_max.into()),
        |s, v| put(&mut s.crawl.attempts_max, number(v)),
    )
    .advanced(),
    setting(
        PACE,
        "host-attempts-max",
        COUNT_FROM_1,
        "Tries to resolve a host, and to get its robots.txt, before all its URLs are given up; the pauses between them double from 5s.",
        |s| Value::Count(s.crawl.host_attempts_max.into()),
        |s, v| put(&mut s.crawl.host_attempts_max, number(v)),
    )
    .advanced(),
    setting(
        PACE,
        "leases-max",
        count_to(1_000_000),
        "The most URLs under way and not yet durably recorded, and so the most fetched again after a kill.",
        |s| optional_count(s.crawl.leases_max),
        |s, v| put(&mut s.crawl.leases_max, optional(v)),
    )
    .or_unset("twice the concurrency, at least 128")
    .advanced()
    .for_demo(),
    setting(
        PACE,
        "parse-threads",
        count_to(1_024),
        "Threads that parse pages.",
        |s| s.crawl.parse_threads.map_or(Value::Unset, count_of),
        |s, v| put(&mut s.crawl.parse_threads, optional(v)),
    )
    .or_unset("one a core")
    .advanced()
    .for_demo(),
    setting(
        PACE,
        "robots",
        switch("no-robots"),
        "Obey robots.txt. Turn it off only for sites of your own.",
        |s| Value::Switch(s.crawl.robots),
        |s, v| put(&mut s.crawl.robots, is_on(&v)),
    )
    .without_flag(),
    setting(
        PACE,
        "sitemaps",
        switch("no-sitemaps"),
        "Read the sitemaps that robots.txt files name. Those that are seeds, or that pages link to, are read in any case.",
        |s| Value::Switch(s.crawl.sitemaps),
        |s, v| put(&mut s.crawl.sitemaps, is_on(&v)),
    )
    .advanced(),
    setting(
        PACE,
        "nofollow",
        switch("no-nofollow"),
        "Do not follow the links that a page asks not to be followed: those with rel=nofollow, and all of a page whose robots meta element or X-Robots-Tag header says nofollow.",
        |s| Value::Switch(s.crawl.nofollow),
        |s, v| put(&mut s.crawl.nofollow, is_on(&v)),
    )
    .advanced(),
    setting(
        PACE,
        "drain-timeout",
        Kind::Duration,
        "The longest that Ctrl-C, SIGTERM or a limit waits for the requests under way; what is dropped then is requested again on resume.",
        |s| Value::Duration(s.crawl.drain_timeout),
        |s, v| put(&mut s.crawl.drain_timeout, duration(&v)),
    )
    .advanced(),
    setting(
        SEEN,
        "seen-mode",
        Kind::Text("MODE"),
        "What answers whether a URL is known: bloom+store (the filter, and the store where it says yes), bloom (the filter alone: a few URLs are lost, and the report says how many), exact (a set of all keys in memory) or store (the store alone, for every link). The first is meant for crawls, the others to compare it with; a crawl goes on in the mode it was begun in, only bloom+store and exact may follow each other.",
        |s| Value::Text(s.crawl.seen_mode.to_string()),
        |s, v| put(&mut s.crawl.seen_mode, SeenMode::from_str(&text(v)?).map_err(|error| error.to_string())),
    )
    .advanced(),
    setting(
        SEEN,
        "expected-urls",
        COUNT_FROM_1,
        "Distinct URLs that the filter is sized for. It grows at 80 % of them, so give a quarter more than you expect.",
        |s| Value::Count(s.crawl.expected_urls),
        |s, v| put(&mut s.crawl.expected_urls, number(v)),
    )
    .for_demo(),
    setting(
        SEEN,
        "false-positive-rate",
        Kind::Rate,
        "The false-positive rate that the filter stays below. No URL is lost to one; each costs one store read.",
        |s| Value::Rate(s.crawl.false_positive_rate),
        |s, v| put(&mut s.crawl.false_positive_rate, rate(&v)),
    )
    .for_demo(),
    setting(
        SEEN,
        "cache",
        Kind::Bytes { max: 1 << 36 },
        "The most memory of the exact cache of recent URLs, which answers most true duplicates (64 bytes for six URLs).",
        |s| bytes_of(s.crawl.cache_bytes),
        |s, v| {
            s.crawl.keeps_cache = true;
            put(&mut s.crawl.cache_bytes, number(v))
        },
    )
    .advanced()
    .for_demo(),
    setting(
        SEEN,
        "huge-pages",
        switch("no-huge-pages"),
        "Ask the system for huge pages for filter and cache, which makes large ones faster where it has them.",
        |s| Value::Switch(s.crawl.huge_pages),
        |s, v| put(&mut s.crawl.huge_pages, is_on(&v)),
    )
    .advanced()
    .for_demo(),
    setting(
        SEEN,
        "checkpoint-interval",
        Kind::Duration,
        "Time between two snapshots of the filter while the crawl goes on: a start after a kill reads the last one and the keys logged since, in place of all keys of the store. Saving takes a twentieth of the time at most.",
        |s| Value::Duration(s.crawl.checkpoint_interval),
        |s, v| put(&mut s.crawl.checkpoint_interval, duration(&v)),
    )
    .advanced(),
    setting(
        SEEN,
        "fixed-filter-urls",
        COUNT_FROM_1,
        "For tests: the filter has bits for this many URLs, whatever is expected, and never grows.",
        |s| optional_count(s.crawl.fixed_filter_urls),
        |s, v| put(&mut s.crawl.fixed_filter_urls, optional(v)),
    )
    .or_unset("the filter fits expected-urls")
    .without_flag(),
    setting(
        MEMORY,
        "memory",
        BYTES,
        "The memory that the crawl keeps to, of which cache, queues and bodies get what the rest leaves; a cache size that is given stays. It is refused, with the least that will do, where it is too small. It holds up to four fifths of expected-urls, beyond which the filter grows.",
        |s| s.crawl.memory_bytes_max.map_or(Value::Unset, Value::Bytes),
        |s, v| put(&mut s.crawl.memory_bytes_max, optional(v)),
    )
    .or_unset("each part has the bound of its own setting or default, and the crawl says at its start what they come to")
    .for_demo(),
    setting(
        REQUESTS,
        "user-agent",
        Kind::Text("TEXT"),
        "The User-Agent of all requests; the letters it begins with are the name that robots.txt files address. Name a contact in it.",
        |s| Value::Text(s.crawl.fetch.user_agent.clone()),
        |s, v| {
            s.crawl.fetch.user_agent = header_value(text(v)?)?;
            Ok(())
        },
    ),
    setting(
        REQUESTS,
        "allow-private-addresses",
        switch("no-allow-private-addresses"),
        "Connect also to loopback, private, link-local and other addresses outside the public internet.",
        |s| Value::Switch(s.crawl.fetch.allow_private_addresses),
        |s, v| put(&mut s.crawl.fetch.allow_private_addresses, is_on(&v)),
    ),
    setting(
        REQUESTS,
        "connect-to",
        Kind::List("HOST:PORT:ADDR:PORT"),
        "Connect to ADDR:PORT in place of HOST:PORT, as in curl; empty fields match all. Repeatable, the first match wins.",
        |s| Value::List(s.crawl.fetch.connect_to.iter().map(ToString::to_string).collect()),
        |s, v| {
            let rules = texts(v)?.iter().map(|rule| ConnectTo::from_str(rule)).collect::<Result<_, _>>();
            put(&mut s.crawl.fetch.connect_to, rules.map_err(|error| error.to_string()))
        },
    ),
    setting(
        REQUESTS,
        "ca-file",
        Kind::Text("FILE"),
        "Trust the certificates of this PEM file beside those of the system.",
        |s| s.ca_file.as_ref().map_or(Value::Unset, |path| Value::Text(path.display().to_string())),
        |s, v| {
            s.ca_file = if v == Value::Unset { None } else { Some(PathBuf::from(not_empty(text(v)?)?)) };
            Ok(())
        },
    )
    .or_unset("those of the system alone"),
    setting(
        REQUESTS,
        "proxy",
        Kind::Text("URL"),
        "Send requests through this proxy, http:// or https://. It resolves the names, so a name that leads outside the public internet is not refused; connect-to rules with an address win over it. The system's proxy variables are not read.",
        |s| s.crawl.fetch.proxy.clone().map_or(Value::Unset, Value::Text),
        |s, v| {
            s.crawl.fetch.proxy = if v == Value::Unset { None } else { Some(proxy_url(text(v)?)?) };
            Ok(())
        },
    )
    .or_unset("no proxy")
    .secret(),
    setting(
        REQUESTS,
        "connect-timeout",
        Kind::Duration,
        "Time for a connection, its TLS handshake included.",
        |s| Value::Duration(s.crawl.fetch.connect_timeout),
        |s, v| put(&mut s.crawl.fetch.connect_timeout, positive_duration(&v)),
    )
    .advanced(),
    setting(
        REQUESTS,
        "read-timeout",
        Kind::Duration,
        "The longest wait for the next byte.",
        |s| Value::Duration(s.crawl.fetch.read_timeout),
        |s, v| put(&mut s.crawl.fetch.read_timeout, positive_duration(&v)),
    )
    .advanced(),
    setting(
        REQUESTS,
        "total-timeout",
        Kind::Duration,
        "Time for one exchange in all; a body that is not complete by then is cut.",
        |s| Value::Duration(s.crawl.fetch.total_timeout),
        |s, v| put(&mut s.crawl.fetch.total_timeout, positive_duration(&v)),
    )
    .advanced(),
    setting(
        REQUESTS,
        "max-body",
        BYTES,
        "Cut bodies at this size on the wire.",
        |s| bytes_of(s.crawl.fetch.wire_bytes_max),
        |s, v| put(&mut s.crawl.fetch.wire_bytes_max, number(v)),
    )
    .advanced()
    .for_demo(),
    setting(
        REQUESTS,
        "max-decoded-body",
        BYTES,
        "Refuse bodies over this size after content decoding.",
        |s| bytes_of(s.crawl.fetch.decoded_bytes_max),
        |s, v| put(&mut s.crawl.fetch.decoded_bytes_max, number(v)),
    )
    .advanced()
    .for_demo(),
    setting(
        CANONICAL,
        "max-url-bytes",
        BYTES,
        "Refuse URLs longer than this in canonical form.",
        |s| bytes_of(s.crawl.canonical.url_bytes_max),
        |s, v| put(&mut s.crawl.canonical.url_bytes_max, number(v)),
    )
    .advanced()
    .for_demo(),
    setting(
        CANONICAL,
        "drop-tracking",
        switch("no-drop-tracking"),
        "Drop tracking parameters from URLs (utm_*, gclid, fbclid and the like).",
        |s| Value::Switch(s.crawl.canonical.drop_tracking),
        |s, v| put(&mut s.crawl.canonical.drop_tracking, is_on(&v)),
    )
    .advanced(),
    setting(
        CANONICAL,
        "sort-query",
        switch("no-sort-query"),
        "Sort the query parameters of URLs by name.",
        |s| Value::Switch(s.crawl.canonical.sort_query),
        |s, v| put(&mut s.crawl.canonical.sort_query, is_on(&v)),
    )
    .advanced(),
    setting(
        CANONICAL,
        "drop-session-ids",
        switch("no-drop-session-ids"),
        "Drop session ids from URLs (jsessionid, phpsessid, sid and the like).",
        |s| Value::Switch(s.crawl.canonical.drop_session_ids),
        |s, v| put(&mut s.crawl.canonical.drop_session_ids, is_on(&v)),
    )
    .advanced(),
    setting(
        MESSAGES,
        "quiet",
        switch("no-quiet"),
        "Print errors and warnings only.",
        |s| Value::Switch(s.is_quiet),
        |s, v| put(&mut s.is_quiet, is_on(&v)),
    )
    .short('q')
    .for_demo(),
    setting(
        MESSAGES,
        "verbose",
        switch("no-verbose"),
        "Print the settings in force, every bad seed line and every row of the report.",
        |s| Value::Switch(s.is_verbose),
        |s, v| put(&mut s.is_verbose, is_on(&v)),
    )
    .short('v')
    .for_demo(),
    setting(
        MESSAGES,
        "json",
        switch("no-json"),
        "Print the final report to stdout as one JSON object, in place of the one for people on stderr.",
        |s| Value::Switch(s.is_json),
        |s, v| put(&mut s.is_json, is_on(&v)),
    )
    .for_demo(),
];
