//! Public bug reports about single answers of a server, to the byte: what is requested after them, and what is recorded.
#![expect(clippy::unwrap_used, reason = "a failed set-up fails the test")]
#![expect(clippy::print_stderr, reason = "a skipped test says why")]

use std::{
    collections::BTreeMap,
    env, fs,
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpListener, TcpStream},
    path::Path,
    sync::{Arc, Mutex},
    thread,
};

use base64::prelude::{BASE64_STANDARD, Engine as _};
use engine::{Crawl, CrawlConfig};
use frontier::ScopeRule;
use serde_json::Value;
use types::{Canonicalizer, Disposition, PageRecord};

/// Returns the cases of one operation; none, with a word on why, where the corpora are not there.
fn cases_of(operation: &str) -> Vec<Value> {
    let Some(shared) = env::var_os("BLOOMCRAWL_CORPORA") else {
        eprintln!("skipped: BLOOMCRAWL_CORPORA is not set");
        return Vec::new();
    };
    let path = Path::new(&shared).join("cases/public-reports.jsonl");
    let text = fs::read_to_string(path).unwrap();
    let cases = text.lines().map(|line| serde_json::from_str(line).unwrap());
    let cases: Vec<Value> = cases
        .filter(|case: &Value| case["op"] == operation)
        .collect();
    assert!(!cases.is_empty(), "the file holds cases of {operation}");
    cases
}

fn bytes_of(base64: &Value) -> Vec<u8> {
    BASE64_STANDARD.decode(base64.as_str().unwrap()).unwrap()
}

/// A request as it was read: the host that it names, its path, and its whole head.
#[derive(Clone, Debug)]
struct Request {
    host: String,
    path: String,
    head: String,
}

impl Request {
    fn url(&self) -> String {
        format!("http://{}{}", self.host, self.path)
    }
}

/// A server that answers each request with the bytes that it is given, and closes.
struct RawServer {
    address: SocketAddr,
    requests: Arc<Mutex<Vec<Request>>>,
}

impl RawServer {
    /// Starts a server; no bytes close the connection without an answer. It lives as long as the test process.
    fn start(answer: impl Fn(&Request) -> Vec<u8> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let requests = Arc::<Mutex<Vec<Request>>>::default();
        let (log, answer) = (Arc::clone(&requests), Arc::new(answer));
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (log, answer) = (Arc::clone(&log), Arc::clone(&answer));
                thread::spawn(move || serve(stream.unwrap(), &log, &*answer));
            }
        });
        Self { address, requests }
    }

    /// The URLs that were asked for, robots.txt aside, each with how often.
    fn asked(&self) -> BTreeMap<String, u64> {
        let mut counts = BTreeMap::new();
        for request in self.requests.lock().unwrap().iter() {
            if request.path != "/robots.txt" {
                *counts.entry(request.url()).or_default() += 1;
            }
        }
        counts
    }
}

fn serve(
    mut stream: TcpStream,
    log: &Mutex<Vec<Request>>,
    answer: &(dyn Fn(&Request) -> Vec<u8> + Sync),
) {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        if stream.read(&mut byte).unwrap_or(0) == 0 {
            return;
        }
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).unwrap();
    let host = head.lines().find_map(|line| {
        line.to_ascii_lowercase()
            .strip_prefix("host: ")
            .map(str::to_owned)
    });
    let request = Request {
        host: host.unwrap(),
        path: head.split(' ').nth(1).unwrap().to_owned(),
        head,
    };
    log.lock().unwrap().push(request.clone());
    // A client that has read enough may have gone.
    drop(stream.write_all(&answer(&request)));
}

fn response(status: &str, fields: &str, body: &str) -> Vec<u8> {
    format!(
        "HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n{fields}\r\n{body}",
        body.len()
    )
    .into_bytes()
}

fn page(body: &str) -> Vec<u8> {
    response("200 OK", "Content-Type: text/html\r\n", body)
}

/// Crawls from `seeds`, with every host at the server, to the end; returns the records by URL.
fn crawl(server: &RawServer, seeds: &[&str]) -> BTreeMap<String, PageRecord> {
    let folder = tempfile::tempdir().unwrap();
    let mut config = CrawlConfig {
        data: folder.path().to_path_buf(),
        delay: std::time::Duration::ZERO,
        scope: ScopeRule::Any,
        attempts_max: 1,
        host_attempts_max: 1,
        expected_urls: 10_000,
        ..CrawlConfig::default()
    };
    config.fetch.connect_to = vec![format!("::{}", server.address).parse().unwrap()];
    let canonicalizer = Canonicalizer::new(config.canonical.clone());
    let seeds: Vec<_> = seeds
        .iter()
        .map(|seed| canonicalizer.canonicalize(seed).unwrap())
        .collect();
    let report = Crawl::start(config, &seeds)
        .unwrap()
        .wait(std::time::Duration::from_mins(2))
        .expect("the crawl ends")
        .unwrap();
    assert!(report.identity_holds);
    fs::read_to_string(folder.path().join("pages.jsonl"))
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str::<PageRecord>(line).unwrap())
        .map(|record| (record.url.clone(), record))
        .collect()
}

#[test]
fn raw_responses_end_as_they_should() {
    for case in cases_of("raw.response") {
        let raw = bytes_of(&case["input"]["raw_b64"]);
        let server = RawServer::start(move |request| match request.path.as_str() {
            "/robots.txt" => response("404 Not Found", "", ""),
            "/page" => raw.clone(),
            _ => page("no links"),
        });
        let records = crawl(
            &server,
            &["http://site.example/page", "http://other.example/"],
        );
        let (id, expect) = (&case["id"], case["expect"].as_str().unwrap());
        let record = &records["http://site.example/page"];
        let is_followed = server.asked().contains_key("http://site.example/next");
        let is_whole = record.disposition == Disposition::Succeeded && record.truncated.is_none();
        let is_right = match expect {
            "ok+link" => is_whole && is_followed,
            "ok+no-link" => is_whole && !is_followed,
            "ok+no-crash" => true,
            "error" => record.disposition == Disposition::Failed && record.error.is_some(),
            "error-or-partial" => !is_whole,
            "ok+link-or-error" => is_whole == is_followed,
            "redirect" => is_whole && is_followed && record.redirect.is_some(),
            other => panic!("{id} expects {other}"),
        };
        assert!(is_right, "{id}: {record:?}, expected {expect}");
        let other = &records["http://other.example/"];
        assert_eq!(other.status, Some(200), "{id}: {other:?}");
    }
}

#[test]
fn redirects_lead_where_they_should() {
    for case in cases_of("redirect.target") {
        let input = &case["input"];
        let mut answer = format!(
            "HTTP/1.1 {} Found\r\nContent-Length: 0\r\nLocation: ",
            input["status"]
        )
        .into_bytes();
        answer.extend(bytes_of(&input["location_b64"]));
        answer.extend_from_slice(b"\r\n\r\n");
        let start = input["url"].as_str().unwrap();
        let start = Canonicalizer::default().canonicalize(start).unwrap();
        let (start_url, path) = (start.as_str().to_owned(), start.path_and_query().to_owned());
        let server = RawServer::start(move |request| match request.path.as_str() {
            "/robots.txt" => response("404 Not Found", "", ""),
            asked if asked == path => answer.clone(),
            _ => page("no links"),
        });
        crawl(&server, &[&start_url]);
        let mut asked = server.asked();
        assert_eq!(asked.remove(&start_url), Some(1), "{}", case["id"]);
        let found: Vec<Value> = asked.into_keys().map(Value::from).collect();
        assert!(found.len() <= 1, "{}: {found:?}", case["id"]);
        let target = found.into_iter().next().unwrap_or_default();
        let expect = &case["expect"];
        // Nothing but the start was asked for: no target, or the start itself.
        let is_right = |expected: &Value| {
            *expected == target || *expected == start_url.as_str() && target.is_null()
        };
        let is_right = match expect["any_of"].as_array() {
            Some(any) => any.iter().any(is_right),
            None => *expect == target,
        };
        assert!(is_right, "{}: {target}, expected {expect}", case["id"]);
    }
}

/// Serves `/p` beside a robots.txt that answers with these bytes, and says whether it was asked for.
fn is_fetched_beside(robots: Vec<u8>) -> bool {
    let server = RawServer::start(move |request| match request.path.as_str() {
        "/robots.txt" if request.host == "site.example" => robots.clone(),
        "/robots.txt" => response("404 Not Found", "", ""),
        _ => page("no links"),
    });
    crawl(&server, &["http://site.example/p", "http://other.example/"]);
    server.asked().contains_key("http://site.example/p")
}

#[test]
fn answers_to_requests_for_robots_txt_are_taken_by_their_status() {
    let mut count = 0;
    for case in cases_of("robots.status") {
        let input = &case["input"];
        let robots = if input["connection"].is_string() {
            Vec::new()
        } else if let (Some(status), Some(body)) =
            (input["status"].as_u64(), input["body"].as_str())
        {
            response(&format!("{status} X"), "Content-Type: text/html\r\n", body)
        } else {
            // The others are those of the tests below.
            continue;
        };
        count += 1;
        let is_fetched = is_fetched_beside(robots);
        assert_eq!(is_fetched, case["expect"] == "fetched", "{}", case["id"]);
    }
    assert!(count == 0 || count >= 5, "only {count} cases");
}

/// crawler-commons/crawler-commons#423: the name that is matched is in the field that is sent.
#[test]
fn crawler_commons_423_the_token_is_part_of_the_user_agent() {
    let server = RawServer::start(|request| match request.path.as_str() {
        "/robots.txt" => response("200 OK", "", "User-agent: bloomcrawl\nDisallow: /p\n"),
        _ => page("<a href=/p>p</a>"),
    });
    crawl(&server, &["http://site.example/"]);
    assert!(!server.asked().contains_key("http://site.example/p"));
    for request in server.requests.lock().unwrap().iter() {
        let head = request.head.to_ascii_lowercase();
        assert!(head.contains("\r\nuser-agent: bloomcrawl"), "{head}");
    }
}

/// utksh1/SecuScan#2369: a redirect is checked like a link.
#[test]
fn secuscan_2369_no_redirect_leads_past_robots_txt() {
    let server = RawServer::start(|request| match request.path.as_str() {
        "/robots.txt" => response("200 OK", "", "User-agent: *\nDisallow: /private\n"),
        "/a" => response("302 Found", "Location: /private/b\r\n", ""),
        _ => page("no links"),
    });
    crawl(&server, &["http://site.example/a"]);
    assert_eq!(server.asked().len(), 1, "{:?}", server.asked());
}

/// xorbitsai/xagent#2043: the rules behind a redirect are those of the host that was asked first.
#[test]
fn xagent_2043_rules_behind_a_redirect_are_the_first_hosts() {
    let server = RawServer::start(
        |request| match (request.host.as_str(), request.path.as_str()) {
            ("site.example", "/robots.txt") => {
                response("301 Moved", "Location: http://other.example/rules\r\n", "")
            }
            ("other.example", "/robots.txt") => response("404 Not Found", "", ""),
            ("other.example", "/rules") => response("200 OK", "", "User-agent: *\nDisallow: /p\n"),
            _ => page("no links"),
        },
    );
    crawl(
        &server,
        &["http://site.example/p", "http://other.example/p"],
    );
    let asked = server.asked();
    assert!(!asked.contains_key("http://site.example/p"), "{asked:?}");
    assert!(asked.contains_key("http://other.example/p"), "{asked:?}");
}

/// commoncrawl/nutch#54: slashes too many in a target are passed over (URL, "special authority ignore slashes state").
#[test]
fn nutch_54_a_robots_target_with_too_many_slashes_is_followed() {
    let server = RawServer::start(
        |request| match (request.host.as_str(), request.path.as_str()) {
            ("site.example", "/robots.txt") => response(
                "301 Moved",
                "Location: http:////other.example/robots.txt\r\n",
                "",
            ),
            ("other.example", "/robots.txt") => {
                response("200 OK", "", "User-agent: *\nDisallow: /p\n")
            }
            _ => page("no links"),
        },
    );
    crawl(&server, &["http://site.example/p"]);
    assert!(server.asked().is_empty(), "{:?}", server.asked());
}

/// weserv/images#473: no line of a request is made by a link.
#[test]
fn images_473_no_link_splits_a_request() {
    let server = RawServer::start(|request| match request.path.as_str() {
        "/robots.txt" => response("404 Not Found", "", ""),
        "/" => page("<a href='/a%0d%0aX-Evil:1'>1</a><a href='/b\r\nX-Evil: 1'>2</a>"),
        _ => page("no links"),
    });
    crawl(&server, &["http://site.example/"]);
    let asked = server.asked();
    assert!(
        asked.contains_key("http://site.example/a%0D%0AX-Evil:1"),
        "{asked:?}"
    );
    assert!(
        asked.contains_key("http://site.example/bX-Evil:%201"),
        "{asked:?}"
    );
    for request in server.requests.lock().unwrap().iter() {
        let mut fields = request.head.lines().skip(1);
        assert!(!fields.any(|line| line.to_ascii_lowercase().starts_with("x-evil")));
    }
}
