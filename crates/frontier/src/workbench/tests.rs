//! Tests of single rules of the workbench; the simulation tests them together.

use std::{net::IpAddr, sync::Arc, time::Duration};

use robots::Rules;
use types::{
    CanonicalUrl, Canonicalizer, FailureKind, FetchFailure, Host, KeySeed, Lease, Purpose,
    QueuePosition, QueuedUrl, Resolution, Via,
};

use super::{Action, Fetched, NextStep, RobotsAnswer, Workbench, WorkbenchConfig};

const NOW: Duration = Duration::ZERO;
const OK: Fetched<'_> = Fetched::Response {
    status: 200,
    retry_after: None,
};

fn url(text: &str) -> CanonicalUrl {
    Canonicalizer::default()
        .canonicalize(text)
        .expect("the tests' URLs are plain")
}

fn queued(text: &str, sequence: u64) -> QueuedUrl {
    let url = url(text);
    QueuedUrl {
        key: KeySeed::new(1).key(&url),
        url,
        position: QueuePosition {
            priority: 0,
            depth: 0,
            sequence,
        },
        via: Via::Link,
        redirect_count: 0,
        referrer: None,
        attempt: 0,
    }
}

fn failure(kind: FailureKind) -> FetchFailure {
    FetchFailure {
        kind,
        detail: "of the test".to_owned(),
    }
}

/// A workbench without robots.txt, and without pauses.
fn config() -> WorkbenchConfig {
    WorkbenchConfig {
        obey_robots: false,
        delay: Duration::ZERO,
        ..WorkbenchConfig::default()
    }
}

fn bench(config: WorkbenchConfig, urls: &[&str]) -> Workbench {
    let mut bench = Workbench::new(config, 0, 0);
    bench.enqueue(
        urls.iter()
            .zip(0..)
            .map(|(text, sequence)| queued(text, sequence))
            .collect(),
        NOW,
    );
    bench
}

/// Returns the next lease that is fetched, having resolved hosts to `address`.
fn fetch(bench: &mut Workbench, address: u8, now: Duration) -> Option<Lease> {
    loop {
        match bench.next_action(now) {
            Action::Fetch(lease) => return Some(lease),
            Action::Resolve(host) => {
                bench.resolved(
                    &host,
                    Resolution::Address(IpAddr::from([192, 0, 2, address])),
                    now,
                );
            }
            Action::Wait(_) => return None,
            action => panic!("unexpected {action:?}"),
        }
    }
}

fn fetched_url(bench: &mut Workbench, now: Duration) -> Option<String> {
    fetch(bench, 1, now).map(|lease| lease.url().as_str().to_owned())
}

fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

#[test]
fn the_pause_begins_with_the_end_of_the_response() {
    let mut bench = bench(
        WorkbenchConfig {
            delay: seconds(2),
            ..config()
        },
        &["http://a.test/1", "http://a.test/2"],
    );
    let lease = fetch(&mut bench, 1, NOW).expect("the first may go");
    assert!(
        fetch(&mut bench, 1, seconds(60)).is_none(),
        "one request a host"
    );
    assert_eq!(bench.fetched(lease.id, OK, seconds(60)), NextStep::Keep);
    assert!(matches!(bench.next_action(seconds(60)), Action::Wait(Some(at)) if at == seconds(62)));
    assert_eq!(
        fetched_url(&mut bench, seconds(62)).as_deref(),
        Some("http://a.test/2")
    );
}

#[test]
fn retry_after_postpones_the_host_up_to_an_hour() {
    let mut bench = bench(config(), &["http://a.test/1"]);
    let lease = fetch(&mut bench, 1, NOW).expect("the first may go");
    let busy = Fetched::Response {
        status: 503,
        retry_after: Some(seconds(86_400)),
    };
    assert_eq!(bench.fetched(lease.id, busy, NOW), NextStep::Retry);
    assert!(matches!(bench.next_action(NOW), Action::Wait(Some(at)) if at == seconds(3_600)));
    let again = fetch(&mut bench, 1, seconds(3_600)).expect("the pause is over");
    assert!(matches!(again.purpose, Purpose::Page(queued) if queued.attempt == 1));
}

#[test]
fn a_free_slot_of_an_address_is_passed_on_by_a_host_that_cannot_use_it() {
    let config = WorkbenchConfig {
        per_host: 2,
        per_ip: 2,
        ..config()
    };
    let urls = [
        "http://a.test/1",
        "http://x.test/1",
        "http://a.test/2",
        "http://b.test/1",
        "http://c.test/1",
    ];
    let mut bench = bench(config, &urls);
    let first = fetch(&mut bench, 1, NOW).expect("slot 1");
    let second = fetch(&mut bench, 1, NOW).expect("slot 2");
    assert_eq!(
        (first.host.name(), second.host.name()),
        ("a.test", "x.test")
    );
    assert!(fetch(&mut bench, 1, NOW).is_none(), "both slots are taken");
    bench.fetched(second.id, OK, NOW);
    let pause = Fetched::Response {
        status: 200,
        retry_after: Some(seconds(100)),
    };
    bench.fetched(first.id, pause, NOW);
    let next: Vec<_> = std::iter::from_fn(|| fetched_url(&mut bench, NOW)).collect();
    assert_eq!(next, ["http://b.test/1", "http://c.test/1"]);
}

#[test]
fn exempt_hosts_share_an_address_freely() {
    let mut bench = bench(
        WorkbenchConfig {
            per_ip: 1,
            ..config()
        },
        &["http://a.test/", "http://b.test/"],
    );
    let mut fetch_count = 0;
    loop {
        match bench.next_action(NOW) {
            Action::Resolve(host) => bench.resolved(&host, Resolution::Exempt, NOW),
            Action::Fetch(lease) => {
                assert_eq!(lease.address, None);
                fetch_count += 1;
            }
            _ => break,
        }
    }
    assert_eq!(fetch_count, 2);
}

#[test]
fn the_page_limit_is_never_passed() {
    let urls = [
        "http://a.test/",
        "http://b.test/",
        "http://c.test/",
        "http://d.test/",
    ];
    let mut bench = Workbench::new(
        WorkbenchConfig {
            max_pages: Some(7),
            ..config()
        },
        5,
        0,
    );
    bench.enqueue(
        urls.iter()
            .zip(0..)
            .map(|(text, sequence)| queued(text, sequence))
            .collect(),
        NOW,
    );
    let first = fetch(&mut bench, 1, NOW).expect("page 6");
    let second = fetch(&mut bench, 1, NOW).expect("page 7");
    assert!(fetch(&mut bench, 1, NOW).is_none());
    let refused = failure(FailureKind::Protocol);
    assert_eq!(
        bench.fetched(first.id, Fetched::Failed(&refused), NOW),
        NextStep::GiveUp
    );
    assert_eq!(bench.fetched(second.id, OK, NOW), NextStep::Keep);
    assert!(!bench.is_limit_reached(), "a failure is no page");
    let third = fetch(&mut bench, 1, NOW).expect("page 7");
    bench.fetched(third.id, OK, NOW);
    assert!(bench.is_limit_reached());
    assert!(matches!(bench.next_action(NOW), Action::Wait(None)));
}

#[test]
fn robots_txt_comes_first_and_what_it_bans_needs_no_slot() {
    let config = WorkbenchConfig {
        concurrency: 1,
        obey_robots: true,
        ..config()
    };
    let mut bench = bench(
        config,
        &["http://a.test/no/1", "http://a.test/2", "http://b.test/"],
    );
    let robots = fetch(&mut bench, 1, NOW).expect("robots.txt");
    assert_eq!(robots.url().as_str(), "http://a.test/robots.txt");
    let rules = Rules::parse(b"User-agent: *\nDisallow: /no/\nCrawl-delay: 9\n", "mybot");
    bench.robots_answered(robots.id, RobotsAnswer::Rules(Arc::new(rules)), NOW);
    assert_eq!(
        fetched_url(&mut bench, NOW).as_deref(),
        Some("http://b.test/robots.txt"),
        "a.test pauses"
    );
    let Action::Disregard(lease, reason) = bench.next_action(NOW) else {
        panic!("the only slot is taken")
    };
    assert_eq!(
        (lease.url().as_str(), reason.kind),
        ("http://a.test/no/1", FailureKind::RobotsDisallowed)
    );
    assert_eq!(bench.stats().leased_count, 1);
    bench.finished(lease.id);
    assert_eq!(
        (bench.stats().leased_count, bench.stats().queued_count),
        (0, 2)
    );
}

#[test]
fn robots_txt_is_followed_over_five_redirects_at_each_targets_pace() {
    let config = WorkbenchConfig {
        obey_robots: true,
        delay: seconds(1),
        ..config()
    };
    let mut bench = bench(config, &["http://a.test/1", "http://t.test/1"]);
    let mut now = NOW;
    let lease = fetch(&mut bench, 1, now).expect("robots.txt of a.test");
    assert_eq!(lease.host.name(), "a.test");
    let own = fetch(&mut bench, 1, now).expect("robots.txt of t.test");
    bench.robots_answered(
        lease.id,
        RobotsAnswer::Redirect(url("http://t.test/r")),
        now,
    );
    assert!(
        fetch(&mut bench, 1, now).is_none(),
        "t.test has a request under way"
    );
    bench.robots_answered(own.id, RobotsAnswer::Unavailable, now);
    for hop in 1..=5_u8 {
        now += seconds(1);
        let lease = fetch(&mut bench, 1, now).expect("the redirect is followed");
        assert_eq!(
            lease.host.name(),
            "t.test",
            "an errand comes before the host's own pages"
        );
        assert!(
            matches!(&lease.purpose, Purpose::Robots { of, hop: at, .. } if of.name() == "a.test" && *at == hop)
        );
        assert!(fetch(&mut bench, 1, now).is_none());
        bench.robots_answered(
            lease.id,
            RobotsAnswer::Redirect(url(&format!("http://t.test/r{hop}"))),
            now,
        );
    }
    assert_eq!(
        fetched_url(&mut bench, now).as_deref(),
        Some("http://a.test/1"),
        "a sixth hop means no rules"
    );
}

#[test]
fn unreachable_robots_txt_ends_in_a_full_disallow() {
    let config = WorkbenchConfig {
        obey_robots: true,
        host_attempts_max: 2,
        backoff_base: seconds(5),
        ..config()
    };
    let mut bench = bench(config, &["http://a.test/1"]);
    let lease = fetch(&mut bench, 1, NOW).expect("robots.txt");
    bench.robots_answered(
        lease.id,
        RobotsAnswer::Unreachable {
            failure: failure(FailureKind::ServerError),
            retry_after: None,
        },
        NOW,
    );
    assert!(
        fetch(&mut bench, 1, seconds(4)).is_none(),
        "it is tried again after a pause"
    );
    let lease = fetch(&mut bench, 1, seconds(5)).expect("robots.txt again");
    bench.robots_answered(
        lease.id,
        RobotsAnswer::Unreachable {
            failure: failure(FailureKind::ServerError),
            retry_after: None,
        },
        seconds(5),
    );
    let Action::Disregard(_, reason) = bench.next_action(seconds(5)) else {
        panic!("everything is disallowed")
    };
    assert_eq!(reason.kind, FailureKind::RobotsUnreachable);
}

#[test]
fn a_robots_txt_that_asks_for_a_pause_is_asked_again_after_it() {
    let config = WorkbenchConfig {
        obey_robots: true,
        backoff_base: seconds(5),
        ..config()
    };
    let mut bench = bench(config, &["http://a.test/1"]);
    let lease = fetch(&mut bench, 1, NOW).expect("robots.txt");
    let answer = RobotsAnswer::Unreachable {
        failure: failure(FailureKind::ServerError),
        retry_after: Some(seconds(600)),
    };
    bench.robots_answered(lease.id, answer, NOW);
    assert!(fetch(&mut bench, 1, seconds(599)).is_none());
    assert!(fetch(&mut bench, 1, seconds(600)).is_some());
}

#[test]
fn a_dead_host_is_given_up_with_all_its_urls_also_the_spilled() {
    let config = WorkbenchConfig {
        host_failures_max: 2,
        window_max: 2,
        ..config()
    };
    let urls: Vec<String> = (0..5).map(|page| format!("http://a.test/{page}")).collect();
    let mut bench = bench(config, &urls.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(
        (bench.stats().queued_count, bench.stats().in_memory_count),
        (5, 2)
    );
    let refused = failure(FailureKind::Connect);
    let lease = fetch(&mut bench, 1, NOW).expect("a try");
    assert_eq!(
        bench.fetched(lease.id, Fetched::Failed(&refused), NOW),
        NextStep::Retry
    );
    let host = lease.host.clone();
    let (mut now, mut disregarded_count) = (seconds(1_000), 0);
    loop {
        match bench.next_action(now) {
            Action::Fetch(lease) => {
                assert_eq!(
                    bench.fetched(lease.id, Fetched::Failed(&refused), now),
                    NextStep::GiveUp
                );
                bench.finished(lease.id);
            }
            Action::Resolve(host) => bench.resolved(&host, Resolution::Exempt, now),
            Action::Refill { from, limit, .. } => {
                let all = urls
                    .iter()
                    .zip(0..)
                    .map(|(text, sequence)| queued(text, sequence));
                let rest = all
                    .filter(|queued| queued.position >= from)
                    .take(limit)
                    .collect();
                bench.refilled(&host, rest, now);
            }
            Action::Disregard(lease, reason) => {
                assert_eq!(reason.kind, FailureKind::HostGivenUp);
                disregarded_count += 1;
                bench.finished(lease.id);
            }
            Action::Wait(Some(at)) => now = at,
            Action::Wait(None) => break,
        }
    }
    assert_eq!(disregarded_count, 4);
    assert!(bench.is_drained());
}

#[test]
fn a_refused_address_is_said_so_and_a_name_that_never_resolves_is_given_up() {
    for (kind, expected) in [
        (FailureKind::AddressRefused, FailureKind::AddressRefused),
        (FailureKind::Dns, FailureKind::HostGivenUp),
    ] {
        let mut bench = bench(config(), &["http://a.test/1"]);
        let mut now = NOW;
        let reason = loop {
            match bench.next_action(now) {
                Action::Resolve(host) => {
                    bench.resolved(&host, Resolution::Failed(failure(kind)), now);
                }
                Action::Wait(Some(at)) => now = at,
                Action::Disregard(_, reason) => break reason,
                action => panic!("unexpected {action:?}"),
            }
        };
        assert_eq!(reason.kind, expected);
    }
}

#[test]
fn a_host_that_had_its_turn_makes_room() {
    let config = WorkbenchConfig {
        active_hosts_max: 1,
        window_max: 1,
        ..config()
    };
    let urls: Vec<String> = (0..40)
        .map(|page| format!("http://a.test/{page}"))
        .collect();
    let mut bench = bench(config, &urls.iter().map(String::as_str).collect::<Vec<_>>());
    bench.enqueue(vec![queued("http://b.test/", 40)], NOW);
    let mut order = Vec::new();
    loop {
        match bench.next_action(NOW) {
            Action::Fetch(lease) => {
                order.push(lease.host.name().to_owned());
                bench.fetched(lease.id, OK, NOW);
                bench.finished(lease.id);
            }
            Action::Resolve(host) => bench.resolved(&host, Resolution::Exempt, NOW),
            Action::Refill { host, from, limit } => {
                let all = urls
                    .iter()
                    .map(String::as_str)
                    .chain(["http://b.test/"])
                    .zip(0..);
                let own = all.map(|(text, sequence)| queued(text, sequence));
                let own = own.filter(|queued| queued.url.host() == host && queued.position >= from);
                bench.refilled(&host, own.take(limit).collect(), NOW);
            }
            action => {
                assert!(matches!(action, Action::Wait(None)));
                break;
            }
        }
    }
    assert_eq!(order.iter().position(|name| name == "b.test"), Some(16));
    assert_eq!(order.len(), 41);
    assert!(bench.is_drained());
}

#[test]
fn memory_is_bounded_whatever_is_queued() {
    let config = WorkbenchConfig {
        active_hosts_max: 10,
        window_max: 4,
        ..config()
    };
    let mut bench = Workbench::new(config, 0, 0);
    for sequence in 0..20_000 {
        bench.enqueue(
            vec![queued(
                &format!("http://h{}.test/{sequence}", sequence % 500),
                sequence,
            )],
            NOW,
        );
    }
    let stats = bench.stats();
    assert_eq!(
        (stats.queued_count, stats.host_count, stats.in_memory_count),
        (20_000, 500, 40)
    );
}

#[test]
fn after_a_stop_nothing_new_begins_and_what_runs_ends() {
    let mut bench = bench(config(), &["http://a.test/1", "http://b.test/1"]);
    let lease = fetch(&mut bench, 1, NOW).expect("a request");
    bench.stop_leasing();
    assert!(matches!(
        bench.next_action(seconds(100)),
        Action::Wait(None)
    ));
    assert!(bench.has_leases());
    bench.fetched(lease.id, OK, seconds(100));
    bench.finished(lease.id);
    assert!(!bench.has_leases() && !bench.is_drained());
}

#[test]
fn a_restored_host_is_read_back_before_it_is_fetched() {
    let mut bench = Workbench::new(config(), 0, 8);
    let first = QueuePosition {
        priority: 0,
        depth: 0,
        sequence: 3,
    };
    bench.restore_host(Host::new("http://a.test"), 2, first);
    assert_eq!(bench.stats().queued_count, 2);
    let Action::Refill { host, from, limit } = bench.next_action(NOW) else {
        panic!("nothing is in memory")
    };
    assert_eq!(from, first);
    assert!(limit >= 2);
    // The last of these is durable, but was not announced yet; it must not count twice when it is.
    let read = vec![
        queued("http://a.test/3", 3),
        queued("http://a.test/7", 7),
        queued("http://a.test/8", 8),
    ];
    bench.refilled(&host, read, NOW);
    assert_eq!(bench.stats().queued_count, 2);
    bench.enqueue(vec![queued("http://a.test/8", 8)], NOW);
    assert_eq!(bench.stats().queued_count, 3);
    for page in [3, 7, 8] {
        let lease = fetch(&mut bench, 1, NOW).expect("a page");
        assert_eq!(lease.url().as_str(), format!("http://a.test/{page}"));
        bench.fetched(lease.id, OK, NOW);
        bench.finished(lease.id);
    }
    assert!(bench.is_drained());
}

#[test]
fn rules_that_need_room_take_it_from_hosts_without_work() {
    let rules = |host: &str| {
        let text = format!("User-agent: *\nDisallow: /{host}\n");
        Arc::new(Rules::parse(text.as_bytes(), "mybot"))
    };
    let config = WorkbenchConfig {
        obey_robots: true,
        rules_bytes_max: rules("a").size_bytes(),
        ..config()
    };
    let mut bench = Workbench::new(config, 0, 0);
    // Of each host the rules are asked for when its first page is; of the third, of one that was done before, again.
    for (sequence, host) in [(0, "a"), (1, "a"), (2, "b"), (3, "a")] {
        bench.enqueue(
            vec![queued(&format!("http://{host}.test/{sequence}"), sequence)],
            NOW,
        );
        let mut lease = fetch(&mut bench, 1, NOW).expect("a request");
        let is_asked = lease.url().path_and_query() == "/robots.txt";
        assert_eq!(is_asked, sequence != 1, "before page {sequence}");
        if is_asked {
            bench.robots_answered(lease.id, RobotsAnswer::Rules(rules(host)), NOW);
            lease = fetch(&mut bench, 1, NOW).expect("the page");
        }
        bench.fetched(lease.id, OK, NOW);
        bench.finished(lease.id);
    }
    assert!(bench.is_drained());
}
