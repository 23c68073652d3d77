//! Crawls with hardly any memory for bodies and for what is unwritten: they end, stop and go on as others do.
#![expect(clippy::unwrap_used, reason = "a failed set-up fails the test")]

mod support;

use std::{
    fmt::Write as _,
    sync::{Arc, Condvar, Mutex},
    time::Duration,
};

use engine::{Crawl, CrawlConfig, MemoryPlan, Outcome};
use replay::{Server, ServerConfig, SiteAnswer, SiteRequest};
use support::{Backend, Place, assert_whole};
use types::Canonicalizer;
use warc::{Record, RecordId, RecordType};

const BODIES: u64 = 40;
const BODY_BYTES: usize = 2_000_000;
const START: &str = "http://site.example/";

/// The bodies that the server may still send; each further request waits for its leave.
#[derive(Default)]
struct Gate {
    left: Mutex<u64>,
    raised: Condvar,
}

impl Gate {
    fn pass(&self) {
        // The server's other connections go on elsewhere.
        tokio::task::block_in_place(|| {
            let left = self.left.lock().unwrap();
            *self.raised.wait_while(left, |left| *left == 0).unwrap() -= 1;
        });
    }

    fn leave(&self, body_count: u64) {
        *self.left.lock().unwrap() = body_count;
        self.raised.notify_all();
    }
}

/// A front page with links to bodies that all ask for memory at once, and whose archive records are as large.
fn serve(gate: Arc<Gate>) -> Server {
    let mut front = String::new();
    for number in 0..BODIES {
        write!(front, "<a href=/{number}>x</a>").unwrap();
    }
    let mut noise = vec![0; BODY_BYTES];
    fastrand::Rng::with_seed(1).fill(&mut noise);
    let body = SiteAnswer::new(200, "application/octet-stream", noise);
    serve_site(move |path| {
        if path == "/" {
            return SiteAnswer::html(front.clone());
        }
        gate.pass();
        body.clone()
    })
}

fn serve_site(answer: impl Fn(&str) -> SiteAnswer + Send + Sync + 'static) -> Server {
    let site = move |request: &SiteRequest<'_>| match request.path_and_query {
        "/robots.txt" => SiteAnswer::not_found(),
        path => answer(path),
    };
    let config = ServerConfig {
        https: None,
        ..ServerConfig::default()
    };
    Server::start(config, Arc::new(site)).unwrap()
}

/// The least that the crawl can be planned with: one long body at a time, one large page, a backlog of one page.
fn with_least_memory(mut config: CrawlConfig, parse_threads: usize) -> CrawlConfig {
    config.parse_threads = Some(parse_threads);
    config.drain_timeout = Duration::from_mins(1);
    config.memory_bytes_max = Some(0);
    let refusal = MemoryPlan::new(&config).unwrap_err();
    config.memory_bytes_max = Some(refusal.least.total());
    config
}

fn start(config: CrawlConfig) -> Crawl {
    let seed = Canonicalizer::default().canonicalize(START).unwrap();
    Crawl::start(config, &[seed]).unwrap()
}

#[test]
fn a_crawl_that_waits_for_memory_stops_goes_on_and_fetches_all() {
    for parse_threads in [1, 3] {
        stop_and_go_on(parse_threads);
    }
}

fn stop_and_go_on(parse_threads: usize) {
    const GUARD: Duration = Duration::from_mins(1);
    let gate = Arc::new(Gate::default());
    let server = serve(Arc::clone(&gate));
    let place = Place::new(Backend::Embedded);
    let mut config = place.config(&server);
    // What is let through and what is under way at a stop leave some bodies to each further run.
    config.concurrency = 16;
    let config = with_least_memory(config, parse_threads);
    gate.leave(8);
    let crawl = start(config.clone());
    wait_for_pages(&crawl, 2);
    crawl.stop();
    gate.leave(BODIES);
    let report = crawl.wait(GUARD).expect("it drains").unwrap();
    assert_eq!(report.outcome, Outcome::Stopped);
    assert!(report.identity_holds);
    assert_eq!(crawl.notices(), Vec::<String>::new(), "what waited was had");

    gate.leave(8);
    let crawl = start(config.clone());
    wait_for_pages(&crawl, report.pages + 1);
    crawl.stop_now();
    let report = crawl.wait(GUARD).expect("it waits for no server").unwrap();
    assert_eq!(report.outcome, Outcome::Stopped);

    gate.leave(2 * BODIES);
    let crawl = start(config);
    let report = crawl.wait(GUARD).expect("it ends").unwrap();
    assert_eq!(report.pages, BODIES + 1);
    assert_eq!(
        report.wire_bytes / BODIES / 1_000,
        BODY_BYTES as u64 / 1_000
    );
    let records = place.records();
    assert!(records.iter().all(|record| record.truncated.is_none()));
    assert_whole(&report, &records);
}

fn wait_for_pages(crawl: &Crawl, count: u64) {
    while crawl.progress().pages < count {
        assert!(crawl.wait(Duration::from_millis(1)).is_none());
    }
}

/// A page of a megabyte, compressed to a few kilobytes, with a link behind more than half of it and another at its end.
fn compressed_page() -> Vec<u8> {
    let page = format!(
        "{}<a href=/middle>x</a>{}<a href=/end>x</a>",
        "word ".repeat(120_000),
        "word ".repeat(80_000)
    );
    // What comes before the page in the member is text to a parser of HTML.
    let id = RecordId::from_random(1);
    Record::new(
        RecordType::Warcinfo,
        id,
        "2026-01-01T00:00:00Z",
        page.into_bytes(),
    )
    .to_gzip_member(1)
}

#[test]
fn a_small_body_that_decodes_to_a_large_page_is_read_to_its_end_or_to_its_cut() {
    let wire_body = compressed_page();
    let wire_bytes = wire_body.len();
    assert!(wire_bytes < 30_000, "{wire_bytes} bytes");
    for (wire_bytes_max, found) in [
        (wire_bytes, vec!["end", "middle"]),
        (wire_bytes * 3 / 4, vec!["middle"]),
    ] {
        let compressed =
            SiteAnswer::html(wire_body.clone()).with_header("content-encoding", "gzip");
        let server = serve_site(move |path| match path {
            "/" => compressed.clone(),
            _ => SiteAnswer::html("found"),
        });
        let place = Place::new(Backend::Embedded);
        let mut config = place.config(&server);
        config.fetch.wire_bytes_max = wire_bytes_max;
        let crawl = start(with_least_memory(config, 2));
        let report = crawl.wait(Duration::from_mins(1)).unwrap().unwrap();
        let records = place.records();
        assert_whole(&report, &records);
        let mut paths: Vec<&str> = records
            .iter()
            .filter_map(|record| record.url.strip_prefix(START))
            .filter(|path| !path.is_empty())
            .collect();
        paths.sort_unstable();
        assert_eq!(paths, found, "{wire_bytes_max} bytes of {wire_bytes}");
    }
}
