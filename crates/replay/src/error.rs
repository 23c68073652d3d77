//! Why a local web cannot be set up.

use std::{io, net::SocketAddr, path::PathBuf};

use thiserror::Error;

/// Why a server, an archive or a folder cannot be used.
#[derive(Debug, Error)]
pub enum ReplayError {
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// The address asked for.
        address: SocketAddr,
        /// What the system says.
        source: io::Error,
    },
    /// The server's threads cannot be started.
    #[error("cannot start the server's threads: {0}")]
    Threads(io::Error),
    /// The throw-away certificate authority cannot be made.
    #[error("cannot make the certificate authority: {0}")]
    Certificates(String),
    /// A file or folder cannot be read.
    #[error("cannot read {path}: {source}", path = path.display())]
    Read {
        /// The path asked for.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// A file holds no WARC record.
    #[error("{path} holds no WARC record: {source}", path = path.display())]
    NotWarc {
        /// The path of the file.
        path: PathBuf,
        /// Why its first record cannot be read.
        source: warc::ReadError,
    },
}
