//! The WARC files: begun with a warcinfo record, closed at a size, one gzip member a record.

use std::{
    fs,
    path::{Path, PathBuf},
};

use jiff::Timestamp;
use types::WarcLocation;

use super::{Appender, WARC_FOLDER};
use crate::{EngineError, folder::sync_folder, saved::OutputPositions};

/// Makes the first record of a file, given the file's name and the time: a warcinfo record as a gzip member.
pub(crate) type WarcinfoMaker = Box<dyn FnMut(&str, Timestamp) -> Vec<u8> + Send>;

/// The WARC files of one crawl; at most one is open, and none before the first record.
pub(crate) struct WarcFiles {
    folder: PathBuf,
    bytes_max: u64,
    warcinfo: WarcinfoMaker,
    file_count: u64,
    current: Option<(String, Appender)>,
}

impl WarcFiles {
    /// Opens the folder, cuts the current file back to its committed length, and removes files begun after the last
    /// commit, which hold no finished page.
    pub(crate) fn open(
        data: &Path,
        committed: &OutputPositions,
        bytes_max: u64,
        warcinfo: WarcinfoMaker,
    ) -> Result<Self, EngineError> {
        let folder = data.join(WARC_FOLDER);
        if !folder.is_dir() {
            fs::create_dir_all(&folder).map_err(EngineError::file(&folder))?;
        }
        sync_folder(data)?;
        remove_uncommitted(&folder, committed.warc_files)?;
        let current = match &committed.warc_name {
            Some(name) => Some((
                name.clone(),
                Appender::open(&folder.join(name), committed.warc_bytes)?,
            )),
            None => None,
        };
        Ok(Self {
            folder,
            bytes_max,
            warcinfo,
            file_count: committed.warc_files,
            current,
        })
    }

    /// Appends records that must stand in one file; returns where they begin and their length.
    pub(crate) fn append(&mut self, members: &[u8]) -> Result<WarcLocation, EngineError> {
        let is_full = self
            .current
            .as_ref()
            .is_some_and(|(_, file)| file.bytes() >= self.bytes_max);
        if is_full && let Some((_, mut file)) = self.current.take() {
            file.flush()?;
            file.sync()?;
        }
        if self.current.is_none() {
            self.begin_file()?;
        }
        let Some((name, file)) = &mut self.current else {
            return Err(EngineError::Internal("no WARC file is open".to_owned()));
        };
        let offset = file.append(members)?;
        Ok(WarcLocation {
            file: name.clone(),
            offset,
            length: members.len() as u64,
        })
    }

    fn begin_file(&mut self) -> Result<(), EngineError> {
        let now = Timestamp::now();
        let name = format!(
            "bloomcrawl-{}-{:05}.warc.gz",
            now.strftime("%Y%m%d%H%M%S"),
            self.file_count
        );
        let mut file = Appender::open(&self.folder.join(&name), 0)?;
        file.append(&(self.warcinfo)(&name, now))?;
        self.file_count += 1;
        self.current = Some((name, file));
        Ok(())
    }

    /// Hands everything to the system and notes how far the files reach.
    pub(crate) fn flush(&mut self, positions: &mut OutputPositions) -> Result<(), EngineError> {
        positions.warc_files = self.file_count;
        if let Some((name, file)) = &mut self.current {
            positions.warc_bytes = file.flush()?;
            positions.warc_name = Some(name.clone());
        }
        Ok(())
    }

    /// Makes everything flushed survive a power cut.
    pub(crate) fn sync(&mut self) -> Result<(), EngineError> {
        self.current
            .as_ref()
            .map_or(Ok(()), |(_, file)| file.sync())
    }
}

/// Returns the number of a WARC file, the last part of its name; `None` if it is none of ours.
pub(crate) fn file_number(path: &Path) -> Option<u64> {
    let name = path.file_name()?.to_str()?;
    let (_, number) = name
        .strip_prefix("bloomcrawl-")?
        .strip_suffix(".warc.gz")?
        .rsplit_once('-')?;
    number.parse().ok()
}

/// Removes files whose number, the last part of their name, is not below `file_count`.
fn remove_uncommitted(folder: &Path, file_count: u64) -> Result<(), EngineError> {
    for entry in fs::read_dir(folder).map_err(EngineError::file(folder))? {
        let path = entry.map_err(EngineError::file(folder))?.path();
        if file_number(&path).is_some_and(|number| number >= file_count) {
            fs::remove_file(&path).map_err(EngineError::file(&path))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a failed set-up fails the test")]

    use super::*;

    fn files(folder: &Path) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(folder.join(WARC_FOLDER))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    fn open(folder: &Path, positions: &OutputPositions) -> WarcFiles {
        WarcFiles::open(folder, positions, 10, Box::new(|_, _| b"info".to_vec())).unwrap()
    }

    #[test]
    fn files_rotate_by_size_and_uncommitted_ones_go() {
        let folder = tempfile::tempdir().unwrap();
        let mut warc = open(folder.path(), &OutputPositions::default());
        let first = warc.append(b"0123456789").unwrap();
        assert_eq!((first.offset, first.length), (4, 10));
        let mut positions = OutputPositions::default();
        warc.flush(&mut positions).unwrap();
        let second = warc.append(b"next").unwrap();
        assert_ne!(first.file, second.file);
        assert_eq!(second.offset, 4);
        warc.flush(&mut OutputPositions::default()).unwrap();
        assert_eq!(files(folder.path()).len(), 2);
        drop(warc);
        let mut warc = open(folder.path(), &positions);
        assert_eq!(files(folder.path()), vec![first.file]);
        assert_eq!(warc.append(b"again").unwrap().offset, 4);
    }
}
