//! Conversions between the values of the table and the fields of the settings.

use std::time::Duration;

use regex::Regex;
use url::Url;

use super::Value;
use crate::clean::mask_password;

pub(super) fn put<T>(place: &mut T, value: Result<T, String>) -> Result<(), String> {
    *place = value?;
    Ok(())
}

pub(super) fn optional_count(count: Option<impl Into<u64>>) -> Value {
    count.map_or(Value::Unset, |count| Value::Count(count.into()))
}

pub(super) fn count_of(count: usize) -> Value {
    Value::Count(u64::try_from(count).unwrap_or(u64::MAX))
}

pub(super) fn bytes_of(bytes: usize) -> Value {
    Value::Bytes(u64::try_from(bytes).unwrap_or(u64::MAX))
}

/// The answer to a value of another kind than the setting's, which its kind rules out.
fn mismatch(value: &Value) -> String {
    format!("{value} is of the wrong kind")
}

pub(super) fn is_on(value: &Value) -> Result<bool, String> {
    match value {
        Value::Switch(switch) => Ok(*switch),
        other => Err(mismatch(other)),
    }
}

pub(super) fn number<T: TryFrom<u64>>(value: Value) -> Result<T, String> {
    match value {
        Value::Count(number) | Value::Bytes(number) => {
            T::try_from(number).map_err(|_| format!("{number} is too large"))
        }
        other => Err(mismatch(&other)),
    }
}

pub(super) fn optional<T: TryFrom<u64>>(value: Value) -> Result<Option<T>, String> {
    if value == Value::Unset {
        Ok(None)
    } else {
        number(value).map(Some)
    }
}

pub(super) fn duration(value: &Value) -> Result<Duration, String> {
    match value {
        Value::Duration(duration) => Ok(*duration),
        other => Err(mismatch(other)),
    }
}

pub(super) fn positive_duration(value: &Value) -> Result<Duration, String> {
    match duration(value)? {
        Duration::ZERO => {
            Err("a timeout of 0 would fail every request; give a longer one".to_owned())
        }
        duration => Ok(duration),
    }
}

pub(super) fn rate(value: &Value) -> Result<f64, String> {
    match value {
        Value::Rate(rate) => Ok(*rate),
        other => Err(mismatch(other)),
    }
}

pub(super) fn text(value: Value) -> Result<String, String> {
    match value {
        Value::Text(text) => Ok(text),
        other => Err(mismatch(&other)),
    }
}

pub(super) fn texts(value: Value) -> Result<Vec<String>, String> {
    match value {
        Value::List(texts) => Ok(texts),
        other => Err(mismatch(&other)),
    }
}

pub(super) fn not_empty(text: String) -> Result<String, String> {
    if text.trim().is_empty() {
        Err("it is empty".to_owned())
    } else {
        Ok(text)
    }
}

pub(super) fn header_value(text: String) -> Result<String, String> {
    if text.chars().all(|c| c == ' ' || c.is_ascii_graphic()) && !text.trim().is_empty() {
        Ok(text)
    } else {
        Err(format!(
            "{text:?} cannot stand in a header; use visible ASCII characters"
        ))
    }
}

/// Reads regular expressions. They are compiled again for the crawl; here the fault can be laid to its source.
pub(super) fn patterns(value: Value) -> Result<Vec<String>, String> {
    let patterns = texts(value)?;
    for pattern in &patterns {
        Regex::new(pattern).map_err(|error| {
            let drawing = error.to_string();
            let reason = drawing.lines().last().unwrap_or_default();
            let reason = reason.strip_prefix("error: ").unwrap_or(reason);
            format!("{pattern:?} is no regular expression: {reason}")
        })?;
    }
    Ok(patterns)
}

/// Reads the URL of a proxy.
pub(super) fn proxy_url(text: String) -> Result<String, String> {
    let is_usable = Url::parse(&text)
        .is_ok_and(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
    if is_usable {
        Ok(text)
    } else {
        Err(format!(
            "{:?} is no proxy; use http://HOST:PORT or https://HOST:PORT",
            mask_password(&text)
        ))
    }
}

pub(super) fn store_uri(text: String) -> Result<String, String> {
    let is_known = matches!(text.as_str(), "embedded" | "embedded:")
        || text.starts_with("postgres://")
        || text.starts_with("postgresql://");
    if is_known {
        Ok(text)
    } else {
        Err(format!(
            "{:?} is no store; use embedded: or postgres://user@host/database",
            mask_password(&text)
        ))
    }
}
