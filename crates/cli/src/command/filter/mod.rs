//! `bloomcrawl filter`: its size before a crawl, its state after one, and whether it keeps its promise.

mod check;
mod inspect;
mod plan;
mod saved;
mod size;

use serde_json::Value;

use crate::{
    failure::{Exit, Failure},
    flags::FilterWhat,
    printer,
};

/// Runs one of the three.
///
/// # Errors
///
/// Fails for a size that no memory has, and for a file that is no whole snapshot.
pub(super) fn run(what: &FilterWhat) -> Result<Exit, Failure> {
    match what {
        FilterWhat::Size { urls, rate, json } => size::run(*urls, *rate, *json),
        FilterWhat::Inspect { path, json } => inspect::run(path, *json),
        FilterWhat::Check { path, json } => check::run(path, *json),
    }
}

/// Prints an object as one line of JSON, or else the text for people.
fn print(object: &Value, text: &str, is_json: bool) -> Result<(), Failure> {
    if is_json {
        printer::data(&format!("{object}\n"))
    } else {
        printer::data(text)
    }
}
