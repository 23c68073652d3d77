//! `pages.jsonl`: one JSON object a finished URL, in the order of their commits.

use std::{fmt::Write as _, path::Path};

use types::{PageRecord, is_unprintable};

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
            serde_json::to_string(record).expect("a record of texts and numbers always serializes");
        escape_unprintable(&mut line);
        line.push('\n');
        self.0.append(line.as_bytes())?;
        line.pop();
        Ok(line.into_bytes())
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

/// Escapes characters that drive a terminal or turn the direction of text, so that the file can be looked at with any
/// tool. JSON escapes those below U+0020 itself; all others stand within strings, where an escape means the same.
fn escape_unprintable(json: &mut String) {
    if !json.contains(is_unprintable) {
        return;
    }
    let mut escaped = String::with_capacity(json.len() + 16);
    for letter in json.chars() {
        if is_unprintable(letter) {
            let mut units = [0; 2];
            for unit in letter.encode_utf16(&mut units) {
                write!(escaped, "\\u{unit:04x}").expect("a string takes all");
            }
        } else {
            escaped.push(letter);
        }
    }
    *json = escaped;
}

#[cfg(test)]
mod tests {
    use super::escape_unprintable;

    #[test]
    fn what_drives_a_terminal_is_escaped_and_means_the_same() {
        let title = "a\u{9b}31m\u{7f}b\u{202e}c\u{61c}d é 中";
        let mut json = serde_json::to_string(title).expect("a string serializes");
        escape_unprintable(&mut json);
        assert_eq!(json, "\"a\\u009b31m\\u007fb\\u202ec\\u061cd é 中\"");
        assert_eq!(
            serde_json::from_str::<String>(&json).expect("valid JSON"),
            title
        );
    }
}
