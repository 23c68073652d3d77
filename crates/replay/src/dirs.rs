//! A folder as a site.

use std::{
    fs,
    path::{Component, Path, PathBuf},
};

use crate::{ReplayError, Site, SiteAnswer, SiteRequest};

/// Serves the files below a folder under one authority, for http and https alike: content types by extension,
/// `index.html` for folders, 404 for anything else, and nothing from outside the folder.
#[derive(Clone, Debug)]
pub struct Dirs {
    root: PathBuf,
    authority: String,
}

impl Dirs {
    /// Serves `folder` under `authority`, a host with a port unless it is the scheme's own.
    ///
    /// # Errors
    ///
    /// Returns [`ReplayError::Read`] when there is no such folder.
    pub fn new(folder: &Path, authority: &str) -> Result<Self, ReplayError> {
        let error = |source| ReplayError::Read {
            path: folder.to_owned(),
            source,
        };
        let root = fs::canonicalize(folder).map_err(error)?;
        fs::read_dir(&root).map_err(error)?;
        Ok(Self {
            root,
            authority: authority.to_ascii_lowercase(),
        })
    }

    /// Returns the file or folder that a path names, if it lies below the root, links followed.
    fn resolve(&self, path: &str) -> Option<PathBuf> {
        let relative = PathBuf::from(unescape(path.strip_prefix('/')?)?);
        let is_plain = relative
            .components()
            .all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
        let found = fs::canonicalize(self.root.join(relative))
            .ok()
            .filter(|_| is_plain)?;
        found.starts_with(&self.root).then_some(found)
    }
}

impl Site for Dirs {
    fn answer(&self, request: &SiteRequest<'_>) -> SiteAnswer {
        let path = request.path_and_query.split('?').next().unwrap_or_default();
        if request.authority != self.authority {
            return SiteAnswer::not_found();
        }
        let Some(found) = self.resolve(path) else {
            return SiteAnswer::not_found();
        };
        let file = match (found.is_dir(), path.ends_with('/')) {
            // Relative links of an index page hold only below the folder's own URL.
            (true, false) => return SiteAnswer::redirect(301, &format!("{path}/")),
            (true, true) => found.join("index.html"),
            (false, true) => return SiteAnswer::not_found(),
            (false, false) => found,
        };
        match fs::read(&file) {
            Ok(body) => SiteAnswer::new(200, media_type(&file), body),
            Err(_) => SiteAnswer::not_found(),
        }
    }
}

/// Decodes the escapes of a path; `None` where the result is no text or could not name a file.
fn unescape(path: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let digits = std::str::from_utf8(after.get(..2)?).ok()?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        rest = &after[2..];
    }
    String::from_utf8(bytes)
        .ok()
        .filter(|path| !path.contains(['\0', '\\']))
}

fn media_type(file: &Path) -> &'static str {
    let extension = file
        .extension()
        .and_then(|extension| extension.to_str())
        .unwrap_or_default()
        .to_ascii_lowercase();
    match extension.as_str() {
        "html" | "htm" => "text/html",
        "xhtml" => "application/xhtml+xml",
        "xml" => "application/xml",
        "txt" => "text/plain",
        "css" => "text/css",
        "js" => "text/javascript",
        "json" => "application/json",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "gif" => "image/gif",
        "ico" => "image/x-icon",
        "pdf" => "application/pdf",
        "gz" => "application/gzip",
        "woff2" => "font/woff2",
        _ => "application/octet-stream",
    }
}
