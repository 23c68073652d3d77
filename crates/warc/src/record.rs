//! One WARC record to be written: its fields, its block, and their bytes.

use std::{borrow::Cow, fmt, net::IpAddr};

use crate::{Compressor, payload_digest};

/// The kind of a record (ISO 28500 section 6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordType {
    /// Describes the records that follow it.
    Warcinfo,
    /// A request as sent.
    Request,
    /// A response as received.
    Response,
    /// What is said of another record.
    Metadata,
    /// A capture whose content an earlier record holds.
    Revisit,
    /// A resource without protocol response information.
    Resource,
}

impl RecordType {
    /// Returns the value of `WARC-Type`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Warcinfo => "warcinfo",
            Self::Request => "request",
            Self::Response => "response",
            Self::Metadata => "metadata",
            Self::Revisit => "revisit",
            Self::Resource => "resource",
        }
    }
}

/// A record's identity: a version 4 UUID made of the caller's random bits.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct RecordId(u128);

impl RecordId {
    /// Makes an id of 128 random bits; six of them give way to version and variant (RFC 9562 section 5.4).
    #[must_use]
    pub const fn from_random(bits: u128) -> Self {
        let version = bits & !(0xF << 76) | (4 << 76);
        Self(version & !(0b11 << 62) | (0b10 << 62))
    }
}

impl fmt::Display for RecordId {
    /// Writes `<urn:uuid:...>`, the form of `WARC-Record-ID`.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hex = format!("{:032x}", self.0);
        write!(
            formatter,
            "<urn:uuid:{}-{}-{}-{}-{}>",
            &hex[..8],
            &hex[8..12],
            &hex[12..16],
            &hex[16..20],
            &hex[20..]
        )
    }
}

impl fmt::Debug for RecordId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

/// The capture that a revisit record points back to (ISO 28500 section 6.7.2).
#[derive(Clone, Debug)]
pub struct Revisited<'a> {
    /// Its record.
    pub record_id: RecordId,
    /// Its target URI.
    pub target_uri: &'a str,
    /// Its date.
    pub date: &'a str,
}

/// A record to be written. Block digest, length and, where a payload is marked, payload digest are computed.
#[derive(Clone, Debug)]
pub struct Record<'a> {
    kind: RecordType,
    id: RecordId,
    fields: Vec<(Cow<'a, str>, String)>,
    payload_offset: Option<usize>,
    content: Cow<'a, [u8]>,
}

impl<'a> Record<'a> {
    /// Begins a record; `date` is UTC in RFC 3339 form (`2026-11-30T08:32:00Z`, a fraction of 1 to 9 digits allowed).
    #[must_use]
    pub fn new(
        kind: RecordType,
        id: RecordId,
        date: &str,
        content: impl Into<Cow<'a, [u8]>>,
    ) -> Self {
        let record = Self {
            kind,
            id,
            fields: Vec::with_capacity(8),
            payload_offset: None,
            content: content.into(),
        };
        record.field("WARC-Date", date)
    }

    /// Adds a field. CR, LF and other control characters of the value become spaces; a name is cut down to the
    /// characters of a token.
    #[must_use]
    pub fn field(mut self, name: &'a str, value: &str) -> Self {
        let value = value
            .chars()
            .map(|char| if char.is_control() { ' ' } else { char })
            .collect::<String>();
        let name = if name.bytes().all(is_token_byte) {
            Cow::Borrowed(name)
        } else {
            Cow::Owned(
                name.chars()
                    .filter(|char| u8::try_from(*char).is_ok_and(is_token_byte))
                    .collect(),
            )
        };
        if !name.is_empty() {
            self.fields.push((name, value.trim().to_owned()));
        }
        self
    }

    /// Sets `WARC-Target-URI`.
    #[must_use]
    pub fn target_uri(self, uri: &str) -> Self {
        self.field("WARC-Target-URI", uri)
    }

    /// Sets `WARC-Concurrent-To`: another record of the same capture.
    #[must_use]
    pub fn concurrent_to(self, id: RecordId) -> Self {
        self.field("WARC-Concurrent-To", &id.to_string())
    }

    /// Sets `WARC-Warcinfo-ID`: the warcinfo record that describes this one.
    #[must_use]
    pub fn warcinfo_id(self, id: RecordId) -> Self {
        self.field("WARC-Warcinfo-ID", &id.to_string())
    }

    /// Sets `WARC-IP-Address`: the address connected to.
    #[must_use]
    pub fn ip_address(self, address: IpAddr) -> Self {
        self.field("WARC-IP-Address", &address.to_string())
    }

    /// Sets `WARC-Truncated`; the reasons of the standard are `length`, `time`, `disconnect` and `unspecified`.
    #[must_use]
    pub fn truncated(self, reason: &str) -> Self {
        self.field("WARC-Truncated", reason)
    }

    /// Sets `Content-Type`, the media type of the block.
    #[must_use]
    pub fn content_type(self, media_type: &str) -> Self {
        self.field("Content-Type", media_type)
    }

    /// Names the earlier capture that a revisit record repeats, under the profile of identical payload digests.
    #[must_use]
    pub fn revisited(self, earlier: &Revisited<'_>) -> Self {
        self.field("WARC-Refers-To", &earlier.record_id.to_string())
            .field("WARC-Refers-To-Target-URI", earlier.target_uri)
            .field("WARC-Refers-To-Date", earlier.date)
            .field(
                "WARC-Profile",
                "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest",
            )
    }

    /// Marks the payload, which begins at `offset` of the block (after an HTTP head): its digest is written. An
    /// offset past the end marks an empty payload.
    #[must_use]
    pub fn payload_at(mut self, offset: usize) -> Self {
        self.payload_offset = Some(offset.min(self.content.len()));
        self
    }

    /// Returns the record's identity.
    #[must_use]
    pub const fn id(&self) -> RecordId {
        self.id
    }

    /// Returns the record's header, with its empty line.
    fn head(&self) -> Vec<u8> {
        let mut head = format!(
            "WARC/1.1\r\nWARC-Type: {}\r\nWARC-Record-ID: {}\r\n",
            self.kind.name(),
            self.id
        );
        let mut line = |name: &str, value: &str| {
            head.push_str(name);
            head.push_str(": ");
            head.push_str(value);
            head.push_str("\r\n");
        };
        for (name, value) in &self.fields {
            line(name, value);
        }
        if let Some(offset) = self.payload_offset {
            line(
                "WARC-Payload-Digest",
                &payload_digest(&self.content[offset..]),
            );
        }
        line("WARC-Block-Digest", &payload_digest(&self.content));
        line("Content-Length", &self.content.len().to_string());
        head.push_str("\r\n");
        head.into_bytes()
    }

    /// Returns the record's bytes, uncompressed.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = self.head();
        bytes.reserve_exact(self.content.len() + 4);
        bytes.extend_from_slice(&self.content);
        bytes.extend_from_slice(b"\r\n\r\n");
        bytes
    }

    /// Returns the record as one gzip member (ISO 28500 annex D); `level` is 0 (stored) to 9 (smallest), larger
    /// values count as 9.
    #[must_use]
    pub fn to_gzip_member(&self, level: u32) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.append_gzip_member(&mut Compressor::new(level), &mut bytes);
        bytes
    }

    /// Appends the record as one gzip member.
    pub fn append_gzip_member(&self, compressor: &mut Compressor, out: &mut Vec<u8>) {
        compressor.append(&[&self.head(), &self.content, b"\r\n\r\n"], out);
    }
}

/// RFC 9110 section 5.6.2, the alphabet that ISO 28500 uses for field names too.
pub(crate) const fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(
            byte,
            b'!' | b'#'
                | b'$'
                | b'%'
                | b'&'
                | b'\''
                | b'*'
                | b'+'
                | b'-'
                | b'.'
                | b'^'
                | b'_'
                | b'`'
                | b'|'
                | b'~'
        )
}

#[cfg(test)]
mod tests {
    use super::{Record, RecordId, RecordType};

    const DATE: &str = "2026-11-30T08:32:00.125Z";

    #[test]
    fn ids_are_version_4() {
        assert_eq!(
            RecordId::from_random(0).to_string(),
            "<urn:uuid:00000000-0000-4000-8000-000000000000>"
        );
        assert_eq!(
            RecordId::from_random(u128::MAX).to_string(),
            "<urn:uuid:ffffffff-ffff-4fff-bfff-ffffffffffff>"
        );
    }

    #[test]
    fn bytes_of_a_small_record() {
        let record = Record::new(
            RecordType::Resource,
            RecordId::from_random(7),
            DATE,
            b"abc".as_slice(),
        )
        .target_uri("http://example.org/")
        .content_type("text/plain")
        .payload_at(0);
        let expected = "WARC/1.1\r\n\
            WARC-Type: resource\r\n\
            WARC-Record-ID: <urn:uuid:00000000-0000-4000-8000-000000000007>\r\n\
            WARC-Date: 2026-11-30T08:32:00.125Z\r\n\
            WARC-Target-URI: http://example.org/\r\n\
            Content-Type: text/plain\r\n\
            WARC-Payload-Digest: sha1:VGMT4NSHA2AWVOR6EVYXQUGCNSONBWE5\r\n\
            WARC-Block-Digest: sha1:VGMT4NSHA2AWVOR6EVYXQUGCNSONBWE5\r\n\
            Content-Length: 3\r\n\r\nabc\r\n\r\n";
        assert_eq!(String::from_utf8_lossy(&record.to_bytes()), expected);
    }

    #[test]
    fn a_value_cannot_start_a_new_line() {
        let record = Record::new(
            RecordType::Metadata,
            RecordId::from_random(1),
            DATE,
            Vec::new(),
        )
        .target_uri("http://example.org/\r\nWARC-Type: response\0")
        .field("a: b\r\nc", "x");
        let text = String::from_utf8(record.to_bytes()).unwrap_or_default();
        assert!(
            text.contains("WARC-Target-URI: http://example.org/  WARC-Type: response\r\n"),
            "{text}"
        );
        assert!(text.contains("\r\nabc: x\r\n"), "{text}");
    }
}
