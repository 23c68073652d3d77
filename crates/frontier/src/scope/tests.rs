//! Unit tests of the scope rules, the patterns and their errors.

#![expect(clippy::unwrap_used, reason = "a failed set-up fails the test")]

use proptest::prelude::*;
use types::{Canonicalizer, KeySeed};

use super::*;

fn url(text: &str) -> CanonicalUrl {
    Canonicalizer::default().canonicalize(text).unwrap()
}

fn candidate(text: &str) -> Candidate {
    let url = url(text);
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

fn config(rule: ScopeRule) -> ScopeConfig {
    ScopeConfig {
        rule,
        include: Vec::new(),
        exclude: Vec::new(),
        max_depth: None,
        redirects_max: 5,
        repeats_max: u16::MAX,
    }
}

fn scope(rule: ScopeRule, seeds: &[&str]) -> Scope {
    let seeds: Vec<CanonicalUrl> = seeds.iter().map(|seed| url(seed)).collect();
    Scope::new(&config(rule), &seeds).unwrap()
}

#[track_caller]
fn assert_extent(scope: &Scope, inside: &[&str], outside: &[&str]) {
    for text in inside {
        assert_eq!(scope.admits(&candidate(text)), Ok(()), "{text}");
    }
    for text in outside {
        assert_eq!(
            scope.admits(&candidate(text)),
            Err(RejectReason::OutOfScope),
            "{text}"
        );
    }
    // Each after each other: what is remembered of one host must not be said of the next.
    let mut memo = HostMemo::default();
    for first in inside.iter().chain(outside) {
        for second in inside.iter().chain(outside) {
            for text in [first, second] {
                let alone = scope.admits(&candidate(text));
                assert_eq!(scope.admits_in_turn(&candidate(text), &mut memo), alone);
            }
        }
    }
}

#[test]
fn host_is_the_name_whatever_the_scheme_and_a_port_of_its_own() {
    let scope = scope(
        ScopeRule::Host,
        &["http://example.org/a/b", "http://[2001:db8::1]:8080/"],
    );
    assert_extent(
        &scope,
        &[
            "http://example.org/",
            "https://example.org/x",
            "https://EXAMPLE.org:443/",
            "https://[2001:db8::1]:8080/",
        ],
        &[
            "https://example.org:8443/",
            "http://[2001:db8::1]/",
            "http://www.example.org/",
            "http://example.com/",
            "http://xexample.org/",
            "http://[2001:db8::2]/",
        ],
    );
}

#[test]
fn domain_is_the_registered_one() {
    let scope = scope(
        ScopeRule::Domain,
        &[
            "https://docs.example.co.uk/x",
            "http://127.0.0.1:8000/",
            "http://localhost/",
        ],
    );
    assert_extent(
        &scope,
        &[
            "http://example.co.uk/",
            "https://a.b.example.co.uk/",
            "http://a.example.co.uk:8080/",
            "https://127.0.0.1:8000/",
            "https://localhost/",
        ],
        &[
            "http://127.0.0.1:9000/",
            "https://localhost:1/",
            "https://other.co.uk/",
            "https://co.uk/",
            "http://128.0.0.1/",
            "http://0.0.1.127/",
            "http://sub.localhost/",
        ],
    );
}

#[test]
fn prefix_ends_at_the_last_slash_of_the_path() {
    let seeds = [
        "https://example.org/docs/index.html?from=/a/b/",
        "http://example.org:8080",
        "https://example.com/a/",
        "https://example.com/a/b/",
    ];
    let scope = scope(ScopeRule::Prefix, &seeds);
    assert_extent(
        &scope,
        &[
            "https://example.org/docs/",
            "http://example.org/docs/deep/er?q=1",
            "https://example.org:8080/anything",
            "https://example.com/a/b/c",
            "https://example.com/a/c",
        ],
        &[
            "https://example.org/docs",
            "https://example.org/docsite/",
            "https://example.org/",
            "https://example.org:8443/docs/",
            "https://example.com/",
        ],
    );
}

#[test]
fn any_is_everything_and_no_seed_means_nothing() {
    assert_extent(&scope(ScopeRule::Any, &[]), &["http://example.org/"], &[]);
    for rule in [ScopeRule::Host, ScopeRule::Domain, ScopeRule::Prefix] {
        assert_extent(&scope(rule, &[]), &[], &["http://example.org/"]);
    }
}

#[test]
fn limits_are_inclusive() {
    let scope = Scope::new(
        &ScopeConfig {
            max_depth: Some(2),
            ..config(ScopeRule::Any)
        },
        &[],
    )
    .unwrap();
    let at = |depth, redirect_count| {
        scope.admits(&Candidate {
            depth,
            redirect_count,
            ..candidate("http://example.org/")
        })
    };
    assert_eq!(at(2, 5), Ok(()));
    assert_eq!(at(3, 0), Err(RejectReason::TooDeep));
    assert_eq!(at(0, 6), Err(RejectReason::TooManyRedirects));
}

#[test]
fn patterns_filter_links_and_exclude_wins() {
    let config = ScopeConfig {
        include: vec![r"/docs/".to_owned(), r"\.html$".to_owned()],
        exclude: vec!["[?&]print=".to_owned()],
        ..config(ScopeRule::Any)
    };
    let scope = Scope::new(&config, &[]).unwrap();
    let judge = |text: &str, via, depth| {
        scope.admits(&Candidate {
            via,
            depth,
            ..candidate(text)
        })
    };
    assert_eq!(judge("http://example.org/docs/a", Via::Link, 1), Ok(()));
    assert_eq!(judge("http://example.org/a.html", Via::Entry, 1), Ok(()));
    assert_eq!(judge("http://example.org/s.xml", Via::Sitemap, 1), Ok(()));
    assert_eq!(
        judge("http://example.org/s.xml", Via::Entry, 1),
        Err(RejectReason::Filtered)
    );
    assert_eq!(
        judge("http://example.org/", Via::Link, 1),
        Err(RejectReason::Filtered)
    );
    assert_eq!(
        judge("http://example.org/docs/?print=1", Via::Link, 1),
        Err(RejectReason::Filtered)
    );
    // Where a crawl begins need not be included, but may be excluded.
    assert_eq!(judge("http://example.org/", Via::Seed, 0), Ok(()));
    assert_eq!(judge("http://example.org/", Via::Redirect, 0), Ok(()));
    assert_eq!(
        judge("http://example.org/", Via::Redirect, 1),
        Err(RejectReason::Filtered)
    );
    assert_eq!(
        judge("http://example.org/?print=1", Via::Seed, 0),
        Err(RejectReason::Filtered)
    );
}

#[test]
fn a_bad_pattern_is_named_with_its_place() {
    let message = |include: &str| {
        let config = ScopeConfig {
            include: vec![include.to_owned()],
            ..config(ScopeRule::Any)
        };
        Scope::new(&config, &[]).unwrap_err().to_string()
    };
    assert_eq!(
        message("/docs/(a"),
        r#"include pattern "/docs/(a", character 7: unclosed group"#
    );
    assert_eq!(
        message("äö[z-a]"),
        r#"include pattern "äö[z-a]", character 4: invalid character class range, the start must be <= the end"#
    );
    assert!(
        message(" *(a").starts_with(r#"include pattern " *(a", character 3: "#),
        "{}",
        message(" *(a")
    );
    for odd in ["(\n[", "a{99999}{99999}", "(?<n>a)(?<n>b)", "\u{7f}("] {
        let message = message(odd);
        assert!(
            message.starts_with(&format!("include pattern {odd:?}")) && !message.contains('\n'),
            "{message}"
        );
    }
    let exclude = ScopeConfig {
        exclude: vec!["a".to_owned(), "*".to_owned()],
        ..config(ScopeRule::Any)
    };
    let error = Scope::new(&exclude, &[]).unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with(r#"exclude pattern "*", character 1: "#),
        "{error}"
    );
}

#[test]
fn rules_are_spelled_as_their_names() {
    for rule in ScopeRule::ALL {
        assert_eq!(rule.to_string().parse(), Ok(rule));
    }
    let error = "Host".parse::<ScopeRule>().unwrap_err();
    assert_eq!(
        error.to_string(),
        r#"unknown scope "Host": expected host, domain, prefix or any"#
    );
}

proptest! {
    #[test]
    fn seeds_are_in_scope_and_prefixes_agree_with_a_plain_search(
        paths in prop::collection::vec("[ab/]{0,6}", 1..12),
        probes in prop::collection::vec("[ab/]{0,8}", 1..20),
    ) {
        let seeds: Vec<CanonicalUrl> = paths.iter().map(|path| url(&format!("http://example.org/{path}"))).collect();
        for rule in ScopeRule::ALL {
            let scope = Scope::new(&config(rule), &seeds).unwrap();
            for seed in &seeds {
                let seed = Candidate { via: Via::Seed, depth: 0, ..candidate(seed.as_str()) };
                prop_assert_eq!(scope.admits(&seed), Ok(()));
            }
        }
        let scope = Scope::new(&config(ScopeRule::Prefix), &seeds).unwrap();
        for probe in probes {
            let probe = candidate(&format!("https://example.org/{probe}"));
            let text = probe.url.as_str().strip_prefix("https://").unwrap();
            let expected = seeds.iter().any(|seed| text.starts_with(prefix(seed)));
            prop_assert_eq!(scope.admits(&probe).is_ok(), expected, "{}", text);
        }
    }
}

/// Both rules on hosts answer the reduced public reports on what belongs to a site.
#[test]
#[expect(clippy::print_stderr, reason = "a skipped test says so")]
fn public_reports_on_scopes() {
    let Some(shared) = std::env::var_os("BLOOMCRAWL_CORPORA") else {
        eprintln!("skipped: BLOOMCRAWL_CORPORA is not set");
        return;
    };
    let path = std::path::Path::new(&shared).join("cases/public-reports.jsonl");
    let text = std::fs::read_to_string(path).unwrap();
    let cases = text
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let mut count = 0;
    for case in cases.filter(|case| case["op"] == "scope.in") {
        count += 1;
        let seeds = case["input"]["seeds"].as_array().unwrap();
        let seeds: Vec<&str> = seeds.iter().map(|seed| seed.as_str().unwrap()).collect();
        for rule in [ScopeRule::Host, ScopeRule::Domain] {
            let url = candidate(case["input"]["url"].as_str().unwrap());
            let is_inside = scope(rule, &seeds).admits(&url).is_ok();
            assert_eq!(case["expect"], is_inside, "{} by {rule}", case["id"]);
        }
    }
    assert!(count >= 4, "only {count} cases");
}
