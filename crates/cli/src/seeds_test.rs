//! Tests of reading seeds.

use super::*;

fn read(bytes: &[u8]) -> Result<Seeds, Failure> {
    let mut seeds = Seeds::default();
    let printer = Printer {
        verbosity: Verbosity::Quiet,
    };
    seeds.read_lines("test", bytes, &Canonicalizer::default(), &printer)?;
    keep_first(&mut seeds.urls);
    Ok(seeds)
}

fn texts(seeds: &Seeds) -> Vec<&str> {
    seeds.urls.iter().map(CanonicalUrl::as_str).collect()
}

fn reason(line: &[u8]) -> String {
    parse_line(line, false, &Canonicalizer::default()).expect_err("a bad line")
}

#[test]
fn marks_line_ends_blanks_and_comments_are_no_part_of_a_seed() {
    let bytes = b"\xef\xbb\xbfhttps://a.example/\r\n\r\n# comment\n  \t\n\thttps://b.example/x#frag  \nhttps://c.example/ # why\nhttps://a.example:443/";
    let seeds = read(bytes).expect("readable");
    assert_eq!(
        texts(&seeds),
        [
            "https://a.example/",
            "https://b.example/x",
            "https://c.example/"
        ]
    );
    assert_eq!(seeds.bad_count, 0);
}

#[test]
fn a_bad_line_says_what_is_wrong_and_a_bare_host_what_to_write() {
    assert!(
        reason(b"example.org").contains("write https://example.org"),
        "{}",
        reason(b"example.org")
    );
    assert!(reason(b"example.org:8080/x").contains("write https://example.org:8080/x"));
    assert!(reason(b"localhost:3000").contains("write https://"));
    assert!(!reason(b"mailto:me@example.org").contains("write https://"));
    assert!(!reason(b"not a url").contains("write https://"));
    assert!(
        reason(b"https://a/\xff").contains("byte 11"),
        "{}",
        reason(b"https://a/\xff")
    );
    let hostile = reason("x\u{1b}[2J\u{202e}".as_bytes());
    assert!(
        hostile.starts_with("\"x\\u{1b}[2J\\u{202e}\": "),
        "{hostile}"
    );
    assert!(!hostile.contains(['\u{1b}', '\u{202e}']), "{hostile}");
    assert!(reason(&vec![b'a'; 70_000]).contains("over"));
    assert!(reason("y".repeat(60_000).as_bytes()).len() < 500);
}

#[test]
fn a_line_without_end_does_not_fill_the_memory_nor_hide_the_next() {
    let mut bytes = vec![b'x'; 300_000];
    bytes.extend_from_slice(b"\nhttps://a.example/");
    let seeds = read(&bytes).expect("readable");
    assert_eq!(
        (texts(&seeds), seeds.bad_count),
        (vec!["https://a.example/"], 1)
    );
}

#[test]
fn a_line_at_the_cap_does_not_swallow_the_next() {
    for extra in [0_usize, 1, 2] {
        let cap = usize::try_from(LINE_BYTES_MAX).expect("a small cap");
        let mut bytes = vec![b'#'; cap - 1 + extra];
        bytes.extend_from_slice(b"\nhttps://a.example/");
        assert_eq!(
            texts(&read(&bytes).expect("readable")),
            ["https://a.example/"],
            "{extra}"
        );
    }
}

#[test]
fn utf16_is_named() {
    let failure = read(b"\xff\xfeh\0t\0").expect_err("UTF-16");
    assert!(failure.exit == Exit::Usage && failure.hint.is_some_and(|hint| hint.contains("UTF-8")));
}

#[test]
fn folders_missing_files_and_empty_sources_are_faults_of_usage() {
    let printer = Printer {
        verbosity: Verbosity::Quiet,
    };
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = |name: &str| folder.path().join(name).display().to_string();
    std::fs::write(path("empty"), "# nothing\n").expect("a file");
    std::fs::write(path("bad"), "ftp://a/\nx\n").expect("a file");
    for argument in [
        path("."),
        path("missing"),
        path("empty"),
        path("bad"),
        "http://".to_owned(),
        "ftp://x.example/".to_owned(),
    ] {
        let failure = read_all(
            std::slice::from_ref(&argument),
            &Canonicalizer::default(),
            &printer,
        )
        .expect_err(&argument);
        assert!(
            failure.exit == Exit::Usage && failure.message.contains(&argument),
            "{failure}"
        );
    }
    let failure = read_all(
        &["example.org".to_owned()],
        &Canonicalizer::default(),
        &printer,
    )
    .expect_err("no file");
    assert!(
        failure
            .hint
            .is_some_and(|hint| hint.contains("https://example.org"))
    );
    let failure = read_all(
        &["ftp://x.example/".to_owned()],
        &Canonicalizer::default(),
        &printer,
    )
    .expect_err("a scheme that is not crawled");
    let hint = failure.hint.unwrap_or_default();
    assert!(hint.contains("an http or https URL"), "{hint}");
}

#[test]
fn the_public_reports_on_seed_files_hold() {
    for case in crate::cases::of_operation("seeds.parse") {
        let bytes = base64(case["input"]["file_b64"].as_str().expect("a file"));
        let seeds = read(&bytes).expect("readable");
        assert_eq!(
            serde_json::json!(texts(&seeds)),
            case["expect"]["accepted"],
            "{}",
            case["id"]
        );
        assert_eq!(
            serde_json::json!(seeds.bad_count),
            case["expect"]["bad_lines"],
            "{}",
            case["id"]
        );
    }
}

/// Decodes base64 (RFC 4648, section 4).
fn base64(text: &str) -> Vec<u8> {
    const ALPHABET: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut bytes = Vec::new();
    let (mut bits, mut bit_count) = (0_u32, 0_u32);
    for character in text.bytes().filter(|byte| *byte != b'=') {
        let value = ALPHABET
            .iter()
            .position(|letter| *letter == character)
            .expect("base64");
        bits = bits << 6 | u32::try_from(value).expect("six bits");
        bit_count += 6;
        if bit_count >= 8 {
            bit_count -= 8;
            bytes.push(u8::try_from(bits >> bit_count & 0xff).expect("eight bits"));
        }
    }
    bytes
}
