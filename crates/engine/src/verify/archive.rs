//! The WARC files: every place that a page record names holds the response of that URL, whole.

use std::{
    fs::{self, File},
    io::{BufRead, BufReader, ErrorKind, Read as _, Seek as _, SeekFrom},
    path::{Component, Path, PathBuf},
};

use types::{PageRecord, WarcLocation};
use warc::{Position, Reader, ReaderLimits};

use super::{Check, Findings, ViolationKind};
use crate::{
    EngineError,
    output::{WARC_FOLDER, file_number},
    saved::OutputPositions,
};

/// Blocks are inflated, so that their checksum is looked at, but not kept.
const LIMITS: ReaderLimits = ReaderLimits {
    header_bytes_max: 256 * 1_024,
    content_bytes_max: 0,
};

/// The archive of one crawl, with the file that was read last.
pub(super) struct Archive {
    folder: PathBuf,
    committed: OutputPositions,
    current: Option<(String, Result<OpenFile, String>)>,
    response_count: u64,
}

/// A WARC file, read from its begin to its end but for what is no response of a page.
struct OpenFile {
    file: BufReader<File>,
    /// Where the reader stands.
    at: u64,
    /// Bytes that are committed.
    bytes: u64,
}

impl Archive {
    /// Looks at which files there are.
    pub(super) fn open(check: &mut Check<'_>) -> Result<Self, EngineError> {
        let folder = check.data.join(WARC_FOLDER);
        let committed = check.saved.outputs.clone();
        let entries = match fs::read_dir(&folder) {
            Ok(entries) => Some(entries),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(EngineError::file(&folder)(error)),
        };
        for entry in entries.into_iter().flatten() {
            let path = entry.map_err(EngineError::file(&folder))?.path();
            if file_number(&path).is_some_and(|number| number >= committed.warc_files) {
                check.findings.remark(format!(
                    "{} was begun after the last commit, and is removed on resume",
                    path.display()
                ));
            }
        }
        if let Some(name) = &committed.warc_name {
            check_length(&folder, name, committed.warc_bytes, &mut check.findings);
        }
        Ok(Self {
            folder,
            committed,
            current: None,
            response_count: 0,
        })
    }

    /// Returns how many responses were looked at.
    pub(super) const fn response_count(&self) -> u64 {
        self.response_count
    }

    /// Reads the response that a page record names, if it names one.
    pub(super) fn check(&mut self, record: &PageRecord, findings: &mut Findings) {
        let Some(place) = &record.warc else {
            return;
        };
        self.response_count += 1;
        if let Err(problem) = self.read(record, place) {
            let WarcLocation { file, offset, .. } = place;
            let what = format!("{}: {file} at byte {offset}: {problem}", record.url);
            findings.add(ViolationKind::WarcRecord, &what);
        }
    }

    fn read(&mut self, record: &PageRecord, place: &WarcLocation) -> Result<(), String> {
        let is_current = matches!(&self.current, Some((name, _)) if *name == place.file);
        if !is_current {
            let opened = open(&self.folder, &place.file, &self.committed);
            self.current = Some((place.file.clone(), opened));
        }
        match &mut self.current {
            Some((_, Ok(file))) => file.check(record, place),
            Some((_, Err(problem))) => Err(problem.clone()),
            None => Err("it is not open".to_owned()),
        }
    }
}

/// Holds the length of the file that is being written against the committed one.
fn check_length(folder: &Path, name: &str, committed: u64, findings: &mut Findings) {
    match fs::metadata(folder.join(name)).map(|found| found.len()) {
        Ok(bytes) if bytes < committed => {
            let what = format!("{name} has {bytes} bytes, but {committed} were committed");
            findings.add(ViolationKind::WarcFile, &what);
        }
        Ok(bytes) if bytes > committed => findings.remark(format!(
            "{name} has {} bytes of no finished page at its end, which are cut on resume",
            bytes - committed
        )),
        Ok(_) => {}
        Err(error) => findings.add(ViolationKind::WarcFile, &format!("{name}: {error}")),
    }
}

/// Opens a file of the folder, and none elsewhere, whatever a damaged record names.
fn open(folder: &Path, name: &str, committed: &OutputPositions) -> Result<OpenFile, String> {
    let mut parts = Path::new(name).components();
    if !matches!((parts.next(), parts.next()), (Some(Component::Normal(part)), None) if part == name)
    {
        return Err("that is no name of a WARC file".to_owned());
    }
    let path = folder.join(name);
    let metadata = fs::metadata(&path).map_err(|error| error.to_string())?;
    if !metadata.is_file() {
        return Err("it is no regular file".to_owned());
    }
    let bytes = if committed.warc_name.as_deref() == Some(name) {
        metadata.len().min(committed.warc_bytes)
    } else {
        metadata.len()
    };
    let file = File::open(&path).map_err(|error| error.to_string())?;
    Ok(OpenFile {
        file: BufReader::with_capacity(1 << 18, file),
        at: 0,
        bytes,
    })
}

impl OpenFile {
    fn check(&mut self, record: &PageRecord, place: &WarcLocation) -> Result<(), String> {
        let end = place.offset.checked_add(place.length);
        if end.is_none_or(|end| end > self.bytes) {
            return Err(format!(
                "its {} bytes end behind the file's {}",
                place.length, self.bytes
            ));
        }
        self.seek(place.offset).map_err(|error| error.to_string())?;
        let mut part = self.file.by_ref().take(place.length);
        let result = check_record(&mut part, record, place);
        let left = part.limit();
        self.at = place.offset + (place.length - left);
        result
    }

    /// Moves on to `offset`, within the buffer if it is near.
    fn seek(&mut self, offset: u64) -> std::io::Result<()> {
        let ahead = offset
            .checked_sub(self.at)
            .and_then(|ahead| i64::try_from(ahead).ok());
        match ahead {
            Some(ahead) => self.file.seek_relative(ahead)?,
            None => drop(self.file.seek(SeekFrom::Start(offset))?),
        }
        self.at = offset;
        Ok(())
    }
}

/// Reads one record to its end, checksum included.
fn check_record(part: impl BufRead, page: &PageRecord, place: &WarcLocation) -> Result<(), String> {
    let position = Position {
        offset: place.offset,
        inflated_bytes_before: 0,
    };
    let mut reader = Reader::at(part, position, LIMITS).map_err(|error| error.kind.to_string())?;
    let record = match reader.next() {
        Some(record) => record.map_err(|error| error.kind.to_string())?,
        None => return Err("nothing is there".to_owned()),
    };
    match reader.next() {
        None => {}
        Some(Ok(_)) => return Err("it holds more than one record".to_owned()),
        Some(Err(error)) => return Err(error.kind.to_string()),
    }
    if record.kind() != "response" {
        return Err(format!("a record of type {:?} is there", record.kind()));
    }
    if record.target_uri() != Some(page.url.as_str()) {
        return Err(format!(
            "the response of {:?} is there",
            record.target_uri().unwrap_or_default()
        ));
    }
    if record.stored_bytes != Some(place.length) {
        return Err(format!("it is not {} bytes long", place.length));
    }
    let digest = record.fields.get("WARC-Payload-Digest");
    if digest.is_some() && digest != page.digest.as_deref() {
        return Err("its digest is not the page's".to_owned());
    }
    Ok(())
}
