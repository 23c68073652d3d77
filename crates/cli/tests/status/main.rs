//! `bloomcrawl status` and `bloomcrawl verify`, from outside.

mod crawl;
mod damaged;
mod seen;
#[path = "../support/mod.rs"]
mod support;
