//! Real pages: the links and charsets found in 1,366 recorded pages, compared with those that another HTML parser and
//! another URL parser found.

#![expect(clippy::unwrap_used, reason = "a failed set-up fails the test")]
#![expect(
    clippy::print_stderr,
    reason = "the differences are the test's findings"
)]

use std::{
    collections::{BTreeSet, HashMap},
    fs::File,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use encoding_rs::Encoding;
use flate2::read::MultiGzDecoder;
use parser::{Parser, ParserConfig};
use serde_json::Value;
use types::{Canonicalizer, Headers, LinkKind, ParsedPage, UrlRejection};
use url::Url;
use warc::{Reader, ReaderLimits};

/// Pages of the corpus.
const PAGE_COUNT: usize = 1_366;

/// Pages that may differ when they are read without a tree, which is for pages no tree can be made of.
const TREELESS_DIFFERING_MAX: usize = 3;

/// Pages that may differ: 0.5 %.
const DIFFERING_MAX: usize = 6;

/// What the other parsers found in a page.
struct Expected {
    id: String,
    charset: String,
    links: Vec<String>,
}

struct Recorded {
    url: String,
    headers: Headers,
    body: Vec<u8>,
}

#[derive(Default)]
struct Findings {
    page_count: usize,
    link_count: usize,
    differing: Vec<String>,
    charset_differing: Vec<String>,
    /// Pages whose links differ when they are read without a tree.
    treeless_differing: Vec<String>,
}

#[test]
fn links_of_real_pages() {
    let Some(shared) = std::env::var_os("BLOOMCRAWL_CORPORA") else {
        eprintln!("skipped: BLOOMCRAWL_CORPORA is not set");
        return;
    };
    let folder = Path::new(&shared).join("corpora/pages");
    let expected = expected_of(&folder);
    let files: Vec<PathBuf> = (1..=3)
        .map(|number| folder.join(format!("pages-0{number}.warc.gz")))
        .collect();
    let findings = Mutex::new(Findings::default());
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some(file) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
                    compare_file(file, &expected, &findings);
                }
            });
        }
    });
    let findings = findings.into_inner().unwrap();
    let Findings {
        page_count,
        link_count,
        differing,
        charset_differing,
        treeless_differing,
    } = findings;
    eprintln!("{page_count} pages, {link_count} anchor links");
    eprintln!(
        "{} pages differ in links:\n{}",
        differing.len(),
        differing.join("\n")
    );
    eprintln!(
        "{} pages differ in charset:\n{}",
        charset_differing.len(),
        charset_differing.join("\n")
    );
    eprintln!(
        "{} pages differ without a tree:\n{}",
        treeless_differing.len(),
        treeless_differing.join("\n")
    );
    assert_eq!(page_count, PAGE_COUNT);
    assert!(treeless_differing.len() <= TREELESS_DIFFERING_MAX);
    assert!(
        differing.len() <= DIFFERING_MAX,
        "{} pages differ, at most {DIFFERING_MAX} may",
        differing.len()
    );
}

/// Reads the other parsers' findings by file and offset, since some URLs occur more than once.
fn expected_of(folder: &Path) -> HashMap<(String, u64), Expected> {
    let places: HashMap<String, (String, u64)> = std::fs::read_to_string(folder.join("pages.tsv"))
        .unwrap()
        .lines()
        .skip(1)
        .map(|line| {
            let columns: Vec<&str> = line.split('\t').collect();
            (
                columns[0].to_owned(),
                (columns[1].to_owned(), columns[2].parse().unwrap()),
            )
        })
        .collect();
    BufReader::new(MultiGzDecoder::new(
        File::open(folder.join("links-oracle.jsonl.gz")).unwrap(),
    ))
    .lines()
    .map(|line| {
        let page: Value = serde_json::from_str(&line.unwrap()).unwrap();
        let id = page["id"].as_str().unwrap().to_owned();
        let charset = page["charset"].as_str().unwrap().to_owned();
        let links = page["links"].as_array().unwrap();
        let links = links
            .iter()
            .map(|link| link.as_str().unwrap().to_owned())
            .collect();
        (places[&id].clone(), Expected { id, charset, links })
    })
    .collect()
}

fn compare_file(
    file: &Path,
    expected: &HashMap<(String, u64), Expected>,
    findings: &Mutex<Findings>,
) {
    let canonicalizer = Canonicalizer::default();
    let [parser, treeless] = [512, 0].map(|nesting_max| {
        Parser::new(ParserConfig {
            outlinks_max: 100_000,
            nesting_max,
            product_token: "bloomcrawl".to_owned(),
            canonicalizer: canonicalizer.clone(),
        })
    });
    let name = file.file_name().unwrap().to_str().unwrap().to_owned();
    for (offset, page) in responses(file) {
        let Some(expected) = expected.get(&(name.clone(), offset)) else {
            continue;
        };
        let url = canonicalizer.canonicalize(&page.url).unwrap();
        let parsed = parser.parse(&url, &page.headers, &page.body);
        let theirs = oracle_links(&canonicalizer, expected);
        let ours = anchors(&parsed, &theirs);
        let without_tree = anchors(&treeless.parse(&url, &page.headers, &page.body), &theirs);
        let mut findings = findings.lock().unwrap();
        findings.page_count += 1;
        if without_tree != ours {
            let description = describe(expected, &page.url, &without_tree, &ours);
            findings.treeless_differing.push(description);
        }
        findings.link_count += parsed
            .outlinks
            .iter()
            .filter(|link| link.kind == LinkKind::Anchor)
            .count();
        if ours != theirs {
            findings
                .differing
                .push(describe(expected, &page.url, &ours, &theirs));
        }
        let charset =
            Encoding::for_label(expected.charset.as_bytes()).map_or("none", Encoding::name);
        if charset != parsed.charset {
            let id = &expected.id;
            findings.charset_differing.push(format!(
                "  {id} {}: {} here, {charset} there",
                page.url, parsed.charset
            ));
        }
    }
}

/// Reads the responses of a file, with the offsets of their records.
fn responses(file: &Path) -> impl Iterator<Item = (u64, Recorded)> {
    let reader = Reader::new(
        BufReader::new(File::open(file).unwrap()),
        ReaderLimits::default(),
    );
    reader
        .map(Result::unwrap)
        .filter(|record| record.kind() == "response")
        .map(|record| {
            let response = record.http_response().unwrap();
            let fields = response
                .headers
                .iter()
                .map(|(name, value)| (name.to_string(), value.to_vec()))
                .collect();
            let url = record.target_uri().unwrap().to_owned();
            (
                record.position.offset,
                Recorded {
                    url,
                    headers: Headers::new(fields),
                    body: response.body.to_vec(),
                },
            )
        })
}

/// The page's anchor links. A query in a legacy encoding is written in UTF-8 again where the other parser has it so.
fn anchors(page: &ParsedPage, theirs: &BTreeSet<String>) -> BTreeSet<String> {
    let encoding = Encoding::for_label(page.charset.as_bytes()).unwrap();
    page.outlinks
        .iter()
        .filter(|link| link.kind == LinkKind::Anchor)
        .filter_map(|link| link.target.as_ref().ok())
        .map(|url| {
            let is_known = theirs.contains(url.as_str());
            if is_known {
                url.as_str().to_owned()
            } else {
                query_in_utf_8(url.as_str(), encoding)
            }
        })
        .collect()
}

fn query_in_utf_8(url: &str, encoding: &'static Encoding) -> String {
    let mut again = Url::parse(url).unwrap();
    if let Some(query) = again.query() {
        let bytes = non_ascii_decoded(query.as_bytes());
        let query = encoding.decode_without_bom_handling(&bytes).0.into_owned();
        again.set_query(Some(&query));
    }
    again.to_string()
}

/// Decodes the escapes of bytes that are not ASCII.
fn non_ascii_decoded(query: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = query;
    while let Some((&first, after)) = rest.split_first() {
        let escape = after
            .get(..2)
            .and_then(|digits| std::str::from_utf8(digits).ok());
        let byte = escape
            .and_then(|digits| u8::from_str_radix(digits, 16).ok())
            .filter(|byte| !byte.is_ascii());
        match byte {
            Some(byte) if first == b'%' => {
                bytes.push(byte);
                rest = &after[2..];
            }
            _ => {
                bytes.push(first);
                rest = after;
            }
        }
    }
    bytes
}

/// The other parsers' links in canonical form, without those over the length cap.
fn oracle_links(canonicalizer: &Canonicalizer, expected: &Expected) -> BTreeSet<String> {
    let canonical = |link: &String| match canonicalizer.canonicalize(link) {
        Ok(url) => Some(url.as_str().to_owned()),
        Err(UrlRejection::TooLong { .. }) => None,
        Err(_) => Some(link.clone()),
    };
    expected.links.iter().filter_map(canonical).collect()
}

fn describe(
    expected: &Expected,
    url: &str,
    ours: &BTreeSet<String>,
    theirs: &BTreeSet<String>,
) -> String {
    let sample = |one: &BTreeSet<String>, other: &BTreeSet<String>| {
        let missing: Vec<&String> = one.difference(other).collect();
        let mut shown = missing.len().to_string();
        for link in missing.iter().take(4) {
            shown.push_str("\n      ");
            shown.extend(link.escape_debug());
        }
        shown
    };
    let (here, there) = (sample(ours, theirs), sample(theirs, ours));
    format!(
        "  {} {url}\n    only here: {here}\n    only there: {there}",
        expected.id
    )
}
