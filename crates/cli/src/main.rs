//! The `bloomcrawl` binary.
fn main() {}
