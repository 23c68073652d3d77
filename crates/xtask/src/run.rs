//! Runs every test of the workspace, after seeing to `PostgreSQL`.

use std::{
    env,
    process::{Command, Stdio},
};

use anyhow::{Context as _, Result, bail};

use crate::{postgres, root, say};

/// Runs every test: unit, integration and documentation tests of all crates.
///
/// # Errors
///
/// Fails when `PostgreSQL` is missing and may not be installed, and when a test fails.
pub(crate) fn tests(may_install: bool) -> Result<()> {
    postgres::ensure(may_install)?;
    if env::var_os("BLOOMCRAWL_CORPORA").is_none() {
        say("BLOOMCRAWL_CORPORA is not set: the tests over public corpora are skipped");
    }
    if has_nextest() {
        cargo(&["nextest", "run", "--workspace"])?;
        cargo(&["test", "--workspace", "--doc"])
    } else {
        cargo(&["test", "--workspace", "--no-fail-fast"])
    }
}

fn cargo_command() -> Command {
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

fn cargo(arguments: &[&str]) -> Result<()> {
    say(&format!("running cargo {}", arguments.join(" ")));
    let status = cargo_command()
        .args(arguments)
        .status()
        .context("cargo cannot be started")?;
    if !status.success() {
        bail!("cargo {} failed", arguments.join(" "));
    }
    Ok(())
}
