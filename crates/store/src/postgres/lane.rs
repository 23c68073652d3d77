//! One connection to the database with its prepared statements, remade when it was lost.

use std::time::Duration;

use tokio::{runtime::Handle, sync::Mutex, time};
use tokio_postgres::{Client, Config, NoTls, Statement};

use super::{failure::failure, schema};
use crate::StoreError;

/// The longest time until a new session is ready for statements.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a lock may stay with the session of a process that died, until the server notices.
const LOCK_WAIT: Duration = Duration::from_secs(2);
const LOCK_RETRY_PAUSE: Duration = Duration::from_millis(50);

/// Where the crawl's tables are.
#[derive(Clone, Debug)]
pub(super) struct Target {
    pub(super) config: Config,
    pub(super) schema: String,
}

impl Target {
    /// Returns the target's name in messages, without user and password.
    pub(super) fn name(&self) -> String {
        let database = self
            .config
            .get_dbname()
            .or(self.config.get_user())
            .unwrap_or("?");
        format!("schema {:?} of database {database:?}", self.schema)
    }

    /// Returns the schema's name as an SQL identifier.
    pub(super) fn quoted_schema(&self) -> String {
        format!("\"{}\"", self.schema.replace('"', "\"\""))
    }
}

/// A session with the crawl's schema first in its search path.
pub(super) struct Session {
    pub(super) client: Client,
    pub(super) statements: Vec<Statement>,
}

/// The place of one session; one call at a time uses it.
pub(super) struct Lane {
    target: Target,
    /// Prepared once a session, named by their index.
    statements: &'static [&'static str],
    /// The opening of the store that this lane writes for; a lane that only reads has none, and no lock.
    epoch: Option<i64>,
    session: Mutex<Option<Session>>,
}

impl Lane {
    /// Makes a lane without a session; the first call connects.
    pub(super) fn new(
        target: Target,
        statements: &'static [&'static str],
        epoch: Option<i64>,
    ) -> Self {
        Self {
            target,
            statements,
            epoch,
            session: Mutex::new(None),
        }
    }

    /// Hands over the session that opening the store has made, which holds the crawl's lock.
    pub(super) async fn adopt(&self, client: Client) -> Result<(), StoreError> {
        let session = self.prepare(client).await?;
        *self.session.lock().await = Some(session);
        Ok(())
    }

    /// Runs `call` with the session, which is made anew if there is none or it was lost.
    pub(super) async fn with<T>(
        &self,
        call: impl AsyncFnOnce(&Session) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let mut place = self.session.lock().await;
        if place
            .as_ref()
            .is_none_or(|session| session.client.is_closed())
        {
            *place = None;
            let client = connect(&self.target).await?;
            if let Some(epoch) = self.epoch {
                relock(&client, &self.target, epoch).await?;
            }
            *place = Some(self.prepare(client).await?);
        }
        match place.as_ref() {
            Some(session) => call(session).await,
            None => Err(StoreError::Unavailable(
                "no connection to PostgreSQL".to_owned(),
            )),
        }
    }

    async fn prepare(&self, client: Client) -> Result<Session, StoreError> {
        let mut statements = Vec::with_capacity(self.statements.len());
        for text in self.statements {
            statements.push(
                client
                    .prepare(text)
                    .await
                    .map_err(|error| failure(&error))?,
            );
        }
        Ok(Session { client, statements })
    }
}

/// Takes the crawl's lock again, and makes sure that no other process has held it in between.
async fn relock(client: &Client, target: &Target, epoch: i64) -> Result<(), StoreError> {
    lock(client, target).await.map_err(|error| match error {
        // The session that was lost may still be alive at the server, and its lock with it.
        StoreError::Locked(name) => StoreError::Unavailable(format!(
            "{name} is locked by another session, perhaps this crawl's own that was cut off"
        )),
        other => other,
    })?;
    if schema::epoch(client).await? == epoch {
        Ok(())
    } else {
        Err(StoreError::Locked(target.name()))
    }
}

/// Connects, and sees to it that what is committed here is durable, and that the server soon notices when this end is
/// gone, and with it the session's lock.
pub(super) async fn connect(target: &Target) -> Result<Client, StoreError> {
    // The driver's own timeout ends with the TCP connection; a peer that never answers must not hold up a crawl.
    time::timeout(CONNECT_TIMEOUT, open(target))
        .await
        .unwrap_or_else(|_| {
            Err(StoreError::Unavailable(format!(
                "{} did not answer within {} seconds",
                target.name(),
                CONNECT_TIMEOUT.as_secs()
            )))
        })
}

async fn open(target: &Target) -> Result<Client, StoreError> {
    let (client, connection) = target
        .config
        .connect(NoTls)
        .await
        .map_err(|error| failure(&error))?;
    Handle::current().spawn(async move {
        // The call under way reports what ended the connection.
        let _ = connection.await;
    });
    let set_up = format!(
        "SET search_path TO {}; SET tcp_keepalives_idle = 30; SET tcp_keepalives_interval = 10; \
         SET tcp_keepalives_count = 3; \
         SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'",
        target.quoted_schema()
    );
    client
        .batch_execute(&set_up)
        .await
        .map_err(|error| failure(&error))?;
    Ok(client)
}

/// Takes the crawl's lock for this session: one for each schema of a database, gone with the session.
pub(super) async fn lock(client: &Client, target: &Target) -> Result<(), StoreError> {
    let deadline = time::Instant::now() + LOCK_WAIT;
    loop {
        let row = client
            .query_one(
                "SELECT pg_try_advisory_lock(hashtextextended('bloomcrawl ' || $1, 0))",
                &[&target.schema],
            )
            .await
            .map_err(|error| failure(&error))?;
        if row.try_get(0).map_err(|error| failure(&error))? {
            return Ok(());
        }
        if time::Instant::now() >= deadline {
            return Err(StoreError::Locked(target.name()));
        }
        time::sleep(LOCK_RETRY_PAUSE).await;
    }
}
