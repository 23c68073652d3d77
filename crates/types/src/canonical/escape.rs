//! Percent-escapes: decodes those of unreserved characters and upper-cases the hex digits of all others.

/// Appends `component`, a path or a query as the URL parser wrote it, with normalized escapes
/// (RFC 3986, sections 6.2.2.1 and 6.2.2.2).
///
/// Never lengthens it, and changes nothing the second time.
pub(super) fn push_normalized(text: &mut String, component: &str) {
    let mut rest = component;
    while let Some(at) = rest.find('%') {
        let (before, escape) = rest.split_at(at);
        text.push_str(before);
        let Some(value) = escaped_byte(escape.as_bytes()) else {
            text.push('%');
            rest = &escape[1..];
            continue;
        };
        if is_unreserved(value) && !completes_escape(text, value) {
            text.push(char::from(value));
        } else {
            text.push('%');
            text.push(char::from(escape.as_bytes()[1].to_ascii_uppercase()));
            text.push(char::from(escape.as_bytes()[2].to_ascii_uppercase()));
        }
        rest = &escape[3..];
    }
    text.push_str(rest);
}

/// Returns the byte that the escape at the start of `bytes` stands for; `None` where it is none.
fn escaped_byte(bytes: &[u8]) -> Option<u8> {
    let digit = |at: usize| {
        bytes
            .get(at)
            .and_then(|byte| char::from(*byte).to_digit(16))
    };
    let value = digit(1)? * 16 + digit(2)?;
    u8::try_from(value).ok()
}

/// Returns whether a byte is an unreserved character (RFC 3986, section 2.3).
const fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
}

/// Returns whether `value`, appended to `text`, would join a `%` that was no escape so far.
///
/// `%%36%36` is a lone `%` and two escapes. Decoded it would read `%66`, an escape that was never there and
/// that the next pass would decode to `f`. So a hex digit behind an open `%` stays escaped.
fn completes_escape(text: &str, value: u8) -> bool {
    if !value.is_ascii_hexdigit() {
        return false;
    }
    match text.as_bytes() {
        [.., b'%'] => true,
        [.., b'%', digit] => digit.is_ascii_hexdigit(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::push_normalized;

    fn normalized(component: &str) -> String {
        let mut text = String::new();
        push_normalized(&mut text, component);
        text
    }

    #[test]
    fn unreserved_characters_are_decoded_and_others_upper_cased() {
        for (component, expected) in [
            ("/plain", "/plain"),
            ("/%7efoo%2Dbar%2e%5f%41%7A%30", "/~foo-bar._Az0"),
            ("/a%2fb%3b%3F%25%c3%a4", "/a%2Fb%3B%3F%25%C3%A4"),
            ("/%25%37%45", "/%257E"),
            ("/%2541", "/%2541"),
            ("/%00%1f%20", "/%00%1F%20"),
        ] {
            assert_eq!(normalized(component), expected, "{component}");
        }
    }

    #[test]
    fn what_is_no_escape_stays() {
        for component in [
            "/%", "/%4", "/%zz", "/%%", "/100%/x", "/%u0041", "/%-1", "/%+1", "/%ä1",
        ] {
            assert_eq!(normalized(component), component);
        }
    }

    #[test]
    fn decoding_never_makes_an_escape() {
        for (component, expected) in [
            ("/%%36%36", "/%%366"),
            ("/%6%36", "/%6%36"),
            ("/%%32e", "/%%32e"),
            ("/%%7e%36", "/%~6"),
            ("/%41%36", "/A6"),
            ("/%2F%36", "/%2F6"),
        ] {
            assert_eq!(normalized(component), expected, "{component}");
            assert_eq!(normalized(expected), expected, "{component}, second pass");
        }
    }
}
