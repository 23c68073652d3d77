//! Rules that send the connections meant for one host to another address, as `curl --connect-to` does.

use std::{fmt, net::IpAddr, str::FromStr};

use types::Host;
use url::Host as UrlHost;

use crate::FetcherError;

/// One rule: connections to `host` and `port` go to `to_host` and `to_port`. A `None` matches, or keeps, every value.
///
/// Its text is `HOST:PORT:ADDR:PORT`, each field possibly empty, IPv6 addresses in brackets. TLS and the request go on
/// naming the original host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConnectTo {
    /// The host matched, lower case, A-labels, IPv6 without brackets.
    pub host: Option<String>,
    /// The port matched, a default port included.
    pub port: Option<u16>,
    /// The name or address connected to, IPv6 without brackets.
    pub to_host: Option<String>,
    /// The port connected to.
    pub to_port: Option<u16>,
}

impl ConnectTo {
    /// Returns whether the rule is for this host.
    #[must_use]
    pub fn matches(&self, host: &Host) -> bool {
        let name = bare(host.name());
        self.host
            .as_deref()
            .is_none_or(|wanted| wanted.eq_ignore_ascii_case(name))
            && self.port.is_none_or(|wanted| wanted == host.port())
    }
}

/// Returns the name of a host without the brackets of an IPv6 literal.
pub(crate) fn bare(name: &str) -> &str {
    name.strip_prefix('[')
        .and_then(|name| name.strip_suffix(']'))
        .unwrap_or(name)
}

impl FromStr for ConnectTo {
    type Err = FetcherError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let refuse = |reason: String| FetcherError::ConnectTo {
            text: text.to_owned(),
            reason,
        };
        let fields = split_fields(text).map_err(refuse)?;
        let [host, port, to_host, to_port] = fields[..] else {
            return Err(refuse(format!("it has {} fields, not 4", fields.len())));
        };
        Ok(Self {
            host: parse_host(host).map_err(refuse)?,
            port: parse_port(port).map_err(refuse)?,
            to_host: parse_host(to_host).map_err(refuse)?,
            to_port: parse_port(to_port).map_err(refuse)?,
        })
    }
}

/// Splits at colons outside brackets.
fn split_fields(text: &str) -> Result<Vec<&str>, String> {
    let mut fields = Vec::new();
    let mut start = 0;
    let mut is_bracketed = false;
    for (at, character) in text.char_indices() {
        match character {
            '[' if !is_bracketed => is_bracketed = true,
            ']' if is_bracketed => is_bracketed = false,
            '[' | ']' => return Err("a bracket has no partner".to_owned()),
            ':' if !is_bracketed => {
                fields.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    if is_bracketed {
        return Err("a bracket has no partner".to_owned());
    }
    fields.push(&text[start..]);
    Ok(fields)
}

/// Reads a host the way URLs do, so that every spelling of a name meets the canonical one.
fn parse_host(field: &str) -> Result<Option<String>, String> {
    if field.is_empty() {
        return Ok(None);
    }
    let host = UrlHost::parse(field).map_err(|error| format!("host {field:?}: {error}"))?;
    Ok(Some(match host {
        UrlHost::Domain(name) => name.trim_end_matches('.').to_owned(),
        UrlHost::Ipv4(address) => address.to_string(),
        UrlHost::Ipv6(address) => address.to_string(),
    }))
}

fn parse_port(field: &str) -> Result<Option<u16>, String> {
    if field.is_empty() {
        return Ok(None);
    }
    match field.parse() {
        Ok(0) | Err(_) => Err(format!("port {field:?} is no number from 1 to 65535")),
        Ok(port) => Ok(Some(port)),
    }
}

impl fmt::Display for ConnectTo {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_field(formatter, self.host.as_deref())?;
        formatter.write_str(":")?;
        write_port(formatter, self.port)?;
        formatter.write_str(":")?;
        write_field(formatter, self.to_host.as_deref())?;
        formatter.write_str(":")?;
        write_port(formatter, self.to_port)
    }
}

fn write_field(formatter: &mut fmt::Formatter<'_>, host: Option<&str>) -> fmt::Result {
    match host {
        Some(host) if matches!(host.parse(), Ok(IpAddr::V6(_))) => write!(formatter, "[{host}]"),
        Some(host) => formatter.write_str(host),
        None => Ok(()),
    }
}

fn write_port(formatter: &mut fmt::Formatter<'_>, port: Option<u16>) -> fmt::Result {
    port.map_or(Ok(()), |port| write!(formatter, "{port}"))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a failed set-up fails the test")]

    use super::*;

    #[test]
    fn reads_and_writes_every_shape() {
        for text in [
            "example.org:443:127.0.0.1:8443",
            ":80::8080",
            "::localhost:",
            ":::",
            "[2001:db8::1]:443:[::1]:8443",
        ] {
            assert_eq!(text.parse::<ConnectTo>().unwrap().to_string(), text);
        }
        let rule: ConnectTo = "BÜCHER.example.:443:0x7f.1:1".parse().unwrap();
        assert_eq!(rule.host.as_deref(), Some("xn--bcher-kva.example"));
        assert_eq!(rule.to_host.as_deref(), Some("127.0.0.1"));
    }

    #[test]
    fn refuses_with_the_text_and_the_right_form() {
        for text in [
            "",
            "a:b",
            "a:1:b:2:3",
            "a:0:b:1",
            "a:1:b:65536",
            "a:x:b:1",
            "[::1:1:b:2",
            "::1:1:a:1",
            "a b:::",
            "]:::",
        ] {
            let error = text.parse::<ConnectTo>().unwrap_err().to_string();
            assert!(
                error.contains(&format!("{text:?}")) && error.contains("HOST:PORT:ADDR:PORT"),
                "{error}"
            );
        }
    }

    #[test]
    fn matches_by_host_and_effective_port() {
        let rule: ConnectTo = "example.org:443:127.0.0.1:1".parse().unwrap();
        assert!(rule.matches(&Host::new("https://example.org")));
        assert!(rule.matches(&Host::new("http://example.org:443")));
        assert!(!rule.matches(&Host::new("http://example.org")));
        assert!(!rule.matches(&Host::new("https://www.example.org")));
        let literal: ConnectTo = "[::1]:::1".parse().unwrap();
        assert!(literal.matches(&Host::new("http://[::1]:99")));
        assert!(
            ":::"
                .parse::<ConnectTo>()
                .unwrap()
                .matches(&Host::new("http://a"))
        );
    }
}
