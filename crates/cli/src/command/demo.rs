//! `bloomcrawl demo`: a generated site on loopback, crawled by the real pipeline and compared with the known truth.

use std::{
    collections::BTreeMap, net::SocketAddr, path::Path, str::FromStr as _, sync::Arc,
    time::Duration,
};

use engine::{ConnectTo, Crawl, CrawlConfig, Outcome, Report};
use replay::{Server, ServerConfig, Synthetic, SyntheticConfig};
use types::Canonicalizer;

use super::drive;
use crate::{
    failure::{Exit, Failure},
    flags::DemoCommand,
    printer::{Printer, Verbosity},
    settings::{Effective, Environment, Source, TABLE, resolve},
    unit::grouped,
};

/// How many wrong URLs are named when the comparison fails.
const NAMED_URLS_MAX: usize = 5;

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
    drive::stop_requests()?;

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

    // The folder lives until the end of this function.
    let (config, temporary) = demo_config(&effective, server.http_address())?;
    let seed = Canonicalizer::new(config.canonical.clone())
        .canonicalize(&site.start_url())
        .map_err(|rejection| {
            Failure::new(
                Exit::Internal,
                format!("the generated site has no start: {rejection}"),
            )
        })?;
    printer.message(&format!(
        "crawling a generated site of {} pages at {}",
        grouped(command.pages),
        server.http_address()
    ));

    let crawl = Crawl::start(config, vec![seed])?;
    let report = drive::to_end(&crawl, &printer)?;
    drive::print_report(&report, effective.settings.is_json, &printer)?;
    if temporary.is_some() && !effective.settings.is_json && printer.verbosity > Verbosity::Quiet {
        printer.message("  (removed now: they were in a temporary folder; --data DIR keeps them)");
    }
    match report.outcome {
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

/// Returns the configuration of the demo: every request goes to the server at `address`, without delay.
fn demo_config(
    effective: &Effective,
    address: SocketAddr,
) -> Result<(CrawlConfig, Option<tempfile::TempDir>), Failure> {
    let mut config = effective.settings.crawl_config()?;
    let is_set = |name: &str| {
        TABLE
            .iter()
            .zip(&effective.sources)
            .any(|(setting, source)| setting.name == name && *source != Source::Default)
    };
    let temporary = if is_set("data") {
        None
    } else {
        let folder = tempfile::Builder::new()
            .prefix("bloomcrawl-demo-")
            .tempdir()
            .map_err(|error| {
                Failure::new(
                    Exit::Internal,
                    format!("no temporary folder can be made: {error}"),
                )
            })?;
        config.data = folder.path().to_path_buf();
        Some(folder)
    };
    let rule = format!("::{}:{}", address.ip(), address.port());
    config.fetch.connect_to = vec![ConnectTo::from_str(&rule).map_err(|error| {
        Failure::new(
            Exit::Internal,
            format!("the demo's own rule is wrong: {error}"),
        )
    })?];
    config.delay = Duration::ZERO;
    config.per_host = config.concurrency;
    Ok((config, temporary))
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
