//! A seeded simulation of the whole frontier: seen test, ledger and workbench against a model web and a model store, with
//! messages in random order, and with crashes. `BLOOMCRAWL_SIM_SEED` replays one seed.

mod audit;
mod crawl;
mod store;
mod web;

use std::{panic, time::Duration};

use fastrand::Rng;
use frontier::{SeenConfig, SeenMode, WorkbenchConfig};
use types::Disposition;

use crate::{
    crawl::{Crawl, Cuts, End},
    store::Store,
    web::{Truth, Web},
};

const SEED_COUNT: u64 = 2_000;

fn draw_config(rng: &mut Rng) -> WorkbenchConfig {
    let milliseconds = |rng: &mut Rng, max: u64| Duration::from_millis(rng.u64(..max));
    WorkbenchConfig {
        concurrency: rng.u32(1..12),
        leases_max: rng.u32(1..24),
        per_host: if rng.u8(..3) == 0 { rng.u32(2..6) } else { 1 },
        per_ip: rng.u32(1..4),
        delay: if rng.bool() {
            Duration::ZERO
        } else {
            milliseconds(rng, 3_000)
        },
        crawl_delay_max: Duration::from_secs(rng.u64(..15)),
        attempts_max: rng.u16(1..4),
        host_attempts_max: 4,
        max_pages: None,
        domain_pages_max: None,
        obey_robots: rng.u8(..5) > 0,
        robots_ttl: Duration::from_secs(if rng.u8(..3) == 0 {
            rng.u64(5..60)
        } else {
            86_400
        }),
        active_hosts_max: rng.usize(1..10),
        window_max: rng.usize(1..8),
        backoff_base: milliseconds(rng, 4_000),
        backoff_max: Duration::from_secs(20),
        host_failures_max: rng.u32(1..6),
        // A web has at most 13 hosts, so no host that pauses is ever forgotten.
        idle_hosts_max: rng.usize(7..14),
        rules_bytes_max: if rng.bool() {
            rng.usize(..500)
        } else {
            1 << 20
        },
    }
}

/// Crawls one web to its end, over as many runs as chance has it.
fn simulate(seed: u64) {
    let mut rng = Rng::with_seed(seed);
    let mut config = draw_config(&mut rng);
    let sizes = SeenConfig {
        mode: match rng.u8(..8) {
            0 => SeenMode::Exact,
            1 => SeenMode::Store,
            _ => SeenMode::BloomStore,
        },
        fixed_filter_urls: rng.bool().then(|| rng.u64(1..60)),
        cache_bytes: if rng.bool() { 0 } else { 1 << 10 },
        ..SeenConfig::default()
    };
    let mut web = Web::draw(&mut rng, config.attempts_max);
    let truth = web.walk(config.obey_robots);
    let mut store = Store::default();
    let mut cuts_left = rng.u8(..4);
    loop {
        let may_cut = cuts_left > 0;
        cuts_left = cuts_left.saturating_sub(1);
        let cut = if may_cut { rng.u8(..4) } else { 4 };
        let cuts = Cuts {
            crash_at_step: (cut == 0).then(|| rng.u64(..600)),
            stop_at_step: (cut == 1).then(|| rng.u64(..600)),
        };
        config.max_pages = (cut == 2).then(|| store.pages_count + rng.u64(..30));
        let domain_most = store.domain_pages.values().max().copied();
        config.domain_pages_max =
            (cut == 3).then(|| rng.u64(1..30).max(domain_most.unwrap_or(0) / 2));
        let end = Crawl::begin(&mut rng, &mut web, &mut store, config.clone(), &sizes).run(&cuts);
        if end == End::Drained {
            break;
        }
        assert!(may_cut, "{end:?} without a cut");
    }
    let urls: Vec<_> = store.pages.keys().collect();
    assert_eq!(
        urls,
        truth.keys().collect::<Vec<_>>(),
        "the URLs finished are those that can be reached"
    );
    for (url, disposition) in &store.pages {
        let is_right = match truth[url] {
            Truth::Succeeded => *disposition == Disposition::Succeeded,
            Truth::Failed => *disposition == Disposition::Failed,
            Truth::Forbidden => *disposition == Disposition::Disregarded,
            Truth::Unreachable => *disposition != Disposition::Succeeded,
        };
        assert!(
            is_right,
            "{url} ended as {disposition:?}, but its truth is {:?}",
            truth[url]
        );
    }
}

#[test]
#[expect(clippy::print_stderr, reason = "names the seed to replay")]
fn every_seed_crawls_its_web_to_the_end() {
    let given = std::env::var("BLOOMCRAWL_SIM_SEED").ok();
    let given = given.map(|text| {
        text.parse::<u64>()
            .expect("BLOOMCRAWL_SIM_SEED is a number")
    });
    let seeds = given.map_or(0..SEED_COUNT, |seed| seed..seed + 1);
    for seed in seeds {
        if let Err(panic) = panic::catch_unwind(|| simulate(seed)) {
            eprintln!("failed with BLOOMCRAWL_SIM_SEED={seed}");
            panic::resume_unwind(panic);
        }
    }
}
