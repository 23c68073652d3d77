//! WARC files as a site: each recorded response under its own URL.

use std::{
    collections::{HashMap, hash_map},
    fs::File,
    io::{BufReader, Seek, SeekFrom},
    path::{Path, PathBuf},
};

use warc::{HttpResponse, Position, ReadError, Reader, ReaderLimits};

use crate::{ReplayError, Site, SiteAnswer, SiteRequest, url_form::url_form};

/// Loading looks at the head of a response only.
const LOAD_LIMITS: ReaderLimits = ReaderLimits {
    header_bytes_max: 256 * 1_024,
    content_bytes_max: 64 * 1_024,
};

/// Answers larger than this are cut; no page is.
const ANSWER_LIMITS: ReaderLimits = ReaderLimits {
    header_bytes_max: 256 * 1_024,
    content_bytes_max: 256 << 20,
};

/// Header fields that belong to one connection (RFC 9110 section 7.6.1), and the length, which is computed.
const HOP_FIELDS: [&str; 9] = [
    "connection",
    "content-length",
    "keep-alive",
    "proxy-authenticate",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// The responses of WARC files, read from the files when they are asked for.
///
/// A response is served at the URL that it was recorded at, http and https apart, whatever the spelling of its escapes;
/// where several records have one URL, the first is served. Any other URL, a robots.txt included, is answered with 404.
#[derive(Debug)]
pub struct Archive {
    files: Vec<PathBuf>,
    entries: Vec<Entry>,
    by_form: HashMap<String, usize>,
    damages: Vec<Damage>,
}

#[derive(Debug)]
struct Entry {
    url: String,
    file: usize,
    position: Position,
}

/// A file that could not be read to its end; what came before is served.
#[derive(Debug)]
pub struct Damage {
    /// The file.
    pub path: PathBuf,
    /// Where and why reading ended.
    pub error: ReadError,
}

impl Archive {
    /// Reads through the files and notes where their responses are.
    ///
    /// # Errors
    ///
    /// Returns [`ReplayError`] when a file cannot be opened, or does not begin with a WARC record. A file damaged
    /// further on is used up to there; see [`Self::damages`].
    pub fn load(paths: &[PathBuf]) -> Result<Self, ReplayError> {
        let mut archive = Self {
            files: paths.to_vec(),
            entries: Vec::new(),
            by_form: HashMap::new(),
            damages: Vec::new(),
        };
        for (file, path) in paths.iter().enumerate() {
            archive.load_file(file, path)?;
        }
        Ok(archive)
    }

    fn load_file(&mut self, file: usize, path: &Path) -> Result<(), ReplayError> {
        let input = File::open(path).map_err(|source| ReplayError::Read {
            path: path.to_owned(),
            source,
        })?;
        for (index, record) in Reader::new(BufReader::new(input), LOAD_LIMITS).enumerate() {
            let record = match record {
                Ok(record) => record,
                Err(source) if index == 0 => {
                    return Err(ReplayError::NotWarc {
                        path: path.to_owned(),
                        source,
                    });
                }
                Err(error) => {
                    self.damages.push(Damage {
                        path: path.to_owned(),
                        error,
                    });
                    break;
                }
            };
            if record.kind() != "response" {
                continue;
            }
            let Some((url, form)) = record
                .target_uri()
                .and_then(|url| Some((url, url_form(url)?)))
            else {
                continue;
            };
            // An interim response (1xx) answers nothing.
            if !record
                .http_response()
                .is_ok_and(|response| response.status >= 200)
            {
                continue;
            }
            if let hash_map::Entry::Vacant(vacant) = self.by_form.entry(form) {
                vacant.insert(self.entries.len());
                self.entries.push(Entry {
                    url: url.to_owned(),
                    file,
                    position: record.position,
                });
            }
        }
        Ok(())
    }

    /// Iterates over the URLs served, as recorded, in the order of the files.
    pub fn urls(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().map(|entry| entry.url.as_str())
    }

    /// Returns how many URLs are served.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns whether no URL is served.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns whether a URL is served, in any of its spellings.
    #[must_use]
    pub fn contains(&self, url: &str) -> bool {
        url_form(url).is_some_and(|form| self.by_form.contains_key(&form))
    }

    /// Returns the files that could not be read to their end.
    #[must_use]
    pub fn damages(&self) -> &[Damage] {
        &self.damages
    }

    fn read(&self, entry: &Entry) -> Option<SiteAnswer> {
        let mut file = File::open(self.files.get(entry.file)?).ok()?;
        file.seek(SeekFrom::Start(entry.position.offset)).ok()?;
        let record = Reader::at(BufReader::new(file), entry.position, ANSWER_LIMITS)
            .ok()?
            .next()?
            .ok()?;
        let response = record.http_response().ok()?;
        Some(answer(&response))
    }
}

impl Site for Archive {
    fn answer(&self, request: &SiteRequest<'_>) -> SiteAnswer {
        let entry = url_form(&request.url())
            .and_then(|form| self.by_form.get(&form))
            .map(|index| &self.entries[*index]);
        match entry {
            None => SiteAnswer::not_found(),
            Some(entry) => self.read(entry).unwrap_or_else(|| {
                SiteAnswer::new(
                    500,
                    "text/plain; charset=utf-8",
                    "the record can no longer be read from its file\n",
                )
            }),
        }
    }
}

fn answer(response: &HttpResponse<'_>) -> SiteAnswer {
    let connection = response
        .header("connection")
        .map(String::from_utf8_lossy)
        .unwrap_or_default();
    let is_named = |name: &str| {
        connection
            .split(',')
            .any(|named| named.trim().eq_ignore_ascii_case(name))
    };
    let headers = response
        .headers
        .iter()
        .filter(|(name, _)| {
            !HOP_FIELDS.iter().any(|hop| hop.eq_ignore_ascii_case(name)) && !is_named(name)
        })
        .map(|(name, value)| (name.to_string(), value.to_vec()))
        .collect();
    let body = if matches!(response.status, 204 | 304) {
        Vec::new()
    } else {
        response.body.to_vec()
    };
    SiteAnswer {
        headers,
        ..SiteAnswer::new(response.status, "", body)
    }
}
