//! The memory of a crawl of a thousand pages, as a process of its own: the served site is not in it, all else is.

#![cfg(target_os = "linux")]

mod support;

use std::sync::Arc;

use replay::{Server, ServerConfig, Synthetic, SyntheticConfig};
use support::{folder, run};

/// The most that the process may ever hold, its program included.
const PEAK_BYTES_MAX: u64 = 40_000_000;

/// Crawls, of which none may hold more: how much waits at a time differs from one to the next.
const CRAWLS: usize = 3;

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
