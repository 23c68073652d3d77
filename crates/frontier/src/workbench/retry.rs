//! When to try again, and when to stop trying.

use std::time::Duration;

use types::{FailureKind, FetchFailure, RetryClass};

use super::action::{Fetched, NextStep, WorkbenchConfig};

/// The most that a Retry-After field can postpone a host.
pub(super) const RETRY_AFTER_MAX: Duration = Duration::from_hours(1);

/// Returns the pause after a failure that was preceded by `attempt` others.
pub(super) fn backoff(config: &WorkbenchConfig, attempt: u16) -> Duration {
    let factor = 1_u32.checked_shl(u32::from(attempt)).unwrap_or(u32::MAX);
    config
        .backoff_base
        .saturating_mul(factor)
        .min(config.backoff_max)
}

/// Says what becomes of a URL, `attempt` tries of which had failed before this one.
pub(super) fn judge(fetched: &Fetched<'_>, attempt: u16, attempts_max: u16) -> NextStep {
    let may_try_again = attempt.saturating_add(1) < attempts_max;
    match fetched {
        Fetched::Response {
            status: 429 | 500 | 502 | 503 | 504,
            ..
        } if may_try_again => NextStep::Retry,
        Fetched::Response { .. } => NextStep::Keep,
        Fetched::Failed(failure) if is_worth_retrying(failure, may_try_again) => NextStep::Retry,
        Fetched::Failed(_) => NextStep::GiveUp,
    }
}

/// Says whether to try again after a failure; `may_try_again`, whether a try is left.
pub(super) const fn is_worth_retrying(failure: &FetchFailure, may_try_again: bool) -> bool {
    match failure.kind.retry_class() {
        RetryClass::Never => false,
        RetryClass::Backoff => may_try_again,
        RetryClass::Uncounted => true,
    }
}

/// Says whether what came of a try counts as one.
pub(super) const fn counts(fetched: &Fetched<'_>) -> bool {
    match fetched {
        Fetched::Response { .. } => true,
        Fetched::Failed(failure) => !matches!(failure.kind.retry_class(), RetryClass::Uncounted),
    }
}

/// Says whether a failure means that the host could not be spoken to at all.
pub(super) const fn is_no_contact(kind: FailureKind) -> bool {
    matches!(
        kind,
        FailureKind::Dns
            | FailureKind::AddressRefused
            | FailureKind::Connect
            | FailureKind::ConnectTimeout
            | FailureKind::Tls
    )
}

/// The longest detail of a failure, in characters.
const DETAIL_CHARS_MAX: usize = 200;

/// Returns a failure of `kind` that names the one it follows from.
pub(super) fn because(kind: FailureKind, cause: &FetchFailure) -> FetchFailure {
    FetchFailure {
        kind,
        detail: cause.to_string().chars().take(DETAIL_CHARS_MAX).collect(),
    }
}
