//! Reads every WARC file of the public corpora; the counts are those of another reader, warcio, where it reads the file.

#![expect(clippy::print_stderr, reason = "a skipped test says why")]
#![expect(clippy::unwrap_used, reason = "a failed set-up fails the test")]

use std::{
    fs::File,
    io::{BufReader, Seek, SeekFrom},
    path::{Path, PathBuf},
};

use warc::{CdxLine, ReadErrorKind, ReadRecord, Reader, ReaderLimits, payload_digest};

fn corpora() -> Option<PathBuf> {
    let folder =
        std::env::var_os("BLOOMCRAWL_CORPORA").map(|shared| PathBuf::from(shared).join("corpora"));
    if folder.is_none() {
        eprintln!("skipped: BLOOMCRAWL_CORPORA is not set");
    }
    folder
}

fn reader(path: &Path) -> Reader<BufReader<File>> {
    Reader::new(
        BufReader::new(File::open(path).unwrap()),
        ReaderLimits::default(),
    )
}

/// File, records, responses.
const COUNTS: [(&str, usize, usize); 27] = [
    ("pages/pages-01.warc.gz", 626, 625),
    ("pages/pages-02.warc.gz", 462, 461),
    ("pages/pages-03.warc.gz", 281, 280),
    ("warc/books-toscrape.warc", 60, 30),
    ("warc/cc-main-2020-34-head.warc.gz", 50, 16),
    ("warc/cc-main-2024-22-whirlwind.warc.gz", 4, 1),
    ("warc/cc-main-2024-22-whirlwind.warc.wat.gz", 2, 0),
    ("warc/cc-main-2024-22-whirlwind.warc.wet.gz", 2, 0),
    ("warc/hello-world.warc.gz", 6, 1),
    ("warc/heritrix-2008-archive-org.warc.gz", 822, 299),
    ("warc/link-extraction-test.warc", 10, 9),
    ("warc/multiple-headers.warc", 1, 1),
    ("warc/pywb-iana.warc.gz", 343, 48),
    ("warc/stormcrawler-test.warc.gz", 42, 18),
    ("warc/text-extraction-test.warc", 4, 2),
    ("warc/transfer_compression_gzip.warc.gz", 5, 1),
    ("warc/transfer_compression_none.warc.gz", 5, 1),
    // A record that spans gzip members ends warcio's reading.
    ("warc/warcio-example-wrong-chunks.warc.gz", 2, 1),
    // One gzip member holds all six records, which warcio refuses.
    ("warc/warcio-example-bad-non-chunked.warc.gz", 6, 1),
    ("warc/warcio-example-digest.warc", 4, 0),
    ("warc/warcio-example-iana.org-chunked.warc", 3, 1),
    ("warc/warcio-example-space-in-target-uri.warc.gz", 2, 0),
    ("warc/warcio-example-trunc.warc", 4, 1),
    ("warc/warcio-example-wget-bad-target-uri.warc.gz", 6, 1),
    ("warc/warcio-example.warc.gz", 6, 1),
    ("warc/warcio-post-test.warc.gz", 6, 3),
    ("warc/wget-IAH-urls.warc.gz", 36, 16),
];

#[test]
fn every_file_is_read_to_its_end() {
    let Some(folder) = corpora() else { return };
    for (name, record_count, response_count) in COUNTS {
        let records = reader(&folder.join(name)).collect::<Result<Vec<_>, _>>();
        let records = records.unwrap_or_else(|error| panic!("{name}: {error}"));
        let responses = records
            .iter()
            .filter(|record| record.kind() == "response")
            .count();
        assert_eq!(
            (records.len(), responses),
            (record_count, response_count),
            "{name}"
        );
        let stray_bytes = records
            .iter()
            .map(|record| record.stray_bytes_before)
            .sum::<u64>();
        let expected = if name == "warc/warcio-example-trunc.warc" {
            6
        } else {
            0
        };
        assert_eq!(stray_bytes, expected, "{name}");
        assert_lengths_add_up(&folder.join(name), &records);
    }
}

/// The stored lengths of records with a place of their own cover the file without a gap.
fn assert_lengths_add_up(path: &Path, records: &[ReadRecord]) {
    let Some(stored) = records
        .iter()
        .map(|record| record.stored_bytes)
        .collect::<Option<Vec<_>>>()
    else {
        // One member for all records; and a record over several members.
        let names = [
            "warcio-example-bad-non-chunked.warc.gz",
            "warcio-example-wrong-chunks.warc.gz",
        ];
        assert!(
            names.iter().any(|name| path.ends_with(name)),
            "{}",
            path.display()
        );
        return;
    };
    let stray = records
        .iter()
        .map(|record| record.stray_bytes_before)
        .sum::<u64>();
    let first = records.first().map_or(0, |record| record.position.offset);
    assert_eq!(
        first + stored.iter().sum::<u64>() + stray,
        std::fs::metadata(path).unwrap().len(),
        "{}",
        path.display()
    );
}

#[test]
fn any_record_can_be_read_by_its_position() {
    let Some(folder) = corpora() else { return };
    for (name, ..) in COUNTS.iter().filter(|(name, ..)| name.starts_with("warc/")) {
        let path = folder.join(name);
        for record in reader(&path).map(Result::unwrap).step_by(7) {
            let mut file = File::open(&path).unwrap();
            file.seek(SeekFrom::Start(record.position.offset)).unwrap();
            let limits = ReaderLimits::default();
            let again = Reader::at(BufReader::new(file), record.position, limits)
                .unwrap()
                .next()
                .unwrap()
                .unwrap();
            assert_eq!(
                (again.fields, again.content),
                (record.fields, record.content),
                "{name} {:?}",
                record.position
            );
        }
    }
}

#[test]
fn recorded_digests_agree() {
    let Some(folder) = corpora() else { return };
    let mut block_count = 0;
    let mut payload_count = 0;
    for name in [
        "warc/cc-main-2020-34-head.warc.gz",
        "warc/wget-IAH-urls.warc.gz",
        "pages/pages-03.warc.gz",
    ] {
        for record in reader(&folder.join(name)).map(Result::unwrap) {
            let Some(block_digest) = record.fields.get("WARC-Block-Digest") else {
                continue;
            };
            assert_eq!(
                payload_digest(&record.content),
                block_digest,
                "{name} {:?}",
                record.position
            );
            block_count += 1;
            let Some(digest) = record
                .fields
                .get("WARC-Payload-Digest")
                .filter(|_| record.kind() == "response")
            else {
                continue;
            };
            let response = record.http_response().unwrap();
            // The digest is of the body as sent; of a chunked one that is not what the parser returns.
            if response.header("transfer-encoding").is_none() {
                assert_eq!(
                    payload_digest(&response.body),
                    digest,
                    "{name} {:?}",
                    record.position
                );
                payload_count += 1;
            }
        }
    }
    assert!(
        block_count > 300 && payload_count > 300,
        "{block_count} block and {payload_count} payload digests"
    );
}

#[test]
fn odd_files_are_understood() {
    let Some(folder) = corpora() else { return };
    let records = |name: &str| {
        reader(&folder.join("warc").join(name))
            .map(Result::unwrap)
            .collect::<Vec<_>>()
    };

    let wget = records("warcio-example-wget-bad-target-uri.warc.gz");
    assert_eq!(
        wget[1].fields.get("warc-target-uri"),
        Some("<http://example.com/>")
    );
    assert_eq!(wget[1].target_uri(), Some("http://example.com/"));

    let spaces = records("warcio-example-space-in-target-uri.warc.gz");
    assert_eq!(
        spaces[1].target_uri(),
        Some("file:///example with spaces.png")
    );

    let repeated = records("multiple-headers.warc");
    assert_eq!(
        repeated[0]
            .fields
            .get_all("WARC-Protocol")
            .collect::<Vec<_>>(),
        ["h2", "tls/1.3"]
    );
    assert_eq!(repeated[0].http_response().unwrap().status, 200);

    let old = records("heritrix-2008-archive-org.warc.gz");
    assert_eq!(old[0].version, "WARC/0.17");

    let chunked = records("warcio-example-iana.org-chunked.warc");
    let response = chunked
        .iter()
        .find(|record| record.kind() == "response")
        .unwrap()
        .http_response()
        .unwrap();
    assert_eq!(
        response.header("Transfer-Encoding"),
        Some(b"chunked".as_slice())
    );
    // One chunk, whose size the server wrote as 001c37.
    assert_eq!(response.body.len(), 0x1c37);
    assert!(
        response
            .body
            .trim_ascii_start()
            .starts_with(b"<!doctype html>")
    );
    assert!(response.body.trim_ascii_end().ends_with(b"</html>"));

    // Head and body lie in two gzip members.
    let split = records("warcio-example-wrong-chunks.warc.gz");
    let response = split[0].http_response().unwrap();
    assert!(response.body.starts_with(b"<!doctype html>") && response.body.ends_with(b"</html>\n"));
}

#[test]
fn a_cut_file_fails_after_its_good_records() {
    let Some(folder) = corpora() else { return };
    for name in [
        "warc/cc-main-2020-34-head.warc.gz",
        "warc/books-toscrape.warc",
    ] {
        let bytes = std::fs::read(folder.join(name)).unwrap();
        let offsets = reader(&folder.join(name))
            .map(|record| record.unwrap().position.offset)
            .collect::<Vec<_>>();
        let last = *offsets.last().unwrap();
        let cut = usize::try_from(last).unwrap() + 100;
        let results = Reader::new(&bytes[..cut], ReaderLimits::default()).collect::<Vec<_>>();
        assert_eq!(results.len(), offsets.len(), "{name}");
        let error = results.last().unwrap().as_ref().unwrap_err();
        assert!(
            matches!(error.kind, ReadErrorKind::Truncated),
            "{name}: {error}"
        );
        assert_eq!(error.offset, last, "{name}");
    }
}

#[test]
fn damaged_bytes_never_panic_and_always_end() {
    let Some(folder) = corpora() else { return };
    let whole = std::fs::read(folder.join("warc/warcio-example-trunc.warc")).unwrap();
    let packed = std::fs::read(folder.join("warc/warcio-example.warc.gz")).unwrap();
    let mut error_count = 0;
    for file in [whole, packed] {
        for at in (0..file.len()).step_by(3) {
            let mut damaged = file.clone();
            damaged[at] = damaged[at].wrapping_add(37);
            for record in Reader::new(damaged.as_slice(), ReaderLimits::default()) {
                match record {
                    Ok(record) => drop(record.http_response().map(|response| response.status)),
                    Err(_) => error_count += 1,
                }
            }
        }
    }
    assert!(error_count > 500, "{error_count}");
}

#[test]
fn index_lines_are_written_as_they_were_read() {
    let Some(folder) = corpora() else { return };
    let mut line_count = 0;
    for name in [
        "cc-index-lines.cdxj",
        "cc-main-2020-34-head.cdxj",
        "pywb-iana.cdxj",
    ] {
        let text = std::fs::read_to_string(folder.join("warc").join(name)).unwrap();
        for line in text.lines().filter(|line| !line.starts_with('!')) {
            let parsed =
                CdxLine::parse(line).unwrap_or_else(|error| panic!("{name}: {error}: {line}"));
            assert_eq!(parsed.to_string(), line, "{name}");
            line_count += 1;
        }
    }
    assert!(line_count > 150, "{line_count}");
}

#[test]
fn an_index_leads_to_its_records() {
    let Some(folder) = corpora() else { return };
    let records = reader(&folder.join("warc/cc-main-2020-34-head.warc.gz"))
        .map(Result::unwrap)
        .collect::<Vec<_>>();
    let text = std::fs::read_to_string(folder.join("warc/cc-main-2020-34-head.cdxj")).unwrap();
    for line in text.lines().map(|line| CdxLine::parse(line).unwrap()) {
        let offset = line.get("offset").unwrap().parse::<u64>().unwrap();
        let record = records
            .iter()
            .find(|record| record.position.offset == offset)
            .unwrap();
        assert_eq!(record.target_uri(), line.get("url"));
        assert_eq!(
            record
                .stored_bytes
                .map(|length| length.to_string())
                .as_deref(),
            line.get("length")
        );
        let status = record.http_response().unwrap().status.to_string();
        assert_eq!(Some(status.as_str()), line.get("status"));
    }
}
