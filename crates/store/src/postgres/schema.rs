//! The schema of the crawl's tables: made, brought up to date, and refused where it is not ours to change.

use tokio_postgres::Client;

use super::{failure::failure, lane::Target};
use crate::{CrawlIdentity, StoreError, stored::FORMAT_VERSION};

/// The migrations, in order; the n-th leads from format n to format n + 1. Never changed once released.
const MIGRATIONS: [&str; FORMAT_VERSION as usize] =
    [include_str!("../../migrations/0001_initial.sql")];

/// What the store remembers of the crawl.
pub(super) struct Opened {
    pub(super) identity: CrawlIdentity,
    pub(super) progress: Option<Vec<u8>>,
    /// The number of this opening.
    pub(super) epoch: i64,
}

/// Brings the schema to this version's format and returns what it remembers; a new one takes on the identity offered.
/// The caller holds the crawl's lock.
pub(super) async fn open(
    client: &Client,
    target: &Target,
    offered: &CrawlIdentity,
) -> Result<Opened, StoreError> {
    let sql = |error| failure(&error);
    check_encoding(client, target).await?;
    let exists = client
        .query_opt(
            "SELECT 1 FROM pg_catalog.pg_namespace WHERE nspname = $1",
            &[&target.schema],
        )
        .await
        .map_err(sql)?;
    // Not `IF NOT EXISTS`: that asks for the right to create schemas even where there is nothing to create.
    if exists.is_none() {
        client
            .batch_execute(&format!("CREATE SCHEMA {}", target.quoted_schema()))
            .await
            .map_err(sql)?;
    }
    let found = format_found(client, target).await?;
    if found > FORMAT_VERSION {
        return Err(StoreError::Incompatible(format!(
            "{} holds a store of format {found}, this version reads up to format {FORMAT_VERSION}",
            target.name()
        )));
    }
    if found < FORMAT_VERSION {
        migrate(client, found, offered).await?;
    }
    remembered(client).await
}

async fn check_encoding(client: &Client, target: &Target) -> Result<(), StoreError> {
    let row = client
        .query_one("SHOW server_encoding", &[])
        .await
        .map_err(|error| failure(&error))?;
    let encoding: String = row.try_get(0).map_err(|error| failure(&error))?;
    if encoding == "UTF8" {
        return Ok(());
    }
    Err(StoreError::Incompatible(format!(
        "{}: the database's encoding is {encoding}, a crawl needs UTF8 (CREATE DATABASE ... ENCODING 'UTF8')",
        target.name()
    )))
}

/// Returns whether there are a crawl's tables.
pub(super) async fn has_tables(client: &Client, target: &Target) -> Result<bool, StoreError> {
    Ok(format_found(client, target).await? > 0)
}

/// Returns the format of the tables found, 0 where there are none.
async fn format_found(client: &Client, target: &Target) -> Result<u32, StoreError> {
    let sql = |error| failure(&error);
    let rows = client
        .query(
            "SELECT relname::text FROM pg_catalog.pg_class JOIN pg_catalog.pg_namespace n ON n.oid = relnamespace \
             WHERE nspname = $1 AND relname IN ('meta', 'url_key', 'queue', 'page')",
            &[&target.schema],
        )
        .await
        .map_err(sql)?;
    if rows.is_empty() {
        return Ok(0);
    }
    let foreign = || {
        StoreError::Incompatible(format!(
            "{} holds tables that are not a crawl's (meta, url_key, queue or page); name a schema of its own",
            target.name()
        ))
    };
    if rows.len() < 4 {
        return Err(foreign());
    }
    let row = client
        .query_one("SELECT format_version FROM meta", &[])
        .await
        .map_err(|_| foreign())?;
    let format: i32 = row.try_get(0).map_err(|_| foreign())?;
    u32::try_from(format).map_err(|_| foreign())
}

/// Runs the migrations that are missing and notes the new format, all in one transaction.
async fn migrate(client: &Client, found: u32, offered: &CrawlIdentity) -> Result<(), StoreError> {
    let mut script = String::from("BEGIN;\n");
    for migration in &MIGRATIONS[found as usize..] {
        script.push_str(migration);
    }
    let migrated = async {
        client.batch_execute(&script).await?;
        if found == 0 {
            client
                .execute(
                    "INSERT INTO meta (format_version, crawl_id, key_seed, key_version) VALUES (0, $1, $2, $3)",
                    // The seed is 64 bits of any kind; PostgreSQL has them as a signed number.
                    &[&offered.crawl_id, &offered.key_seed.cast_signed(), &offered.key_version.cast_signed()],
                )
                .await?;
        }
        client
            .execute(
                "UPDATE meta SET format_version = $1",
                &[&FORMAT_VERSION.cast_signed()],
            )
            .await?;
        client.batch_execute("COMMIT").await
    };
    migrated
        .await
        .map_err(|error: tokio_postgres::Error| failure(&error))
}

/// Returns what the store remembers, and begins a new epoch.
async fn remembered(client: &Client) -> Result<Opened, StoreError> {
    let sql = |error| failure(&error);
    let row = client
        .query_opt(
            "UPDATE meta SET epoch = epoch + 1 RETURNING crawl_id, key_seed, key_version, progress, epoch",
            &[],
        )
        .await
        .map_err(sql)?
        .ok_or_else(|| StoreError::Corrupt("the table meta has no row".to_owned()))?;
    let identity = CrawlIdentity {
        crawl_id: row.try_get(0).map_err(sql)?,
        key_seed: row.try_get::<_, i64>(1).map_err(sql)?.cast_unsigned(),
        key_version: row.try_get::<_, i16>(2).map_err(sql)?.cast_unsigned(),
    };
    Ok(Opened {
        identity,
        progress: row.try_get(3).map_err(sql)?,
        epoch: row.try_get(4).map_err(sql)?,
    })
}

/// Returns the number of the latest opening.
pub(super) async fn epoch(client: &Client) -> Result<i64, StoreError> {
    let sql = |error| failure(&error);
    let row = client
        .query_one("SELECT epoch FROM meta", &[])
        .await
        .map_err(sql)?;
    row.try_get(0).map_err(sql)
}
