//! What a power cut or an unlucky hand may do to a data folder: files cut, put back to what they were, removed, or a bit of
//! them flipped.

use std::{
    fmt, fs,
    ops::Range,
    path::{Path, PathBuf},
};

use fastrand::Rng;

/// One change to a copy of a data folder. Paths are relative to the folder.
pub(crate) enum Mutation {
    /// The file ends at this byte.
    Cut { file: PathBuf, at: u64 },
    /// The files are what they were in an earlier copy; one that was not there then is gone.
    RollBack { files: Vec<PathBuf>, copy: usize },
    /// The file is gone.
    Delete { file: PathBuf },
    /// One bit is another.
    Flip { file: PathBuf, at: u64, bit: u32 },
}

impl fmt::Display for Mutation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cut { file, at } => write!(formatter, "{} cut at byte {at}", file.display()),
            Self::RollBack { files, copy } => {
                write!(formatter, "rolled back to copy {copy}:")?;
                files
                    .iter()
                    .try_for_each(|file| write!(formatter, " {}", file.display()))
            }
            Self::Delete { file } => write!(formatter, "{} removed", file.display()),
            Self::Flip { file, at, bit } => {
                write!(
                    formatter,
                    "{}: bit {bit} of byte {at} flipped",
                    file.display()
                )
            }
        }
    }
}

impl Mutation {
    /// Draws a change to the last of `copies`. Bits are flipped in `flippable` alone, where each has to be noticed.
    pub(crate) fn draw(
        random: &mut Rng,
        copies: &[PathBuf],
        flippable: &[(PathBuf, Range<u64>)],
    ) -> Self {
        let (latest, earlier) = copies.split_last().expect("there are copies");
        let mut files = files(latest);
        // A start looks at no archive but the one that it goes on writing.
        let is_archive = |file: &PathBuf| file.starts_with("warc");
        let current = files.iter().rfind(|file| is_archive(file)).cloned();
        files.retain(|file| !is_archive(file) || Some(file) == current.as_ref());
        match random.u32(..100) {
            0..35 => {
                let file = draw_file(random, &files);
                let length = length(&latest.join(&file));
                Self::Cut {
                    at: random.u64(..length.max(1)),
                    file,
                }
            }
            35..70 => Self::RollBack {
                files: draw_files(random, &files),
                copy: random.usize(..earlier.len()),
            },
            70..85 => Self::Delete {
                file: draw_file(random, &files),
            },
            _ => {
                let (file, range) = &flippable[random.usize(..flippable.len())];
                Self::Flip {
                    file: file.clone(),
                    at: random.u64(range.clone()),
                    bit: random.u32(..8),
                }
            }
        }
    }

    /// Makes the change in `data`, a copy of the last of `copies`.
    pub(crate) fn apply(&self, data: &Path, copies: &[PathBuf]) {
        match self {
            Self::Cut { file, at } => {
                let file = fs::OpenOptions::new().write(true).open(data.join(file));
                file.and_then(|file| file.set_len(*at))
                    .expect("the copy can be written");
            }
            Self::RollBack { files, copy } => {
                for file in files {
                    let before = copies[*copy].join(file);
                    let _ = fs::remove_file(data.join(file));
                    if before.exists() {
                        fs::copy(before, data.join(file)).expect("the copy can be written");
                    }
                }
            }
            Self::Delete { file } => {
                fs::remove_file(data.join(file)).expect("the copy can be written");
            }
            Self::Flip { file, at, bit } => {
                let path = data.join(file);
                let mut bytes = fs::read(&path).expect("the copy can be read");
                let at = usize::try_from(*at).expect("files are small");
                bytes[at] ^= 1 << bit;
                fs::write(&path, bytes).expect("the copy can be written");
            }
        }
    }

    /// Returns whether a bit was flipped, which has to be noticed whatever comes of it.
    pub(crate) const fn is_flip(&self) -> bool {
        matches!(self, Self::Flip { .. })
    }

    /// Returns whether `text` names what was changed: one of the files, or the store.
    pub(crate) fn is_named_in(&self, text: &str) -> bool {
        let files = match self {
            Self::Cut { file, .. } | Self::Delete { file } | Self::Flip { file, .. } => {
                std::slice::from_ref(file)
            }
            Self::RollBack { files, .. } => files.as_slice(),
        };
        files.iter().any(|file| {
            let name = file.file_name().unwrap_or_default().to_string_lossy();
            text.contains(&*name) || file.starts_with("store") && text.contains("store")
        })
    }
}

/// Draws a file, each kind of them as often as the others: the store has more files than all else.
fn draw_file(random: &mut Rng, files: &[PathBuf]) -> PathBuf {
    let kind = draw_kind(random, files);
    let same: Vec<_> = files.iter().filter(|file| kind_of(file) == kind).collect();
    same[random.usize(..same.len())].clone()
}

/// Draws files that are put back together: one, all of some kinds, or any.
fn draw_files(random: &mut Rng, files: &[PathBuf]) -> Vec<PathBuf> {
    let first = draw_file(random, files);
    let chosen: Vec<bool> = match random.u32(..3) {
        0 => vec![false; files.len()],
        1 => {
            let kinds = [
                kind_of(&first),
                draw_kind(random, files),
                draw_kind(random, files),
            ];
            let is_chosen = |file: &PathBuf| kinds.contains(&kind_of(file));
            files.iter().map(is_chosen).collect()
        }
        _ => files.iter().map(|_| random.bool()).collect(),
    };
    let mut drawn: Vec<PathBuf> = files
        .iter()
        .zip(chosen)
        .filter(|(file, is_chosen)| *is_chosen || **file == first)
        .map(|(file, _)| file.clone())
        .collect();
    drawn.sort();
    drawn
}

fn draw_kind(random: &mut Rng, files: &[PathBuf]) -> String {
    let mut kinds: Vec<String> = files.iter().map(|file| kind_of(file)).collect();
    kinds.dedup();
    kinds.sort();
    kinds.dedup();
    kinds[random.usize(..kinds.len())].clone()
}

/// Returns the first part of a path; all segments of the key log are of one kind.
fn kind_of(file: &Path) -> String {
    let first = file.iter().next().unwrap_or_default().to_string_lossy();
    if first.starts_with("keys-") {
        "keys".to_owned()
    } else {
        first.into_owned()
    }
}

/// Returns the files below a data folder, relative to it, in order; its lock says nothing.
pub(crate) fn files(data: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![data.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("the folder can be read") {
            let path = entry.expect("the folder can be read").path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let relative = path.strip_prefix(data).expect("it is below the folder");
                found.push(relative.to_owned());
            }
        }
    }
    found.retain(|file| file != Path::new("lock"));
    found.sort();
    found
}

/// Copies a data folder.
pub(crate) fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    for file in files(from) {
        let target = to.join(&file);
        fs::create_dir_all(target.parent().expect("it has a folder")).expect("a folder");
        fs::copy(from.join(&file), target).expect("the file can be copied");
    }
}

/// Returns all that a start reads of snapshot and key log, when the store has the keys up to `to` and the snapshot those
/// up to `from`. What the log holds beyond was never committed, and what it holds before is in the snapshot.
pub(crate) fn read_at_start(data: &Path, from: u64, to: u64) -> Vec<(PathBuf, Range<u64>)> {
    let snapshot = PathBuf::from("filter.snapshot");
    let mut ranges = vec![(snapshot.clone(), 0..length(&data.join(snapshot)))];
    let mut at = from;
    while at < to {
        let file = PathBuf::from(format!("keys-{at}.log"));
        let bytes = fs::read(data.join(&file)).expect("the segment is there");
        let mut end = 32;
        // A frame: its first sequence, the number of keys, the keys, a checksum.
        while let Some(head) = bytes.get(end..end + 12).filter(|_| at < to) {
            let count = u32::from_le_bytes(head[8..].try_into().expect("four bytes"));
            at += u64::from(count);
            end += 12 + 16 * count as usize + 8;
            let next = data.join(format!("keys-{at}.log"));
            if next.exists() {
                break;
            }
        }
        ranges.push((file, 0..end as u64));
    }
    ranges
}

fn length(path: &Path) -> u64 {
    fs::metadata(path).expect("the file is there").len()
}
