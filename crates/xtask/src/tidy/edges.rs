//! The inner edges: which crate of the workspace may use which other.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use anyhow::{Context as _, Result};
use toml::Table;

/// For each crate, the crates of ours that it may use. What is not named here is not allowed.
const ALLOWED: &[(&str, &[&str])] = &[
    ("types", &[]),
    ("filter", &[]),
    ("robots", &[]),
    ("warc", &[]),
    ("frontier", &["types", "filter", "robots"]),
    ("fetcher", &["types"]),
    ("parser", &["types"]),
    ("store", &["types"]),
    (
        "engine",
        &[
            "types", "filter", "robots", "warc", "frontier", "fetcher", "parser", "store",
        ],
    ),
    ("cli", &["engine", "types", "filter", "replay"]),
    ("replay", &["warc"]),
    ("xtask", &[]),
];

/// What tests may use beside it: readers of test data, and the local web.
const ALLOWED_IN_TESTS: [&str; 2] = ["warc", "replay"];

/// Crates that may use any other: the command's tests judge the whole, and benches measure all of it.
const FREE_IN_TESTS: [&str; 2] = ["cli", "engine"];
const FREE: [&str; 1] = ["benches"];

/// Outer crates that one crate of ours must not know, as the architecture page says; the keys are ours.
const FORBIDDEN: &[(&str, &[&str])] = &[
    ("types", &["tokio", "reqwest", "crossbeam-channel"]),
    ("filter", &["url", "tokio", "tokio-postgres", "fjall"]),
    ("robots", &["tokio", "reqwest", "http"]),
    (
        "frontier",
        &["tokio", "reqwest", "scraper", "tokio-postgres", "fjall"],
    ),
    ("fetcher", &["scraper", "tokio-postgres", "fjall"]),
    ("parser", &["tokio", "reqwest", "tokio-postgres", "fjall"]),
    ("store", &["reqwest", "scraper"]),
    ("engine", &["clap", "indicatif", "toml"]),
    ("cli", &["reqwest", "scraper", "tokio-postgres", "fjall"]),
    ("xtask", &["tokio", "reqwest"]),
];

/// Returns the edges that are not allowed.
pub(super) fn faults(root: &Path) -> Result<Vec<String>> {
    let mut manifests = BTreeMap::new();
    let mut folders = vec![root.join("benches")];
    for entry in fs::read_dir(root.join("crates")).context("the folder crates cannot be read")? {
        let path = entry?.path();
        if path.is_dir() {
            folders.push(path);
        }
    }
    for folder in folders {
        let path = folder.join("Cargo.toml");
        let text = fs::read_to_string(&path)
            .with_context(|| format!("{} cannot be read", path.display()))?;
        let manifest: Table = text
            .parse()
            .with_context(|| format!("{} is no TOML", path.display()))?;
        let folder_name = folder
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        manifests.insert(folder_name, manifest);
    }
    let mut faults = judge(&manifests);
    for (name, _) in ALLOWED {
        if !manifests.contains_key(*name) {
            faults.push(format!(
                "{name}: the table of inner edges names it, and there is no such crate"
            ));
        }
    }
    Ok(faults)
}

/// Judges manifests by the names of their folders.
fn judge(manifests: &BTreeMap<String, Table>) -> Vec<String> {
    let ours: BTreeSet<&str> = manifests.keys().map(String::as_str).collect();
    let mut faults = Vec::new();
    for (folder, manifest) in manifests {
        let package = manifest
            .get("package")
            .and_then(|package| package.get("name"))
            .and_then(|name| name.as_str());
        if package != Some(folder) {
            faults.push(format!(
                "{folder}: the package is named {}, not as its folder",
                package.unwrap_or("nothing")
            ));
        }
        let Some(allowed) = allowed(folder) else {
            faults.push(format!(
                "{folder}: the crate is not in the table of inner edges (xtask, tidy/edges.rs)"
            ));
            continue;
        };
        let forbidden = FORBIDDEN
            .iter()
            .find(|(name, _)| name == folder)
            .map_or(&[][..], |(_, names)| *names);
        for (name, is_test_only) in dependencies(manifest) {
            let name = name.as_str();
            let is_inner = ours.contains(name) && name != folder;
            let is_free = FREE.contains(&folder.as_str())
                || (is_test_only && FREE_IN_TESTS.contains(&folder.as_str()));
            let is_test_data = is_test_only && ALLOWED_IN_TESTS.contains(&name);
            if is_inner && !is_free && !is_test_data && !allowed.contains(&name) {
                let place = if is_test_only { " in its tests" } else { "" };
                faults.push(format!(
                    "{folder} may not use {name}{place}: the architecture page has no such edge"
                ));
            }
            if !is_test_only && forbidden.contains(&name) {
                faults.push(format!(
                    "{folder} may not use {name}: it must not know of that"
                ));
            }
        }
    }
    faults
}

fn allowed(folder: &str) -> Option<&'static [&'static str]> {
    if FREE.contains(&folder) {
        return Some(&[]);
    }
    ALLOWED
        .iter()
        .find(|(name, _)| *name == folder)
        .map(|(_, allowed)| *allowed)
}

/// Returns each dependency of a manifest, and whether only tests have it. A renamed one counts by its package.
fn dependencies(manifest: &Table) -> Vec<(String, bool)> {
    let mut found = Vec::new();
    let mut tables = vec![manifest];
    if let Some(targets) = manifest.get("target").and_then(|target| target.as_table()) {
        tables.extend(targets.values().filter_map(|target| target.as_table()));
    }
    for table in tables {
        for (section, is_test_only) in [
            ("dependencies", false),
            ("build-dependencies", false),
            ("dev-dependencies", true),
        ] {
            let Some(section) = table.get(section).and_then(|section| section.as_table()) else {
                continue;
            };
            for (name, value) in section {
                let package = value.get("package").and_then(|package| package.as_str());
                found.push((package.unwrap_or(name).to_owned(), is_test_only));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(manifests: &[(&str, &str)]) -> Vec<String> {
        let manifests = manifests.iter().map(|(folder, dependencies)| {
            let text = format!("[package]\nname = \"{folder}\"\n{dependencies}");
            (
                (*folder).to_owned(),
                text.parse().expect("the test's own manifest"),
            )
        });
        judge(&manifests.collect())
    }

    #[test]
    fn an_allowed_edge_is_no_fault() {
        let faults = judged(&[
            ("types", ""),
            ("warc", ""),
            (
                "parser",
                "[dependencies]\ntypes.workspace = true\nscraper = \"1\"\n[dev-dependencies]\nwarc.workspace = true",
            ),
            ("benches", "[dependencies]\nparser.workspace = true"),
        ]);
        assert!(faults.is_empty(), "{faults:?}");
    }

    #[test]
    fn every_forbidden_edge_is_found() {
        for (folder, dependencies) in [
            ("parser", "[dependencies]\nstore.workspace = true"),
            ("parser", "[dependencies]\nwarc.workspace = true"),
            ("parser", "[dev-dependencies]\nstore.workspace = true"),
            ("parser", "[build-dependencies]\nstore.workspace = true"),
            (
                "parser",
                "[target.'cfg(unix)'.dependencies]\nstore.workspace = true",
            ),
            (
                "parser",
                "[dependencies]\nx = { package = \"store\", path = \"../store\" }",
            ),
            ("parser", "[dependencies]\ntokio.workspace = true"),
            ("surprise", ""),
        ] {
            let faults = judged(&[("store", ""), ("warc", ""), (folder, dependencies)]);
            assert_eq!(faults.len(), 1, "{dependencies}: {faults:?}");
        }
    }
}
