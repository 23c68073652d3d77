//! The command's own failure: a message, a hint, and the exit code that goes with it.

use std::{fmt, path::Path};

use engine::{EngineError, ErrorKind, Outcome};

/// How the process ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Done, or a limit was reached.
    Done = 0,
    /// A fault of our own, or a check that failed.
    Internal = 1,
    /// The command line is wrong, or what it names.
    Usage = 2,
    /// A setting of a file or of the environment is wrong, or settings cannot go together, or the data folder
    /// cannot be used.
    Config = 3,
    /// The store failed, or a file of the crawl is damaged.
    Store = 4,
    /// Stopped early; the same command resumes.
    Stopped = 5,
}

impl Exit {
    /// Returns the exit code of a run that ended with `outcome`.
    pub(crate) const fn of(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Finished | Outcome::AlreadyFinished | Outcome::LimitReached => Self::Done,
            Outcome::Stopped => Self::Stopped,
        }
    }
}

/// Why a command failed.
#[derive(Debug)]
pub(crate) struct Failure {
    /// The exit code.
    pub(crate) exit: Exit,
    /// What is wrong, lower case, with the offending value.
    pub(crate) message: String,
    /// What to do about it.
    pub(crate) hint: Option<String>,
}

impl Failure {
    /// Makes a failure without a hint.
    pub(crate) fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self {
            exit,
            message: message.into(),
            hint: None,
        }
    }

    /// Adds what to do about it.
    pub(crate) fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}

impl From<EngineError> for Failure {
    fn from(error: EngineError) -> Self {
        let exit = match error.kind() {
            ErrorKind::Config => Exit::Config,
            ErrorKind::Store => Exit::Store,
            ErrorKind::Surroundings => Exit::Stopped,
            ErrorKind::Internal => Exit::Internal,
        };
        let failure = Self::new(exit, chain(&error));
        match hint_of(&error) {
            Some(hint) => failure.with_hint(hint),
            None => failure,
        }
    }
}

/// What to do about a data folder that cannot be used.
const FOLDER_HINT: &str = "--data names a folder that can be written, or made";

/// What to do about files that cannot be written, the store's among them.
const DISK_HINT: &str = "see to the disk and the rights on it; the same command resumes";

/// Returns what to do about a failure of the engine, where something can be done.
fn hint_of(error: &EngineError) -> Option<&'static str> {
    match error {
        EngineError::Mismatch { .. } => Some(
            "--data, --store and --schema name folder and store; a crawl in PostgreSQL needs its own folder as well",
        ),
        EngineError::Folder { .. } => Some(FOLDER_HINT),
        EngineError::FolderInUse(_) => {
            Some("wait for the other crawl to end, or name another folder with --data")
        }
        EngineError::File { .. } => Some(DISK_HINT),
        EngineError::Store(_) if error.kind() == ErrorKind::Surroundings => Some(DISK_HINT),
        EngineError::Store(_) | EngineError::StoreAway(_) if error.is_resumable() => Some(
            "--store and --schema name the store; whatever was committed is safe, and the same command resumes",
        ),
        EngineError::Store(_) => Some(
            "bring the store back from a copy, or begin a new crawl in another folder (--data) and, in PostgreSQL, another schema (--schema)",
        ),
        EngineError::NothingReached(_) => Some(
            "see to the network, the name, or --allow-private-addresses; nothing was given up, and the same command tries again",
        ),
        EngineError::OutOfFiles(_) => {
            Some("raise `ulimit -n`, or lower --concurrency; the same command resumes")
        }
        EngineError::Damaged { .. } => {
            Some("bring the file back from a copy, or begin a new crawl in another folder (--data)")
        }
        _ => None,
    }
}

/// Returns the failure of a data folder that cannot be used.
pub(crate) fn unusable_folder(folder: &Path, reason: &dyn fmt::Display) -> Failure {
    Failure::new(
        Exit::Config,
        format!(
            "the data folder {} cannot be used: {reason}",
            folder.display()
        ),
    )
    .with_hint(FOLDER_HINT)
}

/// Returns an error and its causes in one line, leaving out a cause that the text before it already tells.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let next = error.to_string();
        if !text.ends_with(&next) {
            text.push_str(": ");
            text.push_str(&next);
        }
        cause = error.source();
    }
    text
}
