//! What was typed: the commands and their flags. The flags of settings are made from the table of settings.

use std::{net::SocketAddr, path::PathBuf};

use clap::{
    Arg, ArgAction, ArgMatches, Args, Command as ClapCommand, FromArgMatches, Parser, Subcommand,
};

use crate::{
    settings::{Flag, Kind, Setting, Settings, TABLE, Typed, TypedValue, Value},
    unit::{parse_count, parse_rate},
};

/// How the process ends ([`crate::failure::Exit`]), in words that the README repeats.
const EXIT_CODES: &str = "\
Exit codes:
  0  done, or a limit was reached
  1  a fault of the program, or a check that failed: violations that verify found, a rate
     that filter check found off, pages that a demo missed
  2  usage: an argument is wrong, or the seeds, file or folder that it names
  3  configuration: a value of config.toml or of the environment is wrong, settings do not
     go together (as a --memory that is too small), the data folder cannot be used
  4  the store failed, or a file of the crawl is damaged
  5  stopped early, and the same command resumes: Ctrl-C, a full disk, no host reached,
     a database that was away for over a minute";

/// Crawls the web politely, fetching no URL twice; a Bloom filter answers most of "was this seen?" from memory.
#[derive(Debug, Parser)]
#[command(
    name = "bloomcrawl",
    version,
    max_term_width = 100,
    arg_required_else_help = true
)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Crawl from seed URLs; run again on the same data folder to resume
    Crawl(CrawlCommand),
    /// Say what a crawl holds: counts by state, the filter, the hosts with the most to do; also while it runs, without
    /// disturbing it
    Status(StatusCommand),
    /// Check a crawl that does not run: whether accounts, keys, queue, records, outputs and filter agree
    ///
    /// Changes nothing. Each violation is one line; exit code 0 tells that there is none, 1 that there are some.
    Verify(VerifyCommand),
    /// Generate a site on loopback and crawl it, to see everything work without a network; reads neither config.toml
    /// nor the environment
    Demo(DemoCommand),
    /// Serve the responses of WARC files on loopback, over http and https, until Ctrl-C
    Replay(ReplayCommand),
    /// Size the filter of the seen test, look into one that was saved, or measure its false positives
    Filter(FilterCommand),
    /// Show settings
    Config(ConfigCommand),
}

/// `crawl`
#[derive(Debug, Args)]
pub(crate) struct CrawlCommand {
    /// URLs (http:// or https://), files with one URL a line (# begins a comment), or - for stdin; of bad lines the
    /// first 20 of a source are shown, with --verbose all
    #[arg(required = true)]
    pub(crate) seeds: Vec<String>,
    #[command(flatten)]
    pub(crate) config: ConfigFile,
    #[command(flatten)]
    pub(crate) flags: AllFlags,
}

/// `status`
#[derive(Debug, Args)]
pub(crate) struct StatusCommand {
    #[command(flatten)]
    pub(crate) config: ConfigFile,
    #[command(flatten)]
    pub(crate) flags: StatusFlags,
}

/// `verify`
#[derive(Debug, Args)]
pub(crate) struct VerifyCommand {
    #[command(flatten)]
    pub(crate) config: ConfigFile,
    #[command(flatten)]
    pub(crate) flags: VerifyFlags,
}

/// The configuration file.
#[derive(Debug, Args)]
pub(crate) struct ConfigFile {
    /// The configuration file; by default config.toml of the working folder, if there
    #[arg(long = "config", value_name = "FILE")]
    pub(crate) path: Option<PathBuf>,
}

/// `demo`
#[derive(Debug, Args)]
pub(crate) struct DemoCommand {
    /// Pages of the generated site
    #[arg(long, value_name = "N", default_value_t = 500, value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    pub(crate) pages: u64,
    #[command(flatten)]
    pub(crate) flags: DemoFlags,
}

/// `replay`
#[derive(Debug, Args)]
pub(crate) struct ReplayCommand {
    /// WARC files, plain or gzipped; of several records with one URL the first is served
    #[arg(required = true, value_name = "WARC")]
    pub(crate) files: Vec<PathBuf>,
    /// Where http is served; port 0 takes a free one
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:0")]
    pub(crate) listen: SocketAddr,
    /// Where https is served, with certificates made on the spot
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:0")]
    pub(crate) https_listen: SocketAddr,
    /// Where the certificate of the throw-away CA is written
    #[arg(long, value_name = "FILE", default_value = "bloomcrawl-replay-ca.pem")]
    pub(crate) ca_out: PathBuf,
    /// Write the URLs that are held to this file, one a line, as seeds for `bloomcrawl crawl`
    #[arg(long, value_name = "FILE")]
    pub(crate) seeds_out: Option<PathBuf>,
    /// Append each request to this file, as JSON lines
    #[arg(long, value_name = "FILE")]
    pub(crate) log: Option<PathBuf>,
}

/// `filter`
#[derive(Debug, Args)]
pub(crate) struct FilterCommand {
    /// What to do with it.
    #[command(subcommand)]
    pub(crate) what: FilterWhat,
}

/// What `filter` does.
#[derive(Debug, Subcommand)]
pub(crate) enum FilterWhat {
    /// Say what the filter for a number of URLs costs, how it ages, and what the alternatives cost
    Size {
        /// Distinct URLs, such as 500k or 50M
        #[arg(long, value_name = "N", value_parser = urls_count)]
        urls: u64,
        /// The share of new URLs that the filter may take for known, such as 0.01 or 1%
        #[arg(long, value_name = "RATE", default_value = "1%", value_parser = rate)]
        rate: f64,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Show what a saved filter holds, and whether it is whole
    Inspect {
        /// A saved filter, or the data folder of a crawl
        #[arg(value_name = "FILE|DATA-FOLDER")]
        path: PathBuf,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Measure the false positives of a crawl's saved filter and compare them with the formula
    ///
    /// Asks the filter for a million keys that are in no crawl. Exit code 1 tells that the rate is over 0.5 percentage
    /// points from what the formula says: then the filter, or the hash before it, has a fault.
    Check {
        /// A saved filter, or the data folder of a crawl
        #[arg(value_name = "FILE|DATA-FOLDER")]
        path: PathBuf,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
}

fn urls_count(text: &str) -> Result<u64, String> {
    parse_count(text)
        .filter(|count| *count > 0)
        .ok_or_else(|| "expected a count from 1, such as 500, 10_000, 64k or 50M".to_owned())
}

fn rate(text: &str) -> Result<f64, String> {
    parse_rate(text)
        .ok_or_else(|| "expected a rate from 1e-9 to below 1, such as 0.01 or 1%".to_owned())
}

/// `config`
#[derive(Debug, Args)]
pub(crate) struct ConfigCommand {
    /// What to show.
    #[command(subcommand)]
    pub(crate) what: ConfigWhat,
}

/// What `config` shows.
#[derive(Debug, Subcommand)]
pub(crate) enum ConfigWhat {
    /// Print each effective setting and where it came from, as TOML
    Show {
        #[command(flatten)]
        config: ConfigFile,
        #[command(flatten)]
        flags: AllFlags,
    },
    /// Print a config.toml with every setting, its meaning and its default
    Template,
}

/// The schema of a demo in `PostgreSQL`, unless another is named.
pub(crate) const DEMO_SCHEMA: &str = "bloomcrawl_demo";

/// Makes the flags of those settings that a command takes; some with a default of their own.
macro_rules! flags_of {
    ($(#[$doc:meta])* $name:ident, $wanted:expr $(, $other:literal: $default:expr)*) => {
        $(#[$doc])*
        #[derive(Debug)]
        pub(crate) struct $name(pub(crate) Typed);

        impl Args for $name {
            fn augment_args(command: ClapCommand) -> ClapCommand {
                with_flags(command, $wanted)$(.mut_arg($other, |arg| with_default(arg, $default)))*
            }

            fn augment_args_for_update(command: ClapCommand) -> ClapCommand {
                Self::augment_args(command)
            }
        }

        impl FromArgMatches for $name {
            fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
                Ok(Self(typed(matches, $wanted)))
            }

            fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
                self.0 = typed(matches, $wanted);
                Ok(())
            }
        }
    };
}

flags_of!(
    /// The flags of every setting that has one.
    AllFlags,
    |_| true
);
flags_of!(
    /// The flags of the settings that a demo takes.
    DemoFlags,
    |setting| setting.is_for_demo,
    "data": "a temporary folder, removed at the end",
    "schema": DEMO_SCHEMA
);
flags_of!(
    /// The flags of the settings that tell where a crawl's figures are.
    StatusFlags,
    |setting| ["data", "json"].contains(&setting.name)
);
flags_of!(
    /// The flags of the settings that tell where a crawl is.
    VerifyFlags,
    |setting| ["data", "store", "schema", "quiet", "verbose", "json"].contains(&setting.name)
);

fn flagged(wanted: fn(&Setting) -> bool) -> impl Iterator<Item = (usize, &'static Setting)> {
    TABLE
        .iter()
        .enumerate()
        .filter(move |(_, setting)| setting.flag != Flag::Absent && wanted(setting))
}

fn with_flags(mut command: ClapCommand, wanted: fn(&Setting) -> bool) -> ClapCommand {
    let defaults = Settings::default();
    for (_, setting) in flagged(wanted) {
        let default = (setting.read)(&defaults);
        let mut arg = Arg::new(setting.name)
            .long(setting.name)
            .help(help(setting, &default))
            .help_heading(setting.section)
            .hide_short_help(setting.flag == Flag::Advanced);
        if let Some(letter) = setting.short {
            arg = arg.short(letter);
        }
        if let Kind::Switch { negation } = setting.kind {
            command = command
                .arg(arg.action(ArgAction::SetTrue).overrides_with(negation))
                .arg(
                    Arg::new(negation)
                        .long(negation)
                        .help(format!("Turns --{} off", setting.name))
                        .help_heading(setting.section)
                        .hide(default == Value::Switch(false))
                        .hide_short_help(setting.flag == Flag::Advanced)
                        .action(ArgAction::SetTrue)
                        .overrides_with(setting.name),
                );
        } else {
            let action = if matches!(setting.kind, Kind::List(_)) {
                ArgAction::Append
            } else {
                ArgAction::Set
            };
            command = command.arg(arg.action(action).value_name(setting.kind.placeholder()));
        }
    }
    command
}

/// Puts another default in the help of a flag.
fn with_default(arg: Arg, default: &str) -> Arg {
    let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
    let doc = help.split(" [default: ").next().unwrap_or_default();
    let help = format!("{doc} [default: {default}]");
    arg.help(help)
}

fn help(setting: &Setting, default: &Value) -> String {
    let doc = setting.doc.strip_suffix('.').unwrap_or(setting.doc);
    match (setting.unset, default) {
        (Some(meaning), _) => format!("{doc} [default: {meaning}]"),
        (None, Value::List(_) | Value::Switch(false)) => doc.to_owned(),
        (None, Value::Switch(true)) => format!("{doc} [default: on]"),
        (None, default) => format!("{doc} [default: {}]", default.to_string().trim_matches('"')),
    }
}

fn typed(matches: &ArgMatches, wanted: fn(&Setting) -> bool) -> Typed {
    let mut typed = Vec::new();
    for (index, setting) in flagged(wanted) {
        let value = match setting.kind {
            Kind::Switch { negation } => {
                if matches.get_flag(setting.name) {
                    Some(TypedValue::Switch(true))
                } else if matches.get_flag(negation) {
                    Some(TypedValue::Switch(false))
                } else {
                    None
                }
            }
            Kind::List(_) => matches
                .get_many::<String>(setting.name)
                .map(|texts| TypedValue::List(texts.cloned().collect())),
            _ => matches
                .get_one::<String>(setting.name)
                .cloned()
                .map(TypedValue::Text),
        };
        typed.extend(value.map(|value| (index, value)));
    }
    Typed(typed)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    fn crawl_flags(arguments: &[&str]) -> Typed {
        let all = ["bloomcrawl", "crawl", "https://example.org/"]
            .iter()
            .chain(arguments);
        match Cli::try_parse_from(all).expect("valid arguments").command {
            Command::Crawl(crawl) => crawl.flags.0,
            other => panic!("crawl was typed, not {other:?}"),
        }
    }

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn the_readme_lists_the_same_exit_codes() {
        let readme = include_str!("../../../README.md");
        assert!(readme.contains(EXIT_CODES), "{EXIT_CODES}");
    }

    #[test]
    fn every_option_that_people_expect_is_there() {
        let command = Cli::command();
        let crawl = command.find_subcommand("crawl").expect("the crawl command");
        for name in [
            "data",
            "store",
            "schema",
            "max-pages",
            "max-depth",
            "max-time",
            "max-bytes",
            "concurrency",
            "per-host",
            "per-ip",
            "delay",
            "config",
            "scope",
            "include",
            "exclude",
            "user-agent",
            "expected-urls",
            "false-positive-rate",
            "allow-private-addresses",
            "connect-to",
            "ca-file",
            "proxy",
            "warc",
            "no-warc",
            "quiet",
            "verbose",
            "json",
        ] {
            assert!(
                crawl
                    .get_arguments()
                    .any(|arg| arg.get_long() == Some(name)),
                "--{name} is missing"
            );
        }
        assert!(
            crawl
                .get_arguments()
                .all(|arg| arg.get_long() != Some("robots")),
            "robots is no flag"
        );
    }

    #[test]
    fn of_a_switch_and_its_negation_the_last_wins() {
        for (arguments, expected) in [
            (&["--warc", "--no-warc"][..], Some(false)),
            (&["--no-warc", "--warc"], Some(true)),
            (&["--no-warc"], Some(false)),
            (&[], None),
        ] {
            let found =
                crawl_flags(arguments)
                    .0
                    .into_iter()
                    .find_map(|(index, value)| match value {
                        TypedValue::Switch(on) if TABLE[index].name == "warc" => Some(on),
                        _ => None,
                    });
            assert_eq!(found, expected, "{arguments:?}");
        }
    }

    #[test]
    fn repeated_flags_make_a_list() {
        let typed = crawl_flags(&["--exclude", "a", "--exclude=-b", "-q"]);
        let list = typed.0.iter().find_map(|(_, value)| match value {
            TypedValue::List(texts) => Some(texts.clone()),
            _ => None,
        });
        assert_eq!(list, Some(vec!["a".to_owned(), "-b".to_owned()]));
    }
}
