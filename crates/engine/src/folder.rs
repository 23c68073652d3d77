//! The data folder: its lock, which crawl it belongs to, and the seeds of that crawl.

use std::{
    collections::BTreeSet,
    fs::{self, File, OpenOptions, TryLockError},
    io::ErrorKind,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};
use types::{CanonicalOptions, CanonicalUrl};

use crate::{
    EngineError,
    output::{PAGES_FILE, WARC_FOLDER},
};

/// The file that names the crawl a folder belongs to.
const IDENTITY_FILE: &str = "crawl.json";
/// The file whose lock keeps a second process out.
const LOCK_FILE: &str = "lock";
/// The file of all seeds that the crawl was ever given, canonical, one a line. Its scope is drawn from them.
const SEEDS_FILE: &str = "seeds.txt";

/// A locked data folder. The lock ends with the value, and with the process, however it ends.
pub(crate) struct Folder {
    path: PathBuf,
    _lock: File,
}

/// What a folder says of its crawl.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FolderIdentity {
    /// The id of the crawl, which the store must have as well.
    pub(crate) crawl_id: String,
    /// The rules that made its URLs canonical; under others the same pages would have other keys.
    pub(crate) canonical: CanonicalRules,
}

/// [`CanonicalOptions`] as they are kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CanonicalRules {
    url_bytes_max: usize,
    drop_tracking: bool,
    sort_query: bool,
    drop_session_ids: bool,
}

impl From<&CanonicalOptions> for CanonicalRules {
    fn from(options: &CanonicalOptions) -> Self {
        Self {
            url_bytes_max: options.url_bytes_max,
            drop_tracking: options.drop_tracking,
            sort_query: options.sort_query,
            drop_session_ids: options.drop_session_ids,
        }
    }
}

impl Folder {
    /// Makes the folder if need be, and locks it for this process.
    pub(crate) fn open(path: &Path) -> Result<Self, EngineError> {
        fs::create_dir_all(path).map_err(|error| EngineError::Folder {
            path: path.to_path_buf(),
            source: error,
        })?;
        let lock_path = path.join(LOCK_FILE);
        let lock = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&lock_path)
            .map_err(|error| EngineError::Folder {
                path: path.to_path_buf(),
                source: error,
            })?;
        match lock.try_lock() {
            Ok(()) => Ok(Self {
                path: path.to_path_buf(),
                _lock: lock,
            }),
            Err(TryLockError::WouldBlock) => Err(EngineError::FolderInUse(path.to_path_buf())),
            Err(TryLockError::Error(error)) => Err(EngineError::file(&lock_path)(error)),
        }
    }

    /// Reads which crawl the folder belongs to; `None` if it belongs to none yet.
    pub(crate) fn identity(&self) -> Result<Option<FolderIdentity>, EngineError> {
        let path = self.path.join(IDENTITY_FILE);
        let Some(bytes) = read_if_there(&path)? else {
            return Ok(None);
        };
        serde_json::from_slice(&bytes)
            .map(Some)
            .map_err(|error| EngineError::Damaged {
                path,
                problem: format!("expected the id and the rules of a crawl: {error}"),
            })
    }

    /// Makes the folder belong to a crawl.
    pub(crate) fn set_identity(&self, identity: &FolderIdentity) -> Result<(), EngineError> {
        let bytes = serde_json::to_vec(identity).expect("texts, numbers and booleans serialize");
        self.replace(IDENTITY_FILE, &bytes)
    }

    /// Returns whether outputs of a crawl are there.
    pub(crate) fn has_outputs(&self) -> bool {
        let has_pages =
            fs::metadata(self.path.join(PAGES_FILE)).is_ok_and(|metadata| metadata.len() > 0);
        let has_archive = fs::read_dir(self.path.join(WARC_FOLDER))
            .is_ok_and(|mut entries| entries.next().is_some());
        has_pages || has_archive
    }

    /// Adds `seeds` to those that the crawl was given in earlier runs, and returns all.
    pub(crate) fn add_seeds(
        &self,
        seeds: &[CanonicalUrl],
    ) -> Result<Vec<CanonicalUrl>, EngineError> {
        let path = self.path.join(SEEDS_FILE);
        let earlier = read_if_there(&path)?;
        if earlier.is_none() && self.identity()?.is_some() {
            return Err(EngineError::Damaged {
                path,
                problem: "missing, but the crawl was begun with seeds; restore the file, or begin a new crawl".to_owned(),
            });
        }
        let is_new = earlier.is_none();
        let earlier = earlier.unwrap_or_default();
        let mut all = BTreeSet::new();
        for line in String::from_utf8_lossy(&earlier).lines() {
            let seed = CanonicalUrl::from_stored(line.to_owned());
            all.insert(seed.map_err(|error| EngineError::Damaged {
                path: path.clone(),
                problem: error.to_string(),
            })?);
        }
        let earlier_count = all.len();
        all.extend(seeds.iter().cloned());
        if is_new || all.len() > earlier_count {
            let lines: String = all.iter().flat_map(|seed| [seed.as_str(), "\n"]).collect();
            self.replace(SEEDS_FILE, lines.as_bytes())?;
        }
        Ok(all.into_iter().collect())
    }

    /// Writes a file whole or not at all, also over a power cut.
    fn replace(&self, name: &str, bytes: &[u8]) -> Result<(), EngineError> {
        let path = self.path.join(name);
        let temporary = self.path.join(format!("{name}.new"));
        fs::write(&temporary, bytes).map_err(EngineError::file(&temporary))?;
        File::open(&temporary)
            .and_then(|file| file.sync_all())
            .map_err(EngineError::file(&temporary))?;
        fs::rename(&temporary, &path).map_err(EngineError::file(&path))?;
        sync_folder(&self.path)
    }
}

/// Makes the names in a folder survive a power cut.
pub(crate) fn sync_folder(path: &Path) -> Result<(), EngineError> {
    File::open(path)
        .and_then(|folder| folder.sync_all())
        .map_err(EngineError::file(path))
}

fn read_if_there(path: &Path) -> Result<Option<Vec<u8>>, EngineError> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(EngineError::file(path)(error)),
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a failed set-up fails the test")]

    use types::Canonicalizer;

    use super::*;

    #[test]
    fn a_second_holder_is_refused() {
        let place = tempfile::tempdir().unwrap();
        let first = Folder::open(place.path()).unwrap();
        assert!(matches!(
            Folder::open(place.path()),
            Err(EngineError::FolderInUse(_))
        ));
        drop(first);
        assert!(Folder::open(place.path()).is_ok());
    }

    #[test]
    fn seeds_of_all_runs_are_kept() {
        let place = tempfile::tempdir().unwrap();
        let folder = Folder::open(place.path()).unwrap();
        let canonicalizer = Canonicalizer::default();
        let [a, b] = ["http://a.example/", "http://b.example/"]
            .map(|url| canonicalizer.canonicalize(url).unwrap());
        assert_eq!(
            folder.add_seeds(std::slice::from_ref(&a)).unwrap(),
            vec![a.clone()]
        );
        assert_eq!(
            folder.add_seeds(std::slice::from_ref(&b)).unwrap(),
            vec![a.clone(), b.clone()]
        );
        assert_eq!(folder.add_seeds(&[]).unwrap(), vec![a, b]);
    }
}
