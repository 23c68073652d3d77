//! WARC files and folders as sites.

use std::{
    collections::BTreeMap,
    fs,
    io::BufReader,
    path::{Path, PathBuf},
    time::Instant,
};

use crate::client::{get, get_raw, get_tls, parse, start, start_http};
use replay::{Archive, Dirs, ReplayError, Site, SiteRequest};
use warc::{Reader, ReaderLimits, Record, RecordId, RecordType};

const DATE: &str = "2026-11-30T08:32:00Z";

fn response(url: &str, block: &str) -> Record<'static> {
    Record::new(
        RecordType::Response,
        RecordId::from_random(1),
        DATE,
        block.as_bytes().to_vec(),
    )
    .target_uri(url)
    .content_type("application/http; msgtype=response")
}

fn page(url: &str, body: &str) -> Record<'static> {
    response(
        url,
        &format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n{body}"),
    )
}

fn write(folder: &Path, name: &str, records: &[Record<'_>], is_gzip: bool) -> PathBuf {
    let path = folder.join(name);
    let bytes = records.iter().flat_map(|record| {
        if is_gzip {
            record.to_gzip_member(6)
        } else {
            record.to_bytes()
        }
    });
    fs::write(&path, bytes.collect::<Vec<_>>()).unwrap();
    path
}

#[test]
fn the_first_record_of_a_url_is_served() {
    let folder = tempfile::tempdir().unwrap();
    let first = [
        page("http://a.example/", "one"),
        page("http://A.example:80/#x", "two"),
        page("https://a.example/", "secure"),
        page("http://a.example:8080/", "port"),
        page("<http://a.example/%7eb c>", "spelled"),
        page("dns:a.example", "no page"),
        Record::new(
            RecordType::Request,
            RecordId::from_random(2),
            DATE,
            b"GET / HTTP/1.1\r\n\r\n".as_slice(),
        )
        .target_uri("http://b.example/"),
        response("http://b.example/", "HTTP/1.1 103 Early Hints\r\n\r\n"),
        response(
            "http://b.example/",
            "HTTP/1.1 301 Moved\r\nLocation: /c\r\n\r\n",
        ),
    ];
    let second = [
        page("http://a.example/", "three"),
        page("http://c.example/", "late"),
    ];
    let paths = [
        write(folder.path(), "1.warc.gz", &first, true),
        write(folder.path(), "2.warc", &second, false),
    ];
    let archive = Archive::load(&paths).unwrap();
    let urls = archive.urls().collect::<Vec<_>>();
    let expected = [
        "http://a.example/",
        "https://a.example/",
        "http://a.example:8080/",
        "http://a.example/%7eb c",
        "http://b.example/",
        "http://c.example/",
    ];
    assert_eq!((urls.as_slice(), archive.len()), (expected.as_slice(), 6));
    assert!(
        archive.contains("http://a.example/~b%20c") && !archive.contains("http://a.example/~b")
    );
    let server = start(archive);
    let text = |host: &str, path: &str| String::from_utf8(get(&server, host, path).1).unwrap();
    assert_eq!(text("a.example", "/"), "one");
    assert_eq!(text("a.example:8080", "/"), "port");
    assert_eq!(text("a.example", "/~b%20c"), "spelled");
    assert_eq!(text("c.example", "/"), "late");
    assert_eq!(get(&server, "b.example", "/").0, 301);
    for (host, path) in [
        ("a.example", "/robots.txt"),
        ("c.example", "/x"),
        ("d.example", "/"),
    ] {
        assert_eq!(get(&server, host, path).0, 404, "{host}{path}");
    }
    assert_eq!(
        &*parse(&get_tls(&server, "a.example", "/").unwrap()).body,
        b"secure"
    );
}

#[test]
fn headers_of_the_connection_are_dropped_and_the_rest_kept() {
    let folder = tempfile::tempdir().unwrap();
    let head = "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nTransfer-Encoding: chunked\r\nContent-Length: 77\r\n\
        Connection: keep-alive, X-Hop\r\nX-Hop: 1\r\nX-Kept: 2\r\nETag: \"x\"\r\n\r\n5\r\nhello\r\n0\r\n\r\n";
    let records = [
        response("http://a.example/", head),
        response(
            "http://a.example/304",
            "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\nhello",
        ),
    ];
    let server =
        start_http(Archive::load(&[write(folder.path(), "1.warc.gz", &records, true)]).unwrap());
    let bytes = get_raw(server.http_address(), "a.example", "/");
    let response = parse(&bytes);
    assert_eq!(&*response.body, b"hello");
    let mut fields = response
        .headers
        .iter()
        .map(|(name, value)| (&**name, *value))
        .collect::<BTreeMap<_, _>>();
    // These two are the server's own.
    assert_eq!(
        (fields.remove("connection"), fields.remove("date").is_some()),
        (Some(b"close".as_slice()), true)
    );
    let expected: [(&str, &[u8]); 4] = [
        ("content-encoding", b"gzip"),
        ("content-length", b"5"),
        ("etag", b"\"x\""),
        ("x-kept", b"2"),
    ];
    assert_eq!(fields.into_iter().collect::<Vec<_>>(), expected);
    let bytes = get_raw(server.http_address(), "a.example", "/304");
    assert_eq!((parse(&bytes).status, parse(&bytes).body.len()), (304, 0));
}

#[test]
fn bad_files_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("missing.warc");
    let error = Archive::load(&[missing]).unwrap_err();
    assert!(
        matches!(error, ReplayError::Read { .. }) && error.to_string().contains("missing.warc"),
        "{error}"
    );
    let text = folder.path().join("text.warc");
    fs::write(&text, "hello\n").unwrap();
    let error = Archive::load(&[text]).unwrap_err();
    assert!(
        matches!(error, ReplayError::NotWarc { .. }) && error.to_string().contains("text.warc"),
        "{error}"
    );
    let cut = write(
        folder.path(),
        "cut.warc.gz",
        &[
            page("http://a.example/", "1"),
            page("http://b.example/", "2"),
        ],
        true,
    );
    let bytes = fs::read(&cut).unwrap();
    fs::write(&cut, &bytes[..bytes.len() - 20]).unwrap();
    let archive = Archive::load(&[cut]).unwrap();
    assert_eq!(archive.urls().collect::<Vec<_>>(), ["http://a.example/"]);
    assert_eq!(archive.damages().len(), 1);
}

#[test]
fn a_folder_is_served_and_nothing_beside_it() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("root");
    fs::create_dir_all(root.join("sub dir")).unwrap();
    fs::write(folder.path().join("secret.html"), "secret").unwrap();
    fs::write(root.join("index.html"), "index").unwrap();
    fs::write(root.join("style.css"), "css").unwrap();
    fs::write(root.join("sub dir/index.html"), "sub").unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink(folder.path().join("secret.html"), root.join("link.html")).unwrap();
    let server = start_http(Dirs::new(&root, "docs.example").unwrap());
    let text = |path: &str| String::from_utf8(get(&server, "docs.example", path).1).unwrap();
    assert_eq!(
        (text("/"), text("/index.html?x"), text("/sub%20dir/")),
        ("index".into(), "index".into(), "sub".into())
    );
    let bytes = get_raw(server.http_address(), "docs.example", "/style.css");
    assert_eq!(
        parse(&bytes).header("content-type"),
        Some(b"text/css".as_slice())
    );
    let bytes = get_raw(server.http_address(), "docs.example", "/sub%20dir");
    assert_eq!(
        (parse(&bytes).status, parse(&bytes).header("location")),
        (301, Some(b"/sub%20dir/".as_slice()))
    );
    for path in [
        "/../secret.html",
        "/%2e%2e/secret.html",
        "/sub%20dir/../../secret.html",
        "/link.html",
        "/..%5csecret.html",
        "//etc/passwd",
        "/%2Fetc/passwd",
        "/index.html/",
        "/%00",
        "/%",
        "/%zz",
        "/none",
    ] {
        assert_eq!(get(&server, "docs.example", path).0, 404, "{path}");
    }
    assert_eq!(get(&server, "other.example", "/").0, 404);
    assert!(matches!(
        Dirs::new(&root.join("index.html"), "x"),
        Err(ReplayError::Read { .. })
    ));
}

fn corpora() -> Option<PathBuf> {
    let folder =
        std::env::var_os("BLOOMCRAWL_CORPORA").map(|shared| PathBuf::from(shared).join("corpora"));
    if folder.is_none() {
        eprintln!("skipped: BLOOMCRAWL_CORPORA is not set");
    }
    folder
}

/// Returns status and body of the first response at each target URI, by its exact spelling.
fn recorded(paths: &[PathBuf]) -> BTreeMap<String, (u16, Vec<u8>)> {
    let mut recorded = BTreeMap::new();
    for path in paths {
        let file = BufReader::new(fs::File::open(path).unwrap());
        for record in Reader::new(file, ReaderLimits::default()).map(Result::unwrap) {
            let (Some(url), Ok(response)) = (record.target_uri(), record.http_response()) else {
                continue;
            };
            if record.kind() == "response" && response.status >= 200 {
                let body = if response.status == 304 {
                    Vec::new()
                } else {
                    response.body.to_vec()
                };
                recorded
                    .entry(url.to_owned())
                    .or_insert((response.status, body));
            }
        }
    }
    recorded
}

#[test]
fn the_page_corpus_is_served_byte_for_byte() {
    let Some(folder) = corpora() else { return };
    let paths = (1..=3)
        .map(|n| folder.join(format!("pages/pages-0{n}.warc.gz")))
        .collect::<Vec<_>>();
    let expected = recorded(&paths);
    let started = Instant::now();
    let archive = Archive::load(&paths).unwrap();
    eprintln!("{} URLs loaded in {:?}", archive.len(), started.elapsed());
    assert_eq!((archive.len(), expected.len()), (1_254, 1_254));
    let server = start_http(archive);
    let started = Instant::now();
    let mut byte_count = 0;
    for (url, (status, body)) in &expected {
        // The absolute form carries the scheme; escapes as a client has to make them.
        let url = url
            .split('#')
            .next()
            .unwrap()
            .chars()
            .map(escaped)
            .collect::<String>();
        let answer = get(&server, "proxy.example", &url);
        assert_eq!((answer.0, answer.1 == *body), (*status, true), "{url}");
        byte_count += body.len();
    }
    eprintln!(
        "{byte_count} bytes of bodies served in {:?}",
        started.elapsed()
    );
    assert_eq!(server.url_count(), 1_254);
}

fn escaped(char: char) -> String {
    if char > ' ' && char < '\u{7f}' && !"\"<>^`{}|".contains(char) {
        return char.to_string();
    }
    let mut bytes = [0; 4];
    let bytes = char.encode_utf8(&mut bytes).bytes();
    bytes.fold(String::new(), |escaped, byte| {
        format!("{escaped}%{byte:02X}")
    })
}

#[test]
fn every_archive_of_the_corpora_is_replayed() {
    let Some(folder) = corpora() else { return };
    let (method, headers) = (http::Method::GET, http::HeaderMap::new());
    let mut counts = BTreeMap::new();
    for file in fs::read_dir(folder.join("warc"))
        .unwrap()
        .map(|file| file.unwrap().path())
    {
        let name = file.file_name().unwrap().to_string_lossy().into_owned();
        if !name.contains(".warc") {
            continue;
        }
        let paths = [file];
        let archive = Archive::load(&paths).unwrap();
        assert_eq!(archive.damages().len(), 0, "{name}");
        let expected = recorded(&paths);
        for url in archive.urls() {
            let (scheme, rest) = url.split_once("://").unwrap();
            let (authority, path_and_query) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
            let answer = archive.answer(&SiteRequest {
                scheme,
                authority,
                path_and_query,
                method: &method,
                headers: &headers,
            });
            assert_eq!(
                (answer.status, answer.body.to_vec()),
                expected[url],
                "{url} of {name}"
            );
        }
        counts.insert(name, archive.len());
    }
    assert_eq!(counts["cc-main-2020-34-head.warc.gz"], 16);
    assert_eq!(counts["cc-main-2024-22-whirlwind.warc.gz"], 1);
    assert_eq!(counts["warcio-example-bad-non-chunked.warc.gz"], 1);
    eprintln!(
        "{} URLs of {} files",
        counts.values().sum::<usize>(),
        counts.len()
    );
}
