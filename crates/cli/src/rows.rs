//! Text for people in sections of aligned rows: a name, a value and a remark; at most 80 columns.

use crate::unit::{grouped, percent_of};

/// The width of the names of rows.
pub(crate) const NAME_CHARS: usize = 30;

/// The width of the values.
pub(crate) const VALUE_CHARS: usize = 16;

/// A text in the making.
#[derive(Debug, Default)]
pub(crate) struct Page(String);

impl Page {
    /// Returns the text.
    pub(crate) fn into_text(self) -> String {
        self.0
    }

    /// Begins a section.
    pub(crate) fn section(&mut self, title: &str) {
        if !self.0.is_empty() {
            self.0.push('\n');
        }
        self.line(title);
    }

    /// Adds a line as it is.
    pub(crate) fn line(&mut self, text: &str) {
        self.0.push_str(text.trim_end());
        self.0.push('\n');
    }

    /// Adds a name and its value.
    pub(crate) fn row(&mut self, name: &str, value: &str) {
        self.row_with(name, value, "");
    }

    /// Adds a name, its value and a remark.
    pub(crate) fn row_with(&mut self, name: &str, value: &str, remark: &str) {
        self.line(&format!(
            "  {name:<NAME_CHARS$}{value:>VALUE_CHARS$}  {remark}"
        ));
    }

    /// Adds a count.
    pub(crate) fn count(&mut self, name: &str, count: u64) {
        self.row(name, &grouped(count));
    }

    /// Adds a count and its share of a whole.
    pub(crate) fn share(&mut self, name: &str, count: u64, whole: u64) {
        self.row_with(
            name,
            &grouped(count),
            &format!("{:>10}", percent_of(count, whole)),
        );
    }
}
