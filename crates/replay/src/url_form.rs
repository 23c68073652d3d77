//! One form for the spellings of a URL, so that a request finds its record.
//!
//! It is coarser than canonicalization on purpose: a recorded URL and the one that a client makes of it must meet,
//! whichever of the two had its escapes tidied.

/// Returns the form under which a URL is looked up, or `None` when it is not http or https.
///
/// White space around and line breaks within are dropped, scheme and host lower-cased, user and password, default
/// port, trailing host dot, fragment and empty query dropped, dot segments resolved, and every byte is spelled one
/// way: unreserved and delimiting characters plain, all others escaped with upper-case digits. Hosts are compared as
/// they are written: archives write them in ASCII.
pub(crate) fn url_form(text: &str) -> Option<String> {
    let text = text.trim_matches(|char: char| char <= ' ');
    let (scheme, rest) = text.split_once(':')?;
    let scheme = scheme.to_ascii_lowercase();
    let default_port = match scheme.as_str() {
        "http" => "80",
        "https" => "443",
        _ => return None,
    };
    let rest = rest.trim_start_matches(['/', '\\']);
    let rest = rest.split('#').next().unwrap_or_default();
    let authority_end = rest.find(['/', '\\', '?']).unwrap_or(rest.len());
    let (authority, rest) = rest.split_at(authority_end);
    let host_and_port = authority
        .rsplit('@')
        .next()
        .unwrap_or(authority)
        .to_ascii_lowercase();
    let (host, port) = split_port(&host_and_port);
    let host = host.trim_end_matches('.');
    if host.is_empty() {
        return None;
    }
    let (path, query) = rest
        .split_once('?')
        .map_or((rest, ""), |(path, query)| (path, query));
    let mut form = format!("{scheme}://{host}");
    if !port.is_empty() && port != default_port {
        form.push(':');
        form.push_str(port);
    }
    push_path(&mut form, &respell(&path.replace('\\', "/")));
    if !query.is_empty() {
        form.push('?');
        form.push_str(&respell(query));
    }
    Some(form)
}

/// Splits a port off a host, which may be an IPv6 literal.
fn split_port(authority: &str) -> (&str, &str) {
    match authority.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => (host, port),
        _ => (authority, ""),
    }
}

/// Spells each byte of a path or query one way.
fn respell(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut respelled = String::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let byte = bytes[at];
        at += 1;
        if matches!(byte, b'\t' | b'\n' | b'\r') {
            continue;
        }
        let escaped = if byte == b'%' {
            escaped_byte(bytes, at)
        } else {
            None
        };
        if let Some(escaped) = escaped {
            at += 2;
            // An escaped delimiter is not the delimiter (RFC 3986 section 2.2), save those that clients may escape.
            if is_unreserved(escaped) {
                respelled.push(char::from(escaped));
            } else {
                push_escape(&mut respelled, escaped);
            }
        } else if is_unreserved(byte) || is_delimiter(byte) {
            respelled.push(char::from(byte));
        } else {
            push_escape(&mut respelled, byte);
        }
    }
    respelled
}

fn escaped_byte(bytes: &[u8], at: usize) -> Option<u8> {
    let digit = |offset: usize| {
        bytes
            .get(at + offset)
            .and_then(|byte| char::from(*byte).to_digit(16))
    };
    u8::try_from(digit(0)? * 16 + digit(1)?).ok()
}

fn push_escape(text: &mut String, byte: u8) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    text.push('%');
    text.push(char::from(DIGITS[usize::from(byte >> 4)]));
    text.push(char::from(DIGITS[usize::from(byte & 15)]));
}

const fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
}

/// The delimiters that no client escapes by itself; a lone `%` stays as it is too.
const fn is_delimiter(byte: u8) -> bool {
    matches!(
        byte,
        b'!' | b'$'
            | b'&'
            | b'('
            | b')'
            | b'*'
            | b'+'
            | b','
            | b';'
            | b'='
            | b':'
            | b'@'
            | b'/'
            | b'?'
            | b'%'
    )
}

/// Appends a path without its dot segments (WHATWG URL, path state).
fn push_path(form: &mut String, path: &str) {
    let mut kept: Vec<&str> = Vec::new();
    let mut segments = path.strip_prefix('/').unwrap_or(path).split('/').peekable();
    while let Some(segment) = segments.next() {
        let is_last = segments.peek().is_none();
        match segment {
            "." | ".." => {
                if segment == ".." {
                    kept.pop();
                }
                if is_last {
                    kept.push("");
                }
            }
            _ => kept.push(segment),
        }
    }
    if kept.is_empty() {
        form.push('/');
    }
    for segment in kept {
        form.push('/');
        form.push_str(segment);
    }
}

#[cfg(test)]
mod tests {
    use super::url_form;

    #[test]
    fn spellings_of_one_url_meet() {
        let spellings = [
            "http://example.org/~a/caf%C3%A9?q='x'|",
            "HTTP://Example.ORG:80/%7Ea/caf%c3%a9?q=%27x%27|#top",
            " http://user:pw@example.org./b/../%7ea/./café?q='x'%7C ",
            "http:\\\\example.org\\~a\\caf%C3%A9?q='x'|",
        ];
        for spelling in spellings {
            assert_eq!(
                url_form(spelling).as_deref(),
                Some("http://example.org/~a/caf%C3%A9?q=%27x%27%7C"),
                "{spelling}"
            );
        }
    }

    #[test]
    fn different_urls_stay_apart() {
        let urls = [
            "http://example.org/",
            "https://example.org/",
            "http://example.org:8080/",
            "http://example.org/a",
            "http://example.org/a/",
            "http://example.org/A",
            "http://example.org//a",
            "http://example.org/a%2Fb",
            "http://example.org/a/b",
            "http://example.org/a?b&c",
            "http://example.org/a?b%26c",
            "http://example.org/a?c&b",
            "http://[::1]:8080/",
        ];
        let forms = urls
            .iter()
            .filter_map(|url| url_form(url))
            .collect::<std::collections::BTreeSet<_>>();
        assert_eq!(forms.len(), urls.len());
    }

    #[test]
    fn edges() {
        let cases = [
            ("http://example.org", Some("http://example.org/")),
            ("http://example.org?x", Some("http://example.org/?x")),
            ("http://example.org/a?", Some("http://example.org/a")),
            ("http://example.org/a/..", Some("http://example.org/")),
            (
                "http://example.org/../../a/%2E",
                Some("http://example.org/a/"),
            ),
            (
                "https://example.org:443/100%",
                Some("https://example.org/100%"),
            ),
            ("http://[::1]/", Some("http://[::1]/")),
            ("dns:example.org", None),
            ("ftp://example.org/", None),
            ("http://", None),
            ("", None),
        ];
        for (url, form) in cases {
            assert_eq!(url_form(url).as_deref(), form, "{url}");
        }
    }
}
