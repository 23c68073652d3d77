//! The benchmark of the seen test: link streams, the driver that takes them through it, and what it is compared with.

pub mod article;
pub mod child;
pub mod contender;
pub mod driver;
pub mod measured;
pub mod memory_store;
pub mod meter;
pub mod options;
pub mod parent;
pub mod quantity;
pub mod redis;
pub mod server;
pub mod stream;
pub mod table;
pub mod truth;
pub mod workload;
