//! What is written reads back the same, as plain bytes, as gzip members, and as one gzip file.

#![expect(clippy::unwrap_used, reason = "a failed set-up fails the test")]

use std::io::Write;

use flate2::{Compression, write::GzEncoder};
use proptest::prelude::*;
use warc::{
    Compressor, Exchange, Fields, ReadRecord, Reader, ReaderLimits, Record, RecordId, RecordType,
    exchange_members, payload_digest,
};

const DATE: &str = "2026-11-30T08:32:00.125Z";

fn read(bytes: &[u8]) -> Vec<ReadRecord> {
    Reader::new(bytes, ReaderLimits::default())
        .collect::<Result<_, _>>()
        .unwrap()
}

fn exchange<'a>(headers: Vec<(&'a str, &'a [u8])>, body: &'a [u8]) -> Exchange<'a> {
    Exchange {
        target_uri: "https://example.org/caf%C3%A9?a=b",
        date: DATE,
        response_id: RecordId::from_random(1),
        request_id: RecordId::from_random(2),
        metadata_id: RecordId::from_random(3),
        warcinfo_id: Some(RecordId::from_random(4)),
        ip_address: Some([192, 0, 2, 1].into()),
        request_head: b"GET /caf%C3%A9?a=b HTTP/1.1\r\nHost: example.org\r\n\r\n",
        status: 200,
        headers,
        body,
        truncated: Some("length"),
        metadata: vec![
            ("fetchTimeMs", "12".to_owned()),
            ("via", "https://example.org/".to_owned()),
        ],
    }
}

#[test]
fn an_exchange_is_three_records_that_name_each_other() {
    let headers = vec![
        ("content-type", b"text/html".as_slice()),
        ("transfer-encoding", b"chunked"),
    ];
    let members = exchange_members(&exchange(headers, b"<p>hello"), &mut Compressor::new(6));
    let records = read(&members.bytes);
    let kinds = records.iter().map(ReadRecord::kind).collect::<Vec<_>>();
    assert_eq!(kinds, ["request", "response", "metadata"]);
    let response = &records[1];
    assert_eq!(response.position.offset, members.response_offset);
    assert_eq!(response.stored_bytes, Some(members.response_bytes));
    let id = response.fields.get("WARC-Record-ID").unwrap();
    for other in [&records[0], &records[2]] {
        assert_eq!(other.fields.get("WARC-Concurrent-To"), Some(id));
    }
    for record in &records {
        assert_eq!(
            record.target_uri(),
            Some("https://example.org/caf%C3%A9?a=b")
        );
        assert_eq!(
            record.fields.get("WARC-Warcinfo-ID"),
            Some(RecordId::from_random(4).to_string().as_str())
        );
        assert_eq!(
            record.fields.get("WARC-Block-Digest"),
            Some(payload_digest(&record.content).as_str())
        );
    }
    assert_eq!(response.fields.get("WARC-Truncated"), Some("length"));
    assert_eq!(response.fields.get("WARC-IP-Address"), Some("192.0.2.1"));
    assert_eq!(
        response.fields.get("WARC-Payload-Digest"),
        Some(payload_digest(b"<p>hello").as_str())
    );
    let parsed = response.http_response().unwrap();
    assert_eq!(
        (parsed.status, &*parsed.body),
        (200, b"<p>hello".as_slice())
    );
    assert_eq!(parsed.header("content-length"), Some(b"8".as_slice()));
    assert_eq!(
        records[2].content,
        b"fetchTimeMs: 12\r\nvia: https://example.org/\r\n"
    );
}

#[test]
fn no_metadata_no_record() {
    let members = exchange_members(
        &Exchange {
            metadata: Vec::new(),
            ..exchange(Vec::new(), b"")
        },
        &mut Compressor::new(0),
    );
    assert_eq!(read(&members.bytes).len(), 2);
    assert_eq!(
        members.response_offset + members.response_bytes,
        members.bytes.len() as u64
    );
}

#[test]
fn one_compressor_makes_many_members() {
    let noise = |bytes: u32| -> Vec<u8> {
        (0..bytes)
            .map(|n| n.wrapping_mul(2_654_435_761).to_le_bytes()[2])
            .collect()
    };
    for level in [0, 1, 6, 9] {
        let mut compressor = Compressor::new(level);
        for content in [noise(100_000), Vec::new(), b"<p>".repeat(50_000), noise(1)] {
            let record = Record::new(
                RecordType::Resource,
                RecordId::from_random(3),
                DATE,
                content.as_slice(),
            );
            let mut member = b"before".to_vec();
            record.append_gzip_member(&mut compressor, &mut member);
            let member = &member[b"before".len()..];
            let read_back = read(member);
            assert!(
                read_back.len() == 1 && read_back[0].content == content,
                "{} bytes at level {level}",
                content.len()
            );
        }
    }
}

#[test]
fn limits_are_kept() {
    let record = Record::new(
        RecordType::Resource,
        RecordId::from_random(1),
        DATE,
        vec![b'x'; 100_000],
    );
    let bytes = [record.to_bytes(), record.to_bytes()].concat();
    let limits = ReaderLimits {
        content_bytes_max: 10,
        ..ReaderLimits::default()
    };
    let records = Reader::new(bytes.as_slice(), limits)
        .collect::<Result<Vec<_>, _>>()
        .unwrap();
    assert_eq!(records.len(), 2);
    assert!(
        records
            .iter()
            .all(|record| record.is_cut() && record.content == b"xxxxxxxxxx")
    );
    let limits = ReaderLimits {
        header_bytes_max: 50,
        ..ReaderLimits::default()
    };
    let error = Reader::new(bytes.as_slice(), limits)
        .next()
        .unwrap()
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "at byte 0: the record header is over 50 bytes long"
    );
}

#[test]
fn errors_say_where_and_what() {
    let record = Record::new(
        RecordType::Resource,
        RecordId::from_random(1),
        DATE,
        b"abc".as_slice(),
    );
    let bytes = record.to_bytes();
    let message = |bytes: &[u8]| {
        let mut reader = Reader::new(bytes, ReaderLimits::default());
        let error = reader.find_map(Result::err).map(|error| error.to_string());
        assert!(reader.next().is_none(), "an error ends the iteration");
        error
    };
    assert_eq!(message(b"").as_deref(), None);
    let expected = "at byte 0: a record begins with WARC/ and a version, found \"hello\"";
    assert_eq!(message(b"hello").as_deref(), Some(expected));
    let text = String::from_utf8(bytes.clone())
        .unwrap()
        .replace("Content-Length: 3", "Content-Length: many");
    let expected = "at byte 0: Content-Length should be a number of bytes, found \"many\"";
    assert_eq!(message(text.as_bytes()).as_deref(), Some(expected));
    let whole = bytes.len();
    let twice = [bytes.clone(), bytes].concat();
    let expected = format!("at byte {whole}: the file ends within the record");
    assert_eq!(
        message(&twice[..whole * 2 - 6]).as_deref(),
        Some(expected.as_str())
    );
    let garbage = [record.to_gzip_member(6), b"no gzip".to_vec()].concat();
    let offset = record.to_gzip_member(6).len();
    let expected =
        format!("at byte {offset}: damaged gzip data: byte 0x6e where a gzip member should begin");
    assert_eq!(message(&garbage).as_deref(), Some(expected.as_str()));
}

#[test]
fn stray_bytes_and_padding_are_passed_over() {
    let record = Record::new(
        RecordType::Resource,
        RecordId::from_random(1),
        DATE,
        b"abc".as_slice(),
    );
    let text = String::from_utf8(record.to_bytes()).unwrap();
    let long = text.replace("abc\r\n", "abc and more\r\nof it\r\n");
    let records = read([long, text.clone()].concat().as_bytes());
    assert_eq!(
        records
            .iter()
            .map(|record| record.stray_bytes_before)
            .collect::<Vec<_>>(),
        [0, 20]
    );
    let lone_feeds = text.replace("\r\n", "\n").repeat(3);
    assert_eq!(read(lone_feeds.as_bytes()).len(), 3);
    let member = record.to_gzip_member(9);
    let padded = [member.clone(), vec![0; 40_000], member, vec![0; 7]].concat();
    assert_eq!(read(&padded).len(), 2);
}

fn field(fields: &Fields, name: &str) -> String {
    fields.get(name).unwrap_or_default().to_owned()
}

proptest! {
    #[test]
    fn records_read_back(
        contents in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..3_000), 1..5),
        value in "[ -~\u{a1}-\u{2ff}\r\n\t]{0,40}",
        level in 0_u32..12,
    ) {
        let records = contents
            .iter()
            .zip(1..)
            .map(|(content, id)| {
                Record::new(RecordType::Resource, RecordId::from_random(id), DATE, content.as_slice())
                    .target_uri("http://example.org/")
                    .field("X-Value", &value)
                    .payload_at(usize::try_from(id).unwrap_or_default())
            })
            .collect::<Vec<_>>();
        let plain = records.iter().flat_map(Record::to_bytes).collect::<Vec<_>>();
        let members = records.iter().flat_map(|record| record.to_gzip_member(level)).collect::<Vec<_>>();
        let mut whole = GzEncoder::new(Vec::new(), Compression::fast());
        whole.write_all(&plain).unwrap();
        let whole = whole.finish().unwrap();
        let expected = value.replace(['\r', '\n', '\t'], " ");
        for bytes in [&plain, &members, &whole] {
            let read = read(bytes);
            prop_assert_eq!(read.len(), records.len());
            for ((read, record), content) in read.iter().zip(&records).zip(&contents) {
                prop_assert_eq!(&read.content, content);
                prop_assert_eq!(field(&read.fields, "WARC-Record-ID"), record.id().to_string());
                prop_assert_eq!(field(&read.fields, "X-Value"), expected.trim());
                let mut reader = Reader::at(
                    &bytes[usize::try_from(read.position.offset).unwrap()..],
                    read.position,
                    ReaderLimits::default(),
                ).unwrap();
                prop_assert_eq!(&reader.next().unwrap().unwrap().content, content);
            }
        }
    }

    #[test]
    fn any_bytes_are_borne(bytes in prop::collection::vec(any::<u8>(), 0..2_000), head in prop::sample::select(vec!["", "\x1f\u{b}", "WARC/1.0\r\n"])) {
        let bytes = [head.as_bytes(), &bytes].concat();
        prop_assert!(Reader::new(bytes.as_slice(), ReaderLimits::default()).count() <= 2_000);
        drop(warc::parse_http_response(&[b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n".as_slice(), &bytes].concat()));
    }
}
