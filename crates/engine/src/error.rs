//! Our own failures: what keeps a crawl from starting or going on. The web's failures are data, never these.

use std::path::{Path, PathBuf};

use store::StoreError;
use thiserror::Error;

use crate::MemoryError;

/// Why a crawl could not start or had to stop.
#[derive(Debug, Error)]
pub enum EngineError {
    /// A setting cannot be used.
    #[error("{0}")]
    Config(String),
    /// The budget of memory is too small.
    #[error(transparent)]
    Memory(#[from] MemoryError),
    /// The data folder and the store are not of one crawl.
    #[error(
        "the data folder {folder} belongs to {folder_crawl}, but the store holds {store_crawl}; \
         use the folder and the store of one crawl, or empty ones of both"
    )]
    Mismatch {
        /// The data folder.
        folder: PathBuf,
        /// Whose folder it is, in words.
        folder_crawl: String,
        /// What the store holds, in words.
        store_crawl: String,
    },
    /// The data folder cannot be made or written.
    #[error("the data folder {path} cannot be used: {source}")]
    Folder {
        /// The folder.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// Another process crawls into the same data folder.
    #[error("{0} is in use by another crawl")]
    FolderInUse(PathBuf),
    /// No host answered in this run, and one was to be given up: the fault is more likely on our side of the network.
    #[error("no host could be reached: {0}")]
    NothingReached(String),
    /// The system lets this process open no more files.
    #[error("no more files or connections can be opened: {0}")]
    OutOfFiles(String),
    /// The store failed.
    #[error("store: {0}")]
    Store(#[from] StoreError),
    /// The store was there before, and then away for longer than a crawl waits.
    #[error("store: {0}; it was waited for a minute")]
    StoreAway(StoreError),
    /// A file of ours could not be read or written.
    #[error("{path}: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A file of ours does not hold what it should.
    #[error("{path}: {problem}")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it, and what would be right.
        problem: String,
    },
    /// A thread or the runtime could not be started, or ended before its work did.
    #[error("{0}")]
    Internal(String),
}

/// The classes of [`EngineError`], one exit code each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// A setting, or a folder that does not fit it.
    Config,
    /// The store, or a file of the crawl beside it.
    Store,
    /// The surroundings, a full disk and a store that is away among them: nothing is wrong with the crawl, and it can be resumed when they are better.
    Surroundings,
    /// Anything else of ours.
    Internal,
}

impl EngineError {
    /// Returns the class of the error.
    #[must_use]
    pub const fn kind(&self) -> ErrorKind {
        match self {
            Self::Config(_)
            | Self::Memory(_)
            | Self::Mismatch { .. }
            | Self::Folder { .. }
            | Self::FolderInUse(_) => ErrorKind::Config,
            Self::NothingReached(_)
            | Self::OutOfFiles(_)
            | Self::StoreAway(_)
            | Self::File { .. }
            | Self::Store(StoreError::DiskFull(_)) => ErrorKind::Surroundings,
            Self::Store(_) | Self::Damaged { .. } => ErrorKind::Store,
            Self::Internal(_) => ErrorKind::Internal,
        }
    }

    /// Returns whether the same command may go on later, without anything being brought back from a copy.
    #[must_use]
    pub const fn is_resumable(&self) -> bool {
        !matches!(
            self,
            Self::Damaged { .. }
                | Self::Mismatch { .. }
                | Self::Store(StoreError::Corrupt(_) | StoreError::Incompatible(_))
        )
    }

    /// Returns a closure that names `path` in an I/O error.
    pub(crate) fn file(path: &Path) -> impl FnOnce(std::io::Error) -> Self + '_ {
        move |source| Self::File {
            path: path.to_path_buf(),
            source,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[test]
    fn a_full_disk_is_the_same_fault_whether_the_store_or_a_file_meets_it() {
        let of_file = EngineError::File {
            path: PathBuf::from("pages.jsonl"),
            source: io::ErrorKind::StorageFull.into(),
        };
        let of_store = EngineError::Store(StoreError::DiskFull("store: full".to_owned()));
        for error in [of_file, of_store] {
            assert_eq!(error.kind(), ErrorKind::Surroundings, "{error}");
            assert!(error.is_resumable(), "{error}");
        }
        let other = EngineError::Store(StoreError::Backend("store: broken".to_owned()));
        assert_eq!(other.kind(), ErrorKind::Store);
    }
}
