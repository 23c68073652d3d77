//! Where a store of either backend lives during a test, and the values put into it.

use store::{CrawlIdentity, FinishedUrl, OpenedStore, Store, StoreError, testing::Cluster};
use tempfile::TempDir;
use types::{CanonicalUrl, Host, KeySeed, QueuePosition, QueuedUrl, UrlKey, Via};

/// The seed of every test's crawl: its top bit is set, since numbers of `PostgreSQL` are signed.
pub(crate) const SEED: KeySeed = KeySeed::new(0xfeed_0000_0000_0001);

/// A store's place, which outlives its openings.
pub(crate) enum Place {
    Embedded(TempDir),
    Postgres(String),
}

/// A schema's name that needs its quotes.
const SCHEMA: &str = "My \"crawl\"; DROP TABLE page";

impl Place {
    pub(crate) fn embedded() -> Self {
        Self::Embedded(tempfile::tempdir().unwrap())
    }

    pub(crate) fn postgres() -> Self {
        Self::Postgres(Cluster::shared().create_database())
    }

    pub(crate) fn open_as(&self, offered: &CrawlIdentity) -> Result<OpenedStore, StoreError> {
        match self {
            Self::Embedded(folder) => store::embedded::open(&folder.path().join("store"), offered),
            Self::Postgres(uri) => store::postgres::open(uri, SCHEMA, offered),
        }
    }

    pub(crate) fn is_there(&self) -> bool {
        match self {
            Self::Embedded(folder) => store::embedded::is_there(&folder.path().join("store")),
            Self::Postgres(uri) => store::postgres::is_there(uri, SCHEMA).unwrap(),
        }
    }

    pub(crate) fn open(&self) -> Box<dyn Store> {
        self.open_as(&identity()).unwrap().store
    }

    /// Makes the stored format that of a later version.
    pub(crate) fn spoil_format(&self) {
        match self {
            Self::Embedded(folder) => {
                let database = fjall::Database::builder(folder.path().join("store"))
                    .open()
                    .unwrap();
                let meta = database
                    .keyspace("meta", fjall::KeyspaceCreateOptions::default)
                    .unwrap();
                meta.insert("format", 99_u32.to_be_bytes()).unwrap();
            }
            Self::Postgres(uri) => {
                let schema = SCHEMA.replace('"', "\"\"");
                Cluster::execute(
                    uri,
                    &format!("UPDATE \"{schema}\".meta SET format_version = 99"),
                );
            }
        }
    }
}

pub(crate) fn identity() -> CrawlIdentity {
    CrawlIdentity {
        crawl_id: "00112233445566778899aabbccddeeff".to_owned(),
        key_seed: SEED.get(),
        key_version: types::KEY_VERSION,
    }
}

pub(crate) fn position(priority: u8, depth: u32, sequence: u64) -> QueuePosition {
    QueuePosition {
        priority,
        depth,
        sequence,
    }
}

pub(crate) fn key(text: &str) -> UrlKey {
    SEED.key(&CanonicalUrl::from_stored(text.to_owned()).unwrap())
}

pub(crate) fn note_at(text: &str, position: QueuePosition) -> QueuedUrl {
    QueuedUrl {
        url: CanonicalUrl::from_stored(text.to_owned()).unwrap(),
        key: key(text),
        position,
        via: Via::Link,
        redirect_count: 0,
        referrer: Some("http://referrer.example/".into()),
        attempt: 0,
    }
}

pub(crate) fn note(text: &str, sequence: u64) -> QueuedUrl {
    note_at(text, position(1, 1, sequence))
}

/// Notes of `count` pages of one host, numbered from `first`.
pub(crate) fn notes_of(host: &str, first: u64, count: u64) -> Vec<QueuedUrl> {
    (first..first + count)
        .map(|sequence| note(&format!("{host}/page/{sequence}"), sequence))
        .collect()
}

pub(crate) fn finished(note: &QueuedUrl) -> FinishedUrl {
    let record = format!("{{\"url\":\"{}\"}}", note.url).into_bytes();
    FinishedUrl {
        host: note.url.host(),
        position: note.position,
        key: note.key,
        record,
    }
}

/// The keys of `notes` as a confirm wants them.
pub(crate) fn sorted_keys<'a>(notes: impl IntoIterator<Item = &'a QueuedUrl>) -> Vec<UrlKey> {
    let mut keys: Vec<_> = notes.into_iter().map(|note| note.key).collect();
    keys.sort_unstable();
    keys.dedup();
    keys
}

/// Commits with the progress `p`.
pub(crate) fn commit(store: &dyn Store, notes: &[QueuedUrl], finished: &[FinishedUrl]) {
    store
        .commit(&store::CommitBatch {
            notes,
            finished,
            progress: b"p",
        })
        .unwrap();
}

/// The texts of a host's whole queue, in order.
pub(crate) fn queue_of(store: &dyn Store, host: &str) -> Vec<String> {
    let queued = store
        .read_queue(&Host::new(host), QueuePosition::default(), usize::MAX)
        .unwrap();
    queued.iter().map(|queued| queued.url.to_string()).collect()
}

/// Every page record.
pub(crate) fn pages(store: &dyn Store) -> Vec<(UrlKey, Vec<u8>)> {
    let mut pages = Vec::new();
    store
        .scan_pages(&mut |key, record| pages.push((key, record.to_vec())))
        .unwrap();
    pages.sort();
    pages
}

/// Every key, sorted.
pub(crate) fn keys(store: &dyn Store) -> Vec<UrlKey> {
    let mut keys = Vec::new();
    let count = store
        .scan_keys(&mut |batch| keys.extend_from_slice(batch))
        .unwrap();
    assert_eq!(count, keys.len() as u64);
    keys.sort();
    keys
}

/// Every host with a queue: its text, the count, the first position.
pub(crate) fn hosts(store: &dyn Store) -> Vec<(String, u64, QueuePosition)> {
    let mut hosts = Vec::new();
    store
        .queued_hosts(&mut |host, count, first| hosts.push((host.to_string(), count, first)))
        .unwrap();
    hosts.sort();
    hosts
}
