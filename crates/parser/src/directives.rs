//! Robots directives: what `X-Robots-Tag` fields and `meta` elements ask of crawlers.

use types::{Directives, Headers};

/// Directives that have a value after a colon, so that what stands before it is no crawler's name.
const VALUED: [&str; 4] = [
    "unavailable_after",
    "max-snippet",
    "max-image-preview",
    "max-video-preview",
];

/// Both: a page that says no in one place means it.
pub(crate) const fn union(one: Directives, other: Directives) -> Directives {
    Directives {
        noindex: one.noindex || other.noindex,
        nofollow: one.nofollow || other.nofollow,
    }
}

/// Reads the directives of a `meta` element's content: words between commas, in any case.
pub(crate) fn of_list(list: &str) -> Directives {
    list.split([',', ';'])
        .map(of_words)
        .fold(Directives::default(), union)
}

/// Reads every `X-Robots-Tag` field. `name: directive` addresses one crawler, for the rest of the field or until the
/// next name, because proxies join fields with commas.
pub(crate) fn of_headers(headers: &Headers, product_token: &str) -> Directives {
    headers
        .get_all("x-robots-tag")
        .map(|value| of_field(&String::from_utf8_lossy(value), product_token))
        .fold(Directives::default(), union)
}

fn of_field(value: &str, product_token: &str) -> Directives {
    let mut directives = Directives::default();
    let mut is_for_us = true;
    for piece in value.split(',') {
        let mut words = piece;
        if let Some((name, rest)) = addressee(piece) {
            is_for_us = name == "*" || name.eq_ignore_ascii_case(product_token);
            words = rest;
        }
        if is_for_us {
            directives = union(directives, of_words(words));
        }
    }
    directives
}

/// Splits `name: rest` where the name can be a crawler's: one word that is no valued directive. Times (`15:00:00`) and
/// dates with blanks are not mistaken for one.
fn addressee(piece: &str) -> Option<(&str, &str)> {
    let (name, rest) = piece.split_once(':')?;
    let name = name.trim_ascii();
    let is_word = name == "*"
        || name.starts_with(|first: char| first.is_ascii_alphanumeric() || first == '_')
            && name.bytes().any(|byte| byte.is_ascii_alphabetic())
            && !name.contains(|other: char| other.is_ascii_whitespace());
    let is_valued = VALUED
        .iter()
        .any(|valued| name.eq_ignore_ascii_case(valued));
    (is_word && !is_valued).then_some((name, rest))
}

fn of_words(words: &str) -> Directives {
    let mut directives = Directives::default();
    for word in words.split_ascii_whitespace() {
        let is_none = word.eq_ignore_ascii_case("none");
        directives.noindex |= is_none || word.eq_ignore_ascii_case("noindex");
        directives.nofollow |= is_none || word.eq_ignore_ascii_case("nofollow");
    }
    directives
}

#[cfg(test)]
mod tests {
    use types::Headers;

    use super::{of_headers, of_list};

    fn tag(values: &[&str]) -> (bool, bool) {
        let fields = values
            .iter()
            .map(|value| ("X-Robots-Tag".to_owned(), value.as_bytes().to_vec()))
            .collect();
        let directives = of_headers(&Headers::new(fields), "Bloomcrawl");
        (directives.noindex, directives.nofollow)
    }

    #[test]
    fn lists() {
        for (list, expected) in [
            ("NOINDEX,NoFollow", (true, true)),
            ("none", (true, true)),
            (" noindex , follow", (true, false)),
            ("noindex nofollow", (true, true)),
            ("index, follow, nofollowing, all", (false, false)),
            ("", (false, false)),
        ] {
            let directives = of_list(list);
            assert_eq!(
                (directives.noindex, directives.nofollow),
                expected,
                "{list:?}"
            );
        }
    }

    #[test]
    fn header_fields() {
        assert_eq!(tag(&["noindex", "nofollow"]), (true, true));
        assert_eq!(
            tag(&["unavailable_after: 25 Jun 2010 15:00:00 PST, noindex"]),
            (true, false)
        );
        assert_eq!(
            tag(&["noindex, unavailable_after: Friday, 25-Jun-10 15:00:00 GMT"]),
            (true, false)
        );
        assert_eq!(tag(&["max-snippet: 20, nofollow"]), (false, true));
    }

    #[test]
    fn fields_for_one_crawler() {
        assert_eq!(tag(&["otherbot: noindex, nofollow"]), (false, false));
        assert_eq!(tag(&["bloomcrawl: nofollow"]), (false, true));
        assert_eq!(tag(&["otherbot: noindex, BLOOMCRAWL: none"]), (true, true));
        assert_eq!(tag(&["otherbot: none, *: nofollow"]), (false, true));
        assert_eq!(tag(&["noindex, otherbot: nofollow"]), (true, false));
        assert_eq!(
            tag(&["otherbot: unavailable_after: 25 Jun 2010 15:00:00 PST, noindex"]),
            (false, false)
        );
    }
}
