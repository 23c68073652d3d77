//! The HTTP client's errors as kinds of failure, by their typed causes.

use std::{error::Error, io};

use types::{FailureKind, FetchFailure, is_unprintable};

use crate::{address::RefusedAddress, names::LookupError};

/// Causes looked at in one error.
const CAUSES_MAX: usize = 16;
/// Characters of a detail.
const DETAIL_CHARS_MAX: usize = 200;

/// Makes a failure whose detail is cleaned and bounded.
pub(crate) fn failure(kind: FailureKind, detail: &str) -> FetchFailure {
    let detail = detail
        .chars()
        .take(DETAIL_CHARS_MAX)
        .map(|character| {
            if is_unprintable(character) {
                ' '
            } else {
                character
            }
        })
        .collect();
    FetchFailure { kind, detail }
}

/// Names what went wrong before a response head.
pub(crate) fn request_failure(error: &reqwest::Error) -> FetchFailure {
    let kind = causes(error).find_map(kind_of_cause).unwrap_or_else(|| {
        if error.is_builder() {
            FailureKind::Protocol
        } else if error.is_connect() {
            FailureKind::Connect
        } else {
            FailureKind::Disconnected
        }
    });
    let kind = match kind {
        // The cause alone does not say in which phase the connection broke.
        FailureKind::Disconnected if error.is_connect() => FailureKind::Connect,
        kind => kind,
    };
    let is_typed = matches!(kind, FailureKind::AddressRefused | FailureKind::Dns);
    if error.is_timeout() && error.is_connect() && !is_typed {
        return failure(
            FailureKind::ConnectTimeout,
            "no connection within the connect timeout",
        );
    }
    failure(kind, &detail_of(error))
}

/// Names what is wrong with the framing of a body (RFC 9112, section 7.1), such as a chunk without a size; `None` where the
/// body only ended too early. Where the next chunk ends nobody knows, so nothing of it counts as the body that was meant.
pub(crate) fn framing_failure(error: &reqwest::Error) -> Option<FetchFailure> {
    let is_invalid = |cause: &(dyn Error + 'static)| {
        cause.downcast_ref::<io::Error>().is_some_and(|error| {
            matches!(
                error.kind(),
                io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData
            )
        })
    };
    // TLS has its records broken where somebody interferes with the connection, not where the server is wrong.
    let is_framing =
        causes(error).any(is_invalid) && !causes(error).any(<dyn Error>::is::<rustls::Error>);
    is_framing.then(|| failure(FailureKind::Protocol, &detail_of(error)))
}

/// Returns the kind that a cause stands for, if it stands for one.
fn kind_of_cause(cause: &(dyn Error + 'static)) -> Option<FailureKind> {
    if cause.is::<RefusedAddress>() {
        return Some(FailureKind::AddressRefused);
    }
    if cause.is::<LookupError>() {
        return Some(FailureKind::Dns);
    }
    if cause.is::<rustls::Error>() || cause.is::<rustls::pki_types::InvalidDnsNameError>() {
        return Some(FailureKind::Tls);
    }
    if let Some(error) = cause.downcast_ref::<hyper::Error>() {
        return kind_of_http(error);
    }
    if let Some(error) = cause.downcast_ref::<h2::Error>() {
        return Some(kind_of_http2(error));
    }
    let error = cause.downcast_ref::<io::Error>()?;
    if error.raw_os_error().is_some_and(is_out_of_files) {
        return Some(FailureKind::OutOfFiles);
    }
    // An error without a code of the system only wraps the next cause.
    (error.get_ref().is_none()).then_some(FailureKind::Disconnected)
}

/// Returns whether a code of the system says that this process (`EMFILE`) or the whole system (`ENFILE`) can open no more
/// files; the two have these numbers on every Unix.
const fn is_out_of_files(code: i32) -> bool {
    cfg!(unix) && matches!(code, 23 | 24)
}

fn kind_of_http(error: &hyper::Error) -> Option<FailureKind> {
    if error.is_parse_too_large() {
        Some(FailureKind::HeadersTooLarge)
    } else if error.is_parse() {
        Some(FailureKind::Protocol)
    } else if error.is_incomplete_message() || error.is_canceled() || error.is_closed() {
        Some(FailureKind::Disconnected)
    } else {
        None
    }
}

/// A stream reset or connection shut down for the server's own reasons can go well next time. A breach of the protocol
/// cannot, nor what this side could not bear, such as a head far over the cap.
fn kind_of_http2(error: &h2::Error) -> FailureKind {
    if error.is_library() {
        return FailureKind::Protocol;
    }
    match error.reason() {
        Some(
            h2::Reason::PROTOCOL_ERROR
            | h2::Reason::FLOW_CONTROL_ERROR
            | h2::Reason::FRAME_SIZE_ERROR
            | h2::Reason::COMPRESSION_ERROR
            | h2::Reason::HTTP_1_1_REQUIRED,
        ) => FailureKind::Protocol,
        _ => FailureKind::Disconnected,
    }
}

/// Iterates over an error's causes, the error itself left out: its text repeats the URL.
fn causes(error: &reqwest::Error) -> impl Iterator<Item = &(dyn Error + 'static)> {
    std::iter::successors(error.source(), |cause| next_cause(*cause)).take(CAUSES_MAX)
}

/// Returns the cause of a cause. `io::Error` passes over the error that it wraps, which is the one that counts.
fn next_cause<'a>(cause: &'a (dyn Error + 'static)) -> Option<&'a (dyn Error + 'static)> {
    if let Some(error) = cause.downcast_ref::<io::Error>()
        && let Some(inner) = error.get_ref()
    {
        return Some(inner);
    }
    cause.source()
}

/// Joins the texts of the causes, leaving out the client's names for its own layers, and what the text before ends with.
fn detail_of(error: &reqwest::Error) -> String {
    let mut detail = String::new();
    for cause in causes(error) {
        let text = cause.to_string();
        let is_layer = text.starts_with("client error (")
            || matches!(text.as_str(), "dns error" | "error resolving DNS");
        if is_layer || text.is_empty() || detail.ends_with(&text) {
            continue;
        }
        if !detail.is_empty() {
            detail.push_str(": ");
        }
        detail.push_str(&text);
        if detail.len() > 4 * DETAIL_CHARS_MAX {
            break;
        }
    }
    if detail.is_empty() {
        error.to_string()
    } else {
        detail
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn details_are_clean_and_bounded() {
        let detail = failure(
            FailureKind::Dns,
            &format!("a\n\x1b[31m\u{9b}\u{202e}é{}", "x".repeat(500)),
        )
        .detail;
        assert!(detail.starts_with("a  [31m  éxx"), "{detail}");
        assert_eq!(detail.chars().count(), DETAIL_CHARS_MAX);
    }
}
