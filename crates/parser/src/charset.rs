//! The encoding of a page, and its text: byte order mark, header, the page's own statement, validity, detection.

use std::{borrow::Cow, str};

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{EncoderResult, Encoding, UTF_8};

use crate::prescan;

/// Bytes in which a `meta` is looked for first (HTML, section 13.2.3.2).
const PRESCAN_BYTES: usize = 1_024;

/// Bytes shown to the detector, all from places with non-ASCII bytes. A detection over a whole page would cost more than
/// parsing it, and is hardly ever better.
const DETECTED_BYTES_MAX: usize = 4_096;

/// Decodes a page. `label` is the charset of its `Content-Type`, `top_level_domain` (lower case, no dot) a hint for the
/// detection. What is invalid in the encoding becomes U+FFFD.
pub(crate) fn decode<'a>(
    body: &'a [u8],
    label: Option<&str>,
    top_level_domain: Option<&str>,
) -> (&'static Encoding, Cow<'a, str>) {
    let (encoding, bom_bytes) = Encoding::for_bom(body).unwrap_or_else(|| {
        (
            stated(body, label).unwrap_or_else(|| guessed(body, top_level_domain)),
            0,
        )
    });
    let (text, _) = encoding.decode_without_bom_handling(&body[bom_bytes..]);
    (encoding, text)
}

/// The encoding that the header or the start of the page states. Labels that are unknown, or stand for an encoding that
/// may not be decoded (the replacement encoding), are passed over: their pages are ASCII for the most part.
fn stated(body: &[u8], label: Option<&str>) -> Option<&'static Encoding> {
    let head = &body[..body.len().min(PRESCAN_BYTES)];
    label
        .and_then(|label| Encoding::for_label_no_replacement(label.as_bytes()))
        .or_else(|| prescan::meta_encoding(head))
        .or_else(|| prescan::xml_encoding(head))
}

/// The encoding of a page that states none where it should.
fn guessed(body: &[u8], top_level_domain: Option<&str>) -> &'static Encoding {
    if is_utf_8(body) {
        return UTF_8;
    }
    prescan::meta_encoding(body).unwrap_or_else(|| detected(body, top_level_domain))
}

/// Whether the bytes are UTF-8, a last character that was cut off included.
fn is_utf_8(body: &[u8]) -> bool {
    str::from_utf8(body)
        .err()
        .is_none_or(|error| error.error_len().is_none())
}

/// Asks the detector, over the stretches between tags that hold non-ASCII bytes. `<` and `>` are no part of a longer
/// character in any encoding that it knows, so no character is cut.
fn detected(body: &[u8], top_level_domain: Option<&str>) -> &'static Encoding {
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
    let mut bytes_left = DETECTED_BYTES_MAX;
    for stretch in body
        .split(|byte| matches!(byte, b'<' | b'>'))
        .filter(|stretch| !stretch.is_ascii())
    {
        let from = stretch
            .iter()
            .position(|byte| !byte.is_ascii())
            .unwrap_or(0);
        let stretch = &stretch[from..];
        let shown = &stretch[..stretch.len().min(bytes_left)];
        detector.feed(shown, false);
        detector.feed(b"\n", false);
        bytes_left -= shown.len();
        if bytes_left == 0 {
            break;
        }
    }
    detector.feed(b"", true);
    detector.guess(top_level_domain.map(str::as_bytes), Utf8Detection::Allow)
}

/// Whether the queries of a page's links are written in another encoding than UTF-8.
pub(crate) fn needs_query_encoding(encoding: &'static Encoding) -> bool {
    encoding.output_encoding() != UTF_8
}

/// Encodes a query as its page's encoding demands; a character that the encoding lacks becomes `&#N;`, percent-encoded
/// (URL, section 5.1, "percent-encode after encoding").
pub(crate) fn encode_query<'a>(query: &'a str, encoding: &'static Encoding) -> Cow<'a, [u8]> {
    if query.is_ascii() {
        return Cow::Borrowed(query.as_bytes());
    }
    let mut encoder = encoding.new_encoder();
    let mut bytes = Vec::new();
    let mut rest = query;
    loop {
        let needed = encoder
            .max_buffer_length_from_utf8_without_replacement(rest.len())
            .unwrap_or(rest.len());
        bytes.reserve(needed);
        let (result, read) =
            encoder.encode_from_utf8_to_vec_without_replacement(rest, &mut bytes, true);
        rest = &rest[read..];
        match result {
            EncoderResult::InputEmpty => return Cow::Owned(bytes),
            EncoderResult::Unmappable(character) => {
                bytes.extend_from_slice(format!("%26%23{}%3B", u32::from(character)).as_bytes());
            }
            EncoderResult::OutputFull => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use encoding_rs::{ISO_2022_JP, WINDOWS_1251};

    use super::{decode, encode_query};

    fn name(body: &[u8], label: Option<&str>) -> &'static str {
        decode(body, label, None).0.name()
    }

    #[test]
    fn order_of_precedence() {
        assert_eq!(
            name(b"\xEF\xBB\xBF<meta charset=gbk>", Some("big5")),
            "UTF-8"
        );
        assert_eq!(name(b"<meta charset=gbk>", Some("big5")), "Big5");
        assert_eq!(name(b"<meta charset=gbk>\xC3\xA9", Some("nonsense")), "GBK");
        assert_eq!(name(b"<?xml encoding='koi8-r'?>", None), "KOI8-R");
        assert_eq!(name("é".as_bytes(), None), "UTF-8");
    }

    #[test]
    fn cut_off_utf_8_is_utf_8() {
        assert_eq!(name(&"caf\u{e9}".as_bytes()[..4], None), "UTF-8");
    }

    #[test]
    fn late_meta_counts_only_where_utf_8_is_impossible() {
        let late = |text: &[u8]| [&b" ".repeat(2_000)[..], b"<meta charset=koi8-r>", text].concat();
        assert_eq!(name(&late("ж".as_bytes()), None), "UTF-8");
        assert_eq!(name(&late(b"\xD6\xC0\xFF."), None), "KOI8-R");
    }

    #[test]
    fn detection() {
        let (russian, _, _) = WINDOWS_1251.encode("Привет, как дела? Это обычный русский текст.");
        let page = [&b"x".repeat(50_000)[..], b"<p>", &russian[..]].concat();
        assert_eq!(name(&page, None), "windows-1251");
        let mostly_utf_8 = ["Привет, как дела? ".as_bytes(), b"<p>\xFF</p>"].concat();
        let (encoding, text) = decode(&mostly_utf_8, None, None);
        assert!(encoding.name() != "UTF-8" || text.contains("Привет"));
    }

    #[test]
    fn queries() {
        assert_eq!(
            encode_query("q=ж€😀z", WINDOWS_1251).as_ref(),
            b"q=\xE6\x88%26%23128512%3Bz"
        );
        assert_eq!(encode_query("q=a", WINDOWS_1251).as_ref(), b"q=a");
        assert_eq!(
            encode_query("\u{3042}", ISO_2022_JP).as_ref(),
            b"\x1B$B$\"\x1B(B"
        );
    }
}
