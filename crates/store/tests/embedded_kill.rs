//! The embedded store keeps every commit that returned when its process is killed.

#![expect(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

use std::{
    env,
    io::{BufRead as _, BufReader, Write as _},
    path::Path,
    process::{Command, Stdio},
};

use store::{CommitBatch, CrawlIdentity, FinishedUrl, OpenedStore};
use types::{CanonicalUrl, Host, KeySeed, QueuePosition, QueuedUrl, Via};

/// Set for the child: the folder to write to until it is killed.
const FOLDER_VARIABLE: &str = "STORE_TEST_KILLED_WRITER";
const BATCH: u64 = 20;
const SEED: KeySeed = KeySeed::new(3);

fn open(folder: &Path) -> OpenedStore {
    let identity = CrawlIdentity {
        crawl_id: "1".repeat(32),
        key_seed: SEED.get(),
        key_version: 1,
    };
    store::embedded::open(folder, &identity).unwrap()
}

fn note(sequence: u64) -> QueuedUrl {
    let url = CanonicalUrl::from_stored(format!("http://a.example/{sequence}")).unwrap();
    QueuedUrl {
        key: SEED.key(&url),
        position: QueuePosition {
            priority: 0,
            depth: 0,
            sequence,
        },
        via: Via::Link,
        redirect_count: 0,
        referrer: None,
        attempt: 0,
        url,
    }
}

/// The child's part: commits without end, and says after each commit that it returned.
#[test]
fn write_until_killed() {
    let Some(folder) = env::var_os(FOLDER_VARIABLE) else {
        return;
    };
    let opened = open(Path::new(&folder));
    let first_batch = opened.store.next_sequence().unwrap() / BATCH;
    for batch in first_batch.. {
        let notes: Vec<_> = (batch * BATCH..(batch + 1) * BATCH).map(note).collect();
        // The first of each batch before is finished, with a record large enough to reach the journal in many writes.
        let done: Vec<FinishedUrl> = batch
            .checked_sub(1)
            .map(|before| note(before * BATCH))
            .into_iter()
            .map(|note| FinishedUrl {
                host: note.url.host(),
                position: note.position,
                key: note.key,
                record: vec![b'x'; 30_000],
            })
            .collect();
        let progress = batch.to_string().into_bytes();
        opened
            .store
            .commit(&CommitBatch {
                notes: &notes,
                finished: &done,
                progress: &progress,
            })
            .unwrap();
        writeln!(std::io::stdout(), "committed {batch}").unwrap();
        std::io::stdout().flush().unwrap();
    }
}

/// Lets a child commit `commits` times more, kills it, and returns the last commit that it saw return.
fn kill_after(folder: &Path, commits: usize) -> u64 {
    let mut child = Command::new(env::current_exe().unwrap())
        .args(["--exact", "write_until_killed", "--nocapture"])
        .env(FOLDER_VARIABLE, folder)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap())
        .lines()
        .map(Result::unwrap);
    let mut committed = lines.filter_map(|line| {
        line.split_once("committed ")
            .map(|(_, batch)| batch.parse().unwrap())
    });
    let mut last = committed.by_ref().take(commits).last().unwrap();
    child.kill().unwrap();
    // What it said before it died counts as well.
    if let Some(later) = committed.last() {
        last = later;
    }
    child.wait().unwrap();
    last
}

#[test]
fn every_commit_that_returned_survives_a_kill() {
    let folder = tempfile::tempdir().unwrap();
    let mut random = fastrand::Rng::with_seed(11);
    for _ in 0..6 {
        let last = kill_after(folder.path(), random.usize(1..400));
        let opened = open(folder.path());
        let store = opened.store;
        let stored: u64 = String::from_utf8(opened.progress.unwrap())
            .unwrap()
            .parse()
            .unwrap();
        assert!(
            stored == last || stored == last + 1,
            "{stored} is stored, the last to return was {last}"
        );
        let count = (stored + 1) * BATCH;
        assert_eq!(store.next_sequence().unwrap(), count);
        let mut keys: Vec<_> = (0..count).map(|sequence| note(sequence).key).collect();
        keys.sort_unstable();
        assert!(store.confirm(&keys).unwrap().iter().all(|present| *present));
        assert_eq!(store.scan_keys(&mut |_| ()).unwrap(), count);
        let queued = store
            .read_queue(
                &Host::new("http://a.example"),
                QueuePosition::default(),
                usize::MAX,
            )
            .unwrap();
        let expected =
            (0..count).filter(|sequence| sequence % BATCH != 0 || *sequence == stored * BATCH);
        assert!(
            queued
                .iter()
                .map(|queued| queued.position.sequence)
                .eq(expected)
        );
        let mut page_count = 0;
        store
            .scan_pages(&mut |_, record| page_count += u64::from(record.len() == 30_000))
            .unwrap();
        assert_eq!(page_count, stored);
    }
}
