//! An embedded store made of keys alone, for benches that need tens of millions of them.

use std::path::Path;

use fjall::PersistMode;
use types::UrlKey;

use super::{
    create, failure,
    layout::{self, Keyspaces},
};
use crate::{CrawlIdentity, StoreError};

/// Creates a store in the new `folder` whose key table holds `keys`, which ascend, and whose queue and records are
/// empty. The tables are written in order, as they are where compaction has caught up with the commits.
///
/// # Errors
///
/// As [`super::open`].
///
/// # Panics
///
/// Panics if the keys do not ascend.
pub fn create_with_keys(
    folder: &Path,
    offered: &CrawlIdentity,
    keys: impl IntoIterator<Item = UrlKey>,
) -> Result<(), StoreError> {
    create(folder, offered)?;
    let failed = |error| failure(folder, error);
    let database = layout::open_database(folder).map_err(failed)?;
    let keyspaces = Keyspaces::open(&database, 1).map_err(failed)?;
    let mut ingestion = keyspaces.keys.start_ingestion().map_err(failed)?;
    for key in keys {
        ingestion
            .write(key.to_bytes().as_slice(), [].as_slice())
            .map_err(failed)?;
    }
    ingestion.finish().map_err(failed)?;
    database.persist(PersistMode::SyncAll).map_err(failed)
}
