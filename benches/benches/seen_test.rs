//! The benchmark of the mission: one link stream through the seen test in each of its modes, against a real store, and
//! through what crawlers use without it.
//!
//! Run it with `cargo bench -p benches --bench seen_test -- --help`, or with `--quick` for a first look. It needs Linux,
//! whose `/proc` the meters read.

use std::{
    env,
    io::{self, Write as _},
    process::ExitCode,
};

use anyhow::Result;
use benches::seen_test::{child, options::Options, parent, workload::CORPORA};
use clap::Parser as _;

fn main() -> ExitCode {
    let options = Options::parse().resolved(env::var_os(CORPORA).is_some());
    match run(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<()> {
    let Some(contender) = options.child else {
        return parent::run(options);
    };
    let measured = child::run(contender, options)?;
    let mut output = io::stdout().lock();
    serde_json::to_writer(&mut output, &measured)?;
    Ok(output.flush()?)
}
