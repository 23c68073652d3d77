//! What a request says of itself: its header fields, and its head for archives.

use http::{
    HeaderMap, HeaderValue,
    header::{ACCEPT, ACCEPT_ENCODING, HOST, USER_AGENT},
};
use types::CanonicalUrl;

/// Pages first, then anything: what is no page still has to be recorded.
const ACCEPT_VALUE: &str = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";
/// The content codings that [`crate::decode_body`] knows.
const ACCEPT_ENCODING_VALUE: &str = "gzip, deflate, br, zstd";

/// Returns the fields of a request; the client adds `Host` unless it is given here.
pub(crate) fn fields(user_agent: &HeaderValue, host_field: Option<&HeaderValue>) -> HeaderMap {
    let mut fields = HeaderMap::with_capacity(4);
    fields.insert(ACCEPT, HeaderValue::from_static(ACCEPT_VALUE));
    fields.insert(
        ACCEPT_ENCODING,
        HeaderValue::from_static(ACCEPT_ENCODING_VALUE),
    );
    fields.insert(USER_AGENT, user_agent.clone());
    if let Some(host) = host_field {
        fields.insert(HOST, host.clone());
    }
    fields
}

/// Returns the request's head in the form of HTTP/1.1, which archives hold whatever the version spoken; the order of
/// the fields is the client's.
pub(crate) fn head(url: &CanonicalUrl, user_agent: &str) -> Vec<u8> {
    let path = url.path_and_query();
    let host = url.host();
    format!(
        "GET {path} HTTP/1.1\r\nAccept: {ACCEPT_VALUE}\r\nAccept-Encoding: {ACCEPT_ENCODING_VALUE}\r\n\
         User-Agent: {user_agent}\r\nHost: {}\r\n\r\n",
        host.authority()
    )
    .into_bytes()
}
