//! Runs every test of the workspace, after seeing to `PostgreSQL`.

use std::{
    env,
    process::{Command, Stdio},
};

use anyhow::{Context as _, Result, bail};

use crate::{postgres, root, say};

/// The environment variable that tells the crawl of `PostgreSQL`'s manual that it is not there and cannot be had.
const SKIP_DOCUMENTATION: &str = "BLOOMCRAWL_SKIP_DOCUMENTATION";

/// Runs every test: unit, integration and documentation tests of all crates.
///
/// # Errors
///
/// Fails when `PostgreSQL` is missing and may not be installed, and when a test fails. Without `PostgreSQL`'s manual the
/// crawl of it is skipped.
pub(crate) fn tests(may_install: bool) -> Result<()> {
    let has_manual = postgres::ensure(may_install)?;
    if env::var_os("BLOOMCRAWL_CORPORA").is_none() {
        say("BLOOMCRAWL_CORPORA is not set: the tests over public corpora are skipped");
    }
    if has_nextest() {
        cargo(&["nextest", "run", "--locked", "--workspace"], has_manual)?;
        cargo(&["test", "--locked", "--workspace", "--doc"], has_manual)
    } else {
        cargo(
            &["test", "--locked", "--workspace", "--no-fail-fast"],
            has_manual,
        )
    }
}

/// Runs what is too long for every change: every interleaving at a line of the filter, its race test in full, and the
/// crawls of generated sites, optimized, with five seeds.
///
/// # Errors
///
/// Fails when `PostgreSQL` is missing and cannot be installed, and when a crawl fails.
pub(crate) fn long() -> Result<()> {
    postgres::ensure_programs(true)?;
    long_filter_tests()?;
    say("running the crawls of generated sites with five seeds");
    let status = cargo_command()
        .args([
            "test",
            "--locked",
            "--release",
            "--package",
            "engine",
            "--test",
            "generated_site",
        ])
        .args(["--", "--nocapture", "--test-threads", "1"])
        .env("BLOOMCRAWL_TEST_SEEDS", "5")
        .status()
        .context("cargo cannot be started")?;
    if !status.success() {
        bail!("a crawl of a generated site failed");
    }
    Ok(())
}

/// Runs the long forms of the filter's tests: without a limit on preemptions, and with all keys and rounds.
fn long_filter_tests() -> Result<()> {
    say("running every interleaving of two threads at a line of the filter");
    let interleavings = cargo_command()
        .args(["test", "--locked", "--target-dir", "target/loom"])
        .args(["--package", "filter", "--lib"])
        .env("RUSTFLAGS", "--cfg loom")
        .status()
        .context("cargo cannot be started")?;
    say("running the filter's race test in full");
    let races = cargo_command()
        .args(["test", "--locked", "--release", "--package", "filter"])
        .args(["--test", "races", "--", "--nocapture"])
        .env("BLOOMCRAWL_LONG", "1")
        .status()
        .context("cargo cannot be started")?;
    if !interleavings.success() || !races.success() {
        bail!("a long test of the filter failed");
    }
    Ok(())
}

/// Returns a command of the cargo that runs this, in the folder of the workspace.
pub(crate) fn cargo_command() -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    command
}

fn has_nextest() -> bool {
    let status = cargo_command()
        .args(["nextest", "--version"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    status.is_ok_and(|status| status.success())
}

fn cargo(arguments: &[&str], has_manual: bool) -> Result<()> {
    say(&format!("running cargo {}", arguments.join(" ")));
    let mut command = cargo_command();
    if !has_manual {
        command.env(SKIP_DOCUMENTATION, "1");
    }
    let status = command
        .args(arguments)
        .status()
        .context("cargo cannot be started")?;
    if !status.success() {
        bail!("cargo {} failed", arguments.join(" "));
    }
    Ok(())
}
