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
}
