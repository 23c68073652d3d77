//! The command line of the benchmark.

use clap::{Parser, ValueEnum};

use super::{
    contender::Contender,
    quantity::{bytes, count, share, small_count},
    workload::StreamName,
};

/// Links of a stream with `--quick`.
const QUICK_LINKS: u64 = 150_000;
/// Links of the contenders that await each, with `--quick`.
const QUICK_ONE_LINKS: u64 = 10_000;

/// Where keys are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum StoreKind {
    /// A server of its own, in a temporary folder, or the one of `--uri`.
    Postgres,
    /// The product's embedded store, in a temporary folder.
    Embedded,
    /// A set of keys in the benchmark's memory that counts calls: for read counts of long streams.
    Memory,
}

impl StoreKind {
    /// Returns the name, as the command line has it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Postgres => "postgres",
            Self::Embedded => "embedded",
            Self::Memory => "memory",
        }
    }
}

/// Takes link streams through the seen test in each of its modes and through what crawlers use without it, each in a
/// process of its own, and prints a table for each stream.
#[derive(Clone, Debug, Parser)]
#[command(
    name = "cargo bench -p benches --bench seen_test --",
    after_help = "The streams `links` and `idn` need BLOOMCRAWL_CORPORA; `docs` needs Debian's packages postgresql-doc \
        and python3-doc.\nWhat is too slow for a long stream is given its beginning alone, see --one-links."
)]
pub struct Options {
    /// Streams, comma-separated
    #[arg(long, value_enum, value_delimiter = ',', default_value = "links")]
    pub stream: Vec<StreamName>,
    /// Contenders, comma-separated [default: all]
    #[arg(long, value_enum, value_delimiter = ',', hide_default_value = true,
        default_values = ["bloom+store", "store", "store-one", "exact", "bloom", "redis", "redis-one"])]
    pub mode: Vec<Contender>,
    /// The store behind `bloom+store` and `store`
    #[arg(long, value_enum, default_value = "postgres")]
    pub store: StoreKind,
    /// A `PostgreSQL` server to use in place of a temporary one; a schema is made in the database, and dropped
    #[arg(long)]
    pub uri: Option<String>,
    /// Links of the stream `model`, and the most of any other, in whole pages
    #[arg(long, value_parser = count, default_value = "10M")]
    pub links: u64,
    /// Hosts of the stream `model`
    #[arg(long, value_parser = small_count, default_value = "100k")]
    pub hosts: u32,
    /// Hosts active at a time in the stream `model`, comma-separated: a table each
    #[arg(long, value_parser = small_count, value_delimiter = ',', default_value = "2k,20k,100k")]
    pub active: Vec<u32>,
    /// The seed of the stream `model`
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Sizes of the recent-key cache, comma-separated: a row each
    #[arg(long, value_parser = bytes, value_delimiter = ',', default_value = "64MB")]
    pub cache: Vec<u64>,
    /// The filter's false-positive rate; it is sized for the distinct URLs of the stream
    #[arg(long, value_parser = share, default_value = "1%")]
    pub rate: f64,
    /// Threads that admit pages
    #[arg(long, default_value_t = 2)]
    pub threads: usize,
    /// Links, in whole pages from the beginning, of the contenders that await an answer for each
    #[arg(long, value_parser = count, default_value = "200k")]
    pub one_links: u64,
    /// Shrink everything to seconds: the beginning of the stream `links` if it is there, else a short model
    #[arg(long)]
    pub quick: bool,
    /// URLs that the filter is sized for; it grows with more [default: the distinct URLs of the stream]
    #[arg(long, value_parser = count)]
    pub expected: Option<u64>,
    /// Pages between the seen test and the store at a time: the engine's leases
    #[arg(long, default_value_t = 1_024)]
    pub pages: usize,
    /// Run this contender in this process, and print what was measured as JSON
    #[arg(long, value_enum, hide = true)]
    pub child: Option<Contender>,
    /// Cargo says this to every benchmark
    #[arg(long, hide = true)]
    pub bench: bool,
}

impl Options {
    /// Carries out `--quick`; `has_corpora` says whether the recorded streams are there.
    #[must_use]
    pub fn resolved(mut self, has_corpora: bool) -> Self {
        if self.quick {
            let stream = if has_corpora {
                StreamName::Links
            } else {
                StreamName::Model
            };
            self.stream = vec![stream];
            self.links = self.links.min(QUICK_LINKS);
            self.active.truncate(1);
            self.cache.truncate(1);
            self.one_links = self.one_links.min(QUICK_ONE_LINKS);
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory as _, Parser as _};

    use super::{Contender, Options, StreamName};

    #[test]
    fn the_command_line_is_sound_and_reads_lists() {
        Options::command().debug_assert();
        let options = Options::try_parse_from([
            "x",
            "--stream",
            "model,docs",
            "--mode",
            "bloom+store,store-one",
            "--cache",
            "16MB,64MB",
            "--links",
            "100M",
            "--bench",
        ])
        .expect("the words are right");
        assert_eq!(options.stream, [StreamName::Model, StreamName::Docs]);
        assert_eq!(options.mode, [Contender::BloomStore, Contender::StoreOne]);
        assert_eq!(options.cache, [16_000_000, 64_000_000]);
        assert_eq!(options.active, [2_000, 20_000, 100_000]);
        assert_eq!(options.links, 100_000_000);
    }

    #[test]
    fn wrong_words_are_answered_with_what_is_possible() {
        let answer = Options::try_parse_from(["x", "--mode", "blom"])
            .expect_err("no such mode")
            .to_string();
        assert!(answer.contains("bloom+store"), "{answer}");
        let answer = Options::try_parse_from(["x", "--links", "many"])
            .expect_err("no number")
            .to_string();
        assert!(answer.contains("write 5000, 100k or 10M"), "{answer}");
    }

    #[test]
    fn quick_means_the_recorded_stream_where_it_is() {
        let options = Options::try_parse_from(["x", "--quick"]).expect("the words are right");
        assert_eq!(options.clone().resolved(true).stream, [StreamName::Links]);
        let short = options.resolved(false);
        assert_eq!(
            (short.stream, short.links),
            (vec![StreamName::Model], 150_000)
        );
    }
}
