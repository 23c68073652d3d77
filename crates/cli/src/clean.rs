//! Makes text from outside safe to print: no control or direction character of it reaches a terminal or a log.

use std::fmt::Write as _;

use types::is_unprintable;

/// Returns `text` with each character that [`is_unprintable`] written as `\u{..}`, cut at `chars_max` characters.
pub(crate) fn clean(text: &str, chars_max: usize) -> String {
    let mut cleaned = String::with_capacity(text.len().min(chars_max));
    for (index, character) in text.chars().enumerate() {
        if index == chars_max {
            cleaned.push_str("...");
            break;
        }
        if is_unprintable(character) {
            // Writing to a string does not fail.
            let _ = write!(cleaned, "\\u{{{:x}}}", u32::from(character));
        } else {
            cleaned.push(character);
        }
    }
    cleaned
}

/// Returns a connection string or URL with its password replaced by `***`: in the user part, and in parameters named
/// `password` or `sslpassword`.
///
/// Readers of such texts differ on where the user part ends, and people forget to escape, so this hides too much rather
/// than too little.
pub(crate) fn mask_password(uri: &str) -> String {
    let mut masked = String::with_capacity(uri.len());
    for part in mask_user_part(uri).split_inclusive(['?', '&']) {
        match part.split_once('=') {
            Some((name, value)) if names_password(name) => {
                masked.push_str(name);
                masked.push_str("=***");
                masked.extend(value.chars().last().filter(|end| matches!(end, '?' | '&')));
            }
            _ => masked.push_str(part),
        }
    }
    masked
}

/// An escaped name may be any name.
fn names_password(name: &str) -> bool {
    name.contains('%') || name.to_ascii_lowercase().ends_with("password")
}

/// Masks what stands between the first `:` after the scheme and the last `@` of the whole text: `PostgreSQL`'s clients
/// take all before the first `@` for user and password, also a `/` or `?`; a password may hold an unescaped `@` too.
fn mask_user_part(uri: &str) -> String {
    let Some((scheme, rest)) = uri.split_once("://") else {
        return uri.to_owned();
    };
    let masked = rest.rsplit_once('@').and_then(|(user, host)| {
        let (name, _) = user.split_once(':')?;
        Some(format!("{scheme}://{name}:***@{host}"))
    });
    masked.unwrap_or_else(|| uri.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_drives_a_terminal_is_left() {
        let hostile =
            "a\u{1b}]0;x\u{7}\u{9b}31m\r\n\tb\u{7f}\u{202e}gnp.exe\u{2066}\u{2069}\u{2028}ü";
        let cleaned = clean(hostile, 1_000);
        assert!(cleaned.chars().all(|c| !is_unprintable(c)), "{cleaned}");
        assert!(
            cleaned.starts_with("a\\u{1b}]0;x") && cleaned.ends_with('ü'),
            "{cleaned}"
        );
        assert_eq!(
            clean("http://example.com/a%1b[2J", 100),
            "http://example.com/a%1b[2J"
        );
    }

    #[test]
    fn the_public_reports_on_terminal_text_hold() {
        for case in crate::cases::of_operation("term.clean") {
            let input = case["input"].as_str().expect("a text");
            let cleaned = clean(input, 1_000);
            assert!(
                !cleaned.chars().any(is_unprintable),
                "{}: {cleaned:?}",
                case["id"]
            );
        }
    }

    #[test]
    fn long_text_is_cut() {
        assert_eq!(clean("abcdef", 3), "abc...");
        assert_eq!(clean("abc", 3), "abc");
    }

    #[test]
    fn passwords_are_masked_wherever_they_stand() {
        for (uri, masked) in [
            (
                "postgres://me:secret@db:5432/crawl",
                "postgres://me:***@db:5432/crawl",
            ),
            (
                "postgres://me:se@cr/et@db/crawl",
                "postgres://me:***@db/crawl",
            ),
            ("postgres://me@db/crawl", "postgres://me@db/crawl"),
            (
                "postgres://db/crawl?user=me&password=secret&x=1",
                "postgres://db/crawl?user=me&password=***&x=1",
            ),
            (
                "postgres://me:se?cret@db/crawl",
                "postgres://me:***@db/crawl",
            ),
            (
                "postgres://me:se?password=x@db/crawl?sslmode=disable",
                "postgres://me:***@db/crawl?sslmode=disable",
            ),
            (
                "postgres://me:secret@db/crawl?password=other&user=a@b",
                "postgres://me:***@b",
            ),
            (
                "postgres://db:5432/crawl?user=a@b&password=secret&x=1",
                "postgres://db:***@b&password=***&x=1",
            ),
            (
                "postgres://db/crawl?pass%77ord=secret",
                "postgres://db/crawl?pass%77ord=***",
            ),
            (
                "postgres://%2Fvar%2Frun%2Fpostgresql/crawl?user=me",
                "postgres://%2Fvar%2Frun%2Fpostgresql/crawl?user=me",
            ),
            ("embedded:", "embedded:"),
            ("http://u:p@proxy:3128", "http://u:***@proxy:3128"),
        ] {
            assert_eq!(mask_password(uri), masked);
        }
    }
}
