//! One response in, outlinks and directives out; total, bounded work.
//!
//! [`Parser::parse`] never fails: what a page has is taken, what is broken in it is left. The media type says whether
//! there is markup at all, `charset` how its bytes become text, and a `source` of links reads the text: the tree of
//! html5ever and scraper (`tree`), or, for a page nested too deeply or grown too large for a tree, its tokens alone
//! (`tokens`). Documents that only list pages, sitemaps and feeds, are told by their root element (`listing`).

mod charset;
mod content_type;
mod directives;
mod feed;
mod flood;
mod gate;
mod link_header;
mod listing;
mod page;
mod prescan;
mod refresh;
mod sink;
mod source;
mod tokens;
mod tree;
mod xml;

pub use page::{ENTRIES_MAX, Parser, ParserConfig, outlink_bytes_max};
