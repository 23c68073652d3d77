//! `PostgreSQL` as the benchmark uses it: a schema a run, and the CPU time of all its processes.

use anyhow::{Context as _, Result};
use tokio::runtime::{Builder, Runtime};
use tokio_postgres::{Client, NoTls};

use super::meter::ServerProcess;

/// A database, and a schema in it for one run.
pub struct Database {
    uri: String,
    schema: String,
    process: Option<ServerProcess>,
}

impl Database {
    /// Names a schema of the database at `uri`, which is not there yet.
    ///
    /// # Errors
    ///
    /// Fails when the server does not answer.
    pub fn new(uri: &str) -> Result<Self> {
        let schema = format!("bench_{:016x}", fastrand::u64(..));
        let runtime = runtime()?;
        let process_id: Option<i64> = runtime.block_on(async {
            let client = connect(uri).await?;
            // It lives as long as the server, and is a child of its first process.
            let row = client
                .query_opt(
                    "SELECT pid::bigint FROM pg_stat_activity WHERE backend_type = 'checkpointer'",
                    &[],
                )
                .await?;
            anyhow::Ok(row.map(|row| row.get(0)))
        })?;
        let process =
            process_id.and_then(|id| ServerProcess::parent_of(u32::try_from(id).ok()?).ok());
        Ok(Self {
            uri: uri.to_owned(),
            schema,
            process,
        })
    }

    /// Returns the connection string.
    #[must_use]
    pub fn uri(&self) -> &str {
        &self.uri
    }

    /// Returns the schema's name; it needs no quotes.
    #[must_use]
    pub fn schema(&self) -> &str {
        &self.schema
    }

    /// Returns the server's first process; `None` where it is not on this machine.
    #[must_use]
    pub const fn process(&self) -> Option<ServerProcess> {
        self.process
    }

    /// Returns the CPU seconds of the server's processes so far, after it has written what it had put off, where it lets
    /// us have that done, so that this counts as its work too. `None` where it is not on this machine.
    #[must_use]
    pub fn cpu_seconds_settled(&self) -> Option<f64> {
        let process = self.process?;
        let settled: Result<()> = runtime().and_then(|runtime| {
            runtime.block_on(async {
                let client = connect(&self.uri).await?;
                Ok(client.batch_execute("CHECKPOINT").await?)
            })
        });
        // A server that is not ours may refuse; then its work is counted as far as it is done.
        drop(settled);
        Some(process.cpu().as_secs_f64())
    }

    /// Drops the schema.
    ///
    /// # Errors
    ///
    /// Fails when the server does not answer.
    pub fn drop_schema(&self) -> Result<()> {
        runtime()?.block_on(async {
            let client = connect(&self.uri).await?;
            let sql = format!("DROP SCHEMA IF EXISTS {} CASCADE", self.schema);
            client
                .batch_execute(&sql)
                .await
                .with_context(|| format!("the schema {} cannot be dropped", self.schema))
        })
    }
}

/// Makes a runtime that drives connections while it is waited on.
///
/// # Errors
///
/// Fails when the system does not let it.
pub fn runtime() -> Result<Runtime> {
    Builder::new_current_thread()
        .enable_all()
        .build()
        .context("no runtime for connections to PostgreSQL")
}

/// Connects; the connection is driven by the runtime that this is called in.
///
/// # Errors
///
/// Fails when the server does not answer.
pub async fn connect(uri: &str) -> Result<Client> {
    let (client, connection) = tokio_postgres::connect(uri, NoTls)
        .await
        .context("PostgreSQL does not answer")?;
    tokio::spawn(connection);
    Ok(client)
}
