//! Content codings: every coding, stacked, broken, cut and hostile.
#![expect(clippy::unwrap_used, reason = "a failed set-up fails the test")]

use std::io::Write;

use fetcher::{decode_body, decode_cut_body};
use flate2::{
    Compression,
    write::{DeflateEncoder, GzEncoder, ZlibEncoder},
};
use ruzstd::encoding::{CompressionLevel, compress_to_vec};
use types::{FailureKind, Headers};

/// Two published test streams of Brotli.
const BROTLI_X: &[u8] = &[0x0b, 0x00, 0x80, 0x58, 0x03];
const BROTLI_10X10Y: &[u8] = &[
    0x1b, 0x13, 0x00, 0x00, 0xa4, 0xb0, 0xb2, 0xea, 0x81, 0x47, 0x02, 0x8a,
];
/// 20 MiB of zeros in Brotli.
const BROTLI_BOMB: &[u8] = &[
    0xcb, 0xff, 0xff, 0x3f, 0xf8, 0x27, 0x00, 0xe2, 0xb1, 0x40, 0x20, 0xf7, 0xfe, 0x8f, 0xff, 0xff,
    0x7f, 0xf0, 0x4f, 0x00, 0xc4, 0x61, 0x11, 0x80, 0xee, 0xfd, 0x5f, 0xfe, 0xff, 0xff, 0xe0, 0x9f,
    0x00, 0x88, 0xc3, 0x02, 0x00, 0xdd, 0xfb, 0x1f,
];

fn encoded_as(codings: &[&str]) -> Headers {
    Headers::new(
        codings
            .iter()
            .map(|coding| ("Content-Encoding".to_owned(), coding.as_bytes().to_vec()))
            .collect(),
    )
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zlib(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn raw_deflate(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    compress_to_vec(bytes, CompressionLevel::Fastest)
}

/// Text that compresses but not to nothing, so that a cut in the middle leaves something.
fn text() -> Vec<u8> {
    (0_u32..40_000)
        .flat_map(|number| format!("{} ", number.wrapping_mul(2_654_435_761)).into_bytes())
        .collect()
}

#[track_caller]
fn expect_kind(
    headers: &Headers,
    body: &[u8],
    decoded_bytes_max: usize,
    kind: FailureKind,
) -> String {
    let failure = decode_body(headers, body, decoded_bytes_max).unwrap_err();
    assert_eq!(failure.kind, kind, "{failure}");
    failure.detail
}

#[test]
fn every_coding_is_undone() {
    let text = text();
    for (coding, body) in [
        ("gzip", gzip(&text)),
        ("X-GZIP", gzip(&text)),
        ("deflate", zlib(&text)),
        ("deflate", raw_deflate(&text)),
        ("zstd", zstd(&text)),
        ("identity", text.clone()),
        ("", text.clone()),
        ("utf-8", text.clone()),
    ] {
        let decoded = decode_body(&encoded_as(&[coding]), &body, text.len()).unwrap();
        assert!(*decoded == *text, "{coding}: {} bytes", decoded.len());
    }
    assert_eq!(
        *decode_body(&encoded_as(&["br"]), BROTLI_X, 1).unwrap(),
        *b"X"
    );
    assert_eq!(
        *decode_body(&encoded_as(&["br"]), BROTLI_10X10Y, 20).unwrap(),
        *b"XXXXXXXXXXYYYYYYYYYY"
    );
    assert_eq!(
        *decode_body(&Headers::default(), b"plain", 5).unwrap(),
        *b"plain"
    );
}

#[test]
fn stacked_codings_are_undone_from_the_last() {
    let body = zstd(&zlib(&gzip(b"deep")));
    for codings in [
        &["gzip, deflate,zstd"][..],
        &["gzip", "identity , deflate", "zstd"],
    ] {
        assert_eq!(
            *decode_body(&encoded_as(codings), &body, 100).unwrap(),
            *b"deep"
        );
    }
    expect_kind(
        &encoded_as(&["zstd, deflate, gzip"]),
        &body,
        100,
        FailureKind::Decode,
    );
    expect_kind(
        &encoded_as(&["gzip,gzip,gzip,gzip,gzip"]),
        &body,
        100,
        FailureKind::Decode,
    );
}

#[test]
fn members_and_frames_are_joined_and_padding_is_passed_over() {
    let two = [gzip(b"one "), gzip(b""), gzip(b"two"), b"\0\0\0\0".to_vec()].concat();
    assert_eq!(
        *decode_body(&encoded_as(&["gzip"]), &two, 100).unwrap(),
        *b"one two"
    );
    let skippable = [0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3];
    let frames = [zstd(b"one "), skippable.to_vec(), zstd(b"two")].concat();
    assert_eq!(
        *decode_body(&encoded_as(&["zstd"]), &frames, 100).unwrap(),
        *b"one two"
    );
    let endless = [0x50, 0x2a, 0x4d, 0x18, 0xff, 0xff, 0xff, 0xff, 1];
    expect_kind(&encoded_as(&["zstd"]), &endless, 100, FailureKind::Decode);
}

#[test]
fn a_flood_of_empty_parts_is_refused() {
    for (coding, part) in [("gzip", gzip(b"")), ("zstd", zstd(b""))] {
        let headers = encoded_as(&[coding]);
        assert_eq!(
            *decode_body(&headers, &part.repeat(1_000), 10).unwrap(),
            *b""
        );
        expect_kind(&headers, &part.repeat(10_001), 10, FailureKind::Decode);
    }
}

#[test]
fn bombs_stop_at_the_cap_in_every_layer() {
    let zeros = vec![0_u8; 20 << 20];
    for (coding, body) in [
        ("gzip", gzip(&zeros)),
        ("deflate", zlib(&zeros)),
        ("deflate", raw_deflate(&zeros)),
        ("zstd", zstd(&zeros)),
        ("br", BROTLI_BOMB.to_vec()),
    ] {
        assert!(body.len() < 200_000);
        expect_kind(
            &encoded_as(&[coding]),
            &body,
            zeros.len() - 1,
            FailureKind::DecodedTooLarge,
        );
        assert_eq!(
            decode_body(&encoded_as(&[coding]), &body, zeros.len())
                .unwrap()
                .len(),
            zeros.len()
        );
        let failure = decode_cut_body(&encoded_as(&[coding]), &body, 1 << 20).unwrap_err();
        assert_eq!(failure.kind, FailureKind::DecodedTooLarge);
    }
    let nested = gzip(&gzip(&zeros));
    expect_kind(
        &encoded_as(&["gzip, gzip"]),
        &nested,
        1 << 20,
        FailureKind::DecodedTooLarge,
    );
    expect_kind(
        &encoded_as(&["br"]),
        BROTLI_10X10Y,
        19,
        FailureKind::DecodedTooLarge,
    );
    expect_kind(
        &Headers::default(),
        b"plain",
        4,
        FailureKind::DecodedTooLarge,
    );
}

#[test]
fn broken_data_and_unknown_codings_are_refused_by_name() {
    let detail = expect_kind(&encoded_as(&["dcb\n"]), b"x", 100, FailureKind::Decode);
    assert!(detail.contains("dcb"), "{detail}");
    for coding in ["gzip", "deflate", "br", "zstd"] {
        expect_kind(
            &encoded_as(&[coding]),
            b"<!doctype html>",
            1_000,
            FailureKind::Decode,
        );
        assert_eq!(
            *decode_body(&encoded_as(&[coding]), b"", 100).unwrap(),
            *b""
        );
    }
    let mut wrong_checksum = gzip(b"text");
    let at = wrong_checksum.len() - 8;
    wrong_checksum[at] ^= 1;
    expect_kind(
        &encoded_as(&["gzip"]),
        &wrong_checksum,
        100,
        FailureKind::Decode,
    );
}

#[test]
fn data_that_end_early_are_a_failure_unless_the_body_was_cut() {
    let text = text();
    for (coding, body) in [
        ("gzip", gzip(&text)),
        ("deflate", zlib(&text)),
        ("deflate", raw_deflate(&text)),
        ("zstd", zstd(&text)),
        ("br", BROTLI_10X10Y.to_vec()),
    ] {
        let headers = encoded_as(&[coding]);
        for kept in [body.len() - 1, body.len() * 2 / 3, 1] {
            expect_kind(&headers, &body[..kept], 10 << 20, FailureKind::Decode);
        }
        if coding != "br" {
            let whole = decode_cut_body(&headers, &body, 10 << 20).unwrap();
            assert!(*whole == *text);
            let part = decode_cut_body(&headers, &body[..body.len() * 2 / 3], 10 << 20).unwrap();
            assert!(
                text.starts_with(&part) && part.len() > text.len() / 3,
                "{coding}: {}",
                part.len()
            );
        }
    }
}

#[test]
fn damaged_data_never_panic_and_stay_bounded() {
    let text = &text()[..20_000];
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state >> 33).unwrap()
    };
    let mut refused_count = 0;
    for (coding, body) in [
        ("gzip", gzip(text)),
        ("deflate", zlib(text)),
        ("deflate", raw_deflate(text)),
        ("zstd", zstd(text)),
        ("zstd", zstd(&vec![7; 9_000])),
        ("br", BROTLI_10X10Y.to_vec()),
        ("br", BROTLI_BOMB.to_vec()),
    ] {
        let headers = encoded_as(&[coding]);
        for _ in 0..1_500 {
            let mut damaged = body.clone();
            for _ in 0..=random() % 4 {
                let at = random() % damaged.len();
                damaged[at] = u8::try_from(random() % 256).unwrap();
            }
            damaged.truncate(1 + random() % damaged.len());
            match decode_body(&headers, &damaged, 100_000) {
                Ok(decoded) => assert!(decoded.len() <= 100_000),
                Err(_) => refused_count += 1,
            }
        }
    }
    assert!(
        refused_count > 4_000,
        "{refused_count} of 10500 were refused"
    );
}
