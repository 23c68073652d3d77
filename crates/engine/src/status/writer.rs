//! The crawl's side of the status: follows the commits and writes the figures.

use std::{
    cmp::Reverse,
    collections::{BTreeSet, HashMap},
    fs::{self, File},
    io::Write as _,
    path::{Path, PathBuf},
    sync::Arc,
};

use frontier::SeenTest;
use jiff::Timestamp;
use store::FinishedUrl;
use types::QueuedUrl;

use super::{STATUS_FILE, StatusFigures, WaitingHost};
use crate::{
    CrawlConfig, EngineError, FilterReport, Outcome, live::Live, record, saved::SavedProgress,
};

/// Hosts named in the figures.
const TOP_HOSTS_MAX: usize = 10;

/// Writes the figures of one run. A failure is told once, and never ends the crawl.
pub(crate) struct StatusWriter {
    data: PathBuf,
    crawl_id: String,
    backend: &'static str,
    waiting: WaitingHosts,
    seen: Arc<SeenTest>,
    live: Arc<Live>,
}

impl StatusWriter {
    /// Begins with the hosts that wait in the store.
    pub(crate) fn new(
        config: &CrawlConfig,
        crawl_id: String,
        waiting: WaitingHosts,
        seen: &Arc<SeenTest>,
        live: &Arc<Live>,
    ) -> Self {
        Self {
            data: config.data.clone(),
            crawl_id,
            backend: config.store.backend(),
            waiting,
            seen: Arc::clone(seen),
            live: Arc::clone(live),
        }
    }

    /// Follows a commit.
    pub(crate) fn follow(&mut self, notes: &[QueuedUrl], finished: &[FinishedUrl]) {
        for note in notes {
            self.waiting.add(note.url.host_str(), 1);
        }
        for finished in finished {
            self.waiting.take(finished.host.as_str());
        }
    }

    /// Writes the figures of now; `outcome` once the run has one.
    pub(crate) fn write(&self, saved: &SavedProgress, outcome: Option<Outcome>) {
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
            hosts: self.waiting.host_count(),
            top_hosts: self.waiting.top(),
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

/// How many URLs of each host are queued; hosts with none are not in it.
#[derive(Debug, Default)]
pub(crate) struct WaitingHosts(HashMap<Box<str>, u64>);

impl WaitingHosts {
    /// Adds `count` URLs of a host.
    pub(crate) fn add(&mut self, host: &str, count: u64) {
        match self.0.get_mut(host) {
            Some(queued) => *queued += count,
            None if count > 0 => drop(self.0.insert(host.into(), count)),
            None => {}
        }
    }

    /// Takes one URL of a host away.
    fn take(&mut self, host: &str) {
        if let Some(queued) = self.0.get_mut(host) {
            *queued -= 1;
            if *queued == 0 {
                self.0.remove(host);
            }
        }
    }

    fn host_count(&self) -> u64 {
        self.0.len() as u64
    }

    /// Returns the hosts with the most, most first; of equals in the order of their names.
    fn top(&self) -> Vec<WaitingHost> {
        let mut top = BTreeSet::new();
        for (host, queued) in &self.0 {
            top.insert((Reverse(*queued), &**host));
            if top.len() > TOP_HOSTS_MAX {
                top.pop_last();
            }
        }
        let waiting = |(Reverse(queued), host): (Reverse<u64>, &str)| WaitingHost {
            host: host.to_owned(),
            queued,
        };
        top.into_iter().map(waiting).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hosts_with_the_most_are_named() {
        let mut waiting = WaitingHosts::default();
        for number in 0..20 {
            waiting.add(&format!("http://h{number:02}"), number);
        }
        waiting.add("http://h05", 1);
        for _ in 0..19 {
            waiting.take("http://h19");
        }
        waiting.take("http://unknown");
        assert_eq!(waiting.host_count(), 18, "without h00 and h19");
        let top = waiting.top();
        assert_eq!(top.len(), TOP_HOSTS_MAX);
        assert_eq!((top[0].host.as_str(), top[0].queued), ("http://h18", 18));
        assert_eq!(top[9].queued, 9);
    }
}
