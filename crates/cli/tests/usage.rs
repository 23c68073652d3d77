//! The command line from outside: exit codes, messages, and `config`.

mod support;

use std::{fs, process::Stdio};

use support::{command, finish, folder, run};

#[test]
fn help_and_version_go_to_stdout_and_are_no_failure() {
    let folder = folder();
    for arguments in [
        &["--help"][..],
        &["crawl", "--help"],
        &["crawl", "-h"],
        &["--version"],
    ] {
        let run = run(folder.path(), arguments);
        assert!(
            run.code == Some(0) && run.stderr.is_empty() && !run.stdout.is_empty(),
            "{run:?}"
        );
    }
    let long = run(folder.path(), &["crawl", "--help"]).stdout;
    let short = run(folder.path(), &["crawl", "-h"]).stdout;
    assert!(long.contains("--read-timeout") && !short.contains("--read-timeout"));
    assert!(
        short.contains("--max-pages") && short.contains("[default: 64]"),
        "{short}"
    );
}

#[test]
fn wrong_usage_is_exit_code_2() {
    let folder = folder();
    fs::write(folder.path().join("empty.txt"), "# nothing here\n").expect("a seed file");
    fs::write(folder.path().join("bad.txt"), "nonsense\nexample.org\n").expect("a seed file");
    for (arguments, named) in [
        (&[][..], "Usage"),
        (&["crawl"], "SEEDS"),
        (&["fly"], "fly"),
        (
            &["crawl", "https://example.org/", "--max-page", "5"],
            "--max-pages",
        ),
        (
            &["crawl", "https://example.org/", "--max-pages", "ten"],
            "\"ten\"",
        ),
        (
            &["crawl", "https://example.org/", "--scope", "planet"],
            "planet",
        ),
        (
            &["crawl", "https://example.org/", "--quiet", "--verbose"],
            "exclude each other",
        ),
        (&["crawl", "missing.txt"], "missing.txt"),
        (&["crawl", "example.org"], "https://example.org"),
        (&["crawl", "empty.txt"], "empty.txt"),
        (&["crawl", "bad.txt"], "bad.txt:2"),
        (&["crawl", "."], "folder"),
        (&["crawl", "-"], "no seed is left of -"),
        (
            &["crawl", "https://example.org/", "--include", "a(b"],
            "--include: \"a(b\"",
        ),
        (
            &["crawl", "https://example.org/", "--proxy", "socks5://x"],
            "--proxy: \"socks5://x\"",
        ),
        (
            &["crawl", "https://example.org/", "--concurrency", "200000"],
            "--concurrency: \"200000\"",
        ),
        (
            &["crawl", "https://example.org/", "--cache", "2TiB"],
            "--cache: \"2TiB\"",
        ),
        (
            &["crawl", "https://example.org/", "--seen-mode", "guess"],
            "--seen-mode: \"guess\"",
        ),
        (
            &["demo", "--store", "postgres://127.0.0.1:1/crawl"],
            "--data",
        ),
        (&["replay", "missing.warc.gz"], "missing.warc.gz"),
        (&["demo", "--pages", "0"], "0"),
    ] {
        let run = run(folder.path(), arguments);
        assert_eq!(run.code, Some(2), "{arguments:?}: {run:?}");
        assert!(
            run.stdout.is_empty(),
            "messages do not belong on stdout: {run:?}"
        );
        assert!(run.stderr.contains(named), "{named}: {run:?}");
    }
    assert!(
        !folder.path().join("bloomcrawl-data").exists(),
        "wrong usage leaves nothing behind"
    );
}

#[test]
fn a_wrong_configuration_is_exit_code_3_with_file_and_line() {
    let folder = folder();
    let crawl = ["crawl", "https://example.org/"];
    fs::write(
        folder.path().join("config.toml"),
        "max-pages = 5\nconcurency = 3\n",
    )
    .expect("a file");
    let found = run(folder.path(), &crawl);
    assert_eq!(found.code, Some(3), "{found:?}");
    assert!(
        found.stderr.contains("config.toml:2") && found.stderr.contains("\"concurrency\""),
        "{found:?}"
    );
    assert!(found.stderr.contains("\nhint: "), "{found:?}");

    fs::write(folder.path().join("config.toml"), "").expect("a file");
    let found = finish(command(folder.path(), &crawl).env("BLOOMCRAWL_DELAY", "soon"));
    assert!(
        found.code == Some(3) && found.stderr.contains("BLOOMCRAWL_DELAY: \"soon\""),
        "{found:?}"
    );

    let found = run(
        folder.path(),
        &["crawl", "https://example.org/", "--config", "other.toml"],
    );
    assert!(
        found.code == Some(3) && found.stderr.contains("other.toml"),
        "{found:?}"
    );

    let found = run(
        folder.path(),
        &["crawl", "https://example.org/", "--ca-file", "none.pem"],
    );
    assert!(
        found.code == Some(3) && found.stderr.contains("none.pem"),
        "{found:?}"
    );
}

#[test]
fn the_same_faults_in_file_or_environment_are_exit_code_3() {
    let folder = folder();
    let crawl = ["crawl", "https://example.org/"];
    fs::write(folder.path().join("config.toml"), "exclude = [\"a(b\"]\n").expect("a file");
    let found = run(folder.path(), &crawl);
    assert!(
        found.code == Some(3) && found.stderr.contains("config.toml:1: exclude"),
        "{found:?}"
    );
    fs::write(folder.path().join("config.toml"), "").expect("a file");
    for (variable, value) in [
        ("BLOOMCRAWL_PROXY", "socks5://x"),
        ("BLOOMCRAWL_PARSE_THREADS", "1025"),
    ] {
        let found = finish(command(folder.path(), &crawl).env(variable, value));
        assert!(
            found.code == Some(3) && found.stderr.contains(variable),
            "{found:?}"
        );
    }
}

#[test]
fn a_data_folder_that_cannot_be_used_is_exit_code_3_with_a_hint() {
    let folder = folder();
    fs::write(folder.path().join("file"), "not a folder").expect("a file");
    for data in ["file", "file/below"] {
        for arguments in [
            &["crawl", "http://127.0.0.1:1/", "--data", data][..],
            &["demo", "--pages", "5", "--data", data],
        ] {
            let found = run(folder.path(), arguments);
            assert_eq!(found.code, Some(3), "{found:?}");
            assert!(
                found
                    .stderr
                    .contains(&format!("folder {data} cannot be used"))
                    && found.stderr.contains("hint: --data"),
                "{found:?}"
            );
        }
    }
}

#[test]
fn every_bad_seed_line_is_shown_when_verbose() {
    let folder = folder();
    fs::write(
        folder.path().join("seeds"),
        "nonsense \u{1b}[2J\n".repeat(30),
    )
    .expect("a file");
    let shown = |arguments: &[&str]| {
        let found = run(folder.path(), arguments);
        assert_eq!(found.code, Some(2), "{found:?}");
        assert!(!found.stderr.contains("\\\\u"), "{found:?}");
        let count = found.stderr.matches(": \"nonsense").count();
        (count, found.stderr.contains("--verbose shows each"))
    };
    assert_eq!(shown(&["crawl", "seeds"]), (20, true));
    assert_eq!(shown(&["crawl", "seeds", "--verbose"]), (30, false));
}

#[test]
fn config_show_names_each_value_and_its_source() {
    let folder = folder();
    fs::write(
        folder.path().join("config.toml"),
        "\nper-host = 2\ndelay = \"3s\"\n",
    )
    .expect("a file");
    let mut show = command(
        folder.path(),
        &[
            "config",
            "show",
            "--delay",
            "250ms",
            "--store",
            "postgres://me:secret@db/crawl",
            "--no-warc",
        ],
    );
    let run = finish(show.env("BLOOMCRAWL_MAX_PAGES", "50k"));
    assert!(run.code == Some(0) && run.stderr.is_empty(), "{run:?}");
    let row = |name: &str| {
        let start = format!("{name} = ");
        let line = run
            .stdout
            .lines()
            .find_map(|line| line.strip_prefix(&start));
        let (value, source) = line
            .and_then(|line| line.split_once(" # "))
            .unwrap_or_else(|| panic!("{name}: {run:?}"));
        (value.trim().to_owned(), source.to_owned())
    };
    let pair = |value: &str, source: &str| (value.to_owned(), source.to_owned());
    assert_eq!(row("delay"), pair("\"250ms\"", "--delay"));
    assert_eq!(row("per-host"), pair("2", "config.toml:2"));
    assert_eq!(row("max-pages"), pair("50_000", "BLOOMCRAWL_MAX_PAGES"));
    assert_eq!(row("concurrency"), pair("64", "default"));
    assert_eq!(row("warc"), pair("false", "--warc"));
    assert_eq!(
        row("store"),
        pair("\"postgres://me:***@db/crawl\"", "--store")
    );
    run.stdout
        .parse::<toml::Table>()
        .expect("what is shown is TOML");
}

#[test]
fn config_show_as_json_has_the_same_settings() {
    let folder = folder();
    let json = run(
        folder.path(),
        &["config", "show", "--json", "--max-time", "1h"],
    )
    .stdout;
    let shown: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(
        shown["max-time"],
        serde_json::json!({ "value": 3_600.0, "source": "--max-time" })
    );
    assert_eq!(
        shown["max-pages"],
        serde_json::json!({ "value": null, "source": "default" })
    );
    let rows = run(folder.path(), &["config", "show"])
        .stdout
        .lines()
        .count();
    assert_eq!(shown.as_object().map(serde_json::Map::len), Some(rows));
}

#[test]
fn the_template_changes_nothing_when_it_is_used() {
    let folder = folder();
    let before = run(folder.path(), &["config", "show"]);
    let template = run(folder.path(), &["config", "template"]);
    fs::write(folder.path().join("config.toml"), &template.stdout).expect("a file");
    let after = run(folder.path(), &["config", "show"]);
    assert_eq!(after.stdout, before.stdout);
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let folder = folder();
    let mut child = command(folder.path(), &["config", "template"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("it ends");
    assert!(
        output.status.success() && output.stderr.is_empty(),
        "{output:?}"
    );
}

#[test]
fn a_store_that_cannot_be_reached_is_exit_code_4() {
    let folder = folder();
    // Port 1 of loopback: nothing listens there.
    let run = run(
        folder.path(),
        &[
            "crawl",
            "http://127.0.0.1:1/",
            "--store",
            "postgres://me:secret@127.0.0.1:1/crawl",
        ],
    );
    assert_eq!(run.code, Some(4), "{run:?}");
    assert!(!run.stderr.contains("secret"), "{run:?}");
}
