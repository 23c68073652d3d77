//! Floods of attributes: the tokenizer compares each attribute of a tag with all before it, so that one tag of a
//! megabyte would cost minutes.

/// Attributes of one tag after which the rest is cut out of the page.
const ATTRS_MAX: usize = 1_024;

/// Bytes after which a token that is still open is looked at.
const OPEN_TOKEN_BYTES: usize = 8_192;

/// Places at which an open tag may have begun; pages have one or two, so more are an attack on this guard.
const SCANS_MAX: usize = 64;

/// What to leave out: the rest of a tag's attributes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cut {
    /// The first byte left out, never within a quoted value.
    pub(crate) from: usize,
    /// The byte to go on with: the `>` of the tag (or `-->`), or the end of the page.
    pub(crate) to: usize,
}

/// Watches the pieces fed to a tokenizer.
///
/// A piece during which no token was completed lies within one token. Where it began is not known exactly, only in
/// which piece; so every place there that can begin a tag is scanned, and a place whose tag has ended meanwhile is
/// dropped. A long comment or a `data:` URL leaves no place with many attributes.
pub(crate) struct FloodGuard<'a> {
    bytes: &'a [u8],
    /// The piece in which the open token began.
    began: (usize, usize),
    piece_start: usize,
    scans: Option<Vec<TagScan>>,
    scanned_to: usize,
}

impl<'a> FloodGuard<'a> {
    pub(crate) const fn new(text: &'a str) -> Self {
        Self {
            bytes: text.as_bytes(),
            began: (0, 0),
            piece_start: 0,
            scans: None,
            scanned_to: 0,
        }
    }

    /// Takes note of a piece that ended at `end`; says what to cut if a flood has begun.
    pub(crate) fn check(&mut self, end: usize, has_progressed: bool) -> Option<Cut> {
        let start = std::mem::replace(&mut self.piece_start, end);
        if has_progressed || self.began == (0, 0) {
            self.began = (start, end);
            self.scans = None;
            return None;
        }
        if end - self.began.0 < OPEN_TOKEN_BYTES {
            return None;
        }
        let (scans, from) = match self.scans.take() {
            Some(scans) => (scans, self.scanned_to),
            None => (self.possible_starts(), self.began.1),
        };
        let mut open = Vec::new();
        for mut scan in scans {
            scan.advance(&self.bytes[from..end]);
            if scan.state != State::Closed {
                open.push(scan);
            }
        }
        let is_crowded = open.len() > SCANS_MAX;
        let flooded = open
            .iter()
            .find(|scan| is_crowded || scan.attr_count > ATTRS_MAX)
            .copied();
        self.scans = Some(open);
        self.scanned_to = end;
        let cut = flooded.map(|scan| self.cut(scan, end))?;
        self.piece_start = cut.to;
        self.began = (cut.to, cut.to);
        self.scans = None;
        Some(cut)
    }

    /// Scans from every `<` of the piece that can begin a tag to the end of that piece.
    fn possible_starts(&self) -> Vec<TagScan> {
        let piece = &self.bytes[self.began.0..self.began.1];
        let mut scans = Vec::new();
        for (at, _) in piece.iter().enumerate().filter(|(_, byte)| **byte == b'<') {
            let name = &piece[at + 1..];
            let name = name.strip_prefix(b"/").unwrap_or(name);
            // At the end of the piece the name may be in the next one.
            if name.first().is_none_or(u8::is_ascii_alphabetic) {
                let mut scan = TagScan {
                    state: State::TagName,
                    attr_count: 0,
                };
                scan.advance(name);
                if scan.state != State::Closed {
                    scans.push(scan);
                }
            }
        }
        scans
    }

    fn cut(&self, mut scan: TagScan, end: usize) -> Cut {
        let mut from = end;
        while scan.is_quoted() && from < self.bytes.len() {
            from += scan.step(&self.bytes[from..]);
        }
        let mut to = from;
        while to < self.bytes.len() {
            let step = scan.step(&self.bytes[to..]);
            if scan.state == State::Closed {
                break;
            }
            to += step;
        }
        // Where the text was a comment after all, this ends it, and in a tag the hyphens are one more attribute.
        let is_comment_end = self.bytes[from..to].ends_with(b"--");
        Cut {
            from,
            to: if is_comment_end { to - 2 } else { to },
        }
    }
}

/// Where in a tag a scan stands (the tokenizer's states, HTML, sections 13.2.5.8 and 13.2.5.32 to 13.2.5.40).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    TagName,
    BeforeName,
    Name,
    AfterName,
    BeforeValue,
    DoubleQuoted,
    SingleQuoted,
    Unquoted,
    Closed,
}

/// Counts the attributes of one tag.
#[derive(Clone, Copy, Debug)]
struct TagScan {
    state: State,
    attr_count: usize,
}

impl TagScan {
    const fn is_quoted(&self) -> bool {
        matches!(self.state, State::DoubleQuoted | State::SingleQuoted)
    }

    fn advance(&mut self, bytes: &[u8]) {
        let mut at = 0;
        while at < bytes.len() && self.state != State::Closed {
            at += self.step(&bytes[at..]);
        }
    }

    /// Takes the next bytes, at least one, and says how many.
    fn step(&mut self, bytes: &[u8]) -> usize {
        let quote = match self.state {
            State::DoubleQuoted => b'"',
            State::SingleQuoted => b'\'',
            _ => {
                self.take(bytes[0]);
                return 1;
            }
        };
        let Some(at) = bytes.iter().position(|&byte| byte == quote) else {
            return bytes.len();
        };
        self.state = State::BeforeName;
        at + 1
    }

    /// Takes one byte outside of quotes.
    fn take(&mut self, byte: u8) {
        let is_space = matches!(byte, b'\t' | b'\n' | b'\x0C' | b'\r' | b' ');
        self.state = match (self.state, byte) {
            (State::Closed, _) | (_, b'>') => State::Closed,
            (State::TagName, _) if !is_space && byte != b'/' => State::TagName,
            (State::BeforeValue, b'"') => State::DoubleQuoted,
            (State::BeforeValue, b'\'') => State::SingleQuoted,
            (State::BeforeValue, _) if is_space => State::BeforeValue,
            (State::BeforeValue, _) => State::Unquoted,
            (State::Unquoted, _) if !is_space => State::Unquoted,
            (State::Name | State::AfterName, b'=') => State::BeforeValue,
            (State::Name | State::AfterName, _) if is_space => State::AfterName,
            (State::Name, _) if byte != b'/' => State::Name,
            (_, b'/') => State::BeforeName,
            (_, _) if is_space => State::BeforeName,
            _ => {
                self.attr_count += 1;
                State::Name
            }
        };
    }
}

#[cfg(test)]
mod tests {
    use super::{ATTRS_MAX, FloodGuard, OPEN_TOKEN_BYTES, State, TagScan};

    fn scan(tag: &str) -> (usize, State) {
        let mut scan = TagScan {
            state: State::TagName,
            attr_count: 0,
        };
        scan.advance(tag.as_bytes());
        (scan.attr_count, scan.state)
    }

    #[test]
    fn counts_attributes_as_the_tokenizer_does() {
        assert_eq!(scan("a"), (0, State::TagName));
        assert_eq!(
            scan("a b=c d e = 'x y>' f=\"'\"g/h/=i=j k"),
            (8, State::Name)
        );
        assert_eq!(scan("a b=c/d e>f g"), (2, State::Closed));
        assert_eq!(scan("a b='c > d"), (1, State::SingleQuoted));
        assert_eq!(scan("a b= >"), (1, State::Closed));
    }

    #[test]
    fn cuts_at_the_end_of_the_tag_and_outside_of_quotes() {
        let names: Vec<String> = (0..2 * ATTRS_MAX)
            .map(|number| number.to_string())
            .collect();
        let names = names.join(" ");
        let text = format!("<p>x<a {names} q='>{}' r>y", "z".repeat(OPEN_TOKEN_BYTES));
        let mut guard = FloodGuard::new(&text);
        let quote = text.find('\'').unwrap_or(0);
        assert_eq!(guard.check(100, true), None);
        let cut = guard
            .check(quote + 3_000, false)
            .map(|cut| (&text[..cut.from], &text[cut.to..]));
        let (before, after) = cut.unwrap_or_default();
        assert!(before.ends_with("zz'"));
        assert_eq!(after, ">y");
    }

    #[test]
    fn leaves_long_values_and_comments_alone() {
        let value = format!("<img src='data:{}' alt>", "/ ".repeat(OPEN_TOKEN_BYTES));
        let comment = format!("<!-- <a b c>{} -->", " w".repeat(OPEN_TOKEN_BYTES));
        for text in [value, comment] {
            let mut guard = FloodGuard::new(&text);
            assert_eq!(guard.check(100, true), None);
            for end in (4_096..text.len()).step_by(4_096) {
                assert_eq!(guard.check(end, false), None);
            }
        }
    }
}
