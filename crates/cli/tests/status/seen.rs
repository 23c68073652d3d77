//! Crawls that run, were killed, were stopped and are done.

use std::{
    fs,
    process::{Child, Command},
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

use store::testing::Cluster;

use crate::{
    crawl::Crawl,
    support::{folder, run},
};

fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !done() {
        assert!(
            begun.elapsed() < Duration::from_mins(1),
            "waited too long for {what}"
        );
        thread::sleep(Duration::from_millis(20));
    }
}

fn seen_from_begin_to_end(store: &str) {
    const PAGES: u64 = 1_500;
    let crawl = Crawl::of(PAGES, store);
    crawl.slow_after(500);
    let mut child = crawl.spawn("--per-host 4");
    let data = crawl.data();
    wait_until("the first figures", || data.join("status.json").exists());
    let found = crawl.status();
    assert_eq!(
        (&found["state"], &found["is_running"]),
        (&"running".into(), &true.into())
    );
    // All URLs are of one host; where the count by hosts came late, they are those of the figures before.
    wait_until("figures with pages, and with the hosts of then", || {
        let found = crawl.status();
        let figures = &found["figures"];
        figures["pages"].as_u64() > Some(0)
            && figures["top_hosts"][0]["queued"] == figures["counts"]["queued"]
    });
    let found = crawl.status();
    assert_eq!(found["state"], "running");
    assert_eq!(found["figures"]["identity_holds"], true, "{found:#}");
    let refused = crawl.verify();
    assert!(
        refused.code == Some(3) && refused.stderr.contains("in use"),
        "{refused:?}"
    );

    child.kill().expect("the child is ours");
    child.wait().expect("the child is ours");
    let found = crawl.status();
    assert_eq!(
        (&found["state"], &found["is_running"]),
        (&"interrupted".into(), &false.into())
    );
    let killed = crawl.verify_clean();
    assert_eq!(killed["filter"]["is_usable"], true, "{killed:#}");
    assert!(
        killed["finished"].as_u64() > Some(0) && killed["queued"].as_u64() > Some(0),
        "{killed:#}"
    );

    let killed_bytes = fs::metadata(data.join("pages.jsonl"))
        .expect("the lines")
        .len();
    crawl.slow_after(300);
    let mut child = crawl.spawn("--per-host 4");
    wait_until("the crawl to go on", || {
        fs::metadata(data.join("pages.jsonl")).is_ok_and(|file| file.len() > killed_bytes + 20_000)
    });
    signal_term(&child);
    assert_eq!(child.wait().expect("the child is ours").code(), Some(5));
    assert_eq!(crawl.status()["state"], "stopped");
    crawl.verify_clean();

    crawl.slow_after(2 * PAGES);
    assert_eq!(crawl.run("--per-host 64"), Some(0));
    let found = crawl.status();
    assert_eq!(found["state"], "finished");
    assert_eq!(found["figures"]["counts"]["succeeded"], PAGES);
    assert_eq!(found["figures"]["hosts"], 0);
    let verified = crawl.verify_clean();
    for number in ["keys", "finished", "lines", "archived"] {
        assert_eq!(verified[number], PAGES, "{number}: {verified:#}");
    }
    assert_eq!(verified["filter"]["is_usable"], true, "{verified:#}");
    assert_eq!(
        crawl.run("--per-host 64"),
        Some(0),
        "and nothing is in its way"
    );
}

fn signal_term(child: &Child) {
    let status = Command::new("kill")
        .args(["-TERM", &child.id().to_string()])
        .status();
    assert!(status.expect("kill runs").success());
}

#[test]
fn a_crawl_in_the_embedded_store_is_seen_from_begin_to_end() {
    seen_from_begin_to_end("embedded:");
}

#[test]
fn a_crawl_in_postgres_is_seen_from_begin_to_end() {
    seen_from_begin_to_end(&Cluster::shared().create_database());
}

#[test]
fn looking_at_it_keeps_no_crawl_from_starting() {
    let crawl = Crawl::of(20, "embedded:");
    assert_eq!(crawl.run("--per-host 8"), Some(0));
    let data = crawl.data();
    let is_done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !is_done.load(Ordering::Relaxed) {
                engine::status(&data).expect("the folder is a crawl's");
            }
        });
        for _ in 0..20 {
            assert_eq!(crawl.run("--per-host 8"), Some(0));
        }
        is_done.store(true, Ordering::Relaxed);
    });
}

#[test]
fn what_is_no_crawl_is_refused_and_left_alone() {
    let folder = folder();
    fs::create_dir(folder.path().join("other")).expect("a folder");
    for data in ["other", "missing"] {
        for what in ["status", "verify"] {
            let run = run(folder.path(), &[what, "--data", data]);
            assert!(
                run.code == Some(3) && run.stderr.contains("the data folder of no crawl"),
                "{run:?}"
            );
        }
    }
    assert_eq!(
        fs::read_dir(folder.path().join("other"))
            .expect("a folder")
            .count(),
        0
    );
    assert!(!folder.path().join("missing").exists());

    // A folder whose crawl is in another store: the one named is not made.
    let mut crawl = Crawl::of(20, "embedded:");
    assert_eq!(crawl.run("--per-host 8"), Some(0));
    let uri = Cluster::shared().create_database();
    crawl.store.clone_from(&uri);
    let run = crawl.verify();
    assert!(
        run.code == Some(3) && run.stderr.contains("the store holds no crawl"),
        "{run:?}"
    );
    let schemas = "SELECT count(*) FROM pg_namespace WHERE nspname = 'bloomcrawl'";
    assert_eq!(Cluster::query_i64(&uri, schemas), 0);
}
