//! Whole runs from outside: the demo, stopping and resuming, and replay.

mod support;

use std::{
    fs,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    path::Path,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use support::{Run, command, folder, run};
use tempfile::TempDir;

fn spawn(folder: &Path, arguments: &[&str]) -> Child {
    command(folder, arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts")
}

fn signal(child: &Child, name: &str) {
    let status = Command::new("kill")
        .args([&format!("-{name}"), &child.id().to_string()])
        .status();
    assert!(status.expect("kill runs").success());
}

/// Waits until `done` says so, at most a minute.
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

fn report_of(run: &Run) -> serde_json::Value {
    serde_json::from_str(&run.stdout).unwrap_or_else(|error| panic!("{error}: {run:?}"))
}

#[test]
fn the_demo_fetches_every_page_once_and_says_so() {
    let folder = folder();
    let run = run(folder.path(), &["demo", "--pages", "120"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(run.stdout.is_empty(), "stdout carries data only: {run:?}");
    assert!(
        run.stderr
            .contains("every page of the generated site was fetched exactly once"),
        "{run:?}"
    );
    assert!(
        run.stderr.contains("discovered = rejected + duplicates"),
        "{run:?}"
    );
    assert_eq!(
        fs::read_dir(folder.path()).expect("a folder").count(),
        0,
        "the demo leaves nothing behind"
    );
}

#[test]
fn the_report_as_json_is_all_that_stdout_carries() {
    let folder = folder();
    let run = run(
        folder.path(),
        &["demo", "--pages", "60", "--json", "--quiet"],
    );
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{run:?}");
    let report = report_of(&run);
    assert_eq!(report["pages"], 60, "{report}");
    assert_eq!(report["outcome"], "finished");
    assert_eq!(report["identity_holds"], true);
}

/// The words of a demo into `data`, a few pages at a time.
fn slow_demo(pages: &str) -> [&str; 8] {
    [
        "demo",
        "--pages",
        pages,
        "--data",
        "data",
        "--json",
        "--concurrency",
        "2",
    ]
}

/// Starts a demo and stops it when it has fetched some pages. A demo serves itself, so nobody can hold it up: where it was
/// over before, a larger one is begun.
fn stopped_demo() -> (TempDir, u64, Run) {
    let mut page_count = 3_000;
    loop {
        let folder = folder();
        let child = spawn(folder.path(), &slow_demo(&page_count.to_string()));
        let pages = folder.path().join("data/pages.jsonl");
        wait_until("the first pages", || {
            fs::metadata(&pages).is_ok_and(|file| file.len() > 0)
        });
        signal(&child, "TERM");
        let run = Run::from(child.wait_with_output().expect("it ends"));
        if run.code != Some(0) {
            return (folder, page_count, run);
        }
        page_count *= 4;
    }
}

#[test]
fn a_stopped_demo_resumes_and_a_finished_one_says_so() {
    let (folder, page_count, stopped) = stopped_demo();
    assert_eq!(stopped.code, Some(5), "{stopped:?}");
    assert_eq!(report_of(&stopped)["outcome"], "stopped");

    let page_words = page_count.to_string();
    let resumed = run(folder.path(), &slow_demo(&page_words));
    assert_eq!(resumed.code, Some(0), "{resumed:?}");
    let report = report_of(&resumed);
    assert_eq!(
        (&report["outcome"], &report["pages"]),
        (&"finished".into(), &page_count.into())
    );
    assert!(
        report["pages_this_run"].as_u64() < Some(page_count),
        "{report}"
    );

    let again = run(folder.path(), &slow_demo(&page_words));
    assert_eq!(again.code, Some(0), "{again:?}");
    assert_eq!(report_of(&again)["outcome"], "already-finished");
}

#[test]
fn a_demo_and_a_crawl_take_no_folder_of_each_other_nor_a_demo_one_of_another_size() {
    let folder = folder();
    let demo = |pages: &str| {
        run(
            folder.path(),
            &["demo", "--pages", pages, "--data", "data", "--no-warc"],
        )
    };
    assert_eq!(demo("20").code, Some(0));
    let other = demo("40");
    assert_eq!(other.code, Some(2), "{other:?}");
    assert!(
        other.stderr.contains("another demo") && other.stderr.contains("hint: "),
        "{other:?}"
    );
    // The seed would be crawled, or refused for its address, after the folder was taken.
    let crawl = run(
        folder.path(),
        &["crawl", "http://127.0.0.1:1/", "--data", "data"],
    );
    assert!(
        crawl.code == Some(2)
            && crawl
                .stderr
                .contains("the data folder data is that of a demo")
            && crawl.stderr.contains("bloomcrawl demo --data data"),
        "{crawl:?}"
    );
    assert_eq!(demo("20").code, Some(0), "the folder is as it was");
    fs::write(folder.path().join("notes.txt"), "mine").expect("a file");
    let foreign = run(folder.path(), &["demo", "--data", "."]);
    assert!(
        foreign.code == Some(2) && foreign.stderr.contains("not empty"),
        "{foreign:?}"
    );
}

#[test]
fn ctrl_c_ends_a_crawl_that_is_still_being_opened() {
    let folder = folder();
    // A database that takes the connection and never says a word.
    let database = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = database.local_addr().expect("its address");
    let store = format!("postgres://me@{address}/crawl");
    let mut child = spawn(
        folder.path(),
        &["crawl", "http://127.0.0.1:1/", "--store", &store],
    );
    let connection = database.accept().expect("a connection");
    signal(&child, "INT");
    let mut lines = BufReader::new(child.stderr.take().expect("a pipe")).lines();
    assert!(
        lines
            .by_ref()
            .any(|line| line.expect("UTF-8").contains("Ctrl-C again ends at once")),
        "the first is answered"
    );
    signal(&child, "INT");
    // A crawl that gave up on its database would say so, and end with another code.
    assert_eq!(lines.next().transpose().expect("UTF-8"), None);
    assert_eq!(child.wait().expect("it ends").code(), Some(5));
    drop(connection);
}

const WARC: &str = "WARC/1.0\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:uuid:00000000-0000-4000-8000-000000000001>\r\n\
    WARC-Date: 2026-01-01T00:00:00Z\r\nWARC-Target-URI: http://a.example/x?y=1\r\n\
    Content-Type: application/http; msgtype=response\r\nContent-Length: 81\r\n\r\n\
    HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 17\r\n\r\n<p>served as is\r\n\r\n\r\n\r\n";

/// Returns [`WARC`] with the length of its block filled in.
fn warc() -> String {
    let (head, block) = WARC.split_once("\r\n\r\n").expect("a head");
    let block = block.strip_suffix("\r\n\r\n").expect("an end");
    format!(
        "{}\r\n\r\n{block}\r\n\r\n",
        head.replace(
            "Content-Length: 81",
            &format!("Content-Length: {}", block.len())
        )
    )
}

fn get(address: &str, host: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("the server listens");
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
    )
    .expect("the request is sent");
    let mut answer = String::new();
    stream
        .read_to_string(&mut answer)
        .expect("an answer in UTF-8");
    answer
}

#[test]
fn replay_serves_what_it_holds_until_it_is_stopped() {
    let folder = folder();
    fs::write(folder.path().join("a.warc"), warc()).expect("a file");
    let mut child = spawn(
        folder.path(),
        &[
            "replay",
            "a.warc",
            "--log",
            "log.jsonl",
            "--ca-out",
            "ca.pem",
        ],
    );
    let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    let mut next = || lines.next().expect("four lines").expect("UTF-8");
    let (http, https, ca, urls) = (next(), next(), next(), next());
    let address = http.strip_prefix("http ").expect("the address of http");
    assert!(https.starts_with("https 127.0.0.1:"), "{https}");
    assert_eq!((ca.as_str(), urls.as_str()), ("ca ca.pem", "urls 1"));
    assert!(
        fs::read_to_string(folder.path().join("ca.pem"))
            .expect("a file")
            .starts_with("-----BEGIN CERTIFICATE")
    );

    let found = get(address, "a.example", "/x?y=1");
    assert!(
        found.starts_with("HTTP/1.1 200") && found.contains("<p>served as is"),
        "{found}"
    );
    assert!(get(address, "a.example", "/other").starts_with("HTTP/1.1 404"));
    assert!(get(address, "b.example", "/x?y=1").starts_with("HTTP/1.1 404"));
    signal(&child, "INT");
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(
        String::from_utf8_lossy(&output.stderr).contains("--connect-to :80:127.0.0.1:"),
        "{output:?}"
    );

    let log = fs::read_to_string(folder.path().join("log.jsonl")).expect("a log");
    let entries: Vec<serde_json::Value> = log
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON lines"))
        .collect();
    let statuses: Vec<_> = entries
        .iter()
        .map(|entry| entry["status"].as_u64())
        .collect();
    assert_eq!(statuses, [Some(200), Some(404), Some(404)]);
    assert_eq!(entries[0]["url"], "http://a.example/x?y=1");
}

/// What a running `replay` says on stdout.
struct Replay {
    child: Child,
    http: String,
}

impl Replay {
    fn start(folder: &Path, arguments: &[&str]) -> Self {
        let mut child = spawn(folder, arguments);
        let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        let first = lines.next().expect("a line").expect("UTF-8");
        let http = first.strip_prefix("http ").expect("the address of http");
        // The rest stays in the pipe; it is short.
        assert!(lines.nth(2).is_some(), "four lines");
        Self {
            http: http.to_owned(),
            child,
        }
    }

    /// Stops it and returns the command that it printed.
    fn stop(self) -> String {
        signal(&self.child, "INT");
        let output = self.child.wait_with_output().expect("it ends");
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        let stderr = String::from_utf8(output.stderr).expect("UTF-8");
        let command = stderr
            .lines()
            .find(|line| line.starts_with("bloomcrawl crawl"));
        command.expect("a command").to_owned()
    }
}

/// The workflow of seeds/loopback.txt, and the command that `replay` prints.
#[test]
fn what_a_demo_archived_is_crawled_again_from_its_files() {
    let folder = folder();
    let demo = run(
        folder.path(),
        &["demo", "--pages", "50", "--data", "demo-data"],
    );
    assert_eq!(demo.code, Some(0), "{demo:?}");
    let archived = fs::read_dir(folder.path().join("demo-data/warc")).expect("a folder");
    let paths: Vec<String> = archived
        .map(|entry| entry.expect("an entry").path().display().to_string())
        .collect();
    let mut arguments = vec!["replay", "--seeds-out", "seeds.txt"];
    arguments.extend(paths.iter().map(String::as_str));
    let replay = Replay::start(folder.path(), &arguments);

    let seeds = fs::read_to_string(folder.path().join("seeds.txt")).expect("the seeds");
    assert_eq!(seeds.lines().count(), 50, "the pages, without robots.txt");
    let loopback = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../seeds/loopback.txt");
    let loopback = loopback.display().to_string();
    let rule = format!(":80:{}", replay.http);
    for (seeds, data) in [(loopback.as_str(), "a"), ("seeds.txt", "b")] {
        let crawl = run(
            folder.path(),
            &[
                "crawl",
                seeds,
                "--delay",
                "0",
                "--connect-to",
                &rule,
                "--data",
                data,
                "--json",
            ],
        );
        assert_eq!(crawl.code, Some(0), "{crawl:?}");
        let report = report_of(&crawl);
        assert_eq!(report["pages"], 50, "{report}");
        assert_eq!(report["by_status_class"]["2xx"], 50, "{report}");
    }
    let command = replay.stop();
    assert!(
        command.starts_with("bloomcrawl crawl seeds.txt --delay 0 ")
            && command.contains(&format!("--connect-to {rule} ")),
        "{command}"
    );
}

#[test]
fn a_crawl_says_why_it_waits_for_a_host_that_is_down() {
    let folder = folder();
    // Nobody speaks TLS at a port whose connections are closed at once.
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let url = format!("https://{}/", listener.local_addr().expect("an address"));
    thread::spawn(move || listener.incoming().for_each(drop));
    let mut child = spawn(folder.path(), &["crawl", &url, "--allow-private-addresses"]);
    let told = format!(
        "warning: {} cannot be reached (connect: ",
        url.trim_end_matches('/')
    );
    let lines = BufReader::new(child.stderr.take().expect("a pipe")).lines();
    let mut lines = lines.map(|line| line.expect("UTF-8"));
    let warning = lines.find(|line| line.starts_with(&told));
    assert!(
        warning.is_some_and(|line| line.contains("it is tried again in 5s")),
        "it is told before the end"
    );
    signal(&child, "INT");
    assert!(
        !lines.any(|line| line.starts_with(&told)),
        "it is told once"
    );
    assert_eq!(child.wait().expect("it ends").code(), Some(5));
}
