//! The filter against fastbloom, and against the memory itself.
//!
//! Run it with `cargo bench --package benches --bench filter`, or with `-- --keys 1M` for a quick look. Options: `--keys N`
//! (50M), `--rounds N` (3), `--only table|threads|growth`. Figures of one run compare; those of two machines do not.

mod demand;
mod growth;
mod subject;
mod table;
mod threads;

use benches::measure::{Count, is_bench, is_listing, option};
use demand::Demands;

fn main() {
    if is_listing() {
        return;
    }
    let (keys_count, rounds) = if is_bench() {
        (50_000_000, 3)
    } else {
        (100_000, 1)
    };
    let Count(keys_count) = option("keys", Count(keys_count), "a count, such as 1M");
    let rounds = option("rounds", rounds, "a number of rounds").max(1);
    let only = option("only", String::new(), "a section");
    let is_wanted = |section: &str| only.is_empty() || only == section;
    let mut demands = Demands::new(keys_count);
    if is_wanted("table") {
        table::run(keys_count, rounds, &mut demands);
    }
    if is_wanted("threads") {
        threads::run(keys_count, rounds, &mut demands);
    }
    if is_wanted("growth") {
        growth::run(keys_count, rounds, &mut demands);
    }
    demands.print();
}
