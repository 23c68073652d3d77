//! How a row of the table of settings is written.

use super::{Flag, Kind, Setting, Settings, Value};

pub(super) const fn switch(negation: &'static str) -> Kind {
    Kind::Switch { negation }
}

pub(super) const COUNT: Kind = Kind::Count {
    min: 0,
    max: u64::MAX,
};
pub(super) const COUNT_FROM_1: Kind = count_to(u64::MAX);
pub(super) const BYTES: Kind = Kind::Bytes { max: u64::MAX };

/// A count of at least 1. The bounds of a crawl's resources are those that the engine holds to.
pub(super) const fn count_to(max: u64) -> Kind {
    Kind::Count { min: 1, max }
}

pub(super) const fn setting(
    section: &'static str,
    name: &'static str,
    kind: Kind,
    doc: &'static str,
    read: fn(&Settings) -> Value,
    write: fn(&mut Settings, Value) -> Result<(), String>,
) -> Setting {
    Setting {
        name,
        kind,
        flag: Flag::Common,
        short: None,
        unset: None,
        section,
        doc,
        is_secret: false,
        is_for_demo: false,
        read,
        write,
    }
}

impl Setting {
    pub(super) const fn advanced(mut self) -> Self {
        self.flag = Flag::Advanced;
        self
    }

    pub(super) const fn without_flag(mut self) -> Self {
        self.flag = Flag::Absent;
        self
    }

    pub(super) const fn short(mut self, letter: char) -> Self {
        self.short = Some(letter);
        self
    }

    pub(super) const fn or_unset(mut self, meaning: &'static str) -> Self {
        self.unset = Some(meaning);
        self
    }

    /// For the settings that do not change which pages a demo must fetch, as long as its pages, which are small, fit.
    pub(super) const fn for_demo(mut self) -> Self {
        self.is_for_demo = true;
        self
    }

    pub(super) const fn secret(mut self) -> Self {
        self.is_secret = true;
        self
    }
}
