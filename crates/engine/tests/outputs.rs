//! The outputs as others read them: page records against the server's log, WARC files against `warcio`.
#![expect(clippy::unwrap_used, reason = "a failed set-up fails the test")]
#![expect(clippy::print_stderr, reason = "a skipped test says why")]

mod support;

use std::{
    collections::BTreeMap, fs::File, io::BufReader, path::PathBuf, process::Command, sync::Arc,
};

use replay::{Archive, Server, ServerConfig, SiteAnswer, SiteRequest, Synthetic, SyntheticConfig};
use support::{Backend, Place, assert_whole, corpora, crawl};
use types::PageRecord;
use warc::{Reader, ReaderLimits, payload_digest};

/// Runs `warcio check` over the files, where `BLOOMCRAWL_WARCIO` names the program.
fn warcio_check(files: &[PathBuf]) {
    let Some(program) = std::env::var_os("BLOOMCRAWL_WARCIO") else {
        eprintln!(
            "skipped in part: BLOOMCRAWL_WARCIO is not set, so `warcio check` did not read the files"
        );
        return;
    };
    let output = Command::new(program)
        .arg("check")
        .arg("-v")
        .args(files)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned()
        + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}");
    assert!(!text.contains("digest failed"), "{text}");
}

/// Each record's WARC place holds the response of its URL with its digest.
fn assert_places(place: &Place, records: &[PageRecord]) {
    let mut responses = BTreeMap::new();
    for file in place.warc_files() {
        let name = file.file_name().unwrap().to_string_lossy().into_owned();
        let reader = Reader::new(
            BufReader::new(File::open(&file).unwrap()),
            ReaderLimits::default(),
        );
        for record in reader {
            let record = record.unwrap();
            if record.kind() == "response" {
                let url = record.target_uri().unwrap().to_owned();
                let digest = record
                    .fields
                    .get("WARC-Payload-Digest")
                    .map(ToOwned::to_owned);
                responses.insert((name.clone(), record.position.offset), (url, digest));
            }
        }
    }
    for record in records {
        let warc = record.warc.as_ref().unwrap();
        let (url, digest) = &responses[&(warc.file.clone(), warc.offset)];
        assert_eq!(url, &record.url);
        assert_eq!(
            digest.as_deref(),
            record.digest.as_deref(),
            "{}",
            record.url
        );
    }
}

#[test]
fn records_match_the_servers_log_and_the_archive() {
    let site = Arc::new(Synthetic::new(SyntheticConfig {
        pages: 500,
        page_bytes: 5_000,
        ..SyntheticConfig::default()
    }));
    let server = Server::start(
        ServerConfig {
            https: None,
            ..ServerConfig::default()
        },
        site.clone(),
    )
    .unwrap();
    let place = Place::new(Backend::Embedded);
    let mut config = place.config(&server);
    config.warc_bytes_max = 200_000;
    let report = crawl(config, &[&site.start_url()]);
    let records = place.records();
    assert_whole(&report, &records);
    let log: BTreeMap<String, u16> = server
        .log()
        .into_iter()
        .map(|entry| (entry.url, entry.status))
        .collect();
    for record in &records {
        assert_eq!(
            record.status,
            log.get(&record.url).copied(),
            "{}",
            record.url
        );
        assert!(record.title.is_some(), "{}", record.url);
    }
    let files = place.warc_files();
    assert!(files.len() > 2, "the files rotate by size");
    assert_places(&place, &records);
    warcio_check(&files);
}

#[test]
fn a_record_keeps_of_a_redirect_no_more_than_a_url_may_have() {
    const URL_BYTES_MAX: usize = 100;
    // The cut would be within the letter of two bytes; what comes after it decides where the redirect leads.
    let location = format!("{}\u{e9}/../target", "x".repeat(URL_BYTES_MAX - 1));
    let redirect = SiteAnswer::redirect(301, &location);
    let site = move |request: &SiteRequest<'_>| match request.path_and_query {
        "/" => redirect.clone(),
        "/target" => SiteAnswer::html("the end"),
        _ => SiteAnswer::not_found(),
    };
    let config = ServerConfig {
        https: None,
        ..ServerConfig::default()
    };
    let server = Server::start(config, Arc::new(site)).unwrap();
    let place = Place::new(Backend::Embedded);
    let mut config = place.config(&server);
    config.canonical.url_bytes_max = URL_BYTES_MAX;
    let report = crawl(config, &["http://site.example/"]);
    let records = place.records();
    assert_whole(&report, &records);
    assert_eq!(server.request_count("http://site.example/target"), 1);
    let kept = records.iter().find_map(|record| record.redirect.as_deref());
    assert_eq!(kept, Some(&location[..URL_BYTES_MAX - 1]));
}

#[test]
fn real_pages_survive_the_archive() {
    let Some(corpora) = corpora() else { return };
    let file = corpora.join("pages").join("pages-03.warc.gz");
    let archive = Arc::new(Archive::load(&[file]).unwrap());
    let urls: Vec<String> = archive.urls().map(str::to_owned).collect();
    let server = Server::start(ServerConfig::default(), archive).unwrap();
    let place = Place::new(Backend::Embedded);
    let mut config = place.config(&server);
    config.limits.max_depth = Some(0);
    let seeds: Vec<&str> = urls.iter().map(String::as_str).collect();
    let report = crawl(config, &seeds);
    let records = place.records();
    assert_whole(&report, &records);
    assert_places(&place, &records);
    warcio_check(&place.warc_files());
    assert_ne!(
        records[0].digest.as_deref(),
        Some(payload_digest(b"").as_str())
    );
}
