//! The generated site keeps its promises, by an independent walk over its pages.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::client::{get, get_tls, parse, start};
use http::{HeaderMap, Method};
use replay::{Site, SiteAnswer, SiteRequest, Synthetic, SyntheticConfig};

fn ask(site: &impl Site, url: &str) -> SiteAnswer {
    let (scheme, rest) = url.split_once("://").unwrap();
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let (method, headers) = (Method::GET, HeaderMap::new());
    site.answer(&SiteRequest {
        scheme,
        authority,
        path_and_query: path,
        method: &method,
        headers: &headers,
    })
}

fn body(answer: &SiteAnswer) -> &str {
    std::str::from_utf8(&answer.body).unwrap()
}

/// Finds the values of href by plain string search.
fn hrefs(html: &str) -> Vec<String> {
    let lower = html.to_ascii_lowercase();
    let mut found = Vec::new();
    for (at, mark) in lower.match_indices("href=") {
        let rest = &html[at + mark.len()..];
        let value = match rest.chars().next() {
            Some(quote @ ('"' | '\'')) => rest[1..].split(quote).next().unwrap(),
            _ => rest.split(['>', ' ']).next().unwrap(),
        };
        found.push(value.trim().replace("&amp;", "&"));
    }
    found
}

/// Resolves and canonicalizes, for the spellings that the site uses.
fn resolve(base: &str, href: &str) -> String {
    let href = href.split('#').next().unwrap();
    let (scheme, base_rest) = base.split_once("://").unwrap();
    let (host, base_path) = base_rest.split_at(base_rest.find('/').unwrap());
    let lower = href.to_ascii_lowercase();
    let (host, path) = if let Some(start) = lower
        .find("://")
        .map(|at| at + 3)
        .or(lower.starts_with("//").then_some(2))
    {
        let end = href[start..].find('/').map_or(href.len(), |at| start + at);
        let host =
            lower[start..end].trim_end_matches(if scheme == "https" { ":443" } else { ":80" });
        (host.to_owned(), href[end..].to_owned())
    } else if href.starts_with('/') {
        (host.to_owned(), href.to_owned())
    } else {
        let folder = base_path.split('?').next().unwrap();
        (
            host.to_owned(),
            format!("{}/{href}", &folder[..folder.rfind('/').unwrap()]),
        )
    };
    let (path, query) = path
        .split_once('?')
        .map_or((path.as_str(), None), |(path, query)| (path, Some(query)));
    let mut segments: Vec<&str> = Vec::new();
    for segment in path.split('/').skip(1) {
        match segment {
            "." => {}
            ".." => drop(segments.pop()),
            _ => segments.push(segment),
        }
    }
    // The site only ends a path with a dot segment in "./", whose empty end is kept as it is.
    let path = escape(&format!("/{}", segments.join("/")));
    format!(
        "{scheme}://{host}{path}{}",
        query.map(|query| format!("?{query}")).unwrap_or_default()
    )
}

fn escape(path: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = path.as_bytes();
    while let Some((byte, after)) = rest.split_first() {
        rest = after;
        if *byte == b'%' {
            bytes.push(u8::from_str_radix(std::str::from_utf8(&after[..2]).unwrap(), 16).unwrap());
            rest = &after[2..];
        } else {
            bytes.push(*byte);
        }
    }
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte);
    bytes
        .iter()
        .map(|byte| {
            if is_plain(*byte) {
                char::from(*byte).to_string()
            } else {
                format!("%{byte:02X}")
            }
        })
        .collect()
}

struct Walk {
    pages: BTreeSet<String>,
    link_count: usize,
    spellings: BTreeMap<String, BTreeSet<String>>,
}

/// Follows all links from the start; every one must lead to a page.
fn walk(site: &Synthetic) -> Walk {
    let mut walk = Walk {
        pages: BTreeSet::from([site.start_url()]),
        link_count: 0,
        spellings: BTreeMap::new(),
    };
    let mut queue = VecDeque::from([site.start_url()]);
    while let Some(url) = queue.pop_front() {
        let answer = ask(site, &url);
        assert_eq!(answer.status, 200, "{url}");
        for href in hrefs(body(&answer)) {
            let target = resolve(&url, &href);
            assert!(site.is_page(&target), "{href} on {url} leads to {target}");
            walk.link_count += 1;
            walk.spellings
                .entry(target.clone())
                .or_default()
                .insert(href);
            if walk.pages.insert(target.clone()) {
                queue.push_back(target);
            }
        }
    }
    walk
}

#[test]
fn all_pages_are_reachable_and_nothing_else() {
    for (pages, links_per_page, hosts, scheme) in [
        (2_000, 60, 1, "http"),
        (1_500, 60, 7, "https"),
        (300, 1, 2, "http"),
        (50, 5, 90, "http"),
        (1, 60, 1, "http"),
    ] {
        let config = SyntheticConfig {
            pages,
            links_per_page,
            hosts,
            scheme: scheme.to_owned(),
            page_bytes: 1_000,
            ..SyntheticConfig::default()
        };
        let site = Synthetic::new(config);
        let walk = walk(&site);
        assert_eq!(
            walk.pages,
            site.urls().collect::<BTreeSet<_>>(),
            "{pages} pages on {hosts} hosts"
        );
        assert_eq!(walk.pages.len() as u64, pages);
        assert_eq!(walk.link_count as u64, pages * u64::from(links_per_page));
    }
}

#[test]
fn links_repeat_and_are_spelled_in_many_ways() {
    let site = Synthetic::new(SyntheticConfig {
        pages: 2_000,
        page_bytes: 0,
        ..SyntheticConfig::default()
    });
    let walk = walk(&site);
    assert!(
        walk.link_count >= 10 * walk.pages.len(),
        "at least 90 % of links are repeats"
    );
    let most = walk.spellings.values().map(BTreeSet::len).max().unwrap();
    assert!(
        most >= 10,
        "the most variously spelled page has {most} spellings"
    );
    let all = walk
        .spellings
        .values()
        .flatten()
        .map(String::as_str)
        .collect::<Vec<_>>();
    for sign in [
        "../",
        "./",
        "x/../",
        "HTTP://SITE.EXAMPLE",
        ":80/",
        "#",
        "%7E",
        "%c3%a9",
        "\u{e9}",
        "%2ehtml",
        "?q=",
    ] {
        assert!(
            all.iter().any(|href| href.contains(sign)),
            "no link with {sign}"
        );
    }
    // The navigation is linked from nearly everywhere, a page far out from few.
    let links = (0..2_000)
        .flat_map(|index| site.page_links(index))
        .collect::<Vec<_>>();
    let count = |page: u64| links.iter().filter(|target| **target == page).count();
    assert!(
        count(3) > 2_000 && count(1_999) < 100,
        "{} and {}",
        count(3),
        count(1_999)
    );
}

#[test]
fn pages_depend_on_the_seed_alone() {
    let config = |seed| SyntheticConfig {
        seed,
        pages: 100,
        ..SyntheticConfig::default()
    };
    let (one, same, other) = (
        Synthetic::new(config(1)),
        Synthetic::new(config(1)),
        Synthetic::new(config(2)),
    );
    for url in one.urls() {
        let answer = ask(&one, &url);
        assert_eq!(answer.body, ask(&same, &url).body);
        assert_ne!(answer.body, ask(&other, &url).body);
        assert_eq!(answer.body.len(), 30_000);
    }
    assert_ne!(
        ask(&one, &one.page_url(30)).body,
        ask(&one, &one.page_url(31)).body
    );
    assert!(body(&ask(&one, &one.page_url(30))).contains("<title>Page 30 &amp; more</title>"));
}

#[test]
fn only_canonical_urls_are_pages() {
    let site = Synthetic::new(SyntheticConfig {
        hosts: 2,
        ..SyntheticConfig::default()
    });
    assert_eq!(site.start_url(), "http://h0.site.example/");
    assert_eq!(ask(&site, "http://h1.site.example/robots.txt").status, 200);
    for url in [
        "http://h1.site.example/",
        "http://h2.site.example/robots.txt",
        "http://site.example/",
        "https://h0.site.example/",
        "http://h0.site.example/s0/../",
        "http://h0.site.example/favicon.ico",
    ] {
        assert_eq!(ask(&site, url).status, 404, "{url}");
    }
    let closed = Synthetic::new(SyntheticConfig {
        robots_txt: None,
        ..SyntheticConfig::default()
    });
    assert_eq!(ask(&closed, "http://site.example/robots.txt").status, 404);
    assert_eq!(closed.page_count(), 1_000);
    assert!(!closed.is_page(&closed.page_url(1_000)));
}

#[test]
fn the_site_is_served_on_its_scheme() {
    let site = Synthetic::new(SyntheticConfig {
        scheme: "https".to_owned(),
        pages: 20,
        ..SyntheticConfig::default()
    });
    let page = ask(&site, "https://site.example/").body;
    let server = start(site);
    let bytes = get_tls(&server, "site.example", "/").unwrap();
    let response = parse(&bytes);
    assert_eq!((response.status, &*response.body), (200, &*page));
    assert_eq!(
        response.header("content-type"),
        Some(b"text/html; charset=utf-8".as_slice())
    );
    assert_eq!(get(&server, "site.example", "/").0, 404);
}
