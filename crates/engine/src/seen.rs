//! The seen test of a crawl that is opened: read from its snapshot, or rebuilt from the store.

use std::path::Path;

use frontier::{SeenConfig, SeenTest};
use store::Store;

use crate::{
    CrawlConfig, EngineError, OpeningEvent, key_log,
    snapshot::{self, SnapshotLabel},
};

/// The seen test as opened.
pub(crate) struct OpenedSeen {
    pub(crate) seen: SeenTest,
    /// Which keys it knows of the store's.
    pub(crate) holds: SnapshotLabel,
    pub(crate) is_snapshot_loaded: bool,
}

/// Makes the seen test that knows all keys of the crawl, those of `wanted`: from the snapshot and the keys logged since if
/// they are right, else from the store.
pub(crate) fn open(
    config: &CrawlConfig,
    store: &dyn Store,
    wanted: &SnapshotLabel,
    observer: &mut dyn FnMut(OpeningEvent),
) -> Result<OpenedSeen, EngineError> {
    let seen_config = seen_config(config);
    match load(&config.data, &seen_config, wanted) {
        Ok(Some((seen, replayed_count))) => {
            // What was logged, but not committed, never happened.
            key_log::remove(&config.data, wanted.next_sequence()..);
            observer(OpeningEvent::SnapshotLoaded {
                key_count: wanted.next_sequence(),
                replayed_count,
            });
            return Ok(OpenedSeen {
                seen,
                holds: wanted.clone(),
                is_snapshot_loaded: true,
            });
        }
        Ok(None) => {}
        Err(notice) => observer(OpeningEvent::Notice(notice)),
    }
    // One that is not used is removed, so that no later state of the store can come to look like the one it is of. What
    // cannot be removed now is replaced, or refused again.
    drop(snapshot::remove(&config.data));
    key_log::remove(&config.data, ..);
    rebuild(&seen_config, store, wanted, observer)
}

/// Reads the snapshot and the keys logged since, and returns how many these were; `None` if there is no snapshot.
///
/// # Errors
///
/// Returns, for the user, why they are not used.
fn load(
    data: &Path,
    seen_config: &SeenConfig,
    wanted: &SnapshotLabel,
) -> Result<Option<(SeenTest, u64)>, String> {
    let Some((found, filter)) = snapshot::load(data, wanted)? else {
        return Ok(None);
    };
    let seen = SeenTest::resume(seen_config, filter, wanted.next_sequence())
        .map_err(|error| snapshot::refusal(&format!("cannot be used: {error}")))?
        .ok_or_else(|| snapshot::refusal("was made under other settings of the seen test"))?;
    let from = found.next_sequence();
    let mut reached = found;
    key_log::read(data, wanted, from, &mut |keys| {
        seen.load(keys);
        reached.add(keys.iter().copied());
    })
    .map_err(|error| {
        snapshot::refusal(&format!("cannot be used: the keys logged since {error}"))
    })?;
    if reached != *wanted {
        return Err(snapshot::refusal("is of other keys than the store's"));
    }
    Ok(Some((seen, wanted.next_sequence() - from)))
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
    let expected_count = wanted.next_sequence();
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
    let mut holds = wanted.at(0, 0);
    store.scan_keys(&mut |keys| {
        seen.load(keys);
        holds.add(keys.iter().copied());
        tell(holds.next_sequence());
    })?;
    Ok(OpenedSeen {
        seen,
        holds,
        is_snapshot_loaded: false,
    })
}
