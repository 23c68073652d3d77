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
    operation: impl FnMut() -> Result<T, StoreError>,
) -> Result<T, EngineError> {
    again(|| !live.is_halted(), thread::sleep, operation)
}

/// Does the same while a crawl is opened, when nobody can ask it to end at once.
pub(crate) fn patiently_at_opening<T>(
    operation: impl FnMut() -> Result<T, StoreError>,
) -> Result<T, EngineError> {
    again(|| true, thread::sleep, operation)
}

fn again<T>(
    may_wait: impl Fn() -> bool,
    mut wait: impl FnMut(Duration),
    mut operation: impl FnMut() -> Result<T, StoreError>,
) -> Result<T, EngineError> {
    let mut pause = PAUSE_FIRST;
    for _ in 1..TRIES {
        match operation() {
            Err(StoreError::Unavailable(_)) if may_wait() => wait(pause),
            result => return result.map_err(EngineError::Store),
        }
        pause = (pause * 2).min(PAUSE_MAX);
    }
    operation().map_err(|error| match error {
        StoreError::Unavailable(_) => EngineError::StoreAway(error),
        error => EngineError::Store(error),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_away_is_asked_again_and_what_fails_otherwise_is_not() {
        let mut call_count = 0;
        let answer = patiently_at_opening(|| {
            call_count += 1;
            if call_count < 3 {
                return Err(StoreError::Unavailable("for a moment".to_owned()));
            }
            Ok(call_count)
        });
        assert!(matches!(answer, Ok(3)), "{answer:?}");
        let mut call_count = 0;
        let answer = patiently_at_opening(|| {
            call_count += 1;
            Err::<(), _>(StoreError::Backend("for good".to_owned()))
        });
        assert!(answer.is_err() && call_count == 1);
        let mut call_count = 0;
        let away = || StoreError::Unavailable("for long".to_owned());
        let answer = again(
            || false,
            |_| {},
            || {
                call_count += 1;
                Err::<(), _>(away())
            },
        );
        assert!(answer.is_err() && call_count == 1, "nobody waits any more");
    }

    #[test]
    fn a_store_that_stays_away_is_given_up_after_a_minute() {
        let mut waited = Duration::ZERO;
        let answer = again(
            || true,
            |pause| waited += pause,
            || Err::<(), _>(StoreError::Unavailable("for good".to_owned())),
        );
        assert!(
            matches!(answer, Err(EngineError::StoreAway(_))),
            "{answer:?}"
        );
        assert!((60..75).contains(&waited.as_secs()), "{waited:?}");
    }
}
