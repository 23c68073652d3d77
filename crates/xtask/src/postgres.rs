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

/// The packages that hold the programs and the documentation, on Debian and its kin.
const PACKAGES: [&str; 2] = ["postgresql", "postgresql-doc"];

/// Where Debian keeps documentation; the newest `PostgreSQL` manual there is a real site for the tests to crawl.
const DOCUMENTATION_FOLDER: &str = "/usr/share/doc";

/// Small images of Debian leave documentation out of every package; this takes it in.
const KEEP_DOCUMENTATION: &str = "Dpkg::Options::=--path-include=/usr/share/doc/postgresql-doc*";

/// Sees to it that `PostgreSQL` and its manual are there.
///
/// # Errors
///
/// Fails when one is missing and may not, or cannot, be installed; the message says what to type.
pub(crate) fn ensure(may_install: bool) -> Result<()> {
    let Some(missing) = missing() else {
        return Ok(());
    };
    let typed = format!("apt-get update && {}", install_words().join(" "));
    if !may_install {
        bail!("the tests need {missing}; as root run: {typed}");
    }
    let Some(prefix) = root_prefix() else {
        bail!("the tests need {missing}, and only root may install it; run: sudo sh -c '{typed}'");
    };
    if !succeeds(Command::new("apt-get").arg("--version")) {
        bail!(
            "the tests need {missing}, and there is no apt-get here; install it with the system's package manager"
        );
    }
    install(prefix, &missing)?;
    match self::missing() {
        None => Ok(()),
        Some(missing) => bail!(
            "the packages {} were installed, but {missing} cannot be found",
            PACKAGES.join(" and ")
        ),
    }
}

/// Returns what is missing, in words.
fn missing() -> Option<String> {
    if find().is_none() {
        return Some(format!("PostgreSQL ({} on PATH)", PROGRAMS.join(" and ")));
    }
    if !has_documentation(Path::new(DOCUMENTATION_FOLDER)) {
        return Some(format!(
            "PostgreSQL's manual ({DOCUMENTATION_FOLDER}/postgresql-doc-*/html)"
        ));
    }
    None
}

fn has_documentation(folder: &Path) -> bool {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .filter(|entry| {
            entry
                .file_name()
                .to_string_lossy()
                .starts_with("postgresql-doc-")
        })
        .any(|entry| entry.path().join("html/index.html").is_file())
}

/// The command that installs what is missing.
fn install_words() -> Vec<&'static str> {
    let mut words = vec![
        "apt-get",
        "install",
        "-y",
        "--no-install-recommends",
        "-o",
        KEEP_DOCUMENTATION,
    ];
    words.extend(PACKAGES);
    words
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

/// Installs the packages. Lists of packages may be missing or old, as in a fresh container: then they are fetched, once.
fn install(prefix: &[&str], missing: &str) -> Result<()> {
    let install = install_words();
    say(&format!(
        "installing {missing} for the tests (packages {})",
        PACKAGES.join(", ")
    ));
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
