//! `filter.snapshot` in the data folder: the filter as of a checkpoint or of the end, which spares a start reading all keys.
//!
//! It is a copy of what the store says, and never believed on its own: its label names the crawl and the keys that it is
//! of, and these with the keys logged since (`key_log`) must be those that the store has by its accounts. Otherwise the
//! filter is rebuilt from the store, and the user is told why.

use std::{
    fs::{self, File},
    io::{BufReader, BufWriter, ErrorKind, Write as _},
    path::{Path, PathBuf},
};

use filter::GrowingFilter;
use frontier::SeenTest;
use serde::{Deserialize, Serialize};
use types::UrlKey;

use crate::{EngineError, folder::sync_folder};

/// The name of the snapshot within the data folder.
pub const SNAPSHOT_FILE: &str = "filter.snapshot";

/// Which keys of which crawl: all that the store has, or had; JSON in a snapshot's label.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct SnapshotLabel {
    crawl_id: String,
    /// The store's next free sequence. Each key has one, from 0 on, so this is also the number of keys.
    next_sequence: u64,
    /// The sum of the keys' low halves, modulo 2^64, whatever their order; other keys have another but for one chance in
    /// 2^64.
    key_sum: u64,
}

impl SnapshotLabel {
    /// Describes a state of a crawl.
    pub(crate) const fn new(crawl_id: String, next_sequence: u64, key_sum: u64) -> Self {
        Self {
            crawl_id,
            next_sequence,
            key_sum,
        }
    }

    /// Describes another state of the same crawl.
    pub(crate) fn at(&self, next_sequence: u64, key_sum: u64) -> Self {
        Self::new(self.crawl_id.clone(), next_sequence, key_sum)
    }

    /// Adds the keys that come next.
    pub(crate) fn add(&mut self, keys: impl Iterator<Item = UrlKey>) {
        for key in keys {
            self.next_sequence += 1;
            self.key_sum = self.key_sum.wrapping_add(low_half(key));
        }
    }

    /// Returns the crawl's id.
    pub(crate) fn crawl_id(&self) -> &str {
        &self.crawl_id
    }

    /// Returns the store's next free sequence, which is the number of keys.
    pub(crate) const fn next_sequence(&self) -> u64 {
        self.next_sequence
    }

    /// Returns the sum over the keys.
    pub(crate) const fn key_sum(&self) -> u64 {
        self.key_sum
    }

    fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("texts and numbers serialize")
    }

    /// Reads the label of a snapshot that this state may follow from, or says why it cannot.
    fn follows(&self, found: &[u8]) -> Result<Self, &'static str> {
        match serde_json::from_slice::<Self>(found) {
            Ok(found) if found.crawl_id != self.crawl_id => Err("is of another crawl"),
            Ok(found) if found.next_sequence > self.next_sequence => {
                Err("is of a later state than the store")
            }
            Ok(found) => Ok(found),
            Err(_) => Err("does not say which crawl it is of"),
        }
    }
}

#[expect(clippy::cast_possible_truncation, reason = "the low half is meant")]
const fn low_half(key: UrlKey) -> u64 {
    key.as_u128() as u64
}

/// Reads the snapshot that was kept of the state `wanted`, or of one before it; `None` if none was kept.
///
/// # Errors
///
/// Returns, for the user, why the one that is there is not used.
pub(crate) fn load(
    data: &Path,
    wanted: &SnapshotLabel,
) -> Result<Option<(SnapshotLabel, GrowingFilter)>, String> {
    let path = data.join(SNAPSHOT_FILE);
    // To open a pipe would be to wait for somebody to write to it.
    let file = match fs::metadata(&path).map(|found| found.is_file()) {
        Ok(true) => File::open(&path),
        Ok(false) => return Err(refusal("is no regular file")),
        Err(error) => Err(error),
    };
    let file = match file {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(refusal(&format!("cannot be opened: {error}"))),
    };
    let mut found = Err("has no label");
    let filter = GrowingFilter::load_if(&mut BufReader::new(file), |label| {
        found = wanted.follows(label);
        found.is_ok()
    })
    .map_err(|error| refusal(&error.to_string()))?;
    let found = found.map_err(refusal)?;
    Ok(filter.map(|filter| (found, filter)))
}

/// Tells the user that the snapshot is not used, and why.
pub(crate) fn refusal(why: &str) -> String {
    format!("{SNAPSHOT_FILE} {why}; the filter is rebuilt from the store")
}

/// Writes the snapshot of a seen test that has all keys of `label`: whole or not at all, also over a power cut.
pub(crate) fn save(data: &Path, label: &SnapshotLabel, seen: &SeenTest) -> Result<(), EngineError> {
    let path = data.join(SNAPSHOT_FILE);
    let temporary = temporary(data);
    // What is there, perhaps a link to elsewhere, is not written through. If it cannot be removed it cannot be created.
    drop(fs::remove_file(&temporary));
    let written = File::create_new(&temporary)
        .and_then(|file| {
            let mut file = BufWriter::new(file);
            seen.save(&label.to_bytes(), &mut file)?;
            file.flush()?;
            file.get_ref().sync_all()
        })
        .map_err(EngineError::file(&temporary))
        .and_then(|()| fs::rename(&temporary, &path).map_err(EngineError::file(&path)));
    if written.is_err() {
        // A disk that is full needs the room.
        drop(fs::remove_file(&temporary));
    }
    written?;
    sync_folder(data)
}

/// Removes what an earlier run has kept.
pub(crate) fn remove(data: &Path) -> Result<(), EngineError> {
    for path in [data.join(SNAPSHOT_FILE), temporary(data)] {
        match fs::remove_file(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(EngineError::file(&path)(error));
            }
            _ => {}
        }
    }
    Ok(())
}

fn temporary(data: &Path) -> PathBuf {
    data.join(format!("{SNAPSHOT_FILE}.new"))
}
