//! `PostgreSQL`'s plan of a read of the queue: of the very statement that the store has sent last.

use anyhow::{Context as _, Result};

use crate::{
    measure::line,
    seen_test::server::{Database, connect, runtime},
};

/// Prints how the server carries out the store's read of the queue of the host with the most URLs, from its first and from
/// a later position; with a plan made for the values, and with the one that serves any.
///
/// # Errors
///
/// Fails when the server does, or when the store has read no queue.
pub fn print(database: &Database) -> Result<()> {
    runtime()?.block_on(async {
        let client = connect(database.uri()).await?;
        let row = client
            .query_opt(
                "SELECT query FROM pg_stat_activity WHERE query LIKE 'SELECT url, key, priority%' \
                 AND pid <> pg_backend_pid()",
                &[],
            )
            .await?
            .context("no session has read a queue last")?;
        let statement: String = row.try_get(0)?;
        let search_path = format!("SET search_path TO {}", database.schema());
        client.batch_execute(&search_path).await?;
        // Its middle, or the first position would be that of most rows that were deleted before it.
        let row = client
            .query_one(
                "WITH greatest AS (SELECT partition, host, count(*) AS rows FROM queue GROUP BY 1, 2 ORDER BY 3 DESC LIMIT 1) \
                 SELECT format('%s, %L, %s, %s, %s', partition, host, priority, depth, sequence), rows FROM queue \
                 JOIN greatest USING (partition, host) ORDER BY priority, depth, sequence LIMIT 1",
                &[],
            )
            .await?;
        let (first, row_count): (String, i64) = (row.try_get(0)?, row.try_get(1)?);
        line(format_args!(
            "\nPlans of a read of the greatest queue ({row_count} rows wait), with buffers"
        ));
        client
            .batch_execute(&format!("PREPARE claim AS {statement}"))
            .await?;
        for mode in ["force_custom_plan", "force_generic_plan"] {
            client
                .batch_execute(&format!("SET plan_cache_mode = {mode}"))
                .await?;
            line(format_args!("  {mode}"));
            let explain = format!("EXPLAIN (ANALYZE, BUFFERS) EXECUTE claim({first}, 64)");
            for message in client.simple_query(&explain).await? {
                if let tokio_postgres::SimpleQueryMessage::Row(row) = message {
                    line(format_args!("    {}", row.get(0).unwrap_or_default()));
                }
            }
        }
        Ok(())
    })
}
