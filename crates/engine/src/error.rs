//! Our own failures: what keeps a crawl from starting or going on. The web's failures are data, never these.

use std::path::{Path, PathBuf};

use store::StoreError;
use thiserror::Error;

/// Why a crawl could not start or had to stop.
#[derive(Debug, Error)]
pub enum EngineError {
    /// A setting cannot be used.
    #[error("{0}")]
    Config(String),
    /// The data folder belongs to another crawl than the store.
    #[error(
        "{folder} holds crawl {folder_id}, but the store holds crawl {store_id}; \
         use the folder and the store of one crawl, or an empty one of each"
    )]
    Mismatch {
        /// The data folder.
        folder: PathBuf,
        /// The crawl id in the folder.
        folder_id: String,
        /// The crawl id in the store.
        store_id: String,
    },
    /// Another process crawls into the same data folder.
    #[error("{0} is in use by another crawl")]
    FolderInUse(PathBuf),
    /// The store failed.
    #[error("store: {0}")]
    Store(#[from] StoreError),
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
    /// The store.
    Store,
    /// Anything else of ours.
    Internal,
}

impl EngineError {
    /// Returns the class of the error.
    #[must_use]
    pub const fn kind(&self) -> ErrorKind {
        match self {
            Self::Config(_) | Self::Mismatch { .. } | Self::FolderInUse(_) => ErrorKind::Config,
            Self::Store(_) => ErrorKind::Store,
            Self::File { .. } | Self::Damaged { .. } | Self::Internal(_) => ErrorKind::Internal,
        }
    }

    /// Returns a closure that names `path` in an I/O error.
    pub(crate) fn file(path: &Path) -> impl FnOnce(std::io::Error) -> Self + '_ {
        move |source| Self::File {
            path: path.to_path_buf(),
            source,
        }
    }
}
