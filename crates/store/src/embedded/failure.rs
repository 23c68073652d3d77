//! What a failure of the embedded engine means for the crawl.

use std::{
    fs,
    io::{self, ErrorKind},
    path::Path,
};

use fjall::LsmError;

use super::has_entries;
use crate::StoreError;

/// The file of the engine whose lock keeps a second process out.
const LOCK_FILE: &str = "lock";
/// What is written to see whether the disk takes any more.
const PROBE_BYTES: usize = 1 << 20;

/// Sorts a failure of the engine whose files are in `folder`.
pub(super) fn failure(folder: &Path, error: fjall::Error) -> StoreError {
    if let fjall::Error::Io(cause) = &error
        && cause.kind() == ErrorKind::NotFound
        && let Some(failure) = missing(folder)
    {
        return failure;
    }
    let name = folder.display();
    match error {
        fjall::Error::Locked => StoreError::Locked(name.to_string()),
        fjall::Error::InvalidVersion(_) => StoreError::Incompatible(format!(
            "{name} was written by another version of the embedded engine"
        )),
        fjall::Error::JournalRecovery(_)
        | fjall::Error::Decompress(_)
        | fjall::Error::InvalidTrailer
        | fjall::Error::InvalidTag(_)
        | fjall::Error::Unrecoverable => StoreError::Corrupt(format!("{name}: {error:?}")),
        fjall::Error::Io(error) | fjall::Error::Storage(LsmError::Io(error)) => {
            io_failure(&name.to_string(), &error)
        }
        fjall::Error::Poisoned => poisoned(folder),
        other => StoreError::Backend(format!("{name}: {other:?}")),
    }
}

/// Sorts a failure of the system; `text` says what was being done to what.
pub(super) fn io_failure(text: &str, error: &io::Error) -> StoreError {
    let text = format!("{text}: {error}");
    match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => StoreError::DiskFull(text),
        _ => StoreError::Backend(text),
    }
}

/// Says why the engine takes no more writes. When its worker fails it keeps the cause to itself, and the half-written
/// table on the disk; so a disk that was too full for that has no room for the probe either.
fn poisoned(folder: &Path) -> StoreError {
    let text = format!(
        "{}: the embedded engine takes no more, since an earlier write of it failed",
        folder.display()
    );
    let probe = folder.with_file_name("store.probe");
    let probed = fs::write(&probe, vec![0; PROBE_BYTES]);
    let _ = fs::remove_file(probe);
    match probed {
        Ok(()) => StoreError::Backend(text),
        Err(error) => io_failure(&text, &error),
    }
}

/// Says what is missing of a store whose folder is there. The engine makes its lock file only with the store; the file
/// holds nothing, so that alone is no damage.
fn missing(folder: &Path) -> Option<StoreError> {
    if !has_entries(folder) {
        return None;
    }
    let lock = folder.join(LOCK_FILE);
    Some(if lock.exists() {
        StoreError::Corrupt(format!(
            "{}: a file of the store is missing",
            folder.display()
        ))
    } else {
        StoreError::Backend(format!(
            "{} is missing; it only keeps a second process out: make an empty file of this name, unless another process \
             has the crawl",
            lock.display()
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_told_from_other_failures_whoever_meets_it() {
        let folder = Path::new("store");
        for kind in [ErrorKind::StorageFull, ErrorKind::QuotaExceeded] {
            for error in [
                fjall::Error::Io(kind.into()),
                fjall::Error::Storage(LsmError::Io(kind.into())),
            ] {
                let sorted = failure(folder, error);
                assert!(matches!(sorted, StoreError::DiskFull(_)), "{sorted:?}");
            }
        }
        let denied = io::Error::from(ErrorKind::PermissionDenied);
        let sorted = failure(folder, fjall::Error::Io(denied));
        assert!(matches!(sorted, StoreError::Backend(_)), "{sorted:?}");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_write_that_the_worker_failed_at_is_put_down_to_a_full_disk_only_where_there_is_one() {
        let place = tempfile::tempdir().expect("a folder");
        let folder = place.path().join("store");
        let sorted = failure(&folder, fjall::Error::Poisoned);
        assert!(matches!(sorted, StoreError::Backend(_)), "{sorted:?}");
        // Whatever is written to this device meets a full disk.
        let probe = place.path().join("store.probe");
        std::os::unix::fs::symlink("/dev/full", probe).expect("a link");
        let sorted = failure(&folder, fjall::Error::Poisoned);
        let is_named = matches!(&sorted, StoreError::DiskFull(text) if text.contains("No space"));
        assert!(is_named, "{sorted:?}");
        assert_eq!(place.path().read_dir().expect("it is there").count(), 0);
    }
}
