//! The filter's snapshot: used when it is of the state at hand, and otherwise refused with a word and rebuilt.
#![expect(clippy::unwrap_used, reason = "a failed set-up fails the test")]

mod support;

use std::{fs, os::unix::fs::symlink, path::PathBuf, process::Command, sync::Arc, time::Duration};

use engine::{Crawl, CrawlConfig, OpeningEvent, Report};
use replay::{Server, ServerConfig, Synthetic, SyntheticConfig};
use support::{BACKENDS, Backend, Place, assert_fetched_once, assert_whole};
use types::Canonicalizer;

const PAGES: u64 = 300;

fn site() -> (Server, Arc<Synthetic>) {
    let site = Arc::new(Synthetic::new(SyntheticConfig {
        pages: PAGES,
        page_bytes: 1_000,
        // Few, so that most pages are found late.
        links_per_page: 3,
        ..SyntheticConfig::default()
    }));
    let config = ServerConfig {
        https: None,
        ..ServerConfig::default()
    };
    (Server::start(config, site.clone()).unwrap(), site)
}

/// What a run told while it opened, what it has to tell beside its report, and the report.
struct Told {
    events: Vec<OpeningEvent>,
    notices: Vec<String>,
    report: Report,
}

impl Told {
    fn is_loaded(&self) -> bool {
        matches!(self.events[..], [OpeningEvent::SnapshotLoaded { .. }])
    }

    /// Asserts that the filter was rebuilt from all keys, and that the user was told so with `words`.
    fn assert_rebuilt(&self, words: &str) {
        let [notice] = &self.notices[..] else {
            panic!("one notice for {words:?}, not {:?}", self.notices);
        };
        assert!(notice.contains(words), "{notice:?} has no {words:?}");
        assert!(notice.contains("rebuilt from the store"), "{notice}");
        assert_eq!(self.events[0], OpeningEvent::Notice(notice.clone()));
        let rebuilding = |event: &OpeningEvent| match event {
            OpeningEvent::Rebuilding {
                key_count,
                expected_count,
            } => (*key_count, *expected_count),
            other => panic!("{other:?} in a rebuild"),
        };
        let (first, last) = (&self.events[1], self.events.last().unwrap());
        assert_eq!(rebuilding(first).0, 0, "{words}");
        let (read, expected) = rebuilding(last);
        assert!(
            read == expected && read > 0,
            "{words}: {read} of {expected}"
        );
    }
}

/// Runs a crawl to its end, with a filter from the first key on.
fn run(mut config: CrawlConfig, site: &Synthetic, max_pages: Option<u64>) -> Told {
    config.limits.max_pages = max_pages;
    let seed = Canonicalizer::default()
        .canonicalize(&site.start_url())
        .unwrap();
    let mut events = Vec::new();
    let crawl = Crawl::start_observed(config, &[seed], &mut |event| events.push(event)).unwrap();
    let report = crawl
        .wait(Duration::from_mins(1))
        .expect("it ends")
        .unwrap();
    let opening = events.iter().filter_map(|event| match event {
        OpeningEvent::Notice(notice) => Some(notice.clone()),
        _ => None,
    });
    Told {
        notices: opening.chain(crawl.notices()).collect(),
        events,
        report,
    }
}

fn config(place: &Place, server: &Server) -> CrawlConfig {
    CrawlConfig {
        fixed_filter_urls: Some(1_000),
        ..place.config(server)
    }
}

fn snapshot(place: &Place) -> PathBuf {
    place.path().join("filter.snapshot")
}

/// tomtomwombat/fastbloom#2, jedisct1/rust-bloom-filter#6, prataprc/xorfilter#1: a filter that was saved and read back
/// answered "no" to everything, and the site was crawled twice.
#[test]
fn fastbloom_2_the_next_run_goes_on_with_it() {
    for backend in BACKENDS {
        let (server, site) = site();
        let place = Place::new(backend);
        let config = config(&place, &server);
        let first = run(config.clone(), &site, Some(50));
        assert!(first.events.is_empty(), "{:?}", first.events);
        let second = run(config.clone(), &site, Some(100));
        let key_count = first.report.counts.queued + first.report.counts.finished();
        let loaded = OpeningEvent::SnapshotLoaded {
            key_count,
            replayed_count: 0,
        };
        assert_eq!(second.events, [loaded]);
        let written = fs::metadata(snapshot(&place)).unwrap().modified().unwrap();
        // The pages that its memory lies on make no difference.
        let other_pages = CrawlConfig {
            huge_pages: !config.huge_pages,
            ..config.clone()
        };
        let last = run(other_pages, &site, None);
        assert!(last.is_loaded());
        assert_whole(&last.report, &place.records());
        assert_fetched_once(&server, &site.urls().collect());
        let now = |place| fs::metadata(snapshot(place)).unwrap().modified().unwrap();
        assert_ne!(now(&place), written, "it is of the end of the last run");
        let written = now(&place);
        assert!(run(config, &site, None).is_loaded());
        assert_eq!(now(&place), written, "nothing has changed since");
    }
}

/// What may happen to the file between two runs, and what the user is then told.
type Mishap<'a> = (&'a str, Box<dyn Fn(&mut Vec<u8>) + 'a>);

#[test]
fn one_that_is_not_right_leads_to_a_rebuild_and_to_the_same_crawl() {
    let (server, site) = site();
    let other = Place::new(Backend::Embedded);
    run(config(&other, &server), &site, Some(50));
    let foreign = fs::read(snapshot(&other)).unwrap();
    let flip = |at: fn(usize) -> usize| {
        move |bytes: &mut Vec<u8>| {
            let at = at(bytes.len());
            bytes[at] ^= 0x10;
        }
    };
    let mishaps: [Mishap<'_>; 8] = [
        ("damaged", Box::new(flip(|_| 20))),
        ("damaged", Box::new(flip(|len| len / 2))),
        ("damaged", Box::new(flip(|len| len - 1))),
        (
            "cut short",
            Box::new(|bytes| bytes.truncate(bytes.len() - 1)),
        ),
        ("cut short", Box::new(|bytes| bytes.truncate(30))),
        ("version 201", Box::new(|bytes| bytes[8] = 201)),
        ("no snapshot", Box::new(Vec::clear)),
        (
            "another crawl",
            Box::new(|bytes| bytes.clone_from(&foreign)),
        ),
    ];
    for (words, mishap) in mishaps {
        let (server, _) = self::site();
        let place = Place::new(Backend::Embedded);
        let config = config(&place, &server);
        run(config.clone(), &site, Some(50));
        let mut bytes = fs::read(snapshot(&place)).unwrap();
        mishap(&mut bytes);
        fs::write(snapshot(&place), bytes).unwrap();
        let told = run(config.clone(), &site, None);
        told.assert_rebuilt(words);
        assert_whole(&told.report, &place.records());
        assert_fetched_once(&server, &site.urls().collect());
        assert!(run(config, &site, None).is_loaded(), "it is whole again");
    }
}

#[test]
fn one_that_a_run_has_outlived_is_not_used() {
    let (server, site) = site();
    let place = Place::new(Backend::Embedded);
    let config = config(&place, &server);
    run(config.clone(), &site, Some(50));
    // What a run that was killed leaves: a store that has gone on, and the file of the run before.
    let old = fs::read(snapshot(&place)).unwrap();
    run(config.clone(), &site, Some(100));
    fs::write(snapshot(&place), &old).unwrap();
    let told = run(config.clone(), &site, Some(150));
    told.assert_rebuilt("the keys logged since end at URL");
    // A write that was cut off.
    fs::write(place.path().join("filter.snapshot.new"), b"BLMF").unwrap();
    let told = run(config, &site, None);
    assert!(told.is_loaded());
    assert_whole(&told.report, &place.records());
    assert_fetched_once(&server, &site.urls().collect());
    assert!(!place.path().join("filter.snapshot.new").exists());
}

#[test]
fn one_of_another_size_is_not_used() {
    let (server, site) = site();
    let place = Place::new(Backend::Embedded);
    let mut config = config(&place, &server);
    run(config.clone(), &site, Some(50));
    config.false_positive_rate = 0.001;
    let told = run(config.clone(), &site, Some(100));
    told.assert_rebuilt("other settings");
    assert!(run(config, &site, None).is_loaded());
}

#[test]
fn a_run_under_other_settings_that_finds_nothing_to_do_leaves_it() {
    let (server, site) = site();
    let place = Place::new(Backend::Embedded);
    let config = config(&place, &server);
    run(config.clone(), &site, None);
    let kept = fs::read(snapshot(&place)).unwrap();
    let others = [
        CrawlConfig {
            false_positive_rate: 0.001,
            ..config.clone()
        },
        CrawlConfig {
            fixed_filter_urls: None,
            ..config.clone()
        },
    ];
    for other in others {
        run(other, &site, None).assert_rebuilt("other settings");
        assert!(fs::read(snapshot(&place)).unwrap() == kept);
    }
    assert!(run(config, &site, None).is_loaded());
}

#[test]
fn a_small_crawl_keeps_none() {
    let (server, site) = site();
    let place = Place::new(Backend::Embedded);
    let mut config = config(&place, &server);
    run(config.clone(), &site, Some(50));
    assert!(snapshot(&place).exists());
    config.fixed_filter_urls = None;
    let told = run(config, &site, None);
    told.assert_rebuilt("other settings");
    assert!(told.report.filter.is_exact);
    assert!(!snapshot(&place).exists(), "it would only get old");
}

#[test]
fn what_cannot_be_written_is_told_and_ends_no_crawl() {
    let (server, site) = site();
    let place = Place::new(Backend::Embedded);
    let config = config(&place, &server);
    // Nothing can be renamed onto a folder that is not empty.
    fs::create_dir_all(snapshot(&place).join("in the way")).unwrap();
    let told = run(config.clone(), &site, None);
    let [opening, end] = &told.notices[..] else {
        panic!("two notices, not {:?}", told.notices);
    };
    assert!(opening.contains("is no regular file"), "{opening}");
    assert!(end.contains("was not kept for the next run"), "{end}");
    assert_whole(&told.report, &place.records());
}

#[test]
fn no_pipe_is_waited_for_and_no_link_is_written_through() {
    let (server, site) = site();
    let place = Place::new(Backend::Embedded);
    let config = config(&place, &server);
    run(config.clone(), &site, Some(50));
    let pipe = |path: &PathBuf| {
        let made = Command::new("mkfifo").arg(path).status().unwrap();
        assert!(made.success());
    };
    fs::remove_file(snapshot(&place)).unwrap();
    pipe(&snapshot(&place));
    let begun = place.path().join("filter.snapshot.new");
    pipe(&begun);
    let told = run(config.clone(), &site, Some(100));
    told.assert_rebuilt("is no regular file");
    assert!(snapshot(&place).is_file() && !begun.exists());
    let precious = place.path().join("precious");
    fs::write(&precious, "as it was").unwrap();
    symlink(&precious, &begun).unwrap();
    assert!(run(config, &site, None).is_loaded());
    assert_eq!(fs::read_to_string(precious).unwrap(), "as it was");
    assert!(!snapshot(&place).is_symlink());
}
