//! The commands, one file each, and the loop that drives a crawl to its end.

mod config;
mod crawl;
mod demo;
mod drive;
mod filter;
mod replay;
mod status;
mod verify;

use std::{env, path::Path};

use crate::{
    failure::{Exit, Failure},
    flags::{Cli, Command, ConfigFile, ConfigWhat},
    settings::{Effective, Environment, Typed, resolve},
};

/// Runs what was asked for.
///
/// # Errors
///
/// Returns the failure to print, with its exit code.
pub(crate) fn run(cli: Cli) -> Result<Exit, Failure> {
    match cli.command {
        Command::Crawl(crawl) => crawl::run(&crawl),
        Command::Status(command) => status::run(&command),
        Command::Verify(command) => verify::run(&command),
        Command::Demo(demo) => demo::run(&demo),
        Command::Replay(replay) => replay::run(&replay),
        Command::Filter(filter) => filter::run(&filter.what),
        Command::Config(config) => match config.what {
            ConfigWhat::Show { config, flags } => config::show(&config, &flags.0),
            ConfigWhat::Template => config::print_template(),
        },
    }
}

/// Lays the typed flags over the environment and the configuration file.
fn effective(file: &ConfigFile, typed: &Typed) -> Result<Effective, Failure> {
    resolve(
        typed,
        file.path.as_deref(),
        &Environment::new(env::vars_os()),
        Path::new("."),
    )
}
