//! The settings: every one with its name, kind, default and meaning, from which the flags, the keys of `config.toml`,
//! the environment variables, `config show` and the template are made.

mod convert;
mod layer;
mod row;
mod table;
mod template;
mod value;

use std::{fs, path::PathBuf};

use engine::{CrawlConfig, StoreConfig};

pub(crate) use layer::{Effective, Environment, Source, Typed, TypedValue, resolve};
pub(crate) use table::TABLE;
pub(crate) use template::template;
pub(crate) use value::{Kind, Value};

use crate::failure::{Exit, Failure};

/// The most bytes read of a `ca-file`.
const CA_FILE_BYTES_MAX: u64 = 16 << 20;

/// One setting: the single place where its name, kind, meaning and default are said.
pub(crate) struct Setting {
    /// Its key in the file and its flag without the dashes; the environment variable is made from it.
    pub(crate) name: &'static str,
    /// What its value is.
    pub(crate) kind: Kind,
    /// Whether it has a flag.
    pub(crate) flag: Flag,
    /// A flag of one letter.
    pub(crate) short: Option<char>,
    /// What the absence of a value means, for settings that can be unset (by `none`).
    pub(crate) unset: Option<&'static str>,
    /// The heading it stands under.
    pub(crate) section: &'static str,
    /// What it does, in sentences.
    pub(crate) doc: &'static str,
    /// Whether its value may hold a password.
    pub(crate) is_secret: bool,
    /// Whether a demo takes it.
    pub(crate) is_for_demo: bool,
    /// Takes its value out of the settings; of the default settings, this is its default.
    pub(crate) read: fn(&Settings) -> Value,
    /// Puts a value of its kind in. Fails with what is wrong and what would be right.
    pub(crate) write: fn(&mut Settings, Value) -> Result<(), String>,
}

/// How a setting shows on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flag {
    /// In the short help and the long one.
    Common,
    /// In the long help (`--help`) alone.
    Advanced,
    /// No flag: file and environment only.
    Absent,
}

impl Setting {
    /// Returns the name of its environment variable.
    pub(crate) fn variable(&self) -> String {
        format!(
            "BLOOMCRAWL_{}",
            self.name.to_ascii_uppercase().replace('-', "_")
        )
    }

    /// Reads a value from text; `none` unsets what can be unset.
    ///
    /// # Errors
    ///
    /// Says what is wrong with the text, and what would be right.
    pub(crate) fn parse(&self, text: &str) -> Result<Value, String> {
        if self.unset.is_some() && text == "none" {
            Ok(Value::Unset)
        } else {
            self.kind.parse(text)
        }
    }
}

/// The settings in force.
#[derive(Clone, Debug, Default)]
pub(crate) struct Settings {
    /// Those of the crawl itself; its store and certificates are filled in by [`Settings::crawl_config`].
    pub(crate) crawl: CrawlConfig,
    /// Where keys, queue and records are kept.
    pub(crate) store: StoreUri,
    /// The `PostgreSQL` schema.
    pub(crate) schema: Schema,
    /// Certificates to trust beside the public ones.
    pub(crate) ca_file: Option<PathBuf>,
    /// Errors only on stderr.
    pub(crate) is_quiet: bool,
    /// More on stderr.
    pub(crate) is_verbose: bool,
    /// The report as JSON on stdout.
    pub(crate) is_json: bool,
}

/// A store's address: `embedded:` or `postgres://...`.
#[derive(Clone, Debug)]
pub(crate) struct StoreUri(String);

impl Default for StoreUri {
    fn default() -> Self {
        Self("embedded:".to_owned())
    }
}

/// The name of a `PostgreSQL` schema.
#[derive(Clone, Debug)]
pub(crate) struct Schema(String);

impl Default for Schema {
    fn default() -> Self {
        Self("bloomcrawl".to_owned())
    }
}

impl Settings {
    /// Returns whether the store is a database, and not within the data folder.
    pub(crate) fn uses_database(&self) -> bool {
        !self.store.0.starts_with("embedded")
    }

    /// Returns the crawl's configuration: with the store, and with the certificates read from their file.
    ///
    /// # Errors
    ///
    /// Fails when that file cannot be read.
    pub(crate) fn crawl_config(&self) -> Result<CrawlConfig, Failure> {
        let mut config = self.crawl.clone();
        config.store = if self.uses_database() {
            StoreConfig::Postgres {
                uri: self.store.0.clone(),
                schema: self.schema.0.clone(),
            }
        } else {
            StoreConfig::Embedded
        };
        if let Some(path) = &self.ca_file {
            let fail = |reason: String| {
                Failure::new(
                    Exit::Config,
                    format!("the ca-file {} cannot be read: {reason}", path.display()),
                )
                .with_hint("give a file of certificates in PEM form")
            };
            let bytes = fs::metadata(path)
                .map_err(|error| fail(error.to_string()))?
                .len();
            if bytes > CA_FILE_BYTES_MAX {
                return Err(fail(format!(
                    "it has {bytes} bytes, the limit is {CA_FILE_BYTES_MAX}"
                )));
            }
            config.fetch.ca_pem = Some(fs::read(path).map_err(|error| fail(error.to_string()))?);
        }
        Ok(config)
    }
}
