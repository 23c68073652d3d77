//! What only the `PostgreSQL` backend can meet: lost connections, foreign tables, connection strings.

#![expect(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

use std::{
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

use store::{
    CommitBatch, CrawlIdentity, FinishedUrl, OpenedStore, Store, StoreError, testing::Cluster,
};
use types::{CanonicalUrl, Host, KeySeed, QueuePosition, QueuedUrl, UrlKey, Via};

const SEED: KeySeed = KeySeed::new(5);
/// The longest that anything may take.
const GUARD: Duration = Duration::from_mins(1);

fn open(uri: &str, schema: &str) -> Result<OpenedStore, StoreError> {
    let identity = CrawlIdentity {
        crawl_id: "2".repeat(32),
        key_seed: SEED.get(),
        key_version: 1,
    };
    store::postgres::open(uri, schema, &identity)
}

fn refusal(uri: &str, schema: &str) -> StoreError {
    open(uri, schema).err().unwrap()
}

fn note(sequence: u64) -> QueuedUrl {
    let url = CanonicalUrl::from_stored(format!("http://a.example/{sequence}")).unwrap();
    QueuedUrl {
        key: SEED.key(&url),
        position: QueuePosition {
            priority: 0,
            depth: 0,
            sequence,
        },
        via: Via::Seed,
        redirect_count: 0,
        referrer: None,
        attempt: 0,
        url,
    }
}

fn commit(store: &dyn Store, first: u64) -> Result<(), StoreError> {
    let notes: Vec<_> = (first..first + 10).map(note).collect();
    store.commit(&CommitBatch {
        notes: &notes,
        finished: &[],
        progress: b"p",
    })
}

fn queued(store: &dyn Store) -> Result<usize, StoreError> {
    let host = Host::new("http://a.example");
    Ok(store
        .read_queue(&host, QueuePosition::default(), 1_000)?
        .len())
}

/// Ends every session of the store, as a restart of the server would.
fn cut_connections(uri: &str) {
    Cluster::execute(
        uri,
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
         WHERE application_name = 'bloomcrawl' AND datname = current_database()",
    );
}

/// Repeats `call` while the store is unavailable, as a crawl does; returns how often that was.
fn retried<T>(mut call: impl FnMut() -> Result<T, StoreError>) -> (T, u32) {
    let begun = Instant::now();
    let mut failure_count = 0;
    loop {
        match call() {
            Ok(value) => return (value, failure_count),
            Err(StoreError::Unavailable(text)) => {
                assert!(begun.elapsed() < GUARD, "still unavailable: {text}");
                failure_count += 1;
                thread::sleep(Duration::from_millis(20));
            }
            Err(other) => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_lost_connection_is_remade_and_the_commit_repeated() {
    let uri = Cluster::shared().create_database();
    let store = open(&uri, "crawl").unwrap().store;
    let key = note(0).key;
    commit(&*store, 0).unwrap();
    assert_eq!(
        (queued(&*store).unwrap(), store.confirm(&[key]).unwrap()),
        (10, vec![true])
    );
    let mut failure_count = 0;
    for round in 1..=5 {
        cut_connections(&uri);
        let ((), failures) = retried(|| commit(&*store, round * 10));
        failure_count += failures;
        assert_eq!(retried(|| queued(&*store)).0 as u64, (round + 1) * 10);
        assert_eq!(retried(|| store.confirm(&[key])).0, [true]);
    }
    assert!(failure_count <= 10, "{failure_count} failures for 5 cuts");
    let refused = refusal(&uri, "crawl");
    assert!(
        matches!(refused, StoreError::Locked(_)),
        "the lock is taken again with the connection: {refused:?}"
    );
}

/// Calls a function of the server on the session of the store that a trigger has made sleep, once there is one.
fn call_on_sleeper(uri: &str, function: &str) {
    Cluster::execute(
        uri,
        &format!(
            "DO $$ BEGIN LOOP \
                 PERFORM {function}(pid) FROM pg_stat_activity WHERE application_name = 'bloomcrawl' \
                     AND datname = current_database() AND wait_event = 'PgSleep'; \
                 EXIT WHEN FOUND; \
                 PERFORM pg_sleep(0.005); PERFORM pg_stat_clear_snapshot(); \
             END LOOP; END $$"
        ),
    );
}

#[test]
fn a_commit_that_ends_within_a_statement_leaves_nothing() {
    let uri = Cluster::shared().create_database();
    let store = open(&uri, "crawl").unwrap().store;
    let nothing = CommitBatch {
        notes: &[],
        finished: &[],
        progress: b"p",
    };
    for function in ["pg_cancel_backend", "pg_terminate_backend"] {
        for statement in [
            "INSERT ON crawl.url_key",
            "INSERT ON crawl.queue",
            "UPDATE ON crawl.meta",
        ] {
            Cluster::execute(
                &uri,
                &format!(
                    "CREATE FUNCTION crawl.wait() RETURNS trigger LANGUAGE plpgsql AS \
                     $$ BEGIN PERFORM pg_sleep(60); RETURN NULL; END $$; \
                     CREATE TRIGGER wait BEFORE {statement} EXECUTE FUNCTION crawl.wait()"
                ),
            );
            let ended = thread::scope(|scope| {
                scope.spawn(|| call_on_sleeper(&uri, function));
                commit(&*store, 0).unwrap_err()
            });
            assert!(matches!(ended, StoreError::Unavailable(_)), "{ended:?}");
            Cluster::execute(&uri, "DROP FUNCTION crawl.wait CASCADE");
            // With a connection again.
            retried(|| store.commit(&nothing));
            assert_eq!(
                store.scan_keys(&mut |_| ()).unwrap(),
                0,
                "{function} {statement}"
            );
            assert_eq!(queued(&*store).unwrap(), 0, "{function} {statement}");
        }
    }
    commit(&*store, 0).unwrap();
    assert_eq!(queued(&*store).unwrap(), 10);
}

/// Statements of a commit can be cancelled at any time; none may take effect without the others.
#[test]
fn cancelled_statements_leave_whole_commits_or_none() {
    const ROUNDS: u64 = 150;
    let uri = Cluster::shared().create_database();
    let store = open(&uri, "crawl").unwrap().store;
    let canceller = {
        let uri = uri.clone();
        thread::spawn(move || {
            Cluster::execute(
                &uri,
                "DO $$ BEGIN FOR i IN 1..1500 LOOP \
                     PERFORM pg_cancel_backend(pid) FROM pg_stat_activity WHERE application_name = 'bloomcrawl' \
                         AND datname = current_database() AND state <> 'idle'; \
                     PERFORM pg_sleep(0.0005); PERFORM pg_stat_clear_snapshot(); \
                 END LOOP; END $$",
            );
        })
    };
    for round in 0..ROUNDS {
        retried(|| commit(&*store, round * 10));
    }
    canceller.join().unwrap();
    let mut keys: Vec<UrlKey> = Vec::new();
    store.scan_keys(&mut |some| keys.extend(some)).unwrap();
    keys.sort_unstable();
    let mut wanted: Vec<UrlKey> = (0..ROUNDS * 10)
        .map(|sequence| note(sequence).key)
        .collect();
    wanted.sort_unstable();
    assert_eq!(keys, wanted);
    let host = Host::new("http://a.example");
    let queued = store
        .read_queue(&host, QueuePosition::default(), 10_000)
        .unwrap();
    let sequences: Vec<u64> = queued.iter().map(|url| url.position.sequence).collect();
    assert!(sequences.into_iter().eq(0..ROUNDS * 10));
}

#[test]
fn a_store_that_another_process_took_over_does_not_write_again() {
    let uri = Cluster::shared().create_database();
    let store = open(&uri, "crawl").unwrap().store;
    commit(&*store, 0).unwrap();
    cut_connections(&uri);
    let other = open(&uri, "crawl").unwrap().store;
    commit(&*other, 10).unwrap();
    let waits = commit(&*store, 20).unwrap_err();
    assert!(matches!(waits, StoreError::Unavailable(_)), "{waits:?}");
    drop(other);
    let refused = commit(&*store, 20).unwrap_err();
    assert!(matches!(refused, StoreError::Locked(_)), "{refused:?}");
    assert_eq!(
        open(&uri, "crawl").unwrap().store.next_sequence().unwrap(),
        20
    );
}

#[test]
fn a_commit_cut_in_the_middle_is_all_or_nothing() {
    let uri = Cluster::shared().create_database();
    let store = open(&uri, "crawl").unwrap().store;
    thread::scope(|scope| {
        let (cut, cuts) = mpsc::sync_channel(1);
        scope.spawn(|| {
            for () in cuts {
                cut_connections(&uri);
            }
        });
        for first in (0..150).step_by(10) {
            // While the commit is under way, or some time later.
            cut.send(()).unwrap();
            retried(|| commit(&*store, first));
            let end = first + 10;
            assert_eq!(retried(|| store.next_sequence()).0, end);
            assert_eq!(retried(|| store.scan_keys(&mut |_| ())).0, end);
        }
        drop(cut);
    });
}

#[test]
fn a_failed_statement_rolls_the_whole_batch_back() {
    let uri = Cluster::shared().create_database();
    let store = open(&uri, "crawl").unwrap().store;
    commit(&*store, 0).unwrap();
    Cluster::execute(
        &uri,
        "ALTER TABLE crawl.meta ADD CHECK (next_sequence <= 10)",
    );
    let failed = commit(&*store, 10).unwrap_err();
    assert!(
        matches!(&failed, StoreError::Backend(text) if text.contains("23514")),
        "{failed:?}"
    );
    assert_eq!(
        (
            queued(&*store).unwrap(),
            store.scan_keys(&mut |_| ()).unwrap()
        ),
        (10, 10)
    );
    Cluster::execute(
        &uri,
        "ALTER TABLE crawl.meta DROP CONSTRAINT meta_next_sequence_check",
    );
    commit(&*store, 10).unwrap();
    assert_eq!(queued(&*store).unwrap(), 20);
}

#[test]
fn two_schemas_of_one_database_are_two_crawls() {
    let uri = Cluster::shared().create_database();
    let one = open(&uri, "one").unwrap().store;
    let two = open(&uri, "two").unwrap().store;
    commit(&*one, 0).unwrap();
    assert_eq!((queued(&*one).unwrap(), queued(&*two).unwrap()), (10, 0));
}

#[test]
fn a_schema_that_is_not_a_crawls_is_left_alone() {
    let uri = Cluster::shared().create_database();
    Cluster::execute(
        &uri,
        "CREATE TABLE public.page (id int); INSERT INTO public.page VALUES (1)",
    );
    let refused = refusal(&uri, "public");
    assert!(
        matches!(&refused, StoreError::Incompatible(text) if text.contains("\"public\"")),
        "{refused:?}"
    );
    assert_eq!(
        Cluster::query_i64(&uri, "SELECT count(*) FROM public.page"),
        1
    );
    assert_eq!(
        Cluster::query_i64(
            &uri,
            "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'"
        ),
        1
    );
}

#[test]
fn a_schema_can_be_made_beforehand_for_a_user_without_rights() {
    let uri = Cluster::shared().create_database();
    Cluster::execute(
        &uri,
        "CREATE ROLE plain LOGIN; CREATE SCHEMA given AUTHORIZATION plain",
    );
    let as_plain = uri.replace("bloomcrawl@", "plain@");
    commit(&*open(&as_plain, "given").unwrap().store, 0).unwrap();
    let refused = refusal(&as_plain, "other");
    assert!(
        matches!(&refused, StoreError::Backend(text) if text.contains("42501")),
        "{refused:?}"
    );
}

#[test]
fn commits_are_durable_where_the_database_says_otherwise() {
    let uri = Cluster::shared().create_database();
    Cluster::execute(
        &uri,
        "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET synchronous_commit = off', current_database()); END $$",
    );
    let store = open(&uri, "crawl").unwrap().store;
    Cluster::execute(
        &uri,
        "CREATE FUNCTION crawl.note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
         IF current_setting('synchronous_commit') <> 'on' THEN RAISE EXCEPTION 'off'; END IF; RETURN NEW; END $$; \
         CREATE TRIGGER note BEFORE INSERT ON crawl.queue EXECUTE FUNCTION crawl.note()",
    );
    commit(&*store, 0).unwrap();
}

#[test]
fn unusable_connection_strings_are_named_without_their_password() {
    let unreachable = refusal(
        "postgres://user:secret@127.0.0.1:1/db?connect_timeout=5",
        "crawl",
    );
    assert!(
        matches!(unreachable, StoreError::Unavailable(_)),
        "{unreachable:?}"
    );
    let uri = Cluster::shared().create_database();
    let tls = refusal(&format!("{uri}&sslmode=require"), "crawl");
    assert!(
        matches!(&tls, StoreError::Incompatible(text) if text.contains("sslmode=require")),
        "{tls:?}"
    );
    let missing = refusal(&uri.replace("/test_", "/missing_"), "crawl");
    assert!(
        matches!(&missing, StoreError::Backend(text) if text.contains("3D000")),
        "{missing:?}"
    );
    let malformed = refusal("postgres://user:secret@host:port/db", "crawl");
    for schema in ["", "a\0b", &"x".repeat(64)] {
        assert!(matches!(refusal(&uri, schema), StoreError::Backend(_)));
    }
    for error in [unreachable, tls, missing, malformed] {
        assert!(!error.to_string().contains("secret"), "{error}");
    }
}

#[test]
fn another_encoding_is_refused() {
    let uri = Cluster::shared().create_database();
    Cluster::execute(
        &uri,
        "CREATE DATABASE latin TEMPLATE template0 ENCODING 'LATIN1'",
    );
    let name = uri.split(['/', '?']).nth(3).unwrap();
    let refused = refusal(&uri.replace(name, "latin"), "crawl");
    assert!(
        matches!(&refused, StoreError::Incompatible(text) if text.contains("LATIN1")),
        "{refused:?}"
    );
}

#[test]
fn a_confirm_is_one_round_trip_for_each_ten_thousand_keys() {
    let uri = Cluster::shared().create_database();
    let store = open(&uri, "crawl").unwrap().store;
    let keys: Vec<UrlKey> = (0..10_001).map(UrlKey::from_u128).collect();
    assert_eq!(store.confirm(&keys).unwrap().len(), keys.len());
    let counters = store.counters();
    assert_eq!(
        (counters.confirm_round_trips, counters.confirmed_keys),
        (2, 10_001)
    );
}

/// erikdarlingdata/PerformanceMonitor#1801, nicolastakashi/prom-analytics-proxy#598, basicmachines-co/basic-memory#1208:
/// writers of the same rows in opposite orders came to a deadlock. Two crawls share a database, and each is written to by
/// several threads at once, while others ask.
#[test]
fn performancemonitor_1801_writers_in_opposite_orders_come_to_no_deadlock() {
    const ROUNDS: u64 = 40;
    const ROWS: u64 = 200;
    let uri = Cluster::shared().create_database();
    let stores = ["one", "other"].map(|schema| open(&uri, schema).unwrap().store);
    let notes: Vec<_> = (0..ROWS + ROUNDS).map(note).collect();
    let write = |store: &dyn Store, is_reversed: bool| {
        for round in 0..ROUNDS {
            let first = usize::try_from(round).unwrap();
            let mut batch = notes[first..].to_vec();
            if is_reversed {
                batch.reverse();
            }
            let finished: Vec<_> = batch.iter().step_by(2).map(done).collect();
            let commit = CommitBatch {
                notes: &batch,
                finished: &finished,
                progress: b"p",
            };
            store.commit(&commit).unwrap();
        }
    };
    thread::scope(|scope| {
        for store in &stores {
            for is_reversed in [false, true, false, true] {
                let write = &write;
                scope.spawn(move || write(&**store, is_reversed));
            }
            scope.spawn(|| {
                let mut keys: Vec<_> = notes.iter().map(|note| note.key).collect();
                for _ in 0..ROUNDS {
                    keys.reverse();
                    store.confirm(&keys).unwrap();
                }
            });
        }
    });
    for store in &stores {
        let mut key_count = 0;
        store
            .scan_keys(&mut |keys| key_count += keys.len())
            .unwrap();
        assert_eq!(key_count, notes.len());
    }
    let deadlocks = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()";
    assert_eq!(Cluster::query_i64(&uri, deadlocks), 0);
}

fn done(note: &QueuedUrl) -> FinishedUrl {
    FinishedUrl {
        host: note.url.host(),
        position: note.position,
        key: note.key,
        record: b"r".to_vec(),
    }
}
