//! Unit tests of the seen test's tiers and of how candidates are counted.

#![expect(clippy::unwrap_used, reason = "a failed set-up fails the test")]

use types::{Candidate, Canonicalizer, KeySeed, RejectReason, Via};

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
    };
    Scope::new(&config, &[]).unwrap()
}

fn seen_test(cache_bytes: usize) -> SeenTest {
    let config = SeenConfig {
        expected_urls: 1_000,
        false_positive_rate: 0.001,
        fixed_filter_urls: None,
        cache_bytes,
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
