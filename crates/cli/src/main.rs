//! The `bloomcrawl` binary: reads the command line, runs one command, and ends with the exit code that tells how it went.

#[cfg(test)]
mod cases;
mod clean;
mod command;
mod failure;
mod flags;
mod limit;
mod printer;
mod progress;
mod report;
mod rows;
mod seeds;
mod settings;
mod unit;

use std::{panic, process::ExitCode};

use clap::Parser as _;

use crate::{
    failure::{Exit, Failure},
    flags::Cli,
};

/// Pages, links and queue entries go from thread to thread, so most memory is given back by another thread than took it.
/// With the system's allocator that costs a crawl a fifth of its CPU.
#[cfg(not(target_env = "msvc"))]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    // Wrong usage ends here with exit code 2, `--help` and `--version` with 0.
    let cli = Cli::parse();
    limit::raise_open_files();
    let result = panic::catch_unwind(|| command::run(cli)).unwrap_or_else(|_| {
        Err(Failure::new(
            Exit::Internal,
            "the program met a fault of its own; please report this",
        ))
    });
    let exit = result.unwrap_or_else(|failure| {
        printer::failure(&failure);
        failure.exit
    });
    ExitCode::from(exit as u8)
}
