//! What a check found: violations, each counted, the first of a kind by name.

use std::{
    collections::{BTreeMap, HashMap},
    fmt::Write as _,
};

use serde::Serialize;
use store::{Store, StoreError};
use types::{PageRecord, UrlKey, is_unprintable};

/// Violations of a kind that are shown.
const SHOWN_MAX: usize = 20;
/// The longest text of one, in characters.
const TEXT_CHARS_MAX: usize = 400;

/// The kinds of violation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ViolationKind {
    /// A number of the accounts is not what was counted.
    Accounts,
    /// A key stands in the store twice.
    KeyTwice,
    /// A key's URL is neither queued nor finished: it would never be fetched.
    KeyOrphaned,
    /// A row of the queue cannot be read.
    QueueUnreadable,
    /// A queued URL stands under a key, host or number that is not its own.
    QueueForeign,
    /// A queued URL has no key: it would be admitted again.
    QueueKeyMissing,
    /// A URL is queued twice.
    QueueTwice,
    /// A URL is queued and finished: it would be fetched again.
    QueueFinished,
    /// A page record of the store cannot be read.
    RecordUnreadable,
    /// A page record of the store stands under a key that is not its URL's.
    RecordForeign,
    /// A finished URL has no key: it would be admitted again.
    RecordKeyMissing,
    /// The file of page records is missing or too short.
    PagesFile,
    /// A line of it cannot be read.
    LineUnreadable,
    /// It has a line of a URL that the store has no record of.
    LineUnknown,
    /// It has a URL twice.
    LineTwice,
    /// A line of it is not the store's record.
    LineDiffers,
    /// It lacks the line of a finished URL.
    LineMissing,
    /// A WARC file is missing or too short.
    WarcFile,
    /// The response is not where the page record says.
    WarcRecord,
    /// The saved filter says of a key that it is new: its URL would be fetched again.
    FilterLacksKey,
    /// The saved filter has more or fewer false positives than its formula says.
    FilterRate,
}

impl ViolationKind {
    /// Returns what it means, to be followed by what it is about.
    #[must_use]
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Accounts => "the accounts are wrong",
            Self::KeyTwice => "in the key table twice",
            Self::KeyOrphaned => "known, but neither queued nor finished",
            Self::QueueUnreadable => "a row of the queue cannot be read",
            Self::QueueForeign => "queued in a place that is not its own",
            Self::QueueKeyMissing => "queued, but not in the key table",
            Self::QueueTwice => "queued twice",
            Self::QueueFinished => "queued, but finished",
            Self::RecordUnreadable => "the record in the store cannot be read",
            Self::RecordForeign => "recorded in the store under another URL's key",
            Self::RecordKeyMissing => "finished, but not in the key table",
            Self::PagesFile => "pages.jsonl is not whole",
            Self::LineUnreadable => "pages.jsonl has a line that cannot be read",
            Self::LineUnknown => "in pages.jsonl, but not finished in the store",
            Self::LineTwice => "in pages.jsonl twice",
            Self::LineDiffers => "the line in pages.jsonl is not the store's record",
            Self::LineMissing => "finished, but not in pages.jsonl",
            Self::WarcFile => "a WARC file is not whole",
            Self::WarcRecord => "the archived response cannot be had",
            Self::FilterLacksKey => "known, but the saved filter takes it for new",
            Self::FilterRate => "the saved filter is not as its formula says",
        }
    }
}

/// All violations of one kind.
#[derive(Clone, Debug, Serialize)]
pub struct Violation {
    /// The kind.
    pub kind: ViolationKind,
    /// How many there are.
    pub count: u64,
    /// What the first of them are about, at most 20: a URL or another place, printable and cut.
    pub shown: Vec<String>,
}

/// What a violation is about.
enum Subject {
    Text(String),
    Key(UrlKey),
}

/// The violations and remarks so far.
#[derive(Default)]
pub(super) struct Findings {
    by_kind: BTreeMap<ViolationKind, (u64, Vec<Subject>)>,
    remarks: Vec<String>,
}

impl Findings {
    /// Counts a violation, and keeps what it is about if it is among the first of its kind.
    pub(super) fn add(&mut self, kind: ViolationKind, what: &str) {
        self.add_subject(kind, || Subject::Text(printable(what)));
    }

    /// Does the same of a key, whose URL is looked up in the end.
    pub(super) fn add_key(&mut self, kind: ViolationKind, key: UrlKey) {
        self.add_subject(kind, || Subject::Key(key));
    }

    fn add_subject(&mut self, kind: ViolationKind, subject: impl FnOnce() -> Subject) {
        let (count, shown) = self.by_kind.entry(kind).or_default();
        *count += 1;
        if shown.len() < SHOWN_MAX {
            shown.push(subject());
        }
    }

    /// Holds a number of the accounts against what was counted.
    pub(super) fn equal(&mut self, what: &str, found: u64, accounted: u64) {
        if found != accounted {
            let what = format!("{found} {what}, but the accounts say {accounted}");
            self.add(ViolationKind::Accounts, &what);
        }
    }

    /// Keeps what is no violation.
    pub(super) fn remark(&mut self, remark: String) {
        self.remarks.push(remark);
    }

    /// Names keys by their URLs, where a page record of the store has them, and returns violations and remarks.
    pub(super) fn finish(
        self,
        store: &dyn Store,
    ) -> Result<(Vec<Violation>, Vec<String>), StoreError> {
        let mut urls = HashMap::new();
        for (_, subjects) in self.by_kind.values() {
            for subject in subjects {
                if let Subject::Key(key) = subject {
                    urls.insert(*key, None);
                }
            }
        }
        if !urls.is_empty() {
            store.scan_pages(&mut |key, record| {
                if let Some(url) = urls.get_mut(&key) {
                    *url = serde_json::from_slice::<PageRecord>(record)
                        .ok()
                        .map(|record| record.url);
                }
            })?;
        }
        let text = |subject| match subject {
            Subject::Text(text) => text,
            Subject::Key(key) => match urls.get(&key) {
                Some(Some(url)) => printable(url),
                _ => format!("key {:032x}", key.as_u128()),
            },
        };
        let violation = |(kind, (count, subjects)): (_, (_, Vec<_>))| Violation {
            kind,
            count,
            shown: subjects.into_iter().map(text).collect(),
        };
        let violations = self.by_kind.into_iter().map(violation).collect();
        Ok((violations, self.remarks))
    }
}

/// Returns a text without anything that drives a terminal, cut where it is too long.
fn printable(text: &str) -> String {
    let mut printable = String::new();
    for (index, letter) in text.chars().enumerate() {
        if index == TEXT_CHARS_MAX {
            printable.push_str("...");
            break;
        }
        if is_unprintable(letter) {
            // Writing to a string does not fail.
            let _ = write!(printable, "\\u{{{:x}}}", u32::from(letter));
        } else {
            printable.push(letter);
        }
    }
    printable
}

#[cfg(test)]
mod tests {
    use super::printable;

    #[test]
    fn what_is_shown_is_printable_and_cut() {
        assert_eq!(printable("a\u{1b}[2J\n"), "a\\u{1b}[2J\\u{a}");
        let long = printable(&"x".repeat(1_000));
        assert!(
            long.len() == 403 && long.ends_with("x..."),
            "{}",
            long.len()
        );
    }
}
