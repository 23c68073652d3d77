//! A deterministic local web: replays WARC files, generates synthetic sites, injects faults, knows the truth.
