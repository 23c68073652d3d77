//! Workloads: a stream by its name and parameters.

use std::{env, path::PathBuf};

use anyhow::{Context as _, Result, ensure};
use clap::ValueEnum;

use super::{
    options::Options,
    quantity::grouped,
    stream::{self, LinkStream, Model, ModelConfig},
};

/// The environment variable with the folder of public test data.
pub const CORPORA: &str = "BLOOMCRAWL_CORPORA";

/// A stream's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum StreamName {
    /// 459,775 links of real pages in page order (`corpora/urls/link-stream.tsv.gz`)
    Links,
    /// A list of Arabic and other IDN URLs (`corpora/urls/idn-arabic-urls.txt.gz`), in pages of 64, offered twice
    Idn,
    /// A crawl of the packaged documentation of `PostgreSQL` and Python
    Docs,
    /// The modelled web
    Model,
}

impl StreamName {
    /// Returns the name, as the command line has it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Links => "links",
            Self::Idn => "idn",
            Self::Docs => "docs",
            Self::Model => "model",
        }
    }
}

/// One stream of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Workload {
    /// Its name.
    pub name: StreamName,
    /// The parameters of the model; of any other stream the number of links alone counts, as the most of them.
    pub model: ModelConfig,
}

impl Workload {
    /// Returns the workloads that the options name: one a stream, and for the model one an active set.
    #[must_use]
    pub fn of(options: &Options) -> Vec<Self> {
        let mut workloads = Vec::new();
        for name in &options.stream {
            let active_counts = match name {
                StreamName::Model => &options.active[..],
                _ => &options.active[..options.active.len().min(1)],
            };
            for active_count in active_counts {
                workloads.push(Self {
                    name: *name,
                    model: ModelConfig {
                        link_count: options.links,
                        host_count: options.hosts,
                        active_count: (*active_count).min(options.hosts),
                        seed: options.seed,
                    },
                });
            }
        }
        workloads
    }

    /// Reads, crawls or sets up the stream.
    ///
    /// # Errors
    ///
    /// Fails when its files are not there or cannot be read; the message says what to install or set.
    pub fn open(&self) -> Result<Box<dyn LinkStream>> {
        let recorded = match self.name {
            StreamName::Links => stream::link_stream(&corpus("link-stream.tsv.gz")?)?,
            StreamName::Idn => stream::url_list(&corpus("idn-arabic-urls.txt.gz")?)?,
            StreamName::Docs => {
                let sites = stream::packaged_sites();
                ensure!(
                    !sites.is_empty(),
                    "neither the manual of PostgreSQL nor the documentation of Python is under /usr/share/doc: \
                     install Debian's packages postgresql-doc and python3-doc"
                );
                stream::documentation(&sites)?
            }
            StreamName::Model => return Ok(Box::new(Model::new(self.model)?)),
        };
        Ok(Box::new(recorded.first(self.model.link_count)))
    }

    /// Says in a few words what the stream is.
    #[must_use]
    pub fn title(&self) -> String {
        match self.name {
            StreamName::Links => "links of real pages, in page order".to_owned(),
            StreamName::Idn => "Arabic and other IDN URLs, in pages of 64, twice".to_owned(),
            StreamName::Docs => {
                let names: Vec<String> = stream::packaged_sites()
                    .into_iter()
                    .map(|site| site.name)
                    .collect();
                format!("a crawl of packaged documentation: {}", names.join(", "))
            }
            StreamName::Model => format!(
                "modelled web: {} links, {} hosts, {} active at a time, seed {}",
                grouped(self.model.link_count),
                grouped(self.model.host_count.into()),
                grouped(self.model.active_count.into()),
                self.model.seed
            ),
        }
    }
}

/// Returns the path of a file of the public test data.
///
/// # Errors
///
/// Fails when the environment variable with their folder is not set.
pub fn corpus(name: &str) -> Result<PathBuf> {
    let folder = env::var_os(CORPORA).with_context(|| {
        format!("{CORPORA} is not set: it names the folder that corpora/urls/{name} is in")
    })?;
    Ok(PathBuf::from(folder).join("corpora/urls").join(name))
}
