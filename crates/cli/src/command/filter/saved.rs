//! Finds and loads the snapshot of a filter.

use std::{
    fs::File,
    io::{BufReader, ErrorKind},
    path::{Path, PathBuf},
};

use engine::SNAPSHOT_FILE;
use filter::{GrowingFilter, SnapshotError};

use crate::failure::{Exit, Failure};

/// A snapshot as it was found.
pub(super) struct Saved {
    /// Its file.
    pub(super) path: PathBuf,
    /// The size of the file.
    pub(super) file_bytes: u64,
    /// What it is of, by the word of the crawl that saved it; null where it says nothing that can be read.
    pub(super) label: serde_json::Value,
    /// The filter.
    pub(super) filter: GrowingFilter,
}

/// Loads the snapshot at `path`, or in the data folder at `path`.
///
/// # Errors
///
/// Fails when there is none, and when it is not whole. Both are wrong usage: what was named is not what is needed.
pub(super) fn load(path: &Path) -> Result<Saved, Failure> {
    let is_folder = path.is_dir();
    let file_path = if is_folder {
        path.join(SNAPSHOT_FILE)
    } else {
        path.to_path_buf()
    };
    let unreadable = |error: std::io::Error| {
        if error.kind() == ErrorKind::NotFound && is_folder {
            nothing_saved(path)
        } else {
            refused(&file_path, &SnapshotError::Io(error))
        }
    };
    // To open a pipe would be to wait for somebody to write to it.
    if !file_path.metadata().map_err(unreadable)?.is_file() {
        let failure = Failure::new(
            Exit::Usage,
            format!("{} is no regular file", file_path.display()),
        );
        return Err(failure.with_hint("name a data folder, or its file filter.snapshot"));
    }
    let file = File::open(&file_path).map_err(unreadable)?;
    let file_bytes = file
        .metadata()
        .map_err(|error| refused(&file_path, &error.into()))?
        .len();
    let (label, filter) = GrowingFilter::load(&mut BufReader::new(file))
        .map_err(|error| refused(&file_path, &error))?;
    Ok(Saved {
        path: file_path,
        file_bytes,
        label: serde_json::from_slice(&label).unwrap_or_default(),
        filter,
    })
}

/// Tells why there is no snapshot: mostly that the crawl is small, or that none was due yet.
fn nothing_saved(folder: &Path) -> Failure {
    Failure::new(
        Exit::Usage,
        format!("{} holds no {SNAPSHOT_FILE} yet", folder.display()),
    )
    .with_hint(
        "a crawl that has a filter writes it at its first checkpoint (checkpoint-interval, by default a minute) and when a run ends; a small crawl, or one with --seen-mode exact or store, has no filter and writes none",
    )
}

fn refused(path: &Path, error: &SnapshotError) -> Failure {
    let failure = Failure::new(Exit::Usage, format!("{} {error}", path.display()));
    match error {
        SnapshotError::NotASnapshot => {
            failure.with_hint("name a data folder, or its file filter.snapshot")
        }
        SnapshotError::Version(_) | SnapshotError::Cut | SnapshotError::Damaged(_) => failure
            .with_hint(
                "no URL is lost with it: the next run of the crawl makes the filter anew from the store",
            ),
        _ => failure,
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a failed set-up fails the test")]

    use std::fs;

    use filter::{Exact, GrowthConfig};

    use super::*;

    fn snapshot() -> Vec<u8> {
        let filter = GrowingFilter::new(&GrowthConfig {
            expected_count: 5_000,
            exact: Exact::Never,
            ..GrowthConfig::default()
        })
        .unwrap();
        filter.enter(&[1, 2, 3].map(|key: u128| key << 126 | key << 100 | key << 62));
        let mut bytes = Vec::new();
        filter.save(b"label", &mut bytes).unwrap();
        bytes
    }

    fn message(path: &Path) -> String {
        let failure = load(path).map(|_| ()).unwrap_err();
        assert_eq!(failure.exit, Exit::Usage);
        failure.message
    }

    #[test]
    fn a_snapshot_is_found_by_its_file_and_by_its_folder() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(SNAPSHOT_FILE), snapshot()).unwrap();
        for path in [
            folder.path().to_path_buf(),
            folder.path().join(SNAPSHOT_FILE),
        ] {
            let saved = load(&path).unwrap();
            assert_eq!(saved.filter.stats().item_count, 3);
            assert_eq!(saved.file_bytes, snapshot().len() as u64);
        }
    }

    #[test]
    fn what_is_no_whole_snapshot_is_refused_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        assert!(message(&path).contains("cannot be read"));
        assert!(message(folder.path()).contains("holds no filter.snapshot"));
        fs::write(&path, "URLs\n".repeat(100)).unwrap();
        assert!(message(&path).contains("no snapshot"));
        let bytes = snapshot();
        fs::write(&path, &bytes[..bytes.len() - 9]).unwrap();
        assert!(message(&path).contains("cut short"));
        for (place, found) in [(bytes.len() / 2, "damaged"), (8, "version")] {
            let mut bytes = bytes.clone();
            bytes[place] ^= 0x10;
            fs::write(&path, bytes).unwrap();
            let message = message(&path);
            assert!(message.contains(found), "{found}: {message}");
        }
    }
}
