//! The template of `config.toml`: every setting with its meaning and its default, commented out.

use std::fmt::Write as _;

use super::{Kind, Setting, Settings, TABLE};
use crate::unit::{bytes_text, count_text};

/// The width that comments are wrapped to, in characters.
const WIDTH_MAX: usize = 100;

const HEAD: &str = "\
# Settings of bloomcrawl. Each line below is commented out and shows the default; remove the # to change it.
# A flag (--max-pages) beats an environment variable (BLOOMCRAWL_MAX_PAGES), which beats this file. Only robots and
# fixed-filter-urls have no flag. `bloomcrawl demo` reads neither this file nor the environment.
# Durations are written \"500ms\", \"2s\", \"10m\", \"1h\" (a bare number is seconds), sizes \"64k\", \"10MiB\", \"1GB\",
# counts 500, 10_000, \"50M\". In the environment, lists have one entry a line.
# This file is made from the table of settings by `bloomcrawl config template`; a test keeps them equal.
";

/// Returns the template.
pub(crate) fn template() -> String {
    let defaults = Settings::default();
    let mut text = HEAD.to_owned();
    let mut section = "";
    for setting in TABLE {
        if setting.section != section {
            section = setting.section;
            // Writing to a string does not fail.
            let _ = write!(text, "\n# ---- {section} ----\n");
        }
        text.push('\n');
        for line in wrapped(&comment(setting)) {
            let _ = writeln!(text, "# {line}");
        }
        let _ = writeln!(text, "#{} = {}", setting.name, (setting.read)(&defaults));
    }
    text
}

fn comment(setting: &Setting) -> String {
    let mut comment = setting.doc.to_owned();
    // Writing to a string does not fail.
    let _ = match setting.kind {
        Kind::Count { min, max } if max < u64::MAX => {
            write!(comment, " {} to {}.", count_text(min), count_text(max))
        }
        Kind::Bytes { max } if max < u64::MAX => {
            write!(comment, " At most {}.", bytes_text(max))
        }
        Kind::Count { min, .. } if min > 0 && setting.unset.is_none() => {
            write!(comment, " At least {min}.")
        }
        _ => Ok(()),
    };
    if let Some(meaning) = setting.unset {
        let _ = write!(comment, " \"none\": {meaning}.");
    }
    comment
}

fn wrapped(text: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let line = lines.last_mut().expect("there is always a last line");
        if line.is_empty() {
            line.push_str(word);
        } else if line.chars().count() + 1 + word.chars().count() <= WIDTH_MAX {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::settings::{Flag, Value};

    #[test]
    fn the_file_at_the_top_level_is_the_template() {
        let file = include_str!("../../../../config.toml");
        assert!(
            file == template(),
            "config.toml is out of date; write it with `bloomcrawl config template`"
        );
    }

    #[test]
    fn the_head_names_the_settings_without_a_flag() {
        let flagless: Vec<&str> = TABLE
            .iter()
            .filter(|setting| setting.flag == Flag::Absent)
            .map(|setting| setting.name)
            .collect();
        assert_eq!(flagless, ["robots", "fixed-filter-urls"]);
    }

    #[test]
    fn every_line_is_commented_out_and_the_defaults_in_it_are_valid() {
        let template = template();
        assert!(
            template
                .lines()
                .all(|line| line.is_empty() || line.starts_with('#'))
        );
        let keys: Vec<&str> = template
            .lines()
            .filter_map(|line| line.strip_prefix('#').filter(|rest| !rest.starts_with(' ')))
            .collect();
        let document: toml::Table = keys
            .join("\n")
            .parse()
            .expect("the uncommented template is TOML");
        assert_eq!(document.len(), TABLE.len());
    }

    #[test]
    fn each_setting_says_what_it_does_and_takes_its_own_default() {
        let mut names = BTreeSet::new();
        for setting in TABLE {
            assert!(
                setting.doc.ends_with('.'),
                "{}: the meaning is whole sentences",
                setting.name
            );
            assert!(names.insert(setting.name), "{} stands twice", setting.name);
            let mut settings = Settings::default();
            let default = (setting.read)(&settings);
            assert_eq!(
                default == Value::Unset,
                setting.unset.is_some(),
                "{}",
                setting.name
            );
            (setting.write)(&mut settings, default.clone()).expect(setting.name);
            assert_eq!((setting.read)(&settings), default, "{}", setting.name);
        }
    }
}
