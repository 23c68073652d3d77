//! What a data folder must hold, whatever happened: each page's line and archived response once, and nothing damaged but,
//! after a death, the last record.

use std::{
    collections::BTreeSet,
    fs,
    io::BufReader,
    path::{Path, PathBuf},
};

use types::PageRecord;
use warc::{ReadErrorKind, Reader, ReaderLimits};

/// Says what is wrong with the outputs of a crawl that is over, if anything is: each of `pages` has one line and one
/// response in the archive, and there is nothing else.
pub(crate) fn check_complete(data: &Path, pages: &BTreeSet<String>) -> Result<(), String> {
    let lines = lines(data, false)?;
    let responses = responses(data, false)?;
    for (what, urls) in [("line", &lines), ("archived response", &responses)] {
        let missing: Vec<_> = pages.difference(urls).take(3).collect();
        let more: Vec<_> = urls.difference(pages).take(3).collect();
        if !missing.is_empty() || !more.is_empty() {
            return Err(format!(
                "{} of {} pages have a {what}; missing: {missing:?}; beyond the site: {more:?}",
                urls.len(),
                pages.len()
            ));
        }
    }
    Ok(())
}

/// Says what is wrong with the outputs of a crawl that was killed, if anything is: all can be read, but for a last record
/// that is cut.
pub(crate) fn check_killed(data: &Path) -> Result<(), String> {
    lines(data, true)?;
    responses(data, true)?;
    Ok(())
}

/// Returns the URLs of the page records.
fn lines(data: &Path, may_be_cut: bool) -> Result<BTreeSet<String>, String> {
    let path = data.join("pages.jsonl");
    let bytes = match fs::read(&path) {
        Ok(bytes) => bytes,
        Err(_) if may_be_cut && !path.exists() => Vec::new(),
        Err(error) => return Err(format!("pages.jsonl: {error}")),
    };
    let end = bytes
        .iter()
        .rposition(|&byte| byte == b'\n')
        .map_or(0, |at| at + 1);
    if end < bytes.len() && !may_be_cut {
        return Err("the last line of pages.jsonl is cut".to_owned());
    }
    let mut urls = BTreeSet::new();
    for (index, line) in bytes[..end]
        .split_inclusive(|&byte| byte == b'\n')
        .enumerate()
    {
        let record: PageRecord = serde_json::from_slice(line)
            .map_err(|error| format!("line {} of pages.jsonl: {error}", index + 1))?;
        if urls.contains(&record.url) {
            return Err(format!("{} has two lines", record.url));
        }
        urls.insert(record.url);
    }
    Ok(urls)
}

/// Returns the URLs of the archived responses, robots.txt aside.
fn responses(data: &Path, may_be_cut: bool) -> Result<BTreeSet<String>, String> {
    let mut urls = BTreeSet::new();
    let files = archive_files(data);
    for (index, path) in files.iter().enumerate() {
        let file = fs::File::open(path).map_err(|error| format!("{}: {error}", path.display()))?;
        for record in Reader::new(BufReader::new(file), ReaderLimits::default()) {
            let record = match record {
                Ok(record) => record,
                Err(error)
                    if may_be_cut
                        && index + 1 == files.len()
                        && matches!(error.kind, ReadErrorKind::Truncated) =>
                {
                    break;
                }
                Err(error) => return Err(format!("{}: {error}", path.display())),
            };
            let url = record.target_uri().unwrap_or_default().to_owned();
            if record.kind() != "response" || url.ends_with("/robots.txt") {
                continue;
            }
            if urls.contains(&url) {
                return Err(format!("{url} is archived twice"));
            }
            urls.insert(url);
        }
    }
    Ok(urls)
}

/// Returns the WARC files, in the order in which they were begun.
fn archive_files(data: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(data.join("warc")).into_iter().flatten();
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.expect("a WARC file").path())
        .collect();
    files.sort();
    files
}
