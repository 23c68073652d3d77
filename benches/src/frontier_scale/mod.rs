//! The scale benchmark of the durable frontier: seen test, ledger, workbench and store as the engine joins them, on a
//! generated web without sockets.

pub mod crawl;
pub mod demand;
pub mod disk;
pub mod mark;
pub mod memory;
pub mod options;
pub mod plan;
pub mod run;
pub mod web;
