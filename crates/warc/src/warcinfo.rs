//! Blocks of the type `application/warc-fields`: the warcinfo record's above all.

/// What a warcinfo record says of the records after it (ISO 28500 section 6.2).
#[derive(Clone, Debug, Default)]
pub struct WarcInfo<'a> {
    /// The software and its version.
    pub software: &'a str,
    /// The robots policy: `obey` or `ignore`; customary values, not fixed by the standard.
    pub robots: &'a str,
    /// The `User-Agent` that requests carried.
    pub user_agent: &'a str,
    /// More fields, such as `hostname`, `operator`, `isPartOf`, `description`.
    pub extra: &'a [(&'a str, &'a str)],
}

impl WarcInfo<'_> {
    /// The media type of the block.
    pub const CONTENT_TYPE: &'static str = "application/warc-fields";

    /// Returns the block of the record.
    #[must_use]
    pub fn content(&self) -> Vec<u8> {
        let named = [
            ("software", self.software),
            ("format", "WARC File Format 1.1"),
            (
                "conformsTo",
                "http://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/",
            ),
            ("robots", self.robots),
            ("http-header-user-agent", self.user_agent),
        ];
        warc_fields(
            named
                .into_iter()
                .chain(self.extra.iter().copied())
                .filter(|(_, value)| !value.is_empty()),
        )
    }
}

/// Writes `name: value` lines (`application/warc-fields`); control characters become spaces, and colons in names too.
#[must_use]
pub fn warc_fields<'a>(fields: impl IntoIterator<Item = (&'a str, &'a str)>) -> Vec<u8> {
    let mut text = String::new();
    for (name, value) in fields {
        text.extend(name.chars().map(|char| {
            if char.is_control() || char == ':' {
                ' '
            } else {
                char
            }
        }));
        text.push_str(": ");
        text.extend(
            value
                .chars()
                .map(|char| if char.is_control() { ' ' } else { char }),
        );
        text.push_str("\r\n");
    }
    text.into_bytes()
}

#[cfg(test)]
mod tests {
    use super::{WarcInfo, warc_fields};

    #[test]
    fn empty_fields_are_left_out() {
        let info = WarcInfo {
            software: "bloomcrawl/0.1.0",
            extra: &[("operator", "me\r\nyou")],
            ..WarcInfo::default()
        };
        let text = String::from_utf8(info.content()).unwrap_or_default();
        assert!(
            text.starts_with(
                "software: bloomcrawl/0.1.0\r\nformat: WARC File Format 1.1\r\nconformsTo: "
            ),
            "{text}"
        );
        assert!(
            text.ends_with("warc-1.1/\r\noperator: me  you\r\n"),
            "{text}"
        );
    }

    #[test]
    fn lines_keep_their_order() {
        assert_eq!(
            warc_fields([("via", "x"), ("depth", "2")]),
            b"via: x\r\ndepth: 2\r\n"
        );
    }
}
