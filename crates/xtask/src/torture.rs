//! The long forms of the tests that kill a crawl, spoil its files and take its database away.

use std::{
    env,
    time::{SystemTime, UNIX_EPOCH},
};

use anyhow::{Context as _, Result, bail};

use crate::{postgres, run::cargo_command, say};

/// What decides how the tests go on.
const SEED: &str = "BLOOMCRAWL_TORTURE_SEED";

/// A torture: its name, the module of its tests, and the sizes of its long form.
struct Torture {
    name: &'static str,
    module: &'static str,
    sizes: &'static [(&'static str, &'static str)],
}

const TORTURES: [Torture; 3] = [
    Torture {
        name: "kill",
        module: "kill::",
        sizes: &[
            ("BLOOMCRAWL_KILLS", "50"),
            ("BLOOMCRAWL_KILL_PAGES", "20000"),
        ],
    },
    Torture {
        name: "power-cut",
        module: "power_cut::",
        sizes: &[("BLOOMCRAWL_MUTATIONS", "200")],
    },
    Torture {
        name: "postgres",
        module: "postgres::",
        sizes: &[
            ("BLOOMCRAWL_RESTART_SECONDS", "5"),
            ("BLOOMCRAWL_RESTART_PAGES", "40000"),
            ("BLOOMCRAWL_OUTAGE_SECONDS", "60"),
            ("BLOOMCRAWL_NARROW_SECONDS", "75"),
            ("BLOOMCRAWL_FULL_SECONDS", "75"),
        ],
    },
];

/// Runs one torture in release, with its long sizes, or those of the environment where they are set there.
///
/// # Errors
///
/// Fails when there is no torture of that name, when `PostgreSQL` is missing and cannot be installed, and when a test fails.
pub(crate) fn run(name: &str) -> Result<()> {
    let Some(torture) = TORTURES.iter().find(|torture| torture.name == name) else {
        let names = TORTURES.each_ref().map(|torture| torture.name);
        bail!("there is no torture {name}; there are {}", names.join(", "));
    };
    postgres::ensure_programs(true)?;
    let mut command = cargo_command();
    command.args([
        "test",
        "--locked",
        "--release",
        "--package",
        "cli",
        "--test",
        "torture",
    ]);
    command.args(["--", "--nocapture", "--test-threads", "1", torture.module]);
    let seed = (SEED, new_seed());
    let sizes = torture.sizes.iter();
    for (variable, long) in sizes
        .map(|(variable, long)| (*variable, (*long).to_owned()))
        .chain([seed])
    {
        let value = env::var(variable).unwrap_or(long);
        say(&format!("{variable}={value}"));
        command.env(variable, value);
    }
    let status = command.status().context("cargo cannot be started")?;
    if !status.success() {
        bail!("a test of torture {name} failed");
    }
    Ok(())
}

/// Returns another seed each time.
fn new_seed() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |since| since.as_secs()).to_string()
}
