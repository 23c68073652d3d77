//! Public bug reports against other crawlers that are about signals, limits of the system, seed files and reports; each test
//! is named for its source. Those about kills (scrapy/scrapy#7978) and damaged state (scrapy/scrapy#3413) are tortures.
#![expect(clippy::print_stderr, reason = "a skipped test says why")]

mod support;

use std::{
    fmt::Write as _,
    fs,
    io::{BufRead as _, BufReader},
    path::Path,
    process::{Child, Command, Stdio},
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use replay::{Server, ServerConfig, SiteAnswer, SiteRequest};
use support::{Run, command, finish, folder, run};

fn serve(latency: Duration, answer: impl Fn(&str) -> SiteAnswer + Send + Sync + 'static) -> Server {
    let config = ServerConfig {
        https: None,
        latency,
        ..ServerConfig::default()
    };
    let site = move |request: &SiteRequest<'_>| match request.path_and_query {
        "/robots.txt" => SiteAnswer::not_found(),
        path => answer(path),
    };
    Server::start(config, Arc::new(site)).expect("the server starts")
}

fn page(links: impl IntoIterator<Item = String>) -> SiteAnswer {
    let mut body = String::from("<title>t</title>");
    for link in links {
        let _ = write!(body, "<a href=\"{link}\">x</a>");
    }
    SiteAnswer::html(body)
}

/// A crawl of what `server` serves, from one page, as fast as it goes.
fn crawl(folder: &Path, server: &Server, more: &[&str]) -> Command {
    let connect_to = format!("::{}", server.http_address());
    let mut arguments = vec![
        "crawl",
        "http://site.example/",
        "--connect-to",
        &connect_to,
        "--delay",
        "0",
        "--per-host",
        "64",
        "--per-ip",
        "64",
        "--json",
    ];
    arguments.extend(more);
    command(folder, &arguments)
}

fn report(run: &Run) -> serde_json::Value {
    serde_json::from_str(&run.stdout).unwrap_or_else(|error| panic!("{error}: {run:?}"))
}

fn signal(child: &Child, name: &str) {
    let status = Command::new("kill")
        .args([&format!("-{name}"), &child.id().to_string()])
        .status();
    assert!(status.expect("kill runs").success());
}

/// Starts a crawl whose server answers the front page, and then nothing; returns when all its requests are under way.
fn stuck(folder: &Path, server: &Server, more: &[&str]) -> Child {
    let child = crawl(folder, server, more)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    let begun = Instant::now();
    while server.request_counts().len() < 10 {
        assert!(begun.elapsed() < Duration::from_mins(1), "no requests");
        thread::sleep(Duration::from_millis(10));
    }
    child
}

/// A front page whose links nobody answers while `is_silent`.
fn silent_site(is_silent: bool) -> Server {
    serve(Duration::ZERO, move |path| match path {
        "/" => page((0..20).map(|number| format!("/{number}"))),
        _ if is_silent => page([]).with_delay(Duration::from_mins(10)),
        _ => page([]),
    })
}

/// Said when the requests under way were waited for as long as a stop may take, and given up.
const IS_GIVEN_UP: &str = "requests that were still under way after";

/// Stops a stuck crawl by signals, each sent when what the one before brings about was said, and resumes it against a server
/// that answers.
fn stops(signals: &[(&str, &str)], more: &[&str]) {
    let folder = folder();
    let server = silent_site(true);
    let mut child = stuck(folder.path(), &server, more);
    let mut lines = BufReader::new(child.stderr.take().expect("a pipe")).lines();
    for (name, said) in signals {
        signal(&child, name);
        let is_said = lines.any(|line| line.expect("UTF-8").contains(said));
        assert!(is_said, "{name}: it ended without {said:?}");
    }
    let asked = Instant::now();
    let run = Run::from(child.wait_with_output().expect("it ends"));
    assert!(asked.elapsed() < Duration::from_mins(1), "{run:?}");
    assert_eq!(run.code, Some(5), "{run:?}");
    assert_eq!(report(&run)["identity_holds"], true);
    let resumed = finish(&mut crawl(folder.path(), &silent_site(false), &[]));
    assert_eq!(resumed.code, Some(0), "{resumed:?}");
    assert_eq!(report(&resumed)["pages"], 21);
}

/// vectorize-io/hindsight#952, xroche/httrack#1134, OfflineIMAP/offlineimap#60: Ctrl-C waited for ever for a silent server.
#[test]
fn hindsight_952_ctrl_c_waits_for_no_silent_server() {
    stops(&[("INT", IS_GIVEN_UP)], &[]);
}

/// kunchenguid/gnhf#85, cube-js/cube#2255: the second Ctrl-C did nothing, or broke the state.
#[test]
fn gnhf_85_a_second_ctrl_c_ends_at_once() {
    // All else waits longer than this test does.
    let patient =
        ["drain-timeout", "read-timeout", "total-timeout"].map(|name| format!("--{name}=5m"));
    stops(
        &[
            ("INT", "Ctrl-C again stops at once"),
            ("INT", "stopping at once"),
        ],
        &patient.each_ref().map(String::as_str),
    );
}

/// webrecorder/browsertrix-crawler#504, fedora-infra/mirrormanager2#81: SIGTERM lost the state, or hung for hours.
#[test]
fn browsertrix_crawler_504_sigterm_is_a_stop() {
    stops(&[("TERM", IS_GIVEN_UP)], &[]);
}

/// ffuf/ffuf#1, rockdaboot/wget2#100: out of files, half of the URLs were called dead.
#[test]
fn ffuf_1_no_url_is_given_up_for_want_of_files() {
    let server = serve(Duration::from_millis(20), |path| match path {
        "/" => page((0..200).map(|host| format!("http://h{host}.example/page"))),
        _ => page([]),
    });
    let folder = folder();
    let limited = crawl(
        folder.path(),
        &server,
        &["--concurrency", "500", "--scope", "any"],
    );
    let mut shell = Command::new("sh");
    shell
        .args(["-c", "ulimit -n 64 && exec \"$@\"", "sh"])
        .arg(limited.get_program())
        .args(limited.get_args())
        .current_dir(folder.path())
        .stdin(Stdio::null());
    let limited = finish(&mut shell);
    if limited.code != Some(0) {
        assert!(
            limited.stderr.contains("files") && matches!(limited.code, Some(3 | 5)),
            "the limit is named: {limited:?}"
        );
    }
    let run = finish(&mut crawl(folder.path(), &server, &["--scope", "any"]));
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_eq!(report(&run)["counts"]["succeeded"], 201, "{run:?}");
}

/// webrecorder/browsertrix-crawler#395: seed sources without a seed passed as empty crawls.
#[test]
fn browsertrix_crawler_395_a_source_without_seeds_is_named() {
    let folder = folder();
    let in_folder = |name: &str| folder.path().join(name);
    fs::write(in_folder("empty"), "").expect("a file");
    fs::write(in_folder("comments"), "# nothing\n\n").expect("a file");
    fs::write(in_folder("nonsense"), "not a url\n::::\n").expect("a file");
    fs::create_dir(in_folder("folder")).expect("a folder");
    for name in ["empty", "comments", "nonsense", "folder", "missing"] {
        let run = run(folder.path(), &["crawl", name]);
        assert_eq!(run.code, Some(2), "{name}: {run:?}");
        assert!(run.stderr.contains(name), "{run:?}");
    }
}

/// rockdaboot/wget2#304, janreges/siteone-crawler#34: more URLs were added than ever came out, without a word.
#[test]
fn wget2_304_the_sums_agree() {
    let server = serve(Duration::ZERO, |path| match path {
        "/" => page(
            (0..30)
                .map(|number| format!("/{}", number % 10))
                .chain([
                    "http://elsewhere.example/".to_owned(),
                    "mailto:a".to_owned(),
                ])
                .chain(["/gone".to_owned(), "/moved".to_owned()]),
        ),
        "/gone" => SiteAnswer::not_found(),
        "/moved" => SiteAnswer::redirect(301, "/0"),
        _ => page(["/".to_owned()]),
    });
    let folder = folder();
    let run = finish(&mut crawl(folder.path(), &server, &[]));
    let report = report(&run);
    let counts = &report["counts"];
    let sum = |object: &serde_json::Value| -> u64 {
        let values = object.as_object().into_iter().flat_map(|map| map.values());
        values.filter_map(serde_json::Value::as_u64).sum()
    };
    let states = [
        "suspects",
        "queued",
        "leased",
        "succeeded",
        "failed",
        "disregarded",
    ];
    let states: u64 = states
        .iter()
        .map(|state| counts[state].as_u64().expect("a count"))
        .sum();
    assert_eq!(
        counts["discovered"].as_u64().expect("a count"),
        sum(&counts["rejected"]) + sum(&counts["duplicates"]) + states,
        "{counts}"
    );
}

/// hahwul/deadfinder#268: a list of a million seeds was worked off whole before a limit of one page took effect.
#[test]
fn deadfinder_268_a_limit_of_one_page_holds_for_a_million_seeds() {
    let server = serve(Duration::ZERO, |_| page([]));
    let folder = folder();
    let seeds: String = (0..1_000_000).fold(String::new(), |mut all, number| {
        let _ = writeln!(all, "http://site.example/{number}");
        all
    });
    fs::write(folder.path().join("seeds.txt"), seeds).expect("a file");
    let run = finish(&mut crawl(
        folder.path(),
        &server,
        &["seeds.txt", "--max-pages", "1", "--no-warc"],
    ));
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_eq!(report(&run)["pages"], 1);
    assert_eq!(server.request_counts().len(), 2, "robots.txt and one page");
}

/// earwig/bitshift#11, Norconex/crawler#622: logs grew with the pages.
#[test]
fn bitshift_11_what_is_printed_does_not_grow_with_the_pages() {
    let folder = folder();
    let run = run(folder.path(), &["demo", "--pages", "3000", "--no-warc"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(run.stderr.len() < 16 << 10, "{} bytes", run.stderr.len());
}

/// webrecorder/browsertrix#2035, webrecorder/browsertrix#579: a full disk ended a crawl for good.
#[test]
fn browsertrix_2035_a_full_disk_stops_resumably() {
    let server = serve(Duration::ZERO, |path| {
        if path == "/" {
            return page((0..400).map(|number| format!("/{number}")));
        }
        let mut random = fastrand::Rng::with_seed(path.len() as u64);
        let letters = std::iter::repeat_with(|| random.alphanumeric());
        SiteAnswer::text(letters.take(100_000).collect::<String>())
    });
    let folder = folder();
    let disk = folder.path().join("disk");
    fs::create_dir(&disk).expect("a folder");
    let mount = |size: &str, more: &str| {
        Command::new("mount")
            .args(["-t", "tmpfs", "-o"])
            .arg(format!("{more}size={size}"))
            .args(["none"])
            .arg(&disk)
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|status| status.success())
    };
    if !mount("20m", "") {
        eprintln!("skipped: this user may not mount a small disk");
        return;
    }
    let full = finish(&mut crawl(folder.path(), &server, &["--data", "disk/data"]));
    let enlarged = mount("200m", "remount,");
    let whole = finish(&mut crawl(folder.path(), &server, &["--data", "disk/data"]));
    let unmounted = Command::new("umount").arg(&disk).status();
    assert!(unmounted.expect("umount runs").success() && enlarged);
    assert!(
        full.code == Some(5)
            && full.stderr.contains("No space left")
            && full.stderr.contains("hint: see to the disk"),
        "{full:?}"
    );
    assert_eq!(whole.code, Some(0), "{whole:?}");
    assert_eq!(report(&whole)["pages"], 401);
}
