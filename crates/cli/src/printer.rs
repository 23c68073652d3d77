//! The one place that writes to stdout and stderr: data on the one, messages on the other.

use std::io::{self, Write as _};

use crate::{clean::clean, failure::Failure};

/// The longest message printed, in characters.
const MESSAGE_CHARS_MAX: usize = 2_000;

/// How much is said on stderr.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Verbosity {
    /// Errors only.
    Quiet,
    /// Progress, messages and the report.
    Normal,
    /// Also the settings in force, and every row of the report.
    Verbose,
}

/// Writes messages to stderr as its verbosity allows, and data to stdout.
#[derive(Clone, Debug)]
pub(crate) struct Printer {
    /// How much is said.
    pub(crate) verbosity: Verbosity,
}

impl Printer {
    /// Prints a message of one line, unless quiet.
    pub(crate) fn message(&self, text: &str) {
        if self.verbosity > Verbosity::Quiet {
            error_line(&clean(text, MESSAGE_CHARS_MAX));
        }
    }

    /// Prints a message of one line when verbose.
    pub(crate) fn detail(&self, text: &str) {
        if self.verbosity >= Verbosity::Verbose {
            error_line(&clean(text, MESSAGE_CHARS_MAX));
        }
    }

    /// Prints a warning, also when quiet.
    #[expect(
        clippy::unused_self,
        reason = "callers print through the printer, whatever its verbosity"
    )]
    pub(crate) fn warning(&self, text: &str) {
        warn(text);
    }

    /// Prints a block of lines that were made here and cleaned where they quote the web, unless quiet.
    pub(crate) fn block(&self, lines: &str) {
        if self.verbosity > Verbosity::Quiet {
            error_line(lines.trim_end_matches('\n'));
        }
    }
}

/// Prints a warning, for commands that cannot be told to be quiet.
pub(crate) fn warn(text: &str) {
    error_line(&format!("warning: {}", clean(text, MESSAGE_CHARS_MAX)));
}

/// Prints a failure and its hint to stderr.
pub(crate) fn failure(failure: &Failure) {
    error_line(&format!(
        "error: {}",
        clean(&failure.message, MESSAGE_CHARS_MAX)
    ));
    if let Some(hint) = &failure.hint {
        error_line(&format!("hint: {}", clean(hint, MESSAGE_CHARS_MAX)));
    }
}

/// Writes data to stdout and flushes. A reader that went away (a closed pipe) is no failure: it has what it wanted.
///
/// # Errors
///
/// Fails when stdout cannot be written for another reason, such as a full disk.
pub(crate) fn data(text: &str) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    match stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush())
    {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(Failure::new(
            crate::failure::Exit::Internal,
            format!("stdout cannot be written: {error}"),
        )),
        _ => Ok(()),
    }
}

/// Writes what `serde_json` made of an object to stdout, as one line.
///
/// # Errors
///
/// Fails where it could not be made, and as [`data`] does.
pub(crate) fn json(made: serde_json::Result<String>) -> Result<(), Failure> {
    let mut line = made.map_err(|error| {
        Failure::new(
            crate::failure::Exit::Internal,
            format!("the result cannot be written as JSON: {error}"),
        )
    })?;
    line.push('\n');
    data(&line)
}

/// Writes one line to stderr; nothing can be said about a failure of that.
fn error_line(text: &str) {
    let mut stderr = io::stderr().lock();
    let _ = writeln!(stderr, "{text}");
}
