//! The memory of a crawl of a thousand pages, as a process of its own: the served site is not in it, all else is.

#![cfg(target_os = "linux")]

mod support;

use std::{fmt::Write as _, iter, sync::Arc};

use replay::{Server, ServerConfig, SiteAnswer, SiteRequest, Synthetic, SyntheticConfig};
use support::{folder, run};

/// The most that the process may ever hold, its program included.
const PEAK_BYTES_MAX: u64 = 40_000_000;

/// Crawls, of which none may hold more: how much waits at a time differs from one to the next.
const CRAWLS: usize = 3;

/// Large bodies of the site that has them, and their size.
const LARGE_BODIES: usize = 64;
const LARGE_BODY_BYTES: usize = 8_000_000;

/// The bound is that of the default settings. It holds for a build of the tests' profile as well as for a release.
#[test]
fn a_thousand_pages_take_less_than_40_mb() {
    let site = Arc::new(Synthetic::new(SyntheticConfig {
        pages: 1_000,
        ..SyntheticConfig::default()
    }));
    let start = site.start_url();
    let config = ServerConfig {
        https: None,
        ..ServerConfig::default()
    };
    let server = Server::start(config, site).expect("loopback has a free port");
    let to_server = format!("::{}", server.http_address());
    for _ in 0..CRAWLS {
        let folder = folder();
        #[rustfmt::skip]
        let run = run(
            folder.path(),
            &["crawl", &start, "--delay", "0", "--per-host", "64", "--connect-to", &to_server, "--json", "--quiet"],
        );
        assert_eq!(run.code, Some(0), "{}", run.stderr);
        let report: serde_json::Value = serde_json::from_str(&run.stdout).expect("a report");
        assert_eq!(report["pages"], 1_000, "{report}");
        assert!(
            report["links"]["discovered"].as_u64() > Some(50_000),
            "{report}"
        );
        let peak = report["peak_memory_bytes"].as_u64().expect("a number");
        assert!(
            peak > 0 && peak <= PEAK_BYTES_MAX,
            "{peak} bytes, {PEAK_BYTES_MAX} are allowed"
        );
    }
}

/// A front page, bodies that neither their archive records nor content coding make smaller, half of them without a length,
/// and a page of text as large.
fn large_site() -> impl Fn(&SiteRequest<'_>) -> SiteAnswer + Send + Sync {
    let mut state = 1_u64;
    let noise: Vec<u8> = iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    })
    .take(LARGE_BODY_BYTES / 8)
    .flatten()
    .collect();
    // Clones share the bytes.
    let noise = SiteAnswer::new(200, "application/octet-stream", noise);
    let mut front = String::from("<!DOCTYPE html><a href=/text>text</a>");
    for number in 0..LARGE_BODIES {
        write!(front, "<a href=/{number}>{number}</a>").expect("a string takes all");
    }
    move |request| match request.path_and_query {
        "/" => SiteAnswer::html(front.clone()),
        "/robots.txt" => SiteAnswer::not_found(),
        "/text" => {
            SiteAnswer::html("<p>word ".repeat(LARGE_BODY_BYTES / 8) + "<a href=/end>end</a>")
        }
        "/end" => SiteAnswer::html("the end"),
        path => {
            if path.ends_with(['1', '3', '5', '7', '9']) {
                noise.clone().with_header("transfer-encoding", "chunked")
            } else {
                noise.clone()
            }
        }
    }
}

fn serve_large_bodies() -> (Server, String) {
    let config = ServerConfig {
        https: None,
        ..ServerConfig::default()
    };
    let server = Server::start(config, Arc::new(large_site())).expect("loopback has a free port");
    let to_server = format!("::{}", server.http_address());
    (server, to_server)
}

/// Half a gigabyte of bodies that come in faster than one thread archives them.
#[test]
fn a_crawl_of_large_bodies_keeps_to_its_budget_and_fetches_all() {
    const BUDGET_BYTES: u64 = 400_000_000;
    let (_server, to_server) = serve_large_bodies();
    let folder = folder();
    #[rustfmt::skip]
    let run = run(
        folder.path(),
        &[
            "crawl", "http://large.example/", "--delay", "0", "--per-host", "64", "--connect-to", &to_server, "--json",
            "--memory", "400MB", "--max-decoded-body", "10MiB", "--parse-threads", "1", "--concurrency", "32",
            "--leases-max", "128", "--expected-urls", "100k",
        ],
    );
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert!(run.stderr.contains("\nmemory: at most "), "{}", run.stderr);
    let report: serde_json::Value = serde_json::from_str(&run.stdout).expect("a report");
    assert_eq!(report["pages"], LARGE_BODIES + 3, "{report}");
    let bytes = (LARGE_BODIES * LARGE_BODY_BYTES) as u64;
    assert!(report["wire_bytes"].as_u64() >= Some(bytes), "{report}");
    let plan = report["memory_plan_bytes"].as_object().expect("parts");
    let planned: u64 = plan.values().filter_map(serde_json::Value::as_u64).sum();
    assert!(planned <= BUDGET_BYTES, "{planned} bytes planned");
    let peak = report["peak_memory_bytes"].as_u64().expect("a number");
    assert!(peak <= BUDGET_BYTES, "{peak} bytes at the peak, {report}");
}

#[test]
fn a_budget_that_is_too_small_is_refused_with_the_sum() {
    let folder = folder();
    let run = run(
        folder.path(),
        &["crawl", "http://large.example/", "--memory", "100MB"],
    );
    assert_eq!(run.code, Some(3), "{}", run.stderr);
    for part in ["memory is 100.0 MB", " + filter ", " = ", "lower"] {
        assert!(run.stderr.contains(part), "{part}: {}", run.stderr);
    }
    assert!(!folder.path().join("bloomcrawl-data").exists());
}
