//! Eight parse threads, a confirming thread and a committing one, overlapping links and a filter that is mostly wrong:
//! each URL is noted exactly once, finishes keep their order, and the accounts add up.

#![expect(
    clippy::unwrap_used,
    reason = "a failed set-up or a broken promise fails the test"
)]

use std::{
    collections::HashSet,
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering::Relaxed},
        mpsc::{self, Receiver, SyncSender},
    },
    thread,
};

use fastrand::Rng;
use frontier::{
    Admission, Ledger, PageToken, Scope, ScopeConfig, ScopeRule, SeenConfig, SeenMode, SeenStats,
    SeenTest, Settled,
};
use types::{Candidate, Canonicalizer, KeySeed, PageTally, UrlKey, Verdict, Via};

const THREADS: u64 = 8;
const PAGES_A_THREAD: u64 = 400;
const LINKS_A_PAGE: usize = 50;

/// What a page's finish carries: the keys that must be durable by then, and its tally.
type Finish = (Vec<UrlKey>, PageTally);

enum Parcel {
    Page(PageToken, Admission, Finish),
    Settled(Settled),
}

#[derive(Default)]
struct Totals {
    notes: u64,
    false_positives: u64,
    store_duplicates: u64,
    tallied: u64,
    exact: u64,
    pages: u64,
}

#[test]
fn each_url_is_noted_exactly_once() {
    for cache_bytes in [0, 1 << 12] {
        let config = SeenConfig {
            fixed_filter_urls: Some(2_000),
            cache_bytes,
            ..SeenConfig::default()
        };
        let (totals, _) = run(&config, 6_000);
        assert_each_answer(&totals);
    }
}

#[test]
fn each_url_is_noted_exactly_once_while_the_filter_takes_over_and_grows() {
    for mode in [SeenMode::BloomStore, SeenMode::Exact] {
        let config = SeenConfig {
            mode,
            expected_urls: 1_000,
            cache_bytes: 1 << 15,
            ..SeenConfig::default()
        };
        let (totals, stats) = run(&config, 60_000);
        assert!(totals.exact > 1_000, "the exact set came first");
        if mode == SeenMode::Exact {
            assert_eq!((totals.store_duplicates, totals.false_positives), (0, 0));
            assert!(stats.filter.is_exact);
        } else {
            assert_each_answer(&totals);
            assert_eq!(stats.filter.slice_count, 3);
        }
    }
}

#[test]
fn each_url_is_noted_exactly_once_by_the_store_alone() {
    let config = SeenConfig {
        mode: SeenMode::Store,
        ..SeenConfig::default()
    };
    let (totals, _) = run(&config, 6_000);
    assert_eq!(totals.notes, totals.false_positives);
    assert!(totals.store_duplicates > 50);
}

/// Makes sure that every path was taken that does not depend on who came first.
fn assert_each_answer(totals: &Totals) {
    let answers = [
        ("filter no", totals.notes - totals.false_positives),
        ("false positives", totals.false_positives),
        ("store duplicates", totals.store_duplicates),
    ];
    assert!(
        answers.iter().all(|(_, count)| *count > 50),
        "too rare: {answers:?}"
    );
}

/// Offers links to the first `url_count` URLs from all threads, and checks what must hold in every mode.
fn run(config: &SeenConfig, url_count: usize) -> (Totals, SeenStats) {
    let seen = SeenTest::new(config, 0).unwrap();
    let urls: Vec<Candidate> = (0..url_count).map(candidate).collect();
    let store = Mutex::new(HashSet::new());
    let offered = AtomicU64::new(0);
    // Bounded as in a crawl, so that nobody runs far ahead of the commits.
    let (suspects_in, suspects) = mpsc::sync_channel(64);
    let (parcels_in, parcels) = mpsc::sync_channel(16);
    let totals = thread::scope(|scope| {
        for thread in 0..THREADS {
            let (suspects_in, parcels_in) = (suspects_in.clone(), parcels_in.clone());
            let (seen, urls, offered) = (&seen, &urls, &offered);
            scope.spawn(move || parse(thread, seen, urls, offered, &suspects_in, &parcels_in));
        }
        drop(suspects_in);
        let (seen, store) = (&seen, &store);
        // Each thread owns its ends, so the one after it ends when it does.
        scope.spawn(move || confirm(seen, store, &suspects, &parcels_in));
        scope
            .spawn(move || commit(seen, store, &parcels))
            .join()
            .unwrap()
    });
    assert_eq!(totals.pages, THREADS * PAGES_A_THREAD);
    assert_eq!(
        offered.into_inner(),
        totals.notes + totals.store_duplicates + totals.tallied
    );
    let store = store.into_inner().unwrap();
    assert_eq!(store.len() as u64, totals.notes);
    let stats = seen.stats();
    assert_eq!(
        (
            stats.suspect_count,
            stats.unwritten_count,
            stats.next_sequence
        ),
        (0, 0, totals.notes)
    );
    (totals, stats)
}

fn parse(
    thread: u64,
    seen: &SeenTest,
    urls: &[Candidate],
    offered: &AtomicU64,
    suspects: &SyncSender<Candidate>,
    parcels: &SyncSender<Parcel>,
) {
    let everything = ScopeConfig {
        rule: ScopeRule::Any,
        include: Vec::new(),
        exclude: Vec::new(),
        max_depth: None,
        redirects_max: 0,
        repeats_max: u16::MAX,
    };
    let scope = Scope::new(&everything, &[]).unwrap();
    let mut random = Rng::with_seed(thread);
    for page in 0..PAGES_A_THREAD {
        // All threads move through the URLs together, so that they meet at the same new ones. Every fifth link goes back
        // to any of those passed, which are written but for the last: channels and commits leave room for few.
        let begin = usize::try_from(page).unwrap() * (urls.len() - 200) / 400;
        let links: Vec<Candidate> = (0..LINKS_A_PAGE)
            .map(|link| match link % 5 {
                0 => urls[random.usize(..=begin)].clone(),
                _ => urls[random.usize(begin..begin + 200)].clone(),
            })
            .collect();
        let keys: Vec<UrlKey> = links.iter().map(|link| link.key).collect();
        offered.fetch_add(links.len() as u64, Relaxed);
        let token = PageToken(thread * PAGES_A_THREAD + page);
        let mut tally = PageTally::default();
        let mut admission = seen.admit(token, links, &scope, &mut tally);
        for suspect in admission.suspects.drain(..) {
            suspects.send(suspect).unwrap();
        }
        parcels
            .send(Parcel::Page(token, admission, (keys, tally)))
            .unwrap();
    }
}

fn confirm(
    seen: &SeenTest,
    store: &Mutex<HashSet<UrlKey>>,
    suspects: &Receiver<Candidate>,
    parcels: &SyncSender<Parcel>,
) {
    while let Ok(first) = suspects.recv() {
        let batch: Vec<Candidate> = std::iter::once(first)
            .chain(suspects.try_iter().take(255))
            .collect();
        let verdicts: Vec<Verdict> = {
            let store = store.lock().unwrap();
            let verdict = |suspect: &Candidate| {
                if store.contains(&suspect.key) {
                    Verdict::Seen
                } else {
                    Verdict::FalsePositive
                }
            };
            batch.iter().map(verdict).collect()
        };
        for (suspect, verdict) in batch.into_iter().zip(verdicts) {
            parcels
                .send(Parcel::Settled(seen.settle(suspect, verdict)))
                .unwrap();
        }
    }
}

fn commit(seen: &SeenTest, store: &Mutex<HashSet<UrlKey>>, parcels: &Receiver<Parcel>) -> Totals {
    let mut ledger = Ledger::new(0);
    let mut totals = Totals::default();
    while let Ok(parcel) = parcels.recv() {
        // So few that their new URLs fit into one write, so that what is unwritten stays bounded.
        for parcel in std::iter::once(parcel).chain(parcels.try_iter().take(10)) {
            match parcel {
                Parcel::Page(token, admission, finish) => ledger.arrive(token, admission, finish),
                Parcel::Settled(settled) => ledger.settled(settled),
            }
        }
        write(seen, store, &mut ledger, &mut totals, 300);
    }
    write(seen, store, &mut ledger, &mut totals, usize::MAX);
    assert!(ledger.is_empty() && ledger.page_count() == 0);
    totals
}

fn write(
    seen: &SeenTest,
    store: &Mutex<HashSet<UrlKey>>,
    ledger: &mut Ledger<Finish>,
    totals: &mut Totals,
    notes_max: usize,
) {
    let batch = ledger.take_batch(notes_max);
    {
        let mut store = store.lock().unwrap();
        for note in &batch.notes {
            assert!(store.insert(note.key), "{} was noted twice", note.url);
        }
        for (keys, tally) in batch.finished {
            assert!(
                keys.iter().all(|key| store.contains(key)),
                "a page was finished too early"
            );
            totals.pages += 1;
            totals.tallied += tally.total();
            totals.exact += tally.duplicates.exact;
        }
    }
    totals.notes += batch.notes.len() as u64;
    totals.false_positives += batch.false_positive_count;
    totals.store_duplicates += batch.store_duplicate_count;
    seen.noted(batch.notes.iter().map(|note| note.key));
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
