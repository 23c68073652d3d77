//! Meta refresh: the target in the `content` of `<meta http-equiv=refresh>`.

/// Finds the target by the shared declarative refresh steps (HTML, section 4.2.5.3). `None`: the page reloads itself, or
/// the content has no valid form, in which case browsers do nothing.
pub(crate) fn target(content: &str) -> Option<&str> {
    let rest = skip_space(content);
    let digits_end = rest
        .find(|character: char| !character.is_ascii_digit())
        .unwrap_or(rest.len());
    if digits_end == 0 && !rest.starts_with('.') {
        return None;
    }
    let rest = rest[digits_end..]
        .trim_start_matches(|character: char| character.is_ascii_digit() || character == '.');
    let separated = skip_space(rest);
    if separated.len() == rest.len() && !rest.starts_with([';', ',']) {
        return None;
    }
    let rest = skip_space(separated.strip_prefix([';', ',']).unwrap_or(separated));
    if rest.is_empty() {
        return None;
    }
    Some(unquoted(after_url_word(rest)))
}

/// Skips `url =` if the text has it whole; else the text is the target itself.
fn after_url_word(text: &str) -> &str {
    let Some((word, rest)) = text.split_at_checked(3) else {
        return text;
    };
    if !word.eq_ignore_ascii_case("url") {
        return text;
    }
    skip_space(rest).strip_prefix('=').map_or(text, skip_space)
}

/// Takes what stands in quotes, up to the closing quote or the end.
fn unquoted(text: &str) -> &str {
    let Some(quote) = text
        .chars()
        .next()
        .filter(|first| matches!(first, '"' | '\''))
    else {
        return text;
    };
    let inner = &text[1..];
    inner.split(quote).next().unwrap_or(inner)
}

fn skip_space(text: &str) -> &str {
    text.trim_ascii_start()
}

#[cfg(test)]
mod tests {
    use super::target;

    #[test]
    fn spellings_that_browsers_follow() {
        let cases = [
            ("0; url=/a", "/a"),
            ("5;URL='/a'", "/a"),
            ("5 ; uRl = \"x y\" trailing", "x y"),
            (".5,url=/c", "/c"),
            ("1.5.5 /d", "/d"),
            ("0;/e", "/e"),
            ("0; \"/f\" more", "/f"),
            ("0; 'open", "open"),
            ("0; url", "url"),
            ("0; ur=/g", "ur=/g"),
            ("0; url /h", "url /h"),
            ("\u{c}3\n;\turl\n=\t/i", "/i"),
            ("0; url=", ""),
        ];
        for (content, expected) in cases {
            assert_eq!(target(content), Some(expected), "{content:?}");
        }
    }

    #[test]
    fn forms_that_name_no_target() {
        for content in [
            "",
            "30",
            "30;",
            " 30 ; ",
            "0url=/z",
            "url=/z",
            "-1; url=/z",
            "x",
            "\u{a0}0; url=/z",
        ] {
            assert_eq!(target(content), None, "{content:?}");
        }
    }
}
