//! The streams have the shape that is claimed of them.

#![expect(clippy::unwrap_used, reason = "a failed set-up fails the test")]
#![expect(clippy::print_stderr, reason = "a skipped test says so")]

use std::{
    collections::{HashMap, HashSet},
    env, fs,
};

use benches::seen_test::{
    stream::{Census, LinkStream, Model, ModelConfig, Site, documentation, link_stream, url_list},
    workload::{CORPORA, corpus},
};
use types::Canonicalizer;

fn model(active_count: u32) -> Model {
    Model::new(ModelConfig {
        link_count: 400_000,
        host_count: 400,
        active_count,
        seed: 3,
    })
    .unwrap()
}

#[test]
fn the_model_has_the_shape_that_the_design_states() {
    // As many links a host as 100 million links on 100,000 hosts.
    for active_count in [8, 80, 400] {
        let census = Census::take(&model(active_count));
        assert_eq!(census.link_count, 400_000);
        let page_links = census.link_count / census.page_count;
        assert!((60..=65).contains(&page_links), "{page_links} links a page");
        let in_page = census.in_page_share();
        assert!((0.42..0.48).contains(&in_page), "{active_count}: {in_page}");
        let duplicates = census.duplicate_share();
        assert!(
            (0.80..0.90).contains(&duplicates),
            "{active_count}: {duplicates}"
        );
    }
}

#[test]
fn the_model_repeats_itself_and_its_numbers_name_urls() {
    let model = model(80);
    let mut links = Vec::new();
    let (mut first, mut slots, mut ids) = (Vec::new(), HashSet::new(), HashSet::new());
    while model.next_page(&mut links).is_some() && first.len() < 20_000 {
        first.extend_from_slice(&links);
    }
    model.rewind();
    let mut again = Vec::new();
    while again.len() < first.len() && model.next_page(&mut links).is_some() {
        again.extend_from_slice(&links);
    }
    assert_eq!(first, again);
    let canonicalizer = Canonicalizer::default();
    for link in first {
        let url = model.url(link);
        assert_eq!(model.link_of(&url), Some(link));
        assert_eq!(canonicalizer.canonicalize(url.as_str()), Ok(url));
        assert!(model.slot(link) < model.slot_count());
        slots.insert(model.slot(link));
        ids.insert(link);
    }
    assert_eq!(slots.len(), ids.len(), "each target has a slot of its own");
}

#[test]
fn the_active_set_moves_through_all_hosts() {
    let model = model(8);
    let mut links = Vec::new();
    let mut hosts = Vec::new();
    while model.next_page(&mut links).is_some() {
        // Most links of a page lead to its own host.
        let mut counts: HashMap<String, usize> = HashMap::new();
        for link in &links {
            *counts
                .entry(model.url(*link).host_str().to_owned())
                .or_default() += 1;
        }
        let own = counts.into_iter().max_by_key(|(_, count)| *count);
        hosts.extend(own.map(|(host, _)| host));
    }
    let all: HashSet<&String> = hosts.iter().collect();
    assert!(all.len() > 380, "{} of 400 hosts had a turn", all.len());
    let beginning: HashSet<&String> = hosts[..200].iter().collect();
    assert!(
        beginning.len() < 40,
        "{} hosts in 200 pages",
        beginning.len()
    );
}

#[test]
fn wrong_models_are_refused() {
    for (host_count, active_count) in [(0, 0), (10, 0), (10, 11)] {
        let config = ModelConfig {
            link_count: 1,
            host_count,
            active_count,
            seed: 0,
        };
        assert!(
            Model::new(config).is_err(),
            "{active_count} of {host_count}"
        );
    }
}

#[test]
fn a_site_is_crawled_breadth_first_with_every_link() {
    let folder = tempfile::tempdir().unwrap();
    let page = |name: &str, links: &[&str]| {
        let anchors = format!("<a href=\"{}\">x</a>", links.join("\">x</a><a href=\""));
        fs::write(folder.path().join(name), anchors).unwrap();
    };
    page(
        "index.html",
        &["a.html", "b.html", "a.html#part", "mailto:x@example.org"],
    );
    page("a.html", &["c.html", "index.html"]);
    page("b.html", &["https://elsewhere.example/"]);
    page("c.html", &["missing.html"]);
    let site = Site {
        name: "docs.example".to_owned(),
        folder: folder.path().to_owned(),
    };
    let stream = documentation(&[site]).unwrap();
    let mut pages = Vec::new();
    let mut links = Vec::new();
    while stream.next_page(&mut links).is_some() {
        let paths = links
            .iter()
            .map(|link| stream.url(*link).path_and_query().to_owned());
        pages.push(paths.collect::<Vec<_>>().join(" "));
    }
    let expected = [
        "/index.html",
        "/a.html /b.html /a.html",
        "/c.html /index.html",
        "/",
        "/missing.html",
    ];
    assert_eq!(pages, expected);
    assert_eq!(stream.rejected_count(), 1);
}

#[test]
fn the_recorded_streams_are_read_whole() {
    if env::var_os(CORPORA).is_none() {
        eprintln!("skipped: {CORPORA} is not set");
        return;
    }
    let stream = link_stream(&corpus("link-stream.tsv.gz").unwrap()).unwrap();
    let census = Census::take(&stream);
    assert_eq!(census.link_count + stream.rejected_count(), 459_775);
    assert!(stream.rejected_count() < 100);
    assert_eq!(census.page_count, 3_052);
    let beginning = Census::take(&stream.first(10_000));
    assert!(
        (10_000..12_000).contains(&beginning.link_count),
        "{beginning:?}"
    );
    let list = url_list(&corpus("idn-arabic-urls.txt.gz").unwrap()).unwrap();
    let census = Census::take(&list);
    assert_eq!(census.link_count + 2 * list.rejected_count(), 2 * 12_268);
    assert!(census.duplicate_share() > 0.5);
}
