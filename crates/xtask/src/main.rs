//! Chores of the workspace: `cargo xtask test`, `cargo xtask long`, `cargo xtask torture` and `cargo xtask tidy`.

mod postgres;
mod run;
mod tidy;
mod torture;

use std::{
    env,
    io::{self, Write as _},
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Result, bail};

const USAGE: &str = "\
usage: cargo xtask test [--no-install]   install PostgreSQL if it is missing and may be installed, then run every test
       cargo xtask long                  run every interleaving at a line of the filter, its race test in full, and the crawls
                                         of generated sites in release, with five seeds and 20,000 pages each
       cargo xtask torture kill          kill a crawl of 20,000 pages 50 times, with each store
       cargo xtask torture power-cut     resume from 250 copies of a killed crawl whose files were cut, rolled back, removed or
                                         flipped
       cargo xtask torture postgres      take PostgreSQL away from a crawl: restarts, an outage, a single connection, read-only, a
                                         full disk (where this user may mount one)
                                         Sizes and seed are printed, and can be set, as variables BLOOMCRAWL_...
       cargo xtask tidy                  check the rules of the workspace: inner edges, file sizes, names
";

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match words.as_slice() {
        ["test"] => run::tests(true),
        ["test", "--no-install"] => run::tests(false),
        ["long"] => run::long(),
        ["torture", name] => torture::run(name),
        ["tidy"] => check_tidy(),
        ["--help" | "-h" | "help"] => {
            say(USAGE);
            Ok(())
        }
        _ => {
            say(USAGE);
            return ExitCode::from(2);
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(&format!("error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn check_tidy() -> Result<()> {
    let faults = tidy::faults(&root())?;
    for fault in &faults {
        say(fault);
    }
    match faults.len() {
        0 => Ok(()),
        1 => bail!("1 rule of the workspace is broken"),
        count => bail!("{count} rules of the workspace are broken"),
    }
}

/// Returns the folder of the workspace.
fn root() -> PathBuf {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest
        .ancestors()
        .nth(2)
        .unwrap_or(manifest)
        .to_path_buf()
}

/// Prints to stderr; nothing can be said about a failure of that.
fn say(text: &str) {
    let _ = writeln!(io::stderr(), "{}", text.trim_end());
}
