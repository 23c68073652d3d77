//! Pages made to exhaust a parser: each is read in bounded time, and none loses the links around the attack.

#![expect(clippy::unwrap_used, reason = "a failed set-up fails the test")]
#![expect(clippy::print_stderr, reason = "the durations are the test's findings")]

use std::{
    fmt::Write as _,
    time::{Duration, Instant},
};

use parser::{Parser, ParserConfig};
use proptest::prelude::{ProptestConfig, Strategy, any, prop, proptest};
use types::{CanonicalUrl, Canonicalizer, Headers, ParsedPage};

const PAGE_BYTES: usize = 512 * 1_024;

/// Far above what is needed on an idle machine; the unguarded costs are minutes.
const TIME_MAX: Duration = Duration::from_secs(20);

fn parse(body: &[u8]) -> ParsedPage {
    let (parser, url) = parser();
    let headers = Headers::new(vec![("content-type".to_owned(), b"text/html".to_vec())]);
    parser.parse(&url, &headers, body)
}

fn parser() -> (Parser, CanonicalUrl) {
    let canonicalizer = Canonicalizer::default();
    let url = canonicalizer.canonicalize("http://example.org/").unwrap();
    let config = ParserConfig {
        outlinks_max: 10_000,
        nesting_max: 512,
        product_token: "bloomcrawl".to_owned(),
        canonicalizer,
    };
    (Parser::new(config), url)
}

/// Parses `<a href=/first>`, the attack and `<a href=/last>`; both links must be found.
fn survive(name: &str, attack: &str) {
    let page = format!("<a href=/first>1</a>{attack}<a href=/last>2</a>");
    let start = Instant::now();
    let parsed = parse(page.as_bytes());
    let elapsed = start.elapsed();
    eprintln!(
        "{name}: {} bytes in {:.3} s",
        page.len(),
        elapsed.as_secs_f64()
    );
    let has = |path: &str| {
        let mut targets = parsed
            .outlinks
            .iter()
            .filter_map(|link| link.target.as_ref().ok());
        targets.any(|target: &CanonicalUrl| target.path_and_query() == path)
    };
    assert!(has("/first"), "{name}: the first link is lost");
    assert!(
        has("/last") || parsed.outlinks_dropped_count > 0,
        "{name}: the last link is lost"
    );
    assert!(elapsed < TIME_MAX, "{name} took {elapsed:?}");
}

/// Pieces made by number until the page is full.
fn numbered(piece: impl Fn(usize) -> String) -> String {
    let mut text = String::new();
    for number in 0.. {
        if text.len() >= PAGE_BYTES {
            break;
        }
        text.push_str(&piece(number));
    }
    text
}

#[test]
fn deep_nesting() {
    for tag in [
        "<ul><li>",
        "<div>",
        "<b>",
        "<a href=/x>",
        "<p><b>",
        "<table><tr><td>",
        "<svg>",
        "<template>",
        "<font>",
    ] {
        let closed = if tag == "<template>" {
            "</template>".repeat(PAGE_BYTES / tag.len())
        } else {
            String::new()
        };
        survive(
            tag,
            &format!("{}{closed}", tag.repeat(PAGE_BYTES / tag.len())),
        );
    }
    survive("a table in a table", &"<table>".repeat(PAGE_BYTES / 7));
    survive(
        "just below the limit",
        &format!(
            "{}{}",
            "<div>".repeat(480),
            "<p></p>".repeat(PAGE_BYTES / 7)
        ),
    );
}

#[test]
fn misnesting() {
    survive("b with ids", &numbered(|number| format!("<b id={number}>")));
    survive(
        "p and b with ids",
        &numbered(|number| format!("<p><b id={number}>")),
    );
    survive("a, b and p", &"<a href=/x><b><p>".repeat(PAGE_BYTES / 17));
    survive(
        "adoption",
        &format!("{}{}", "<b><p>".repeat(200), "</b>".repeat(PAGE_BYTES / 4)),
    );
    survive(
        "all formatting elements",
        &"<b><i><u><s><tt><em><big><code><font><small><strike><strong><p>".repeat(8_000),
    );
    survive("end tags", &"</b></p></div></br>".repeat(PAGE_BYTES / 19));
    survive(
        "forms and selects",
        &"<form><select><option><input></select>".repeat(PAGE_BYTES / 38),
    );
    let large_attrs = numbered(|number| format!("<b {}=x></b>", "y".repeat(number % 50)));
    survive("b with attributes", &large_attrs);
}

#[test]
fn floods_of_attributes() {
    survive(
        "one tag",
        &format!("<p {}>", numbered(|number| format!(" {number:x}"))),
    );
    survive(
        "quoted",
        &format!("<p {}>", numbered(|number| format!(" z{number:x}='>'"))),
    );
    let mut many = String::new();
    for _ in 0..64 {
        many.push_str("<p");
        for number in 0..1_900 {
            write!(many, " {number:x}").unwrap();
        }
        many.push('>');
    }
    survive("many tags", &many);
    survive(
        "an end tag",
        &format!(
            "<script></script {}>",
            numbered(|number| format!(" {number:x}"))
        ),
    );
    let hidden = format!(
        "<!-- <a title=\" --><p {}>",
        numbered(|number| format!(" {number:x}"))
    );
    survive("behind a comment", &hidden);
}

#[test]
fn long_tokens_and_texts() {
    survive(
        "data URL",
        &format!("<img src='data:,{}'>", "/ x".repeat(1_000_000)),
    );
    survive(
        "comment",
        &format!("<!-- {} -->", "<a b c ".repeat(300_000)),
    );
    survive("text", &"&amp;x <".repeat(300_000));
    survive("comments", &"<!---->".repeat(300_000));
    survive("NULs", &"\0".repeat(PAGE_BYTES));
    survive("half tags", &format!("{}>", "<".repeat(PAGE_BYTES)));
    survive("references", &"&".repeat(PAGE_BYTES));
    survive("12 MB of elements", &"<i></i>".repeat(12_000_000 / 7));
    survive("20 MB of text", &"word <br>".repeat(20_000_000 / 9));
}

#[test]
fn unclosed_attribute_takes_the_rest_and_no_more() {
    let page = parse(b"<a href=/1></a><a href='/2></a><a href=/3>");
    assert_eq!(page.outlinks.len(), 1);
}

fn soup() -> impl Strategy<Value = String> {
    const WORDS: [&str; 48] = [
        "<a href=x>",
        "</a>",
        "<b>",
        "</b>",
        "<p>",
        "</p>",
        "<table>",
        "</table>",
        "<tr>",
        "<td>",
        "<svg>",
        "</svg>",
        "<math>",
        "<mi>",
        "<foreignObject>",
        "<annotation-xml encoding=text/html>",
        "<template>",
        "</template>",
        "<select>",
        "<option>",
        "</select>",
        "<title>",
        "</title>",
        "<script>",
        "</script>",
        "<!--",
        "-->",
        "<form>",
        "</form>",
        "<frameset>",
        "<frame src=f>",
        "<body>",
        "<html>",
        "<head>",
        "<caption>",
        "<colgroup>",
        "<col>",
        "<input type=hidden>",
        "<nobr>",
        "<button>",
        "<iframe src=i>",
        "text",
        " ",
        "\0",
        "&amp",
        "<![CDATA[",
        "]]>",
        "<plaintext",
    ];
    prop::collection::vec(0..WORDS.len(), 0..80).prop_map(|picks| {
        picks
            .into_iter()
            .map(|pick| WORDS[pick])
            .collect::<String>()
    })
}

/// Sitemaps made of one piece again and again.
#[test]
fn long_sitemaps() {
    for piece in [
        "<loc>",
        "<url><loc>http://a.example/",
        "&",
        "&#",
        "<!--",
        "<!DOCTYPE a [",
        "]",
        "<a b='",
        "<a b=c ",
        "<![CDATA[",
        "<link rel=x ",
        "<loc>http://a.example/</loc>",
    ] {
        for root in ["<urlset>", "<feed>", "<rss>", ""] {
            let text = format!("{root}<loc>{}", piece.repeat(4 * PAGE_BYTES / piece.len()));
            let start = Instant::now();
            let (parser, url) = parser();
            let parsed = parser.parse_sitemap(&url, &Headers::default(), text.as_bytes());
            assert!(parsed.outlinks.len() <= parser::ENTRIES_MAX);
            assert!(
                start.elapsed() < TIME_MAX,
                "{root}{piece} took {:?}",
                start.elapsed()
            );
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn tag_soup_never_panics(html in soup()) {
        parse(html.as_bytes());
        parse(format!("<frameset>{html}").as_bytes());
    }

    #[test]
    fn bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..400), head in "(<meta charset=[a-z0-9-]{0,8}>)?") {
        parse(&[head.as_bytes(), &bytes].concat());
        parse(&[b"\xFF\xFE", bytes.as_slice()].concat());
    }

    #[test]
    fn sitemaps_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..400), head in "(<(urlset|rss|feed|a:sitemapindex)>)?") {
        let (parser, url) = parser();
        let _ = parser.parse_sitemap(&url, &Headers::default(), &[head.as_bytes(), &bytes].concat());
    }
}
