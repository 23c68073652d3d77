//! Thousands of real robots.txt files: each is read, and its answers are those of another reader, written here from the
//! specification and from what the reference parser of its authors does, that shares nothing with the library.
#![expect(clippy::unwrap_used, reason = "a failed set-up fails the test")]
#![expect(clippy::print_stderr, reason = "the figures are the test's findings")]

use std::{fs, io::Read as _, path::PathBuf, time::Instant};

use flate2::read::GzDecoder;
use robots::Rules;
use serde_json::Value;

/// A crawler that has groups of its own in many files, and one that has none.
const AGENTS: [&str; 2] = ["googlebot", "mybot"];

/// Reads the bodies of all files, by their host; `None` after saying that the test is skipped.
fn files() -> Option<Vec<(String, String)>> {
    let Some(shared) = std::env::var_os("BLOOMCRAWL_CORPORA") else {
        eprintln!("skipped: BLOOMCRAWL_CORPORA is not set");
        return None;
    };
    let folder = PathBuf::from(shared).join("corpora/robots");
    let mut files = Vec::new();
    for name in [
        "robots-top10k-protego.jsonl.gz",
        "robots-top1m-sample.jsonl.gz",
    ] {
        let mut text = String::new();
        let packed = fs::File::open(folder.join(name)).unwrap();
        GzDecoder::new(packed).read_to_string(&mut text).unwrap();
        for line in text.lines() {
            let file: Value = serde_json::from_str(line).unwrap();
            let part = |name: &str| file[name].as_str().unwrap().to_owned();
            files.push((part("host"), part("body")));
        }
    }
    Some(files)
}

/// The rules of a file for one crawler, as the second reader has them.
#[derive(Default)]
struct Reference {
    /// Pattern and whether it allows.
    rules: Vec<(Vec<u8>, bool)>,
}

impl Reference {
    /// RFC 9309, section 2.2: groups of the crawler's name are merged, or else those of `*`.
    fn read(file: &str, agent: &str) -> Self {
        let (mut own, mut general) = (Vec::new(), Vec::new());
        let mut has_own = false;
        let (mut is_own, mut is_general, mut is_open) = (false, false, false);
        for line in file
            .trim_start_matches('\u{feff}')
            .split(['\n', '\r', '\0'])
        {
            let Some((key, value)) = key_and_value(line) else {
                continue;
            };
            match key.as_str() {
                "user-agent" | "useragent" | "user agent" => {
                    if is_open {
                        (is_own, is_general, is_open) = (false, false, false);
                    }
                    let first = value
                        .split(|letter: char| letter.is_ascii_whitespace())
                        .next();
                    is_general |= first == Some("*");
                    let name_end = value.find(|letter: char| {
                        !(letter.is_ascii_alphanumeric() || "-_.".contains(letter))
                    });
                    let name = &value[..name_end.unwrap_or(value.len())];
                    is_own |= name.eq_ignore_ascii_case(agent);
                    has_own |= is_own;
                }
                "allow" | "disallow" | "dissallow" | "dissalow" | "disalow" | "diasllow"
                | "disallaw" | "disalllow" => {
                    is_open = true;
                    if value.is_empty() {
                        continue;
                    }
                    let rule = (pattern(value), key == "allow");
                    if is_own {
                        own.push(rule.clone());
                    }
                    if is_general {
                        general.push(rule);
                    }
                }
                _ => {}
            }
        }
        Self {
            rules: if has_own { own } else { general },
        }
    }

    /// Section 2.2.2: the longest pattern that matches decides, and of two equally long ones the one that allows.
    fn allows(&self, path: &str) -> bool {
        // Section 2.2.2: the file itself is always allowed.
        if path == "/robots.txt" {
            return true;
        }
        let path = normal(path.as_bytes(), true);
        let matching = self
            .rules
            .iter()
            .filter(|(pattern, _)| matches(pattern, &path));
        matching
            .max_by_key(|(pattern, allows)| (pattern.len(), *allows))
            .is_none_or(|(_, allows)| *allows)
    }
}

/// Splits a line as the reference parser does: at the colon, or, without one, at white space before a single word.
fn key_and_value(line: &str) -> Option<(String, &str)> {
    let line = line
        .split('#')
        .next()?
        .trim_matches(|letter: char| letter.is_ascii_whitespace());
    let is_blank = |letter: char| letter.is_ascii_whitespace();
    let (key, value) = if let Some(parts) = line.split_once(':') {
        parts
    } else {
        let parts = line.split_once(is_blank)?;
        if parts.1.trim().contains(is_blank) {
            return None;
        }
        parts
    };
    let trimmed = |text: &str| {
        text.trim_matches(|letter: char| letter.is_ascii_whitespace())
            .to_owned()
    };
    // All white space, by a decision of this project: a no-break space at the end of a line was hardly meant, and the reference
    // parser, which takes it for a part of the rule, lets a crawler in where the site's author wanted none.
    let value = value.trim();
    Some((trimmed(key).to_ascii_lowercase(), value))
}

/// A pattern in the form in which it is compared. One that begins with neither `/` nor `*` is taken as if the slash had been
/// forgotten, by a decision of this project; the reference parser has it match nothing.
fn pattern(value: &str) -> Vec<u8> {
    let is_rooted = value.starts_with(['/', '*']);
    let text = if is_rooted {
        value.to_owned()
    } else {
        format!("/{value}")
    };
    let (text, anchor) = match text.strip_suffix('$') {
        Some(text) => (text, "$"),
        None => (text.as_str(), ""),
    };
    let mut pattern = normal(text.replace('$', "%24").as_bytes(), false);
    pattern.dedup_by(|next, before| *next == b'*' && *before == b'*');
    pattern.extend_from_slice(anchor.as_bytes());
    pattern
}

/// Section 2.2.2: octets outside of ASCII are compared percent-encoded, encoded unreserved ones decoded. In a path `*` and `$`
/// mean themselves.
fn normal(text: &[u8], is_path: bool) -> Vec<u8> {
    let mut out = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let encoded = text.get(at + 1..at + 3).filter(|_| text[at] == b'%');
        let byte = encoded
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        let (byte, is_encoded) = match byte {
            Some(byte) => (byte, true),
            None => (text[at], false),
        };
        at += if is_encoded { 3 } else { 1 };
        let is_unreserved = byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
        let is_special = is_path && matches!(byte, b'*' | b'$');
        if is_unreserved || (!is_encoded && byte.is_ascii() && !is_special) {
            out.push(byte);
        } else {
            out.extend_from_slice(format!("%{byte:02X}").as_bytes());
        }
    }
    out
}

/// Whether a pattern matches from the start of a path: a table of how far each prefix of the pattern can reach.
fn matches(pattern: &[u8], path: &[u8]) -> bool {
    let (pattern, is_whole) = match pattern.strip_suffix(b"$") {
        Some(pattern) => (pattern, true),
        None => (pattern, false),
    };
    let mut reached = vec![false; path.len() + 1];
    reached[0] = true;
    for symbol in pattern {
        let mut next = vec![false; path.len() + 1];
        if *symbol == b'*' {
            let first = reached.iter().position(|is_reached| *is_reached);
            let first = first.unwrap_or(path.len() + 1);
            for is_reached in next.iter_mut().skip(first) {
                *is_reached = true;
            }
        } else {
            for at in 0..path.len() {
                next[at + 1] = reached[at] && path[at] == *symbol;
            }
        }
        reached = next;
    }
    if is_whole {
        reached[path.len()]
    } else {
        reached.contains(&true)
    }
}

/// Paths to ask a file about: those that its own lines speak of, with what may follow or be missing, and some others.
fn paths(file: &str) -> Vec<String> {
    let mut paths: Vec<String> = [
        "/",
        "/index.html",
        "/a/b/c.php?x=1&y=2",
        "/%7Euser/",
        "/search?q=a",
    ]
    .map(str::to_owned)
    .to_vec();
    let values = file
        .lines()
        .filter_map(key_and_value)
        .map(|(_, value)| value);
    let values: Vec<&str> = values
        .filter(|value| value.starts_with(['/', '*']))
        .collect();
    let step = (values.len() / 4).max(1);
    for value in values.into_iter().step_by(step).take(4) {
        let end = value.floor_char_boundary(200);
        // A path is ASCII without blanks, as that of a canonical URL.
        let plain: String = value[..end]
            .chars()
            .filter(|letter| letter.is_ascii_graphic() && !"*$#\\\"<>^`{|}".contains(*letter))
            .collect();
        let filled: String = value[..end]
            .replace('*', "x/y")
            .chars()
            .filter(|letter| letter.is_ascii_graphic() && !"$#\\\"<>^`{|}".contains(*letter))
            .collect();
        for path in [plain, filled] {
            let path = format!("/{}", path.trim_start_matches('/'));
            paths.push(format!("{path}tail"));
            paths.push(path[..path.len() - usize::from(path.len() > 1)].to_owned());
            paths.push(path);
        }
    }
    paths
}

#[test]
fn answers_to_real_files_are_those_of_a_second_reader() {
    let Some(files) = files() else { return };
    assert_eq!(files.len(), 8_467);
    let begun = Instant::now();
    for (_, body) in &files {
        let _ = Rules::parse(body.as_bytes(), "bloomcrawl");
    }
    eprintln!(
        "{} files, {} bytes, read in {:.2} s",
        files.len(),
        files.iter().map(|(_, body)| body.len()).sum::<usize>(),
        begun.elapsed().as_secs_f64()
    );
    let (mut pair_count, mut banned_count, mut differing) = (0, 0, Vec::new());
    for (host, body) in files
        .iter()
        .filter(|(_, body)| body.len() < robots::ROBOTS_BYTES_MAX)
    {
        let paths = paths(body);
        for agent in AGENTS {
            let rules = Rules::parse(body.as_bytes(), agent);
            let reference = Reference::read(body, agent);
            for path in &paths {
                pair_count += 1;
                let expected = reference.allows(path);
                banned_count += usize::from(!expected);
                if rules.allows(path) != expected {
                    differing.push(format!("{host} {agent} {path}: {expected} by the second"));
                }
            }
        }
    }
    eprintln!(
        "{pair_count} answers, {banned_count} of them no, {} differ",
        differing.len()
    );
    assert!(banned_count > pair_count / 10, "too few bans to tell");
    assert!(
        differing.is_empty(),
        "{:#?}",
        &differing[..differing.len().min(40)]
    );
}
