//! Whole pages through the public interface: what is taken as a link, and what is not.

#![expect(clippy::unwrap_used, reason = "a failed set-up fails the test")]

use parser::{Parser, ParserConfig, outlink_bytes_max};
use types::{CanonicalUrl, Canonicalizer, Headers, LinkKind, ParsedPage};

const BASE: &str = "http://example.org/dir/page?x=1";

fn parser(nesting_max: usize) -> Parser {
    Parser::new(ParserConfig {
        outlinks_max: 100,
        nesting_max,
        product_token: "bloomcrawl".to_owned(),
        canonicalizer: Canonicalizer::default(),
    })
}

fn parse_as(content_type: &str, body: &[u8], nesting_max: usize) -> ParsedPage {
    let url = Canonicalizer::default().canonicalize(BASE).unwrap();
    let headers = Headers::new(vec![(
        "Content-Type".to_owned(),
        content_type.as_bytes().to_vec(),
    )]);
    parser(nesting_max).parse(&url, &headers, body)
}

fn targets(page: &ParsedPage) -> Vec<&str> {
    page.outlinks
        .iter()
        .filter_map(|link| link.target.as_ref().ok())
        .map(CanonicalUrl::as_str)
        .collect()
}

/// Both engines must agree on a page: no depth is left to the tree the second time, so that the tokens are read.
fn check(html: &str, expected: &[&str]) {
    for nesting_max in [512, 0] {
        let page = parse_as("text/html", html.as_bytes(), nesting_max);
        let expected: Vec<String> = expected
            .iter()
            .map(|path| format!("http://example.org{path}"))
            .collect();
        assert_eq!(targets(&page), expected, "{html} at depth {nesting_max}");
    }
}

#[test]
fn elements_that_link() {
    check(
        "<a href=/a>1</a><map><area href=/b></map><a>2</a><a href>3</a>",
        &["/a", "/b", "/dir/page?x=1"],
    );
    check(
        "<iframe src=/f></iframe><iframe src=''></iframe><img src=/i><form action=/x>",
        &["/f"],
    );
    check(
        "<frameset><frame src=/1><frame src=/2></frameset>",
        &["/1", "/2"],
    );
    check("<meta http-equiv=Refresh content='0;URL=/r'>", &["/r"]);
    check(
        "<svg><a href=/1 xlink:href=/2></a><a xlink:href=/3 /></svg><a href=/4>",
        &["/1", "/3", "/4"],
    );
}

#[test]
fn link_relations() {
    let html = "<link rel='x NEXT' href=/n><link rel=prev href=/p><link rel=stylesheet href=/s><link rel=canonical \
                href=''><link href=/no><link rel='alternate stylesheet' href=/t><link rel=alternate hreflang=de \
                href=/de><link rel=canonical href=/c>";
    check(html, &["/n", "/p", "/de", "/c"]);
}

#[test]
fn places_without_links() {
    check(
        "<template><a href=/t>t</a><template></template><a href=/u></a></template><a href=/x>",
        &["/x"],
    );
    check(
        "<script>'<a href=/s>'</script><style><a href=/y></style><!-- <a href=/c> --><a href=/x>",
        &["/x"],
    );
    check(
        "<textarea><a href=/t></textarea><xmp><a href=/m></xmp><title><a href=/n></title><a href=/x>",
        &["/x"],
    );
    check(
        "<noscript><a href=/n>n</a></noscript><noframes><a href=/f></noframes>",
        &["/n"],
    );
    check("<a href=/x>1</a><plaintext><a href=/y>", &["/x"]);
}

#[test]
fn base_elements() {
    check(
        "<a href=1></a><base><base href=/b/><base href=/c/><a href=2></a>",
        &["/b/1", "/b/2"],
    );
    check(
        "<base href='javascript:x'><base href=/c/><a href=1></a>",
        &["/dir/1"],
    );
    check("<base href='http://[bad'><a href=1></a>", &["/dir/1"]);
    check(
        "<noscript><base href=/n/></noscript><a href=1></a>",
        &["/dir/1"],
    );
    check(
        "<template><base href=/t/></template><a href=1></a>",
        &["/dir/1"],
    );
}

#[test]
fn broken_markup_keeps_its_links() {
    check(
        "</p></div><a href=/1><table><a href=/2><tr><td><b><a href=/3><i",
        &["/1", "/2", "/3"],
    );
    check(
        "<a href=\"/1\"title='x'href=/9><A HREF = '/2' ><a\nhref=/3/>",
        &["/1", "/2", "/3/"],
    );
    check(
        "<select><option><a href=/1>x</a></select><a href=/2>",
        &["/1", "/2"],
    );
}

#[test]
fn kinds_and_nofollow() {
    let html = "<a rel='external NOFOLLOW' href=/a></a><a rel=nofollowing href=/b></a><link rel=next href=/c>";
    for nesting_max in [512, 0] {
        let page = parse_as("text/html", html.as_bytes(), nesting_max);
        let found: Vec<_> = page
            .outlinks
            .iter()
            .map(|link| (link.kind, link.is_nofollow))
            .collect();
        assert_eq!(
            found,
            [
                (LinkKind::Anchor, true),
                (LinkKind::Anchor, false),
                (LinkKind::Link, false)
            ]
        );
    }
}

#[test]
fn titles() {
    let title = |html: &str| {
        let [tree, tokens] =
            [512, 0].map(|nesting_max| parse_as("text/html", html.as_bytes(), nesting_max).title);
        assert_eq!(tree, tokens, "{html}");
        tree
    };
    assert_eq!(
        title("<title> A\n &amp;  b<i></title><title>C</title>").as_deref(),
        Some("A & b<i>")
    );
    assert_eq!(
        title("<svg><title>S</title></svg><body><title>B</title>").as_deref(),
        Some("B")
    );
    assert_eq!(title("<title>open").as_deref(), Some("open"));
    assert_eq!(title("<p>none"), None);
    assert_eq!(title("<title> </title><title>B</title>"), None);
    assert_eq!(
        title(&format!("<title>{}", "é ".repeat(2_000))).map(|text| text.chars().count()),
        Some(499)
    );
}

#[test]
fn directives_of_meta_elements() {
    let read = |html: &str| {
        let directives = parse_as("text/html", html.as_bytes(), 512).directives;
        (directives.noindex, directives.nofollow)
    };
    assert_eq!(read("<META NAME=Robots CONTENT=NoIndex>"), (true, false));
    assert_eq!(
        read("<meta name=BloomCrawl content=nofollow>"),
        (false, true)
    );
    assert_eq!(read("<meta name=otherbot content=none>"), (false, false));
    assert_eq!(
        read("<!-- <meta name=robots content=none> -->"),
        (false, false)
    );
}

#[test]
fn other_types_have_directives_only() {
    let url = Canonicalizer::default().canonicalize(BASE).unwrap();
    let fields = [
        ("content-type", "application/pdf"),
        ("x-robots-tag", "noindex"),
    ];
    let fields = fields.map(|(name, value)| (name.to_owned(), value.as_bytes().to_vec()));
    let page = parser(512).parse(&url, &Headers::new(fields.to_vec()), b"<a href=/x>");
    assert_eq!(
        (page.charset, page.outlinks.len(), page.directives.noindex),
        ("", 0, true)
    );
}

#[test]
fn empty_elements_of_xhtml() {
    let body = b"<?xml version='1.0'?><html><head><script src='x'/><title/></head><body><a href='/1'/><div/>\
        <textarea/><iframe src='/f'/><svg><a href='/2'/></svg><br/><a href='/3'>x</a></body></html>";
    for nesting_max in [512, 0] {
        let page = parse_as("application/xhtml+xml", body, nesting_max);
        let expected = ["/1", "/f", "/2", "/3"].map(|path| format!("http://example.org{path}"));
        assert_eq!(targets(&page), expected);
    }
    assert_eq!(parse_as("text/html", body, 512).outlinks.len(), 0);
}

#[test]
fn queries_follow_the_encoding_of_the_page() {
    let page = parse_as(
        "text/html; charset=windows-1251",
        b"<a href='/\xEF?q=\xCF&#8364;'>",
        512,
    );
    assert_eq!(page.charset, "windows-1251");
    assert_eq!(targets(&page), ["http://example.org/%D0%BF?q=%CF%88"]);
}

#[test]
fn links_beyond_the_limit_are_counted() {
    let html = "<a href=/x>".repeat(250);
    for nesting_max in [2_000, 0] {
        let page = parse_as("text/html", html.as_bytes(), nesting_max);
        assert_eq!(
            (page.outlinks.len(), page.outlinks_dropped_count),
            (100, 150)
        );
    }
}

/// All links lead to URLs of 16 KB, made of a long `base`; two thirds of them may be kept.
#[test]
fn links_whose_urls_are_too_long_together_are_counted() {
    let base = format!("http://example.org/{}/", "d".repeat(16_000));
    let html = format!("<html><base href={base}>{}", "<a href=x>".repeat(100));
    let canonicalizer = Canonicalizer::new(types::CanonicalOptions {
        url_bytes_max: 20_000,
        ..types::CanonicalOptions::default()
    });
    let url = canonicalizer.canonicalize(BASE).unwrap();
    let kept = outlink_bytes_max(100) / (base.len() + 1);
    for nesting_max in [512, 0] {
        let parser = Parser::new(ParserConfig {
            outlinks_max: 100,
            nesting_max,
            product_token: "bloomcrawl".to_owned(),
            canonicalizer: canonicalizer.clone(),
        });
        let page = parser.parse(&url, &Headers::default(), html.as_bytes());
        assert_eq!(page.outlinks.len(), kept);
        assert_eq!(page.outlinks_dropped_count, 100 - kept as u64);
    }
}
