//! CDXJ index lines in Common Crawl's form: sort key, timestamp, JSON object.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor},
};
use serde_json::Value;
use thiserror::Error;

/// A line of an index: `org,example)/path 20260131235959 {"url": "...", ...}`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CdxLine {
    /// The sort-friendly key: the host turned round, then the path.
    pub key: String,
    /// The time of capture, 14 digits, UTC.
    pub timestamp: String,
    /// The members of the JSON object, in order.
    pub members: Vec<(String, Value)>,
}

/// Why a text is no CDXJ line.
#[derive(Debug, Error)]
pub enum CdxError {
    /// Key, timestamp and object are not all there.
    #[error(
        "a line has a key, a space, a timestamp of 14 digits, a space and a JSON object, found {0:?}"
    )]
    Outline(String),
    /// The object is no JSON object.
    #[error("the last part of a line is a JSON object: {0}")]
    Json(#[from] serde_json::Error),
}

impl CdxLine {
    /// Parses a line, without or with its line end.
    ///
    /// # Errors
    ///
    /// Returns what part of the line is not as it should be.
    pub fn parse(line: &str) -> Result<Self, CdxError> {
        let outline = || CdxError::Outline(line.chars().take(64).collect());
        let (key, rest) = line.split_once(' ').ok_or_else(outline)?;
        let (timestamp, json) = rest.split_once(' ').ok_or_else(outline)?;
        if key.is_empty()
            || timestamp.len() != 14
            || !timestamp.bytes().all(|byte| byte.is_ascii_digit())
        {
            return Err(outline());
        }
        let Members(members) = serde_json::from_str(json)?;
        Ok(Self {
            key: key.to_owned(),
            timestamp: timestamp.to_owned(),
            members,
        })
    }

    /// Returns a member that is a string, as all of Common Crawl's are.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.members
            .iter()
            .find(|(member, _)| member == name)
            .and_then(|(_, value)| value.as_str())
    }
}

impl fmt::Display for CdxLine {
    /// Writes the line without its end, spaced as Common Crawl's.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {} {{", self.key, self.timestamp)?;
        for (index, (name, value)) in self.members.iter().enumerate() {
            let separator = if index == 0 { "" } else { ", " };
            write!(
                formatter,
                "{separator}{}: {value}",
                Value::from(name.as_str())
            )?;
        }
        formatter.write_str("}")
    }
}

/// The members of an object in their order, which a map type would lose.
struct Members(Vec<(String, Value)>);

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(MembersVisitor)
    }
}

struct MembersVisitor;

impl<'de> Visitor<'de> for MembersVisitor {
    type Value = Members;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = map.next_entry()? {
            members.push(member);
        }
        Ok(Members(members))
    }
}

#[cfg(test)]
mod tests {
    use super::{CdxError, CdxLine};

    #[test]
    fn a_line_is_written_as_it_was_read() {
        let line = r#"org,example)/a 20260131235959 {"url": "http://example.org/a", "status": "200", "length": "31"}"#;
        let parsed = CdxLine::parse(line).expect("a line");
        assert_eq!(
            (parsed.get("status"), parsed.get("mime")),
            (Some("200"), None)
        );
        assert_eq!(parsed.to_string(), line);
    }

    #[test]
    fn other_texts_are_refused() {
        for line in [
            "",
            "a",
            "a 2026 {}",
            " 20260131235959 {}",
            "a 2026013123595x {}",
        ] {
            assert!(
                matches!(CdxLine::parse(line), Err(CdxError::Outline(_))),
                "{line}"
            );
        }
        for json in ["", "[]", "{", "{} x", r#"{"a": 1e999}"#] {
            let line = format!("a 20260131235959 {json}");
            assert!(
                matches!(CdxLine::parse(&line), Err(CdxError::Json(_))),
                "{line}"
            );
        }
    }
}
