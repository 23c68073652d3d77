//! The media type of a response: what `Content-Type` says, or, without a valid one, what the first bytes look like.

use types::Headers;

/// Bytes in which a start of HTML is looked for (MIME Sniffing, section 5.2, the resource header).
const SNIFFED_BYTES_MAX: usize = 1_445;

/// The kind of markup in a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Markup {
    Html,
    Xhtml,
}

/// A valid `Content-Type`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ContentType {
    /// Type and subtype, lower case.
    pub(crate) essence: String,
    /// The `charset` parameter, unquoted.
    pub(crate) charset: Option<String>,
}

/// Extracts the media type: the last valid one of all fields and of comma-joined values in them, with the charset of an
/// earlier equal one if it has none itself (Fetch, section 2.2.2, "extract a MIME type").
pub(crate) fn of_headers(headers: &Headers) -> Option<ContentType> {
    let mut found: Option<ContentType> = None;
    for field in headers.get_all("content-type") {
        for value in split_unquoted(&String::from_utf8_lossy(field), ',') {
            let Some(mut next) = parse(value) else {
                continue;
            };
            if next.essence == "*/*" {
                continue;
            }
            if let Some(before) = found.take_if(|before| before.essence == next.essence) {
                next.charset = next.charset.or(before.charset);
            }
            found = Some(next);
        }
    }
    found
}

/// Says which markup the body holds, if any. Without a type, or with one that says "unknown", the body is sniffed.
pub(crate) fn markup(content_type: Option<&ContentType>, body: &[u8]) -> Option<Markup> {
    match content_type.map(|found| found.essence.as_str()) {
        Some("text/html") => Some(Markup::Html),
        Some("application/xhtml+xml") => Some(Markup::Xhtml),
        None | Some("unknown/unknown" | "application/unknown") => {
            looks_like_html(body).then_some(Markup::Html)
        }
        Some(_) => None,
    }
}

/// Parses one value (MIME Sniffing, section 4.4).
fn parse(value: &str) -> Option<ContentType> {
    let mut parts = split_unquoted(value, ';');
    let essence = parts.next()?.trim_ascii();
    let (kind, subtype) = essence.split_once('/')?;
    if !is_token(kind) || !is_token(subtype) {
        return None;
    }
    let charset = parts.find_map(|part| {
        let (name, value) = part.split_once('=')?;
        let value = unquoted(value);
        (name.trim_ascii_start().eq_ignore_ascii_case("charset") && !value.is_empty())
            .then_some(value)
    });
    Some(ContentType {
        essence: essence.to_ascii_lowercase(),
        charset,
    })
}

/// Splits at a separator outside of quoted strings.
fn split_unquoted(text: &str, separator: char) -> impl Iterator<Item = &str> {
    let mut is_quoted = false;
    let mut is_escaped = false;
    text.split(move |character| {
        let was_escaped = std::mem::take(&mut is_escaped);
        match character {
            '\\' if is_quoted && !was_escaped => is_escaped = true,
            '"' if !was_escaped => is_quoted = !is_quoted,
            _ => {}
        }
        character == separator && !is_quoted
    })
}

/// Takes a parameter's value out of its quotes and escapes; what follows the closing quote is dropped.
fn unquoted(value: &str) -> String {
    let Some(inner) = value.strip_prefix('"') else {
        return value.trim_ascii_end().to_owned();
    };
    let mut text = String::new();
    let mut characters = inner.chars();
    while let Some(character) = characters.next() {
        match character {
            '"' => break,
            '\\' => text.extend(characters.next()),
            other => text.push(other),
        }
    }
    text
}

/// RFC 9110, section 5.6.2.
fn is_token(text: &str) -> bool {
    !text.is_empty()
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}

/// Whether the body begins like HTML (MIME Sniffing, section 7.1, its HTML patterns, after a byte order mark if one is
/// there).
fn looks_like_html(body: &[u8]) -> bool {
    const TAGS: [&str; 16] = [
        "<!DOCTYPE HTML",
        "<HTML",
        "<HEAD",
        "<SCRIPT",
        "<IFRAME",
        "<H1",
        "<DIV",
        "<FONT",
        "<TABLE",
        "<A",
        "<STYLE",
        "<TITLE",
        "<B",
        "<BODY",
        "<BR",
        "<P",
    ];
    let body = &body[..body.len().min(SNIFFED_BYTES_MAX)];
    let start = body
        .strip_prefix(b"\xEF\xBB\xBF")
        .unwrap_or(body)
        .trim_ascii_start();
    if start.starts_with(b"<!--") {
        return true;
    }
    TAGS.iter().any(|tag| {
        let Some((head, rest)) = start.split_at_checked(tag.len()) else {
            return false;
        };
        head.eq_ignore_ascii_case(tag.as_bytes())
            && matches!(rest.first(), Some(b' ' | b'>' | b'\t' | b'\n' | b'\r'))
    })
}

#[cfg(test)]
mod tests {
    use types::Headers;

    use super::{Markup, markup, of_headers};

    fn read(values: &[&str]) -> Option<(String, Option<String>)> {
        let fields = values
            .iter()
            .map(|value| ("Content-Type".to_owned(), value.as_bytes().to_vec()))
            .collect();
        of_headers(&Headers::new(fields)).map(|found| (found.essence, found.charset))
    }

    fn known(essence: &str, charset: Option<&str>) -> (String, Option<String>) {
        (essence.to_owned(), charset.map(str::to_owned))
    }

    #[test]
    fn values() {
        assert_eq!(
            read(&["Text/HTML;charset=utf-8"]),
            Some(known("text/html", Some("utf-8")))
        );
        assert_eq!(
            read(&["text/html;charset="]),
            Some(known("text/html", None))
        );
        assert_eq!(
            read(&["text/html; Charset=\"iso-8859-9\" x"]),
            Some(known("text/html", Some("iso-8859-9")))
        );
        assert_eq!(
            read(&["text/html;;x=\"a;charset=b\"; charset=c ;charset=d"]),
            Some(known("text/html", Some("c")))
        );
        assert_eq!(
            read(&["text/html; charset=gbk, text/html"]),
            Some(known("text/html", Some("gbk")))
        );
        assert_eq!(
            read(&["text/plain", "text/html"]),
            Some(known("text/html", None))
        );
        assert_eq!(
            read(&["text/html", "broken"]),
            Some(known("text/html", None))
        );
        assert_eq!(read(&["text/html, */*"]), Some(known("text/html", None)));
        for broken in [
            "",
            "text",
            "text/",
            "/html",
            "text/html charset=utf-8",
            "charset=utf-8",
        ] {
            assert_eq!(read(&[broken]), None, "{broken:?}");
        }
    }

    #[test]
    fn kinds() {
        let of = |value: &str, body: &[u8]| {
            let headers =
                Headers::new(vec![("content-type".to_owned(), value.as_bytes().to_vec())]);
            markup(of_headers(&headers).as_ref(), body)
        };
        assert_eq!(of("TEXT/html; x", b""), Some(Markup::Html));
        assert_eq!(of("application/xhtml+xml", b""), Some(Markup::Xhtml));
        assert_eq!(of("text/plain", b"<html>"), None);
        assert_eq!(of("application/xml", b"<html>"), None);
        assert_eq!(
            markup(None, b"\xEF\xBB\xBF\n <!doctype html>"),
            Some(Markup::Html)
        );
        assert_eq!(markup(None, b"<!-- x"), Some(Markup::Html));
        assert_eq!(of("bad", b"<a href=x>"), Some(Markup::Html));
        assert_eq!(markup(None, b"<abbr>"), None);
        assert_eq!(markup(None, b"%PDF-1.4 <html>"), None);
        assert_eq!(markup(None, b""), None);
    }
}
