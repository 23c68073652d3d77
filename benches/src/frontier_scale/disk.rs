//! What a store takes on disk, part by part.

use std::{fs, os::unix::fs::MetadataExt as _, path::Path};

use anyhow::{Context as _, Result};

use crate::seen_test::server::{connect, runtime};

/// A part of a store and its bytes on disk.
pub type Part = (String, u64);

/// Returns the bytes that a folder's entries take, those of its subfolder `within` each by itself.
///
/// # Errors
///
/// Fails when the folder cannot be read.
pub fn of_folder(folder: &Path, within: &str) -> Result<Vec<Part>> {
    let mut parts = Vec::new();
    let mut other_bytes = 0;
    for entry in fs::read_dir(folder)?.flatten() {
        if entry.file_name() == within {
            for entry in fs::read_dir(entry.path())?.flatten() {
                let name = entry.file_name().to_string_lossy().into_owned();
                parts.push((format!("{within}/{name}"), bytes(&entry.path())));
            }
        } else {
            other_bytes += bytes(&entry.path());
        }
    }
    parts.sort_unstable();
    parts.push(("journals and the rest".to_owned(), other_bytes));
    Ok(parts)
}

/// Counts the blocks under a path. What vanishes meanwhile, as tables of the store do, takes none.
fn bytes(path: &Path) -> u64 {
    let Ok(metadata) = fs::symlink_metadata(path) else {
        return 0;
    };
    let mut sum = metadata.blocks() * 512;
    if metadata.is_dir() {
        for entry in fs::read_dir(path).into_iter().flatten().flatten() {
            sum += bytes(&entry.path());
        }
    }
    sum
}

/// Returns the bytes that each table of a schema and each of its indexes take.
///
/// # Errors
///
/// Fails when the server does.
pub fn of_schema(uri: &str, schema: &str) -> Result<Vec<Part>> {
    runtime()?.block_on(async {
        let client = connect(uri).await?;
        let rows = client
            .query(
                "SELECT relname::text, CASE relkind WHEN 'i' THEN pg_relation_size(c.oid) \
                     ELSE pg_table_size(c.oid) END \
                 FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace \
                 WHERE nspname = $1 AND relkind IN ('r', 'i') ORDER BY 1",
                &[&schema],
            )
            .await
            .context("the sizes of the tables cannot be read")?;
        rows.iter()
            .map(|row| {
                let bytes: i64 = row.try_get(1)?;
                Ok((row.try_get(0)?, bytes.unsigned_abs()))
            })
            .collect()
    })
}
