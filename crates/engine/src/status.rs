//! `status.json` in the data folder: what the crawl holds, written now and then by the crawl itself, so that whoever asks
//! neither opens the store nor waits for it.

mod writer;

use std::{
    fs::{self, File},
    io::{ErrorKind, Read as _},
    path::Path,
    time::Duration,
};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use types::{CrawlCounts, Host};

pub(crate) use self::writer::StatusWriter;
use crate::{EngineError, FilterReport, Outcome, folder};

/// The name of the file within the data folder.
const STATUS_FILE: &str = "status.json";
/// Hosts named in the figures.
pub(crate) const TOP_HOSTS_MAX: usize = 10;
/// No file of ours is longer, in bytes.
const STATUS_BYTES_MAX: u64 = 1 << 20;

/// What a crawl holds, and whether it runs.
#[derive(Clone, Debug, Serialize)]
pub struct Status {
    /// The crawl's id; `None` while a crawl is just being made.
    pub crawl_id: Option<String>,
    /// What it is at.
    pub state: CrawlState,
    /// Whether a process has the data folder: one that crawls, or one that verifies.
    pub is_running: bool,
    /// The figures it last wrote.
    pub figures: Option<StatusFigures>,
    /// How old they are, in seconds.
    pub age_seconds: Option<f64>,
    /// Why there are none, if there should be some.
    pub remark: Option<String>,
}

/// What a crawl is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CrawlState {
    /// A process has it.
    Running,
    /// Every URL in scope is finished.
    Finished,
    /// A limit was reached; a higher one goes on.
    LimitReached,
    /// Stopped on request; the same command resumes.
    Stopped,
    /// Its last run was killed, or ended by a fault; the same command resumes.
    Interrupted,
}

/// The figures of a crawl as of its last commit before they were written.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StatusFigures {
    /// The crawl's id.
    pub crawl_id: String,
    /// When they were written, RFC 3339 in UTC.
    pub written_at: String,
    /// How the run ended; `None` while it ran.
    pub outcome: Option<Outcome>,
    /// Seconds of the run until then.
    pub elapsed_seconds: f64,
    /// The accounts of the whole crawl, by state.
    pub counts: CrawlCounts,
    /// Whether the accounting identity holds.
    pub identity_holds: bool,
    /// Pages with a response.
    pub pages: u64,
    /// Bytes of bodies on the wire.
    pub wire_bytes: u64,
    /// The seen test.
    pub filter: FilterReport,
    /// `embedded` or `postgres`.
    pub store: String,
    /// Hosts with URLs that wait or are being fetched.
    pub hosts: u64,
    /// Those of them with the most, the first ten.
    pub top_hosts: Vec<WaitingHost>,
}

/// A host with waiting URLs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitingHost {
    /// Scheme and authority.
    pub host: String,
    /// How many of its URLs wait or are being fetched.
    pub queued: u64,
}

impl From<&(Host, u64)> for WaitingHost {
    fn from((host, queued): &(Host, u64)) -> Self {
        Self {
            host: host.to_string(),
            queued: *queued,
        }
    }
}

/// Says what the crawl in the folder `data` holds. It writes nothing, opens no store, and keeps no crawl from starting.
///
/// # Errors
///
/// Fails when the folder is of no crawl ([`crate::ErrorKind::Config`]), and when its files cannot be read.
pub fn status(data: &Path) -> Result<Status, EngineError> {
    let is_running = folder::is_locked(data)?;
    let crawl_id = folder::identity(data)?.map(|identity| identity.crawl_id);
    if crawl_id.is_none() && !is_running {
        return Err(folder::no_crawl(data));
    }
    let (figures, remark) = match read(data) {
        Ok(Some(figures)) if Some(&figures.crawl_id) != crawl_id.as_ref() => {
            (None, Some(format!("{STATUS_FILE} is of another crawl")))
        }
        Ok(figures) => (figures, None),
        Err(problem) => (None, Some(format!("{STATUS_FILE} {problem}"))),
    };
    let state = match figures.as_ref().and_then(|figures| figures.outcome) {
        _ if is_running => CrawlState::Running,
        Some(Outcome::Finished | Outcome::AlreadyFinished) => CrawlState::Finished,
        Some(Outcome::LimitReached) => CrawlState::LimitReached,
        Some(Outcome::Stopped) => CrawlState::Stopped,
        None => CrawlState::Interrupted,
    };
    let age_seconds = figures.as_ref().and_then(age);
    Ok(Status {
        crawl_id,
        state,
        is_running,
        figures,
        age_seconds: age_seconds.map(|age| age.as_secs_f64()),
        remark,
    })
}

/// Reads the figures, or says why they cannot be read; `None` if there are none yet.
fn read(data: &Path) -> Result<Option<StatusFigures>, String> {
    let path = data.join(STATUS_FILE);
    let unreadable = |error: std::io::Error| format!("cannot be read: {error}");
    // To open a pipe would be to wait for somebody to write to it.
    let file = match fs::metadata(&path).map(|found| found.is_file()) {
        Ok(true) => File::open(&path).map_err(unreadable)?,
        Ok(false) => return Err("is no regular file".to_owned()),
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(unreadable(error)),
    };
    let mut bytes = Vec::new();
    file.take(STATUS_BYTES_MAX)
        .read_to_end(&mut bytes)
        .map_err(unreadable)?;
    serde_json::from_slice(&bytes)
        .map(Some)
        .map_err(|error| format!("is damaged, as after a power cut: {error}"))
}

/// Returns how long ago the figures were written; 0 where the clock was turned back since.
fn age(figures: &StatusFigures) -> Option<Duration> {
    let written: Timestamp = figures.written_at.parse().ok()?;
    let age = Timestamp::now().duration_since(written);
    Some(Duration::try_from(age).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a failed set-up fails the test")]

    use super::{writer::replace, *};
    use crate::record;

    fn figures(outcome: Option<Outcome>) -> StatusFigures {
        StatusFigures {
            crawl_id: "c".to_owned(),
            written_at: record::timestamp(Timestamp::now()),
            outcome,
            elapsed_seconds: 1.0,
            counts: CrawlCounts::default(),
            identity_holds: true,
            pages: 3,
            wire_bytes: 4,
            filter: FilterReport::default(),
            store: "embedded".to_owned(),
            hosts: 0,
            top_hosts: Vec::new(),
        }
    }

    #[test]
    fn the_state_follows_from_the_lock_and_the_last_words() {
        let place = tempfile::tempdir().unwrap();
        let data = place.path();
        assert!(matches!(status(data), Err(EngineError::Config(_))));
        let identity = r#"{"crawl_id":"c","canonical":{"url_bytes_max":1,"drop_tracking":false,"sort_query":false,"drop_session_ids":false}}"#;
        fs::write(data.join("crawl.json"), identity).unwrap();
        let found = status(data).unwrap();
        assert!(found.figures.is_none() && found.state == CrawlState::Interrupted);
        for (outcome, state) in [
            (None, CrawlState::Interrupted),
            (Some(Outcome::AlreadyFinished), CrawlState::Finished),
            (Some(Outcome::LimitReached), CrawlState::LimitReached),
            (Some(Outcome::Stopped), CrawlState::Stopped),
        ] {
            replace(data, &figures(outcome)).unwrap();
            let found = status(data).unwrap();
            assert_eq!((found.state, found.is_running), (state, false));
            assert!(found.age_seconds.is_some_and(|age| age < 60.0));
        }
        let _held = folder::Folder::open(data).unwrap();
        assert_eq!(status(data).unwrap().state, CrawlState::Running);
    }

    #[test]
    fn figures_that_are_damaged_or_of_another_crawl_are_named_and_left() {
        let place = tempfile::tempdir().unwrap();
        let data = place.path();
        let identity = r#"{"crawl_id":"d","canonical":{"url_bytes_max":1,"drop_tracking":false,"sort_query":false,"drop_session_ids":false}}"#;
        fs::write(data.join("crawl.json"), identity).unwrap();
        replace(data, &figures(None)).unwrap();
        let remark = status(data).unwrap().remark.unwrap();
        assert_eq!(remark, "status.json is of another crawl");
        fs::write(data.join(STATUS_FILE), b"{\"crawl_id\":\"d").unwrap();
        let remark = status(data).unwrap().remark.unwrap();
        assert!(remark.starts_with("status.json is damaged"), "{remark}");
    }
}
