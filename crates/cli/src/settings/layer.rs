//! The layers of settings: defaults, the configuration file, the environment, the flags; each beats those before it.

use std::{
    ffi::OsString,
    fmt, fs,
    io::{ErrorKind, Read as _},
    path::{Path, PathBuf},
};

use toml::de::DeTable;

use super::{Setting, Settings, TABLE, Value};
use crate::{
    clean::mask_password,
    failure::{Exit, Failure},
    printer::Verbosity,
};

/// The configuration file that is read when it is there and no other is named.
const DEFAULT_FILE: &str = "config.toml";

/// The environment variable that names the configuration file.
const FILE_VARIABLE: &str = "BLOOMCRAWL_CONFIG";

/// The prefix of all our environment variables.
const VARIABLE_PREFIX: &str = "BLOOMCRAWL_";

/// The most bytes read of a configuration file.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Edits up to which an unknown environment variable is taken for a misspelt one of ours.
const VARIABLE_EDITS_MAX: usize = 2;

/// What was typed: settings by their place in [`TABLE`].
#[derive(Clone, Debug, Default)]
pub(crate) struct Typed(pub(crate) Vec<(usize, TypedValue)>);

/// A flag's value as it was typed.
#[derive(Clone, Debug)]
pub(crate) enum TypedValue {
    /// The flag of a switch or its negation.
    Switch(bool),
    /// The text after a flag.
    Text(String),
    /// The texts after each use of a flag that repeats.
    List(Vec<String>),
}

/// Our variables of the environment.
#[derive(Clone, Debug, Default)]
pub(crate) struct Environment(Vec<(String, OsString)>);

impl Environment {
    /// Takes our variables out of `variables`; those set to nothing count as not set.
    pub(crate) fn new(variables: impl Iterator<Item = (OsString, OsString)>) -> Self {
        let ours = variables.filter_map(|(name, value)| {
            let name = name.into_string().ok()?;
            (name.starts_with(VARIABLE_PREFIX) && !value.is_empty()).then_some((name, value))
        });
        let mut ours: Vec<_> = ours.collect();
        ours.sort();
        Self(ours)
    }
}

/// Where a setting's value came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// Nobody set it.
    Default,
    /// A line of the configuration file, counted from 1.
    File(PathBuf, usize),
    /// An environment variable.
    Variable(String),
    /// A flag.
    Flag(&'static str),
}

impl Source {
    const fn rank(&self) -> u8 {
        match self {
            Self::Default => 0,
            Self::File(..) => 1,
            Self::Variable(_) => 2,
            Self::Flag(_) => 3,
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => formatter.write_str("default"),
            Self::File(path, line) => write!(formatter, "{}:{line}", path.display()),
            Self::Variable(name) => formatter.write_str(name),
            Self::Flag(name) => write!(formatter, "--{name}"),
        }
    }
}

/// The settings in force, and where each came from.
#[derive(Debug)]
pub(crate) struct Effective {
    /// The settings.
    pub(crate) settings: Settings,
    /// Where each came from, in the order of [`TABLE`].
    pub(crate) sources: Vec<Source>,
    /// What looks like a mistake and is none for sure.
    pub(crate) warnings: Vec<String>,
}

/// Lays the layers over each other. A file named by `--config` or `BLOOMCRAWL_CONFIG` must be there; `config.toml` in
/// `folder` is read if it is.
///
/// # Errors
///
/// Fails for a value that its setting does not take, for an unknown key, and for a file that cannot be read; a flag's
/// fault is one of usage, every other of configuration.
pub(crate) fn resolve(
    typed: &Typed,
    named_file: Option<&Path>,
    environment: &Environment,
    folder: &Path,
) -> Result<Effective, Failure> {
    let mut effective = Effective {
        settings: Settings::default(),
        sources: vec![Source::Default; TABLE.len()],
        warnings: Vec::new(),
    };
    let variable_file = environment
        .0
        .iter()
        .find(|(name, _)| name == FILE_VARIABLE)
        .map(|(_, value)| PathBuf::from(value));
    match named_file.map(Path::to_path_buf).or(variable_file) {
        Some(path) => effective.add_file(&path, &read_file(&path)?)?,
        None => {
            if folder.join(DEFAULT_FILE).is_file() {
                let text = read_file(&folder.join(DEFAULT_FILE))?;
                effective.add_file(Path::new(DEFAULT_FILE), &text)?;
            }
        }
    }
    effective.add_environment(environment)?;
    effective.add_flags(typed)?;
    Ok(effective)
}

impl Effective {
    /// Returns how much is said: of `quiet` and `verbose`, the one set in the higher layer.
    ///
    /// # Errors
    ///
    /// Fails when one layer sets both.
    pub(crate) fn verbosity(&self) -> Result<Verbosity, Failure> {
        match (self.settings.is_quiet, self.settings.is_verbose) {
            (false, false) => Ok(Verbosity::Normal),
            (true, false) => Ok(Verbosity::Quiet),
            (false, true) => Ok(Verbosity::Verbose),
            (true, true) => {
                let (quiet, verbose) = (self.source("quiet"), self.source("verbose"));
                match quiet.rank().cmp(&verbose.rank()) {
                    std::cmp::Ordering::Greater => Ok(Verbosity::Quiet),
                    std::cmp::Ordering::Less => Ok(Verbosity::Verbose),
                    std::cmp::Ordering::Equal => Err(Failure::new(
                        exit_of(quiet),
                        format!("quiet ({quiet}) and verbose ({verbose}) exclude each other"),
                    )),
                }
            }
        }
    }

    /// Returns each setting with its value, passwords masked, and where the value came from.
    pub(crate) fn shown(&self) -> impl Iterator<Item = (&'static Setting, Value, &Source)> {
        TABLE.iter().zip(&self.sources).map(|(setting, source)| {
            let value = match (setting.read)(&self.settings) {
                Value::Text(text) if setting.is_secret => Value::Text(mask_password(&text)),
                value => value,
            };
            (setting, value, source)
        })
    }

    fn source(&self, name: &str) -> &Source {
        TABLE
            .iter()
            .position(|setting| setting.name == name)
            .map_or(&Source::Default, |index| &self.sources[index])
    }

    fn add_file(&mut self, path: &Path, text: &str) -> Result<(), Failure> {
        let line_of = |offset: usize| {
            let before = text.get(..offset).unwrap_or(text);
            before.matches('\n').count() + 1
        };
        let document = DeTable::parse(text).map_err(|error| {
            let line = error.span().map_or(1, |span| line_of(span.start));
            Failure::new(
                Exit::Config,
                format!(
                    "{}:{line}: {}",
                    path.display(),
                    error.message().replace('\n', ", ")
                ),
            )
        })?;
        let mut entries: Vec<_> = document.get_ref().iter().collect();
        entries.sort_by_key(|(key, _)| key.span().start);
        for (key, value) in entries {
            let line = line_of(key.span().start);
            let Some(index) = TABLE
                .iter()
                .position(|setting| setting.name == key.get_ref())
            else {
                return Err(unknown_key(path, line, key.get_ref()));
            };
            let is_none = matches!(value.get_ref().as_str(), Some("none"));
            let parsed = if is_none && TABLE[index].unset.is_some() {
                Ok(Value::Unset)
            } else {
                TABLE[index].kind.read_toml(value.get_ref())
            };
            self.set(index, parsed, Source::File(path.to_path_buf(), line))?;
        }
        Ok(())
    }

    fn add_environment(&mut self, environment: &Environment) -> Result<(), Failure> {
        for (name, value) in &environment.0 {
            let Some(index) = TABLE.iter().position(|setting| setting.variable() == *name) else {
                self.warn_of_variable(name);
                continue;
            };
            let parsed = match value.to_str() {
                Some(text) => TABLE[index].parse(text),
                None => Err("it is not valid UTF-8".to_owned()),
            };
            self.set(index, parsed, Source::Variable(name.clone()))?;
        }
        Ok(())
    }

    /// Other programs may use the prefix too, so an unknown variable is no error; a near miss is worth a warning.
    fn warn_of_variable(&mut self, name: &str) {
        let near = TABLE
            .iter()
            .map(|setting| {
                (
                    strsim::damerau_levenshtein(&setting.variable(), name),
                    setting,
                )
            })
            .min_by_key(|(edits, _)| *edits);
        if let Some((edits, setting)) = near
            && edits <= VARIABLE_EDITS_MAX
            && name != FILE_VARIABLE
        {
            self.warnings.push(format!(
                "{name} is no setting; did you mean {}?",
                setting.variable()
            ));
        }
    }

    fn add_flags(&mut self, typed: &Typed) -> Result<(), Failure> {
        for (index, value) in &typed.0 {
            let setting = &TABLE[*index];
            let parsed = match value {
                TypedValue::Switch(switch) => Ok(Value::Switch(*switch)),
                TypedValue::Text(text) => setting.parse(text),
                TypedValue::List(texts) => Ok(Value::List(texts.clone())),
            };
            self.set(*index, parsed, Source::Flag(setting.name))?;
        }
        Ok(())
    }

    fn set(
        &mut self,
        index: usize,
        parsed: Result<Value, String>,
        source: Source,
    ) -> Result<(), Failure> {
        let setting = &TABLE[index];
        parsed
            .and_then(|value| (setting.write)(&mut self.settings, value))
            .map_err(|reason| {
                let place = match &source {
                    Source::File(..) => format!("{source}: {}", setting.name),
                    _ => source.to_string(),
                };
                let failure = Failure::new(exit_of(&source), format!("{place}: {reason}"));
                match setting.unset {
                    Some(meaning) => failure.with_hint(format!("\"none\" stands for: {meaning}")),
                    None => failure,
                }
            })?;
        self.sources[index] = source;
        Ok(())
    }
}

const fn exit_of(source: &Source) -> Exit {
    match source {
        Source::Flag(_) => Exit::Usage,
        _ => Exit::Config,
    }
}

fn unknown_key(path: &Path, line: usize, key: &str) -> Failure {
    let wanted = key.to_lowercase().replace('_', "-");
    let nearest = TABLE.iter().max_by(|a, b| {
        strsim::jaro_winkler(a.name, &wanted).total_cmp(&strsim::jaro_winkler(b.name, &wanted))
    });
    let nearest = nearest.map_or("", |setting| setting.name);
    Failure::new(
        Exit::Config,
        format!(
            "{}:{line}: unknown key {key:?}; the nearest known key is {nearest:?}",
            path.display()
        ),
    )
    .with_hint("`bloomcrawl config show` lists every key; keys stand at the top level of the file")
}

fn read_file(path: &Path) -> Result<String, Failure> {
    let fail = |reason: &str| Failure::new(Exit::Config, format!("{}: {reason}", path.display()));
    let unreadable = |error: &std::io::Error| {
        let failure = fail(&format!("the configuration file cannot be read: {error}"));
        if error.kind() == ErrorKind::NotFound {
            failure
                .with_hint("`bloomcrawl config template` prints one with every key and its default")
        } else {
            failure
        }
    };
    let mut bytes = Vec::new();
    let file = fs::File::open(path).map_err(|error| unreadable(&error))?;
    file.take(FILE_BYTES_MAX + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| unreadable(&error))?;
    if u64::try_from(bytes.len()).is_ok_and(|count| count > FILE_BYTES_MAX) {
        return Err(fail(&format!(
            "the configuration file is over {FILE_BYTES_MAX} bytes"
        )));
    }
    String::from_utf8(bytes).map_err(|_| fail("the configuration file is not valid UTF-8"))
}

#[cfg(test)]
#[path = "layer_test.rs"]
mod tests;
