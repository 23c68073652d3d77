//! Streams read from files: a recorded stream of links, and a list of URLs.

use std::{
    fs::File,
    io::{BufRead as _, BufReader},
    path::Path,
};

use anyhow::{Context as _, Result};
use flate2::read::MultiGzDecoder;

use super::{Recorded, RecordedBuilder};

/// Links of a page of a list.
const LIST_PAGE_LINKS: usize = 64;

/// How often a list is offered: the second time everything in it is a duplicate, as on the pages of a site.
const LIST_PASSES: usize = 2;

/// Reads a gzip file of lines `page number TAB URL`; the links of one page follow each other.
///
/// # Errors
///
/// Fails when the file cannot be read, or a line has no tab.
pub fn link_stream(path: &Path) -> Result<Recorded> {
    let mut builder = RecordedBuilder::default();
    let mut page = String::new();
    for_each_line(path, |line| {
        let (number, url) = line
            .split_once('\t')
            .with_context(|| format!("the line {line:?} is not: page number, tab, URL"))?;
        if number != page {
            builder.end_page();
            number.clone_into(&mut page);
        }
        builder.text(url)
    })?;
    Ok(builder.finish(1))
}

/// Reads a gzip file of one URL a line: 64 of them make a page, and the whole is offered twice.
///
/// # Errors
///
/// Fails when the file cannot be read.
pub fn url_list(path: &Path) -> Result<Recorded> {
    let mut builder = RecordedBuilder::default();
    for_each_line(path, |line| {
        builder.text(line)?;
        if builder.page_len() == LIST_PAGE_LINKS {
            builder.end_page();
        }
        Ok(())
    })?;
    Ok(builder.finish(LIST_PASSES))
}

fn for_each_line(path: &Path, mut each: impl FnMut(&str) -> Result<()>) -> Result<()> {
    let file = File::open(path).with_context(|| format!("{} cannot be opened", path.display()))?;
    let mut lines = BufReader::new(MultiGzDecoder::new(file));
    let mut line = Vec::new();
    loop {
        line.clear();
        let length = lines
            .read_until(b'\n', &mut line)
            .with_context(|| format!("{} cannot be read", path.display()))?;
        if length == 0 {
            return Ok(());
        }
        each(String::from_utf8_lossy(&line).trim_end_matches(['\n', '\r']))?;
    }
}
