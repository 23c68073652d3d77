//! Tests of the layers: who wins, and what an error says.

use super::*;

fn environment(variables: &[(&str, &str)]) -> Environment {
    Environment::new(
        variables
            .iter()
            .map(|(name, value)| (OsString::from(name), OsString::from(value))),
    )
}

fn typed(name: &str, value: TypedValue) -> Typed {
    let index = TABLE
        .iter()
        .position(|setting| setting.name == name)
        .expect("the test names a setting");
    Typed(vec![(index, value)])
}

fn value_of(effective: &Effective, name: &str) -> (String, String) {
    let (_, value, source) = effective
        .shown()
        .find(|(setting, ..)| setting.name == name)
        .expect("a known setting");
    (value.to_string(), source.to_string())
}

fn with_file(text: &str) -> Result<Effective, Failure> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    fs::write(folder.path().join(DEFAULT_FILE), text).expect("a file in it");
    resolve(
        &Typed::default(),
        None,
        &Environment::default(),
        folder.path(),
    )
}

#[test]
fn a_flag_beats_the_environment_beats_the_file_beats_the_default() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let run = |flags: &Typed, variables: &[(&str, &str)]| {
        let effective =
            resolve(flags, None, &environment(variables), folder.path()).expect("valid settings");
        value_of(&effective, "delay")
    };
    assert_eq!(
        run(&Typed::default(), &[]),
        ("\"1s\"".to_owned(), "default".to_owned())
    );
    fs::write(folder.path().join(DEFAULT_FILE), "# pace\ndelay = \"2s\"\n").expect("a file in it");
    assert_eq!(
        run(&Typed::default(), &[]),
        ("\"2s\"".to_owned(), "config.toml:2".to_owned())
    );
    let variables = [("BLOOMCRAWL_DELAY", "3")];
    assert_eq!(
        run(&Typed::default(), &variables),
        ("\"3s\"".to_owned(), "BLOOMCRAWL_DELAY".to_owned())
    );
    let flags = typed("delay", TypedValue::Text("400ms".to_owned()));
    assert_eq!(
        run(&flags, &variables),
        ("\"400ms\"".to_owned(), "--delay".to_owned())
    );
    let unset = [("BLOOMCRAWL_DELAY", "")];
    assert_eq!(run(&Typed::default(), &unset).1, "config.toml:2");
}

#[test]
fn a_named_file_replaces_the_default_one_and_must_be_there() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    fs::write(folder.path().join(DEFAULT_FILE), "concurrency = 7").expect("a file in it");
    let other = folder.path().join("other.toml");
    let failure = resolve(
        &Typed::default(),
        Some(&other),
        &Environment::default(),
        folder.path(),
    );
    assert_eq!(
        failure.expect_err("the file is not there").exit,
        Exit::Config
    );
    fs::write(&other, "per-host = 2").expect("a file in it");
    let variables = environment(&[(FILE_VARIABLE, &other.display().to_string())]);
    let effective =
        resolve(&Typed::default(), None, &variables, folder.path()).expect("valid settings");
    assert_eq!(effective.settings.crawl.per_host, 2);
    assert_eq!(effective.settings.crawl.concurrency, 64);
    assert!(effective.warnings.is_empty(), "{:?}", effective.warnings);
}

#[test]
fn an_unknown_key_is_an_error_with_its_line_and_the_nearest_key() {
    for (text, line, nearest) in [
        ("max-pages = 5\n\nconcurency = 3\n", 3, "concurrency"),
        ("max_pages = 5", 1, "max-pages"),
        ("[limits]\nmax-pages = 5", 1, "max-links"),
        ("useragent = \"x\"", 1, "user-agent"),
    ] {
        let failure = with_file(text).expect_err(text);
        assert_eq!(failure.exit, Exit::Config);
        let place = format!("config.toml:{line}:");
        assert!(failure.message.starts_with(&place), "{}", failure.message);
        if !text.starts_with('[') {
            assert!(
                failure.message.ends_with(&format!("{nearest:?}")),
                "{}",
                failure.message
            );
        }
    }
}

#[test]
fn a_wrong_value_is_named_with_its_source() {
    let failure = with_file("\n\nmax-bytes = \"ten\"").expect_err("ten is no size");
    assert_eq!(failure.exit, Exit::Config);
    assert!(
        failure
            .message
            .starts_with("config.toml:3: max-bytes: \"ten\""),
        "{}",
        failure.message
    );
    let failure = with_file("delay = ").expect_err("no TOML");
    assert!(
        failure.message.starts_with("config.toml:1: "),
        "{}",
        failure.message
    );
    let failure = with_file("max-redirects = 1_000").expect_err("over 255");
    assert!(failure.message.contains("too large"), "{}", failure.message);

    let nowhere = Path::new("/nonexistent");
    let variables = environment(&[("BLOOMCRAWL_SCOPE", "planet")]);
    let failure =
        resolve(&Typed::default(), None, &variables, nowhere).expect_err("planet is no scope");
    assert!(
        failure.exit == Exit::Config && failure.message.starts_with("BLOOMCRAWL_SCOPE: "),
        "{failure}"
    );

    let flags = typed(
        "store",
        TypedValue::Text("mysql://me:secret@db/x".to_owned()),
    );
    let failure =
        resolve(&flags, None, &Environment::default(), nowhere).expect_err("no such store");
    assert!(
        failure.exit == Exit::Usage && failure.message.starts_with("--store: "),
        "{failure}"
    );
    assert!(!failure.message.contains("secret"), "{failure}");
}

#[test]
fn none_unsets_what_a_lower_layer_set() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    fs::write(
        folder.path().join(DEFAULT_FILE),
        "max-pages = 5\nmax-time = \"1h\"",
    )
    .expect("a file in it");
    let flags = typed("max-pages", TypedValue::Text("none".to_owned()));
    let effective =
        resolve(&flags, None, &Environment::default(), folder.path()).expect("valid settings");
    assert_eq!(effective.settings.crawl.limits.max_pages, None);
    assert_eq!(
        effective.settings.crawl.limits.max_time,
        Some(std::time::Duration::from_hours(1))
    );
    assert!(
        with_file("concurrency = \"none\"").is_err(),
        "concurrency cannot be unset"
    );
}

#[test]
fn what_is_shown_means_the_same_when_read_as_a_file() {
    let text = "max-pages = 12\ninclude = [\"^https://a/\\\\d\"]\nconnect-to = \":80:127.0.0.1:8080\"\nrobots = false\n\
                delay = \"1500ms\"\nmax-bytes = \"3GiB\"\nfalse-positive-rate = 0.001\nuser-agent = \"x/1 (+http://a/)\"";
    let first = with_file(text).expect("valid settings");
    let shown: Vec<String> = first
        .shown()
        .map(|(setting, value, _)| format!("{} = {value}", setting.name))
        .collect();
    let second = with_file(&shown.join("\n")).expect("what is shown is valid");
    for ((setting, before, _), (_, after, _)) in first.shown().zip(second.shown()) {
        assert_eq!(before, after, "{}", setting.name);
    }
    assert_eq!(second.settings.crawl.include, ["^https://a/\\d"]);
    assert!(!second.settings.crawl.robots);
}

#[test]
fn a_password_is_not_shown() {
    let flags = typed(
        "store",
        TypedValue::Text("postgres://me:secret@db/x".to_owned()),
    );
    let effective = resolve(
        &flags,
        None,
        &Environment::default(),
        Path::new("/nonexistent"),
    )
    .expect("valid settings");
    assert_eq!(
        value_of(&effective, "store").0,
        "\"postgres://me:***@db/x\""
    );
    let config = effective
        .settings
        .crawl_config()
        .expect("no files are read");
    assert!(
        matches!(config.store, engine::StoreConfig::Postgres { uri, .. } if uri == "postgres://me:secret@db/x")
    );
}

#[test]
fn quiet_and_verbose_are_settled_by_the_higher_layer() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    fs::write(folder.path().join(DEFAULT_FILE), "quiet = true").expect("a file in it");
    let flags = typed("verbose", TypedValue::Switch(true));
    let effective =
        resolve(&flags, None, &Environment::default(), folder.path()).expect("valid settings");
    assert_eq!(
        effective.verbosity().expect("different layers"),
        Verbosity::Verbose
    );
    let both = with_file("quiet = true\nverbose = true").expect("each is valid");
    assert_eq!(both.verbosity().expect_err("one layer").exit, Exit::Config);
}

#[test]
fn a_misspelt_variable_is_warned_of_and_a_foreign_one_is_not() {
    let variables = environment(&[("BLOOMCRAWL_MAX_PAGE", "5"), ("BLOOMCRAWL_CORPORA", "/x")]);
    let effective = resolve(
        &Typed::default(),
        None,
        &variables,
        Path::new("/nonexistent"),
    )
    .expect("unknown ones are no error");
    assert_eq!(effective.warnings.len(), 1, "{:?}", effective.warnings);
    assert!(
        effective.warnings[0].contains("BLOOMCRAWL_MAX_PAGES"),
        "{:?}",
        effective.warnings
    );
}
