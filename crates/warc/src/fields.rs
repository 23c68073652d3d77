//! Named fields of a record that was read.

/// Header fields in order; names are compared without regard to case.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fields(Vec<(String, String)>);

impl Fields {
    /// Returns the first value of a field.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.iter()
            .find(|(field, _)| field.eq_ignore_ascii_case(name))
            .map(|(_, value)| value)
    }

    /// Iterates over all values of a field that may be repeated, such as `WARC-Concurrent-To`.
    pub fn get_all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.iter()
            .filter(move |(field, _)| field.eq_ignore_ascii_case(name))
            .map(|(_, value)| value)
    }

    /// Iterates over the fields in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Returns how many fields there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether there is no field.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds a header line: a field, the continuation of the last one, or, having no colon, nothing.
    pub(crate) fn push_line(&mut self, line: &[u8]) {
        if line
            .first()
            .is_some_and(|byte| matches!(byte, b' ' | b'\t'))
        {
            if let Some((_, value)) = self.0.last_mut() {
                value.push(' ');
                value.push_str(&text(line));
            }
        } else if let Some(colon) = line.iter().position(|byte| *byte == b':') {
            self.0
                .push((text(&line[..colon]), text(&line[colon + 1..])));
        }
    }
}

/// Returns the trimmed bytes as text: UTF-8, which the standard asks for, else each byte as Latin-1.
fn text(bytes: &[u8]) -> String {
    let bytes = bytes.trim_ascii();
    std::str::from_utf8(bytes).map_or_else(
        |_| bytes.iter().copied().map(char::from).collect(),
        ToOwned::to_owned,
    )
}
