//! `PostgreSQL` for the tests: finds its programs, and installs them where that is allowed.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Result, bail};

use crate::say;

/// The programs that the tests start.
const PROGRAMS: [&str; 2] = ["initdb", "postgres"];

/// Where Debian keeps one folder of programs for each major version.
const DEBIAN_FOLDER: &str = "/usr/lib/postgresql";

/// The package that holds the programs, on Debian and its kin.
const PACKAGE: &str = "postgresql";

/// Sees to it that `PostgreSQL` is there.
///
/// # Errors
///
/// Fails when it is missing and may not, or cannot, be installed; the message says what to type.
pub(crate) fn ensure(may_install: bool) -> Result<()> {
    if find().is_some() {
        return Ok(());
    }
    let typed = format!("apt-get update && apt-get install -y --no-install-recommends {PACKAGE}");
    if !may_install {
        bail!(
            "the tests need PostgreSQL ({} on PATH); as root run: {typed}",
            PROGRAMS.join(" and ")
        );
    }
    let Some(prefix) = root_prefix() else {
        bail!("the tests need PostgreSQL, and only root may install it; run: sudo sh -c '{typed}'");
    };
    if !succeeds(Command::new("apt-get").arg("--version")) {
        bail!(
            "the tests need PostgreSQL ({} on PATH), and there is no apt-get here; install it with the system's package manager",
            PROGRAMS.join(" and ")
        );
    }
    install(prefix)?;
    if find().is_none() {
        bail!(
            "the package {PACKAGE} was installed, but {} are not found",
            PROGRAMS.join(" and ")
        );
    }
    Ok(())
}

/// Returns the folder with all programs: of PATH, else the newest of Debian's.
fn find() -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let on_path = env::split_paths(&path).find(|folder| holds_programs(folder));
    on_path.or_else(|| newest(Path::new(DEBIAN_FOLDER)))
}

/// Returns the `bin` folder of the highest version below `folder` that holds all programs.
fn newest(folder: &Path) -> Option<PathBuf> {
    let entries = fs::read_dir(folder).ok()?;
    let versions = entries.filter_map(|entry| {
        let entry = entry.ok()?;
        let version: u32 = entry.file_name().to_str()?.parse().ok()?;
        let bin = entry.path().join("bin");
        holds_programs(&bin).then_some((version, bin))
    });
    versions.max().map(|(_, bin)| bin)
}

fn holds_programs(folder: &Path) -> bool {
    PROGRAMS
        .iter()
        .all(|program| folder.join(program).is_file())
}

/// Returns what to put before a command so that root runs it: nothing, or sudo where it asks no password.
fn root_prefix() -> Option<&'static [&'static str]> {
    let id = Command::new("id").arg("-u").output().ok()?;
    if id.stdout.trim_ascii() == b"0" {
        return Some(&[]);
    }
    succeeds(Command::new("sudo").args(["-n", "true"])).then_some(&["sudo", "-n"])
}

fn succeeds(command: &mut Command) -> bool {
    command
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// Installs the package. Lists of packages may be missing or old, as in a fresh container: then they are fetched, once.
fn install(prefix: &[&str]) -> Result<()> {
    let install = [
        "apt-get",
        "install",
        "-y",
        "--no-install-recommends",
        PACKAGE,
    ];
    say("installing PostgreSQL for the tests (package postgresql)");
    if apt(prefix, &install) || (apt(prefix, &["apt-get", "update"]) && apt(prefix, &install)) {
        return Ok(());
    }
    bail!("{} failed", install.join(" "))
}

fn apt(prefix: &[&str], words: &[&str]) -> bool {
    // `env` sets the variable also behind sudo, which clears the environment.
    let words: Vec<&str> = prefix
        .iter()
        .chain(&["env", "DEBIAN_FRONTEND=noninteractive"])
        .chain(words)
        .copied()
        .collect();
    Command::new(words[0])
        .args(&words[1..])
        .status()
        .is_ok_and(|status| status.success())
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a failed set-up fails the test")]

    use super::*;

    #[test]
    fn the_newest_complete_version_is_taken() {
        let folder = env::temp_dir().join(format!("xtask-postgres-{}", std::process::id()));
        for (version, programs) in [
            ("9", &PROGRAMS[..]),
            ("15", &PROGRAMS[..]),
            ("17", &PROGRAMS[..1]),
            ("common", &PROGRAMS[..]),
        ] {
            let bin = folder.join(version).join("bin");
            fs::create_dir_all(&bin).unwrap();
            for program in programs {
                fs::write(bin.join(program), "").unwrap();
            }
        }
        let found = newest(&folder);
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(found, Some(folder.join("15/bin")));
        assert_eq!(newest(Path::new("/nonexistent")), None);
    }
}
