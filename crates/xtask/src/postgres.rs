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
const PACKAGES: [&str; 2] = ["postgresql", DOCUMENTATION_PACKAGE];

/// The package that brings the newest manual.
const DOCUMENTATION_PACKAGE: &str = "postgresql-doc";

/// Where Debian keeps documentation; the newest `PostgreSQL` manual there is a real site for the tests to crawl.
const DOCUMENTATION_FOLDER: &str = "/usr/share/doc";

/// Small images of Debian leave documentation out of every package; this takes it in.
const KEEP_DOCUMENTATION: &str = "Dpkg::Options::=--path-include=/usr/share/doc/postgresql-doc*";

/// Sees to it that `PostgreSQL` is there, and its manual where it can be had. Returns whether the manual is there.
///
/// # Errors
///
/// Fails when the programs are missing and may not, or cannot, be installed; the message says what to type.
pub(crate) fn ensure(may_install: bool) -> Result<bool> {
    ensure_programs(may_install)?;
    let has_manual = ensure_manual(may_install);
    if let Err(reason) = &has_manual {
        say(&format!(
            "PostgreSQL's manual ({DOCUMENTATION_FOLDER}/postgresql-doc-*/html) is not there: {reason:#}.\n\
             THE CRAWL OF ITS PAGES, A REAL SITE, IS SKIPPED; every other test runs."
        ));
    }
    Ok(has_manual.is_ok())
}

/// Sees to it that the programs of `PostgreSQL` are there.
///
/// # Errors
///
/// As [`ensure`].
pub(crate) fn ensure_programs(may_install: bool) -> Result<()> {
    if find().is_some() {
        return Ok(());
    }
    let missing = format!("PostgreSQL ({} on PATH)", PROGRAMS.join(" and "));
    let words = install_words(&PACKAGES);
    let typed = format!("apt-get update && {}", words.join(" "));
    if !may_install {
        bail!("the tests need {missing}; as root run: {typed}");
    }
    let Some(prefix) = root_prefix() else {
        bail!("the tests need {missing}, and only root may install it; run: sudo sh -c '{typed}'");
    };
    if !has_apt() {
        bail!(
            "the tests need {missing}, and there is no apt-get here; install it with the system's package manager"
        );
    }
    install(prefix, &words)?;
    if find().is_none() {
        bail!(
            "the packages {} were installed, but {missing} cannot be found",
            PACKAGES.join(" and ")
        );
    }
    Ok(())
}

/// Installs the manual if it is missing. Fails with the reason why it cannot be had.
fn ensure_manual(may_install: bool) -> Result<()> {
    let folder = Path::new(DOCUMENTATION_FOLDER);
    if has_documentation(folder) {
        return Ok(());
    }
    let installed = installed_documentation();
    let words = manual_words(&installed);
    let typed = words.join(" ");
    if !may_install {
        bail!("as root run: {typed}");
    }
    if !has_apt() {
        bail!("there is no apt-get here");
    }
    let Some(prefix) = root_prefix() else {
        bail!("only root may install it; run: sudo {typed}");
    };
    install(prefix, &words)?;
    if !has_documentation(folder) {
        bail!("{typed} left it out");
    }
    Ok(())
}

/// Returns the command that brings the manual: where a package of it is installed whose files the image leaves out,
/// that one once more, since installing it would find nothing to do.
fn manual_words(installed: &[String]) -> Vec<&str> {
    match installed.last() {
        None => install_words(&[DOCUMENTATION_PACKAGE]),
        Some(package) => {
            let mut words = install_words(&[package]);
            words.insert(2, "--reinstall");
            words
        }
    }
}

/// Returns the versioned packages of the manual that are installed, the newest last.
fn installed_documentation() -> Vec<String> {
    let output = Command::new("dpkg-query")
        .args([
            "--show",
            "--showformat",
            "${db:Status-Status} ${Package}\\n",
            "postgresql-doc-*",
        ])
        .stderr(Stdio::null())
        .output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    versioned_packages(&text.unwrap_or_default())
}

/// Reads `STATUS PACKAGE` lines and sorts what is installed by version.
fn versioned_packages(listed: &str) -> Vec<String> {
    let mut packages: Vec<(u32, String)> = listed
        .lines()
        .filter_map(|line| line.strip_prefix("installed "))
        .filter_map(|package| {
            let version = package.strip_prefix("postgresql-doc-")?.parse().ok()?;
            Some((version, package.to_owned()))
        })
        .collect();
    packages.sort();
    packages.into_iter().map(|(_, package)| package).collect()
}

fn has_apt() -> bool {
    succeeds(Command::new("apt-get").arg("--version"))
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

/// The command that installs packages.
fn install_words<'a>(packages: &[&'a str]) -> Vec<&'a str> {
    let mut words = vec![
        "apt-get",
        "install",
        "-y",
        "--no-install-recommends",
        "-o",
        KEEP_DOCUMENTATION,
    ];
    words.extend(packages);
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
fn install(prefix: &[&str], words: &[&str]) -> Result<()> {
    let typed = words.join(" ");
    say(&format!("for the tests: {typed}"));
    if apt(prefix, words) || (apt(prefix, &["apt-get", "update"]) && apt(prefix, words)) {
        return Ok(());
    }
    bail!("{typed} failed")
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

    #[test]
    fn a_manual_that_the_image_left_out_is_installed_once_more() {
        let installed = versioned_packages(
            "installed postgresql-doc-9\ninstalled postgresql-doc-17\nconfig-files postgresql-doc-18\ninstalled postgresql-doc\n",
        );
        assert_eq!(installed, ["postgresql-doc-9", "postgresql-doc-17"]);
        let words = manual_words(&installed).join(" ");
        assert!(
            words.starts_with("apt-get install --reinstall -y ")
                && words.contains("path-include")
                && words.ends_with(" postgresql-doc-17"),
            "{words}"
        );
        let words = manual_words(&[]).join(" ");
        assert!(
            words.ends_with(" postgresql-doc") && !words.contains("--reinstall"),
            "{words}"
        );
    }
}
