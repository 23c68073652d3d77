//! Bug reports of other crawlers, reduced to inputs and right answers: each that concerns parsing is run here.

#![expect(clippy::unwrap_used, reason = "a failed set-up fails the test")]
#![expect(clippy::print_stderr, reason = "the outcomes are the test's findings")]

use std::path::Path;

use base64::prelude::{BASE64_STANDARD, Engine as _};
use parser::{Parser, ParserConfig};
use serde_json::{Value, json};
use types::{Canonicalizer, Headers, LinkKind, ParsedPage};

#[test]
fn public_reports() {
    let Some(shared) = std::env::var_os("BLOOMCRAWL_CORPORA") else {
        eprintln!("skipped: BLOOMCRAWL_CORPORA is not set");
        return;
    };
    let text =
        std::fs::read_to_string(Path::new(&shared).join("cases/public-reports.jsonl")).unwrap();
    let (mut passed_count, mut failed, mut failed_must) = (0, 0, Vec::new());
    for line in text.lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let Some(outcome) = run(&case) else { continue };
        let id = case["id"].as_str().unwrap();
        let Err(found) = outcome else {
            passed_count += 1;
            continue;
        };
        failed += 1;
        eprintln!("failed: {id} ({}): {found}", case["level"]);
        if case["level"] == "must" {
            failed_must.push(id.to_owned());
        }
    }
    eprintln!("{passed_count} passed, {failed} failed");
    assert!(passed_count > 20, "the file holds more cases than were run");
    assert!(failed_must.is_empty(), "failed: {failed_must:?}");
}

/// Runs a case; `None` where it is not about parsing.
fn run(case: &Value) -> Option<Result<(), String>> {
    let (input, expect) = (&case["input"], &case["expect"]);
    match case["op"].as_str()? {
        "html.links" => Some(links(input, expect, case["id"] == "links-050")),
        "refresh.parse" => Some(refresh(input, expect)),
        "charset.decode" => Some(decoded(input, expect)),
        "charset.header" => Some(charset_of_header(input, expect)),
        "robots.meta" => Some(directives(input, expect)),
        _ => None,
    }
}

fn parse(base: &str, fields: &[(&str, &str)], body: &[u8]) -> ParsedPage {
    let canonicalizer = Canonicalizer::default();
    let url = canonicalizer.canonicalize(base).unwrap();
    let fields = fields
        .iter()
        .map(|(name, value)| ((*name).to_owned(), value.as_bytes().to_vec()))
        .collect();
    let config = ParserConfig {
        outlinks_max: 10_000,
        nesting_max: 512,
        product_token: "bloomcrawl".to_owned(),
        canonicalizer,
    };
    Parser::new(config).parse(&url, &Headers::new(fields), body)
}

/// Every `must` link is there, no `must_not` link is. Cases about `nofollow` look at the links that are followed.
fn links(input: &Value, expect: &Value, only_followed: bool) -> Result<(), String> {
    let body = match input["html"].as_str() {
        Some(html) => html.as_bytes().to_vec(),
        None => base64(input["html_b64"].as_str().unwrap()),
    };
    let content_type = input["content_type"].as_str().unwrap_or("text/html");
    let page = parse(
        input["base"].as_str().unwrap(),
        &[("Content-Type", content_type)],
        &body,
    );
    let found: Vec<&str> = page
        .outlinks
        .iter()
        .filter(|link| !(only_followed && link.is_nofollow))
        .filter_map(|link| link.target.as_ref().ok())
        .map(types::CanonicalUrl::as_str)
        .collect();
    let has = |link: &Value| found.contains(&link.as_str().unwrap());
    let is_right = expect["must"].as_array().unwrap().iter().all(has)
        && !expect["must_not"].as_array().unwrap().iter().any(has);
    if is_right {
        Ok(())
    } else {
        Err(format!("{found:?}"))
    }
}

fn refresh(input: &Value, expect: &Value) -> Result<(), String> {
    let content = input["content"]
        .as_str()
        .unwrap()
        .replace('&', "&amp;")
        .replace('"', "&quot;");
    let html = format!("<meta http-equiv=refresh content=\"{content}\">");
    let page = parse(
        input["base"].as_str().unwrap(),
        &[("Content-Type", "text/html")],
        html.as_bytes(),
    );
    let link = page
        .outlinks
        .iter()
        .find(|link| link.kind == LinkKind::Refresh);
    let found = json!(link.map(|link| {
        link.target
            .as_ref()
            .map(types::CanonicalUrl::as_str)
            .unwrap_or_default()
    }));
    equal(&found, expect)
}

/// Only the encoding shows from outside; decoding is the part of `encoding_rs`.
fn decoded(input: &Value, expect: &Value) -> Result<(), String> {
    let body = base64(input["body_b64"].as_str().unwrap());
    let page = parse(
        "http://example.com/",
        &[("Content-Type", html_type(&input["content_type"]))],
        &body,
    );
    let expected = &expect["encoding"];
    let found = json!(page.charset);
    match expected["any_of"].as_array() {
        Some(any) if any.contains(&found) => Ok(()),
        Some(_) => Err(page.charset.to_owned()),
        None => equal(&found, expected),
    }
}

/// A case about charsets has HTML whatever it names as type.
fn html_type(content_type: &Value) -> &str {
    content_type
        .as_str()
        .filter(|value| !value.is_empty())
        .unwrap_or("text/html")
}

/// A page that is ASCII shows its header's charset; without one it is UTF-8.
fn charset_of_header(input: &Value, expect: &Value) -> Result<(), String> {
    let page = parse(
        "http://example.com/",
        &[("Content-Type", input.as_str().unwrap())],
        b"<p>x",
    );
    equal(
        &json!(page.charset),
        &json!(expect.as_str().unwrap_or("UTF-8")),
    )
}

fn directives(input: &Value, expect: &Value) -> Result<(), String> {
    let mut fields = vec![("Content-Type", "text/html")];
    for header in input["headers"].as_array().unwrap() {
        fields.push(header.as_str().unwrap().split_once(": ").unwrap());
    }
    let page = parse(
        "http://example.com/",
        &fields,
        input["html"].as_str().unwrap().as_bytes(),
    );
    let found = json!({"index": !page.directives.noindex, "follow": !page.directives.nofollow});
    equal(&found, expect)
}

fn equal(found: &Value, expect: &Value) -> Result<(), String> {
    if found == expect {
        Ok(())
    } else {
        Err(format!("{found}, expected {expect}"))
    }
}

fn base64(text: &str) -> Vec<u8> {
    BASE64_STANDARD.decode(text).unwrap()
}
