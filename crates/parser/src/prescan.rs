//! The search for a page's own statement of its encoding, in bytes not yet decoded (HTML, section 13.2.3.2).

use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252, X_USER_DEFINED};

/// Finds the encoding that a `meta` element states, by "prescan a byte stream to determine its encoding".
pub(crate) fn meta_encoding(bytes: &[u8]) -> Option<&'static Encoding> {
    let mut scan = Scan { bytes, at: 0 };
    while scan.at < bytes.len() {
        let rest = &bytes[scan.at..];
        if rest[0] != b'<' {
            scan.at += rest
                .iter()
                .position(|&byte| byte == b'<')
                .unwrap_or(rest.len());
        } else if rest.starts_with(b"<!--") {
            scan.skip_comment();
        } else if is_meta(rest) {
            scan.at += b"<meta".len();
            if let Some(encoding) = scan.meta().ok()? {
                return Some(encoding);
            }
        } else if is_tag(rest) {
            scan.skip_while(|byte| !is_space(byte) && byte != b'>');
            while scan.attribute().ok()?.is_some() {}
        } else if matches!(rest.get(1), Some(b'!' | b'/' | b'?')) {
            scan.skip_while(|byte| byte != b'>');
        } else {
            scan.at += 1;
        }
    }
    None
}

/// Finds the encoding that an XML declaration states ("get an XML encoding"; UTF-16 XML declarations by their bytes).
pub(crate) fn xml_encoding(bytes: &[u8]) -> Option<&'static Encoding> {
    if bytes.starts_with(b"<\0?\0x\0") {
        return Some(UTF_16LE);
    }
    if bytes.starts_with(b"\0<\0?\0x") {
        return Some(UTF_16BE);
    }
    let declaration = bytes.strip_prefix(b"<?xml")?;
    let declaration = &declaration[..declaration.iter().position(|&byte| byte == b'>')?];
    let at = declaration
        .windows(8)
        .position(|window| window == b"encoding")?;
    let value = declaration[at + 8..]
        .trim_ascii_start()
        .strip_prefix(b"=")?
        .trim_ascii_start();
    let (quote, value) = value
        .split_first()
        .filter(|(quote, _)| matches!(quote, b'"' | b'\''))?;
    let label = &value[..value.iter().position(|byte| byte == quote)?];
    encoding_for(label)
}

/// Maps a label found within a page: it was read as ASCII, so the page is not UTF-16; and `x-user-defined` is taken for
/// windows-1252.
fn encoding_for(label: &[u8]) -> Option<&'static Encoding> {
    let encoding = Encoding::for_label_no_replacement(label)?;
    if encoding == UTF_16LE || encoding == UTF_16BE {
        Some(UTF_8)
    } else if encoding == X_USER_DEFINED {
        Some(WINDOWS_1252)
    } else {
        Some(encoding)
    }
}

/// The label in the `content` of a `meta`, by "extracting a character encoding from a meta element".
fn label_in_content(content: &[u8]) -> Option<&[u8]> {
    let mut rest = content;
    loop {
        let at = rest
            .windows(7)
            .position(|window| window.eq_ignore_ascii_case(b"charset"))?;
        rest = rest[at + 7..].trim_ascii_start();
        if let Some(value) = rest.strip_prefix(b"=") {
            let value = value.trim_ascii_start();
            return match value.first() {
                Some(quote @ (b'"' | b'\'')) => value[1..]
                    .split(|byte| byte == quote)
                    .next()
                    .filter(|label| {
                        // Without its closing quote the value counts as none.
                        label.len() + 1 < value.len()
                    }),
                _ => value.split(|&byte| is_space(byte) || byte == b';').next(),
            };
        }
    }
}

fn is_meta(rest: &[u8]) -> bool {
    rest.get(..5)
        .is_some_and(|name| name.eq_ignore_ascii_case(b"<meta"))
        && rest
            .get(5)
            .is_some_and(|&byte| is_space(byte) || byte == b'/')
}

fn is_tag(rest: &[u8]) -> bool {
    let name = rest[1..].strip_prefix(b"/").unwrap_or(&rest[1..]);
    name.first().is_some_and(u8::is_ascii_alphabetic)
}

const fn is_space(byte: u8) -> bool {
    matches!(byte, b'\t' | b'\n' | b'\x0C' | b'\r' | b' ')
}

/// The bytes ended within a tag, which then does not count.
struct Ended;

/// A place in the bytes.
struct Scan<'a> {
    bytes: &'a [u8],
    at: usize,
}

/// A name, lower case, and a value.
type Attribute<'a> = (Vec<u8>, &'a [u8]);

impl<'a> Scan<'a> {
    fn peek(&self) -> Result<u8, Ended> {
        self.bytes.get(self.at).copied().ok_or(Ended)
    }

    fn skip_while(&mut self, matches: impl Fn(u8) -> bool) {
        let rest = &self.bytes[self.at..];
        self.at += rest
            .iter()
            .position(|&byte| !matches(byte))
            .unwrap_or(rest.len());
    }

    /// Skips to the end of a comment; its two closing hyphens may be those that opened it.
    fn skip_comment(&mut self) {
        let from = self.at + 2;
        let end = self.bytes[from..]
            .windows(3)
            .position(|window| window == b"-->");
        self.at = end.map_or(self.bytes.len(), |end| from + end + 3);
    }

    /// Reads the attributes of a `meta`, whose name was skipped.
    fn meta(&mut self) -> Result<Option<&'static Encoding>, Ended> {
        let mut names: [bool; 3] = [false; 3];
        let mut is_pragma = false;
        // The encoding, and whether it counts only with the pragma.
        let mut stated: Option<(Option<&'static Encoding>, bool)> = None;
        while let Some((name, value)) = self.attribute()? {
            let Some(which) = [&b"http-equiv"[..], b"content", b"charset"]
                .iter()
                .position(|known| name == *known)
            else {
                continue;
            };
            if std::mem::replace(&mut names[which], true) {
                continue;
            }
            match which {
                0 => is_pragma = value.eq_ignore_ascii_case(b"content-type"),
                1 if stated.is_none() => {
                    stated = label_in_content(value)
                        .and_then(encoding_for)
                        .map(|encoding| (Some(encoding), true));
                }
                1 => {}
                _ => stated = Some((encoding_for(value), false)),
            }
        }
        let stated = stated.filter(|(_, needs_pragma)| is_pragma || !needs_pragma);
        Ok(stated.and_then(|(encoding, _)| encoding))
    }

    /// "Get an attribute"; `None` is the tag's end.
    fn attribute(&mut self) -> Result<Option<Attribute<'a>>, Ended> {
        self.skip_while(|byte| is_space(byte) || byte == b'/');
        if self.peek()? == b'>' {
            return Ok(None);
        }
        let start = self.at;
        // An equals sign that comes first belongs to the name.
        self.at += 1;
        self.skip_while(|byte| !is_space(byte) && !matches!(byte, b'=' | b'/' | b'>'));
        let name = self.bytes[start..self.at].to_ascii_lowercase();
        self.skip_while(is_space);
        if self.peek()? != b'=' {
            return Ok(Some((name, b"")));
        }
        self.at += 1;
        self.skip_while(is_space);
        Ok(Some((name, self.value()?)))
    }

    fn value(&mut self) -> Result<&'a [u8], Ended> {
        let first = self.peek()?;
        if !matches!(first, b'"' | b'\'') {
            let start = self.at;
            self.skip_while(|byte| !is_space(byte) && byte != b'>');
            self.peek()?;
            return Ok(&self.bytes[start..self.at]);
        }
        self.at += 1;
        let start = self.at;
        self.skip_while(|byte| byte != first);
        self.peek()?;
        self.at += 1;
        Ok(&self.bytes[start..self.at - 1])
    }
}

#[cfg(test)]
mod tests {
    use super::{meta_encoding, xml_encoding};

    fn name(html: &str) -> Option<&'static str> {
        meta_encoding(html.as_bytes()).map(encoding_rs::Encoding::name)
    }

    #[test]
    fn stated() {
        for (html, expected) in [
            ("<meta charset=gbk>", "GBK"),
            ("<META/CHARSET = 'euc-jp' >", "EUC-JP"),
            (
                "<meta http-equiv=content-type content='text/html; charset=windows-1251'>",
                "windows-1251",
            ),
            (
                "<meta content=\"x charset y charset = 'koi8-r'\" http-equiv=Content-Type>",
                "KOI8-R",
            ),
            ("<meta charset=utf-16>", "UTF-8"),
            ("<meta charset=x-user-defined>", "windows-1252"),
            ("<!--><meta charset=big5>", "Big5"),
            (
                "<a title='<meta charset=gbk>'><p =charset=x><meta charset=big5>",
                "Big5",
            ),
            ("<meta charset=nothing><meta charset=big5>", "Big5"),
            ("<meta charset=gbk charset=big5>", "GBK"),
        ] {
            assert_eq!(name(html), Some(expected), "{html}");
        }
    }

    #[test]
    fn not_stated() {
        for html in [
            "",
            "<meta charset=gbk",
            "<!-- <meta charset=gbk> -->",
            "<meta content='text/html; charset=gbk'>",
            "<meta http-equiv=content-type content='charset=\"gbk'>",
            "<metacharset=gbk>",
            "<script title='",
            "<! <meta charset=gbk>",
            "<meta charset=iso-2022-kr>",
        ] {
            assert_eq!(name(html), None, "{html}");
        }
    }

    #[test]
    fn xml_declarations() {
        let name = |bytes: &[u8]| xml_encoding(bytes).map(encoding_rs::Encoding::name);
        assert_eq!(
            name(b"<?xml version='1.0' encoding = \"Shift_JIS\"?><html>"),
            Some("Shift_JIS")
        );
        assert_eq!(
            name(b"<?xml version='1.0' encoding='utf-16'?>"),
            Some("UTF-8")
        );
        assert_eq!(name(b"<\0?\0x\0m\0"), Some("UTF-16LE"));
        assert_eq!(name(b" <?xml encoding='gbk'?>"), None);
        assert_eq!(name(b"<?xml version='1.0'?><a encoding='gbk'>"), None);
        assert_eq!(name(b"<?xml encoding='gbk"), None);
    }
}
