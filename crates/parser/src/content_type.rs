//! The media type of a response: what `Content-Type` says, or, without a valid one, what the first bytes look like.

use types::Headers;

/// Bytes in which a start of HTML is looked for (MIME Sniffing, section 5.2, the resource header).
const SNIFFED_BYTES_MAX: usize = 1_445;

/// What a body is read as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Html,
    Xhtml,
    /// XML of some kind, which its root element tells.
    Xml,
    /// No markup. Of a document that is known to be a sitemap, a list of lines, or XML all the same.
    Other,
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

/// Says how the body is to be read. Without a type, or with one that says "unknown", the body is sniffed.
pub(crate) fn form(content_type: Option<&ContentType>, body: &[u8]) -> Form {
    match content_type.map(|found| found.essence.as_str()) {
        Some("text/html") => Form::Html,
        Some("application/xhtml+xml") => Form::Xhtml,
        Some("text/xml" | "application/xml") => Form::Xml,
        // Feeds, mostly; images and office documents of this kind are no `application`, or are packed.
        Some(essence) if essence.starts_with("application/") && essence.ends_with("+xml") => {
            Form::Xml
        }
        None | Some("unknown/unknown" | "application/unknown") => sniffed(body),
        Some(_) => Form::Other,
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

/// What the body begins like (MIME Sniffing, section 7.1, its patterns of HTML and XML, after a byte order mark if one is
/// there).
fn sniffed(body: &[u8]) -> Form {
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
    if start.starts_with(b"<?xml") {
        return Form::Xml;
    }
    let begins_tag = |tag: &&str| {
        let Some((head, rest)) = start.split_at_checked(tag.len()) else {
            return false;
        };
        head.eq_ignore_ascii_case(tag.as_bytes())
            && matches!(rest.first(), Some(b' ' | b'>' | b'\t' | b'\n' | b'\r'))
    };
    if start.starts_with(b"<!--") || TAGS.iter().any(begins_tag) {
        Form::Html
    } else {
        Form::Other
    }
}

#[cfg(test)]
mod tests {
    use types::Headers;

    use super::{Form, form, of_headers};

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
            form(of_headers(&headers).as_ref(), body)
        };
        for (value, expected) in [
            ("TEXT/html; x", Form::Html),
            ("application/xhtml+xml", Form::Xhtml),
            ("text/xml;charset=gbk", Form::Xml),
            ("application/atom+xml", Form::Xml),
            ("image/svg+xml", Form::Other),
            ("text/plain", Form::Other),
            ("application/x-gzip", Form::Other),
        ] {
            assert_eq!(of(value, b"<html>"), expected, "{value}");
        }
        for (body, expected) in [
            (&b"\xEF\xBB\xBF\n <!doctype html>"[..], Form::Html),
            (b"<!-- x", Form::Html),
            (b" <?xml version", Form::Xml),
            (b"<abbr>", Form::Other),
            (b"%PDF-1.4 <html>", Form::Other),
            (b"", Form::Other),
        ] {
            assert_eq!(form(None, body), expected, "{body:?}");
        }
        assert_eq!(of("bad", b"<a href=x>"), Form::Html);
    }
}
