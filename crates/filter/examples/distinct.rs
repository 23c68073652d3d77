//! Prints the distinct lines of stdin, in order, in a fraction of the memory that a set of them would take:
//! `seq 1000000 | cargo run --release -p filter --example distinct > lines`.
//!
//! A filter's "yes" may be wrong, and here nothing confirms it: of the lines that come first, up to the rate of false
//! positives are lost. How many, it says at the end.

use std::{
    error::Error,
    io::{self, BufRead as _, Write as _},
};

use filter::{Answer, GrowingFilter, GrowthConfig};
use xxhash_rust::xxh3::xxh3_128;

fn main() -> Result<(), Box<dyn Error>> {
    let filter = GrowingFilter::new(&GrowthConfig {
        expected_count: 10_000_000,
        rate: 0.001,
        ..GrowthConfig::default()
    })?;
    let mut out = io::BufWriter::new(io::stdout().lock());
    let mut lines_count = 0_u64;
    for line in io::stdin().lock().split(b'\n') {
        let line = line?;
        let reader = filter.read();
        if reader.check_and_insert(xxh3_128(&line)) == Answer::New {
            out.write_all(&line)?;
            out.write_all(b"\n")?;
        }
        drop(reader);
        filter.grow_if_full(|_| {});
        lines_count += 1;
    }
    out.flush()?;
    let stats = filter.stats();
    writeln!(
        io::stderr(),
        "{} of {lines_count} lines, with {} bytes of memory; about {:.0} others were lost",
        stats.item_count,
        stats.size_bytes,
        stats.expected_lost
    )?;
    Ok(())
}
