//! `pages.jsonl`: one JSON object a finished URL, in the order of their commits.

use std::path::Path;

use types::PageRecord;

use super::{Appender, PAGES_FILE};
use crate::EngineError;

/// The file of page records.
pub(crate) struct PagesFile(Appender);

impl PagesFile {
    /// Opens the file in the data folder and cuts it back to the committed length.
    pub(crate) fn open(data: &Path, committed_bytes: u64) -> Result<Self, EngineError> {
        Appender::open(&data.join(PAGES_FILE), committed_bytes).map(Self)
    }

    /// Appends one record and returns its JSON without the line end.
    pub(crate) fn append(&mut self, record: &PageRecord) -> Result<Vec<u8>, EngineError> {
        let mut line =
            serde_json::to_vec(record).expect("a record of texts and numbers always serializes");
        line.push(b'\n');
        self.0.append(&line)?;
        line.pop();
        Ok(line)
    }

    /// Hands everything to the system and returns the length.
    pub(crate) fn flush(&mut self) -> Result<u64, EngineError> {
        self.0.flush()
    }

    /// Makes everything flushed survive a power cut.
    pub(crate) fn sync(&self) -> Result<(), EngineError> {
        self.0.sync()
    }
}
