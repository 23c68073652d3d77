//! Torture: a crawl is killed, its files are cut and put back, its database is taken away, and the same command finishes it
//! with nothing lost and nothing twice. `cargo xtask torture` runs the long forms.
#![expect(
    clippy::print_stderr,
    reason = "the figures are part of the tests' worth"
)]

mod crawl;
mod kill;
mod mutation;
mod postgres;
mod power_cut;
mod records;
mod server;
mod site;
#[path = "../support/mod.rs"]
#[expect(
    dead_code,
    reason = "the other tests run the command to its end in one call"
)]
mod support;

use std::env;

/// Returns the number in an environment variable, by which the long forms are asked for, or `default`.
fn number(name: &str, default: u64) -> u64 {
    match env::var(name) {
        Ok(text) => text
            .parse()
            .unwrap_or_else(|error| panic!("{name}={text}: a whole number is needed: {error}")),
        Err(_) => default,
    }
}

/// Returns a generator, and prints what makes it the same again.
fn random(test: &str) -> fastrand::Rng {
    let seed = number("BLOOMCRAWL_TORTURE_SEED", 1);
    eprintln!("{test}: BLOOMCRAWL_TORTURE_SEED={seed}");
    fastrand::Rng::with_seed(seed)
}
