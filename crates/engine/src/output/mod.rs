//! The outputs of a crawl: page records and archives, written only by the committer and only for finished pages.
//!
//! Bytes are appended and handed to the system before the store commits the pages that they belong to, and the commit
//! says how far each file reaches. After a death the files are cut back to that, so every finished page stands in
//! them exactly once.

mod jsonl;
mod warc;

use std::{
    fs::{File, OpenOptions},
    io::{BufWriter, Write},
    path::{Path, PathBuf},
};

pub(crate) use self::{
    jsonl::PagesFile,
    warc::{WarcFiles, WarcinfoMaker, file_number},
};
use crate::{EngineError, folder::sync_folder, message::FinishedPage, saved::OutputPositions};

/// The name of the file of page records within the data folder.
pub(crate) const PAGES_FILE: &str = "pages.jsonl";
/// The name of the folder of WARC files within the data folder.
pub(crate) const WARC_FOLDER: &str = "warc";

/// All outputs of one crawl.
pub(crate) struct Outputs {
    pages: PagesFile,
    warc: Option<WarcFiles>,
    committed: OutputPositions,
}

impl Outputs {
    /// Wraps the opened files; `warc` is `None` when this run writes no archive, and the committed positions of an
    /// earlier run's archive are kept then.
    pub(crate) const fn new(
        pages: PagesFile,
        warc: Option<WarcFiles>,
        committed: OutputPositions,
    ) -> Self {
        Self {
            pages,
            warc,
            committed,
        }
    }

    /// Appends records that belong to no page.
    pub(crate) fn archive(&mut self, members: &[u8]) -> Result<(), EngineError> {
        match &mut self.warc {
            Some(warc) => warc.append(members).map(|_| ()),
            None => Ok(()),
        }
    }

    /// Appends a finished page: its WARC records first, then its line, which names their place.
    /// Returns the line without its end, which is what the store keeps of the page.
    pub(crate) fn append(&mut self, page: &mut FinishedPage) -> Result<Vec<u8>, EngineError> {
        if let (Some(warc), Some(members)) = (&mut self.warc, page.warc.take()) {
            let mut place = warc.append(&members.bytes)?;
            place.offset += members.response_offset;
            place.length = members.response_bytes;
            page.record.warc = Some(place);
        }
        self.pages.append(&page.record)
    }

    /// Hands everything to the system and returns how far each file reaches.
    pub(crate) fn flush(&mut self) -> Result<OutputPositions, EngineError> {
        self.committed.jsonl_bytes = self.pages.flush()?;
        if let Some(warc) = &mut self.warc {
            warc.flush(&mut self.committed)?;
        }
        Ok(self.committed.clone())
    }

    /// Makes everything flushed survive a power cut.
    pub(crate) fn sync(&mut self) -> Result<(), EngineError> {
        self.pages.sync()?;
        self.warc.as_mut().map_or(Ok(()), WarcFiles::sync)
    }
}

/// A file that only grows, of known length.
pub(crate) struct Appender {
    path: PathBuf,
    file: BufWriter<File>,
    bytes: u64,
}

impl Appender {
    /// Opens a file for appending and cuts it back to `bytes`, the length that the last commit speaks of. A new file is made.
    /// From then on its name survives a power cut.
    pub(crate) fn open(path: &Path, bytes: u64) -> Result<Self, EngineError> {
        let damaged = |problem: String| EngineError::Damaged {
            path: path.to_path_buf(),
            problem,
        };
        let is_new = !path.exists();
        if bytes > 0 && is_new {
            return Err(damaged(format!(
                "missing, but {bytes} bytes of it were committed; restore the file, or begin a new crawl"
            )));
        }
        let file = OpenOptions::new()
            .create(true)
            .append(true)
            .open(path)
            .map_err(EngineError::file(path))?;
        // A file that is there may be of a run that died before this.
        if let Some(folder) = path.parent() {
            sync_folder(folder)?;
        }
        let found = file.metadata().map_err(EngineError::file(path))?.len();
        if found < bytes {
            return Err(damaged(format!(
                "{found} bytes long, but {bytes} bytes were committed; restore the file, or begin a new crawl"
            )));
        }
        file.set_len(bytes).map_err(EngineError::file(path))?;
        Ok(Self {
            path: path.to_path_buf(),
            file: BufWriter::with_capacity(1 << 18, file),
            bytes,
        })
    }

    /// Appends bytes and returns the offset at which they begin.
    pub(crate) fn append(&mut self, bytes: &[u8]) -> Result<u64, EngineError> {
        self.file
            .write_all(bytes)
            .map_err(EngineError::file(&self.path))?;
        let offset = self.bytes;
        self.bytes += bytes.len() as u64;
        Ok(offset)
    }

    /// Hands everything to the system and returns the length.
    pub(crate) fn flush(&mut self) -> Result<u64, EngineError> {
        self.file.flush().map_err(EngineError::file(&self.path))?;
        Ok(self.bytes)
    }

    /// Makes everything flushed survive a power cut.
    pub(crate) fn sync(&self) -> Result<(), EngineError> {
        self.file
            .get_ref()
            .sync_data()
            .map_err(EngineError::file(&self.path))
    }

    /// Returns the length, unflushed bytes included.
    pub(crate) const fn bytes(&self) -> u64 {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a failed set-up fails the test")]

    use super::*;

    #[test]
    fn reopening_cuts_what_was_not_committed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        let mut file = Appender::open(&path, 0).unwrap();
        assert_eq!(file.append(b"one\n").unwrap(), 0);
        let committed = file.flush().unwrap();
        assert_eq!(file.append(b"two\n").unwrap(), 4);
        file.flush().unwrap();
        drop(file);
        let mut file = Appender::open(&path, committed).unwrap();
        assert_eq!(file.append(b"three\n").unwrap(), 4);
        file.flush().unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"one\nthree\n");
    }

    #[test]
    fn a_file_shorter_than_committed_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        std::fs::write(&path, b"abc").unwrap();
        let refusal = Appender::open(&path, 4).err().unwrap().to_string();
        assert!(
            refusal.contains("3 bytes long, but 4 bytes were committed"),
            "{refusal}"
        );
    }
}
