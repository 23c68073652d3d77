//! Sitemaps and feeds, as a site's server sees them: which documents are read, which entries are fetched, and what ends.
#![expect(clippy::unwrap_used, reason = "a failed set-up fails the test")]
#![expect(clippy::print_stderr, reason = "a skipped test says why")]

mod support;

use std::{collections::BTreeSet, fmt::Write as _, fs, io::Write as _, sync::Arc};

use base64::prelude::{BASE64_STANDARD, Engine as _};
use engine::CrawlConfig;
use flate2::{Compression, write::GzEncoder};
use replay::{Server, ServerConfig, SiteAnswer, SiteRequest};
use support::{BACKENDS, Backend, Place, assert_fetched_once, assert_whole, crawl};
use types::{CanonicalUrl, Canonicalizer, PageRecord, Truncation, Via};

const HOST: &str = "http://site.example";

/// Serves a site whose robots.txt names `sitemaps`; paths that `answer` does not know are pages without links.
fn serve(
    sitemaps: &[&str],
    answer: impl Fn(&str) -> Option<SiteAnswer> + Send + Sync + 'static,
) -> Server {
    let mut robots = "User-agent: *\nDisallow: /private\n".to_owned();
    for url in sitemaps {
        let _ = writeln!(robots, "Sitemap: {url}");
    }
    let site = move |request: &SiteRequest<'_>| match request.path_and_query {
        "/robots.txt" => SiteAnswer::text(robots.clone()),
        path => answer(path).unwrap_or_else(|| SiteAnswer::html("a page without links")),
    };
    let config = ServerConfig {
        https: None,
        ..ServerConfig::default()
    };
    Server::start(config, Arc::new(site)).unwrap()
}

fn urls(paths: &[&str]) -> BTreeSet<String> {
    paths.iter().map(|path| format!("{HOST}{path}")).collect()
}

/// Crawls from the front page and asserts that just `paths` were asked for, each once.
fn crawled(
    server: &Server,
    change: impl FnOnce(&mut CrawlConfig),
    paths: &[&str],
) -> Vec<PageRecord> {
    let place = Place::new(Backend::Embedded);
    let mut config = place.config(server);
    change(&mut config);
    let report = crawl(config, &[HOST]);
    let records = place.records();
    assert_whole(&report, &records);
    assert_fetched_once(server, &urls(paths));
    records
}

fn xml(body: String) -> SiteAnswer {
    SiteAnswer::new(200, "application/xml", body)
}

fn sitemap(locations: &[&str]) -> SiteAnswer {
    let mut body = "<?xml version=\"1.0\"?><urlset>".to_owned();
    for location in locations {
        let _ = write!(body, "<url><loc>{location}</loc></url>");
    }
    xml(body + "</urlset>")
}

fn index(locations: &[&str]) -> SiteAnswer {
    let mut body = "<sitemapindex>".to_owned();
    for location in locations {
        let _ = write!(body, "<sitemap><loc>{location}</loc></sitemap>");
    }
    xml(body + "</sitemapindex>")
}

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

/// The crawl ends only when the sitemaps of the last robots.txt file are done, though its one page has no links.
#[test]
fn a_crawl_follows_the_sitemaps_that_robots_txt_names() {
    for backend in BACKENDS {
        let server = serve(&["http://site.example/index.xml"], |path| match path {
            "/index.xml" => Some(index(&[
                "http://site.example/a.xml",
                "http://site.example/b.txt",
            ])),
            "/a.xml" => Some(sitemap(&["http://site.example/1", "http://site.example/2"])),
            "/b.txt" => Some(SiteAnswer::text(
                "http://site.example/2\nhttp://site.example/3\nhttp://site.example/list.txt\n",
            )),
            // No sitemap, so no list: it was only named by one.
            "/list.txt" => Some(SiteAnswer::text("http://site.example/never\n")),
            _ => None,
        });
        let place = Place::new(backend);
        let report = crawl(place.config(&server), &[HOST]);
        let records = place.records();
        assert_whole(&report, &records);
        let paths = [
            "/",
            "/index.xml",
            "/a.xml",
            "/b.txt",
            "/1",
            "/2",
            "/3",
            "/list.txt",
        ];
        assert_fetched_once(&server, &urls(&paths));
        let of = |path: &str| {
            let url = format!("{HOST}{path}");
            let record = records.iter().find(|record| record.url == url).unwrap();
            (record.via, record.depth)
        };
        assert_eq!(of("/index.xml"), (Via::Sitemap, 1));
        assert_eq!(of("/b.txt"), (Via::Sitemap, 1));
        assert_eq!(of("/3"), (Via::Entry, 2));
    }
}

#[test]
fn sitemaps_may_be_left_alone() {
    let server = serve(&["/s.xml"], |_| None);
    crawled(&server, |config| config.sitemaps = false, &["/"]);
    let server = serve(&["/s.xml"], |_| None);
    crawled(&server, |config| config.limits.max_depth = Some(0), &["/"]);
}

#[test]
fn an_include_pattern_is_for_entries_and_a_redirect_keeps_what_a_sitemap_is() {
    let server = serve(&["/moved"], |path| match path {
        "/moved" => Some(SiteAnswer::redirect(301, "/s")),
        "/s" => Some(SiteAnswer::text(
            "http://site.example/docs/1\nhttp://site.example/blog/1",
        )),
        _ => None,
    });
    let include = |config: &mut CrawlConfig| config.include = vec!["/docs/".to_owned()];
    crawled(&server, include, &["/", "/moved", "/s", "/docs/1"]);
}

/// Index within index within index, without end: the chain ends where one of redirects does.
#[test]
fn endless_indexes_end() {
    let server = serve(&["/0.xml"], |path| {
        let number: u32 = path.strip_prefix('/')?.strip_suffix(".xml")?.parse().ok()?;
        Some(index(&[&format!("http://site.example/{}.xml", number + 1)]))
    });
    let redirects = |config: &mut CrawlConfig| config.redirects_max = 3;
    let paths = ["/", "/0.xml", "/1.xml", "/2.xml", "/3.xml"];
    crawled(&server, redirects, &paths);
}

#[test]
fn a_feed_is_read_wherever_it_is_linked() {
    let server = serve(&[], |path| match path {
        "/" => Some(SiteAnswer::html(
            "<link rel=alternate type=application/atom+xml href=/feed><link rel=alternate type=application/json href=/no>",
        )),
        "/feed" => Some(SiteAnswer::new(
            200,
            "application/atom+xml",
            "<feed><entry><link href='/1'/></entry></feed>",
        )),
        "/1" => Some(
            SiteAnswer::new(200, "application/pdf", "%PDF").with_header("Link", "</2>; rel=next"),
        ),
        _ => None,
    });
    let records = crawled(&server, |_| {}, &["/", "/feed", "/1", "/2"]);
    let first = records.iter().find(|record| record.url.ends_with("/1"));
    assert_eq!(first.unwrap().via, Via::Entry);
}

/// A packed file that a page links to is a sitemap only if its root element says so.
#[test]
fn a_packed_file_is_read_by_its_root_element() {
    let list = gzip(b"http://site.example/no\nhttp://site.example/no2\n");
    let mut map = gzip(b"<urlset><url><loc>http://site.example/1</loc></url></urlset>");
    // Several members are one file (RFC 1952, section 2.2).
    map.extend(gzip(b" "));
    let server = serve(&[], move |path| match path {
        "/" => Some(SiteAnswer::html(
            "<a href=/list.xml.gz>1</a><a href=/map.xml.gz>2</a><a href=/map.gz>3</a>",
        )),
        "/list.xml.gz" => Some(SiteAnswer::new(200, "application/gzip", list.clone())),
        "/map.xml.gz" | "/map.gz" => Some(SiteAnswer::new(200, "application/x-gzip", map.clone())),
        _ => None,
    });
    crawled(
        &server,
        |_| {},
        &["/", "/list.xml.gz", "/map.xml.gz", "/map.gz", "/1"],
    );
}

/// jaeksoft/opensearchserver#1241, apache/stormcrawler#2125: what a sitemap names passes the filters that links pass.
#[test]
fn stormcrawler_2125_sitemap_entries_pass_the_same_filters_as_links() {
    let server = serve(&["/s.xml"], |path| {
        (path == "/s.xml").then(|| {
            sitemap(&[
                "http://other.example/x",
                "http://site.example/private/x",
                "http://site.example/old/x",
                "http://site.example/1",
            ])
        })
    });
    let exclude = |config: &mut CrawlConfig| config.exclude = vec!["/old/".to_owned()];
    crawled(&server, exclude, &["/", "/s.xml", "/1"]);
}

/// apache/stormcrawler#2125, apache/stormcrawler#1230: the root element tells what a document is.
#[test]
fn stormcrawler_1230_a_page_is_no_sitemap_and_a_sitemap_no_page_whatever_their_types() {
    let namespace = "http://www.sitemaps.org/schemas/sitemap/0.9";
    let server = serve(&[], move |path| match path {
        "/" => Some(SiteAnswer::html(format!(
            "<p>&lt;urlset xmlns=\"{namespace}\"> <urlset xmlns='{namespace}'><url><loc>http://site.example/no</loc></urlset>\
             <a href=/moved>s</a>"
        ))),
        "/moved" => Some(SiteAnswer::redirect(302, "/s")),
        "/s" => Some(SiteAnswer::html(format!(
            "<?xml version='1.0'?><urlset xmlns='{namespace}'><url><loc>http://site.example/1</loc></url></urlset>"
        ))),
        _ => None,
    });
    crawled(&server, |_| {}, &["/", "/moved", "/s", "/1"]);
}

/// sitemaps.org limits, jdx/aube#296: the cap is on what a file unpacks to.
#[test]
fn aube_296_a_sitemap_that_unpacks_to_too_much_is_cut_and_the_crawl_goes_on() {
    let mut text = "<urlset>".to_owned();
    for number in 0..400_000 {
        let _ = write!(
            text,
            "<url><loc>http://site.example/{}</loc></url>",
            number % 4
        );
    }
    let packed = gzip(text.as_bytes());
    let server = serve(&["/s.xml.gz", "/broken.xml.gz"], move |path| match path {
        "/s.xml.gz" => Some(SiteAnswer::new(200, "application/gzip", packed.clone())),
        "/broken.xml.gz" => Some(SiteAnswer::new(200, "gzip", packed[..1_000].to_vec())),
        _ => None,
    });
    let cap = |config: &mut CrawlConfig| config.fetch.decoded_bytes_max = 1 << 20;
    let paths = ["/", "/s.xml.gz", "/broken.xml.gz", "/0", "/1", "/2", "/3"];
    let records = crawled(&server, cap, &paths);
    let of = |name: &str| records.iter().find(|record| record.url.ends_with(name));
    let cut = of("/s.xml.gz").unwrap();
    assert_eq!(cut.truncated, Some(Truncation::Length));
    assert!(cut.outlink_count > 20_000 && cut.outlink_count <= 50_000);
    let broken = of("/broken.xml.gz").unwrap();
    assert_eq!(broken.error, Some(types::FailureKind::Decode));
    assert_eq!(broken.outlink_count, 0);
}

/// Each reduced public report is served as the sitemap that it is, and the crawl fetches what it should list.
#[test]
fn public_reports_on_sitemaps() {
    let Some(shared) = std::env::var_os("BLOOMCRAWL_CORPORA") else {
        eprintln!("skipped: BLOOMCRAWL_CORPORA is not set");
        return;
    };
    let path = std::path::Path::new(&shared).join("cases/public-reports.jsonl");
    let mut count = 0;
    for line in fs::read_to_string(path).unwrap().lines() {
        let case: serde_json::Value = serde_json::from_str(line).unwrap();
        if case["op"] == "sitemap.parse" {
            count += 1;
            let found = listed(&case["input"]);
            let expect = &case["expect"];
            let is_right = match expect["any_of"].as_array() {
                Some(any) => any.iter().any(|one| canonical(one) == found),
                None => canonical(expect) == found,
            };
            assert!(is_right, "{}: {found:?}, expected {expect}", case["id"]);
        }
    }
    assert!(count >= 10, "only {count} cases");
}

fn canonical(list: &serde_json::Value) -> BTreeSet<String> {
    let urls = list.as_array().unwrap().iter();
    urls.map(|url| {
        let url = Canonicalizer::default().canonicalize(url.as_str().unwrap());
        url.unwrap().as_str().to_owned()
    })
    .collect()
}

/// Serves one sitemap and returns what is fetched beside it and the front page.
fn listed(input: &serde_json::Value) -> BTreeSet<String> {
    let url: CanonicalUrl = Canonicalizer::default()
        .canonicalize(input["url"].as_str().unwrap())
        .unwrap();
    let mut body = BASE64_STANDARD
        .decode(input["body_b64"].as_str().unwrap())
        .unwrap();
    let media_type = input["content_type"].as_str().unwrap_or_default();
    let mut headers = input["headers"].as_array().into_iter().flatten();
    // The one header of any case is this; its layer is not in the body.
    let is_coded = headers.any(|header| {
        let header = header.as_str().unwrap();
        assert!(header.starts_with("Content-Encoding: gzip"), "{header}");
        true
    });
    if is_coded {
        body = gzip(&body);
    }
    let mut answer = SiteAnswer::new(200, media_type, body);
    if is_coded {
        answer = answer.with_header("Content-Encoding", "gzip");
    }
    let host = url.host().to_string();
    let path = url.as_str()[host.len()..].to_owned();
    let server = serve(&[url.as_str()], move |asked| {
        (asked == path).then(|| answer.clone())
    });
    let place = Place::new(Backend::Embedded);
    let report = crawl(place.config(&server), &[&host]);
    assert_whole(&report, &place.records());
    let front = format!("{host}/");
    let asked = server.request_counts().into_keys();
    asked
        .filter(|asked| {
            *asked != front && *asked != url.as_str() && !asked.ends_with("/robots.txt")
        })
        .collect()
}
