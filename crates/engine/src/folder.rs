//! The data folder: its lock, which crawl it belongs to, and the seeds of that crawl.

use std::{
    collections::BTreeSet,
    fs::{self, File, OpenOptions, TryLockError},
    io::ErrorKind,
    path::{Path, PathBuf},
    thread,
    time::Duration,
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
/// How often a lock is tried for that others hold. `bloomcrawl status` may hold it for a moment, and must keep no crawl
/// from starting.
const LOCK_TRIES: u32 = 20;
/// The pause between two tries.
const LOCK_PAUSE: Duration = Duration::from_millis(5);
/// The file of all seeds that the crawl was ever given, canonical, one a line. Its scope is drawn from them.
const SEEDS_FILE: &str = "seeds.txt";

/// A locked data folder. The lock ends with the value, and with the process, however it ends.
pub(crate) struct Folder {
    path: PathBuf,
    lock: File,
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
        Self::open_pausing(path, || thread::sleep(LOCK_PAUSE))
    }

    /// Opens as [`Folder::open`] does, with `pause` between two tries.
    fn open_pausing(path: &Path, mut pause: impl FnMut()) -> Result<Self, EngineError> {
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
        for _ in 0..LOCK_TRIES {
            match lock.try_lock() {
                Ok(()) => {
                    return Ok(Self {
                        path: path.to_path_buf(),
                        lock,
                    });
                }
                Err(TryLockError::WouldBlock) => pause(),
                Err(TryLockError::Error(error)) => {
                    return Err(EngineError::file(&lock_path)(error));
                }
            }
        }
        Err(EngineError::FolderInUse(path.to_path_buf()))
    }

    /// Locks the folder of a crawl that was begun, for this process, and returns what it says of its crawl.
    pub(crate) fn open_begun(path: &Path) -> Result<(Self, FolderIdentity), EngineError> {
        // Looked at before the lock is made, so that a folder of something else stays as it is.
        identity(path)?.ok_or_else(|| no_crawl(path))?;
        let folder = Self::open(path)?;
        let identity = folder.identity()?.ok_or_else(|| no_crawl(path))?;
        Ok((folder, identity))
    }

    /// Reads which crawl the folder belongs to; `None` if it belongs to none yet.
    pub(crate) fn identity(&self) -> Result<Option<FolderIdentity>, EngineError> {
        identity(&self.path)
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

impl Drop for Folder {
    /// Ends the lock, which to close the file might not: a process that this one is just starting has the same file open
    /// until it has become another program.
    fn drop(&mut self) {
        // It ends with the process at the latest.
        drop(self.lock.unlock());
    }
}

/// Reads which crawl the folder at `path` belongs to, whoever has it locked; `None` if it belongs to none.
pub(crate) fn identity(path: &Path) -> Result<Option<FolderIdentity>, EngineError> {
    let path = path.join(IDENTITY_FILE);
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

/// Returns whether a process has the folder at `path` locked. To find out it holds the lock itself, shared and for a
/// moment; one that starts then tries again.
pub(crate) fn is_locked(path: &Path) -> Result<bool, EngineError> {
    let path = path.join(LOCK_FILE);
    let lock = match File::open(&path) {
        Ok(lock) => lock,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(EngineError::file(&path)(error)),
    };
    match lock.try_lock_shared() {
        Ok(()) => Ok(false),
        Err(TryLockError::WouldBlock) => Ok(true),
        Err(TryLockError::Error(error)) => Err(EngineError::file(&path)(error)),
    }
}

/// Returns the refusal of a folder that belongs to no crawl.
pub(crate) fn no_crawl(path: &Path) -> EngineError {
    EngineError::Config(format!(
        "{} is the data folder of no crawl: it holds no {IDENTITY_FILE}; name one with --data",
        path.display()
    ))
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
    fn the_lock_ends_though_the_file_is_open_in_a_process_that_is_being_started() {
        let place = tempfile::tempdir().unwrap();
        let first = Folder::open(place.path()).unwrap();
        let _of_the_child = first.lock.try_clone().unwrap();
        drop(first);
        assert!(Folder::open(place.path()).is_ok());
    }

    #[test]
    fn whoever_looks_at_the_lock_keeps_no_crawl_from_starting() {
        let place = tempfile::tempdir().unwrap();
        assert!(!is_locked(place.path()).unwrap());
        let first = Folder::open(place.path()).unwrap();
        assert!(is_locked(place.path()).unwrap());
        drop(first);
        let looking = File::open(place.path().join(LOCK_FILE)).unwrap();
        looking.try_lock_shared().unwrap();
        let mut looking = Some(looking);
        let mut pause_count = 0;
        let opened = Folder::open_pausing(place.path(), || {
            pause_count += 1;
            if pause_count == 3 {
                drop(looking.take());
            }
        });
        assert!(opened.is_ok());
        assert_eq!(pause_count, 3);
        drop(opened);
        assert!(!is_locked(place.path()).unwrap());
    }

    #[test]
    fn a_folder_of_no_crawl_is_left_as_it_is() {
        let place = tempfile::tempdir().unwrap();
        let refusal = Folder::open_begun(place.path()).err().unwrap().to_string();
        assert!(refusal.contains("holds no crawl.json"), "{refusal}");
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
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
