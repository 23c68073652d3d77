//! A deterministic local web: replays WARC files, generates synthetic sites, injects faults, knows the truth.
//!
//! A [`Site`] turns requests into answers: an [`Archive`] of WARC files, a [`Synthetic`] site whose pages and links
//! are computed from a seed, a folder ([`Dirs`]), or any closure. A [`Server`] serves a site on loopback over http and
//! https, whatever host the client believes to talk to, and keeps the log that tests compare a crawl with.
//!
//! ```
//! use std::sync::Arc;
//! use replay::{Server, ServerConfig, SiteAnswer, SiteRequest};
//!
//! let site = |request: &SiteRequest<'_>| match request.path_and_query {
//!     "/" => SiteAnswer::html("<a href=/next>next</a>"),
//!     _ => SiteAnswer::not_found(),
//! };
//! let server = Server::start(ServerConfig::default(), Arc::new(site))?;
//! assert!(server.http_address().ip().is_loopback());
//! assert!(server.log().is_empty());
//! # Ok::<(), replay::ReplayError>(())
//! ```

mod archive;
mod body;
mod certificates;
mod dirs;
mod error;
mod log;
mod server;
mod service;
mod site;
mod synthetic;
mod url_form;

pub use archive::{Archive, Damage};
pub use dirs::Dirs;
pub use error::ReplayError;
pub use log::LogEntry;
pub use server::{Server, ServerConfig};
pub use site::{Fault, Site, SiteAnswer, SiteRequest};
pub use synthetic::{Synthetic, SyntheticConfig};
