//! What a failure of the database means for the crawl: try again later, or not.

use std::error::Error as _;

use tokio_postgres::{Error, error::SqlState};

use crate::StoreError;

/// Sorts a failure by whether trying again later may help. The text never holds the connection string, which may carry
/// a password.
pub(super) fn failure(error: &Error) -> StoreError {
    let text = describe(error);
    if is_transient(error) {
        StoreError::Unavailable(text)
    } else {
        StoreError::Backend(format!("PostgreSQL: {text}"))
    }
}

fn describe(error: &Error) -> String {
    if let Some(answer) = error.as_db_error() {
        return format!("{} (SQLSTATE {})", answer.message(), answer.code().code());
    }
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        let inner_text = inner.to_string();
        if !text.contains(&inner_text) {
            text = format!("{text}: {inner_text}");
        }
        cause = inner.source();
    }
    text
}

fn is_transient(error: &Error) -> bool {
    if let Some(code) = error.code() {
        return matches!(code.code().get(..2), Some("08" | "40" | "53"))
            || matches!(
                *code,
                SqlState::ADMIN_SHUTDOWN
                    | SqlState::CRASH_SHUTDOWN
                    | SqlState::CANNOT_CONNECT_NOW
                    | SqlState::QUERY_CANCELED
                    | SqlState::LOCK_NOT_AVAILABLE
                    | SqlState::IDLE_SESSION_TIMEOUT
                    | SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT
                    | SqlState::IN_FAILED_SQL_TRANSACTION
            );
    }
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(inner) = cause {
        if inner.is::<std::io::Error>() {
            return true;
        }
        cause = inner.source();
    }
    error.is_closed()
}
