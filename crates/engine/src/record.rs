//! Page records: what is kept of an outcome.

use std::time::Duration;

use jiff::{Timestamp, Unit, fmt::rfc2822};
use types::{Disposition, FetchFailure, PageRecord, QueuedUrl, Response};

/// Returns the record of a URL that ended without a response.
pub(crate) fn of_failure(
    queued: &QueuedUrl,
    failure: &FetchFailure,
    disposition: Disposition,
    fetched_at: Timestamp,
) -> PageRecord {
    PageRecord {
        error: Some(failure.kind),
        error_detail: Some(failure.detail.clone()),
        ..blank(queued, disposition, fetched_at)
    }
}

/// Returns the record of a response, before it is parsed.
pub(crate) fn of_response(
    queued: &QueuedUrl,
    response: &Response,
    fetched_at: Timestamp,
) -> PageRecord {
    PageRecord {
        status: Some(response.status),
        first_byte_ms: Some(milliseconds(response.timings.first_byte)),
        total_ms: Some(milliseconds(response.timings.total)),
        content_type: media_type(response),
        wire_bytes: response.wire_body.len() as u64,
        truncated: response.truncation,
        digest: Some(warc::payload_digest(&response.wire_body)),
        ..blank(queued, Disposition::Succeeded, fetched_at)
    }
}

fn blank(queued: &QueuedUrl, disposition: Disposition, fetched_at: Timestamp) -> PageRecord {
    PageRecord {
        url: queued.url.as_str().to_owned(),
        disposition,
        status: None,
        fetched_at: timestamp(fetched_at),
        first_byte_ms: None,
        total_ms: None,
        depth: queued.position.depth,
        via: queued.via,
        referrer: queued.referrer.as_deref().map(str::to_owned),
        retry_count: queued.attempt,
        content_type: None,
        charset: None,
        wire_bytes: 0,
        body_bytes: 0,
        truncated: None,
        digest: None,
        title: None,
        redirect: None,
        outlink_count: 0,
        fresh_count: 0,
        noindex: false,
        nofollow: false,
        error: None,
        error_detail: None,
        warc: None,
    }
}

/// Returns a time as RFC 3339 in UTC with milliseconds.
pub(crate) fn timestamp(at: Timestamp) -> String {
    let rounded = at.round(Unit::Millisecond).unwrap_or(at);
    format!("{rounded:.3}")
}

/// Returns a duration in milliseconds with three decimals.
fn milliseconds(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1e6).round() / 1e3
}

/// Returns the media type of a response without its parameters, lower case, at most 100 bytes of printable ASCII.
fn media_type(response: &Response) -> Option<String> {
    let value = response.headers.get_str("content-type")?;
    let essence = value.split(';').next()?.trim();
    let is_plain = !essence.is_empty()
        && essence.len() <= 100
        && essence.bytes().all(|byte| byte.is_ascii_graphic());
    is_plain.then(|| essence.to_ascii_lowercase())
}

/// Returns the pause that a response asks for (RFC 9110, section 10.2.3): seconds, or a date.
pub(crate) fn retry_after(response: &Response, now: Timestamp) -> Option<Duration> {
    let value = response.headers.get_str("retry-after")?.trim();
    if !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()) {
        // More digits than a number holds ask for longer than anyone waits; the caller caps it.
        return Some(Duration::from_secs(
            value.parse().unwrap_or(u64::from(u32::MAX)),
        ));
    }
    let date = rfc2822::DateTimeParser::new().parse_timestamp(value).ok()?;
    Some(Duration::try_from(date.duration_since(now)).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use types::{Headers, HttpVersion, Timings};

    use super::*;

    fn response(name: &str, value: &str) -> Response {
        Response {
            status: 503,
            version: HttpVersion::Http11,
            headers: Headers::new(vec![(name.to_owned(), value.as_bytes().to_vec())]),
            wire_body: Vec::new(),
            truncation: None,
            request_head: Vec::new(),
            address: None,
            timings: Timings::default(),
        }
    }

    #[test]
    fn retry_after_takes_seconds_and_dates() {
        let now: Timestamp = "1994-11-06T08:49:07Z".parse().expect("a valid timestamp");
        let pause = |value: &str| retry_after(&response("Retry-After", value), now);
        assert_eq!(pause("120"), Some(Duration::from_mins(2)));
        assert_eq!(
            pause("Sun, 06 Nov 1994 08:49:37 GMT"),
            Some(Duration::from_secs(30))
        );
        assert_eq!(
            pause("Sun, 06 Nov 1994 08:00:00 GMT"),
            Some(Duration::ZERO),
            "a past date"
        );
        assert_eq!(pause("soon"), None);
        assert_eq!(pause("-5"), None);
        assert_eq!(pause("1.5"), None);
        assert_eq!(pause("0"), Some(Duration::ZERO));
        assert_eq!(pause(""), None);
        assert!(
            pause("99999999999999999999999")
                .is_some_and(|pause| pause > Duration::from_secs(1 << 30))
        );
    }

    #[test]
    fn media_types_are_lower_case_and_bounded() {
        assert_eq!(
            media_type(&response("content-type", "Text/HTML; charset=x")).as_deref(),
            Some("text/html")
        );
        assert_eq!(
            media_type(&response("content-type", &"a".repeat(101))),
            None
        );
        assert_eq!(media_type(&response("content-type", "a\u{1}b")), None);
    }

    #[test]
    fn timestamps_have_milliseconds() {
        let at: Timestamp = "2026-11-30T10:00:00.123456Z"
            .parse()
            .expect("a valid timestamp");
        assert_eq!(timestamp(at), "2026-11-30T10:00:00.123Z");
    }
}
