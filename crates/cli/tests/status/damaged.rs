//! Crawls that were damaged by hand: each damage is found, and named.

use std::{
    collections::BTreeSet,
    fs,
    ops::Range,
    path::{Path, PathBuf},
};

use filter::GrowingFilter;
use store::{CommitBatch, CrawlIdentity, FinishedUrl, testing::Cluster};
use types::{CanonicalUrl, KeySeed, PageRecord, QueuePosition, QueuedUrl, Via};

use crate::crawl::Crawl;

/// A crawl of 600 pages that ended after about half of them, and a finished and a queued URL of it.
struct Half {
    crawl: Crawl,
    finished: String,
    queued: String,
}

impl Half {
    fn crawl(store: &str) -> Self {
        let crawl = Crawl::of(600, store);
        assert_eq!(crawl.run("--per-host 8 --max-pages 300"), Some(0));
        let verified = crawl.verify_clean();
        assert!(verified["queued"].as_u64() > Some(100), "{verified:#}");
        let lines = fs::read_to_string(crawl.data().join("pages.jsonl")).expect("the lines");
        let finished: BTreeSet<String> = lines.lines().map(|line| record(line).url).collect();
        let queued = crawl
            .site
            .urls()
            .find(|url| {
                !finished.contains(url) && (store.starts_with("emb") || is_queued(store, url))
            })
            .expect("one is left");
        let finished = record(lines.lines().nth(100).expect("a line")).url;
        Self {
            crawl,
            finished,
            queued,
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.crawl.data().join(name)
    }

    /// Changes a file, verifies that it is found, and changes it back.
    fn with_file(
        &self,
        path: &Path,
        change: impl FnOnce(&mut Vec<u8>),
        kinds: &[&str],
        what: &str,
    ) {
        let whole = fs::read(path).expect("the file");
        let mut changed = whole.clone();
        change(&mut changed);
        fs::write(path, changed).expect("the file is written");
        if kinds.is_empty() {
            let verified = self.crawl.verify_clean();
            let remarks = verified["remarks"].to_string();
            assert!(remarks.contains(what), "{what} is not in {remarks}");
        } else {
            self.crawl.verify_finds(kinds, what);
        }
        fs::write(path, whole).expect("the file is written");
    }

    /// Changes rows, verifies that it is found, and changes them back.
    fn with_rows(&self, change: &str, back: &str, kinds: &[&str], what: &str) {
        let sql = |text: &str| {
            let text = text
                .replace("FINISHED", &self.finished)
                .replace("QUEUED", &self.queued);
            Cluster::execute(
                &self.crawl.store,
                &format!("SET search_path TO bloomcrawl, public; {text}"),
            );
        };
        sql(change);
        self.crawl.verify_finds(kinds, what);
        sql(back);
    }
}

fn record(line: &str) -> PageRecord {
    serde_json::from_str(line).expect("a line is a record")
}

fn is_queued(store: &str, url: &str) -> bool {
    let count = format!("SELECT count(*) FROM bloomcrawl.queue WHERE url = '{url}'");
    Cluster::query_i64(store, &count) == 1
}

#[test]
fn rows_that_were_changed_by_hand_are_named() {
    let half = Half::crawl(&Cluster::shared().create_database());
    let page =
        "(SELECT key FROM page WHERE convert_from(record, 'UTF8')::json->>'url' = 'FINISHED')";
    let queue_key = "(SELECT key FROM queue WHERE url = 'QUEUED')";
    half.with_rows(
        &format!("DELETE FROM url_key WHERE key = {queue_key}"),
        &format!("INSERT INTO url_key SELECT {queue_key}"),
        &["queue-key-missing"],
        &half.queued,
    );
    half.with_rows(
        &format!("DELETE FROM url_key WHERE key = {page}"),
        &format!("INSERT INTO url_key SELECT {page}"),
        &["record-key-missing"],
        &half.finished,
    );
    half.with_rows(
        "CREATE TABLE public.kept AS SELECT * FROM queue WHERE url = 'QUEUED'; DELETE FROM queue WHERE url = 'QUEUED'",
        "INSERT INTO queue SELECT * FROM public.kept; DROP TABLE public.kept",
        &["key-orphaned"],
        "key ",
    );
    half.with_rows(
        "INSERT INTO queue SELECT gen_random_uuid(), 1, depth, partition, priority, via, redirect_count, host, \
         host || '/foreign', referrer FROM queue WHERE url = 'QUEUED'",
        "DELETE FROM queue WHERE url LIKE '%/foreign'",
        &["queue-foreign", "queue-key-missing"],
        "/foreign",
    );
    half.with_rows(
        &format!(
            "INSERT INTO queue SELECT {page}, 1, depth, partition, priority, via, redirect_count, host, 'FINISHED', \
             referrer FROM queue WHERE url = 'QUEUED'"
        ),
        "DELETE FROM queue WHERE url = 'FINISHED'",
        &["queue-finished"],
        &half.finished,
    );
    half.with_rows(
        &format!(
            "CREATE TABLE public.kept AS SELECT * FROM page WHERE key = {page}; DELETE FROM page WHERE key IN \
             (SELECT key FROM public.kept)"
        ),
        "INSERT INTO page SELECT * FROM public.kept; DROP TABLE public.kept",
        &["line-unknown"],
        &half.finished,
    );
    half.with_rows(
        "UPDATE queue SET via = 99 WHERE url = 'QUEUED'",
        "UPDATE queue SET via = 1 WHERE url = 'QUEUED'",
        &["queue-unreadable"],
        "via 99",
    );
    half.crawl.verify_clean();
}

/// Returns where the line of `url` is, its end included.
fn line_of(lines: &[u8], url: &str) -> Range<usize> {
    let mut at = 0;
    for line in lines.split_inclusive(|byte| *byte == b'\n') {
        if record(std::str::from_utf8(line).expect("a line is text")).url == url {
            return at..at + line.len();
        }
        at += line.len();
    }
    panic!("{url} has no line")
}

#[test]
fn files_that_were_changed_by_hand_are_named() {
    let half = Half::crawl("embedded:");
    let url = half.finished.as_str();
    let pages = half.path("pages.jsonl");
    let lines = fs::read(&pages).expect("the lines");
    let line = line_of(&lines, url);
    let place = record(std::str::from_utf8(&lines[line.clone()]).expect("text"))
        .warc
        .expect("the page is archived");

    let kinds = ["line-missing"];
    half.with_file(&pages, |all| drop(all.drain(line.clone())), &kinds, url);
    let twice =
        |all: &mut Vec<u8>| drop(all.splice(line.end..line.end, lines[line.clone()].to_vec()));
    half.with_file(&pages, twice, &["line-twice"], url);
    // The last of the length in the archive, before `}}` and the line end.
    let digit = line.end - 4;
    let change = |all: &mut Vec<u8>| all[digit] = if all[digit] == b'7' { b'8' } else { b'7' };
    half.with_file(&pages, change, &["line-differs"], url);
    let kinds = ["line-unreadable"];
    half.with_file(&pages, |all| all[line.start] = b'x', &kinds, "line 101");
    half.with_file(
        &pages,
        |all| all.truncate(all.len() / 2),
        &["pages-file"],
        "bytes",
    );
    half.with_file(
        &pages,
        |all| all.extend(b"{\"url\":\"ht"),
        &[],
        "10 bytes of no",
    );

    let warc = half.path("warc").join(&place.file);
    let begin = usize::try_from(place.offset).expect("it fits");
    let end = begin + usize::try_from(place.length).expect("it fits");
    for at in [
        begin,
        begin + 20,
        begin.midpoint(end),
        end - 10,
        end - 5,
        end - 1,
    ] {
        half.with_file(&warc, |all| all[at] ^= 4, &["warc-record"], url);
    }
    let kinds = ["warc-file"];
    half.with_file(
        &warc,
        |all| all.truncate(all.len() - 1),
        &kinds,
        &place.file,
    );
    half.with_file(&warc, |all| all.push(1), &[], "1 bytes of no");
    let moved = warc.with_extension("moved");
    fs::rename(&warc, &moved).expect("the file is moved");
    half.crawl.verify_finds(&["warc-record"], &place.file);
    fs::rename(&moved, &warc).expect("the file is moved");

    let snapshot = half.path("filter.snapshot");
    let lacking = |all: &mut Vec<u8>| {
        let (label, filter) = GrowingFilter::load(&mut all.as_slice()).expect("it is whole");
        all.clear();
        let empty = GrowingFilter::new(filter.config()).expect("memory");
        empty.save(&label, all).expect("a list takes all");
    };
    // Those of finished pages are named by their URLs.
    half.with_file(&snapshot, lacking, &["filter-lacks-key"], "http://");
    let flip = |all: &mut Vec<u8>| {
        let middle = all.len() / 2;
        all[middle] ^= 1;
    };
    half.with_file(&snapshot, flip, &[], "filter.snapshot is damaged");
    half.crawl.verify_clean();
}

#[test]
fn what_the_accounts_do_not_know_is_named() {
    let half = Half::crawl("embedded:");
    let identity = CrawlIdentity {
        crawl_id: "0".repeat(32),
        key_seed: 0,
        key_version: 1,
    };
    let opened = store::embedded::open(&half.path("store"), &identity).expect("the store opens");
    let progress = opened.progress.expect("it has progress");
    let seed = KeySeed::new(opened.identity.key_seed);
    let url = CanonicalUrl::from_stored("http://foreign.example/".to_owned()).expect("a URL");
    let note = QueuedUrl {
        key: seed.key(&url),
        position: QueuePosition {
            priority: 0,
            depth: 0,
            sequence: opened.store.next_sequence().expect("a number"),
        },
        via: Via::Link,
        redirect_count: 0,
        referrer: None,
        attempt: 0,
        url: url.clone(),
    };
    let commit = |notes: &[QueuedUrl], finished: &[FinishedUrl]| {
        let batch = CommitBatch {
            notes,
            finished,
            progress: &progress,
        };
        opened.store.commit(&batch).expect("it is committed");
    };
    commit(std::slice::from_ref(&note), &[]);
    let lines = fs::read_to_string(half.path("pages.jsonl")).expect("the lines");
    let mut record = record(lines.lines().next().expect("a line"));
    record.url = url.as_str().to_owned();
    let finished = FinishedUrl {
        host: url.host(),
        position: note.position,
        key: note.key,
        record: serde_json::to_vec(&record).expect("a record"),
    };
    commit(&[], &[finished]);
    drop(opened.store);
    half.crawl.verify_finds(&["line-missing"], url.as_str());
    half.crawl.verify_finds(&["accounts"], "page records");
    half.crawl.verify_finds(&["accounts"], "known keys");
}
