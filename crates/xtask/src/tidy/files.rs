//! The rules of source files: size, opening sentence, names, and words that must not stay.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result};

/// The most lines of a source file.
const LINES_MAX: usize = 600;

/// Names that say nothing of what is inside; no file and no module has one.
const EMPTY_NAMES: [&str; 8] = [
    "util", "utils", "common", "manager", "managers", "helper", "helpers", "misc",
];

/// Macros of unfinished code.
const UNFINISHED: [&str; 2] = ["todo!", "unimplemented!"];

/// Crates that compute and nothing else: what they are told is all they know. Files, sockets, clocks and threads are
/// their callers'.
const PURE_CRATES: [&str; 5] = ["types", "frontier", "robots", "filter", "warc"];

/// What a pure crate does not name, outside its tests. Addresses (`std::net::IpAddr`) are data, and I/O traits are the
/// caller's to fill in, so both are allowed.
const IMPURE: [&str; 13] = [
    "fs::",
    "File::",
    "OpenOptions::",
    "TcpStream",
    "TcpListener",
    "UdpSocket",
    "ToSocketAddrs",
    "Instant::now",
    "SystemTime::now",
    "thread::spawn",
    "thread::scope",
    "thread::sleep",
    "thread::Builder",
];

/// Returns the faults of every source file of the workspace.
pub(super) fn faults(root: &Path) -> Result<Vec<String>> {
    let mut files = Vec::new();
    for folder in ["crates", "benches"] {
        collect(&root.join(folder), &mut files)?;
    }
    files.sort();
    let mut faults = Vec::new();
    for path in files {
        let text = fs::read_to_string(&path)
            .with_context(|| format!("{} cannot be read", path.display()))?;
        let shown = path
            .strip_prefix(root)
            .unwrap_or(&path)
            .display()
            .to_string();
        faults.extend(judge(&shown, &text));
        faults.extend(judge_purity(&shown, &text));
    }
    Ok(faults)
}

/// Collects the `.rs` files below `folder`, without build outputs.
fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    for entry in
        fs::read_dir(folder).with_context(|| format!("{} cannot be read", folder.display()))?
    {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if path.is_dir() {
            if name != "target" && !name.starts_with('.') {
                collect(&path, files)?;
            }
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    Ok(())
}

fn judge(path: &str, text: &str) -> Vec<String> {
    let mut faults = Vec::new();
    let line_count = text.lines().count();
    if line_count > LINES_MAX {
        faults.push(format!(
            "{path}: {line_count} lines, the limit is {LINES_MAX}; split it by topic"
        ));
    }
    if !text.starts_with("//! ") {
        faults.push(format!(
            "{path}: the file does not open with one sentence (//!) on its job"
        ));
    }
    for part in path.split('/') {
        let name = part.strip_suffix(".rs").unwrap_or(part);
        if EMPTY_NAMES.contains(&name) {
            faults.push(format!("{path}: {name:?} says nothing of what is inside"));
        }
    }
    for (index, line) in text.lines().enumerate() {
        let code = line.trim_start();
        if let Some(name) = module_name(code)
            && EMPTY_NAMES.contains(&name)
        {
            faults.push(format!(
                "{path}:{}: a module named {name:?} says nothing of what is inside",
                index + 1
            ));
        }
        if let Some(word) = UNFINISHED
            .iter()
            .find(|word| code.contains(&format!("{word}(")))
        {
            faults.push(format!("{path}:{}: {word} is unfinished code", index + 1));
        }
    }
    faults
}

/// Returns where a source file of a pure crate does what only its callers may.
fn judge_purity(path: &str, text: &str) -> Vec<String> {
    let is_pure = PURE_CRATES
        .iter()
        .any(|name| path.starts_with(&format!("crates/{name}/src/")));
    let file = path.rsplit('/').next().unwrap_or(path);
    if !is_pure || file == "tests.rs" || file.ends_with("_test.rs") {
        return Vec::new();
    }
    text.lines()
        .enumerate()
        // Tests stand at the end of a file.
        .take_while(|(_, line)| !begins_tests(line))
        .filter(|(_, line)| !line.trim_start().starts_with("//"))
        .filter_map(|(index, line)| {
            let word = IMPURE.iter().find(|word| names(line, word))?;
            Some(format!(
                "{path}:{}: {word} has no place in a crate without I/O, clocks and threads",
                index + 1
            ))
        })
        .collect()
}

/// Returns whether a line is the attribute of tests: `#[cfg(test)]`, `#[cfg(all(test, ..))]`, `#[cfg(all(loom, test))]`.
fn begins_tests(line: &str) -> bool {
    let conditions = line.trim().strip_prefix("#[cfg(").unwrap_or_default();
    conditions
        .split(|c: char| !c.is_alphanumeric())
        .any(|word| word == "test")
        && !conditions.contains("not(test")
}

/// Returns whether a line holds `word`, not as the end of a longer name.
fn names(line: &str, word: &str) -> bool {
    line.match_indices(word)
        .any(|(at, _)| !line[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_'))
}

/// Returns the name in a line that declares a module.
fn module_name(code: &str) -> Option<&str> {
    let start = code.strip_prefix("mod ").or_else(|| {
        let after_pub = code.strip_prefix("pub")?;
        after_pub
            .split_once(" mod ")
            .filter(|(visibility, _)| visibility.len() < 12)
            .map(|(_, name)| name)
    })?;
    start
        .split(|c: char| !(c.is_alphanumeric() || c == '_'))
        .next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tidy_file_has_no_fault() {
        assert!(
            judge(
                "crates/x/src/lib.rs",
                "//! Does one thing.\n\nmod tests {}\npub(crate) mod unit;\n"
            )
            .is_empty()
        );
    }

    #[test]
    fn every_rule_is_checked() {
        let long = format!("//! Long.\n{}", "\n".repeat(LINES_MAX));
        for (path, text) in [
            ("crates/x/src/lib.rs", long.as_str()),
            ("crates/x/src/lib.rs", "// Not a sentence on the file.\n"),
            ("crates/x/src/lib.rs", ""),
            ("crates/x/src/util.rs", "//! Opens well.\n"),
            ("crates/x/src/helpers/mod.rs", "//! Opens well.\n"),
            (
                "crates/x/src/lib.rs",
                "//! Opens well.\npub(crate) mod common;\n",
            ),
            (
                "crates/x/src/lib.rs",
                concat!("//! Opens well.\nfn f() { to", "do!() }\n"),
            ),
        ] {
            assert_eq!(judge(path, text).len(), 1, "{path}: {text:.40}");
        }
    }

    #[test]
    fn what_a_pure_crate_must_not_do_is_found_outside_its_tests() {
        let body = "//! Opens well.\nuse std::net::IpAddr;\n// Instant::now is the caller's\nlet ProfileFile::Open = x;\n";
        for line in [
            "let now = Instant::now();",
            "let text = fs::read(path)?;",
            "use std::{io, fs::File};",
            "use std::net::TcpStream;",
            "    std::thread::spawn(work);",
        ] {
            let text = format!("{body}{line}\n");
            assert_eq!(
                judge_purity("crates/warc/src/x.rs", &text).len(),
                1,
                "{line}"
            );
            assert!(judge_purity("crates/engine/src/x.rs", &text).is_empty());
            assert!(judge_purity("crates/warc/src/tests.rs", &text).is_empty());
            assert!(judge_purity("crates/warc/tests/x.rs", &text).is_empty());
            for mark in ["#[cfg(test)]", "#[cfg(all(loom, test))]"] {
                let in_tests = format!("{body}{mark}\nmod tests {{\n{line}\n}}\n");
                assert!(judge_purity("crates/warc/src/x.rs", &in_tests).is_empty());
            }
            let not_in_tests = format!("{body}#[cfg(not(test))]\n{line}\n");
            assert_eq!(judge_purity("crates/warc/src/x.rs", &not_in_tests).len(), 1);
        }
    }
}
