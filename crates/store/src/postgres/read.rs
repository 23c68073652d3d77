//! What is read from the database: suspects' keys, the queue, and the scans of a resumed crawl.

use std::pin::pin;

use futures_util::TryStreamExt;
use tokio_postgres::{Error, Row, binary_copy::BinaryCopyOutStream, types::Type};
use types::{Host, QueuePosition, QueuedUrl, UrlKey};

use super::{copied::CopiedKeys, failure::failure, lane::Session, param::KeyParam};
use crate::{
    StoreError,
    stored::{StoredEntry, host_of, without_nul},
};

/// Keys of one round trip.
pub(super) const CONFIRM_KEYS_MAX: usize = 10_000;
/// Keys handed to the callback of a scan at a time.
const SCAN_KEYS_MAX: usize = 4_096;

const FIND_KEYS: &str = "SELECT key FROM url_key WHERE key = ANY($1::uuid[])";

/// Characters of a host that the queue's index holds.
const INDEXED_CHARS: usize = 300;

/// Reads the queue of a host that is shorter than what the index holds of it, so that the index alone says whose a row is.
/// Were the host compared once more, the planner would take that for a rare match, expect to need nearly all rows of the
/// host for the few asked for, and where it plans for the values read and sort them all.
const READ_QUEUE: &str = "\
    SELECT url, key, priority, depth, sequence, via, redirect_count, referrer FROM queue \
    WHERE partition = $1 AND left(host, 300) = $2::text COLLATE \"C\" \
        AND (priority, depth, sequence) >= ($3::smallint, $4::bigint, $5::bigint) \
    ORDER BY priority, depth, sequence LIMIT $6";

/// Reads the queue of a host of which the index holds only the beginning.
const READ_LONG_QUEUE: &str = "\
    SELECT url, key, priority, depth, sequence, via, redirect_count, referrer FROM queue \
    WHERE partition = $1 AND left(host, 300) = left($2::text COLLATE \"C\", 300) AND host = $2 \
        AND (priority, depth, sequence) >= ($3::smallint, $4::bigint, $5::bigint) \
    ORDER BY priority, depth, sequence LIMIT $6";

const COUNT_QUEUED: &str = "\
    SELECT host, priority, depth, min(sequence), count(*) FROM queue \
    GROUP BY host, priority, depth ORDER BY host, priority, depth";

const NEXT_SEQUENCE: &str = "SELECT next_sequence FROM meta";

const COPY_KEYS: &str = "COPY url_key (key) TO STDOUT (FORMAT binary)";
const COPY_PAGES: &str = "COPY page (key, record) TO STDOUT (FORMAT binary)";

/// The statements that [`confirm`] expects its session to have prepared.
pub(super) const CONFIRM_STATEMENTS: &[&str] = &[FIND_KEYS];
/// The statements that every other function here expects its session to have prepared.
pub(super) const READ_STATEMENTS: &[&str] =
    &[READ_QUEUE, COUNT_QUEUED, NEXT_SEQUENCE, READ_LONG_QUEUE];

#[expect(
    clippy::needless_pass_by_value,
    reason = "the shape that map_err wants"
)]
fn sql(error: Error) -> StoreError {
    failure(&error)
}

/// A value that does not have the type it was stored with.
fn damaged(error: &Error) -> StoreError {
    StoreError::Corrupt(error.to_string())
}

/// Says which of `keys` the table has, in one round trip.
pub(super) async fn confirm(session: &Session, keys: &[UrlKey]) -> Result<Vec<bool>, StoreError> {
    let params: Vec<KeyParam> = keys.iter().copied().map(KeyParam).collect();
    let rows = session
        .client
        .query(&session.statements[0], &[&params])
        .await
        .map_err(sql)?;
    let mut found = Vec::with_capacity(rows.len());
    for row in &rows {
        found.push(
            row.try_get::<_, KeyParam>(0)
                .map_err(|error| damaged(&error))?,
        );
    }
    found.sort_unstable();
    Ok(params
        .iter()
        .map(|key| found.binary_search(key).is_ok())
        .collect())
}

/// Reads the queue of one host in order.
pub(super) async fn queue(
    session: &Session,
    partition: i16,
    host: &Host,
    from: QueuePosition,
    limit: usize,
) -> Result<Vec<QueuedUrl>, StoreError> {
    let host = without_nul(host.as_str());
    let priority = i16::from(from.priority);
    let depth = i64::from(from.depth);
    // Nothing is stored beyond the greatest number of either.
    let sequence = i64::try_from(from.sequence).unwrap_or(i64::MAX);
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let is_short = host.chars().count() < INDEXED_CHARS;
    let statement = &session.statements[if is_short { 0 } else { 3 }];
    let rows = session
        .client
        .query(
            statement,
            &[&partition, &host, &priority, &depth, &sequence, &limit],
        )
        .await
        .map_err(sql)?;
    rows.iter().map(queued).collect()
}

fn queued(row: &Row) -> Result<QueuedUrl, StoreError> {
    let error = |error| damaged(&error);
    StoredEntry {
        url: row.try_get(0).map_err(error)?,
        key: row.try_get::<_, KeyParam>(1).map_err(error)?.0,
        position: position(
            row.try_get(2).map_err(error)?,
            row.try_get(3).map_err(error)?,
            row.try_get(4).map_err(error)?,
        )?,
        via_number: small(row.try_get(5).map_err(error)?)?,
        redirect_count: small(row.try_get(6).map_err(error)?)?,
        referrer: row.try_get(7).map_err(error)?,
    }
    .into_queued()
}

fn position(priority: i16, depth: i64, sequence: i64) -> Result<QueuePosition, StoreError> {
    Ok(QueuePosition {
        priority: small(priority)?,
        depth: u32::try_from(depth)
            .map_err(|_| StoreError::Corrupt(format!("depth {depth} in the queue")))?,
        sequence: u64::try_from(sequence)
            .map_err(|_| StoreError::Corrupt(format!("sequence {sequence} in the queue")))?,
    })
}

fn small(number: i16) -> Result<u8, StoreError> {
    u8::try_from(number)
        .map_err(|_| StoreError::Corrupt(format!("{number} in the queue where 0 to 255 is right")))
}

/// Counts each host's queue. The server groups by host, priority and depth, which leaves few rows a host; their order
/// puts a host's first position into its first row.
pub(super) async fn queued_hosts(
    session: &Session,
    each: &mut dyn FnMut(Host, u64, QueuePosition),
) -> Result<(), StoreError> {
    let error = |error| damaged(&error);
    let no_params: [&str; 0] = [];
    let rows = session
        .client
        .query_raw(&session.statements[1], no_params)
        .await
        .map_err(sql)?;
    let mut rows = pin!(rows);
    let mut current: Option<(Host, u64, QueuePosition)> = None;
    while let Some(row) = rows.try_next().await.map_err(sql)? {
        let text: &str = row.try_get(0).map_err(error)?;
        let count: i64 = row.try_get(4).map_err(error)?;
        let count =
            u64::try_from(count).map_err(|_| StoreError::Corrupt(format!("a count of {count}")))?;
        match &mut current {
            Some((host, sum, _)) if host.as_str() == text => *sum += count,
            _ => {
                let first = position(
                    row.try_get(1).map_err(error)?,
                    row.try_get(2).map_err(error)?,
                    row.try_get(3).map_err(error)?,
                )?;
                if let Some((host, sum, first)) = current.replace((host_of(text)?, count, first)) {
                    each(host, sum, first);
                }
            }
        }
    }
    if let Some((host, sum, first)) = current {
        each(host, sum, first);
    }
    Ok(())
}

/// Streams every key.
pub(super) async fn scan_keys(
    session: &Session,
    each: &mut dyn FnMut(&[UrlKey]),
) -> Result<u64, StoreError> {
    let mut chunks = pin!(session.client.copy_out(COPY_KEYS).await.map_err(sql)?);
    let mut copied = CopiedKeys::new();
    let mut keys = Vec::with_capacity(SCAN_KEYS_MAX);
    let mut count = 0;
    while let Some(chunk) = chunks.try_next().await.map_err(sql)? {
        copied.take(&chunk, &mut keys)?;
        if keys.len() >= SCAN_KEYS_MAX {
            count += keys.len() as u64;
            each(&keys);
            keys.clear();
        }
    }
    copied.finish()?;
    if !keys.is_empty() {
        count += keys.len() as u64;
        each(&keys);
    }
    Ok(count)
}

/// Streams every page record.
pub(super) async fn scan_pages(
    session: &Session,
    each: &mut dyn FnMut(UrlKey, &[u8]),
) -> Result<(), StoreError> {
    let stream = session.client.copy_out(COPY_PAGES).await.map_err(sql)?;
    let mut rows = pin!(BinaryCopyOutStream::new(stream, &[Type::UUID, Type::BYTEA]));
    while let Some(row) = rows.try_next().await.map_err(sql)? {
        let key = row
            .try_get::<KeyParam>(0)
            .map_err(|error| damaged(&error))?
            .0;
        each(
            key,
            row.try_get::<&[u8]>(1).map_err(|error| damaged(&error))?,
        );
    }
    Ok(())
}

/// Reads the next free sequence number.
pub(super) async fn next_sequence(session: &Session) -> Result<u64, StoreError> {
    let row = session
        .client
        .query_one(&session.statements[2], &[])
        .await
        .map_err(sql)?;
    let number: i64 = row.try_get(0).map_err(|error| damaged(&error))?;
    u64::try_from(number).map_err(|_| StoreError::Corrupt(format!("next sequence number {number}")))
}
