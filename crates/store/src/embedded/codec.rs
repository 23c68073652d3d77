//! Bytes of the embedded store's queue: keys that sort in queue order, and the entries behind them.
//!
//! Key: partition, host, NUL, priority, depth, sequence; numbers are big-endian, so keys sort as positions do. A host
//! holds no NUL, so no host's keys lie within another's.
//! Entry: version, 16 bytes of URL key, via, redirect count, the URL after its host, the referrer. The two texts carry
//! their length in four bytes; a referrer's length is stored plus one, 0 stands for none.

use types::{CanonicalUrl, Host, QueuePosition, QueuedUrl, UrlKey};

use crate::{
    StoreError,
    stored::{StoredEntry, host_of, via_number, without_nul},
};

const ENTRY_VERSION: u8 = 1;

/// Bytes of a position within a queue key.
const POSITION_BYTES: usize = 1 + 4 + 8;

/// The longest host that fits a key of the engine (65,535 bytes) with all that stands beside it.
const HOST_BYTES_MAX: usize = 65_000;

/// Returns what all queue keys of a host begin with.
pub(super) fn host_prefix(partition: u8, host: &str) -> Result<Vec<u8>, StoreError> {
    let host = without_nul(host);
    if host.len() > HOST_BYTES_MAX {
        return Err(StoreError::Backend(format!(
            "a host of {} bytes cannot be queued, the embedded store takes up to {HOST_BYTES_MAX}",
            host.len()
        )));
    }
    let mut prefix = Vec::with_capacity(1 + host.len() + 1 + POSITION_BYTES);
    prefix.push(partition);
    prefix.extend_from_slice(host.as_bytes());
    prefix.push(0);
    Ok(prefix)
}

/// Returns the key of a place in a host's queue.
pub(super) fn queue_key(
    partition: u8,
    host: &str,
    position: QueuePosition,
) -> Result<Vec<u8>, StoreError> {
    let mut key = host_prefix(partition, host)?;
    key.push(position.priority);
    key.extend_from_slice(&position.depth.to_be_bytes());
    key.extend_from_slice(&position.sequence.to_be_bytes());
    Ok(key)
}

/// Takes a queue key apart.
pub(super) fn parse_queue_key(key: &[u8]) -> Result<(Host, QueuePosition), StoreError> {
    let damaged = || {
        StoreError::Corrupt(format!(
            "queue key of {} bytes without its parts",
            key.len()
        ))
    };
    let (prefix, position) = key
        .split_last_chunk::<POSITION_BYTES>()
        .ok_or_else(damaged)?;
    let host = prefix
        .get(1..)
        .and_then(|rest| rest.strip_suffix(&[0]))
        .ok_or_else(damaged)?;
    let host = host_of(std::str::from_utf8(host).map_err(|_| damaged())?)?;
    let mut reader = Reader(position);
    let position = QueuePosition {
        priority: reader.byte()?,
        depth: u32::from_be_bytes(reader.array()?),
        sequence: u64::from_be_bytes(reader.array()?),
    };
    Ok((host, position))
}

/// Returns the stored entry of a queued URL.
pub(super) fn encode_entry(queued: &QueuedUrl) -> Result<Vec<u8>, StoreError> {
    let path = queued.url.path_and_query();
    let referrer = queued.referrer.as_deref().map(without_nul);
    let referrer_bytes = referrer.as_deref().map_or(0, str::len);
    let mut entry = Vec::with_capacity(1 + 16 + 2 + 8 + path.len() + referrer_bytes);
    entry.push(ENTRY_VERSION);
    entry.extend_from_slice(&queued.key.to_bytes());
    entry.push(via_number(queued.via));
    entry.push(queued.redirect_count);
    entry.extend_from_slice(&length_prefix(path.len())?.to_be_bytes());
    entry.extend_from_slice(path.as_bytes());
    match referrer {
        None => entry.extend_from_slice(&0_u32.to_be_bytes()),
        Some(referrer) => {
            entry.extend_from_slice(&length_prefix(referrer.len() + 1)?.to_be_bytes());
            entry.extend_from_slice(referrer.as_bytes());
        }
    }
    Ok(entry)
}

fn length_prefix(bytes: usize) -> Result<u32, StoreError> {
    u32::try_from(bytes)
        .map_err(|_| StoreError::Backend(format!("a text of {bytes} bytes cannot be stored")))
}

/// Rebuilds a queued URL from its key and its entry.
pub(super) fn decode_entry(key: &[u8], entry: &[u8]) -> Result<QueuedUrl, StoreError> {
    let (host, position) = parse_queue_key(key)?;
    let mut reader = Reader(entry);
    let version = reader.byte()?;
    if version != ENTRY_VERSION {
        return Err(StoreError::Corrupt(format!(
            "queue entry of version {version}, known is {ENTRY_VERSION}"
        )));
    }
    let key = UrlKey::from_bytes(reader.array()?);
    let via_number = reader.byte()?;
    let redirect_count = reader.byte()?;
    let path_bytes = u32::from_be_bytes(reader.array()?) as usize;
    let url = format!("{}{}", host.as_str(), reader.text(path_bytes)?);
    let referrer = match u32::from_be_bytes(reader.array()?) as usize {
        0 => None,
        bytes => Some(reader.text(bytes - 1)?),
    };
    if !reader.0.is_empty() {
        return Err(StoreError::Corrupt(format!(
            "queue entry with {} bytes after its end",
            reader.0.len()
        )));
    }
    let queued = StoredEntry {
        url,
        key,
        position,
        via_number,
        redirect_count,
        referrer,
    }
    .into_queued()?;
    check_host(&queued.url, &host)?;
    Ok(queued)
}

/// A damaged path could move the end of the host, and so a request to another host's queue.
fn check_host(url: &CanonicalUrl, host: &Host) -> Result<(), StoreError> {
    if url.host_str() == host.as_str() {
        Ok(())
    } else {
        Err(StoreError::Corrupt(format!(
            "queue entry of {url} among those of {host}"
        )))
    }
}

/// Takes values off the front of bytes that may be damaged.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, bytes: usize) -> Result<&'a [u8], StoreError> {
        let (taken, rest) = self.0.split_at_checked(bytes).ok_or_else(|| {
            StoreError::Corrupt(format!("{bytes} bytes expected, {} left", self.0.len()))
        })?;
        self.0 = rest;
        Ok(taken)
    }

    fn byte(&mut self) -> Result<u8, StoreError> {
        self.array::<1>().map(|[byte]| byte)
    }

    fn array<const BYTES: usize>(&mut self) -> Result<[u8; BYTES], StoreError> {
        let taken = self.take(BYTES)?;
        taken
            .try_into()
            .map_err(|_| StoreError::Corrupt("a number is cut short".to_owned()))
    }

    fn text(&mut self, bytes: usize) -> Result<&'a str, StoreError> {
        std::str::from_utf8(self.take(bytes)?)
            .map_err(|_| StoreError::Corrupt("a text is not UTF-8".to_owned()))
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

    use proptest::prelude::*;
    use types::Via;

    use super::*;

    fn queued(text: &str, position: QueuePosition, referrer: Option<&str>) -> QueuedUrl {
        QueuedUrl {
            url: CanonicalUrl::from_stored(text.to_owned()).unwrap(),
            key: UrlKey::from_u128(u128::from(position.sequence) << 64),
            position,
            via: Via::Redirect,
            redirect_count: 7,
            referrer: referrer.map(Into::into),
            attempt: 3,
        }
    }

    fn any_position() -> impl Strategy<Value = QueuePosition> {
        (any::<u8>(), any::<u32>(), any::<u64>()).prop_map(|(priority, depth, sequence)| {
            QueuePosition {
                priority,
                depth,
                sequence,
            }
        })
    }

    proptest! {
        #[test]
        fn an_entry_is_read_back_as_it_was_written(
            path in "[!-\"$-~]{0,300}",
            referrer in proptest::option::of("[ -~\u{600}-\u{6ff}]{0,300}"),
            position in any_position(),
        ) {
            let text = format!("https://example.org:8443/{path}");
            let written = queued(&text, position, referrer.as_deref());
            let key = queue_key(9, written.url.host_str(), position).unwrap();
            let read = decode_entry(&key, &encode_entry(&written).unwrap()).unwrap();
            prop_assert_eq!(read.url.as_str(), text);
            prop_assert_eq!(read.key, written.key);
            prop_assert_eq!(read.position, position);
            prop_assert_eq!((read.via, read.redirect_count, read.attempt), (Via::Redirect, 7, 0));
            prop_assert_eq!(read.referrer.as_deref(), referrer.as_deref());
        }

        #[test]
        fn keys_sort_as_positions_do(one in any_position(), other in any_position()) {
            let key = |position| queue_key(1, "http://a.example", position).unwrap();
            prop_assert_eq!(key(one).cmp(&key(other)), one.cmp(&other));
        }

        #[test]
        fn damaged_bytes_are_an_error_and_never_a_panic(
            key in proptest::collection::vec(any::<u8>(), 0..64),
            entry in proptest::collection::vec(any::<u8>(), 0..128),
            cut in 0_usize..60,
        ) {
            prop_assert!(decode_entry(&key, &entry).is_err());
            let written = queued("http://a.example/path", QueuePosition::default(), Some("http://a.example/"));
            let good_key = queue_key(1, "http://a.example", written.position).unwrap();
            let good = encode_entry(&written).unwrap();
            prop_assert!(cut >= good.len() || decode_entry(&good_key, &good[..cut]).is_err());
            let _ = decode_entry(&good_key, &entry);
        }
    }

    #[test]
    fn one_hosts_keys_lie_outside_anothers() {
        let prefix = host_prefix(1, "http://a.example").unwrap();
        let longer = queue_key(1, "http://a.example.org", QueuePosition::default()).unwrap();
        let port = queue_key(1, "http://a.example:81", QueuePosition::default()).unwrap();
        assert!(!longer.starts_with(&prefix) && !port.starts_with(&prefix));
    }
}
