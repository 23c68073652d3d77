//! The archivist: exchanges as compressed WARC records, made on the parse threads so that compression is parallel.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fastrand::Rng;
use jiff::Timestamp;
use types::{CanonicalUrl, PageRecord, QueuedUrl, Response, Truncation};
use warc::{Compressor, Exchange, Record, RecordId, RecordType, WarcInfo, exchange_members};

use crate::{
    message::WarcMembers,
    output::WarcinfoMaker,
    record,
    room::{Backlog, HeldBytes},
};

/// The gzip level; level 1 costs a third of level 6 and is within a tenth of its size on HTML.
const GZIP_LEVEL: u32 = 1;

/// Makes records; shared by the parse threads.
pub(crate) struct Archivist {
    random: Mutex<Rng>,
    /// Compressors that no thread uses now; never more than there are threads.
    compressors: Mutex<Vec<Compressor>>,
    backlog: Arc<Backlog>,
}

impl Archivist {
    /// Draws record ids from `random`, and counts what it makes in `backlog`.
    pub(crate) const fn new(random: Rng, backlog: Arc<Backlog>) -> Self {
        Self {
            random: Mutex::new(random),
            compressors: Mutex::new(Vec::new()),
            backlog,
        }
    }

    /// Returns the records of a page: request, response, metadata.
    pub(crate) fn page(
        &self,
        queued: &QueuedUrl,
        response: &Response,
        page: &PageRecord,
    ) -> WarcMembers {
        let mut metadata = vec![(
            "fetchTimeMs",
            format!("{:.0}", page.total_ms.unwrap_or_default()),
        )];
        if let Some(referrer) = &page.referrer {
            metadata.push(("via", referrer.clone()));
        }
        metadata.push(("hopsFromSeed", page.depth.to_string()));
        if let Some(charset) = &page.charset {
            metadata.push(("charset-detected", charset.clone()));
        }
        metadata.push(("outlinkCount", page.outlink_count.to_string()));
        self.members(queued.url.as_str(), response, &page.fetched_at, metadata)
    }

    /// Returns the records of an exchange that belongs to no page.
    pub(crate) fn aside(
        &self,
        url: &CanonicalUrl,
        response: &Response,
        fetched_at: Timestamp,
    ) -> HeldBytes {
        self.members(
            url.as_str(),
            response,
            &record::timestamp(fetched_at),
            Vec::new(),
        )
        .bytes
    }

    fn members(
        &self,
        url: &str,
        response: &Response,
        date: &str,
        metadata: Vec<(&str, String)>,
    ) -> WarcMembers {
        let [response_id, request_id, metadata_id] = self.record_ids();
        let exchange = Exchange {
            target_uri: url,
            date,
            response_id,
            request_id,
            metadata_id,
            warcinfo_id: None,
            ip_address: response.address.map(|address| address.ip()),
            request_head: &response.request_head,
            status: response.status,
            headers: response.headers.iter().collect(),
            body: &response.wire_body,
            truncated: response.truncation.map(truncation_name),
            metadata,
        };
        let spare = hold(&self.compressors).pop();
        let mut compressor = spare.unwrap_or_else(|| Compressor::new(GZIP_LEVEL));
        let members = exchange_members(&exchange, &mut compressor);
        hold(&self.compressors).push(compressor);
        WarcMembers {
            bytes: self.backlog.hold(members.bytes),
            response_offset: members.response_offset,
            response_bytes: members.response_bytes,
        }
    }

    fn record_ids(&self) -> [RecordId; 3] {
        let mut random = hold(&self.random);
        [(); 3].map(|()| RecordId::from_random(random.u128(..)))
    }
}

/// Takes a lock whose data stays whole whatever its holder did.
fn hold<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

const fn truncation_name(truncation: Truncation) -> &'static str {
    match truncation {
        Truncation::Length => "length",
        Truncation::Time => "time",
        Truncation::Disconnect => "disconnect",
    }
}

/// Returns a maker of the record that opens every WARC file.
pub(crate) fn warcinfo_maker(
    user_agent: String,
    obeys_robots: bool,
    mut random: Rng,
) -> WarcinfoMaker {
    Box::new(move |file_name, now| {
        let content = WarcInfo {
            software: concat!("bloomcrawl/", env!("CARGO_PKG_VERSION")),
            robots: if obeys_robots { "obey" } else { "ignore" },
            user_agent: &user_agent,
            extra: &[],
        }
        .content();
        Record::new(
            RecordType::Warcinfo,
            RecordId::from_random(random.u128(..)),
            &record::timestamp(now),
            content,
        )
        .field("WARC-Filename", file_name)
        .content_type(WarcInfo::CONTENT_TYPE)
        .to_gzip_member(GZIP_LEVEL)
    })
}
