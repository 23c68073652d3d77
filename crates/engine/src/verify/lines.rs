//! `pages.jsonl`: up to its committed length, one line for each page record of the store, and the same.

use std::{
    fs::{self, File},
    io::{BufRead, BufReader, ErrorKind, Read as _},
};

use types::{CanonicalUrl, PageRecord};

use super::{Check, ViolationKind, archive::Archive, keys::Known};
use crate::{EngineError, output::PAGES_FILE};

/// No line of ours is longer, in bytes.
const LINE_BYTES_MAX: u64 = 16 << 20;

/// Reads the file, and for each line the archived response that it names; returns how many there are of both.
pub(super) fn check(check: &mut Check<'_>, known: &mut Known) -> Result<(u64, u64), EngineError> {
    let committed = check.saved.outputs.jsonl_bytes;
    let mut archive = Archive::open(check)?;
    let mut line_count = 0;
    if let Some(file) = open(check, committed)? {
        let mut file = BufReader::with_capacity(1 << 18, file.take(committed));
        let path = check.data.join(PAGES_FILE);
        let mut line = Vec::new();
        let mut done = 0;
        loop {
            line.clear();
            let bytes = file
                .by_ref()
                .take(LINE_BYTES_MAX)
                .read_until(b'\n', &mut line)
                .map_err(EngineError::file(&path))?;
            if bytes == 0 {
                break;
            }
            line_count += 1;
            done += bytes as u64;
            check.teller.tell("bytes of pages.jsonl", done, committed);
            check_line(check, known, &mut archive, &line, line_count);
            if line.last() != Some(&b'\n') {
                // A line without an end is the last, or one of no end at all.
                break;
            }
        }
    }
    known.find_missing_lines(&mut check.findings);
    Ok((line_count, archive.response_count()))
}

/// Opens the file; `None` where there is none, which is a violation if there should be.
fn open(check: &mut Check<'_>, committed: u64) -> Result<Option<File>, EngineError> {
    let path = check.data.join(PAGES_FILE);
    let findings = &mut check.findings;
    let found = match fs::metadata(&path) {
        Ok(found) => found,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            if committed > 0 {
                let what = format!("it is missing, but {committed} bytes were committed");
                findings.add(ViolationKind::PagesFile, &what);
            }
            return Ok(None);
        }
        Err(error) => return Err(EngineError::file(&path)(error)),
    };
    if !found.is_file() {
        findings.add(ViolationKind::PagesFile, "it is no regular file");
        return Ok(None);
    }
    if found.len() < committed {
        let what = format!(
            "it has {} bytes, but {committed} were committed",
            found.len()
        );
        findings.add(ViolationKind::PagesFile, &what);
    } else if found.len() > committed {
        findings.remark(format!(
            "{PAGES_FILE} has {} bytes of no finished page at its end, which are cut on resume",
            found.len() - committed
        ));
    }
    File::open(&path)
        .map(Some)
        .map_err(EngineError::file(&path))
}

fn check_line(
    check: &mut Check<'_>,
    known: &mut Known,
    archive: &mut Archive,
    line: &[u8],
    number: u64,
) {
    let findings = &mut check.findings;
    let Some((json, record, url)) = parse(line) else {
        let what = format!("line {number}");
        findings.add(ViolationKind::LineUnreadable, &what);
        return;
    };
    let mark = known
        .find(check.key_seed.key(&url))
        .filter(|mark| mark.is_recorded());
    let Some(mark) = mark else {
        findings.add(ViolationKind::LineUnknown, url.as_str());
        return;
    };
    if mark.is_lined() {
        findings.add(ViolationKind::LineTwice, url.as_str());
        return;
    }
    mark.set_lined();
    if !mark.has_record(json) {
        findings.add(ViolationKind::LineDiffers, url.as_str());
    }
    archive.check(&record, findings);
}

/// Returns a whole line without its end, its record and that one's URL.
fn parse(line: &[u8]) -> Option<(&[u8], PageRecord, CanonicalUrl)> {
    let json = line.strip_suffix(b"\n")?;
    let record: PageRecord = serde_json::from_slice(json).ok()?;
    let url = CanonicalUrl::from_stored(record.url.clone()).ok()?;
    Some((json, record, url))
}
