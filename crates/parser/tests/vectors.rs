//! Published vectors on the encoding of a page: html5lib's, and the labels of the Encoding Standard.

#![expect(clippy::unwrap_used, reason = "a failed set-up fails the test")]
#![expect(clippy::print_stderr, reason = "the outcomes are the test's findings")]

use std::path::Path;

use base64::prelude::{BASE64_STANDARD, Engine as _};
use encoding_rs::{Encoding, WINDOWS_1252};
use parser::{Parser, ParserConfig};
use serde_json::Value;
use types::{Canonicalizer, Headers};

/// Reads a file of vectors, one JSON object a line; `None`, with a word on it, where there are no corpora.
fn vectors(file: &str) -> Option<Vec<Value>> {
    let Some(shared) = std::env::var_os("BLOOMCRAWL_CORPORA") else {
        eprintln!("skipped: BLOOMCRAWL_CORPORA is not set");
        return None;
    };
    let path = Path::new(&shared).join("corpora/vectors").join(file);
    let text = std::fs::read_to_string(path).unwrap();
    Some(
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect(),
    )
}

fn charset(content_type: &str, body: &[u8]) -> &'static str {
    let canonicalizer = Canonicalizer::default();
    let url = canonicalizer.canonicalize("http://example.org/").unwrap();
    let config = ParserConfig {
        outlinks_max: 10,
        nesting_max: 512,
        product_token: "bloomcrawl".to_owned(),
        canonicalizer,
    };
    let fields = vec![("Content-Type".to_owned(), content_type.as_bytes().to_vec())];
    Parser::new(config)
        .parse(&url, &Headers::new(fields), body)
        .charset
}

/// Where html5lib falls back to windows-1252 no encoding is stated, and detection decides. A statement beyond the first
/// 1,024 bytes counts where the page cannot be UTF-8, so long pages get a byte that sees to that.
#[test]
fn stated_encodings() {
    let Some(vectors) = vectors("html5lib-encoding.jsonl") else {
        return;
    };
    let mut compared_count = 0;
    for vector in &vectors {
        let label = vector["encoding"].as_str().unwrap();
        let expected = Encoding::for_label(label.as_bytes()).unwrap();
        if expected == WINDOWS_1252 {
            continue;
        }
        compared_count += 1;
        let mut body = base64(vector["data_b64"].as_str().unwrap());
        if body.len() > 1_024 {
            body.push(0xFF);
        }
        let found = charset("text/html", &body);
        let start = String::from_utf8_lossy(&body[..body.len().min(300)]).into_owned();
        assert_eq!(found, expected.name(), "{start}");
    }
    eprintln!("{compared_count} of {} compared", vectors.len());
    assert!(compared_count > 20);
}

/// Labels of the replacement encoding are passed over, by design.
#[test]
fn labels() {
    let Some(vectors) = vectors("whatwg-encoding-labels.jsonl") else {
        return;
    };
    for vector in &vectors {
        let name = vector["name"].as_str().unwrap();
        let label = vector["label"].as_str().unwrap();
        let expected = if name == "replacement" { "UTF-8" } else { name };
        let found = charset(&format!("text/html;charset=\"{label}\""), b"<p>");
        assert!(
            found.eq_ignore_ascii_case(expected),
            "{label}: {found}, expected {expected}"
        );
    }
}

fn base64(text: &str) -> Vec<u8> {
    BASE64_STANDARD.decode(text).unwrap()
}
