//! A scanner of XML as it is found on the web: tags and text in their order, nothing expanded, nothing refused.
//!
//! It never fails: what is no markup is text, and what is not closed ends the document. Only the entities that XML itself
//! defines are undone; a document's own are left as they stand, and its document type is passed over unread, so nothing
//! in it can grow (XML 1.0, sections 2.4, 2.5, 2.7, 2.8, 3.1, 4.6).

use std::borrow::Cow;

/// A piece of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Piece<'a> {
    Start(Tag<'a>),
    /// The name of an end tag.
    End(&'a str),
    /// Text between tags, its references not undone.
    Text(&'a str),
    /// A CDATA section, which has no references.
    CData(&'a str),
}

/// A start tag, or that of an empty element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tag<'a> {
    pub(crate) name: &'a str,
    /// What stands between the name and the end of the tag.
    attributes: &'a str,
    pub(crate) is_empty: bool,
}

impl<'a> Tag<'a> {
    /// Returns the value of an attribute, its references undone.
    pub(crate) fn attribute(&self, name: &str) -> Option<Cow<'a, str>> {
        let mut rest = self.attributes;
        loop {
            let (found, after) = rest.split_once('=')?;
            let after = after.trim_ascii_start();
            let (value, after) = match after.as_bytes().first()? {
                quote @ (b'"' | b'\'') => after[1..].split_once(char::from(*quote))?,
                _ => after
                    .split_once(|letter: char| letter.is_ascii_whitespace())
                    .unwrap_or((after, "")),
            };
            // Words without a value, which XML does not know, are passed over.
            if found.split_ascii_whitespace().next_back() == Some(name) {
                return Some(unescaped(value));
            }
            rest = after;
        }
    }
}

/// Reads the pieces of a document; the time is linear in it.
#[derive(Clone, Debug)]
pub(crate) struct Scanner<'a> {
    rest: &'a str,
}

impl<'a> Scanner<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self {
            rest: text.strip_prefix('\u{feff}').unwrap_or(text),
        }
    }

    /// Takes what comes before a mark, and passes over the mark; takes nothing and ends where there is none.
    fn take_until(&mut self, mark: &str) -> Option<&'a str> {
        let rest = std::mem::take(&mut self.rest);
        let (taken, after) = rest.split_once(mark)?;
        self.rest = after;
        Some(taken)
    }

    /// Passes over `<!DOCTYPE ...>` or the like, with the declarations in brackets that it may have.
    fn skip_declaration(&mut self) -> Option<()> {
        let head = self.rest.find(['>', '['])?;
        if self.rest.as_bytes()[head] == b'>' {
            self.rest = &self.rest[head + 1..];
            return Some(());
        }
        loop {
            self.take_until("]")?;
            if let Some(after) = self.rest.trim_ascii_start().strip_prefix('>') {
                self.rest = after;
                return Some(());
            }
        }
    }

    /// Takes a tag whose `<` (and `/`) was taken: up to the next `>` outside of quotes.
    fn take_tag(&mut self) -> Option<&'a str> {
        let mut quote = None;
        let end = self.rest.bytes().position(|byte| match quote {
            Some(open) => {
                if byte == open {
                    quote = None;
                }
                false
            }
            None if matches!(byte, b'"' | b'\'') => {
                quote = Some(byte);
                false
            }
            None => byte == b'>',
        });
        let rest = std::mem::take(&mut self.rest);
        let end = end?;
        self.rest = &rest[end + 1..];
        Some(&rest[..end])
    }

    fn start(&mut self) -> Option<Piece<'a>> {
        let tag = self.take_tag()?;
        let (tag, is_empty) = match tag.strip_suffix('/') {
            Some(tag) => (tag, true),
            None => (tag, false),
        };
        let name_end = tag
            .find(|letter: char| letter.is_ascii_whitespace())
            .unwrap_or(tag.len());
        Some(Piece::Start(Tag {
            name: &tag[..name_end],
            attributes: &tag[name_end..],
            is_empty,
        }))
    }
}

impl<'a> Iterator for Scanner<'a> {
    type Item = Piece<'a>;

    fn next(&mut self) -> Option<Piece<'a>> {
        loop {
            let rest = self.rest;
            // A `<` that begins no markup is text.
            let text_end = match rest.strip_prefix('<') {
                None => rest.find('<').unwrap_or(rest.len()),
                Some(after) if begins_markup(after) => 0,
                Some(after) => after.find('<').map_or(rest.len(), |at| at + 1),
            };
            if text_end > 0 {
                self.rest = &rest[text_end..];
                return Some(Piece::Text(&rest[..text_end]));
            }
            self.rest = rest.strip_prefix('<')?;
            if let Some(after) = self.rest.strip_prefix("!--") {
                self.rest = after;
                self.take_until("-->")?;
            } else if let Some(after) = self.rest.strip_prefix("![CDATA[") {
                self.rest = after;
                return self.take_until("]]>").map(Piece::CData);
            } else if self.rest.starts_with('!') {
                self.skip_declaration()?;
            } else if self.rest.starts_with('?') {
                self.take_until("?>")?;
            } else if let Some(after) = self.rest.strip_prefix('/') {
                self.rest = after;
                return self.take_tag().map(|name| Piece::End(name.trim_ascii()));
            } else {
                return self.start();
            }
        }
    }
}

/// Whether what follows a `<` makes it markup.
fn begins_markup(after: &str) -> bool {
    after
        .chars()
        .next()
        .is_some_and(|first| first.is_alphabetic() || matches!(first, '!' | '?' | '/' | '_' | ':'))
}

/// Undoes the references to characters and to XML's own five entities; any other stands for itself.
pub(crate) fn unescaped(text: &str) -> Cow<'_, str> {
    let Some(first) = text.find('&') else {
        return Cow::Borrowed(text);
    };
    let mut plain = text[..first].to_owned();
    let mut rest = &text[first..];
    while let Some(after) = rest.strip_prefix('&') {
        // No further than a name goes, so that the whole takes linear time.
        let name_end = after
            .bytes()
            .take(NAME_BYTES_MAX)
            .position(|byte| byte == b';');
        let reference =
            name_end.and_then(|end| Some((character(&after[..end])?, &after[end + 1..])));
        rest = if let Some((letter, after)) = reference {
            plain.push(letter);
            after
        } else {
            plain.push('&');
            after
        };
        let next = rest.find('&').unwrap_or(rest.len());
        plain.push_str(&rest[..next]);
        rest = &rest[next..];
    }
    Cow::Owned(plain)
}

/// The longest name of a reference: `#x10FFFF`, with some zeros to spare.
const NAME_BYTES_MAX: usize = 16;

/// Returns the character that a reference names.
fn character(name: &str) -> Option<char> {
    match name {
        "amp" => return Some('&'),
        "lt" => return Some('<'),
        "gt" => return Some('>'),
        "quot" => return Some('"'),
        "apos" => return Some('\''),
        _ => {}
    }
    let digits = name.strip_prefix('#')?;
    let code = match digits.strip_prefix(['x', 'X']) {
        Some(hexadecimal) => u32::from_str_radix(hexadecimal, 16).ok()?,
        None => digits.parse().ok()?,
    };
    char::from_u32(code).filter(|letter| *letter != '\0')
}

#[cfg(test)]
mod tests {
    use super::{Piece, Scanner, unescaped};

    /// Writes the pieces of a document, one in brackets each.
    fn pieces(text: &str) -> String {
        Scanner::new(text)
            .map(|piece| match piece {
                Piece::Start(tag) if tag.is_empty => format!("[{}/]", tag.name),
                Piece::Start(tag) => format!("[{}]", tag.name),
                Piece::End(name) => format!("[/{name}]"),
                Piece::Text(text) => format!("({text})"),
                Piece::CData(text) => format!("<{text}>"),
            })
            .collect()
    }

    #[test]
    fn documents_are_taken_apart() {
        for (text, expected) in [
            (
                "\u{feff}<?xml version='1.0'?><a><b x='>'/>t</a>",
                "[a][b/](t)[/a]",
            ),
            ("<!-- <a> --><a><![CDATA[<&]]></a >", "[a]<<&>[/a]"),
            ("<!DOCTYPE a><a/>", "[a/]"),
            (
                "<!DOCTYPE a [<!ENTITY e ']' ><!ENTITY f \"x\">] ><a/>",
                "[a/]",
            ),
            ("1 < 2 <3<a>&lt;", "(1 )(< 2 )(<3)[a](&lt;)"),
            ("<s:a xmlns:s=\"u\">", "[s:a]"),
        ] {
            assert_eq!(pieces(text), expected, "{text}");
        }
    }

    #[test]
    fn what_is_not_closed_ends_the_document() {
        for text in [
            "<a",
            "<a x='>",
            "<!-- a",
            "<![CDATA[a",
            "<!DOCTYPE [",
            "<?x",
            "</a",
        ] {
            assert_eq!(pieces(&format!("x{text}")), "(x)", "{text}");
        }
        assert_eq!(pieces("<"), "(<)");
    }

    #[test]
    fn attributes() {
        let text = "<a one = '1&amp;' two=\"=2\" bare three=3 x:four=\"4\">";
        let Some(Piece::Start(tag)) = Scanner::new(text).next() else {
            panic!("a start tag");
        };
        for (name, value) in [
            ("one", Some("1&")),
            ("two", Some("=2")),
            ("three", Some("3")),
            ("four", None),
            ("x:four", Some("4")),
            ("bare", None),
        ] {
            assert_eq!(tag.attribute(name).as_deref(), value, "{name}");
        }
    }

    #[test]
    fn references() {
        for (text, expected) in [
            ("a&amp;b&lt;&gt;&quot;&apos;", "a&b<>\"'"),
            ("&#65;&#x42;&#X43;", "ABC"),
            ("&copy=1&amp", "&copy=1&amp"),
            (
                "&#0;&#xD800;&#99999999999;&#;&;",
                "&#0;&#xD800;&#99999999999;&#;&;",
            ),
            ("&own;&amp;amp;", "&own;&amp;"),
        ] {
            assert_eq!(unescaped(text), expected, "{text}");
        }
    }

    proptest::proptest! {
        /// Whatever comes, it ends, and no byte is given twice.
        #[test]
        fn any_text_is_taken_apart(text in "[<>!\\[\\]?/&;#'\"=a x-]{0,80}") {
            let bytes: usize = Scanner::new(&text)
                .map(|piece| match piece {
                    Piece::Start(tag) => {
                        let _ = tag.attribute("x");
                        tag.name.len() + 1
                    }
                    Piece::End(name) => name.len() + 1,
                    Piece::Text(text) | Piece::CData(text) => unescaped(text).len().min(text.len()).max(1),
                })
                .sum();
            proptest::prop_assert!(bytes <= text.len());
        }
    }
}
