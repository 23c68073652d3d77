//! Faults of `PostgreSQL` while a crawl runs: it finishes, or it stops, says why, and the same command finishes it; nothing
//! is lost and nothing is recorded twice.

use std::{
    thread,
    time::{Duration, Instant},
};

use store::testing::Cluster;
use tempfile::TempDir;

use crate::{
    crawl::{Crawl, LEASES_MAX, Running},
    number,
    records::check_complete,
    server::Server,
    site::Site,
    support::{Run, folder},
};

/// What no run takes, faults included, unless it hangs.
const PATIENCE: Duration = Duration::from_mins(5);

/// Requests after which a crawl is well under way.
const REQUESTS_BEFORE: u64 = 200;

/// Keys that are neither queued nor finished, or both, and rows without a key, or twice.
const FAULTS: &str = "\
    SELECT (SELECT count(*) FROM bloomcrawl.url_key k LEFT JOIN bloomcrawl.queue q USING (key) \
            LEFT JOIN bloomcrawl.page p USING (key) WHERE (q.key IS NULL) = (p.key IS NULL)) \
         + (SELECT count(*) FROM bloomcrawl.queue WHERE key NOT IN (SELECT key FROM bloomcrawl.url_key)) \
         + (SELECT count(*) FROM bloomcrawl.page WHERE key NOT IN (SELECT key FROM bloomcrawl.url_key)) \
         + (SELECT count(*) - count(DISTINCT key) FROM bloomcrawl.queue)";

/// A site, a crawl of it, and the server with its store.
struct Trial {
    server: Server,
    site: Site,
    crawl: Crawl,
    /// Runs that did not end well, and so may have left leases.
    stop_count: u64,
    _folder: TempDir,
}

impl Trial {
    fn new(server: Server, page_count: u64) -> Self {
        let folder = folder();
        let site = Site::start(page_count, 4, Duration::from_millis(100));
        let crawl = Crawl::new(folder.path(), &site, &server.uri());
        Self {
            server,
            site,
            crawl,
            stop_count: 0,
            _folder: folder,
        }
    }

    /// Starts the crawl, and returns when it is well under way.
    fn start(&self) -> Running {
        let mut run = self.crawl.start();
        run.wait_for_requests(&self.site, REQUESTS_BEFORE);
        run
    }

    /// Waits for the end of a run that met with `fault`: success, or a stop that can be resumed and says why.
    fn judge(&mut self, fault: &str, run: &Run, reasons: &[&str]) -> bool {
        assert!(!run.stderr.contains("panicked"), "{}", run.stderr);
        let is_finished = match run.code {
            Some(0) => true,
            Some(4 | 5) => false,
            code => panic!("{fault}: exit {code:?}: {}", run.stderr),
        };
        if !is_finished {
            self.stop_count += 1;
            let says_why = reasons.iter().any(|reason| run.stderr.contains(reason));
            assert!(says_why, "{fault}: the reason is not told: {}", run.stderr);
            assert!(
                run.stderr.contains("the same command resumes"),
                "{fault}: what to do is not told: {}",
                run.stderr
            );
        }
        eprintln!(
            "{fault}: {} after {} requests",
            if is_finished { "finished" } else { "stopped" },
            self.site.request_count()
        );
        is_finished
    }

    /// Makes sure that the store loses nothing and has nothing twice.
    fn check_store(&self) {
        let faults = Cluster::query_i64(&self.server.superuser_uri(), FAULTS);
        assert_eq!(faults, 0, "keys, queue and pages do not go together");
    }

    /// The same command finishes the crawl, now that the fault is over.
    fn finish(&self) {
        self.check_store();
        let run = self.crawl.finish(PATIENCE);
        assert_eq!(run.code, Some(0), "{}", run.stderr);
        self.check_store();
        let (pages, refetched) = self.site.fetched();
        assert_eq!(pages, self.site.urls(), "every page was fetched");
        assert!(
            refetched <= self.stop_count * LEASES_MAX,
            "{refetched} refetches"
        );
        check_complete(&self.crawl.data(), &pages).unwrap_or_else(|problem| panic!("{problem}"));
    }
}

/// Returns how long a fault lasts: so many seconds in the short form, or as the variable says.
fn seconds(name: &str, default: u64) -> Duration {
    Duration::from_secs(number(name, default))
}

/// What the system says of a server that is not there, or not yet, or not any more.
const AWAY: [&str; 5] = [
    "error connecting to server",
    "connection closed",
    "starting up",
    "recovery mode",
    "shutting down",
];

#[test]
fn crashes_of_the_server_are_survived() {
    let pause = seconds("BLOOMCRAWL_RESTART_SECONDS", 0);
    let mut trial = Trial::new(Server::start(), number("BLOOMCRAWL_RESTART_PAGES", 2_500));
    let mut run = trial.start();
    let mut restart_count = 0;
    while run.comes_to(&trial.site, REQUESTS_BEFORE + restart_count * 500) && !run.has_ended() {
        trial.server.crash_and_restart();
        restart_count += 1;
        thread::sleep(pause);
    }
    assert!(restart_count >= 3, "only {restart_count} restarts");
    let run = run.finish(PATIENCE);
    trial.judge(&format!("{restart_count} restarts"), &run, &AWAY);
    trial.finish();
}

#[test]
fn an_outage_is_survived() {
    let outage = seconds("BLOOMCRAWL_OUTAGE_SECONDS", 5);
    let mut trial = Trial::new(Server::start(), 1_000);
    let run = trial.start();
    trial.server.crash();
    thread::sleep(outage);
    trial.server.resume(&[]);
    let run = run.finish(PATIENCE);
    let is_finished = trial.judge("an outage", &run, &AWAY);
    // A crawl waits for about a minute.
    assert!(is_finished || outage > Duration::from_secs(50));
    assert!(run.code != Some(4), "an outage is no fault of the store's");
    trial.finish();
}

#[test]
fn a_single_connection_is_waited_with_or_refused() {
    let narrow = ["max_connections=4", "max_wal_senders=0"];
    let too_many = ["remaining connection slots", "too many"];
    let mut trial = Trial::new(Server::start(), 1_000);
    let run = trial.start();
    trial.server.crash();
    trial.server.resume(&narrow);
    // In the long form the crawl loses patience, in the short one it gets its connections back before.
    thread::sleep(seconds("BLOOMCRAWL_NARROW_SECONDS", 3));
    trial.check_store();
    let again = |server: &Server| {
        server.crash();
        server.resume(&narrow[1..]);
    };
    again(&trial.server);
    let run = run.finish(PATIENCE);
    trial.judge("a single connection", &run, &too_many);
    // A start, too, says what it lacks.
    trial.server.crash();
    trial.server.resume(&narrow);
    let run = trial.crawl.finish(PATIENCE);
    trial.judge("a start with a single connection", &run, &too_many);
    again(&trial.server);
    trial.finish();
}

#[test]
fn a_server_that_may_only_be_read_stops_the_crawl() {
    let mut trial = Trial::new(Server::start(), 1_000);
    let run = trial.start();
    let end_sessions =
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'crawler'";
    trial
        .server
        .execute("ALTER ROLE crawler SET default_transaction_read_only = on");
    trial.server.execute(end_sessions);
    let run = run.finish(PATIENCE);
    let is_finished = trial.judge("read-only", &run, &["read-only"]);
    assert!(
        !is_finished,
        "a crawl cannot be finished without being stored"
    );
    let run = trial.crawl.finish(PATIENCE);
    trial.judge("a start when read-only", &run, &["read-only"]);
    trial
        .server
        .execute("ALTER ROLE crawler RESET default_transaction_read_only");
    trial.finish();
}

#[test]
fn a_full_disk_of_the_server_is_survived() {
    let server = match Server::start_on_small_disk() {
        Ok(server) => server,
        Err(reason) => {
            eprintln!("skipped: no small disk can be mounted here: {reason}");
            return;
        }
    };
    let full = seconds("BLOOMCRAWL_FULL_SECONDS", 5);
    let mut trial = Trial::new(server, 2_000);
    let mut run = trial.start();
    trial.server.fill_disk(64 << 10);
    thread::sleep(full);
    let words = "No space left on device";
    let begun = Instant::now();
    while !trial.server.has_logged(words) {
        assert!(
            begun.elapsed() < Duration::from_mins(1),
            "the disk never was full"
        );
        thread::sleep(Duration::from_millis(100));
    }
    let was_running = trial.server.is_running();
    let had_ended = run.has_ended();
    trial.server.clear_disk();
    // A server that cannot write its log ends itself.
    if !trial.server.is_running() {
        trial.server.resume(&[]);
    }
    let run = run.finish(PATIENCE);
    let reasons = [&AWAY[..], &[words]].concat();
    let fault =
        format!("a full disk (server kept running: {was_running}, crawl gave up: {had_ended})");
    trial.judge(&fault, &run, &reasons);
    trial.finish();
}
