//! Hash functions on real URLs: how many a second, since every extracted link is hashed once.
//!
//! Run it with `BLOOMCRAWL_CORPORA=... cargo bench --package benches --bench hashes`; without the variable it hashes made-up
//! URLs. Options: `--rounds N` (7).

use std::{
    env,
    fs::File,
    hint::black_box,
    io::{BufRead as _, BufReader},
    path::Path,
};

use benches::measure::{is_bench, is_listing, key, line, median, option, timed};
use flate2::read::MultiGzDecoder;
use sha2::{Digest as _, Sha256};
use siphasher::{
    sip::{SipHasher13, SipHasher24},
    sip128,
};
use xxhash_rust::xxh3::xxh3_128_with_seed;

/// The stream of links below the folder that the variable names.
const LINKS_FILE: &str = "corpora/urls/link-stream.tsv.gz";

/// URLs that are made up where there are no real ones.
const MADE_UP_COUNT: u64 = 400_000;

/// A seed or key of the functions that take one.
const SEED: u64 = 7;

type HashFunction = fn(&[u8]) -> u64;

/// The functions by name; the first is ours, to which the others are compared.
const FUNCTIONS: [(&str, HashFunction); 6] = [
    ("xxh3-128", xxh3),
    ("murmur3 x64-128", murmur3),
    ("SipHash-1-3 (64 bits)", sip_1_3),
    ("SipHash-2-4 (64 bits)", sip_2_4),
    ("SipHash-2-4 (128 bits)", sip_2_4_wide),
    ("SHA-256", sha_256),
];

#[expect(
    clippy::cast_possible_truncation,
    reason = "half a hash shows that it was made"
)]
fn xxh3(bytes: &[u8]) -> u64 {
    xxh3_128_with_seed(bytes, SEED) as u64
}

fn murmur3(bytes: &[u8]) -> u64 {
    mur3::murmurhash3_x64_128(bytes, 7).0
}

fn sip_1_3(bytes: &[u8]) -> u64 {
    SipHasher13::new_with_keys(SEED, SEED).hash(bytes)
}

fn sip_2_4(bytes: &[u8]) -> u64 {
    SipHasher24::new_with_keys(SEED, SEED).hash(bytes)
}

fn sip_2_4_wide(bytes: &[u8]) -> u64 {
    sip128::SipHasher24::new_with_keys(SEED, SEED)
        .hash(bytes)
        .h1
}

fn sha_256(bytes: &[u8]) -> u64 {
    let digest = Sha256::digest(bytes);
    digest
        .first_chunk()
        .map_or(0, |first| u64::from_le_bytes(*first))
}

fn main() {
    if is_listing() {
        return;
    }
    let rounds = if is_bench() { 7 } else { 1 };
    let rounds = option("rounds", rounds, "a number of rounds").max(1);
    let urls = real_urls().unwrap_or_else(made_up_urls);
    let bytes_count: usize = urls.iter().map(String::len).sum();
    let mut seconds = [const { Vec::new() }; FUNCTIONS.len()];
    for _ in 0..rounds {
        for ((_, function), seconds) in FUNCTIONS.iter().zip(&mut seconds) {
            let (taken, sum) = timed(|| {
                urls.iter()
                    .fold(0, |sum, url| sum ^ function(black_box(url.as_bytes())))
            });
            black_box(sum);
            seconds.push(taken);
        }
    }
    print(
        urls.len(),
        bytes_count,
        &seconds.map(|seconds| median(&seconds)),
    );
}

#[expect(clippy::cast_precision_loss, reason = "counts are below 2^53")]
fn print(urls_count: usize, bytes_count: usize, seconds: &[f64]) {
    line(format!(
        "{urls_count} URLs of {:.1} bytes on average, one thread, processor time",
        bytes_count as f64 / urls_count as f64
    ));
    line(format!(
        "{:<26}{:>12}{:>10}{:>10}{:>16}",
        "", "M hashes/s", "GB/s", "ns / URL", "xxh3-128 / it"
    ));
    for ((name, _), taken) in FUNCTIONS.iter().zip(seconds) {
        line(format!(
            "{name:<26}{:>12.2}{:>10.2}{:>10.1}{:>16.1}",
            urls_count as f64 / taken / 1e6,
            bytes_count as f64 / taken / 1e9,
            taken * 1e9 / urls_count as f64,
            taken / seconds[0]
        ));
    }
}

/// Reads the real URLs; `None`, with a word on why, without them.
fn real_urls() -> Option<Vec<String>> {
    let Some(shared) = env::var_os("BLOOMCRAWL_CORPORA") else {
        line("BLOOMCRAWL_CORPORA is not set: these are made-up URLs");
        return None;
    };
    let path = Path::new(&shared).join(LINKS_FILE);
    let file = match File::open(&path) {
        Ok(file) => file,
        Err(error) => {
            line(format!(
                "{}: {error}: these are made-up URLs",
                path.display()
            ));
            return None;
        }
    };
    let lines = BufReader::new(MultiGzDecoder::new(file)).lines();
    let urls: Vec<String> = lines
        .map_while(Result::ok)
        .filter_map(|line| Some(line.split_once('\t')?.1.to_owned()))
        .collect();
    (!urls.is_empty()).then_some(urls)
}

/// Makes up URLs that are about as long as real ones.
fn made_up_urls() -> Vec<String> {
    (0..MADE_UP_COUNT)
        .map(|number| {
            let key = key(number);
            let tail = "/index.html".repeat((key % 4) as usize);
            format!("https://host-{}.example/path/{key:x}{tail}", key % 1_000)
        })
        .collect()
}
