//! The seen test of a crawl that is opened: read from its snapshot, or rebuilt from the store.

use std::path::Path;

use frontier::{SeenConfig, SeenTest};
use store::Store;

use crate::{
    CrawlConfig, EngineError, OpeningEvent, key_log,
    patience::patiently_at_opening,
    snapshot::{self, SnapshotLabel},
};

/// The seen test as opened.
pub(crate) struct OpenedSeen {
    pub(crate) seen: SeenTest,
    /// Which keys it knows of the store's.
    pub(crate) holds: SnapshotLabel,
    /// What became of the snapshot that was there.
    pub(crate) snapshot_use: SnapshotUse,
}

/// What a start made of the snapshot that was kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SnapshotUse {
    /// The seen test was read from it.
    Loaded,
    /// It is of this crawl, but of a seen test of another kind or size; while the store stays as it is, it may serve again.
    Left,
    /// There is none that could.
    None,
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
    // What was logged, but not committed, never happened.
    let cut_log = || key_log::remove(&config.data, wanted.next_sequence()..);
    let snapshot_use = match load(&config.data, &seen_config, wanted) {
        Ok(Loaded::Whole(seen, replayed_count)) => {
            cut_log();
            observer(OpeningEvent::SnapshotLoaded {
                key_count: wanted.next_sequence(),
                replayed_count,
            });
            return Ok(OpenedSeen {
                seen: *seen,
                holds: wanted.clone(),
                snapshot_use: SnapshotUse::Loaded,
            });
        }
        Ok(Loaded::OtherSettings) => {
            cut_log();
            let words = "was made under other settings of the seen test";
            observer(OpeningEvent::Notice(snapshot::refusal(words)));
            SnapshotUse::Left
        }
        other => {
            if let Err(notice) = other {
                observer(OpeningEvent::Notice(notice));
            }
            // One that can never be used is removed, so that no later state of the store can come to look like the one it
            // is of. What cannot be removed now is replaced, or refused again.
            drop(snapshot::remove(&config.data));
            key_log::remove(&config.data, ..);
            SnapshotUse::None
        }
    };
    let (seen, holds) = rebuild(&seen_config, store, wanted, observer)?;
    Ok(OpenedSeen {
        seen,
        holds,
        snapshot_use,
    })
}

/// What a snapshot comes to.
enum Loaded {
    /// A seen test, and how many keys it was given from the log.
    Whole(Box<SeenTest>, u64),
    /// It is of another kind or size than asked for.
    OtherSettings,
    /// There is none.
    Nothing,
}

/// Reads the snapshot and the keys logged since.
///
/// # Errors
///
/// Returns, for the user, why they are not used.
fn load(data: &Path, seen_config: &SeenConfig, wanted: &SnapshotLabel) -> Result<Loaded, String> {
    let Some((found, filter)) = snapshot::load(data, wanted)? else {
        return Ok(Loaded::Nothing);
    };
    let seen = SeenTest::resume(seen_config, filter, wanted.next_sequence())
        .map_err(|error| snapshot::refusal(&format!("cannot be used: {error}")))?;
    let Some(seen) = seen else {
        return Ok(Loaded::OtherSettings);
    };
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
    Ok(Loaded::Whole(Box::new(seen), wanted.next_sequence() - from))
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
) -> Result<(SeenTest, SnapshotLabel), EngineError> {
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
    let holds = patiently_at_opening(|| {
        // A second try enters keys that the first did, which changes nothing.
        let mut holds = wanted.at(0, 0);
        store.scan_keys(&mut |keys| {
            seen.load(keys);
            holds.add(keys.iter().copied());
            tell(holds.next_sequence());
        })?;
        Ok(holds)
    })?;
    Ok((seen, holds))
}
