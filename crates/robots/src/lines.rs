//! Lines of a robots.txt file: picks the crawler's own, and writes its rules in one plain form for the matcher.

use std::{collections::BTreeSet, time::Duration};

use crate::ROBOTS_BYTES_MAX;

/// What a file says to one crawler.
#[derive(Debug, Default)]
pub(crate) struct OwnLines {
    /// Files with one group, `*`, that together hold the crawler's rules. Rules in plain form may be longer than they
    /// were written, so one file could pass the matcher's own limit and lose its last rules.
    pub(crate) rule_files: Vec<Vec<u8>>,
    pub(crate) crawl_delay: Option<Duration>,
    pub(crate) sitemaps: Vec<String>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Field {
    UserAgent,
    Allow,
    Disallow,
    CrawlDelay,
    Sitemap,
}

/// The accepted spellings, with the misspellings that are common enough for other crawlers to obey them.
const SPELLINGS: [(&[u8], Field); 17] = [
    (b"user-agent", Field::UserAgent),
    (b"user agent", Field::UserAgent),
    (b"useragent", Field::UserAgent),
    (b"allow", Field::Allow),
    (b"disallow", Field::Disallow),
    (b"dissallow", Field::Disallow),
    (b"dissalow", Field::Disallow),
    (b"disalow", Field::Disallow),
    (b"diasllow", Field::Disallow),
    (b"disallaw", Field::Disallow),
    (b"disalllow", Field::Disallow),
    (b"crawl-delay", Field::CrawlDelay),
    (b"crawl delay", Field::CrawlDelay),
    (b"crawldelay", Field::CrawlDelay),
    (b"sitemap", Field::Sitemap),
    (b"site-map", Field::Sitemap),
    (b"site map", Field::Sitemap),
];

/// The line that begins a group for every crawler.
const GROUP_LINE: &[u8] = b"user-agent: *\n";

/// Whom the current group speaks to.
#[derive(Clone, Copy, Default)]
struct Group {
    names_us: bool,
    names_all: bool,
    has_rules: bool,
}

/// What was collected for one of the two addressees: the crawler by name, and every crawler.
#[derive(Default)]
struct Addressed {
    is_named: bool,
    rules: Vec<u8>,
    crawl_delay: Option<Duration>,
}

impl Addressed {
    fn add(&mut self, field: Field, value: &[u8]) {
        if field == Field::CrawlDelay {
            self.crawl_delay = self.crawl_delay.max(delay(value));
        } else {
            push_rule(&mut self.rules, field, value);
        }
    }
}

/// Reads the file, merging the groups of `product_token`, or else those of `*` (RFC 9309, section 2.2.1).
///
/// A group ends at the first user-agent line after a rule; no other line ends it (section 2.2.4). A Crawl-delay is
/// said to the crawlers named before it, for many files have groups that hold nothing else.
pub(crate) fn normalize(bytes: &[u8], product_token: &str) -> OwnLines {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let (mut ours, mut everyones) = (Addressed::default(), Addressed::default());
    let mut group = Group::default();
    let (mut sitemaps, mut known_sitemaps) = (Vec::new(), BTreeSet::new());
    for line in within_limit(bytes).split(|byte| matches!(byte, b'\n' | b'\r' | 0)) {
        let Some((field, value)) = directive(line) else {
            continue;
        };
        match field {
            Field::UserAgent => {
                if group.has_rules {
                    group = Group::default();
                }
                group.names_us |= is_token(value, product_token);
                group.names_all |= is_everyone(value);
                ours.is_named |= group.names_us;
            }
            Field::Allow | Field::Disallow | Field::CrawlDelay => {
                group.has_rules |= field != Field::CrawlDelay;
                if group.names_us {
                    ours.add(field, value);
                }
                if group.names_all {
                    everyones.add(field, value);
                }
            }
            Field::Sitemap => {
                let text = String::from_utf8_lossy(value).into_owned();
                if !text.is_empty() && known_sitemaps.insert(text.clone()) {
                    sitemaps.push(text);
                }
            }
        }
    }
    let chosen = if ours.is_named { ours } else { everyones };
    OwnLines {
        rule_files: rule_files(&chosen.rules),
        crawl_delay: chosen.crawl_delay,
        sitemaps,
    }
}

/// Splits rules into files that the matcher reads whole.
fn rule_files(rules: &[u8]) -> Vec<Vec<u8>> {
    let mut files = Vec::new();
    let mut file = GROUP_LINE.to_vec();
    for line in rules.split_inclusive(|byte| *byte == b'\n') {
        if file.len() + line.len() > robotxt::BYTE_LIMIT && file.len() > GROUP_LINE.len() {
            files.push(std::mem::replace(&mut file, GROUP_LINE.to_vec()));
        }
        file.extend_from_slice(line);
    }
    files.push(file);
    files
}

/// Cuts the file at the last line end within the limit.
fn within_limit(bytes: &[u8]) -> &[u8] {
    let Some(window) = bytes.get(..=ROBOTS_BYTES_MAX) else {
        return bytes;
    };
    let end = window
        .iter()
        .rposition(|byte| matches!(byte, b'\n' | b'\r' | 0));
    &bytes[..end.unwrap_or(0)]
}

/// Splits a line into field and value. The colon may be missing if white space stands in its place and the value is
/// one word, as the reference parser of the RFC's authors has it.
fn directive(line: &[u8]) -> Option<(Field, &[u8])> {
    let line = line
        .split(|byte| *byte == b'#')
        .next()
        .unwrap_or_default()
        .trim_ascii();
    let (name, value) = if let Some(at) = line.iter().position(|byte| *byte == b':') {
        (line[..at].trim_ascii(), line[at + 1..].trim_ascii())
    } else {
        let at = line.iter().position(u8::is_ascii_whitespace)?;
        let value = line[at..].trim_ascii();
        if value.iter().any(u8::is_ascii_whitespace) {
            return None;
        }
        (&line[..at], value)
    };
    let (_, field) = SPELLINGS
        .iter()
        .find(|(spelling, _)| name.eq_ignore_ascii_case(spelling))?;
    Some((*field, value))
}

/// Says whether a User-agent value names the crawler: its first word, up to a version, equals the token.
fn is_token(value: &[u8], product_token: &str) -> bool {
    let end = value
        .iter()
        .position(|byte| !(byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.')))
        .unwrap_or(value.len());
    end > 0 && value[..end].eq_ignore_ascii_case(product_token.as_bytes())
}

fn is_everyone(value: &[u8]) -> bool {
    value.split(u8::is_ascii_whitespace).next() == Some(b"*")
}

/// Reads seconds; what is no finite number of at least zero is no delay.
fn delay(value: &[u8]) -> Option<Duration> {
    let seconds: f64 = std::str::from_utf8(value).ok()?.parse().ok()?;
    Duration::try_from_secs_f64(seconds).ok()
}

/// Writes a rule in the matcher's plain form: runs of `*` are one, a `$` that is not last is escaped, and a rule that
/// begins with `*/` is written twice, since the matcher wants a leading slash and the star may stand for nothing.
/// A rule that begins with neither is taken as if the slash had been forgotten.
fn push_rule(rules: &mut Vec<u8>, field: Field, value: &[u8]) {
    if value.is_empty() {
        return;
    }
    let mut pattern = Vec::with_capacity(value.len() + 2);
    for (at, byte) in value.iter().enumerate() {
        match byte {
            b'*' if pattern.last() == Some(&b'*') => {}
            b'$' if at + 1 < value.len() => pattern.extend_from_slice(b"%24"),
            _ => pattern.push(*byte),
        }
    }
    let name: &[u8] = if field == Field::Allow {
        b"allow: "
    } else {
        b"disallow: "
    };
    let mut push = |prefix: &[u8], pattern: &[u8]| {
        for part in [name, prefix, pattern, b"\n"] {
            rules.extend_from_slice(part);
        }
    };
    match pattern.first() {
        Some(b'/') => push(b"", &pattern),
        Some(b'*') if pattern.get(1) == Some(&b'/') => {
            push(b"", &pattern[1..]);
            push(b"/", &pattern);
        }
        _ => push(b"/", &pattern),
    }
}
