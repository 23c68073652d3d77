//! What the benchmarks share; each file or folder under `benches/` is one.

mod committing;
pub mod frontier_scale;
pub mod measure;
pub mod seen_test;
