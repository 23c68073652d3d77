//! Canonicalizes URLs of the real web and prints what that changes.
//!
//! The lists lie outside the repository; the folder that holds them is named by `BLOOMCRAWL_CORPORA`.

#![expect(
    clippy::print_stderr,
    reason = "the figures are what a reader runs this for"
)]

use std::{
    collections::{BTreeMap, HashSet},
    env,
    fs::File,
    io::{BufRead, BufReader},
    path::PathBuf,
    time::{Duration, Instant},
};

use flate2::bufread::MultiGzDecoder;
use types::{CanonicalOptions, CanonicalUrl, Canonicalizer, UrlRejection};

/// What canonicalizing a list came to.
#[derive(Default)]
struct Figures {
    text_count: usize,
    texts: HashSet<String>,
    canonical: HashSet<String>,
    stripped: HashSet<String>,
    refused: BTreeMap<&'static str, usize>,
    elapsed: Duration,
}

impl Figures {
    /// Canonicalizes `text`, without and with all options, and checks that a second pass changes nothing.
    fn add(&mut self, text: &str, plain: &Canonicalizer, stripping: &Canonicalizer) {
        let start = Instant::now();
        let result = plain.canonicalize(text);
        self.elapsed += start.elapsed();
        self.text_count += 1;
        self.texts.insert(text.to_owned());
        match result {
            Ok(url) => {
                check(plain, text, &url);
                self.canonical.insert(url.to_string());
                let url = stripping.canonicalize(text).expect("options refuse no URL");
                check(stripping, text, &url);
                self.stripped.insert(url.to_string());
            }
            Err(rejection) => *self.refused.entry(rejection.reason().name()).or_default() += 1,
        }
    }

    fn report(&self, list: &str) {
        let nanoseconds = self.elapsed.as_nanos() / self.text_count.max(1) as u128;
        eprintln!(
            "{list:<28} texts {:>7}  distinct {:>7}  canonical {:>7}  with all options {:>7}  refused {:?}  {nanoseconds} ns each",
            self.text_count,
            self.texts.len(),
            self.canonical.len(),
            self.stripped.len(),
            self.refused,
        );
    }
}

fn check(canonicalizer: &Canonicalizer, text: &str, url: &CanonicalUrl) {
    assert_eq!(
        canonicalizer.canonicalize(url.as_str()).as_ref(),
        Ok(url),
        "{text:?}"
    );
    assert_eq!(
        CanonicalUrl::from_stored(url.to_string()).as_ref(),
        Ok(url),
        "{text:?}"
    );
}

/// Canonicalizes the column `column` of every `step`-th line of a list; `None` where the lists are not at hand.
fn run(list: &str, column: usize, step: usize) -> Option<Figures> {
    let Some(folder) = env::var_os("BLOOMCRAWL_CORPORA") else {
        eprintln!("skipped: BLOOMCRAWL_CORPORA is not set");
        return None;
    };
    let path = PathBuf::from(folder).join("corpora/urls").join(list);
    let file = File::open(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let plain = Canonicalizer::default();
    let stripping = Canonicalizer::new(CanonicalOptions {
        drop_tracking: true,
        sort_query: true,
        drop_session_ids: true,
        ..CanonicalOptions::default()
    });
    let mut figures = Figures::default();
    for line in BufReader::new(MultiGzDecoder::new(BufReader::new(file)))
        .split(b'\n')
        .step_by(step)
    {
        let line = line.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let line = String::from_utf8_lossy(&line);
        figures.add(
            line.split('\t').nth(column).unwrap_or_default(),
            &plain,
            &stripping,
        );
    }
    figures.report(list);
    Some(figures)
}

#[test]
fn links_of_real_pages_all_have_a_canonical_form() {
    let Some(figures) = run("link-stream.tsv.gz", 1, 1) else {
        return;
    };
    // The list holds what a WHATWG parser resolved, so that only the cap may refuse.
    let too_long = UrlRejection::TooLong {
        bytes: 0,
        bytes_max: 0,
    }
    .reason()
    .name();
    assert!(
        figures.refused.keys().all(|reason| *reason == too_long),
        "{:?}",
        figures.refused
    );
    assert!(
        figures.canonical.len() > 100_000,
        "{} canonical URLs",
        figures.canonical.len()
    );
    assert!(
        figures.canonical.len() < figures.texts.len(),
        "canonicalization merges some"
    );
    assert!(
        figures.stripped.len() < figures.canonical.len(),
        "options merge more"
    );
}

#[test]
fn lists_of_real_urls_are_canonicalized_once_and_for_all() {
    for (list, column, step) in [
        ("ada-kasztp.txt.gz", 0, 1),
        ("idn-arabic-urls.txt.gz", 0, 1),
        ("language-seeds.tsv.gz", 1, 1),
        ("sitemap-urls.txt.gz", 0, 1),
        ("robots-rule-urls.txt.gz", 0, 8),
    ] {
        let Some(figures) = run(list, column, step) else {
            return;
        };
        let refused_count = figures.refused.values().sum::<usize>();
        assert!(
            refused_count < figures.text_count / 10,
            "{list}: {:?}",
            figures.refused
        );
    }
}
