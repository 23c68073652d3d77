//! Runs the built binary in a folder of its own, with none of the caller's settings.

use std::{
    env,
    path::Path,
    process::{Command, Output, Stdio},
};

/// What a run left.
#[derive(Debug)]
pub(crate) struct Run {
    /// The exit code; `None` after a signal.
    pub(crate) code: Option<i32>,
    /// What it wrote to stdout.
    pub(crate) stdout: String,
    /// What it wrote to stderr.
    pub(crate) stderr: String,
}

/// Returns the command, to be run in `folder`.
pub(crate) fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bloomcrawl"));
    command
        .args(arguments)
        .current_dir(folder)
        .stdin(Stdio::null());
    for (name, _) in env::vars_os() {
        if name.to_string_lossy().starts_with("BLOOMCRAWL_") {
            command.env_remove(name);
        }
    }
    command
}

/// Runs the command in `folder` to its end.
pub(crate) fn run(folder: &Path, arguments: &[&str]) -> Run {
    finish(&mut command(folder, arguments))
}

/// Runs a prepared command to its end.
pub(crate) fn finish(command: &mut Command) -> Run {
    Run::from(command.output().expect("the binary starts"))
}

impl From<Output> for Run {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).expect("stdout is UTF-8"),
            stderr: String::from_utf8(output.stderr).expect("stderr is UTF-8"),
        }
    }
}

/// Returns an empty folder that goes away with the value.
pub(crate) fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary folder")
}
