//! The link graph of documentation as Debian packages it, in the order of a breadth-first crawl.

use std::{
    collections::VecDeque,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, ensure};
use parser::{Parser, ParserConfig};
use types::{CanonicalUrl, Canonicalizer, Headers};

use super::{Recorded, RecordedBuilder};

/// Where Debian keeps documentation.
const PACKAGES: &str = "/usr/share/doc";

/// A folder of pages, as a site.
#[derive(Clone, Debug)]
pub struct Site {
    /// The host name it gets.
    pub name: String,
    /// The folder, with an `index.html` in it.
    pub folder: PathBuf,
}

/// Finds the packaged manual of `PostgreSQL` (package `postgresql-doc`) and documentation of Python (package
/// `python3-doc`), the newest of each.
#[must_use]
pub fn packaged_sites() -> Vec<Site> {
    [("postgresql", "postgresql-doc-"), ("python", "python3")]
        .into_iter()
        .filter_map(|(name, prefix)| {
            let mut folders: Vec<PathBuf> = fs::read_dir(PACKAGES)
                .into_iter()
                .flatten()
                .filter_map(|entry| Some(entry.ok()?.path()))
                .filter(|path| {
                    path.file_name()
                        .is_some_and(|file| file.to_string_lossy().starts_with(prefix))
                })
                .map(|path| path.join("html"))
                .filter(|path| path.join("index.html").is_file())
                .collect();
            folders.sort();
            Some(Site {
                name: format!("{name}.docs.example"),
                folder: folders.pop()?,
            })
        })
        .collect()
}

/// Crawls `sites` breadth-first from the index of each, side by side, and records every link of every page.
///
/// # Errors
///
/// Fails when no page could be read.
pub fn documentation(sites: &[Site]) -> Result<Recorded> {
    let parser = Parser::new(ParserConfig {
        outlinks_max: 10_000,
        nesting_max: 512,
        product_token: "bloomcrawl".to_owned(),
        canonicalizer: Canonicalizer::default(),
    });
    let mut builder = RecordedBuilder::default();
    let mut waiting = VecDeque::new();
    for site in sites {
        let start = format!("http://{}/index.html", site.name);
        let start = Canonicalizer::default()
            .canonicalize(&start)
            .with_context(|| format!("{start} is no URL"))?;
        builder.url(start.clone())?;
        waiting.push_back(start);
    }
    builder.end_page();
    let mut page_count = 0_u64;
    while let Some(page) = waiting.pop_front() {
        let Some(body) = file_of(sites, &page).and_then(|path| fs::read(path).ok()) else {
            continue;
        };
        page_count += 1;
        let headers = Headers::new(vec![("content-type".to_owned(), b"text/html".to_vec())]);
        for outlink in parser.parse(&page, &headers, &body).outlinks {
            match outlink.target {
                Ok(url) => {
                    if builder.url(url.clone())? && file_of(sites, &url).is_some() {
                        waiting.push_back(url);
                    }
                }
                Err(_) => builder.reject(),
            }
        }
        builder.end_page();
    }
    ensure!(page_count > 0, "no page of {sites:?} could be read");
    Ok(builder.finish(1))
}

/// Returns the page that a site has for a URL. A canonical path has no `..` to leave the folder by.
fn file_of(sites: &[Site], url: &CanonicalUrl) -> Option<PathBuf> {
    let site = sites
        .iter()
        .find(|site| url.host_str().strip_prefix("http://") == Some(&site.name))?;
    let path = url.path_and_query().split('?').next()?;
    let mut file = site.folder.join(path.trim_start_matches('/'));
    if path.ends_with('/') {
        file.push("index.html");
    }
    let is_page = Path::extension(&file).is_some_and(|extension| extension == "html");
    (is_page && file.is_file()).then_some(file)
}
