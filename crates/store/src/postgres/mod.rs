//! The `PostgreSQL` backend: one schema a crawl, three connections, batches only.
//!
//! Commits, confirms and reads of the queue each have a connection of their own, so that none waits behind another.
//! The session that commits holds an advisory lock on the schema, so a pooler in front of the server has to pool by
//! session. A connection that was lost is remade by the next call.

mod copied;
mod failure;
mod lane;
mod param;
mod read;
mod schema;
mod write;

use std::{future::Future, time::Duration};

use tokio::runtime::{Builder, Handle, Runtime};
use tokio_postgres::{Config, config::SslMode};
use types::{Host, KeySeed, QueuePosition, QueuedUrl, UrlKey};

use self::lane::{Lane, Target};
use crate::{
    CommitBatch, CrawlIdentity, OpenedStore, Store, StoreCounters, StoreError, counters::CallTally,
};

/// The longest name the server keeps, in bytes; it cuts longer ones silently.
const SCHEMA_BYTES_MAX: usize = 63;

/// How long a connection may take to be made, and sent data to be acknowledged, where the connection string is silent.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Opens the store in `schema` of the database at `uri` (`postgres://...` or the keyword form), or creates it there
/// with the identity `offered`.
///
/// # Errors
///
/// [`StoreError::Locked`] when another process holds the schema's crawl, [`StoreError::Unavailable`] when the server
/// does not answer, [`StoreError::Incompatible`] when the schema holds something else or a newer format, the
/// database's encoding is not UTF8, or the connection string asks for TLS, and [`StoreError::Backend`] for all else.
///
/// # Panics
///
/// Opening panics when it is called from async code, and so does every method of the store: they block.
pub fn open(uri: &str, schema: &str, offered: &CrawlIdentity) -> Result<OpenedStore, StoreError> {
    let target = target(uri, schema)?;
    let runtime = Builder::new_multi_thread()
        .worker_threads(1)
        .thread_name("store-postgres")
        .enable_all()
        .build()
        .map_err(|error| StoreError::Backend(format!("no thread for PostgreSQL: {error}")))?;
    let (opened, commits) = runtime.block_on(async {
        let client = lane::connect(&target).await?;
        lane::lock(&client, &target).await?;
        let opened = schema::open(&client, &target, offered).await?;
        let commits = Lane::new(target.clone(), write::STATEMENTS, Some(opened.epoch));
        commits.adopt(client).await?;
        Ok((opened, commits))
    })?;
    let store = PostgresStore {
        key_seed: KeySeed::new(opened.identity.key_seed),
        commits,
        confirms: Lane::new(target.clone(), read::CONFIRM_STATEMENTS, None),
        reads: Lane::new(target, read::READ_STATEMENTS, None),
        tally: CallTally::default(),
        handle: runtime.handle().clone(),
        _runtime: RuntimeThread(Some(runtime)),
    };
    Ok(OpenedStore {
        store: Box::new(store),
        identity: opened.identity,
        progress: opened.progress,
    })
}

/// Returns whether [`open`] would find a crawl's tables in `schema` of the database at `uri`, and not make them. Changes
/// nothing, and takes no lock.
///
/// # Errors
///
/// As [`open`], but for the lock.
///
/// # Panics
///
/// Panics when it is called from async code: it blocks.
pub fn is_there(uri: &str, schema: &str) -> Result<bool, StoreError> {
    let target = target(uri, schema)?;
    let runtime = Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| StoreError::Backend(format!("no thread for PostgreSQL: {error}")))?;
    runtime.block_on(async {
        let client = lane::connect(&target).await?;
        schema::has_tables(&client, &target).await
    })
}

fn target(uri: &str, schema: &str) -> Result<Target, StoreError> {
    if schema.is_empty() || schema.len() > SCHEMA_BYTES_MAX || schema.contains('\0') {
        return Err(StoreError::Backend(format!(
            "schema {schema:?}: a schema's name has 1 to {SCHEMA_BYTES_MAX} bytes and no NUL"
        )));
    }
    let mut config: Config = uri.parse().map_err(|error| {
        StoreError::Backend(format!(
            "the PostgreSQL connection string is not valid: {error}"
        ))
    })?;
    if config.get_ssl_mode() == SslMode::Require {
        return Err(StoreError::Incompatible(
            "sslmode=require: connections to PostgreSQL are made without TLS; use a local socket, a private network \
             or a TLS tunnel, and sslmode=disable"
                .to_owned(),
        ));
    }
    if config.get_connect_timeout().is_none() {
        config.connect_timeout(TIMEOUT);
    }
    if config.get_tcp_user_timeout().is_none() {
        config.tcp_user_timeout(TIMEOUT);
    }
    if config.get_application_name().is_none() {
        config.application_name("bloomcrawl");
    }
    config.keepalives_idle(config.get_keepalives_idle().min(TIMEOUT));
    Ok(Target {
        config,
        schema: schema.to_owned(),
    })
}

/// The runtime that drives the connections; dropped without waiting, since waiting is forbidden in async code.
struct RuntimeThread(Option<Runtime>);

impl Drop for RuntimeThread {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

struct PostgresStore {
    key_seed: KeySeed,
    commits: Lane,
    confirms: Lane,
    reads: Lane,
    tally: CallTally,
    handle: Handle,
    _runtime: RuntimeThread,
}

impl PostgresStore {
    fn wait<T>(&self, call: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
        self.handle.block_on(call)
    }

    fn partition(&self, host: &Host) -> i16 {
        i16::from(self.key_seed.partition(host.as_str()).get())
    }
}

impl Store for PostgresStore {
    fn confirm(&self, keys: &[UrlKey]) -> Result<Vec<bool>, StoreError> {
        let mut present = Vec::with_capacity(keys.len());
        for chunk in keys.chunks(read::CONFIRM_KEYS_MAX) {
            let answers = self.wait(
                self.confirms
                    .with(async |session| read::confirm(session, chunk).await),
            )?;
            self.tally.confirmed(chunk.len());
            present.extend(answers);
        }
        Ok(present)
    }

    fn commit(&self, batch: &CommitBatch<'_>) -> Result<(), StoreError> {
        self.wait(
            self.commits
                .with(async |session| write::commit(session, batch, self.key_seed).await),
        )?;
        self.tally.committed();
        Ok(())
    }

    fn is_durable_at_commit(&self) -> bool {
        true
    }

    /// Does nothing: the server has flushed its log before it answers a commit.
    fn sync(&self) -> Result<(), StoreError> {
        Ok(())
    }

    fn read_queue(
        &self,
        host: &Host,
        from: QueuePosition,
        limit: usize,
    ) -> Result<Vec<QueuedUrl>, StoreError> {
        let partition = self.partition(host);
        let entries = self.wait(
            self.reads
                .with(async |session| read::queue(session, partition, host, from, limit).await),
        )?;
        self.tally.queue_read();
        Ok(entries)
    }

    fn queued_hosts(
        &self,
        each: &mut dyn FnMut(Host, u64, QueuePosition),
    ) -> Result<(), StoreError> {
        self.wait(
            self.reads
                .with(async |session| read::queued_hosts(session, each).await),
        )
    }

    fn scan_keys(&self, each: &mut dyn FnMut(&[UrlKey])) -> Result<u64, StoreError> {
        self.wait(
            self.reads
                .with(async |session| read::scan_keys(session, each).await),
        )
    }

    fn scan_pages(&self, each: &mut dyn FnMut(UrlKey, &[u8])) -> Result<(), StoreError> {
        self.wait(
            self.reads
                .with(async |session| read::scan_pages(session, each).await),
        )
    }

    fn next_sequence(&self) -> Result<u64, StoreError> {
        self.wait(
            self.reads
                .with(async |session| read::next_sequence(session).await),
        )
    }

    fn counters(&self) -> StoreCounters {
        self.tally.read()
    }
}
