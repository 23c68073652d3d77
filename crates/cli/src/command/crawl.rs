//! `bloomcrawl crawl`: settings and seeds in, a crawl driven to its end, the report out.

use types::Canonicalizer;

use super::{demo, drive, effective};
use crate::{
    failure::{Exit, Failure},
    flags::CrawlCommand,
    printer::Printer,
    seeds,
    settings::{Effective, Source},
    unit::counted,
};

/// Runs the command.
pub(super) fn run(command: &CrawlCommand) -> Result<Exit, Failure> {
    let effective = effective(&command.config, &command.flags.0)?;
    let printer = Printer {
        verbosity: effective.verbosity()?,
    };
    for warning in &effective.warnings {
        printer.warning(warning);
    }
    print_settings(&effective, &printer);
    let config = effective.settings.crawl_config()?;
    demo::refuse_folder_of_demo(&config.data)?;
    let canonicalizer = Canonicalizer::new(config.canonical.clone());
    let seeds = seeds::read_all(&command.seeds, &canonicalizer, &printer)?;
    let headline = format!(
        "crawling from {} into {}",
        counted(seeds.urls.len() as u64, "seed"),
        config.data.display()
    );

    // Ctrl-C is not handled before the seeds are read: it shall end a run that waits for stdin.
    let crawl = drive::start(config, seeds.urls, &headline, &printer)?;
    let report = drive::to_end(&crawl, &printer)?;
    drive::print_report(&report, effective.settings.is_json, &printer)?;
    if !report.identity_holds {
        return Err(Failure::new(
            Exit::Internal,
            "the accounts of the crawl do not add up; please report this",
        ));
    }
    Ok(Exit::of(report.outcome))
}

/// Prints the settings that are not defaults, when verbose.
fn print_settings(effective: &Effective, printer: &Printer) {
    for (setting, value, source) in effective.shown() {
        if *source != Source::Default {
            printer.detail(&format!("{} = {value} ({source})", setting.name));
        }
    }
}
