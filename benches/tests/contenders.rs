//! Every contender, as the benchmark's child processes run it, against the server it is measured with.

#![expect(clippy::unwrap_used, reason = "a failed set-up fails the test")]
#![expect(clippy::print_stderr, reason = "a skipped test says so")]

use benches::seen_test::{
    child, contender::Contender, measured::Measured, options::Options, redis,
};
use clap::Parser as _;
use store::testing::Cluster;

/// Links of the modelled stream.
const LINKS: u64 = 30_000;

fn run(contender: Contender, words: &[&str]) -> Measured {
    let links = LINKS.to_string();
    let mut line = vec![
        "seen_test",
        "--stream",
        "model",
        "--hosts",
        "60",
        "--active",
        "60",
    ];
    line.extend([
        "--links",
        &links,
        "--expected",
        "5k",
        "--cache",
        "1MB",
        "--one-links",
        "4k",
    ]);
    line.extend(words);
    let measured = child::run(contender, &Options::try_parse_from(line).unwrap()).unwrap();
    assert_eq!(measured.tiers.total(), measured.link_count, "{measured:?}");
    assert_eq!(
        (measured.lost_count, measured.twice_count),
        (0, 0),
        "{measured:?}"
    );
    assert!(measured.distinct_count > 1_000, "{measured:?}");
    assert!(
        measured.wall_seconds > 0.0 && measured.own_cpu_seconds > 0.0,
        "{measured:?}"
    );
    measured
}

#[test]
fn the_product_is_exact_on_postgres() {
    let uri = Cluster::shared().create_database();
    for contender in [Contender::BloomStore, Contender::Store, Contender::Exact] {
        let measured = run(contender, &["--uri", &uri]);
        assert_eq!(measured.link_count, LINKS);
        assert!(measured.server_cpu_seconds.is_some(), "{measured:?}");
        assert!(measured.commits > 0, "{measured:?}");
    }
    let left = Cluster::query_i64(
        &uri,
        "SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'bench\\_%'",
    );
    assert_eq!(left, 0, "the schemas are dropped");
}

#[test]
fn the_product_is_exact_on_the_embedded_store() {
    let measured = run(Contender::BloomStore, &["--store", "embedded"]);
    assert_eq!(measured.link_count, LINKS);
    assert_eq!(measured.server_cpu_seconds, None);
}

#[test]
fn a_statement_a_link_is_exact_and_asks_for_each() {
    let uri = Cluster::shared().create_database();
    let measured = run(Contender::StoreOne, &["--uri", &uri]);
    assert!(
        (4_000..LINKS).contains(&measured.link_count),
        "{measured:?}"
    );
    assert_eq!(measured.confirm_round_trips, measured.link_count);
    assert!(
        measured
            .server_cpu_seconds
            .is_some_and(|seconds| seconds > 0.0)
    );
}

#[test]
fn a_redis_set_is_exact() {
    if redis::find_program().is_none() {
        eprintln!("skipped: redis-server is not on the PATH");
        return;
    }
    let pipelined = run(Contender::Redis, &[]);
    assert_eq!(pipelined.link_count, LINKS);
    assert!(pipelined.confirm_round_trips < LINKS / 30, "{pipelined:?}");
    let each = run(Contender::RedisOne, &[]);
    assert_eq!(each.confirm_round_trips, each.link_count);
}
