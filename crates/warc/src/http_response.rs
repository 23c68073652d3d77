//! Parses the block of a response record as an HTTP message.

use std::borrow::Cow;

use thiserror::Error;

/// More header lines than this are no message.
const HEADER_COUNT_MAX: usize = 10_000;

/// An HTTP response as recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpResponse<'a> {
    /// The status code, 100 to 999.
    pub status: u16,
    /// The reason phrase, possibly empty.
    pub reason: Cow<'a, str>,
    /// The header fields in order; names as recorded, values raw.
    pub headers: Vec<(Cow<'a, str>, &'a [u8])>,
    /// The body; chunks are joined where the recorded body really is chunked.
    pub body: Cow<'a, [u8]>,
}

impl<'a> HttpResponse<'a> {
    /// Returns the first value of a field, whatever the case of its name.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&'a [u8]> {
        self.headers
            .iter()
            .find(|(field, _)| field.eq_ignore_ascii_case(name))
            .map(|(_, value)| *value)
    }
}

/// Why a block is no HTTP response.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum HttpError {
    /// The first line is no status line.
    #[error("a response begins with a line like \"HTTP/1.1 200 OK\", found {0:?}")]
    StatusLine(String),
    /// The head has too many lines.
    #[error("more than {HEADER_COUNT_MAX} header lines")]
    TooManyHeaders,
}

/// Parses an HTTP response: status line, header fields, body.
///
/// Lines may end with a lone LF, field lines without a colon are passed over, folded ones are left out of the value.
/// A body whose `Transfer-Encoding` says chunked is joined; where it is not chunked after all, as many archives have
/// it, it is taken as it is, and where it only ends early, what is there is joined.
///
/// # Errors
///
/// Returns [`HttpError`] when there is no status line, or no end to the header fields.
pub fn parse_http_response(block: &[u8]) -> Result<HttpResponse<'_>, HttpError> {
    let (first_line, mut rest) = split_line(block);
    let (status, reason) = parse_status_line(first_line).ok_or_else(|| {
        HttpError::StatusLine(
            first_line[..first_line.len().min(64)]
                .escape_ascii()
                .to_string(),
        )
    })?;
    let mut headers: Vec<(Cow<'_, str>, &[u8])> = Vec::new();
    let mut line_count = 0;
    while !rest.is_empty() {
        let (line, after) = split_line(rest);
        rest = after;
        if line.is_empty() {
            break;
        }
        line_count += 1;
        if line_count > HEADER_COUNT_MAX {
            return Err(HttpError::TooManyHeaders);
        }
        let is_folded = matches!(line[0], b' ' | b'\t');
        if let Some(colon) = line
            .iter()
            .position(|byte| *byte == b':')
            .filter(|_| !is_folded)
        {
            headers.push((
                String::from_utf8_lossy(line[..colon].trim_ascii()),
                line[colon + 1..].trim_ascii(),
            ));
        }
    }
    let response = HttpResponse {
        status,
        reason,
        headers,
        body: Cow::Borrowed(rest),
    };
    let is_chunked = response.header("transfer-encoding").is_some_and(|value| {
        value
            .to_ascii_lowercase()
            .windows(7)
            .any(|word| word == b"chunked")
    });
    let joined = if is_chunked { join_chunks(rest) } else { None };
    Ok(match joined {
        Some(body) => HttpResponse {
            body: Cow::Owned(body),
            ..response
        },
        None => response,
    })
}

/// Splits off the first line, without its end.
fn split_line(bytes: &[u8]) -> (&[u8], &[u8]) {
    match bytes.iter().position(|byte| *byte == b'\n') {
        Some(at) => (
            bytes[..at].strip_suffix(b"\r").unwrap_or(&bytes[..at]),
            &bytes[at + 1..],
        ),
        None => (bytes, &[]),
    }
}

fn parse_status_line(line: &[u8]) -> Option<(u16, Cow<'_, str>)> {
    let after_name = line.strip_prefix(b"HTTP/")?;
    let space = after_name.iter().position(|byte| *byte == b' ')?;
    let after_version = after_name[space..].trim_ascii_start();
    let digits = after_version.get(..3)?;
    let status = std::str::from_utf8(digits)
        .ok()?
        .parse::<u16>()
        .ok()
        .filter(|status| *status >= 100)?;
    let reason = &after_version[3..];
    let is_separate = reason.first().is_none_or(u8::is_ascii_whitespace);
    is_separate.then(|| (status, String::from_utf8_lossy(reason.trim_ascii())))
}

/// Joins chunks (RFC 9112 section 7.1); `None` when a chunk does not begin with its size.
fn join_chunks(mut rest: &[u8]) -> Option<Vec<u8>> {
    let mut body = Vec::with_capacity(rest.len());
    while !rest.is_empty() {
        let (line, after) = split_line(rest);
        let size_text = line
            .split(|byte| *byte == b';')
            .next()
            .unwrap_or_default()
            .trim_ascii();
        let is_hex = !size_text.is_empty() && size_text.iter().all(u8::is_ascii_hexdigit);
        let size = is_hex
            .then(|| usize::from_str_radix(std::str::from_utf8(size_text).ok()?, 16).ok())??;
        if size == 0 {
            break;
        }
        if after.len() < size {
            body.extend_from_slice(after);
            break;
        }
        body.extend_from_slice(&after[..size]);
        let end = &after[size..];
        rest = end
            .strip_prefix(b"\r\n")
            .or_else(|| end.strip_prefix(b"\n"))
            .unwrap_or(end);
    }
    Some(body)
}

#[cfg(test)]
mod tests {
    use super::{HttpError, parse_http_response};

    #[test]
    fn a_response_with_either_line_end() {
        for end in ["\r\n", "\n"] {
            let block = [
                "HTTP/1.0 404 Not Found",
                "Content-Type:text/html",
                "X: ",
                "",
                "body\n\n",
            ]
            .join(end);
            let response = parse_http_response(block.as_bytes()).expect("a response");
            assert_eq!((response.status, &*response.reason), (404, "Not Found"));
            assert_eq!(
                response.header("content-type"),
                Some(b"text/html".as_slice())
            );
            assert_eq!(response.header("x"), Some(b"".as_slice()));
            assert_eq!(&*response.body, b"body\n\n");
        }
    }

    #[test]
    fn short_status_lines() {
        for (line, status) in [
            ("HTTP/2 200", 200),
            ("HTTP/1.1 200 ", 200),
            ("HTTP/1.1 999 x", 999),
        ] {
            assert_eq!(
                parse_http_response(line.as_bytes()).map(|response| response.status),
                Ok(status),
                "{line}"
            );
        }
        for line in [
            "",
            "200 OK",
            "HTTP/1.1",
            "HTTP/1.1 20",
            "HTTP/1.1 2000 OK",
            "HTTP/1.1 abc OK",
            "<html>",
        ] {
            assert!(
                matches!(
                    parse_http_response(line.as_bytes()),
                    Err(HttpError::StatusLine(_))
                ),
                "{line}"
            );
        }
    }

    fn body_of(body: &str) -> String {
        let block = format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n{body}");
        let response = parse_http_response(block.as_bytes()).expect("a response");
        String::from_utf8_lossy(&response.body).into_owned()
    }

    #[test]
    fn chunks_are_joined_only_where_they_are() {
        assert_eq!(
            body_of("5\r\nhello\r\n6;x=y\r\n world\r\n0\r\nTrailer: x\r\n\r\n"),
            "hello world"
        );
        assert_eq!(body_of("5\r\nhello\r\nFF\r\n wor"), "hello wor");
        assert_eq!(body_of("<html>not chunked"), "<html>not chunked");
        assert_eq!(body_of("5\r\nhelloxyz\r\n"), "5\r\nhelloxyz\r\n");
        assert_eq!(
            body_of("ffffffffffffffffffff\r\nx"),
            "ffffffffffffffffffff\r\nx"
        );
        assert_eq!(body_of(""), "");
    }

    #[test]
    fn endless_headers_are_refused() {
        let block = format!("HTTP/1.1 200 OK\r\n{}", "a: b\r\n".repeat(10_001));
        assert_eq!(
            parse_http_response(block.as_bytes()),
            Err(HttpError::TooManyHeaders)
        );
    }
}
