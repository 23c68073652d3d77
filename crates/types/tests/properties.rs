//! Properties of canonicalization over hostile texts, under every set of options.

use proptest::{collection::vec, prelude::*, sample::select};
use types::{CanonicalOptions, CanonicalUrl, Canonicalizer, Host};
use url::Url;

/// Pieces that parsers trip over; texts are made by joining some.
const PIECES: &[&str] = &[
    "http://",
    "https:",
    "HTTP:",
    "//",
    "/",
    "\\",
    "a",
    "B",
    "c.",
    ".",
    "..",
    "...",
    "%2e",
    "%2E",
    "%",
    "%%",
    "%3",
    "6",
    "f",
    "%36",
    "%66",
    "%7E",
    "%41",
    "%2f",
    "%25",
    "%zz",
    "%C3%A4",
    "?",
    "#",
    "&",
    "=",
    "+",
    "'",
    "\"",
    "<",
    "@",
    ":",
    ":80",
    ":443",
    ":8080",
    ":99999",
    "[",
    "]",
    "[::1]",
    "127.0.0.1",
    "0x7f.1",
    "1.2.3.4..",
    "/C:",
    "C|",
    "(S(",
    "))/",
    "\u{df}",
    "\u{e4}",
    "\u{3002}",
    "\u{ff0e}",
    "xn--",
    "xn--bcher-kva",
    "\u{200d}",
    "\u{ad}",
    "\t",
    "\n",
    "\0",
    " ",
    "\u{a0}",
    "\u{feff}",
    "\u{202e}",
    "\u{1f600}",
    ";",
    ";jsessionid=",
    ";JSESSIONID=1",
    "utm_a=1",
    "utm%5Fb=2",
    "PHPSESSID=1",
    "sid=0123456789abcdef",
    "^",
    "|",
    "{",
    "}",
    "`",
    "~",
    "-",
    "_",
    "*",
];

/// A text of any shape, mostly no URL.
fn hostile_text() -> impl Strategy<Value = String> {
    prop_oneof![
        vec(select(PIECES), 0..16).prop_map(|pieces| pieces.concat()),
        any::<String>(),
    ]
}

/// A text with a sound authority and a hostile rest: always a URL.
fn hostile_url() -> impl Strategy<Value = String> {
    let hosts: &[&str] = &[
        "a",
        "A.example.",
        "a..",
        "127.1",
        "1.2.3.4.",
        "[::1]",
        "b\u{fc}cher.example:8080",
        "u:p@c:80",
        ".",
    ];
    (
        select(&["http://", "https://"][..]),
        select(hosts),
        hostile_text(),
    )
        .prop_map(|(scheme, host, rest)| format!("{scheme}{host}/{rest}"))
}

fn options() -> impl Strategy<Value = CanonicalOptions> {
    any::<[bool; 3]>().prop_map(
        |[drop_tracking, sort_query, drop_session_ids]| CanonicalOptions {
            drop_tracking,
            sort_query,
            drop_session_ids,
            ..CanonicalOptions::default()
        },
    )
}

/// Replaces each escape by its byte, once.
fn decoded(text: &str) -> Vec<u8> {
    let bytes = text.as_bytes();
    let digit = |at: usize| {
        bytes
            .get(at)
            .and_then(|byte| char::from(*byte).to_digit(16))
    };
    let mut decoded = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        match (bytes[at], digit(at + 1), digit(at + 2)) {
            (b'%', Some(high), Some(low)) => {
                decoded.push(u8::try_from(high * 16 + low).expect("two hex digits make a byte"));
                at += 3;
            }
            (byte, ..) => {
                decoded.push(byte);
                at += 1;
            }
        }
    }
    decoded
}

/// Checks what holds of every canonical URL.
fn check_form(canonicalizer: &Canonicalizer, url: &CanonicalUrl) -> Result<(), TestCaseError> {
    let text = url.as_str();
    let parsed = url.to_url();
    prop_assert_eq!(
        canonicalizer.canonicalize(text),
        Ok(url.clone()),
        "not idempotent"
    );
    prop_assert_eq!(CanonicalUrl::from_stored(text.to_owned()), Ok(url.clone()));
    prop_assert_eq!(parsed.as_str(), text, "what is requested is what is known");
    prop_assert!(
        text.bytes().all(|byte| byte.is_ascii_graphic()),
        "{:?}",
        text
    );
    prop_assert!(!text.contains(['#', '<', '>']), "{:?}", text);
    prop_assert!(!url.host_str().contains('@'), "{:?}", text);
    prop_assert!(url.path_and_query().starts_with('/'), "{:?}", text);
    prop_assert_ne!(parsed.query(), Some(""), "an empty query is dropped");
    prop_assert_eq!(format!("{}{}", url.host_str(), url.path_and_query()), text);
    check_host(&url.host(), &parsed)
}

/// Checks a host against what the URL parser says.
fn check_host(host: &Host, url: &Url) -> Result<(), TestCaseError> {
    prop_assert_eq!(Some(host.name()), url.host_str());
    prop_assert_eq!(Some(host.port()), url.port_or_known_default());
    prop_assert!(
        host.name().ends_with(host.domain()),
        "{} of {}",
        host.domain(),
        host.name()
    );
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4_096, failure_persistence: None, ..ProptestConfig::default() })]

    /// Texts of any shape are refused or get a sound form; nothing panics.
    #[test]
    fn any_text_is_refused_or_sound(text in hostile_text(), options in options()) {
        let canonicalizer = Canonicalizer::new(options);
        if let Ok(url) = canonicalizer.canonicalize(&text) {
            check_form(&canonicalizer, &url)?;
        }
    }

    /// Behind a sound authority anything at all makes a URL.
    #[test]
    fn urls_get_a_sound_form(text in hostile_url(), options in options()) {
        let canonicalizer = Canonicalizer::new(options);
        let url = canonicalizer.canonicalize(&text);
        check_form(&canonicalizer, &url.expect("the authority is sound"))?;
    }

    /// A reference resolves to the canonical form of what the URL parser resolves it to.
    #[test]
    fn references_resolve_as_the_parser_says(href in hostile_text(), base in hostile_url()) {
        let canonicalizer = Canonicalizer::default();
        let base = Url::parse(&base).expect("the authority is sound");
        match (canonicalizer.resolve(&base, &href), base.join(&href)) {
            (Ok(url), Ok(joined)) => {
                prop_assert_eq!(canonicalizer.canonicalize(joined.as_str()), Ok(url.clone()));
                check_form(&canonicalizer, &url)?;
            }
            // The one deviation from the parser in use, towards the standard: `///host`.
            (Ok(url), Err(error)) => {
                let text: String = href.chars().filter(|c| !matches!(c, '\t' | '\n' | '\r')).collect();
                let text = text.trim_start_matches(|c: char| c <= ' ').replace('\\', "/");
                prop_assert!(text.starts_with("///"), "{} despite {}", url, error);
                check_form(&canonicalizer, &url)?;
            }
            (Err(rejection), Ok(joined)) => {
                prop_assert!(!joined.scheme().starts_with("http"), "{} of {}", rejection, joined);
            }
            (Err(_), Err(_)) => {}
        }
    }

    /// The rules that are always on change no byte of what path and query mean.
    #[test]
    fn path_and_query_keep_their_bytes(text in hostile_url()) {
        let parsed = Url::parse(&text).expect("the authority is sound");
        let url = Canonicalizer::default().from_url(&parsed);
        let url = url.expect("an http URL within the cap").to_url();
        prop_assert_eq!(decoded(url.path()), decoded(parsed.path()));
        prop_assert_eq!(
            decoded(url.query().unwrap_or_default()),
            decoded(parsed.query().unwrap_or_default())
        );
    }

    /// Sorting makes the order of differently named parameters irrelevant.
    #[test]
    fn sorted_queries_forget_the_order(names in Just(["a", "b", "c=1", "d=%41", "e="]).prop_shuffle()) {
        let options = CanonicalOptions { sort_query: true, ..CanonicalOptions::default() };
        let url = Canonicalizer::new(options).canonicalize(&format!("http://a/?{}", names.join("&")));
        prop_assert_eq!(url.map(|url| url.to_string()), Ok("http://a/?a&b&c=1&d=A&e=".to_owned()));
    }
}
