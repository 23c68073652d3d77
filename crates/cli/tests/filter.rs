//! `bloomcrawl filter` from outside, and the modes of the seen test on a site whose truth is known.

mod support;

use std::{fs, path::Path, sync::Arc};

use replay::{Server, ServerConfig, Synthetic, SyntheticConfig};
use support::{Run, command, finish, folder, run};

const PAGES: u64 = 400;

struct Site {
    site: Arc<Synthetic>,
    server: Server,
}

impl Site {
    fn start() -> Self {
        let site = Arc::new(Synthetic::new(SyntheticConfig {
            pages: PAGES,
            page_bytes: 1_000,
            seed: 5,
            ..SyntheticConfig::default()
        }));
        let config = ServerConfig {
            https: None,
            ..ServerConfig::default()
        };
        let server =
            Server::start(config, Arc::<Synthetic>::clone(&site)).expect("the server starts");
        Self { site, server }
    }

    /// Crawls the whole site, and returns the report.
    fn crawl(&self, folder: &Path, mode: &str, filter_urls: &str) -> serde_json::Value {
        json(&self.run(folder, mode, filter_urls))
    }

    /// Crawls the whole site with a filter that has bits for so many URLs.
    fn run(&self, folder: &Path, mode: &str, filter_urls: &str) -> Run {
        let words = format!(
            "crawl {} --data {mode} --delay 0 --per-host 64 --connect-to ::{} --json --quiet --no-warc \
             --seen-mode {mode}",
            self.site.start_url(),
            self.server.http_address()
        );
        let arguments: Vec<&str> = words.split_whitespace().collect();
        let mut command = command(folder, &arguments);
        let run = finish(command.env("BLOOMCRAWL_FIXED_FILTER_URLS", filter_urls));
        assert_eq!(run.code, Some(0), "{run:?}");
        run
    }
}

fn json(run: &Run) -> serde_json::Value {
    serde_json::from_str(&run.stdout).unwrap_or_else(|error| panic!("{error}: {run:?}"))
}

#[test]
fn size_prints_a_table_or_json() {
    let folder = folder();
    let table = run(folder.path(), &["filter", "size", "--urls", "50M"]);
    assert!(
        table.code == Some(0) && table.stderr.is_empty(),
        "{table:?}"
    );
    for part in [
        "50,000,000 URLs at 1.00 %",
        "cuckoo filter",
        "cannot delete",
    ] {
        assert!(table.stdout.contains(part), "{part}: {table:?}");
    }
    let arguments = [
        "filter",
        "size",
        "--urls",
        "1_000_000",
        "--rate",
        "0.001%",
        "--json",
    ];
    let found = run(folder.path(), &arguments);
    assert!(
        found.stderr.starts_with("warning: a rate below 0.01 %"),
        "{found:?}"
    );
    let plan = json(&found);
    assert_eq!(plan["urls"], 1_000_000);
    assert!(
        plan["bytes"]
            .as_u64()
            .is_some_and(|bytes| bytes > 2_000_000),
        "{plan}"
    );
    assert!(plan["advice"].is_string() && plan["alternatives"].is_array());
}

#[test]
fn what_cannot_be_sized_or_read_is_exit_code_2() {
    let folder = folder();
    fs::write(folder.path().join("text"), "no snapshot").expect("a file");
    for (arguments, named) in [
        (&["filter"][..], "Usage"),
        (&["filter", "size"], "--urls"),
        (&["filter", "size", "--urls", "many"], "such as 500"),
        (&["filter", "size", "--urls", "0"], "a count from 1"),
        (
            &["filter", "size", "--urls", "1M", "--rate", "100%"],
            "such as 0.01 or 1%",
        ),
        (
            &["filter", "size", "--urls", "1M", "--rate", "0"],
            "from 1e-9 to below 1",
        ),
        (&["filter", "size", "--urls", "99999999999G"], "such as 500"),
        (
            &["filter", "size", "--urls", "9999999999M"],
            "over the limit",
        ),
        (&["filter", "inspect", "text"], "text is no snapshot"),
        (&["filter", "check", "missing"], "missing cannot be read"),
        (
            &["filter", "check", "."],
            "holds no filter.snapshot yet\nhint: a crawl that has a filter writes it at its first checkpoint",
        ),
    ] {
        let run = run(folder.path(), arguments);
        assert_eq!(run.code, Some(2), "{arguments:?}: {run:?}");
        assert!(
            run.stdout.is_empty() && run.stderr.contains(named),
            "{named}: {run:?}"
        );
    }
}

#[test]
fn the_snapshot_of_a_crawl_is_inspected_checked_and_refused_when_damaged() {
    let folder = folder();
    let site = Site::start();
    let report = site.crawl(folder.path(), "bloom+store", "1000");
    assert_eq!(report["pages"], PAGES, "{report}");
    let inspected = json(&run(
        folder.path(),
        &["filter", "inspect", "bloom+store", "--json"],
    ));
    assert_eq!(inspected["urls"], report["filter"]["items"]);
    assert_eq!(inspected["slices"], 1);
    let checked = run(folder.path(), &["filter", "check", "bloom+store"]);
    assert!(
        checked.code == Some(0) && checked.stdout.contains("does as it should"),
        "{checked:?}"
    );
    let text = run(
        folder.path(),
        &["filter", "inspect", "bloom+store/filter.snapshot"],
    );
    assert!(
        text.stdout.contains("1 slice") && text.stdout.contains("whole"),
        "{text:?}"
    );

    let path = folder.path().join("bloom+store/filter.snapshot");
    let mut bytes = fs::read(&path).expect("the snapshot");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&path, bytes).expect("the snapshot");
    for what in ["inspect", "check"] {
        let refused = run(folder.path(), &["filter", what, "bloom+store"]);
        assert!(
            refused.code == Some(2) && refused.stderr.contains("is damaged"),
            "{refused:?}"
        );
    }

    // The next run says so, also when quiet, makes the filter anew and saves it again.
    let again = site.run(folder.path(), "bloom+store", "1000");
    assert!(
        again
            .stderr
            .starts_with("warning: filter.snapshot is damaged"),
        "{again:?}"
    );
    assert_eq!(json(&again)["outcome"], "already-finished");
    let checked = run(folder.path(), &["filter", "check", "bloom+store"]);
    assert_eq!(checked.code, Some(0), "{checked:?}");
}

#[test]
fn exact_modes_fetch_every_page_and_the_filter_alone_says_what_it_lost() {
    let folder = folder();
    for mode in ["bloom+store", "exact", "store"] {
        // A filter for 20 URLs is soon full, and every new URL a false positive.
        let report = Site::start().crawl(folder.path(), mode, "20");
        assert_eq!(report["pages"], PAGES, "{mode}: {report}");
        assert_eq!(report["filter"]["mode"], mode);
        assert_eq!(report["identity_holds"], true);
    }
    let report = Site::start().crawl(folder.path(), "bloom", "20");
    assert!(
        report["pages"].as_u64().is_some_and(|pages| pages < PAGES),
        "{report}"
    );
    assert!(
        report["filter"]["expected_lost"]
            .as_f64()
            .is_some_and(|lost| lost > 0.0),
        "{report}"
    );
    let in_english = run(folder.path(), &["filter", "check", "bloom"]);
    assert_eq!(in_english.code, Some(0), "{in_english:?}");
    assert!(
        in_english.stderr.contains("more URLs than it is sized for"),
        "{in_english:?}"
    );
}
