//! One lease in, one outcome out: reqwest, DNS, address guard, bounded bodies.
//!
//! [`Fetcher::resolve`] says which address a host has before its first lease, and [`Fetcher::fetch`] sends one request:
//! the route (ordinary, by proxy, or by a connect-to rule) picks a client, whose connector is handed only addresses that
//! the guard let through; the response head and body are read within limits of bytes and time, all bodies together within
//! a bound on memory; errors become kinds of
//! failure. Redirects are returned, never followed, and bodies keep their content coding until [`decode_body`] undoes it.
//! When to ask, how often, and what a page holds is for others to know.

mod address;
mod body;
mod budget;
mod client;
mod config;
mod connect_to;
mod decode;
mod failure;
mod fetch;
mod names;
mod probe;
mod request;
mod resolver;
mod route;
mod zstd;

pub use address::is_public_address;
pub use budget::BodyHold;
pub use config::{FetchConfig, FetcherError};
pub use connect_to::ConnectTo;
pub use decode::{decode_body, decode_cut_body, is_gzip, unpack_gzip};
pub use fetch::{Fetched, Fetcher};
