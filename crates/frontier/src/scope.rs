//! Scope: which candidates belong to the crawl, judged before the seen test.

use std::{
    collections::{BTreeSet, HashSet},
    fmt,
    net::Ipv4Addr,
    ops::Bound,
    str::FromStr,
};

use regex::{Regex, RegexSet};
use thiserror::Error;
use types::{Candidate, CanonicalUrl, Host, RejectReason, Via};

mod repeats;

use repeats::repeats_more_than;

/// Which URLs belong to the crawl, relative to its seeds.
///
/// The scheme never matters, so a site that moves from http to https stays in scope. A port that is not the default of its
/// scheme is part of the name, but not of a registered domain: on one address each port mostly is a service of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ScopeRule {
    /// The host name, and the port where it is not the scheme's default, equal those of a seed. `www.` is a name like any other: with the seed `https://example.org/`,
    /// `https://www.example.org/` is out of scope.
    Host,
    /// The registered domain (by the public suffix list) equals that of a seed, whatever the port. An address, or a name of
    /// one label, counts as its own domain, with its port.
    Domain,
    /// The URL begins with a seed's URL up to the last `/` of its path: the seed `https://example.org/docs/index.html`
    /// takes in all of `example.org/docs/`.
    Prefix,
    /// Every URL.
    Any,
}

impl ScopeRule {
    /// Every rule, in the order of the help text.
    pub const ALL: [Self; 4] = [Self::Host, Self::Domain, Self::Prefix, Self::Any];

    /// Returns the rule's name, as flags and config files spell it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Host => "host",
            Self::Domain => "domain",
            Self::Prefix => "prefix",
            Self::Any => "any",
        }
    }
}

impl fmt::Display for ScopeRule {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// A text that names no scope rule.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("unknown scope {0:?}: expected host, domain, prefix or any")]
pub struct ScopeRuleError(pub String);

impl FromStr for ScopeRule {
    type Err = ScopeRuleError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|rule| rule.name() == text)
            .ok_or_else(|| ScopeRuleError(text.to_owned()))
    }
}

/// What a scope is made from, beside the seeds.
#[derive(Clone, Debug)]
pub struct ScopeConfig {
    /// The rule relative to the seeds.
    pub rule: ScopeRule,
    /// If not empty, a URL must match one of these regular expressions (searched anywhere in the canonical text).
    /// Seeds, what they redirect to, and sitemaps need not match: they are where the crawl begins.
    pub include: Vec<String>,
    /// A URL that matches one of these regular expressions is refused, seeds not excepted.
    pub exclude: Vec<String>,
    /// The most links followed from a seed; `None`: no limit.
    pub max_depth: Option<u32>,
    /// The most redirects, or sitemaps within sitemaps, followed in a row.
    pub redirects_max: u8,
    /// How often a part of a path or query may come in it (see [`RejectReason::Repeating`]), but for seeds.
    pub repeats_max: u16,
}

/// Why a scope cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ScopeError {
    /// A pattern is no regular expression.
    #[error("{list} pattern {pattern:?}{}: {reason}", position.map_or_else(String::new, |at| format!(", character {at}")))]
    Pattern {
        /// `include` or `exclude`.
        list: &'static str,
        /// The pattern.
        pattern: String,
        /// The 1-based character at which it goes wrong, where there is one.
        position: Option<usize>,
        /// What is wrong.
        reason: String,
    },
    /// All patterns of a list together need more memory than the regular expression engine allows.
    #[error("the {list} patterns are too large together: {reason}")]
    TooLarge {
        /// `include` or `exclude`.
        list: &'static str,
        /// What the engine says.
        reason: String,
    },
}

/// The scope of one crawl; cheap to ask from many threads.
#[derive(Debug)]
pub struct Scope {
    extent: Extent,
    include: RegexSet,
    exclude: RegexSet,
    max_depth: Option<u32>,
    redirects_max: u8,
    repeats_max: u16,
}

/// The host that was judged last by a rule on hosts, and the verdict.
#[derive(Debug, Default)]
pub(crate) struct HostMemo {
    /// Scheme and authority; empty at first, which is no host.
    host: String,
    is_inside: bool,
}

impl HostMemo {
    /// Returns the verdict on the host of `url`, which `judge` is asked for unless it was the last one.
    fn verdict(&mut self, url: &CanonicalUrl, judge: impl FnOnce(&Host) -> bool) -> bool {
        if self.host != url.host_str() {
            self.is_inside = judge(&url.host());
            url.host_str().clone_into(&mut self.host);
        }
        self.is_inside
    }
}

/// The rule together with what it needs to know of the seeds.
#[derive(Debug)]
enum Extent {
    Names(HashSet<Box<str>>),
    Domains(HashSet<Box<str>>),
    /// Authority and path prefix of each seed, none of them a prefix of another.
    Prefixes(BTreeSet<Box<str>>),
    Everything,
}

impl Scope {
    /// Makes the scope of a crawl that begins at `seeds`.
    ///
    /// # Errors
    ///
    /// Fails when a pattern is no regular expression; the error names it.
    pub fn new(config: &ScopeConfig, seeds: &[CanonicalUrl]) -> Result<Self, ScopeError> {
        Ok(Self {
            extent: Extent::new(config.rule, seeds),
            include: compile("include", &config.include)?,
            exclude: compile("exclude", &config.exclude)?,
            max_depth: config.max_depth,
            redirects_max: config.redirects_max,
            repeats_max: config.repeats_max,
        })
    }

    /// Says whether a candidate belongs to the crawl.
    ///
    /// # Errors
    ///
    /// Returns the first reason against it, in this order: the rule, depth, redirects, patterns, repeats.
    pub fn admits(&self, candidate: &Candidate) -> Result<(), RejectReason> {
        self.admits_in_turn(candidate, &mut HostMemo::default())
    }

    /// Says what [`Scope::admits`] says, and remembers in `memo` what the host had to do with it: most links of a page
    /// lead to the host of the link before.
    pub(crate) fn admits_in_turn(
        &self,
        candidate: &Candidate,
        memo: &mut HostMemo,
    ) -> Result<(), RejectReason> {
        if !self.extent.contains(&candidate.url, memo) {
            return Err(RejectReason::OutOfScope);
        }
        if self.max_depth.is_some_and(|max| candidate.depth > max) {
            return Err(RejectReason::TooDeep);
        }
        if candidate.redirect_count > self.redirects_max {
            return Err(RejectReason::TooManyRedirects);
        }
        let text = candidate.url.as_str();
        if !self.exclude.is_empty() && self.exclude.is_match(text) {
            return Err(RejectReason::Filtered);
        }
        let is_beginning = match candidate.via {
            // A sitemap is no page of the crawl, but where its entries are found.
            Via::Seed | Via::Sitemap => true,
            // A redirect adds nothing to the depth, so this one came from a seed.
            Via::Redirect => candidate.depth == 0,
            Via::Link | Via::Entry => false,
        };
        if !is_beginning && !self.include.is_empty() && !self.include.is_match(text) {
            return Err(RejectReason::Filtered);
        }
        if candidate.via != Via::Seed && repeats_more_than(&candidate.url, self.repeats_max.into())
        {
            return Err(RejectReason::Repeating);
        }
        Ok(())
    }
}

impl Extent {
    fn new(rule: ScopeRule, seeds: &[CanonicalUrl]) -> Self {
        match rule {
            ScopeRule::Host => Self::Names(
                seeds
                    .iter()
                    .map(|seed| seed.host().authority().into())
                    .collect(),
            ),
            ScopeRule::Domain => Self::Domains(
                seeds
                    .iter()
                    .map(|seed| domain(&seed.host()).into())
                    .collect(),
            ),
            ScopeRule::Prefix => Self::Prefixes(shortest_prefixes(seeds)),
            ScopeRule::Any => Self::Everything,
        }
    }

    fn contains(&self, url: &CanonicalUrl, memo: &mut HostMemo) -> bool {
        match self {
            Self::Names(names) => memo.verdict(url, |host| names.contains(host.authority())),
            Self::Domains(domains) => memo.verdict(url, |host| domains.contains(domain(host))),
            Self::Prefixes(prefixes) => covers(prefixes, without_scheme(url.as_str())),
            Self::Everything => true,
        }
    }
}

/// Returns what the rule on domains goes by: the registered domain, or the authority of a host that belongs to none.
fn domain(host: &Host) -> &str {
    let name = host.name();
    let is_address = name.starts_with('[') || name.parse::<Ipv4Addr>().is_ok();
    if is_address || !name.contains('.') {
        host.authority()
    } else {
        host.domain()
    }
}

/// Returns the prefixes of the seeds without those that a shorter one covers.
fn shortest_prefixes(seeds: &[CanonicalUrl]) -> BTreeSet<Box<str>> {
    // In sorted order a prefix comes before everything that it covers.
    let all: BTreeSet<&str> = seeds.iter().map(prefix).collect();
    let mut shortest = BTreeSet::new();
    for text in all {
        if !covers(&shortest, text) {
            shortest.insert(text.into());
        }
    }
    shortest
}

/// Returns whether one of `prefixes` (none a prefix of another) begins `text`. If one does, no other lies between it
/// and `text` in sorted order, since that other would begin with it too; so one look-up answers.
fn covers(prefixes: &BTreeSet<Box<str>>, text: &str) -> bool {
    prefixes
        .range::<str, _>((Bound::Unbounded, Bound::Included(text)))
        .next_back()
        .is_some_and(|prefix| text.starts_with(&**prefix))
}

/// Returns a seed's authority and path up to the last `/`; a `/` in the query does not count.
fn prefix(seed: &CanonicalUrl) -> &str {
    let text = without_scheme(seed.as_str());
    let path_end = text.find('?').unwrap_or(text.len());
    let end = text[..path_end].rfind('/').map_or(path_end, |at| at + 1);
    &text[..end]
}

fn without_scheme(url: &str) -> &str {
    url.split_once("://").map_or(url, |(_, rest)| rest)
}

fn compile(list: &'static str, patterns: &[String]) -> Result<RegexSet, ScopeError> {
    for pattern in patterns {
        Regex::new(pattern).map_err(|error| pattern_error(list, pattern, &error))?;
    }
    RegexSet::new(patterns).map_err(|error| ScopeError::TooLarge {
        list,
        reason: one_line(&error),
    })
}

/// Turns the engine's drawing of an error (the pattern, a line with `^` under the bad place, the reason) into one line.
fn pattern_error(list: &'static str, pattern: &str, error: &regex::Error) -> ScopeError {
    let drawing = error.to_string();
    let mut lines = drawing.lines();
    // The drawing indents the pattern as far as the mark.
    let indent = lines
        .find(|line| line.trim_start() == pattern.trim_start() && !pattern.trim().is_empty())
        .map(|line| line.chars().count() - pattern.chars().count());
    let position = indent.and_then(|indent| {
        let mark = lines.next()?.chars().position(|symbol| symbol == '^')?;
        mark.checked_sub(indent).map(|at| at + 1)
    });
    let reason = drawing
        .lines()
        .find_map(|line| line.strip_prefix("error: "))
        .map_or_else(|| one_line(error), str::to_owned);
    ScopeError::Pattern {
        list,
        pattern: pattern.to_owned(),
        position,
        reason,
    }
}

fn one_line(error: &regex::Error) -> String {
    error
        .to_string()
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
}

#[cfg(test)]
mod tests;
