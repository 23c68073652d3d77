//! The system's limit on open files: each connection is one, and many systems begin with a low limit that may be raised.

/// Raises the soft limit on open files to the hard one. Without success the crawl runs all the same, with fewer
/// connections.
#[cfg(unix)]
pub(crate) fn raise_open_files() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    if limit.current != limit.maximum {
        let _ = setrlimit(Resource::Nofile, raised);
    }
}

/// Does nothing: this system has no such limit.
#[cfg(not(unix))]
pub(crate) const fn raise_open_files() {}
