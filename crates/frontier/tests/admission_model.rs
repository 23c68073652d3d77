//! The seen test and the ledger, driven in random interleavings with deaths in between, against an exact store:
//! nothing is lost, nothing is admitted twice, and no page is finished before what it relies on is durable.

#![expect(
    clippy::unwrap_used,
    reason = "a failed set-up or a broken promise fails the test"
)]

use std::collections::{BTreeMap, HashSet};

use fastrand::Rng;
use frontier::{
    Admission, Ledger, PageToken, Scope, ScopeConfig, ScopeRule, SeenConfig, SeenMode, SeenTest,
    Settled,
};
use proptest::prelude::*;
use types::{Candidate, Canonicalizer, KeySeed, PageTally, UrlKey, Verdict, Via};

/// URLs that pages link to.
const URLS: usize = 300;

/// A page of the test: its number and its links, as numbers of URLs.
type Page = (usize, Vec<usize>);

/// What is on its way to the ledger.
enum Parcel {
    Page {
        token: PageToken,
        admission: Admission,
        finish: (Page, PageTally),
    },
    Settled(Settled),
}

/// What survives a death.
#[derive(Default)]
struct Durable {
    keys: HashSet<UrlKey>,
    finished: HashSet<usize>,
    next_sequence: u64,
}

/// What does not.
struct Run {
    seen: SeenTest,
    ledger: Ledger<(Page, PageTally)>,
    next_token: u64,
    to_admit: Vec<Page>,
    suspects: Vec<Candidate>,
    verdicts: Vec<(Candidate, Verdict)>,
    parcels: Vec<Parcel>,
    committed: Vec<Vec<UrlKey>>,
}

/// The accounts of a crawl that did not die.
#[derive(Default)]
struct Accounts {
    offered: u64,
    notes: u64,
    false_positives: u64,
    store_duplicates: u64,
    tallied: u64,
}

struct World {
    random: Rng,
    urls: Vec<Candidate>,
    scope: Scope,
    config: SeenConfig,
    pages: Vec<Page>,
    durable: Durable,
    run: Run,
    accounts: Accounts,
}

impl Run {
    fn begin(config: &SeenConfig, durable: &Durable, pages: &[Page]) -> Self {
        let seen = SeenTest::new(config, durable.next_sequence).unwrap();
        let stored: Vec<UrlKey> = durable.keys.iter().copied().collect();
        seen.load(&stored);
        let unfinished = pages
            .iter()
            .filter(|(page, _)| !durable.finished.contains(page));
        Self {
            seen,
            ledger: Ledger::new(durable.next_sequence),
            next_token: 0,
            to_admit: unfinished.cloned().collect(),
            suspects: Vec::new(),
            verdicts: Vec::new(),
            parcels: Vec::new(),
            committed: Vec::new(),
        }
    }

    fn is_drained(&self) -> bool {
        self.to_admit.is_empty()
            && self.suspects.is_empty()
            && self.verdicts.is_empty()
            && self.parcels.is_empty()
            && self.ledger.is_empty()
    }
}

impl World {
    fn new(seed: u64, mode: SeenMode, filter_urls: u64, cache_bytes: usize) -> Self {
        let mut random = Rng::with_seed(seed);
        let urls: Vec<Candidate> = (0..URLS).map(candidate).collect();
        let pages: Vec<Page> = (0..60)
            .map(|page| {
                let links_count = random.usize(0..16);
                (
                    page,
                    (0..links_count).map(|_| random.usize(0..URLS)).collect(),
                )
            })
            .collect();
        let config = SeenConfig {
            mode,
            false_positive_rate: 0.3,
            fixed_filter_urls: Some(filter_urls),
            cache_bytes,
            ..SeenConfig::default()
        };
        // URLs whose numbers begin with 7 are refused.
        let scope = ScopeConfig {
            rule: ScopeRule::Any,
            include: Vec::new(),
            exclude: vec!["/7".to_owned()],
            max_depth: None,
            redirects_max: 5,
            repeats_max: u16::MAX,
        };
        let durable = Durable::default();
        let run = Run::begin(&config, &durable, &pages);
        Self {
            random,
            urls,
            scope: Scope::new(&scope, &[]).unwrap(),
            config,
            pages,
            durable,
            run,
            accounts: Accounts::default(),
        }
    }

    fn step(&mut self) {
        match self.random.u8(0..6) {
            0 => self.admit(),
            1 => self.confirm(),
            2 => self.settle(),
            3 => self.deliver(),
            4 => self.commit(),
            _ => self.note(),
        }
    }

    fn admit(&mut self) {
        let Some(page) = take_any(&mut self.run.to_admit, &mut self.random) else {
            return;
        };
        let candidates: Vec<Candidate> =
            page.1.iter().map(|link| self.urls[*link].clone()).collect();
        let offered = candidates.len();
        let token = PageToken(self.run.next_token);
        self.run.next_token += 1;
        let mut tally = PageTally::default();
        let mut admission = self
            .run
            .seen
            .admit(token, candidates, &self.scope, &mut tally);
        let ended = usize::try_from(tally.total()).unwrap();
        assert_eq!(
            offered,
            ended + admission.fresh.len() + admission.suspects.len()
        );
        self.accounts.offered += offered as u64;
        self.run.suspects.append(&mut admission.suspects);
        self.run.parcels.push(Parcel::Page {
            token,
            admission,
            finish: (page, tally),
        });
    }

    /// Reads the store for some suspects; their verdicts stay in hand for a while.
    fn confirm(&mut self) {
        for _ in 0..self.random.usize(1..5) {
            let Some(suspect) = take_any(&mut self.run.suspects, &mut self.random) else {
                return;
            };
            let verdict = if self.durable.keys.contains(&suspect.key) {
                Verdict::Seen
            } else {
                Verdict::FalsePositive
            };
            self.run.verdicts.push((suspect, verdict));
        }
    }

    fn settle(&mut self) {
        if let Some((suspect, verdict)) = take_any(&mut self.run.verdicts, &mut self.random) {
            let settled = self.run.seen.settle(suspect, verdict);
            self.run.parcels.push(Parcel::Settled(settled));
        }
    }

    fn deliver(&mut self) {
        match take_any(&mut self.run.parcels, &mut self.random) {
            Some(Parcel::Page {
                token,
                admission,
                finish,
            }) => self.run.ledger.arrive(token, admission, finish),
            Some(Parcel::Settled(settled)) => self.run.ledger.settled(settled),
            None => {}
        }
    }

    /// Writes a batch, and checks it against all that is durable then.
    fn commit(&mut self) {
        let notes_max = self.random.usize(0..6);
        let batch = self.run.ledger.take_batch(notes_max);
        assert!(batch.notes.len() <= notes_max);
        self.accounts.notes += batch.notes.len() as u64;
        self.accounts.false_positives += batch.false_positive_count;
        self.accounts.store_duplicates += batch.store_duplicate_count;
        for note in &batch.notes {
            assert_eq!(note.position.sequence, self.durable.next_sequence);
            self.durable.next_sequence += 1;
            assert!(
                self.durable.keys.insert(note.key),
                "{} was admitted twice",
                note.url
            );
        }
        for ((page, links), tally) in batch.finished {
            for url in links.iter().map(|link| &self.urls[*link]) {
                let is_settled =
                    self.scope.admits(url).is_err() || self.durable.keys.contains(&url.key);
                assert!(is_settled, "page {page} was finished before {}", url.url);
            }
            assert!(
                self.durable.finished.insert(page),
                "page {page} was finished twice"
            );
            self.accounts.tallied += tally.total();
        }
        let keys = batch.notes.iter().map(|note| note.key).collect();
        self.run.committed.push(keys);
    }

    fn note(&mut self) {
        if let Some(keys) = take_any(&mut self.run.committed, &mut self.random) {
            self.run.seen.noted(keys);
        }
    }

    fn die(&mut self) {
        self.run = Run::begin(&self.config, &self.durable, &self.pages);
    }

    /// Goes on until all is done, and checks the whole.
    fn finish(&mut self) {
        let mut steps_count = 0;
        while !self.run.is_drained() {
            self.step();
            steps_count += 1;
            assert!(steps_count < 100_000, "the crawl does not end");
        }
        for keys in self.run.committed.drain(..) {
            self.run.seen.noted(keys);
        }
        assert_eq!(self.durable.finished.len(), self.pages.len());
        let linked: HashSet<UrlKey> = self
            .pages
            .iter()
            .flat_map(|(_, links)| links)
            .map(|link| &self.urls[*link])
            .filter(|url| self.scope.admits(url).is_ok())
            .map(|url| url.key)
            .collect();
        assert_eq!(self.durable.keys, linked);
        let stats = self.run.seen.stats();
        assert_eq!((stats.suspect_count, stats.unwritten_count), (0, 0));
        assert_eq!(stats.next_sequence, self.durable.next_sequence);
    }
}

fn candidate(number: usize) -> Candidate {
    let url = Canonicalizer::default()
        .canonicalize(&format!("http://example.org/{number}"))
        .unwrap();
    let key = KeySeed::new(1).key(&url);
    Candidate {
        url,
        key,
        depth: 1,
        via: Via::Link,
        redirect_count: 0,
        referrer: None,
    }
}

fn take_any<T>(items: &mut Vec<T>, random: &mut Rng) -> Option<T> {
    if items.is_empty() {
        None
    } else {
        Some(items.swap_remove(random.usize(..items.len())))
    }
}

/// A filter with one line for all URLs, or with several.
fn filter_urls() -> impl Strategy<Value = u64> {
    prop_oneof![Just(1), Just(300)]
}

fn cache_bytes() -> impl Strategy<Value = usize> {
    prop_oneof![Just(0), Just(128), Just(1 << 14)]
}

/// Every mode in which nothing may be lost.
fn modes() -> impl Strategy<Value = SeenMode> {
    prop::sample::select(vec![SeenMode::BloomStore, SeenMode::Exact, SeenMode::Store])
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn accounts_add_up_in_every_interleaving(seed: u64, mode in modes(), filter_urls in filter_urls(), cache_bytes in cache_bytes()) {
        let mut world = World::new(seed, mode, filter_urls, cache_bytes);
        world.finish();
        let Accounts { offered, notes, store_duplicates, tallied, false_positives } = world.accounts;
        prop_assert_eq!(offered, notes + store_duplicates + tallied);
        prop_assert!(false_positives <= notes);
    }

    #[test]
    fn deaths_lose_nothing_and_repeat_nothing(
        seed: u64,
        mode in modes(),
        filter_urls in filter_urls(),
        cache_bytes in cache_bytes(),
        lives in prop::collection::vec(0..400_usize, 1..5),
    ) {
        let mut world = World::new(seed, mode, filter_urls, cache_bytes);
        for steps_count in lives {
            for _ in 0..steps_count {
                world.step();
            }
            world.die();
        }
        world.finish();
    }
}

#[test]
fn the_interleavings_reach_every_kind_of_answer() {
    let mut reached = BTreeMap::new();
    for seed in 0..20 {
        for filter_urls in [1, 300] {
            let mut world = World::new(seed, SeenMode::BloomStore, filter_urls, 128);
            world.finish();
            let accounts = world.accounts;
            *reached.entry("false positives").or_insert(0) += accounts.false_positives;
            *reached.entry("store duplicates").or_insert(0) += accounts.store_duplicates;
            *reached.entry("filter no").or_insert(0) += accounts.notes - accounts.false_positives;
            *reached.entry("tallied").or_insert(0) += accounts.tallied;
        }
    }
    assert!(
        reached.values().all(|count| *count > 50),
        "too rare: {reached:?}"
    );
}
