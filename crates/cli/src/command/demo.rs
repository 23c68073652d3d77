//! `bloomcrawl demo`: a generated site on loopback, crawled by the real pipeline and compared with the known truth.

use std::{
    collections::BTreeMap,
    fs,
    io::ErrorKind,
    net::SocketAddr,
    path::{Path, PathBuf},
    str::FromStr as _,
    sync::Arc,
    time::Duration,
};

use engine::{ConnectTo, CrawlConfig, Outcome, Report, StoreConfig};
use replay::{Server, ServerConfig, Synthetic, SyntheticConfig};
use types::Canonicalizer;

use super::drive;
use crate::{
    failure::{Exit, Failure, unusable_folder},
    flags::{DEMO_SCHEMA, DemoCommand},
    printer::{Printer, Verbosity},
    settings::{Effective, Environment, Source, TABLE, resolve},
    unit::grouped,
};

/// How many wrong URLs are named when the comparison fails.
const NAMED_URLS_MAX: usize = 5;

/// The file that marks a folder as that of a demo, with the size of its site.
const MARKER_FILE: &str = "demo.json";

/// Runs the command. The configuration file and the environment are left aside: a limit in them would change which
/// pages are fetched.
pub(super) fn run(command: &DemoCommand) -> Result<Exit, Failure> {
    let effective = resolve(
        &command.flags.0,
        None,
        &Environment::default(),
        Path::new("/nonexistent"),
    )?;
    let printer = Printer {
        verbosity: effective.verbosity()?,
    };
    let (folder, temporary) = demo_folder(&effective, command.pages)?;

    let site = Arc::new(Synthetic::new(SyntheticConfig {
        pages: command.pages,
        ..SyntheticConfig::default()
    }));
    let server = Server::start(
        ServerConfig {
            https: None,
            ..ServerConfig::default()
        },
        Arc::clone(&site) as _,
    )
    .map_err(|error| {
        Failure::new(
            Exit::Internal,
            format!("the generated site cannot be served: {error}"),
        )
    })?;

    let config = demo_config(&effective, folder, server.http_address())?;
    let seed = Canonicalizer::new(config.canonical.clone())
        .canonicalize(&site.start_url())
        .map_err(|rejection| {
            Failure::new(
                Exit::Internal,
                format!("the generated site has no start: {rejection}"),
            )
        })?;
    let headline = format!(
        "crawling a generated site of {} pages at {}",
        grouped(command.pages),
        server.http_address()
    );

    let crawl = drive::start(config, vec![seed], &headline, &printer)?;
    let report = drive::to_end(&crawl, &printer)?;
    drive::print_report(&report, effective.settings.is_json, &printer)?;
    if temporary.is_some() && !effective.settings.is_json && printer.verbosity > Verbosity::Quiet {
        printer.message("  (removed now: they were in a temporary folder, which no later run resumes; --data DIR keeps them)");
    }
    match report.outcome {
        Outcome::AlreadyFinished if report.pages != command.pages => Err(Failure::new(
            Exit::Internal,
            format!(
                "the folder holds {} pages of the {} that the generated site has",
                grouped(report.pages),
                grouped(command.pages)
            ),
        )),
        Outcome::Finished => {
            let truth = Truth {
                site: &site,
                counts: server.request_counts(),
            };
            truth.check(&report)?;
            printer.message(&verdict(&report, command.pages));
            Ok(Exit::Done)
        }
        outcome => Ok(Exit::of(outcome)),
    }
}

/// Returns the demo's folder, and with it the temporary one that goes away at the end when none was named.
///
/// # Errors
///
/// Refuses a folder that holds another crawl, or a demo of another size: its store would call the new site finished.
fn demo_folder(
    effective: &Effective,
    page_count: u64,
) -> Result<(PathBuf, Option<tempfile::TempDir>), Failure> {
    if is_set(effective, "data") {
        let folder = effective.settings.crawl.data.clone();
        claim(&folder, page_count)?;
        return Ok((folder, None));
    }
    if effective.settings.uses_database() {
        return Err(Failure::new(
            Exit::Usage,
            "with --store postgres://... a demo needs --data as well",
        )
        .with_hint("the folder and the database belong together, also in a second run"));
    }
    let temporary = tempfile::Builder::new()
        .prefix("bloomcrawl-demo-")
        .tempdir()
        .map_err(|error| {
            Failure::new(
                Exit::Internal,
                format!("no temporary folder can be made: {error}"),
            )
        })?;
    Ok((temporary.path().to_path_buf(), Some(temporary)))
}

/// Marks `folder`, which is made if need be, as that of a demo of `page_count` pages.
fn claim(folder: &Path, page_count: u64) -> Result<(), Failure> {
    let marker = folder.join(MARKER_FILE);
    let wanted = format!("{{\"pages\":{page_count}}}\n");
    match fs::read_to_string(&marker) {
        Ok(found) if found == wanted => return Ok(()),
        Ok(found) => {
            return Err(refused(
                folder,
                &format!(
                    "holds another demo, {}, and not {}",
                    found.trim(),
                    wanted.trim()
                ),
            ));
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(unusable_folder(folder, &error)),
    }
    fs::create_dir_all(folder).map_err(|error| unusable_folder(folder, &error))?;
    let mut entries = fs::read_dir(folder).map_err(|error| unusable_folder(folder, &error))?;
    if entries.next().is_some() {
        return Err(refused(folder, "is not empty, and holds no demo"));
    }
    fs::write(&marker, wanted).map_err(|error| unusable_folder(folder, &error))
}

/// Refuses a folder that a demo made to the crawl of other sites: the crawl in it is of a site that is gone.
///
/// # Errors
///
/// Fails when the folder holds the marker of a demo, which [`claim`] leaves.
pub(super) fn refuse_folder_of_demo(folder: &Path) -> Result<(), Failure> {
    if !folder.join(MARKER_FILE).exists() {
        return Ok(());
    }
    let shown = folder.display();
    Err(Failure::new(
        Exit::Usage,
        format!("the data folder {shown} is that of a demo (it holds {MARKER_FILE})"),
    )
    .with_hint(format!(
        "name another folder with --data for a crawl of your own; `bloomcrawl demo --data {shown}`, with the same --pages, goes on with the demo"
    )))
}

fn refused(folder: &Path, why: &str) -> Failure {
    Failure::new(
        Exit::Usage,
        format!("the data folder {} {why}", folder.display()),
    )
    .with_hint("name an empty or a new folder with --data, and with PostgreSQL a new --schema")
}

fn is_set(effective: &Effective, name: &str) -> bool {
    TABLE
        .iter()
        .zip(&effective.sources)
        .any(|(setting, source)| setting.name == name && *source != Source::Default)
}

/// Returns the configuration of the demo: every request goes to the server at `address`, without delay.
fn demo_config(
    effective: &Effective,
    folder: PathBuf,
    address: SocketAddr,
) -> Result<CrawlConfig, Failure> {
    let mut config = effective.settings.crawl_config()?;
    config.data = folder;
    if let StoreConfig::Postgres { schema, .. } = &mut config.store
        && !is_set(effective, "schema")
    {
        DEMO_SCHEMA.clone_into(schema);
    }
    let rule = format!("::{}:{}", address.ip(), address.port());
    config.fetch.connect_to = vec![ConnectTo::from_str(&rule).map_err(|error| {
        Failure::new(
            Exit::Internal,
            format!("the demo's own rule is wrong: {error}"),
        )
    })?];
    config.delay = Duration::ZERO;
    config.per_host = config.concurrency;
    Ok(config)
}

/// What the site is, and what its server was asked for.
struct Truth<'a> {
    site: &'a Synthetic,
    counts: BTreeMap<String, u64>,
}

impl Truth<'_> {
    /// Compares the server's counts with the site: every page once; after a resumption, none twice in this run.
    ///
    /// # Errors
    ///
    /// Names pages that were missed or fetched more than once.
    fn check(&self, report: &Report) -> Result<(), Failure> {
        let wrong = |what: &str, urls: &[String]| {
            let named: Vec<&str> = urls
                .iter()
                .take(NAMED_URLS_MAX)
                .map(String::as_str)
                .collect();
            Failure::new(
                Exit::Internal,
                format!(
                    "{} pages of the generated site {what}, such as {}",
                    grouped(count(urls)),
                    named.join(", ")
                ),
            )
        };
        let asked = |url: &str| self.counts.get(url).copied().unwrap_or(0);
        let repeated: Vec<String> = self.site.urls().filter(|url| asked(url) > 1).collect();
        if !repeated.is_empty() {
            return Err(wrong("were fetched more than once", &repeated));
        }
        let missed: Vec<String> = self.site.urls().filter(|url| asked(url) == 0).collect();
        let fetched_before = report.pages.saturating_sub(report.pages_this_run);
        if count(&missed) > fetched_before {
            return Err(wrong("were never fetched", &missed));
        }
        if !report.identity_holds {
            return Err(Failure::new(
                Exit::Internal,
                "the accounts of the crawl do not add up",
            ));
        }
        Ok(())
    }
}

fn verdict(report: &Report, page_count: u64) -> String {
    if report.pages == report.pages_this_run {
        format!(
            "every page of the generated site was fetched exactly once ({})",
            grouped(page_count)
        )
    } else {
        format!(
            "every page of the generated site was fetched, {} of {} in this run",
            grouped(report.pages_this_run),
            grouped(page_count)
        )
    }
}

fn count(urls: &[String]) -> u64 {
    u64::try_from(urls.len()).unwrap_or(u64::MAX)
}
