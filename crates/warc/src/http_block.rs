//! The block of a response record: an HTTP/1.1 message rebuilt from what the client handed over.

use crate::record::is_token_byte;

/// The bytes of an HTTP message, and where its body begins in them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpBlock {
    /// Status line, header fields, empty line, body.
    pub bytes: Vec<u8>,
    /// Where the body begins; for [`Record::payload_at`](crate::Record::payload_at).
    pub payload_offset: usize,
}

/// Builds an HTTP/1.1 message from a response whose transfer coding is removed already; a response of another version
/// of HTTP is written in the same form, as archives have agreed on.
///
/// So that the stored message reads back right, `transfer-encoding` becomes `x-crawl-transfer-encoding`, and a
/// `content-length` that does not agree with `body` becomes `x-crawl-content-length`; in both cases a right
/// `content-length` is added. CR, LF and NUL in values become spaces; bytes that no field name may have are left out
/// of names. Without `reason` the customary phrase is written.
#[must_use]
pub fn http_response_block<'a>(
    status: u16,
    reason: Option<&str>,
    headers: impl IntoIterator<Item = (&'a str, &'a [u8])>,
    body: &[u8],
) -> HttpBlock {
    let mut bytes = Vec::with_capacity(body.len() + 1_024);
    bytes.extend_from_slice(format!("HTTP/1.1 {status:03} ").as_bytes());
    push_value(
        &mut bytes,
        reason.unwrap_or_else(|| reason_phrase(status)).as_bytes(),
    );
    bytes.extend_from_slice(b"\r\n");
    let body_length = body.len().to_string();
    let mut has_right_length = false;
    let mut needs_length = false;
    for (name, value) in headers {
        if name.eq_ignore_ascii_case("transfer-encoding") {
            needs_length = true;
            push_field(&mut bytes, "x-crawl-transfer-encoding", value);
        } else if !name.eq_ignore_ascii_case("content-length") {
            push_field(&mut bytes, name, value);
        } else if value.trim_ascii() == body_length.as_bytes() && !has_right_length {
            has_right_length = true;
            push_field(&mut bytes, name, value);
        } else {
            needs_length = true;
            push_field(&mut bytes, "x-crawl-content-length", value);
        }
    }
    if needs_length && !has_right_length {
        push_field(&mut bytes, "content-length", body_length.as_bytes());
    }
    bytes.extend_from_slice(b"\r\n");
    let payload_offset = bytes.len();
    bytes.extend_from_slice(body);
    HttpBlock {
        bytes,
        payload_offset,
    }
}

fn push_field(bytes: &mut Vec<u8>, name: &str, value: &[u8]) {
    bytes.extend(name.bytes().filter(|byte| is_token_byte(*byte)));
    bytes.extend_from_slice(b": ");
    push_value(bytes, value);
    bytes.extend_from_slice(b"\r\n");
}

fn push_value(bytes: &mut Vec<u8>, value: &[u8]) {
    bytes.extend(value.iter().map(|byte| {
        if matches!(byte, b'\r' | b'\n' | 0) {
            b' '
        } else {
            *byte
        }
    }));
}

/// Returns the customary reason phrase of a status code (the IANA registry), or an empty text.
#[must_use]
pub const fn reason_phrase(status: u16) -> &'static str {
    match status {
        200 => "OK",
        201 => "Created",
        202 => "Accepted",
        203 => "Non-Authoritative Information",
        204 => "No Content",
        205 => "Reset Content",
        206 => "Partial Content",
        300 => "Multiple Choices",
        301 => "Moved Permanently",
        302 => "Found",
        303 => "See Other",
        304 => "Not Modified",
        307 => "Temporary Redirect",
        308 => "Permanent Redirect",
        400 => "Bad Request",
        401 => "Unauthorized",
        402 => "Payment Required",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        406 => "Not Acceptable",
        407 => "Proxy Authentication Required",
        408 => "Request Timeout",
        409 => "Conflict",
        410 => "Gone",
        411 => "Length Required",
        412 => "Precondition Failed",
        413 => "Content Too Large",
        414 => "URI Too Long",
        415 => "Unsupported Media Type",
        416 => "Range Not Satisfiable",
        417 => "Expectation Failed",
        421 => "Misdirected Request",
        422 => "Unprocessable Content",
        423 => "Locked",
        425 => "Too Early",
        426 => "Upgrade Required",
        428 => "Precondition Required",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        451 => "Unavailable For Legal Reasons",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        505 => "HTTP Version Not Supported",
        511 => "Network Authentication Required",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::http_response_block;

    fn block(headers: &[(&str, &[u8])], body: &[u8]) -> String {
        let block = http_response_block(200, None, headers.iter().copied(), body);
        assert_eq!(&block.bytes[block.payload_offset..], body);
        String::from_utf8_lossy(&block.bytes[..block.payload_offset]).into_owned()
    }

    #[test]
    fn agreeing_length_is_left_alone() {
        let head = block(
            &[("Content-Type", b"text/html"), ("Content-Length", b"5")],
            b"hello",
        );
        assert_eq!(
            head,
            "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 5\r\n\r\n"
        );
        assert_eq!(block(&[], b"hello"), "HTTP/1.1 200 OK\r\n\r\n");
    }

    #[test]
    fn framing_that_no_longer_holds_is_renamed() {
        let head = block(
            &[("Transfer-Encoding", b"chunked"), ("Content-Length", b"7")],
            b"hello",
        );
        let expected = "HTTP/1.1 200 OK\r\nx-crawl-transfer-encoding: chunked\r\nx-crawl-content-length: 7\r\ncontent-length: 5\r\n\r\n";
        assert_eq!(head, expected);
        let repeated = block(
            &[("content-length", b"5"), ("content-length", b"6")],
            b"hello",
        );
        assert_eq!(
            repeated,
            "HTTP/1.1 200 OK\r\ncontent-length: 5\r\nx-crawl-content-length: 6\r\n\r\n"
        );
    }

    #[test]
    fn no_value_ends_the_head() {
        let head = block(&[("x", b"a\r\n\r\nb\0c")], b"");
        assert_eq!(head, "HTTP/1.1 200 OK\r\nx: a    b c\r\n\r\n");
    }
}
