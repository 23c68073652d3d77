//! Runs public URL test suites through the path that a real link takes, and prints what passed.
//!
//! The suites lie outside the repository; the folder that holds them is named by `BLOOMCRAWL_CORPORA`.

#![expect(
    clippy::print_stderr,
    reason = "the table of results is what a reader runs this for"
)]

use std::{collections::BTreeMap, env, fs, path::PathBuf};

use serde_json::Value;
use types::{CanonicalOptions, CanonicalUrl, Canonicalizer, KeySeed, RejectReason, UrlRejection};
use url::Url;

/// Why A-labels that UTS #46 finds invalid are refused: the URL Standard accepts them in all-ASCII names since
/// June 2026 (whatwg/url commit a8d5ca3716), while the url crate, 2.5.8, still refuses them. The HTTP client parses
/// with the same crate, so that a URL accepted here could not be requested.
const INVALID_A_LABEL: &str =
    "invalid A-labels, refused by the url crate that the HTTP client uses too";

/// Vectors that are not met, and why: suite, input (behind its base and a space in `wpt-urltestdata`), reason.
const EXCEPTIONS: &[(&str, &str, &str)] = &[
    (
        "wpt-urltestdata",
        " http://a.b.c.xn--pokxncvks",
        INVALID_A_LABEL,
    ),
    (
        "wpt-urltestdata",
        " http://a.b.c.XN--pokxncvks",
        INVALID_A_LABEL,
    ),
    (
        "wpt-urltestdata",
        " http://a.b.c.Xn--pokxncvks",
        INVALID_A_LABEL,
    ),
    (
        "wpt-urltestdata",
        " http://10.0.0.xn--pokxncvks",
        INVALID_A_LABEL,
    ),
    (
        "wpt-urltestdata",
        " http://10.0.0.XN--pokxncvks",
        INVALID_A_LABEL,
    ),
    (
        "wpt-urltestdata",
        " http://10.0.0.xN--pokxncvks",
        INVALID_A_LABEL,
    ),
    ("wpt-urltestdata", " file://xn--/p", INVALID_A_LABEL),
    ("wpt-toascii", "xn--a", INVALID_A_LABEL),
    ("wpt-toascii", "xn--1ug.example", INVALID_A_LABEL),
    ("wpt-toascii", "xn--zn7c.com", INVALID_A_LABEL),
    ("wpt-toascii", "xn--0.com", INVALID_A_LABEL),
    (
        "wpt-idnatestv2",
        "",
        "makes https:///x, a URL whose host is x",
    ),
    (
        "wpt-idnatestv2",
        "\u{3e8ac}\u{3002}\u{729}\u{3002}\u{cbd9}5",
        "an unassigned code point that the url crate lets through; no such name can be registered",
    ),
];

/// Folders of the corpora, or `None` (and a line that says so) where they are not at hand.
fn corpora() -> Option<PathBuf> {
    let folder = env::var_os("BLOOMCRAWL_CORPORA");
    if folder.is_none() {
        eprintln!("skipped: BLOOMCRAWL_CORPORA is not set");
    }
    folder.map(PathBuf::from)
}

/// Reads a file of JSON lines.
fn json_lines(file: &str) -> Option<Vec<Value>> {
    let path = corpora()?.join(file);
    let text =
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let parse =
        |line: &str| serde_json::from_str(line).unwrap_or_else(|error| panic!("{line}: {error}"));
    Some(text.lines().map(parse).collect())
}

fn text_of<'a>(vector: &'a Value, name: &str) -> Option<&'a str> {
    vector.get(name).and_then(Value::as_str)
}

/// The results of one suite.
struct Suite {
    name: &'static str,
    passed_count: usize,
    excepted_count: usize,
    failures: Vec<String>,
}

impl Suite {
    const fn new(name: &'static str) -> Self {
        Self {
            name,
            passed_count: 0,
            excepted_count: 0,
            failures: Vec::new(),
        }
    }

    /// Counts one vector; `input` names it in the table of exceptions.
    fn judge(&mut self, input: &str, verdict: Result<(), String>) {
        let is_excepted = EXCEPTIONS
            .iter()
            .any(|(suite, excepted, _)| *suite == self.name && *excepted == input);
        match verdict {
            Ok(()) if is_excepted => {
                self.failures
                    .push(format!("{input:?} passes and needs no exception"));
            }
            Ok(()) => self.passed_count += 1,
            Err(_) if is_excepted || self.has_invalid_a_label(input) => self.excepted_count += 1,
            Err(difference) => self.failures.push(format!("{input:?}: {difference}")),
        }
    }

    /// Returns whether [`INVALID_A_LABEL`] excepts a vector of the one suite that has too many to list.
    fn has_invalid_a_label(&self, input: &str) -> bool {
        self.name == "wpt-idnatestv2"
            && input.is_ascii()
            && input.to_ascii_lowercase().contains("xn--")
    }

    /// Prints the suite's line of the table, and its exceptions.
    fn report(&self) {
        eprintln!(
            "{:<28} passed {:>4}  excepted {:>3}  failed {:>3}",
            self.name,
            self.passed_count,
            self.excepted_count,
            self.failures.len()
        );
        for (_, input, reason) in EXCEPTIONS.iter().filter(|(suite, ..)| *suite == self.name) {
            eprintln!("    excepted {input:?}: {reason}");
        }
    }

    /// Prints the suite's line and fails the test unless `vector_count` vectors ran and none failed.
    fn require(&self, vector_count: usize) {
        self.report();
        assert!(
            self.failures.is_empty(),
            "{}:\n{}",
            self.name,
            self.failures.join("\n")
        );
        assert_eq!(
            self.passed_count + self.excepted_count,
            vector_count,
            "{}",
            self.name
        );
        assert!(vector_count > 0, "{} is empty", self.name);
    }
}

/// Takes the way of a link: resolves `href` against the page, or parses it as a seed where there is none.
fn resolve(base: Option<&str>, href: &str) -> Result<CanonicalUrl, UrlRejection> {
    let canonicalizer = Canonicalizer::default();
    let Some(base) = base else {
        return canonicalizer.canonicalize(href);
    };
    let base = Url::parse(base).map_err(|error| UrlRejection::Invalid(error.to_string()))?;
    canonicalizer.resolve(&base, href)
}

/// Compares a result with the WHATWG serialization that is expected; `None` where parsing must fail.
fn compare(result: &Result<CanonicalUrl, UrlRejection>, href: Option<&str>) -> Result<(), String> {
    let reason = result.as_ref().map_err(UrlRejection::reason);
    let is_met = match href {
        None => reason == Err(RejectReason::Invalid),
        Some(href) if href.starts_with("http:") || href.starts_with("https:") => {
            *result == Canonicalizer::default().canonicalize(href) && result.is_ok()
        }
        Some(_) => reason == Err(RejectReason::Scheme),
    };
    if is_met {
        Ok(())
    } else {
        Err(format!("{result:?}, expected {href:?}"))
    }
}

/// Compares a URL with the parts that a vector lists, free of this crate's own parsing.
fn compare_parts(url: &CanonicalUrl, vector: &Value) -> Result<(), String> {
    let part = |name| text_of(vector, name).unwrap_or_default();
    let host = part("hostname");
    let name = url.host().name().to_owned();
    if name != host && format!("{name}.") != host {
        return Err(format!("host {name}, expected {host}"));
    }
    if format!("{}:", url.host_str().split(':').next().unwrap_or_default()) != part("protocol") {
        return Err(format!("{url}, expected scheme {}", part("protocol")));
    }
    let path_and_query = format!("{}{}", part("pathname"), part("search"));
    // Escapes have a form of their own here, which the unit tests see to.
    if !path_and_query.contains('%') && url.path_and_query() != path_and_query {
        return Err(format!(
            "{}, expected {path_and_query}",
            url.path_and_query()
        ));
    }
    Ok(())
}

#[test]
fn wpt_urltestdata() {
    let Some(vectors) = json_lines("corpora/vectors/wpt-urltestdata.jsonl") else {
        return;
    };
    let mut suite = Suite::new("wpt-urltestdata");
    let mut http_count = 0;
    for vector in &vectors {
        let base = text_of(vector, "base");
        let input = text_of(vector, "input").expect("a vector has an input");
        let result = resolve(base, input);
        let mut verdict = compare(&result, text_of(vector, "href"));
        if let Ok(url) = &result {
            http_count += 1;
            verdict = verdict.and_then(|()| compare_parts(url, vector));
        }
        // No URL by itself, but one on every page.
        if vector.get("relativeTo").is_some() {
            let on_page = resolve(Some("http://example.org/page"), input);
            verdict = verdict.and(on_page.map(drop).map_err(|error| error.to_string()));
        }
        suite.judge(&format!("{} {input}", base.unwrap_or_default()), verdict);
    }
    assert!(http_count > 150, "{http_count} vectors are http(s)");
    suite.require(vectors.len());
}

#[test]
fn wpt_toascii() {
    let Some((suite, vector_count)) = to_ascii("wpt-toascii") else {
        return;
    };
    suite.require(vector_count);
}

#[test]
fn wpt_idnatestv2() {
    let Some((suite, vector_count)) = to_ascii("wpt-idnatestv2") else {
        return;
    };
    suite.require(vector_count);
}

/// Returns a name as it stands in a canonical URL.
fn without_root_dot(name: &str) -> &str {
    match name.strip_suffix('.') {
        Some(rest) if !rest.is_empty() && !rest.ends_with('.') => rest,
        _ => name,
    }
}

/// Runs a suite of host names and their A-labels.
fn to_ascii(name: &'static str) -> Option<(Suite, usize)> {
    let vectors = json_lines(&format!("corpora/vectors/{name}.jsonl"))?;
    let mut suite = Suite::new(name);
    for vector in &vectors {
        let input = text_of(vector, "input").expect("a vector has an input");
        let href = format!("https://{input}/x");
        let base = Some("https://example.org/page");
        let verdict = match (resolve(base, &href), text_of(vector, "output")) {
            (Ok(url), Some(name)) if url.host().name() == without_root_dot(name) => Ok(()),
            (Err(UrlRejection::Invalid(_)), None) => Ok(()),
            (result, name) => Err(format!("{result:?}, expected {name:?}")),
        };
        suite.judge(input, verdict);
    }
    Some((suite, vectors.len()))
}

#[test]
fn rfc3986_reference_resolution() {
    let Some(vectors) = json_lines("corpora/vectors/rfc3986-5.4.jsonl") else {
        return;
    };
    let mut suite = Suite::new("rfc3986-5.4");
    for vector in &vectors {
        let [base, href, expected] =
            ["base", "ref", "whatwg"].map(|name| text_of(vector, name).expect("a vector has all"));
        let result = resolve(Some(base), href);
        let without_fragment = expected.split('#').next();
        let verdict = compare(&result, Some(expected)).and_then(|()| {
            let text = result.as_ref().map(CanonicalUrl::as_str).ok();
            if text == without_fragment {
                Ok(())
            } else {
                Err(format!("{text:?}"))
            }
        });
        suite.judge(&format!("{base} {href}"), verdict);
    }
    suite.require(vectors.len());
}

#[test]
fn registered_domains() {
    let Some(vectors) = json_lines("corpora/vectors/psl.jsonl") else {
        return;
    };
    let mut suite = Suite::new("psl");
    for vector in &vectors {
        let input = text_of(vector, "input").expect("a vector has an input");
        let host = |name: &str| {
            resolve(None, &format!("http://{name}/"))
                .expect("a host")
                .host()
        };
        // A suffix has no registered domain: there the name itself stands in.
        let expected = host(text_of(vector, "registrable").unwrap_or(input));
        let found = host(input);
        let verdict = if found.domain() == expected.name() {
            Ok(())
        } else {
            Err(format!("{}, expected {}", found.domain(), expected.name()))
        };
        suite.judge(input, verdict);
    }
    suite.require(vectors.len());
}

/// Judges one report on another crawler's canonicalization.
fn judge_report(report: &Value) -> Result<(), String> {
    let input = &report["input"];
    let as_text = |value: &Value| value.as_str().expect("a report's URL is text").to_owned();
    let result = match report["op"].as_str() {
        Some("url.parse") => resolve(None, &as_text(input)),
        Some("url.join") => resolve(Some(&as_text(&input["base"])), &as_text(&input["href"])),
        Some("url.same") => return judge_same(report),
        op => panic!("a report with the unknown operation {op:?}"),
    };
    let found = result
        .as_ref()
        .map_or(Value::Null, |url| Value::from(url.as_str()));
    let expected = &report["expect"];
    let is_met = match expected.get("any_of").and_then(Value::as_array) {
        Some(allowed) => allowed.contains(&found),
        None => found == *expected,
    };
    if is_met {
        Ok(())
    } else {
        Err(format!("{result:?}, expected {expected}"))
    }
}

/// Judges a report that says which URLs are one; those on options run with the options on.
fn judge_same(report: &Value) -> Result<(), String> {
    let needs_options = report["level"] == "policy";
    let canonicalizer = Canonicalizer::new(CanonicalOptions {
        drop_session_ids: needs_options,
        sort_query: needs_options,
        ..CanonicalOptions::default()
    });
    let texts = report["input"]
        .as_array()
        .expect("a report names several URLs");
    let mut urls_by_key: BTreeMap<_, Vec<&str>> = BTreeMap::new();
    for text in texts
        .iter()
        .map(|text| text.as_str().expect("a report's URL is text"))
    {
        let url = canonicalizer
            .canonicalize(text)
            .map_err(|error| format!("{text}: {error}"))?;
        urls_by_key
            .entry(KeySeed::new(1).key(&url))
            .or_default()
            .push(text);
    }
    let expected_count = if report["expect"] == true {
        1
    } else {
        texts.len()
    };
    if urls_by_key.len() == expected_count {
        Ok(())
    } else {
        Err(format!("{urls_by_key:?}, expected {expected_count} keys"))
    }
}

#[test]
fn public_reports() {
    let Some(reports) = json_lines("cases/public-reports.jsonl") else {
        return;
    };
    let mut suite = Suite::new("public-reports url.*");
    let is_url = |report: &&Value| text_of(report, "op").is_some_and(|op| op.starts_with("url."));
    let reports: Vec<&Value> = reports.iter().filter(is_url).collect();
    for report in &reports {
        suite.judge(
            text_of(report, "id").unwrap_or_default(),
            judge_report(report),
        );
    }
    suite.require(reports.len());
}

/// Normalizers with rules of their own: differences are printed, and idempotence is required.
#[test]
fn other_normalizers_for_information() {
    for (name, functions) in [
        ("urlcanon-idempotence", &[][..]),
        ("urlcanon", &[]),
        ("crawler-commons-normalizer", &[]),
        ("crawler-commons-resolve", &[]),
        ("safebrowsing-canonical", &["CanonicalURL"]),
        ("w3lib-url", &["canonicalize_url", "safe_url_string"]),
        ("normalize-url-js", &[]),
        ("purell", &[]),
        ("ada-extra-urltestdata", &[]),
    ] {
        let Some(vectors) = json_lines(&format!("corpora/vectors/{name}.jsonl")) else {
            return;
        };
        let mut suite = Suite::new(name);
        for vector in &vectors {
            if functions.is_empty() || text_of(vector, "f").is_some_and(|f| functions.contains(&f))
            {
                inform(&mut suite, vector);
            }
        }
        suite.report();
        for failure in suite
            .failures
            .iter()
            .take(env::var("SHOW_DIFFERENCES").map_or(0, |_| usize::MAX))
        {
            eprintln!("    {failure}");
        }
    }
}

/// Compares one vector of another normalizer, whatever it calls its parts.
fn inform(suite: &mut Suite, vector: &Value) {
    let first_of = |names: &[&str]| {
        names
            .iter()
            .find_map(|name| text_of(vector, name))
            .map(str::to_owned)
    };
    let input = first_of(&["input", "url"])
        .or_else(|| vector["args"][0].as_str().map(str::to_owned))
        .unwrap_or_default();
    let base = first_of(&["base"]).filter(|base| !base.is_empty() && base != "about:blank");
    let result = resolve(base.as_deref(), &input);
    if let Ok(url) = &result {
        assert_eq!(
            Canonicalizer::default().canonicalize(url.as_str()).as_ref(),
            Ok(url)
        );
    }
    let Some(expected) = first_of(&["expected", "result", "href"]) else {
        let is_refused = vector.get("raises").is_none() || result.is_err();
        return suite.judge(
            &input,
            if is_refused {
                Ok(())
            } else {
                Err("not refused".to_owned())
            },
        );
    };
    let found = result.map_or_else(
        |error| error.reason().name().to_owned(),
        |url| url.to_string(),
    );
    let verdict = if found == expected {
        Ok(())
    } else {
        Err(format!("{found}, there {expected}"))
    };
    suite.judge(&input, verdict);
}
