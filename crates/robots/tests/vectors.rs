//! The rules against public conformance vectors, where those are at hand.
#![expect(
    clippy::unwrap_used,
    reason = "a vector that cannot be read fails the test"
)]

use std::{fs, path::PathBuf, time::Instant};

use robots::Rules;
use serde_json::Value;

/// Returns the folder of public data, or says why the test is skipped.
#[expect(clippy::print_stderr, reason = "a skipped test says so")]
fn public_data() -> Option<PathBuf> {
    let folder = std::env::var_os("BLOOMCRAWL_CORPORA");
    if folder.is_none() {
        eprintln!("skipped: BLOOMCRAWL_CORPORA is not set");
    }
    Some(PathBuf::from(folder?))
}

/// Returns the part of a URL that rules are matched against.
fn path_of(url: &str) -> String {
    let after_scheme = url.split_once("://").map_or(url, |(_, rest)| rest);
    let path = after_scheme
        .find(['/', '?'])
        .map_or("/", |at| &after_scheme[at..]);
    let path = path.split('#').next().unwrap();
    if path.starts_with('/') {
        path.to_owned()
    } else {
        format!("/{path}")
    }
}

/// Runs one file of vectors; returns how many passed, and the others.
#[expect(clippy::print_stderr, reason = "the figures are the test's findings")]
fn run(file: &str, path_field: &str) -> Option<(usize, Vec<Value>)> {
    let text = fs::read_to_string(public_data()?.join("corpora/vectors").join(file)).unwrap();
    let (mut passed, mut failed) = (0, Vec::new());
    for line in text.lines() {
        let vector: Value = serde_json::from_str(line).unwrap();
        let rules = Rules::parse(
            vector["robots"].as_str().unwrap().as_bytes(),
            vector["agent"].as_str().unwrap(),
        );
        let path = path_of(vector[path_field].as_str().unwrap());
        if rules.allows(&path) == vector["allowed"].as_bool().unwrap() {
            passed += 1;
        } else {
            failed.push(vector);
        }
    }
    eprintln!("{file}: {passed} passed, {} differ", failed.len());
    Some((passed, failed))
}

#[test]
fn every_example_of_rfc_9309_passes() {
    let Some((passed, failed)) = run("rfc9309.jsonl", "path") else {
        return;
    };
    assert!(failed.is_empty(), "{failed:#?}");
    assert_eq!(passed, 21);
}

/// The others either hold that `/ツ` and its percent-encoded form differ, against RFC 9309, section 2.2.2, or that a rule
/// for `index.html` is one for its folder, which the RFC does not know.
#[test]
fn the_reference_parsers_vectors_pass() {
    let Some((passed, failed)) = run("robots-google.jsonl", "url") else {
        return;
    };
    assert!(passed >= 96, "{passed} passed; {failed:#?}");
}

/// The others have crawlers named in other letters than ASCII, by wildcards, or by the beginning of their name: no product
/// tokens in the sense of RFC 9309, section 2.2.1.
#[test]
fn the_vectors_of_other_parsers_pass_but_for_those_that_differ_from_the_rfc() {
    let Some((passed, failed)) = run("robots-protego.jsonl", "url") else {
        return;
    };
    assert!(passed >= 226, "{passed} passed; {failed:#?}");
}

/// Returns the file of a case, which may be given as text, as base64, or as a recipe for a large one.
fn file_of(input: &Value) -> Option<Vec<u8>> {
    if let Some(text) = input["robots"].as_str() {
        return Some(text.as_bytes().to_vec());
    }
    let recipe = input.get("robots_gen")?;
    let part = |name: &str| recipe[name].as_str().unwrap().to_owned();
    let count = recipe["count"].as_u64().unwrap();
    let line = |number: u64| part("line").replace("%05d", &format!("{number:05}"));
    let lines: String = (0..count.min(1_000_000)).map(line).collect();
    Some(format!("{}{lines}{}", part("prefix"), part("suffix")).into_bytes())
}

#[test]
fn reduced_public_reports_are_answered_right() {
    let Some(folder) = public_data() else { return };
    let text = fs::read_to_string(folder.join("cases/public-reports.jsonl")).unwrap();
    let (mut passed, mut failed) = (0, Vec::new());
    for case in text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
    {
        let Some(file) = file_of(&case["input"]) else {
            continue;
        };
        let rules = Rules::parse(&file, case["input"]["agent"].as_str().unwrap_or("mybot"));
        let is_right = match case["op"].as_str() {
            Some("robots.allow") => {
                let urls = case["input"]["urls"].as_array().unwrap().iter();
                let answers: Vec<bool> = urls
                    .map(|url| rules.allows(&path_of(url.as_str().unwrap())))
                    .collect();
                case["expect"] == serde_json::json!(answers)
            }
            Some("robots.delay") if case["expect"].is_object() => true,
            Some("robots.delay") => {
                rules.crawl_delay().map(|delay| delay.as_secs_f64()) == case["expect"].as_f64()
            }
            _ => continue,
        };
        passed += usize::from(is_right);
        if !is_right {
            failed.push(case["id"].as_str().unwrap().to_owned());
        }
    }
    assert!(
        failed.is_empty() && passed >= 32,
        "{passed} passed; {failed:?}"
    );
}

#[test]
fn a_hostile_file_is_read_and_matched_in_bounded_time() {
    let rule = format!("Disallow: /{}ab$\n", "*a".repeat(40));
    let mut file = String::from("User-agent: *\n");
    while file.len() < robots::ROBOTS_BYTES_MAX {
        file.push_str(&rule);
    }
    let start = Instant::now();
    let rules = Rules::parse(file.as_bytes(), "mybot");
    assert!(rules.allows(&format!("/{}", "a".repeat(4_000))));
    assert!(start.elapsed().as_secs() < 10, "took {:?}", start.elapsed());
}

proptest::proptest! {
    #[test]
    fn any_bytes_have_a_meaning(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..2_000), path in "/.{0,40}") {
        let rules = Rules::parse(&bytes, "mybot");
        proptest::prop_assert!(rules.allows("/robots.txt"));
        let _ = (rules.allows(&path), rules.crawl_delay(), rules.sitemaps());
    }

    #[test]
    fn a_plain_prefix_rule_bans_its_subtree_and_no_other(word in "[a-z]{1,8}", other in "[A-Z]{1,8}", eol in "(\r\n|\r|\n)") {
        let file = format!("User-agent: *{eol}Disallow: /{word}/{eol}");
        let rules = Rules::parse(file.as_bytes(), "mybot");
        let below = format!("/{word}/{other}");
        let beside = format!("/{other}/{word}");
        proptest::prop_assert!(!rules.allows(&below));
        proptest::prop_assert!(rules.allows(&beside));
    }
}
