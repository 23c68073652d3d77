//! The seen test of a crawl that is opened: read from its snapshot, or rebuilt from the store.

use std::path::Path;

use frontier::{SeenConfig, SeenTest};
use store::Store;

use crate::{
    CrawlConfig, EngineError, OpeningEvent,
    snapshot::{self, SnapshotLabel},
};

/// The seen test as opened.
pub(crate) struct OpenedSeen {
    pub(crate) seen: SeenTest,
    /// Keys that it knows, as far as what it was made from says.
    pub(crate) key_count: u64,
    pub(crate) is_snapshot_loaded: bool,
}

/// Makes the seen test that knows all keys of the crawl: from the snapshot if there is a right one, else from the store.
pub(crate) fn open(
    config: &CrawlConfig,
    store: &dyn Store,
    wanted: &SnapshotLabel,
    observer: &mut dyn FnMut(OpeningEvent),
) -> Result<OpenedSeen, EngineError> {
    let seen_config = seen_config(config);
    match snapshot::load(&config.data, wanted) {
        Ok(Some(filter)) => {
            let key_count = wanted.key_count();
            let seen = SeenTest::resume(&seen_config, filter, wanted.next_sequence())
                .map_err(|error| EngineError::Config(error.to_string()))?;
            if let Some(seen) = seen {
                observer(OpeningEvent::SnapshotLoaded { key_count });
                return Ok(OpenedSeen {
                    seen,
                    key_count,
                    is_snapshot_loaded: true,
                });
            }
            let why = "was made under other settings of the seen test";
            refuse(&config.data, snapshot::refusal(why), observer);
        }
        Ok(None) => {}
        Err(notice) => refuse(&config.data, notice, observer),
    }
    rebuild(&seen_config, store, wanted, observer)
}

/// Removes a snapshot that is not used, so that no later state of the store can come to look like the one it is of.
fn refuse(data: &Path, notice: String, observer: &mut dyn FnMut(OpeningEvent)) {
    // What cannot be removed now is replaced, or refused again.
    drop(snapshot::remove(data));
    observer(OpeningEvent::Notice(notice));
}

fn seen_config(config: &CrawlConfig) -> SeenConfig {
    SeenConfig {
        mode: config.seen_mode,
        expected_urls: config.expected_urls,
        false_positive_rate: config.false_positive_rate,
        fixed_filter_urls: config.fixed_filter_urls,
        cache_bytes: config.cache_bytes,
        huge_pages: config.huge_pages,
    }
}

/// Reads every key of the store, and tells how far it has come.
fn rebuild(
    asked_config: &SeenConfig,
    store: &dyn Store,
    wanted: &SnapshotLabel,
    observer: &mut dyn FnMut(OpeningEvent),
) -> Result<OpenedSeen, EngineError> {
    let expected_count = wanted.key_count();
    let mut seen_config = *asked_config;
    // Where a filter of the size asked for would have to grow at once, one slice of twice the keys takes less memory.
    if expected_count > seen_config.expected_urls / 5 * 4 {
        seen_config.expected_urls = expected_count.saturating_mul(2);
    }
    // One of the size asked for serves too, where that cannot be had: it grows.
    let seen = SeenTest::new(&seen_config, wanted.next_sequence())
        .or_else(|_| SeenTest::new(asked_config, wanted.next_sequence()))
        .map_err(|error| EngineError::Config(error.to_string()))?;
    let mut tell = |key_count| {
        if expected_count > 0 {
            observer(OpeningEvent::Rebuilding {
                key_count,
                expected_count,
            });
        }
    };
    tell(0);
    let mut read_count = 0;
    let key_count = store.scan_keys(&mut |keys| {
        seen.load(keys);
        read_count += keys.len() as u64;
        tell(read_count);
    })?;
    Ok(OpenedSeen {
        seen,
        key_count,
        is_snapshot_loaded: false,
    })
}
