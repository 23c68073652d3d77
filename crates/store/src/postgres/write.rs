//! One commit: the statements of a batch, pipelined within one transaction that is known to have begun.

use std::{borrow::Cow, future::Future, pin::Pin, task::Poll};

use futures_util::future::maybe_done;
use tokio_postgres::{Error, error::SqlState, types::ToSql};
use types::{KeySeed, QueuedUrl};

use super::{failure::failure, lane::Session, param::KeyParam};
use crate::{
    CommitBatch, FinishedUrl, StoreError,
    stored::{via_number, without_nul},
};

/// Rows of one statement. Its arrays must stay far under the server's limit of 1 GiB a message.
const ROWS_MAX: usize = 5_000;
/// Bytes of page records in one statement, a single larger record aside.
const RECORD_BYTES_MAX: usize = 16 << 20;

const ENTER_KEYS: &str = "INSERT INTO url_key (key) SELECT unnest($1::uuid[])";

const ENTER_QUEUE: &str = "\
    INSERT INTO queue (key, sequence, depth, partition, priority, via, redirect_count, host, url, referrer) \
    SELECT * FROM unnest($1::uuid[], $2::bigint[], $3::bigint[], $4::smallint[], $5::smallint[], $6::smallint[], \
        $7::smallint[], $8::text[], $9::text[], $10::text[])";

/// Enters the keys that are not there yet, and the queue entries of these alone: a note that is repeated, also one
/// whose URL has been finished since, adds nothing.
const ENTER_FRESH: &str = "\
    WITH note AS MATERIALIZED ( \
        SELECT * FROM unnest($1::uuid[], $2::bigint[], $3::bigint[], $4::smallint[], $5::smallint[], $6::smallint[], \
            $7::smallint[], $8::text[], $9::text[], $10::text[]) \
        AS note (key, sequence, depth, partition, priority, via, redirect_count, host, url, referrer) \
    ), fresh AS ( \
        INSERT INTO url_key (key) SELECT key FROM note ON CONFLICT DO NOTHING RETURNING key \
    ) \
    INSERT INTO queue (key, sequence, depth, partition, priority, via, redirect_count, host, url, referrer) \
    SELECT key, sequence, depth, partition, priority, via, redirect_count, host, url, referrer \
    FROM note JOIN fresh USING (key)";

const LEAVE_QUEUE: &str = "\
    DELETE FROM queue USING unnest($1::smallint[], $2::text[], $3::smallint[], $4::bigint[], $5::bigint[]) \
        AS done (partition, host, priority, depth, sequence) \
    WHERE queue.partition = done.partition AND left(queue.host, 300) = left(done.host, 300) \
        AND queue.priority = done.priority AND queue.depth = done.depth AND queue.sequence = done.sequence \
        AND queue.host = done.host";

const ENTER_PAGES: &str = "\
    INSERT INTO page (key, record) SELECT * FROM unnest($1::uuid[], $2::bytea[]) \
    ON CONFLICT (key) DO UPDATE SET record = EXCLUDED.record";

const SET_META: &str = "UPDATE meta SET progress = $1, next_sequence = greatest(next_sequence, $2)";

/// The statements that [`commit`] expects its session to have prepared, each at its [`Prepared`] number.
pub(super) const STATEMENTS: &[&str] = &[
    ENTER_KEYS,
    ENTER_QUEUE,
    ENTER_FRESH,
    LEAVE_QUEUE,
    ENTER_PAGES,
    SET_META,
];

#[derive(Clone, Copy)]
enum Prepared {
    EnterKeys,
    EnterQueue,
    EnterFresh,
    LeaveQueue,
    EnterPages,
    SetMeta,
}

type Reply<'a> = Pin<Box<dyn Future<Output = Result<(), Error>> + Send + 'a>>;

/// Writes `batch` as one transaction.
///
/// The seen test hands out a key once, so notes are entered without a look at what is there. Only a commit that was
/// repeated because its answer was lost can meet its own keys: it fails as a whole on the first, and is written again
/// by the statement that passes over them.
pub(super) async fn commit(
    session: &Session,
    batch: &CommitBatch<'_>,
    seed: KeySeed,
) -> Result<(), StoreError> {
    let columns = Columns {
        notes: note_columns(batch.notes, seed)?,
        finished: finished_columns(batch.finished, seed)?,
    };
    let next_sequence = batch.notes.iter().map(|note| note.position.sequence).max();
    let next_sequence =
        next_sequence.map_or(Ok(0), |highest| sequence_number(highest.saturating_add(1)))?;
    let meta: [&(dyn ToSql + Sync); 2] = [&batch.progress, &next_sequence];
    match columns.write(session, &meta, Entry::AllNew).await {
        Err(error) if error.code() == Some(&SqlState::UNIQUE_VIOLATION) => {
            columns.write(session, &meta, Entry::SomeKnown).await
        }
        written => written,
    }
    .map_err(|error| failure(&error))
}

/// Whether keys of a batch may be in the store already.
#[derive(Clone, Copy, PartialEq)]
enum Entry {
    AllNew,
    SomeKnown,
}

/// What a batch writes, a column a field.
struct Columns<'a> {
    notes: Vec<NoteColumns<'a>>,
    finished: Vec<FinishedColumns<'a>>,
}

impl Columns<'_> {
    /// Writes all or nothing, and leaves the session outside of any transaction.
    async fn write(
        &self,
        session: &Session,
        meta: &[&(dyn ToSql + Sync)],
        entry: Entry,
    ) -> Result<(), Error> {
        // Waited for: were it to fail alone (a cancel from outside is enough), each statement sent after it would be a
        // transaction of its own.
        let written = match session.client.batch_execute("BEGIN").await {
            Ok(()) => self.send_all(session, meta, entry).await,
            Err(error) => Err(error),
        };
        if written.is_err() {
            // A COMMIT that was cancelled leaves a transaction that refuses everything but its end. If this fails too, the
            // session is lost, or the next attempt comes here again.
            drop(session.client.batch_execute("ROLLBACK").await);
        }
        written
    }

    async fn send_all(
        &self,
        session: &Session,
        meta: &[&(dyn ToSql + Sync)],
        entry: Entry,
    ) -> Result<(), Error> {
        let send = |statement, params| send(session, statement, params);
        let mut replies: Vec<Reply<'_>> = Vec::new();
        for notes in &self.notes {
            if entry == Entry::AllNew {
                replies.push(send(Prepared::EnterKeys, vec![&notes.keys]));
                replies.push(send(Prepared::EnterQueue, notes.params()));
            } else {
                replies.push(send(Prepared::EnterFresh, notes.params()));
            }
        }
        for finished in &self.finished {
            replies.push(send(Prepared::LeaveQueue, finished.queue_params()));
            replies.push(send(Prepared::EnterPages, finished.page_params()));
        }
        replies.push(send(Prepared::SetMeta, meta.to_vec()));
        // After a failed statement the server turns this into a rollback.
        replies.push(Box::pin(session.client.batch_execute("COMMIT")));
        pipelined(replies).await
    }
}

fn send<'a>(
    session: &'a Session,
    statement: Prepared,
    params: Vec<&'a (dyn ToSql + Sync)>,
) -> Reply<'a> {
    Box::pin(async move {
        session
            .client
            .execute(&session.statements[statement as usize], &params)
            .await
            .map(drop)
    })
}

/// Sends all requests in order without waiting in between, then takes in every answer; the first failure is returned.
///
/// A request is sent when its future is first polled, and each round polls in order.
async fn pipelined(replies: Vec<Reply<'_>>) -> Result<(), Error> {
    let mut replies: Vec<_> = replies
        .into_iter()
        .map(|reply| Box::pin(maybe_done(reply)))
        .collect();
    let mut waiting_from = 0;
    std::future::poll_fn(|context| {
        // The first round reaches all; later ones begin at the first answer that is missing.
        let mut first_pending = None;
        for (index, reply) in replies.iter_mut().enumerate().skip(waiting_from) {
            if reply.as_mut().poll(context).is_pending() {
                first_pending.get_or_insert(index);
            }
        }
        first_pending.map_or(Poll::Ready(()), |index| {
            waiting_from = index;
            Poll::Pending
        })
    })
    .await;
    for mut reply in replies {
        if let Some(Err(error)) = reply.as_mut().take_output() {
            return Err(error);
        }
    }
    Ok(())
}

/// Notes of one statement, a column each.
#[derive(Default)]
struct NoteColumns<'a> {
    keys: Vec<KeyParam>,
    sequences: Vec<i64>,
    depths: Vec<i64>,
    partitions: Vec<i16>,
    priorities: Vec<i16>,
    vias: Vec<i16>,
    redirect_counts: Vec<i16>,
    hosts: Vec<Cow<'a, str>>,
    urls: Vec<&'a str>,
    referrers: Vec<Option<Cow<'a, str>>>,
}

impl NoteColumns<'_> {
    fn params(&self) -> Vec<&(dyn ToSql + Sync)> {
        vec![
            &self.keys,
            &self.sequences,
            &self.depths,
            &self.partitions,
            &self.priorities,
            &self.vias,
            &self.redirect_counts,
            &self.hosts,
            &self.urls,
            &self.referrers,
        ]
    }
}

/// Sorts the notes by key, so that index pages are touched in order, and lays them out in columns. Of several notes
/// of one key the first counts.
fn note_columns(notes: &[QueuedUrl], seed: KeySeed) -> Result<Vec<NoteColumns<'_>>, StoreError> {
    let mut sorted: Vec<&QueuedUrl> = notes.iter().collect();
    sorted.sort_by_key(|note| note.key);
    sorted.dedup_by_key(|note| note.key);
    let mut statements = Vec::new();
    for chunk in sorted.chunks(ROWS_MAX) {
        let mut columns = NoteColumns::default();
        for note in chunk {
            columns.keys.push(KeyParam(note.key));
            columns
                .sequences
                .push(sequence_number(note.position.sequence)?);
            columns.depths.push(i64::from(note.position.depth));
            columns
                .partitions
                .push(i16::from(seed.partition(note.url.host_str()).get()));
            columns.priorities.push(i16::from(note.position.priority));
            columns.vias.push(i16::from(via_number(note.via)));
            columns.redirect_counts.push(i16::from(note.redirect_count));
            columns.hosts.push(without_nul(note.url.host_str()));
            columns.urls.push(note.url.as_str());
            columns
                .referrers
                .push(note.referrer.as_deref().map(without_nul));
        }
        statements.push(columns);
    }
    Ok(statements)
}

/// Finished URLs of one pair of statements, a column each.
#[derive(Default)]
struct FinishedColumns<'a> {
    partitions: Vec<i16>,
    hosts: Vec<Cow<'a, str>>,
    priorities: Vec<i16>,
    depths: Vec<i64>,
    sequences: Vec<i64>,
    keys: Vec<KeyParam>,
    records: Vec<&'a [u8]>,
}

impl FinishedColumns<'_> {
    fn queue_params(&self) -> Vec<&(dyn ToSql + Sync)> {
        vec![
            &self.partitions,
            &self.hosts,
            &self.priorities,
            &self.depths,
            &self.sequences,
        ]
    }

    fn page_params(&self) -> Vec<&(dyn ToSql + Sync)> {
        vec![&self.keys, &self.records]
    }
}

/// Lays the finished URLs out in columns, sorted by key. Of several records of one key the last counts, but every
/// place in the queue is cleared.
fn finished_columns(
    finished: &[FinishedUrl],
    seed: KeySeed,
) -> Result<Vec<FinishedColumns<'_>>, StoreError> {
    let mut sorted: Vec<&FinishedUrl> = finished.iter().collect();
    sorted.sort_by_key(|done| done.key);
    let mut statements = Vec::new();
    let mut columns = FinishedColumns::default();
    let mut record_bytes = 0;
    for (index, done) in sorted.iter().enumerate() {
        let is_full = columns.partitions.len() == ROWS_MAX
            || record_bytes + done.record.len() > RECORD_BYTES_MAX;
        if is_full && !columns.partitions.is_empty() {
            statements.push(std::mem::take(&mut columns));
            record_bytes = 0;
        }
        columns
            .partitions
            .push(i16::from(seed.partition(done.host.as_str()).get()));
        columns.hosts.push(without_nul(done.host.as_str()));
        columns.priorities.push(i16::from(done.position.priority));
        columns.depths.push(i64::from(done.position.depth));
        columns
            .sequences
            .push(sequence_number(done.position.sequence)?);
        if sorted
            .get(index + 1)
            .is_none_or(|next| next.key != done.key)
        {
            columns.keys.push(KeyParam(done.key));
            columns.records.push(&done.record);
            record_bytes += done.record.len();
        }
    }
    if !columns.partitions.is_empty() {
        statements.push(columns);
    }
    Ok(statements)
}

fn sequence_number(sequence: u64) -> Result<i64, StoreError> {
    i64::try_from(sequence).map_err(|_| {
        StoreError::Backend(format!(
            "sequence {sequence} is over PostgreSQL's greatest number, 2^63 - 1"
        ))
    })
}
