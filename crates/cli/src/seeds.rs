//! Seeds: the URLs that a crawl begins with, from the command line, from files, or from stdin.

use std::{
    fs::File,
    io::{self, BufRead, BufReader, Read as _},
};

use types::{CanonicalUrl, Canonicalizer, UrlRejection};

use crate::{
    clean::clean,
    failure::{Exit, Failure},
    printer::{Printer, Verbosity},
};

/// The longest line read, in bytes; far over any URL that is crawled.
const LINE_BYTES_MAX: u64 = 64 << 10;

/// How many bad lines of one source are reported one by one, unless all are asked for.
const REPORTED_LINES_MAX: u64 = 20;

/// How much of a bad line is quoted, in characters.
const QUOTED_CHARS_MAX: usize = 120;

/// The UTF-8 byte order mark, which editors put at the start of files.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// What was read from one source or several.
#[derive(Debug, Default)]
pub(crate) struct Seeds {
    /// The canonical URLs, each once, in order.
    pub(crate) urls: Vec<CanonicalUrl>,
    /// Lines and arguments that are no seed.
    pub(crate) bad_count: u64,
}

/// Reads every seed that `arguments` name: URLs, files, or `-` for stdin. Bad lines are reported and left out.
///
/// # Errors
///
/// Fails, as a fault of usage, when a source cannot be read, and when no seed is left.
pub(crate) fn read_all(
    arguments: &[String],
    canonicalizer: &Canonicalizer,
    printer: &Printer,
) -> Result<Seeds, Failure> {
    let mut seeds = Seeds::default();
    for argument in arguments {
        if is_url(argument) {
            match canonicalizer.canonicalize(argument) {
                Ok(url) => seeds.urls.push(url),
                Err(rejection) => {
                    seeds.bad_count += 1;
                    printer.warning(&format!(
                        "seed \"{}\": {rejection}",
                        clean(argument, QUOTED_CHARS_MAX)
                    ));
                }
            }
        } else if argument == "-" {
            seeds.read_lines("stdin", io::stdin().lock(), canonicalizer, printer)?;
        } else {
            seeds.read_lines(argument, open(argument)?, canonicalizer, printer)?;
        }
    }
    keep_first(&mut seeds.urls);
    if seeds.urls.is_empty() {
        let sources = arguments.join(", ");
        let what = if seeds.bad_count == 0 {
            "it holds no URL"
        } else {
            "nothing of it is a URL to crawl"
        };
        return Err(
            Failure::new(Exit::Usage, format!("no seed is left of {sources}: {what}")).with_hint(
                "a seed is an http or https URL such as https://example.org/, in a file one a line",
            ),
        );
    }
    Ok(seeds)
}

/// Returns whether an argument is a URL and no file, also one of a scheme that is not crawled.
fn is_url(argument: &str) -> bool {
    argument.split_once("://").is_some_and(|(scheme, _)| {
        scheme.starts_with(|first: char| first.is_ascii_alphabetic())
            && scheme
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
    })
}

fn open(path: &str) -> Result<BufReader<File>, Failure> {
    let fail = |reason: String| {
        Failure::new(
            Exit::Usage,
            format!("the seed file {path} cannot be read: {reason}"),
        )
    };
    let file = File::open(path).map_err(|error| {
        let failure = fail(error.to_string());
        if looks_like_host(path) {
            failure.with_hint(format!("for a URL write https://{path}"))
        } else {
            failure
        }
    })?;
    // A folder opens like a file and fails only when it is read.
    if file.metadata().is_ok_and(|metadata| metadata.is_dir()) {
        return Err(fail("it is a folder".to_owned()).with_hint("give a file with one URL a line"));
    }
    Ok(BufReader::new(file))
}

impl Seeds {
    /// Reads lines until the end of `input`; `source` names it in messages.
    fn read_lines(
        &mut self,
        source: &str,
        mut input: impl BufRead,
        canonicalizer: &Canonicalizer,
        printer: &Printer,
    ) -> Result<(), Failure> {
        let unreadable = |error: &io::Error| {
            Failure::new(
                Exit::Usage,
                format!("the seeds of {source} cannot be read: {error}"),
            )
        };
        let reported_max = if printer.verbosity >= Verbosity::Verbose {
            u64::MAX
        } else {
            REPORTED_LINES_MAX
        };
        let mut line = Vec::new();
        let (mut number, mut bad_count) = (0_u64, 0_u64);
        while next_line(&mut input, &mut line).map_err(|error| unreadable(&error))? {
            number += 1;
            if number == 1 {
                refuse_utf16(source, &line)?;
            }
            match parse_line(&line, number == 1, canonicalizer) {
                Ok(Some(url)) => self.urls.push(url),
                Ok(None) => {}
                Err(reason) => {
                    bad_count += 1;
                    if bad_count <= reported_max {
                        printer.warning(&format!("{source}:{number}: {reason}"));
                    }
                }
            }
        }
        if bad_count > reported_max {
            let more = bad_count - reported_max;
            printer.warning(&format!(
                "{source}: {more} more bad lines, {bad_count} of {number} in all; --verbose shows each"
            ));
        }
        self.bad_count += bad_count;
        Ok(())
    }
}

/// Reads the next line into `line`, without its end. Of a longer one than the cap, one byte more than that is kept and
/// the rest is passed over. Returns whether there was a line.
fn next_line(input: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<bool> {
    line.clear();
    if input.take(LINE_BYTES_MAX + 1).read_until(b'\n', line)? == 0 {
        return Ok(false);
    }
    if line.last() == Some(&b'\n') {
        line.pop();
    } else if line.len() as u64 > LINE_BYTES_MAX {
        input.skip_until(b'\n')?;
    }
    Ok(true)
}

/// Text in UTF-16 has a zero byte beside each letter; line by line it would only yield puzzling messages.
fn refuse_utf16(source: &str, first_line: &[u8]) -> Result<(), Failure> {
    if first_line.starts_with(b"\xff\xfe") || first_line.starts_with(b"\xfe\xff") {
        return Err(
            Failure::new(Exit::Usage, format!("the seeds of {source} are in UTF-16"))
                .with_hint("save the file as UTF-8"),
        );
    }
    Ok(())
}

/// Returns the URL of a line, `None` for a blank line or a comment, or what is wrong with it. A comment begins with `#`
/// at the start of a line or after white space: a `#` within a URL begins its fragment.
fn parse_line(
    line: &[u8],
    is_first: bool,
    canonicalizer: &Canonicalizer,
) -> Result<Option<CanonicalUrl>, String> {
    if line.len() as u64 > LINE_BYTES_MAX {
        return Err(format!("the line is over {LINE_BYTES_MAX} bytes"));
    }
    let line = if is_first {
        line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line)
    } else {
        line
    };
    let text = std::str::from_utf8(line)
        .map_err(|error| {
            format!(
                "byte {} of the line is not valid UTF-8",
                error.valid_up_to() + 1
            )
        })?
        .trim();
    if text.is_empty() || text.starts_with('#') {
        return Ok(None);
    }
    let comment = text
        .match_indices('#')
        .find(|(at, _)| text[..*at].ends_with([' ', '\t']));
    let text = comment.map_or(text, |(at, _)| text[..at].trim_end());
    canonicalizer
        .canonicalize(text)
        .map(Some)
        .map_err(|rejection| {
            let quoted = clean(text, QUOTED_CHARS_MAX);
            let is_bare =
                !matches!(rejection, UrlRejection::TooLong { .. }) && looks_like_host(text);
            let hint = if is_bare {
                format!("; for a URL write https://{quoted}")
            } else {
                String::new()
            };
            format!("\"{quoted}\": {rejection}{hint}")
        })
}

/// Returns whether a text without a scheme reads like a host, perhaps with a port and a path.
fn looks_like_host(text: &str) -> bool {
    let authority = text.split(['/', '?']).next().unwrap_or_default();
    let (host, port) = authority.split_once(':').unwrap_or((authority, ""));
    port.bytes().all(|byte| byte.is_ascii_digit())
        && !host.starts_with('.')
        && !host.contains(char::is_whitespace)
        && (host.trim_end_matches('.').contains('.') || (host == "localhost"))
}

/// Keeps the first of equal URLs, in order.
fn keep_first(urls: &mut Vec<CanonicalUrl>) {
    let mut order: Vec<usize> = (0..urls.len()).collect();
    order.sort_by(|a, b| urls[*a].cmp(&urls[*b]).then(a.cmp(b)));
    let mut is_repeat = vec![false; urls.len()];
    for pair in order.windows(2) {
        is_repeat[pair[1]] = urls[pair[0]] == urls[pair[1]];
    }
    let mut repeats = is_repeat.into_iter();
    urls.retain(|_| !repeats.next().unwrap_or(false));
}

#[cfg(test)]
#[path = "seeds_test.rs"]
mod tests;
