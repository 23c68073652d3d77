//! The durable frontier at scale: seen test, ledger, workbench and store on a generated web without sockets, until half of
//! the known URLs wait.
//!
//! Run it with `cargo bench -p benches --bench frontier -- --known 10M --store embedded` (or `postgres`, `memory`), or with
//! `--known 300k` for a first look. It needs Linux, whose `/proc` the meters read. With `PostgreSQL`, unless `--uri` names a
//! server, a temporary one is started that flushes nothing: its CPU time counts, its clock does not.

use std::{
    io::{self, Write as _},
    process::ExitCode,
};

use benches::{
    frontier_scale::{options::Options, run},
    measure::is_listing,
};
use clap::Parser as _;
use tikv_jemallocator::Jemalloc;

/// That of the `bloomcrawl` binary.
#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;

fn main() -> ExitCode {
    if is_listing() {
        return ExitCode::SUCCESS;
    }
    match run::run(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
