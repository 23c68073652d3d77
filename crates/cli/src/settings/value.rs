//! The kinds of settings, and their values: read from text or TOML, written as TOML.

use std::{fmt, time::Duration};

use toml::de::DeValue;

use crate::unit::{
    bytes_text, count_text, duration_text, parse_bytes, parse_count, parse_duration, parse_rate,
};

/// What a setting's value is, and how it is written.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    /// True or false; on the command line `--name` and the negation.
    Switch {
        /// The flag that turns it off.
        negation: &'static str,
    },
    /// A whole number.
    Count {
        /// The smallest allowed.
        min: u64,
        /// The largest allowed.
        max: u64,
    },
    /// A size in bytes.
    Bytes {
        /// The largest allowed.
        max: u64,
    },
    /// A duration.
    Duration,
    /// A rate of false positives, from 1e-9 to below 1.
    Rate,
    /// Text; the placeholder in the help.
    Text(&'static str),
    /// Texts, one or several; the placeholder in the help.
    List(&'static str),
}

/// The value of a setting.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    /// Not set: no limit, or decided from other settings.
    Unset,
    /// A switch's.
    Switch(bool),
    /// A count's.
    Count(u64),
    /// A size's, in bytes.
    Bytes(u64),
    /// A duration's.
    Duration(Duration),
    /// A share's.
    Rate(f64),
    /// A text's.
    Text(String),
    /// The texts of a list.
    List(Vec<String>),
}

impl Kind {
    /// Returns the placeholder of the value in the help.
    pub(crate) const fn placeholder(self) -> &'static str {
        match self {
            Self::Switch { .. } => "BOOL",
            Self::Count { .. } => "N",
            Self::Bytes { .. } => "SIZE",
            Self::Duration => "TIME",
            Self::Rate => "RATE",
            Self::Text(placeholder) | Self::List(placeholder) => placeholder,
        }
    }

    /// Reads a value from text: a flag's, an environment variable's, or a string of the file.
    ///
    /// # Errors
    ///
    /// Says what is wrong with the text, and what would be right.
    pub(crate) fn parse(self, text: &str) -> Result<Value, String> {
        let wrong = |right: &str| format!("{text:?} is not {right}");
        match self {
            Self::Switch { .. } => match text {
                "true" | "1" | "yes" | "on" => Ok(Value::Switch(true)),
                "false" | "0" | "no" | "off" => Ok(Value::Switch(false)),
                _ => Err(wrong("true or false")),
            },
            Self::Count { min, max } => match parse_count(text) {
                Some(count) if count < min => {
                    Err(format!("{text:?} is too small, the least is {min}"))
                }
                Some(count) if count > max => Err(format!(
                    "{text:?} is too large, the most is {}",
                    count_text(max)
                )),
                Some(count) => Ok(Value::Count(count)),
                None => Err(wrong("a count, such as 500, 10_000, 64k or 50M")),
            },
            Self::Bytes { max } => match parse_bytes(text) {
                Some(bytes) if bytes > max => Err(format!(
                    "{text:?} is too large, the most is {}",
                    bytes_text(max)
                )),
                Some(bytes) => Ok(Value::Bytes(bytes)),
                None => Err(wrong("a size, such as 4096, 64k, 10MiB or 1GB")),
            },
            Self::Duration => parse_duration(text).map(Value::Duration).ok_or_else(|| {
                wrong("a duration, such as 500ms, 2s, 10m or 1h (a bare number is seconds)")
            }),
            Self::Rate => parse_rate(text)
                .map(Value::Rate)
                .ok_or_else(|| wrong("a rate from 1e-9 to below 1, such as 0.01 or 1%")),
            Self::Text(_) => Ok(Value::Text(text.to_owned())),
            Self::List(_) => Ok(Value::List(
                text.lines()
                    .map(str::to_owned)
                    .filter(|line| !line.is_empty())
                    .collect(),
            )),
        }
    }

    /// Reads a value from TOML.
    ///
    /// # Errors
    ///
    /// Says what is wrong with the value, and what would be right.
    pub(crate) fn read_toml(self, value: &DeValue<'_>) -> Result<Value, String> {
        match (self, value) {
            (Self::Switch { .. }, DeValue::Boolean(switch)) => Ok(Value::Switch(*switch)),
            (Self::Switch { .. }, _) => {
                Err(format!("expected true or false, found {}", named(value)))
            }
            (Self::List(_), DeValue::String(text)) => Ok(Value::List(vec![text.to_string()])),
            (Self::List(_), DeValue::Array(items)) => {
                let texts = items.iter().map(|item| match item.get_ref() {
                    DeValue::String(text) => Ok(text.to_string()),
                    other => Err(format!(
                        "expected a list of strings, found {} in it",
                        named(other)
                    )),
                });
                Ok(Value::List(texts.collect::<Result<_, _>>()?))
            }
            (Self::List(_), _) => Err(format!(
                "expected a list of strings, found {}",
                named(value)
            )),
            (Self::Text(_), DeValue::String(text)) => Ok(Value::Text(text.to_string())),
            (Self::Text(_), _) => Err(format!(
                "expected a string in quotes, found {}",
                named(value)
            )),
            (_, DeValue::String(text)) => self.parse(text),
            (_, DeValue::Float(float)) => self.parse(float.as_str()),
            (_, DeValue::Integer(integer)) => {
                let number = i64::from_str_radix(integer.as_str(), integer.radix())
                    .map_err(|_| format!("{} is too large", integer.as_str()))?;
                self.parse(&number.to_string())
            }
            (_, _) => Err(format!(
                "expected a number or a string in quotes, found {}",
                named(value)
            )),
        }
    }
}

fn named(value: &DeValue<'_>) -> String {
    let article = if matches!(value, DeValue::Array(_) | DeValue::Integer(_)) {
        "an"
    } else {
        "a"
    };
    format!("{article} {}", value.type_str())
}

/// The value in TOML, so that a file with it means the same.
impl fmt::Display for Value {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unset => formatter.write_str("\"none\""),
            Self::Switch(switch) => write!(formatter, "{switch}"),
            // TOML's integers end at i64::MAX.
            Self::Count(count) if i64::try_from(*count).is_err() => {
                write!(formatter, "\"{count}\"")
            }
            Self::Count(count) => formatter.write_str(&count_text(*count)),
            Self::Bytes(bytes) => write!(formatter, "\"{}\"", bytes_text(*bytes)),
            Self::Duration(duration) => write!(formatter, "\"{}\"", duration_text(*duration)),
            Self::Rate(rate) => write!(formatter, "{rate}"),
            Self::Text(text) => write!(formatter, "{}", toml::Value::String(text.clone())),
            Self::List(texts) => {
                let items = texts.iter().map(|text| toml::Value::String(text.clone()));
                write!(formatter, "{}", toml::Value::Array(items.collect()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANY_COUNT: Kind = Kind::Count {
        min: 0,
        max: u64::MAX,
    };
    const COUNT_TO_1000: Kind = Kind::Count { min: 1, max: 1_000 };
    const ANY_SIZE: Kind = Kind::Bytes { max: u64::MAX };

    #[test]
    fn an_error_names_the_value_and_what_would_be_right() {
        let message = COUNT_TO_1000.parse("10x").expect_err("10x is no count");
        assert!(
            message.contains("\"10x\"") && message.contains("10_000"),
            "{message}"
        );
        let message = COUNT_TO_1000.parse("0").expect_err("0 is below 1");
        assert!(message.contains("the least is 1"), "{message}");
        let message = COUNT_TO_1000.parse("1001").expect_err("over 1000");
        assert!(message.contains("the most is 1_000"), "{message}");
        let message = Kind::Bytes { max: 1 << 40 }
            .parse("2TiB")
            .expect_err("over 1 TiB");
        assert!(message.contains("the most is 1TiB"), "{message}");
        for rate in ["0", "1", "-0.5", "NaN", "inf", "x"] {
            assert!(Kind::Rate.parse(rate).is_err(), "{rate}");
        }
    }

    #[test]
    fn written_values_are_read_back_from_toml() {
        let values = [
            (Kind::Switch { negation: "" }, Value::Switch(true)),
            (ANY_COUNT, Value::Count(10_000_000)),
            (ANY_COUNT, Value::Count(u64::MAX)),
            (ANY_SIZE, Value::Bytes(10 << 20)),
            (
                Kind::Duration,
                Value::Duration(Duration::from_millis(1_500)),
            ),
            (Kind::Rate, Value::Rate(0.000_001)),
            (
                Kind::Text("X"),
                Value::Text("a \"quoted\" \\ text\n".to_owned()),
            ),
            (
                Kind::List("X"),
                Value::List(vec!["^a'\"b$".to_owned(), "\\d".to_owned()]),
            ),
            (Kind::List("X"), Value::List(Vec::new())),
        ];
        for (kind, value) in values {
            let text = value.to_string();
            let parsed = DeValue::parse(&text).expect("written values are TOML");
            assert_eq!(kind.read_toml(parsed.get_ref()), Ok(value), "{text}");
        }
    }

    #[test]
    fn toml_of_another_type_is_refused() {
        for (kind, text) in [
            (Kind::Switch { negation: "" }, "\"yes\""),
            (Kind::Text("X"), "5"),
            (Kind::List("X"), "[1]"),
            (ANY_COUNT, "true"),
            (ANY_COUNT, "-5"),
            (Kind::Duration, "[1]"),
        ] {
            let parsed = DeValue::parse(text).expect("the test's own TOML");
            assert!(kind.read_toml(parsed.get_ref()).is_err(), "{text}");
        }
    }
}
