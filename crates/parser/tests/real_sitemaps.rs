//! Real sitemaps and feeds, against counts that a plain search of their text gives.
#![expect(clippy::unwrap_used, reason = "a failed set-up fails the test")]
#![expect(clippy::print_stderr, reason = "a skipped test says so")]

use std::{collections::BTreeMap, fs, path::Path};

use parser::{Parser, ParserConfig};
use types::{Canonicalizer, Headers, LinkKind};

#[test]
fn every_entry_of_real_sitemaps_is_found() {
    let Some(shared) = std::env::var_os("BLOOMCRAWL_CORPORA") else {
        eprintln!("skipped: BLOOMCRAWL_CORPORA is not set");
        return;
    };
    let parser = Parser::new(ParserConfig {
        outlinks_max: 10_000,
        nesting_max: 512,
        product_token: "bloomcrawl".to_owned(),
        canonicalizer: Canonicalizer::default(),
    });
    let url = Canonicalizer::default()
        .canonicalize("http://example.org/sitemap")
        .unwrap();
    let mut found = BTreeMap::new();
    for file in fs::read_dir(Path::new(&shared).join("corpora/sitemaps")).unwrap() {
        let path = file.unwrap().path();
        // Packed files are unpacked before they come here.
        if path.extension().is_some_and(|extension| extension == "gz") {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        let page = parser.parse_sitemap(&url, &Headers::default(), text.as_bytes());
        let links = page.outlinks.iter();
        let targets =
            links.map(|link| (link.kind, link.target.as_ref().unwrap().as_str().to_owned()));
        let targets: Vec<_> = targets.collect();
        let expected = ["<loc>", "<sit:loc>"].map(|tag| text.matches(tag).count());
        let expected = match expected.iter().sum() {
            0 if text.contains("<feed") => 3,
            // Lists of lines, and an index whose addresses have no element of their own.
            0 => text
                .lines()
                .filter(|line| line.trim_start_matches('\u{feff}').starts_with("http"))
                .count(),
            count => count,
        };
        assert_eq!(targets.len(), expected, "{}: {targets:?}", path.display());
        for (kind, target) in &targets {
            let is_index = text.contains("<sitemapindex");
            let of_index = if is_index {
                LinkKind::Sitemap
            } else {
                LinkKind::Entry
            };
            assert_eq!(*kind, of_index, "{target}");
        }
        found.insert(path, targets.len());
    }
    eprintln!("{found:#?}");
    assert!(found.len() >= 13, "only {} files", found.len());
}
