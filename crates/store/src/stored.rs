//! The stored form of values that both backends write alike.

use std::{borrow::Cow, sync::Arc};

use types::{CanonicalUrl, Host, QueuePosition, QueuedUrl, UrlKey, Via};

use crate::StoreError;

/// The version of the stored form of either backend. A store of another version is refused, never guessed at.
pub(crate) const FORMAT_VERSION: u32 = 1;

/// Returns `text` with each NUL escaped as `%00`, the form that canonicalization gives it.
///
/// No canonical URL holds a NUL, but a host or a referrer is given as any text. A NUL must neither split a key of the
/// embedded store nor make `PostgreSQL` refuse the whole batch, since its text type has none.
pub(crate) fn without_nul(text: &str) -> Cow<'_, str> {
    if text.contains('\0') {
        Cow::Owned(text.replace('\0', "%00"))
    } else {
        Cow::Borrowed(text)
    }
}

/// Returns the stored number of `via`; never renumbered.
pub(crate) const fn via_number(via: Via) -> u8 {
    match via {
        Via::Seed => 0,
        Via::Link => 1,
        Via::Redirect => 2,
        Via::Sitemap => 3,
        Via::Entry => 4,
    }
}

/// Returns what [`via_number`] stored.
pub(crate) const fn via_of_number(number: u8) -> Option<Via> {
    match number {
        0 => Some(Via::Seed),
        1 => Some(Via::Link),
        2 => Some(Via::Redirect),
        3 => Some(Via::Sitemap),
        4 => Some(Via::Entry),
        _ => None,
    }
}

/// The fields of a queue entry as they were read back, not yet trusted.
pub(crate) struct StoredEntry<'a> {
    pub(crate) url: String,
    pub(crate) key: UrlKey,
    pub(crate) position: QueuePosition,
    pub(crate) via_number: u8,
    pub(crate) redirect_count: u8,
    pub(crate) referrer: Option<&'a str>,
}

impl StoredEntry<'_> {
    /// Rebuilds the queued URL.
    pub(crate) fn into_queued(self) -> Result<QueuedUrl, StoreError> {
        let via = via_of_number(self.via_number).ok_or_else(|| {
            StoreError::Corrupt(format!(
                "queue entry with via {}, known are 0 to 3",
                self.via_number
            ))
        })?;
        let url = CanonicalUrl::from_stored(self.url).map_err(|rejection| {
            StoreError::Corrupt(format!("queue entry without a canonical URL: {rejection}"))
        })?;
        Ok(QueuedUrl {
            url,
            key: self.key,
            position: self.position,
            via,
            redirect_count: self.redirect_count,
            referrer: self.referrer.map(Arc::from),
            attempt: 0,
        })
    }
}

/// Rebuilds a host from its stored text.
pub(crate) fn host_of(text: &str) -> Result<Host, StoreError> {
    if text.starts_with("http://") || text.starts_with("https://") {
        Ok(Host::new(text))
    } else {
        Err(StoreError::Corrupt(format!(
            "a queued host begins with http:// or https://, found {text:?}"
        )))
    }
}
