//! Links of a response's `Link` fields (RFC 8288).

use types::{Headers, LinkKind};

use crate::source::{self, RawLink};

/// Returns the links to pages of every `Link` field, in their order; their base is the URL of the response.
///
/// Each field is a list of `<target>` with parameters (section 3; the way of appendix B.2). What is no such link ends its
/// field. A link whose context is another document (`anchor`) says nothing of this one.
pub(crate) fn links(headers: &Headers) -> Vec<RawLink> {
    let mut links = Vec::new();
    for field in headers.get_all("link") {
        // A target in other bytes than UTF-8 is no URL reference (RFC 3986, section 4.1).
        let field = String::from_utf8_lossy(field);
        let mut rest = &*field;
        while let Some((link, after)) = next_link(rest) {
            links.extend(link);
            rest = after;
        }
    }
    links
}

/// Takes a link off a field: itself, if it leads to a page, and what comes after its comma.
fn next_link(field: &str) -> Option<(Option<RawLink>, &str)> {
    let start =
        field.trim_start_matches(|letter: char| letter == ',' || letter.is_ascii_whitespace());
    let (target, mut rest) = start.strip_prefix('<')?.split_once('>')?;
    let (mut rel, mut media_type, mut is_elsewhere) = (None, None, false);
    loop {
        rest = rest.trim_ascii_start();
        let Some(after) = rest.strip_prefix(';') else {
            break;
        };
        let (name, value, after) = parameter(after);
        match name.to_ascii_lowercase().as_str() {
            // The first one counts (section 3.3).
            "rel" => rel = rel.or(Some(value)),
            "type" => media_type = media_type.or(Some(value)),
            "anchor" => is_elsewhere = true,
            _ => {}
        }
        rest = after;
    }
    let rel = rel.unwrap_or_default();
    let target = target.trim_ascii();
    let is_page =
        !is_elsewhere && !target.is_empty() && source::leads_to_page(&rel, media_type.as_deref());
    let link = is_page.then(|| RawLink {
        href: target.to_owned(),
        kind: LinkKind::Link,
        is_nofollow: source::has_token(&rel, "nofollow"),
    });
    let after = rest.find(',').map_or("", |at| &rest[at + 1..]);
    Some((link, after))
}

/// Takes a parameter: its name, its value out of its quotes, and what follows.
fn parameter(text: &str) -> (&str, String, &str) {
    let text = text.trim_ascii_start();
    let name_end = text.find(['=', ';', ',']).unwrap_or(text.len());
    let name = text[..name_end].trim_ascii();
    let Some(after) = text[name_end..].strip_prefix('=') else {
        return (name, String::new(), &text[name_end..]);
    };
    let after = after.trim_ascii_start();
    let Some(quoted) = after.strip_prefix('"') else {
        let end = after.find([';', ',']).unwrap_or(after.len());
        return (name, after[..end].trim_ascii().to_owned(), &after[end..]);
    };
    let mut value = String::new();
    let mut letters = quoted.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '"' => return (name, value, &quoted[at + 1..]),
            '\\' => value.extend(letters.next().map(|(_, letter)| letter)),
            other => value.push(other),
        }
    }
    (name, value, "")
}

#[cfg(test)]
mod tests {
    use types::Headers;

    use super::links;

    fn hrefs(fields: &[&str]) -> Vec<String> {
        let fields = fields
            .iter()
            .map(|value| ("Link".to_owned(), value.as_bytes().to_vec()))
            .collect();
        let links = links(&Headers::new(fields));
        links.into_iter().map(|link| link.href).collect()
    }

    #[test]
    fn links_to_pages() {
        for (field, expected) in [
            ("</2>; rel=next", &["/2"][..]),
            ("<a>; rel=\"NEXT x\", <b>;rel=prev", &["a", "b"]),
            ("<a,b>; title=\"x, <y>; rel=next\"; rel=canonical", &["a,b"]),
            ("<a>; rel=next; rel=stylesheet", &["a"]),
            ("<a>; rel=stylesheet; rel=next", &[]),
            (
                "<a>; rel=preload; as=style,, <b> ; rel = alternate ; hreflang=de",
                &["b"],
            ),
            ("<a>; rel=next; anchor=\"/other\"", &[]),
            ("<a>, <b>; rel=next", &["b"]),
            ("<>; rel=canonical", &[]),
            ("<a>; rel=\"ne\\xt\"", &["a"]),
            ("<a>; rel=alternate; type=\"application/json\"", &[]),
            ("a; rel=next", &[]),
            ("<a; rel=next", &[]),
            ("<a>; rel=\"next", &["a"]),
            ("", &[]),
        ] {
            assert_eq!(hrefs(&[field]), expected, "{field}");
        }
        assert_eq!(hrefs(&["<a>; rel=next", "<b>; rel=prev"]), ["a", "b"]);
    }

    proptest::proptest! {
        #[test]
        fn any_field_is_read(field in "[<>;,=\"\\\\a rel\u{e9}]{0,60}") {
            let _ = hrefs(&[&field]);
        }
    }
}
