//! Resume after SIGKILL: the same command finishes the same crawl, whatever moment it died at.
#![expect(
    clippy::print_stderr,
    reason = "the figures are part of the test's worth"
)]

mod support;

use std::{
    collections::BTreeSet,
    fs,
    path::Path,
    process::{Child, Stdio},
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use replay::{Server, ServerConfig, Synthetic, SyntheticConfig};
use store::testing::Cluster;
use support::{Run, command, folder, run};

const PAGES: u64 = 5_000;
const KILLS: u64 = 10;
/// The default cap: twice the connections, at least 128.
const LEASES_MAX: u64 = 128;

/// A crawl of one site, to be run again and again.
struct Crawl<'a> {
    folder: &'a Path,
    arguments: Vec<String>,
}

impl Crawl<'_> {
    fn spawn(&self) -> Child {
        let arguments: Vec<&str> = self.arguments.iter().map(String::as_str).collect();
        command(self.folder, &arguments)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the binary starts")
    }

    /// Runs until the server has answered `count` requests for pages, then kills.
    fn kill_at(&self, server: &Server, count: u64) {
        let mut child = self.spawn();
        let begun = Instant::now();
        while request_count(server) < count {
            assert!(
                begun.elapsed() < Duration::from_mins(2),
                "the crawl does not come to {count} requests"
            );
            assert!(
                child.try_wait().expect("the child is ours").is_none(),
                "the crawl ended by itself"
            );
            thread::sleep(Duration::from_millis(2));
        }
        child.kill().expect("the child is ours");
        child.wait().expect("the child is ours");
    }

    fn finish(&self) -> Run {
        let arguments: Vec<&str> = self.arguments.iter().map(String::as_str).collect();
        run(self.folder, &arguments)
    }
}

fn request_count(server: &Server) -> u64 {
    server
        .request_counts()
        .iter()
        .filter(|(url, _)| !url.ends_with("/robots.txt"))
        .map(|(_, count)| count)
        .sum()
}

/// Serves the site, slowly enough to die in the middle of it.
fn serve(site: &Arc<Synthetic>) -> Server {
    let config = ServerConfig {
        https: None,
        latency: Duration::from_millis(20),
        ..ServerConfig::default()
    };
    Server::start(config, Arc::<Synthetic>::clone(site)).expect("the server starts")
}

/// The pages of the site that were asked for, and how many requests beside the first they took in all.
fn fetched(server: &Server, site: &Synthetic) -> (BTreeSet<String>, u64) {
    let mut pages = server.request_counts();
    pages.retain(|url, _| site.is_page(url));
    let refetched = pages.values().map(|count| count - 1).sum();
    (pages.into_keys().collect(), refetched)
}

/// Where to kill, in pages: somewhere in the next tenth of the crawl, random over the runs, the same for one seed.
fn kill_target(seed: u64, kill: u64) -> u64 {
    let random = seed
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(kill * 977)
        >> 7;
    let spread = random % (PAGES / 20);
    PAGES / (KILLS + 1) * kill - spread.min(PAGES / (KILLS + 1) - 1)
}

fn survives_kills(store: &str, seed: u64) {
    let site = Arc::new(Synthetic::new(SyntheticConfig {
        pages: PAGES,
        page_bytes: 2_000,
        seed,
        ..SyntheticConfig::default()
    }));
    let server = serve(&site);
    let folder = folder();
    // A filter from the first URL on, and saved so often that each run reads it, and the keys logged since.
    let settings = "fixed-filter-urls = 20000\ncheckpoint-interval = \"100ms\"\n";
    fs::write(folder.path().join("config.toml"), settings).expect("the settings are written");
    let connect_to = format!("::{}", server.http_address());
    let start = site.start_url();
    let words = format!(
        "crawl {start} --data data --store {store} --delay 0 --per-host 64 --connect-to {connect_to} \
         --expected-urls 10000 --json --verbose"
    );
    let crawl = Crawl {
        folder: folder.path(),
        arguments: words.split(' ').map(str::to_owned).collect(),
    };
    let mut refetched_before = 0;
    for kill in 1..=KILLS {
        crawl.kill_at(&server, kill_target(seed, kill) + refetched_before);
        let (_, refetched) = fetched(&server, &site);
        assert!(
            refetched - refetched_before <= LEASES_MAX,
            "kill {} was followed by {} refetches",
            kill - 1,
            refetched - refetched_before
        );
        refetched_before = refetched;
    }
    let run = crawl.finish();
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert!(
        run.stderr.contains("the filter was read from its snapshot"),
        "{}",
        run.stderr
    );
    let report: serde_json::Value =
        serde_json::from_str(&run.stdout).expect("--json prints the report");
    assert_eq!(report["outcome"], "finished");
    assert_eq!(report["identity_holds"], true);
    assert_eq!(report["counts"]["succeeded"], PAGES);
    assert_eq!(report["leases_max"], LEASES_MAX);
    assert_eq!(
        report["resumed_leases_max"], LEASES_MAX,
        "the run before was killed"
    );
    let (pages, refetched) = fetched(&server, &site);
    assert_eq!(pages, site.urls().collect(), "every page was fetched");
    assert!(refetched - refetched_before <= LEASES_MAX);
    assert_records(&folder.path().join("data"), &pages);
    eprintln!(
        "{store}: {PAGES} pages, {KILLS} kills, {refetched} refetches in all, at most {LEASES_MAX} a kill"
    );
}

/// Every page has one line, and each WARC file can be read to its end.
fn assert_records(data: &Path, pages: &BTreeSet<String>) {
    let lines = fs::read_to_string(data.join("pages.jsonl")).expect("the page records");
    let urls: Vec<String> = lines
        .lines()
        .map(|line| {
            serde_json::from_str::<types::PageRecord>(line)
                .expect("a line is one record")
                .url
        })
        .collect();
    assert_eq!(
        urls.len(),
        pages.len(),
        "a page has another number of lines than one"
    );
    assert_eq!(&urls.into_iter().collect::<BTreeSet<_>>(), pages);
    let mut responses = BTreeSet::new();
    for entry in fs::read_dir(data.join("warc")).expect("the WARC folder") {
        let file = fs::File::open(entry.expect("a WARC file").path()).expect("a WARC file");
        for record in
            warc::Reader::new(std::io::BufReader::new(file), warc::ReaderLimits::default())
        {
            let record = record.expect("no record is cut or damaged");
            if record.kind() == "response" {
                let url = record
                    .target_uri()
                    .expect("a response has a target")
                    .to_owned();
                assert!(
                    url.ends_with("/robots.txt") || responses.insert(url.clone()),
                    "{url} is archived twice"
                );
            }
        }
    }
    assert_eq!(&responses, pages);
}

#[test]
fn the_embedded_store_survives_kills() {
    survives_kills("embedded:", 1);
}

#[test]
fn postgres_survives_kills() {
    survives_kills(&Cluster::shared().create_database(), 2);
}
