//! A model of death: random histories of commits, checkpoints, kills and power cuts over the real files, after each of which
//! the filter that is read back must know every key that the store has.
#![expect(clippy::unwrap_used, reason = "a failed set-up fails the test")]

use std::{collections::BTreeMap, fs, path::Path};

use fastrand::Rng;
use frontier::{PageToken, Scope, ScopeConfig, ScopeRule};
use store::{CommitBatch, Store, StoreCounters, StoreError};
use types::{
    Candidate, CanonicalUrl, Host, KeySeed, PageTally, QueuePosition, QueuedUrl, UrlKey, Via,
};

use super::*;
use crate::{
    Limits, OpeningEvent,
    saved::SavedProgress,
    seen::{self, OpenedSeen, SnapshotUse},
};

const SEED: KeySeed = KeySeed::new(3);
/// Deaths of one world.
const DEATHS: u32 = 6;

/// The worlds of one run: some, or as many as `BLOOMCRAWL_TEST_WORLDS` says.
fn world_count() -> u64 {
    std::env::var("BLOOMCRAWL_TEST_WORLDS")
        .ok()
        .and_then(|count| count.parse().ok())
        .unwrap_or(2_000)
}

fn url(number: u64) -> CanonicalUrl {
    CanonicalUrl::from_stored(format!("http://a.example/{number}")).unwrap()
}

fn note(number: u64, sequence: u64) -> QueuedUrl {
    let url = url(number);
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

/// A store of nothing but keys, commit by commit; its order of scanning is not that of the notes.
#[derive(Default)]
struct Keys(Vec<Vec<UrlKey>>);

impl Keys {
    fn all(&self) -> Vec<UrlKey> {
        self.0.iter().flatten().copied().collect()
    }

    fn label(&self) -> SnapshotLabel {
        let mut label = SnapshotLabel::new("model".to_owned(), 0, 0);
        label.add(self.all().into_iter());
        label
    }
}

impl Store for Keys {
    fn confirm(&self, keys: &[UrlKey]) -> Result<Vec<bool>, StoreError> {
        Ok(vec![true; keys.len()])
    }
    fn commit(&self, _: &CommitBatch<'_>) -> Result<(), StoreError> {
        Ok(())
    }
    fn is_durable_at_commit(&self) -> bool {
        true
    }
    fn sync(&self) -> Result<(), StoreError> {
        Ok(())
    }
    fn read_queue(
        &self,
        _: &Host,
        _: QueuePosition,
        _: usize,
    ) -> Result<Vec<QueuedUrl>, StoreError> {
        Ok(Vec::new())
    }
    fn queued_hosts(&self, _: &mut dyn FnMut(Host, u64, QueuePosition)) -> Result<(), StoreError> {
        Ok(())
    }
    fn scan_keys(&self, each: &mut dyn FnMut(&[UrlKey])) -> Result<u64, StoreError> {
        let mut all = self.all();
        all.sort_unstable();
        all.chunks(7).for_each(each);
        Ok(all.len() as u64)
    }
    fn scan_pages(&self, _: &mut dyn FnMut(UrlKey, &[u8])) -> Result<(), StoreError> {
        Ok(())
    }
    fn next_sequence(&self) -> Result<u64, StoreError> {
        Ok(self.all().len() as u64)
    }
    fn counters(&self) -> StoreCounters {
        StoreCounters::default()
    }
}

/// What a world has come to.
struct World {
    random: Rng,
    config: CrawlConfig,
    store: Keys,
    /// Commits that survive a power cut.
    synced_commits: usize,
    /// How far each file of the log survives one.
    synced_lengths: BTreeMap<String, usize>,
    next_url: u64,
    loaded_count: u32,
}

impl World {
    /// Opens, and asserts that every key of the store is known.
    fn open(&mut self) -> (SeenTest, bool) {
        let wanted = self.store.label();
        let mut events = Vec::new();
        let OpenedSeen {
            seen,
            holds,
            snapshot_use,
        } = seen::open(&self.config, &self.store, &wanted, &mut |event| {
            events.push(event);
        })
        .unwrap();
        assert_eq!(holds, wanted);
        let is_snapshot_loaded = snapshot_use == SnapshotUse::Loaded;
        self.loaded_count += u32::from(is_snapshot_loaded);
        let is_told = matches!(events[..], [OpeningEvent::SnapshotLoaded { .. }]);
        assert_eq!(is_told, is_snapshot_loaded, "{events:?}");
        (seen, is_snapshot_loaded)
    }

    /// One run, up to its death.
    fn live(&mut self) {
        let (seen, is_loaded) = self.open();
        let seen = Arc::new(seen);
        let live = Arc::new(Live::new(Limits::default(), &SavedProgress::default()));
        let label = self.store.label();
        let (mut checkpoints, saver) = pair(&self.config, &seen, &live, label, is_loaded);
        let mut due = None;
        for _ in 0..self.random.u32(1..12) {
            match self.random.u32(0..10) {
                0..5 => {
                    if !self.commit(&seen, &mut checkpoints) {
                        break;
                    }
                }
                5..7 => {
                    checkpoints.begin_segment();
                    due = Some(checkpoints.label.clone());
                }
                7..9 => {
                    if let Some(label) = due.take() {
                        saver.save(&label);
                    }
                }
                _ => {
                    checkpoints.sync();
                    self.synced_commits = self.store.0.len();
                    self.synced_lengths = lengths(&self.config.data);
                }
            }
        }
        if self.random.bool() {
            self.cut_power();
        }
    }

    /// Admits and logs; returns whether the store took it, or all died before.
    fn commit(&mut self, seen: &SeenTest, checkpoints: &mut Checkpoints) -> bool {
        let first = self.store.all().len() as u64;
        let count = self.random.u64(1..20);
        let notes: Vec<QueuedUrl> = (0..count)
            .map(|index| note(self.next_url + index, first + index))
            .collect();
        // The URLs after these are on their way, and may never get to the store.
        let admitted: Vec<UrlKey> = (0..count + self.random.u64(0..5))
            .map(|index| SEED.key(&url(self.next_url + index)))
            .collect();
        seen.load(&admitted);
        self.next_url += count;
        checkpoints.log(&notes);
        if self.random.u32(0..10) == 0 {
            return false;
        }
        self.store
            .0
            .push(notes.iter().map(|note| note.key).collect());
        true
    }

    /// Loses what was not synced: commits from the end of the store, bytes from the ends of the log's files, or puts
    /// other bytes in their place. Snapshots are synced before they count.
    fn cut_power(&mut self) {
        let random = &mut self.random;
        let kept = random.usize(self.synced_commits..=self.store.0.len());
        self.store.0.truncate(kept);
        for (name, length) in lengths(&self.config.data) {
            let synced = self.synced_lengths.get(&name).copied().unwrap_or(0);
            let path = self.config.data.join(&name);
            let mut bytes = fs::read(&path).unwrap();
            let cut = random.usize(synced.min(length)..=length);
            if random.bool() {
                bytes.truncate(cut);
            } else {
                bytes[cut..].fill(0);
            }
            fs::write(&path, bytes).unwrap();
        }
        if random.u32(0..4) == 0 {
            fs::write(self.config.data.join("filter.snapshot.new"), b"BLMF").unwrap();
        }
    }
}

/// The lengths of the log's files.
fn lengths(data: &Path) -> BTreeMap<String, usize> {
    fs::read_dir(data)
        .unwrap()
        .map(|entry| entry.unwrap())
        .filter_map(|entry| Some((entry.file_name().into_string().ok()?, entry)))
        .filter(|(name, _)| name.starts_with("keys-"))
        .map(|(name, entry)| (name, fs::read(entry.path()).unwrap().len()))
        .collect()
}

/// Offers every key of the store again: none may be taken for new.
fn assert_all_known(world: &mut World) {
    let (seen, _) = world.open();
    let config = ScopeConfig {
        rule: ScopeRule::Any,
        include: Vec::new(),
        exclude: Vec::new(),
        max_depth: None,
        redirects_max: 10,
        repeats_max: u16::MAX,
    };
    let scope = Scope::new(&config, &[]).unwrap();
    let numbers: BTreeMap<UrlKey, u64> = (0..world.next_url)
        .map(|number| (SEED.key(&url(number)), number))
        .collect();
    let candidates = world
        .store
        .all()
        .into_iter()
        .map(|key| Candidate {
            key,
            url: url(numbers[&key]),
            depth: 0,
            via: Via::Link,
            redirect_count: 0,
            referrer: None,
        })
        .collect();
    let admission = seen.admit(PageToken(1), candidates, &scope, &mut PageTally::default());
    assert!(
        admission.fresh.is_empty(),
        "{} keys of the store were forgotten",
        admission.fresh.len()
    );
}

#[test]
fn no_death_makes_the_filter_forget_a_key_of_the_store() {
    let mut loaded_count = 0;
    for seed in 0..world_count() {
        let data = tempfile::tempdir().unwrap();
        let mut world = World {
            random: Rng::with_seed(seed),
            config: CrawlConfig {
                data: data.path().to_path_buf(),
                fixed_filter_urls: Some(2_000),
                huge_pages: false,
                cache_bytes: 0,
                ..CrawlConfig::default()
            },
            store: Keys::default(),
            synced_commits: 0,
            synced_lengths: BTreeMap::new(),
            next_url: 0,
            loaded_count: 0,
        };
        let told = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            for _ in 0..DEATHS {
                world.live();
                assert_all_known(&mut world);
            }
        }));
        assert!(told.is_ok(), "the world of seed {seed} failed");
        loaded_count += world.loaded_count;
    }
    assert!(loaded_count > 0, "no snapshot was ever used");
}
