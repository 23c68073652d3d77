//! Pages: what parsing found in one response, and the record that remains of it.

use serde::{Deserialize, Serialize};

use crate::{CanonicalUrl, FailureKind, Truncation, UrlRejection, Via};

/// What the parser found in one response.
#[derive(Debug, Default)]
pub struct ParsedPage {
    /// The text of the first `title`, white space collapsed, at most 500 characters.
    pub title: Option<String>,
    /// The name of the encoding used, as in the WHATWG Encoding Standard (`UTF-8`, `windows-1252`).
    /// Empty where the response was not read as text.
    pub charset: &'static str,
    /// What the page asks crawlers not to do.
    pub directives: Directives,
    /// Links of the `Link` fields, then those of the document in its order, duplicates kept, within the limits of number and
    /// bytes.
    pub outlinks: Vec<Outlink>,
    /// Links beyond a limit that were left out.
    pub outlinks_dropped_count: u64,
}

/// One link of a page.
#[derive(Clone, Debug)]
pub struct Outlink {
    /// Where it leads, canonical, or why it cannot be followed.
    pub target: Result<CanonicalUrl, UrlRejection>,
    /// The element it stands in.
    pub kind: LinkKind,
    /// Whether `rel` on the element holds `nofollow`.
    pub is_nofollow: bool,
}

/// What a link was found in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkKind {
    /// `<a href>` or `<area href>`
    Anchor,
    /// `<link rel=canonical|next|prev|alternate href>`, or a `Link` field of these relations
    Link,
    /// `<iframe src>` or `<frame src>`
    Frame,
    /// `<meta http-equiv=refresh>`
    Refresh,
    /// An entry of a sitemap or a feed
    Entry,
    /// A sitemap that a sitemap index names
    Sitemap,
}

/// Robots directives of a page: from `<meta name=robots>`, the crawler's own name there, and `X-Robots-Tag`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Directives {
    /// The page is not to be indexed (recorded, not acted on).
    pub noindex: bool,
    /// No link of the page is to be followed.
    pub nofollow: bool,
}

/// How a URL ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Disposition {
    /// A response was recorded, whatever its status below 500.
    Succeeded,
    /// No usable response after the last attempt.
    Failed,
    /// Never requested: robots.txt forbids it, or its host was given up.
    Disregarded,
}

/// Where the records of a page stand in the WARC files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WarcLocation {
    /// The file's name within the data folder's `warc` folder.
    pub file: String,
    /// The byte offset of the response record.
    pub offset: u64,
    /// The compressed length of the response record.
    pub length: u64,
}

/// What is kept of a finished URL: one line of `pages.jsonl`, one row of the store.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PageRecord {
    /// The canonical URL.
    pub url: String,
    /// How it ended.
    pub disposition: Disposition,
    /// The status of the last response, if any came.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub status: Option<u16>,
    /// When the fetch began, RFC 3339 in UTC with milliseconds.
    pub fetched_at: String,
    /// Milliseconds until the response head.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub first_byte_ms: Option<f64>,
    /// Milliseconds until the last byte.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub total_ms: Option<f64>,
    /// Links followed from a seed.
    pub depth: u32,
    /// How it was discovered.
    pub via: Via,
    /// The page that named it first.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub referrer: Option<String>,
    /// Failed attempts before this outcome.
    pub retry_count: u16,
    /// The media type without parameters, lower case.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub content_type: Option<String>,
    /// The encoding that the page was decoded with.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub charset: Option<String>,
    /// Bytes of the body on the wire.
    pub wire_bytes: u64,
    /// Bytes of the body after content decoding.
    pub body_bytes: u64,
    /// Why the body was cut, if it was.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub truncated: Option<Truncation>,
    /// `sha1:` and the base32 digest of the wire body, the form archives use.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub digest: Option<String>,
    /// The page's title.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub title: Option<String>,
    /// Where a redirect pointed, as the server wrote it; at most as long as a URL of the crawl.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub redirect: Option<String>,
    /// Links extracted, duplicates included.
    pub outlink_count: u64,
    /// Links of these that were new to the crawl at once; those that the filter wrongly claimed to know are not among them.
    pub fresh_count: u64,
    /// The page says `noindex`.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub noindex: bool,
    /// The page says `nofollow`.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub nofollow: bool,
    /// The failure, if it failed or was disregarded.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub error: Option<FailureKind>,
    /// More words on the failure.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub error_detail: Option<String>,
    /// Where its records stand in the WARC files.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub warc: Option<WarcLocation>,
}
