//! Benchmarks of the workspace; each file under `benches/` is one.
