//! The command line of the benchmark.

use clap::Parser;

use crate::seen_test::{
    options::StoreKind,
    quantity::{bytes, count, small_count},
};

/// Takes a generated web through the parts of a crawl that decide what is fetched next, until so many URLs are known and
/// half of them wait; reports memory, rates, reads of the queue and disk at 10, 20, 50 and 100 % of them.
#[derive(Clone, Debug, Parser)]
#[command(name = "cargo bench -p benches --bench frontier --")]
pub struct Options {
    /// URLs to become known
    #[arg(long, value_parser = count, default_value = "10M")]
    pub known: u64,
    /// The store of keys, queue and records
    #[arg(long, value_enum, default_value = "embedded")]
    pub store: StoreKind,
    /// A `PostgreSQL` server to use in place of a temporary one; a schema is made in the database, and dropped
    #[arg(long)]
    pub uri: Option<String>,
    /// Hosts; URLs fall to them by a power law
    #[arg(long, value_parser = small_count, default_value = "50k")]
    pub hosts: u32,
    /// Links of a page that has any; so many pages have none that each page brings two new URLs in the mean
    #[arg(long, value_parser = small_count, default_value = "40")]
    pub links: u32,
    /// Threads that make links and admit them
    #[arg(long, default_value_t = 2)]
    pub threads: usize,
    /// Page leases that are not durably released, as the engine's setting
    #[arg(long, value_parser = small_count, default_value = "1024")]
    pub leases: u32,
    /// URLs that the filter is sized for; it grows with more
    #[arg(long, value_parser = count, default_value = "10M")]
    pub expected: u64,
    /// The most memory of the recent-key cache
    #[arg(long, value_parser = bytes, default_value = "64MB")]
    pub cache: u64,
    /// The seed of the random numbers
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Cargo says this to every benchmark
    #[arg(long, hide = true)]
    pub bench: bool,
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory as _, Parser as _};

    use super::{Options, StoreKind};

    #[test]
    fn the_command_line_is_sound() {
        Options::command().debug_assert();
        let options =
            Options::try_parse_from(["x", "--known", "300k", "--store", "memory", "--bench"])
                .expect("the words are right");
        assert_eq!(
            (options.known, options.store, options.hosts),
            (300_000, StoreKind::Memory, 50_000)
        );
    }
}
