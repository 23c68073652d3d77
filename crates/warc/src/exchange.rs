//! One exchange with a server as the three records that archive it.

use std::net::IpAddr;

use crate::{Compressor, Record, RecordId, RecordType, WarcInfo, http_response_block, warc_fields};

/// One request and its response, with what else is known of them.
#[derive(Clone, Debug)]
pub struct Exchange<'a> {
    /// The URL requested.
    pub target_uri: &'a str,
    /// When the request was made: UTC, RFC 3339.
    pub date: &'a str,
    /// The identity of the response record; the two others point to it.
    pub response_id: RecordId,
    /// The identity of the request record.
    pub request_id: RecordId,
    /// The identity of the metadata record.
    pub metadata_id: RecordId,
    /// The warcinfo record of the file.
    pub warcinfo_id: Option<RecordId>,
    /// The address connected to.
    pub ip_address: Option<IpAddr>,
    /// The request's head as sent, with its empty line.
    pub request_head: &'a [u8],
    /// The status code.
    pub status: u16,
    /// The header fields of the response, in order.
    pub headers: Vec<(&'a str, &'a [u8])>,
    /// The body: transfer coding removed, content coding kept.
    pub body: &'a [u8],
    /// Why the body was cut, if it was: `length`, `time` or `disconnect`.
    pub truncated: Option<&'a str>,
    /// The fields of the metadata record, such as `fetchTimeMs`, `via`, `hopsFromSeed`; no record without any.
    pub metadata: Vec<(&'a str, String)>,
}

/// The gzip members of an exchange, to be appended to a file as they are.
#[derive(Clone, Debug)]
pub struct ExchangeMembers {
    /// Request, response and metadata record, a member each.
    pub bytes: Vec<u8>,
    /// Where the response's member begins within `bytes`.
    pub response_offset: u64,
    /// The length of the response's member.
    pub response_bytes: u64,
}

/// Turns an exchange into gzip members: request, response, then metadata.
#[must_use]
pub fn exchange_members(exchange: &Exchange<'_>, compressor: &mut Compressor) -> ExchangeMembers {
    let mut bytes = Vec::with_capacity(exchange.body.len() / 4 + 2_048);
    request_record(exchange).append_gzip_member(compressor, &mut bytes);
    let response_offset = bytes.len() as u64;
    response_record(exchange).append_gzip_member(compressor, &mut bytes);
    let response_bytes = bytes.len() as u64 - response_offset;
    if !exchange.metadata.is_empty() {
        metadata_record(exchange).append_gzip_member(compressor, &mut bytes);
    }
    // They wait for a commit, many at a time.
    bytes.shrink_to_fit();
    ExchangeMembers {
        bytes,
        response_offset,
        response_bytes,
    }
}

fn request_record<'a>(exchange: &Exchange<'a>) -> Record<'a> {
    let record = Record::new(
        RecordType::Request,
        exchange.request_id,
        exchange.date,
        exchange.request_head,
    )
    .content_type("application/http; msgtype=request");
    with_address(record, exchange).concurrent_to(exchange.response_id)
}

fn response_record<'a>(exchange: &Exchange<'a>) -> Record<'a> {
    let block = http_response_block(
        exchange.status,
        None,
        exchange.headers.iter().copied(),
        exchange.body,
    );
    let record = Record::new(
        RecordType::Response,
        exchange.response_id,
        exchange.date,
        block.bytes,
    )
    .content_type("application/http; msgtype=response")
    .payload_at(block.payload_offset);
    let record = with_address(record, exchange);
    match exchange.truncated {
        Some(reason) => record.truncated(reason),
        None => record,
    }
}

fn metadata_record<'a>(exchange: &Exchange<'a>) -> Record<'a> {
    let content = warc_fields(
        exchange
            .metadata
            .iter()
            .map(|(name, value)| (*name, value.as_str())),
    );
    let record = Record::new(
        RecordType::Metadata,
        exchange.metadata_id,
        exchange.date,
        content,
    )
    .target_uri(exchange.target_uri)
    .content_type(WarcInfo::CONTENT_TYPE)
    .concurrent_to(exchange.response_id);
    with_warcinfo(record, exchange)
}

fn with_address<'a>(record: Record<'a>, exchange: &Exchange<'a>) -> Record<'a> {
    let record = record.target_uri(exchange.target_uri);
    let record = match exchange.ip_address {
        Some(address) => record.ip_address(address),
        None => record,
    };
    with_warcinfo(record, exchange)
}

fn with_warcinfo<'a>(record: Record<'a>, exchange: &Exchange<'a>) -> Record<'a> {
    match exchange.warcinfo_id {
        Some(id) => record.warcinfo_id(id),
        None => record,
    }
}
