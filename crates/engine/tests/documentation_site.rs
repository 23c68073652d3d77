//! A crawl of a real site: the manual of `PostgreSQL`, as Debian packages it, against an independent walk.
#![expect(clippy::unwrap_used, reason = "a failed set-up fails the test")]
#![expect(
    clippy::print_stderr,
    reason = "the figures are part of the test's worth"
)]

mod support;

use std::{
    collections::{BTreeSet, VecDeque},
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use html5gum::{Token, Tokenizer};
use replay::{Dirs, Server, ServerConfig};
use support::{BACKENDS, Place, assert_fetched_once, assert_whole, crawl};
use url::Url;

const AUTHORITY: &str = "docs.example";
const START: &str = "http://docs.example/index.html";

/// The newest packaged documentation.
fn documentation() -> PathBuf {
    let mut folders: Vec<_> = fs::read_dir("/usr/share/doc")
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| {
            path.file_name()
                .is_some_and(|name| name.to_string_lossy().starts_with("postgresql-doc-"))
        })
        .map(|path| path.join("html"))
        .filter(|path| path.join("index.html").is_file())
        .collect();
    folders.sort();
    folders.pop().expect("PostgreSQL's documentation is installed (Debian's package postgresql-doc); `cargo xtask test` installs it")
}

/// Returns every URL of the site that a browser could come to from its index, missing pages included.
fn walk(folder: &Path) -> BTreeSet<String> {
    let start = Url::parse(START).unwrap();
    let mut reached = BTreeSet::from([start.to_string()]);
    let mut waiting = VecDeque::from([start]);
    while let Some(page) = waiting.pop_front() {
        let Ok(text) = fs::read(folder.join(page.path().trim_start_matches('/'))) else {
            continue;
        };
        for href in hrefs(&text) {
            let Ok(mut target) = page.join(&href) else {
                continue;
            };
            target.set_fragment(None);
            if target.host_str() == Some(AUTHORITY) && reached.insert(target.to_string()) {
                waiting.push_back(target);
            }
        }
    }
    reached
}

/// Returns the links of a page: those of anchors, areas, frames, and of `link` elements that name other pages.
fn hrefs(text: &[u8]) -> Vec<String> {
    let mut found = Vec::new();
    for token in Tokenizer::new(text).flatten() {
        let Token::StartTag(tag) = token else {
            continue;
        };
        let attribute = |name: &[u8]| {
            tag.attributes
                .iter()
                .find(|(key, _)| key.as_slice() == name)
                .map(|(_, value)| String::from_utf8_lossy(value.as_slice()).into_owned())
        };
        let link = match tag.name.as_slice() {
            b"a" | b"area" => attribute(b"href"),
            b"iframe" | b"frame" => attribute(b"src"),
            b"link" => attribute(b"rel")
                .filter(|rel| matches!(rel.as_str(), "canonical" | "next" | "prev" | "alternate"))
                .and_then(|_| attribute(b"href")),
            _ => None,
        };
        found.extend(link);
    }
    found
}

#[test]
fn the_crawl_reaches_what_a_walk_reaches() {
    if std::env::var_os("BLOOMCRAWL_SKIP_DOCUMENTATION").is_some() {
        eprintln!(
            "skipped: BLOOMCRAWL_SKIP_DOCUMENTATION says that PostgreSQL's manual cannot be had here"
        );
        return;
    }
    let folder = documentation();
    let reachable = walk(&folder);
    assert!(
        reachable.len() > 1_000,
        "only {} pages are reachable",
        reachable.len()
    );
    for backend in BACKENDS {
        let site = Arc::new(Dirs::new(&folder, AUTHORITY).unwrap());
        let server = Server::start(
            ServerConfig {
                https: None,
                ..ServerConfig::default()
            },
            site,
        )
        .unwrap();
        let place = Place::new(backend);
        let report = crawl(place.config(&server), &[START]);
        assert_whole(&report, &place.records());
        assert_fetched_once(&server, &reachable);
        eprintln!(
            "{backend:?}: {} pages once each, {} links, {} store reads, {:.0} pages/s",
            reachable.len(),
            report.links.discovered,
            report.links.store_reads,
            report.pages_per_second
        );
    }
}
