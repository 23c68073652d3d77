//! Unit tests of the seen test's tiers and of how candidates are counted.

#![expect(clippy::unwrap_used, reason = "a failed set-up fails the test")]

use types::{Candidate, Canonicalizer, DuplicateCounts, KeySeed, RejectReason, Via};

use super::*;
use crate::{ScopeConfig, ScopeRule};

const FIRST: PageToken = PageToken(1);
const SECOND: PageToken = PageToken(2);

fn candidate(path: &str) -> Candidate {
    let url = Canonicalizer::default()
        .canonicalize(&format!("https://example.org/{path}"))
        .unwrap();
    let key = KeySeed::new(1).key(&url);
    Candidate {
        url,
        key,
        depth: 3,
        via: Via::Link,
        redirect_count: 0,
        referrer: Some("https://example.org/".into()),
    }
}

fn candidates(paths: &[&str]) -> Vec<Candidate> {
    paths.iter().map(|path| candidate(path)).collect()
}

/// All of example.org but what lies under `/private`.
fn scope() -> Scope {
    let config = ScopeConfig {
        rule: ScopeRule::Any,
        include: Vec::new(),
        exclude: vec!["/private".to_owned()],
        max_depth: None,
        redirects_max: 5,
        repeats_max: u16::MAX,
    };
    Scope::new(&config, &[]).unwrap()
}

fn seen_test(cache_bytes: usize) -> SeenTest {
    with_mode(SeenMode::BloomStore, cache_bytes)
}

/// A seen test with a filter from the first key on.
fn with_mode(mode: SeenMode, cache_bytes: usize) -> SeenTest {
    let config = SeenConfig {
        mode,
        false_positive_rate: 0.001,
        fixed_filter_urls: Some(1_000),
        cache_bytes,
        ..SeenConfig::default()
    };
    SeenTest::new(&config, 100).unwrap()
}

fn paths(fresh: &[QueuedUrl]) -> Vec<(&str, u64)> {
    fresh
        .iter()
        .map(|url| (url.url.path_and_query(), url.position.sequence))
        .collect()
}

#[test]
fn fresh_urls_take_sequences_in_order_and_keep_their_fields() {
    let seen = seen_test(0);
    let mut tally = PageTally::default();
    let admission = seen.admit(FIRST, candidates(&["a", "b"]), &scope(), &mut tally);
    assert_eq!(paths(&admission.fresh), [("/a", 100), ("/b", 101)]);
    assert_eq!((admission.waits, admission.depends_on), (0, 102));
    assert!(admission.suspects.is_empty());
    assert_eq!(tally, PageTally::default());
    let first = &admission.fresh[0];
    assert_eq!(
        (first.position.depth, first.position.priority, first.attempt),
        (3, 0, 0)
    );
    assert_eq!(
        (first.via, first.referrer.as_deref()),
        (Via::Link, Some("https://example.org/"))
    );
}

#[test]
fn each_tier_counts_what_it_answers() {
    let seen = seen_test(1 << 14);
    let mut tally = PageTally::default();
    let offered = candidates(&["a", "a", "private/b", "private/b", "c"]);
    let admission = seen.admit(FIRST, offered, &scope(), &mut tally);
    assert_eq!(paths(&admission.fresh), [("/a", 100), ("/c", 101)]);
    assert_eq!(tally.duplicates.in_page, 2);
    assert_eq!(tally.rejected, [(RejectReason::Filtered, 1)].into());

    let mut tally = PageTally::default();
    let admission = seen.admit(SECOND, candidates(&["c"]), &scope(), &mut tally);
    assert_eq!((tally.duplicates.cache, tally.total()), (1, 1));
    assert_eq!(
        admission.depends_on, 102,
        "a duplicate depends on the note it was dropped for"
    );

    let uncached = seen_test(0);
    uncached.admit(
        FIRST,
        candidates(&["a"]),
        &scope(),
        &mut PageTally::default(),
    );
    let mut tally = PageTally::default();
    uncached.admit(SECOND, candidates(&["a"]), &scope(), &mut tally);
    assert_eq!((tally.duplicates.unwritten, tally.total()), (1, 1));
}

#[test]
fn a_page_without_admissible_links_depends_on_nothing() {
    let seen = seen_test(0);
    let admission = seen.admit(
        FIRST,
        candidates(&["private/"]),
        &scope(),
        &mut PageTally::default(),
    );
    assert_eq!((admission.depends_on, admission.waits), (0, 0));
}

#[test]
fn a_stored_key_becomes_a_suspect_once_and_all_its_pages_wait() {
    let seen = seen_test(1 << 14);
    seen.load(&[candidate("old").key]);
    let mut tally = PageTally::default();
    let mut first = seen.admit(FIRST, candidates(&["old"]), &scope(), &mut tally);
    let second = seen.admit(SECOND, candidates(&["old"]), &scope(), &mut tally);
    assert_eq!((first.suspects.len(), first.waits), (1, 1));
    assert_eq!((second.suspects.len(), second.waits), (0, 1));
    assert_eq!(tally.duplicates.unwritten, 1);
    assert_eq!(seen.stats().suspect_count, 1);

    let settled = seen.settle(first.suspects.remove(0), Verdict::Seen);
    assert!(settled.note.is_none());
    assert_eq!(
        (settled.released, settled.depends_on),
        (vec![FIRST, SECOND], 0)
    );
    assert_eq!(
        (seen.stats().suspect_count, seen.stats().unwritten_count),
        (0, 0)
    );

    let mut tally = PageTally::default();
    let third = seen.admit(PageToken(3), candidates(&["old"]), &scope(), &mut tally);
    assert_eq!(
        (tally.duplicates.cache, third.waits),
        (1, 0),
        "the verdict is remembered"
    );
}

#[test]
fn a_false_positive_becomes_a_note_like_any_other() {
    let seen = seen_test(0);
    let url = candidate("new");
    // The filter claims to have it; the store will not.
    seen.load(&[url.key]);
    let mut admission = seen.admit(
        FIRST,
        vec![url.clone()],
        &scope(),
        &mut PageTally::default(),
    );
    let settled = seen.settle(admission.suspects.remove(0), Verdict::FalsePositive);
    assert_eq!(paths(settled.note.as_slice()), [("/new", 100)]);
    assert_eq!((settled.released, settled.depends_on), (vec![FIRST], 101));

    let mut tally = PageTally::default();
    let second = seen.admit(SECOND, vec![url.clone()], &scope(), &mut tally);
    assert_eq!(
        (tally.duplicates.unwritten, second.waits, second.depends_on),
        (1, 0, 101)
    );
    seen.noted([url.key]);
    assert_eq!(seen.stats().unwritten_count, 0);
    let third = seen.admit(PageToken(3), vec![url], &scope(), &mut PageTally::default());
    assert_eq!(
        third.suspects.len(),
        1,
        "the store answers for durable notes"
    );
}

#[test]
fn loading_takes_any_number_of_keys() {
    let seen = seen_test(0);
    let keys: Vec<UrlKey> = (0..2_500)
        .map(|number| candidate(&number.to_string()).key)
        .collect();
    seen.load(&keys);
    let offered: Vec<Candidate> = (0..2_500)
        .map(|number| candidate(&number.to_string()))
        .collect();
    let admission = seen.admit(FIRST, offered, &scope(), &mut PageTally::default());
    assert_eq!(
        (admission.fresh.len(), admission.suspects.len()),
        (0, 2_500)
    );
}

/// A seen test of a small crawl, sized for a few keys.
fn small(mode: SeenMode) -> SeenTest {
    let config = SeenConfig {
        mode,
        expected_urls: 1_000,
        cache_bytes: 1 << 20,
        ..SeenConfig::default()
    };
    SeenTest::new(&config, 0).unwrap()
}

fn numbered(numbers: std::ops::Range<u32>) -> Vec<Candidate> {
    numbers
        .map(|number| candidate(&number.to_string()))
        .collect()
}

#[test]
fn a_small_crawl_has_no_suspects_and_the_switch_to_the_filter_hardly_any() {
    let seen = small(SeenMode::BloomStore);
    let offer = |numbers: std::ops::Range<u32>| {
        let mut tally = PageTally::default();
        let admission = seen.admit(FIRST, numbered(numbers), &scope(), &mut tally);
        // The store has them at once.
        seen.noted(admission.fresh.iter().map(|note| note.key));
        (
            admission.fresh.len(),
            admission.suspects.len(),
            tally.duplicates,
        )
    };
    assert_eq!(offer(0..9_000), (9_000, 0, DuplicateCounts::default()));
    let (fresh_count, suspect_count, duplicates) = offer(5_000..10_000);
    assert_eq!(
        (fresh_count, suspect_count, duplicates.exact),
        (1_000, 0, 4_000)
    );
    assert!(seen.stats().filter.is_exact);
    offer(10_000..10_001);
    assert!(!seen.stats().filter.is_exact);
    let (fresh_count, suspect_count, duplicates) = offer(0..10_001);
    assert_eq!(fresh_count, 0);
    // Sets of the cache that had more than six of them lost one.
    assert!(
        suspect_count < 300 && duplicates.cache > 9_700,
        "{duplicates:?}"
    );
}

#[test]
fn the_filter_alone_asks_nothing_and_loses_what_it_wrongly_claims() {
    let seen = with_mode(SeenMode::Bloom, 1 << 14);
    let url = candidate("new");
    seen.load(&[url.key]);
    for (token, expected) in [(FIRST, (1, 0)), (SECOND, (0, 1))] {
        let mut tally = PageTally::default();
        let admission = seen.admit(token, vec![url.clone()], &scope(), &mut tally);
        assert!(admission.fresh.is_empty() && admission.suspects.is_empty());
        let duplicates = tally.duplicates;
        assert_eq!((duplicates.filter, duplicates.cache), expected);
    }
}

/// Also where most new URLs are lost, and each is linked again and again.
#[test]
fn the_filter_alone_knows_how_many_it_has_lost() {
    const URLS: u32 = 20_000;
    for false_positive_rate in [0.01, 0.5, 0.9] {
        let config = SeenConfig {
            mode: SeenMode::Bloom,
            false_positive_rate,
            fixed_filter_urls: Some(u64::from(URLS)),
            cache_bytes: 0,
            ..SeenConfig::default()
        };
        let seen = SeenTest::new(&config, 0).unwrap();
        let mut fresh_count = 0;
        for number in 0..URLS {
            let links = [number, number / 2, number].map(|number| candidate(&number.to_string()));
            let token = PageToken(number.into());
            let mut tally = PageTally::default();
            let admission = seen.admit(token, links.into(), &scope(), &mut tally);
            seen.noted(admission.fresh.iter().map(|note| note.key));
            fresh_count += u32::try_from(admission.fresh.len()).unwrap();
        }
        let lost = f64::from(URLS - fresh_count);
        let off_by = (seen.expected_lost() - lost).abs();
        assert!(
            off_by < 5.0 * lost.sqrt() + 0.05 * lost,
            "{} for {lost} at {false_positive_rate}",
            seen.expected_lost()
        );
    }
}

#[test]
fn the_store_alone_is_asked_about_every_link_but_repeats_and_those_in_flight() {
    let seen = with_mode(SeenMode::Store, 1 << 14);
    let mut tally = PageTally::default();
    let offered = candidates(&["a", "a", "b"]);
    let mut admission = seen.admit(FIRST, offered, &scope(), &mut tally);
    assert_eq!((admission.suspects.len(), tally.duplicates.in_page), (2, 1));
    let settled = seen.settle(admission.suspects.remove(0), Verdict::FalsePositive);
    assert_eq!(paths(settled.note.as_slice()), [("/a", 100)]);
    let mut tally = PageTally::default();
    let second = seen.admit(SECOND, candidates(&["a", "b"]), &scope(), &mut tally);
    assert_eq!((second.waits, tally.duplicates.unwritten), (1, 2));
    seen.noted([candidate("a").key]);
    let third = seen.admit(PageToken(3), candidates(&["a"]), &scope(), &mut tally);
    assert_eq!(third.suspects.len(), 1, "no cache remembers it");
    assert_eq!(seen.stats().filter, FilterStats::default());
}

#[test]
fn a_snapshot_comes_back_unless_other_sizes_are_asked_for() {
    let seen = small(SeenMode::BloomStore);
    let keys: Vec<UrlKey> = numbered(0..20_000).iter().map(|url| url.key).collect();
    seen.load(&keys);
    let mut bytes = Vec::new();
    assert!(seen.save(b"label", &mut bytes).unwrap());
    let resume = |mode, expected_urls| {
        let config = SeenConfig {
            mode,
            expected_urls,
            ..SeenConfig::default()
        };
        let (_, filter) = GrowingFilter::load(&mut &bytes[..]).unwrap();
        SeenTest::resume(&config, filter, 7).unwrap()
    };
    let resumed = resume(SeenMode::BloomStore, 1_000).unwrap();
    assert_eq!(resumed.stats().next_sequence, 7);
    assert_eq!(resumed.stats().filter, seen.stats().filter);
    let mut tally = PageTally::default();
    let admission = resumed.admit(FIRST, numbered(0..20_000), &scope(), &mut tally);
    assert!(admission.fresh.is_empty());
    assert!(
        resume(SeenMode::BloomStore, 1_001).is_none(),
        "it was made for fewer"
    );
    assert!(resume(SeenMode::Exact, 1_000).is_none());
    let unknowing = with_mode(SeenMode::Store, 0);
    assert!(!unknowing.save(b"", &mut Vec::new()).unwrap());
}
