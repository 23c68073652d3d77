//! Waiting for a store that is away for a while.

use std::{thread, time::Duration};

use store::StoreError;

use crate::{EngineError, live::Live};

/// The first pause; each further one is twice as long, up to [`PAUSE_MAX`].
const PAUSE_FIRST: Duration = Duration::from_millis(100);
/// The longest pause between two tries.
const PAUSE_MAX: Duration = Duration::from_secs(5);
/// Tries in all: about a minute.
const TRIES: u32 = 18;

/// Calls `operation` again while the store says that it is unavailable, for about a minute, or until the crawl is to
/// end at once.
///
/// The operations of the store may be repeated: reads, and commits that are idempotent.
pub(crate) fn patiently<T>(
    live: &Live,
    operation: impl Fn() -> Result<T, StoreError>,
) -> Result<T, EngineError> {
    let mut pause = PAUSE_FIRST;
    for _ in 1..TRIES {
        match operation() {
            Err(StoreError::Unavailable(_)) if !live.is_halted() => thread::sleep(pause),
            result => return result.map_err(EngineError::Store),
        }
        pause = (pause * 2).min(PAUSE_MAX);
    }
    operation().map_err(EngineError::Store)
}
