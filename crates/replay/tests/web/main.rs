//! The local web from a client's side: server, archives and folders, generated sites.

#![expect(clippy::unwrap_used, reason = "a failed set-up fails the test")]
#![expect(clippy::print_stderr, reason = "a skipped test says why")]

mod archive;
mod client;
mod server;
mod synthetic;
