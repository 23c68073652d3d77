//! The embedded store refuses to open with a part of it gone, rather than to go on with what is left.

#![expect(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

use std::{fs, path::Path};

use store::{CommitBatch, CrawlIdentity, StoreError};
use types::{CanonicalUrl, KeySeed, QueuePosition, QueuedUrl, Via};

const SEED: KeySeed = KeySeed::new(3);

fn identity() -> CrawlIdentity {
    CrawlIdentity {
        crawl_id: "1".repeat(32),
        key_seed: SEED.get(),
        key_version: 1,
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy(&path, &target);
        } else {
            fs::copy(&path, &target).unwrap();
        }
    }
}

#[test]
fn a_keyspace_that_is_gone_is_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let whole = folder.path().join("whole");
    let store = store::embedded::open(&whole, &identity()).unwrap().store;
    let url = CanonicalUrl::from_stored("http://a.example/".to_owned()).unwrap();
    let note = QueuedUrl {
        key: SEED.key(&url),
        position: QueuePosition::default(),
        via: Via::Seed,
        redirect_count: 0,
        referrer: None,
        attempt: 0,
        url,
    };
    store
        .commit(&CommitBatch {
            notes: &[note],
            finished: &[],
            progress: b"p",
        })
        .unwrap();
    store.sync().unwrap();
    drop(store);
    let mut gone_count = 0;
    for entry in fs::read_dir(whole.join("keyspaces")).unwrap() {
        let name = entry.unwrap().file_name();
        // The first is the engine's own.
        if name == "0" {
            continue;
        }
        let damaged = folder.path().join("damaged");
        copy(&whole, &damaged);
        fs::remove_file(damaged.join("keyspaces").join(&name).join("current")).unwrap();
        let refusal = store::embedded::open(&damaged, &identity()).err();
        assert!(
            matches!(refusal, Some(StoreError::Corrupt(_))),
            "without keyspace {name:?}: {refusal:?}"
        );
        fs::remove_dir_all(&damaged).unwrap();
        gone_count += 1;
    }
    assert_eq!(gone_count, 4);
}

#[test]
fn a_lock_file_that_is_gone_is_no_damage_and_can_be_made_anew() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("store");
    drop(store::embedded::open(&place, &identity()).unwrap());
    fs::remove_file(place.join("lock")).unwrap();
    let refusal = store::embedded::open(&place, &identity()).err();
    let Some(StoreError::Backend(words)) = &refusal else {
        panic!("{refusal:?}");
    };
    assert!(words.contains("make an empty file of this name"), "{words}");
    fs::write(place.join("lock"), b"").unwrap();
    assert!(store::embedded::open(&place, &identity()).is_ok());
}
