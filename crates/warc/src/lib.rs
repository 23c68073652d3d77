//! WARC 1.1 records and CDXJ lines to bytes and back.
//!
//! Writing is pure: a [`Record`] becomes bytes ([`Record::to_bytes`]) or a gzip member
//! ([`Record::to_gzip_member`]), so callers compress on whichever thread they like and only append. Reading streams
//! over any `BufRead` and bears with what real files have; see [`Reader`].
//!
//! The format is ISO 28500:2017 (WARC 1.1).

mod cdxj;
mod digest;
mod exchange;
mod fields;
mod gzip;
mod http_block;
mod http_response;
mod reader;
mod record;
mod source;
mod warcinfo;

pub use cdxj::{CdxError, CdxLine};
pub use digest::payload_digest;
pub use exchange::{Exchange, ExchangeMembers, exchange_members};
pub use fields::Fields;
pub use gzip::Compressor;
pub use http_block::{HttpBlock, http_response_block, reason_phrase};
pub use http_response::{HttpError, HttpResponse, parse_http_response};
pub use reader::{ReadError, ReadErrorKind, ReadRecord, Reader, ReaderLimits};
pub use record::{Record, RecordId, RecordType, Revisited};
pub use source::Position;
pub use warcinfo::{WarcInfo, warc_fields};
