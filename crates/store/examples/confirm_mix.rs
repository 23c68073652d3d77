//! Measures a store under the mix of a crawl whose recent-key cache is in front: commits of fresh keys, and confirms
//! that are mostly hits.
//!
//! `confirm_mix FOLDER|postgres://URI [KEYS]` writes KEYS (2,000,000) in batches of 1,000, each followed by a confirm
//! of 1,000 keys, 90 % of them known, and a sync for every 50 batches; then it kills nothing and flushes nothing, opens
//! the store again, and confirms KEYS more. Prints one line of figures a phase.

use std::{
    error::Error,
    fs,
    io::{Write as _, stdout},
    path::Path,
    time::Instant,
};

use store::{CommitBatch, CrawlIdentity, FinishedUrl, OpenedStore, StoreError};
use types::{CanonicalUrl, KeySeed, QueuePosition, QueuedUrl, UrlKey, Via};

const BATCH_LENGTH: usize = 1_000;
const BATCH: u64 = BATCH_LENGTH as u64;
const SEED: KeySeed = KeySeed::new(1);

#[expect(clippy::cast_precision_loss, reason = "printed without decimals")]
fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let place = arguments
        .next()
        .ok_or("usage: confirm_mix FOLDER|postgres://URI [KEYS]")?;
    let key_count: u64 = arguments
        .next()
        .map_or(Ok(2_000_000), |text| text.parse())?;
    let mut phase = Phase::begin();
    let opened = open(&place)?;
    let store = opened.store;
    let mut waiting: Vec<QueuedUrl> = Vec::new();
    for first in (0..key_count).step_by(BATCH_LENGTH) {
        let notes: Vec<_> = (first..first + BATCH).map(note).collect();
        let record = vec![b'r'; 400];
        let done: Vec<FinishedUrl> = waiting
            .drain(..)
            .take(BATCH_LENGTH / 10)
            .map(|note| FinishedUrl {
                host: note.url.host(),
                position: note.position,
                key: note.key,
                record: record.clone(),
            })
            .collect();
        store.commit(&CommitBatch {
            notes: &notes,
            finished: &done,
            progress: &[b'p'; 1_000],
        })?;
        waiting = notes;
        confirm(&*store, first + BATCH)?;
        if first / BATCH % 50 == 49 {
            store.sync()?;
        }
    }
    phase.end("commit and confirm", key_count)?;
    drop(store);
    phase = Phase::begin();
    let store = open(&place)?.store;
    phase.end("reopen", key_count)?;
    phase = Phase::begin();
    for _ in 0..key_count / BATCH {
        confirm(&*store, key_count)?;
    }
    phase.end("confirm", key_count)?;
    phase = Phase::begin();
    store.scan_keys(&mut |_| ())?;
    phase.end("scan keys", key_count)?;
    phase = Phase::begin();
    store.queued_hosts(&mut |_, _, _| ())?;
    phase.end("queued hosts", key_count)?;
    if Path::new(&place).is_dir() {
        writeln!(
            stdout(),
            "{:.0} bytes a key on disk, all in all",
            folder_bytes(Path::new(&place))? as f64 / key_count as f64
        )?;
    }
    Ok(())
}

fn open(place: &str) -> Result<OpenedStore, StoreError> {
    let identity = CrawlIdentity {
        crawl_id: "0".repeat(32),
        key_seed: SEED.get(),
        key_version: 1,
    };
    if place.starts_with("postgres") {
        store::postgres::open(place, "confirm_mix", &identity)
    } else {
        store::embedded::open(Path::new(place), &identity)
    }
}

/// The `number`-th URL: of 1,000 hosts, 50 pages of one after another.
fn url(number: u64) -> CanonicalUrl {
    let text = format!(
        "https://www.host{}.example/path/to/page-{number}.html",
        number / 50 % 1_000
    );
    CanonicalUrl::from_stored(text).expect("the text has the outline of a URL")
}

fn note(number: u64) -> QueuedUrl {
    let url = url(number);
    QueuedUrl {
        key: SEED.key(&url),
        position: QueuePosition {
            priority: 1,
            depth: 3,
            sequence: number,
        },
        via: Via::Link,
        redirect_count: 0,
        referrer: Some(format!("{}/path/to/page-{}.html", url.host_str(), number / 50 * 50).into()),
        attempt: 0,
        url,
    }
}

/// Confirms one batch of random keys, nine of ten among the first `known_count`.
fn confirm(store: &dyn store::Store, known_count: u64) -> Result<(), Box<dyn Error>> {
    let mut keys: Vec<UrlKey> = (0..BATCH)
        .map(|index| {
            let number = fastrand::u64(0..known_count);
            SEED.key(&url(if index % 10 == 0 {
                u64::MAX - number
            } else {
                number
            }))
        })
        .collect();
    keys.sort_unstable();
    keys.dedup();
    let present = store
        .confirm(&keys)?
        .iter()
        .filter(|present| **present)
        .count();
    if present * 10 < keys.len() * 8 || present * 10 > keys.len() * 95 / 10 * 10 {
        return Err(format!(
            "{present} of {} keys are present, about nine of ten are right",
            keys.len()
        )
        .into());
    }
    Ok(())
}

struct Phase {
    start: Instant,
    cpu_seconds: f64,
}

impl Phase {
    fn begin() -> Self {
        Self {
            start: Instant::now(),
            cpu_seconds: cpu_seconds(),
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "printed to two places")]
    fn end(&self, name: &str, count: u64) -> Result<(), Box<dyn Error>> {
        let millions = count as f64 / 1e6;
        let wall = self.start.elapsed().as_secs_f64();
        let cpu = cpu_seconds() - self.cpu_seconds;
        writeln!(
            stdout(),
            "{name:20} {wall:7.2} s, {cpu:7.2} CPU-s, {:6.2} CPU-s a million, peak {} MiB, now {} MiB",
            cpu / millions,
            status_mib("VmHWM:"),
            status_mib("VmRSS:"),
        )?;
        Ok(())
    }
}

/// CPU seconds of this process; 0 where the system does not say.
fn cpu_seconds() -> f64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after_name = stat.rsplit(')').next().unwrap_or_default();
    let ticks: f64 = after_name
        .split_whitespace()
        .skip(11)
        .take(2)
        .filter_map(|field| field.parse::<f64>().ok())
        .sum();
    ticks / 100.0
}

fn status_mib(field: &str) -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status
        .lines()
        .find(|line| line.starts_with(field))
        .unwrap_or_default();
    line.split_whitespace()
        .nth(1)
        .and_then(|kib| kib.parse::<u64>().ok())
        .unwrap_or(0)
        / 1_024
}

fn folder_bytes(folder: &Path) -> std::io::Result<u64> {
    use std::os::unix::fs::MetadataExt;
    let mut bytes = 0;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let metadata = entry.metadata()?;
        // A journal is given its full length at once, so what counts is what is allotted.
        bytes += if metadata.is_dir() {
            folder_bytes(&entry.path())?
        } else {
            metadata.blocks() * 512
        };
    }
    Ok(bytes)
}
