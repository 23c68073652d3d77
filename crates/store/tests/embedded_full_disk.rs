//! The embedded store on a disk that fills up: it says so, and goes on once there is room.

#![expect(clippy::unwrap_used, reason = "a failed unwrap fails the test")]
#![expect(clippy::print_stderr, reason = "a skipped test says why")]

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use store::{CommitBatch, CrawlIdentity, FinishedUrl, Store, StoreError};
use types::{CanonicalUrl, KeySeed, QueuePosition, QueuedUrl, Via};

const SEED: KeySeed = KeySeed::new(3);

/// A small disk of its own.
struct Disk(PathBuf);

impl Disk {
    /// Mounts it at `path`, or returns `None` where this user may not.
    fn mount(path: PathBuf, size: &str) -> Option<Self> {
        fs::create_dir(&path).unwrap();
        mount(&path, size).then_some(Self(path))
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

fn mount(path: &Path, options: &str) -> bool {
    Command::new("mount")
        .args(["-t", "tmpfs", "-o", options, "none"])
        .arg(path)
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

fn open(place: &Path) -> Box<dyn Store> {
    let identity = CrawlIdentity {
        crawl_id: "1".repeat(32),
        key_seed: SEED.get(),
        key_version: 1,
    };
    store::embedded::open(place, &identity).unwrap().store
}

/// Commits a page with a record that nothing shortens.
fn commit(store: &dyn Store, number: u64) -> Result<(), StoreError> {
    let url = CanonicalUrl::from_stored(format!("http://a.example/{number}")).unwrap();
    let note = QueuedUrl {
        key: SEED.key(&url),
        position: QueuePosition::default(),
        via: Via::Seed,
        redirect_count: 0,
        referrer: None,
        attempt: 0,
        url,
    };
    let mut record = vec![0; 200_000];
    fastrand::Rng::with_seed(number).fill(&mut record);
    let finished = FinishedUrl {
        host: note.url.host(),
        position: note.position,
        key: note.key,
        record,
    };
    store.commit(&CommitBatch {
        notes: &[note],
        finished: &[finished],
        progress: b"p",
    })
}

#[test]
fn a_full_disk_is_named_and_what_was_committed_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    // Whether a commit or the engine's worker meets the end of the disk first differs with its size.
    for size in ["size=6m", "size=13m", "size=20m", "size=27m"] {
        let Some(disk) = Disk::mount(folder.path().join(size), size) else {
            eprintln!("skipped: this user may not mount a small disk");
            return;
        };
        let place = disk.0.join("store");
        let store = open(&place);
        let (committed, failure) = (0..1_000)
            .find_map(|number| Some((number, commit(&*store, number).err()?)))
            .unwrap();
        let is_named =
            matches!(&failure, StoreError::DiskFull(text) if text.contains("No space left"));
        assert!(is_named, "{size}: {failure:?}");
        drop(store);
        assert!(mount(&disk.0, "remount,size=200m"));
        let store = open(&place);
        let kept = store.scan_keys(&mut |_| ()).unwrap();
        assert!(
            (committed..=committed + 1).contains(&kept),
            "{size}: {kept} of {committed} commits"
        );
        commit(&*store, committed).unwrap();
    }
}
