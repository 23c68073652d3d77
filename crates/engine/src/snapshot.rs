//! `filter.snapshot` in the data folder: the filter as of a clean end, which spares the next start reading all keys.
//!
//! It is a copy of what the store says, and never believed on its own: its label must name the crawl and the state of its
//! store. Otherwise the filter is rebuilt from the store, and the user is told why.

use std::{
    fs::{self, File},
    io::{BufReader, BufWriter, ErrorKind, Write as _},
    path::{Path, PathBuf},
};

use filter::GrowingFilter;
use frontier::SeenTest;
use serde::{Deserialize, Serialize};

use crate::{EngineError, folder::sync_folder};

/// The name of the snapshot within the data folder.
pub const SNAPSHOT_FILE: &str = "filter.snapshot";

/// What a snapshot is of; JSON in its label.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct SnapshotLabel {
    crawl_id: String,
    /// The store's next free sequence: every key in the store has a lower one.
    next_sequence: u64,
    /// Keys in the store, by its accounts.
    key_count: u64,
}

impl SnapshotLabel {
    /// Describes a state of a crawl.
    pub(crate) const fn new(crawl_id: String, next_sequence: u64, key_count: u64) -> Self {
        Self {
            crawl_id,
            next_sequence,
            key_count,
        }
    }

    /// Describes another state of the same crawl.
    pub(crate) fn at(&self, next_sequence: u64, key_count: u64) -> Self {
        Self::new(self.crawl_id.clone(), next_sequence, key_count)
    }

    /// Returns the store's next free sequence.
    pub(crate) const fn next_sequence(&self) -> u64 {
        self.next_sequence
    }

    /// Returns the number of keys.
    pub(crate) const fn key_count(&self) -> u64 {
        self.key_count
    }

    fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("texts and numbers serialize")
    }

    /// Says why a snapshot with the label `found` is not of this state; `None` if it is.
    fn difference(&self, found: &[u8]) -> Option<&'static str> {
        match serde_json::from_slice::<Self>(found) {
            Ok(found) if found == *self => None,
            Ok(found) if found.crawl_id == self.crawl_id => {
                Some("is of another state of the store, as after a run that was cut off")
            }
            Ok(_) => Some("is of another crawl"),
            Err(_) => Some("does not say which crawl it is of"),
        }
    }
}

/// Reads the snapshot that was kept for the state `wanted`; `None` if none was kept.
///
/// # Errors
///
/// Returns, for the user, why the one that is there is not used.
pub(crate) fn load(data: &Path, wanted: &SnapshotLabel) -> Result<Option<GrowingFilter>, String> {
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
    let mut difference = None;
    let filter = GrowingFilter::load_if(&mut BufReader::new(file), |label| {
        difference = wanted.difference(label);
        difference.is_none()
    })
    .map_err(|error| refusal(&error.to_string()))?;
    match difference {
        None => Ok(filter),
        Some(difference) => Err(refusal(difference)),
    }
}

/// Tells the user that the snapshot is not used, and why.
pub(crate) fn refusal(why: &str) -> String {
    format!("{SNAPSHOT_FILE} {why}; the filter is rebuilt from the store")
}

/// Writes the snapshot of a seen test whose every key is durable in the store: whole or not at all, also over a power
/// cut.
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
