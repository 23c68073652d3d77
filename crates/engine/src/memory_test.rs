//! Tests of the memory plan: it keeps to every budget, larger budgets give no part less, and what is refused is told.
#![expect(clippy::unwrap_used, reason = "a failed set-up fails the test")]

use super::*;

fn config(memory_bytes_max: Option<u64>) -> CrawlConfig {
    CrawlConfig {
        memory_bytes_max,
        parse_threads: Some(4),
        ..CrawlConfig::default()
    }
}

/// The settings of crawls of several kinds, without a budget.
fn kinds() -> Vec<CrawlConfig> {
    let mut small_bodies = config(None);
    small_bodies.fetch.wire_bytes_max = 1_000;
    small_bodies.fetch.decoded_bytes_max = 1_000;
    let mut many_leases = config(None);
    many_leases.fetch.wire_bytes_max = 32 << 10;
    many_leases.leases_max = Some(10_000);
    let mut small_parts = config(None);
    small_parts.active_hosts_max = 10;
    small_parts.rules_bytes_max = 1_000;
    small_parts.fetch.body_free_bytes = 1_000;
    small_parts.fetch.bodies_bytes_max = 1_000;
    small_parts.canonical.url_bytes_max = 100_000;
    vec![
        config(None),
        CrawlConfig {
            concurrency: 5_000,
            expected_urls: 500_000_000,
            ..config(None)
        },
        CrawlConfig {
            seen_mode: SeenMode::Exact,
            store: StoreConfig::Postgres {
                uri: String::new(),
                schema: String::new(),
            },
            ..config(None)
        },
        CrawlConfig {
            keeps_cache: true,
            cache_bytes: 300_000_000,
            parse_threads: Some(1),
            ..config(None)
        },
        small_bodies,
        many_leases,
        small_parts,
    ]
}

/// Returns the least that a crawl can be planned with.
fn least_bytes(config: &CrawlConfig) -> u64 {
    let config = CrawlConfig {
        memory_bytes_max: Some(0),
        ..config.clone()
    };
    MemoryPlan::new(&config).unwrap_err().least.total()
}

#[test]
fn every_budget_from_the_least_on_is_kept_and_a_larger_one_gives_no_part_less() {
    for kind in kinds() {
        let least = least_bytes(&kind);
        let mut before: Option<MemoryPlan> = None;
        for step in 0..200 {
            let budget = least + step * step * 100_000;
            let plan = MemoryPlan::new(&CrawlConfig {
                memory_bytes_max: Some(budget),
                ..kind.clone()
            })
            .unwrap();
            let total = plan.bytes().total();
            assert!(total <= budget, "{total} of {budget}: {plan:?}");
            if let Some(before) = before {
                for (now, then) in plan.bytes().rows().iter().zip(before.bytes().rows()) {
                    assert!(now.1 >= then.1, "{now:?} was {then:?}");
                }
            }
            before = Some(plan);
        }
        let unlimited = MemoryPlan::new(&kind).unwrap();
        let richest = before.unwrap();
        assert!(richest.bytes().bodies == unlimited.bytes().bodies);
        assert!(richest.bytes().cache >= unlimited.bytes().cache);
    }
}

#[test]
fn a_budget_below_the_least_is_refused_with_the_arithmetic() {
    let least = least_bytes(&config(None));
    let refusal = MemoryPlan::new(&config(Some(least - 1))).unwrap_err();
    assert_eq!(refusal.least.total(), least);
    let text = refusal.to_string();
    for (name, bytes, _) in refusal.least.rows() {
        assert!(
            text.contains(&format!(" {name} {}", megabytes(bytes))),
            "{name}: {text}"
        );
    }
    assert!(
        text.contains(&format!("= {} MB", megabytes(least))),
        "{text}"
    );
    assert!(text.contains("first max-decoded-body"), "{text}");
    assert!(MemoryPlan::new(&config(Some(least))).is_ok());
}

#[test]
fn lower_settings_lower_the_least() {
    let least = least_bytes(&config(None));
    let changes: [&dyn Fn(&mut CrawlConfig); 7] = [
        &|config| config.fetch.decoded_bytes_max = 10 << 20,
        &|config| config.expected_urls = 100_000,
        &|config| config.concurrency = 8,
        &|config| config.parse_threads = Some(1),
        &|config| config.fetch.wire_bytes_max = 1 << 20,
        &|config| config.outlinks_max = 1_000,
        &|config| config.canonical.url_bytes_max = 1_000,
    ];
    for (number, change) in changes.iter().enumerate() {
        let mut lower = config(None);
        change(&mut lower);
        assert!(least_bytes(&lower) < least, "change {number}");
    }
}

#[test]
fn a_cache_that_was_asked_for_keeps_its_size_and_another_follows_the_budget() {
    let asked = CrawlConfig {
        cache_bytes: 20_000_000,
        keeps_cache: true,
        ..config(None)
    };
    for extra in [0, 100_000_000, 10_000_000_000] {
        let budget = least_bytes(&asked) + extra;
        let plan = MemoryPlan::new(&CrawlConfig {
            memory_bytes_max: Some(budget),
            ..asked.clone()
        });
        assert_eq!(plan.unwrap().sizes().cache_bytes, 20_000_000);
    }
    let large = MemoryPlan::new(&config(Some(10_000_000_000))).unwrap();
    assert_eq!(large.sizes().cache_bytes, CACHE_BYTES_MAX);
}

#[test]
fn what_was_asked_for_is_never_exceeded() {
    for memory in [None, Some(10_000_000_000)] {
        let mut asked = config(memory);
        asked.active_hosts_max = 10;
        asked.idle_hosts_max = 20;
        asked.rules_bytes_max = 1_000;
        asked.fetch.body_free_bytes = 3_000;
        asked.fetch.bodies_bytes_max = 4_000;
        let applied = MemoryPlan::new(&asked).unwrap().apply(asked.clone());
        assert_eq!((applied.active_hosts_max, applied.idle_hosts_max), (10, 20));
        assert_eq!(applied.rules_bytes_max, 1_000);
        assert_eq!(applied.fetch.body_free_bytes, 3_000);
        assert_eq!(applied.fetch.bodies_bytes_max, 4_000);
    }
}

#[test]
fn the_plan_is_put_in_force() {
    let budget = least_bytes(&config(None)) + 50_000_000;
    let config = config(Some(budget));
    let plan = MemoryPlan::new(&config).unwrap();
    let applied = plan.apply(config.clone());
    assert!(applied.cache_bytes < config.cache_bytes);
    assert!(applied.active_hosts_max < config.active_hosts_max);
    assert!(applied.fetch.bodies_bytes_max < config.fetch.bodies_bytes_max);
    assert!(applied.fetch.body_free_bytes >= 32 << 10);
    // Without a budget nothing changes.
    let unlimited = MemoryPlan::new(&CrawlConfig::default()).unwrap();
    let applied = unlimited.apply(CrawlConfig::default());
    assert_eq!(
        format!("{applied:?}"),
        format!("{:?}", CrawlConfig::default())
    );
}
