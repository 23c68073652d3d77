//! The crawl's side of the status: asks the owner for the hosts that wait, and writes the figures.

use std::{
    fs::{self, File},
    io::Write as _,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use crossbeam_channel::{Sender, bounded};
use frontier::{SeenTest, WaitingHosts};
use jiff::Timestamp;

use super::{STATUS_FILE, StatusFigures, WaitingHost};
use crate::{
    CrawlConfig, EngineError, FilterReport, Outcome, live::Live, message::OwnerEvent, record,
    saved::SavedProgress,
};

/// The longest wait for the owner, which answers within a turn; where it has ended, it answers no more.
const ANSWER_WAIT: Duration = Duration::from_secs(1);

/// Writes the figures of one run. A failure is told once, and never ends the crawl.
pub(crate) struct StatusWriter {
    data: PathBuf,
    crawl_id: String,
    backend: &'static str,
    /// As the owner last counted them.
    waiting: WaitingHosts,
    owner: Sender<OwnerEvent>,
    seen: Arc<SeenTest>,
    live: Arc<Live>,
}

impl StatusWriter {
    /// Writes into the folder of `config`; `owner` is asked for the hosts.
    pub(crate) fn new(
        config: &CrawlConfig,
        crawl_id: String,
        owner: Sender<OwnerEvent>,
        seen: &Arc<SeenTest>,
        live: &Arc<Live>,
    ) -> Self {
        Self {
            data: config.data.clone(),
            crawl_id,
            backend: config.store.backend(),
            waiting: WaitingHosts::default(),
            owner,
            seen: Arc::clone(seen),
            live: Arc::clone(live),
        }
    }

    /// Writes the figures of a run that goes on, as of the commits so far.
    pub(crate) fn write(&mut self, saved: &SavedProgress) {
        if let Some(waiting) = self.ask_owner() {
            self.waiting = waiting;
        }
        self.put(saved, None, &self.waiting);
    }

    /// Writes the figures of a run that has ended, with the hosts that wait then.
    pub(crate) fn conclude(&self, saved: &SavedProgress, outcome: Outcome, waiting: &WaitingHosts) {
        self.put(saved, Some(outcome), waiting);
    }

    /// Has the owner count the hosts. It hears of every commit before the question, so they are those of the store.
    fn ask_owner(&self) -> Option<WaitingHosts> {
        let (reply, answer) = bounded(1);
        self.owner.send(OwnerEvent::CountHosts(reply)).ok()?;
        answer.recv_timeout(ANSWER_WAIT).ok()
    }

    fn put(&self, saved: &SavedProgress, outcome: Option<Outcome>, waiting: &WaitingHosts) {
        let figures = StatusFigures {
            crawl_id: self.crawl_id.clone(),
            written_at: record::timestamp(Timestamp::now()),
            outcome,
            elapsed_seconds: self.live.elapsed().as_secs_f64(),
            identity_holds: saved.counts.identity_holds(),
            counts: saved.counts.clone(),
            pages: saved.totals.pages,
            wire_bytes: saved.totals.wire_bytes,
            filter: FilterReport::new(&self.seen.stats(), saved),
            store: self.backend.to_owned(),
            hosts: waiting.host_count,
            top_hosts: waiting.top.iter().map(WaitingHost::from).collect(),
        };
        if let Err(error) = replace(&self.data, &figures) {
            self.live.notice_once(format!(
                "the figures for `bloomcrawl status` cannot be written: {error}"
            ));
        }
    }
}

/// Writes the file whole or not at all. It need not survive a power cut: the store has all that matters.
pub(super) fn replace(data: &Path, figures: &StatusFigures) -> Result<(), EngineError> {
    let mut bytes = serde_json::to_vec(figures)
        .map_err(|error| EngineError::Internal(format!("figures that are no JSON: {error}")))?;
    bytes.push(b'\n');
    let temporary = data.join(format!("{STATUS_FILE}.new"));
    // What is there, perhaps a link to elsewhere, is not written through. If it cannot be removed it cannot be created.
    drop(fs::remove_file(&temporary));
    let written = File::create_new(&temporary)
        .and_then(|mut file| file.write_all(&bytes))
        .and_then(|()| fs::rename(&temporary, data.join(STATUS_FILE)));
    if written.is_err() {
        // A disk that is full needs the room.
        drop(fs::remove_file(&temporary));
    }
    written.map_err(EngineError::file(&temporary))
}
