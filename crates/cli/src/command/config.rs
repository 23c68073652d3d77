//! `bloomcrawl config`: the settings in force, and the template.

use std::fmt::Write as _;

use super::effective;
use crate::{
    failure::{Exit, Failure},
    flags::ConfigFile,
    printer::{self, Printer},
    settings::{Effective, Typed, Value, template},
};

/// The column at which the sources begin, where the setting leaves room.
const SOURCE_COLUMN: usize = 48;

/// Prints each setting as TOML with its source as a comment, or everything as one JSON object with `--json`.
pub(super) fn show(file: &ConfigFile, typed: &Typed) -> Result<Exit, Failure> {
    let effective = effective(file, typed)?;
    let printer = Printer {
        verbosity: effective.verbosity()?,
    };
    for warning in &effective.warnings {
        printer.warning(warning);
    }
    printer::data(&if effective.settings.is_json {
        json(&effective)
    } else {
        toml(&effective)
    })?;
    Ok(Exit::Done)
}

/// Prints the template of `config.toml`.
pub(super) fn print_template() -> Result<Exit, Failure> {
    printer::data(&template())?;
    Ok(Exit::Done)
}

fn toml(effective: &Effective) -> String {
    let mut text = String::new();
    for (setting, value, source) in effective.shown() {
        let line = format!("{} = {value}", setting.name);
        // Writing to a string does not fail.
        let _ = writeln!(text, "{line:<SOURCE_COLUMN$} # {source}");
    }
    text
}

fn json(effective: &Effective) -> String {
    let entries = effective.shown().map(|(setting, value, source)| {
        let value = match value {
            Value::Unset => serde_json::Value::Null,
            Value::Switch(switch) => switch.into(),
            Value::Count(count) | Value::Bytes(count) => count.into(),
            Value::Duration(duration) => duration.as_secs_f64().into(),
            Value::Rate(rate) => rate.into(),
            Value::Text(text) => text.into(),
            Value::List(texts) => texts.into(),
        };
        (
            setting.name.to_owned(),
            serde_json::json!({ "value": value, "source": source.to_string() }),
        )
    });
    let mut text = serde_json::Value::Object(entries.collect()).to_string();
    text.push('\n');
    text
}
