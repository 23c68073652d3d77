//! A crawler without a seen test: one statement for each link, awaited, on a few connections to `PostgreSQL`.

use std::{
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::Instant,
};

use anyhow::{Context as _, Result};
use futures_util::future::try_join_all;

use super::{
    driver::KEY_SEED,
    meter::Aside,
    server::{Database, connect, runtime},
    stream::LinkStream,
    truth::Truth,
};

/// Connections, each with one statement under way.
pub const CONNECTIONS: usize = 8;

/// What a contender works on that is not the product.
pub struct Outside<'a> {
    /// The links.
    pub stream: &'a dyn LinkStream,
    /// The books that losses and doubles are found by.
    pub truth: &'a Truth,
    /// The account of what is not measured.
    pub aside: &'a Aside,
    /// No page is begun once so many links were offered.
    pub links_max: u64,
    taken: AtomicU64,
}

/// How a stream went through a contender that is not the product.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Went {
    /// Links offered.
    pub link_count: u64,
    /// Requests sent and awaited.
    pub round_trips: u64,
    /// Seconds from the first page to the last answer.
    pub wall_seconds: f64,
}

impl<'a> Outside<'a> {
    /// Puts the parts together.
    #[must_use]
    pub const fn new(
        stream: &'a dyn LinkStream,
        truth: &'a Truth,
        aside: &'a Aside,
        links_max: u64,
    ) -> Self {
        Self {
            stream,
            truth,
            aside,
            links_max,
            taken: AtomicU64::new(0),
        }
    }

    /// Takes the next page: the URLs of its links and their slots; `None` at the end.
    #[must_use]
    pub fn next_page(&self) -> Option<Vec<(types::CanonicalUrl, u64)>> {
        if self.taken.load(Relaxed) >= self.links_max {
            return None;
        }
        self.aside.does(|| {
            let mut links = Vec::new();
            self.stream.next_page(&mut links)?;
            self.taken.fetch_add(links.len() as u64, Relaxed);
            let urls = links.iter().map(|link| {
                let slot = self.stream.slot(*link);
                self.truth.offer(slot);
                (self.stream.url(*link), slot)
            });
            Some(urls.collect())
        })
    }

    /// Returns how many links were taken.
    #[must_use]
    pub fn taken(&self) -> u64 {
        self.taken.load(Relaxed)
    }
}

/// Inserts link after link; the server says by the number of rows whether one was new.
///
/// # Errors
///
/// Fails when the server does.
pub fn one_statement_a_link(outside: &Outside<'_>, database: &Database) -> Result<Went> {
    let table = format!("{}.seen", database.schema());
    runtime()?.block_on(async {
        let client = connect(database.uri()).await?;
        client
            .batch_execute(&format!(
                "CREATE SCHEMA {}; CREATE TABLE {table} (key bytea PRIMARY KEY, url text NOT NULL)",
                database.schema()
            ))
            .await
            .context("the table cannot be made")?;
        let insert =
            format!("INSERT INTO {table} (key, url) VALUES ($1, $2) ON CONFLICT DO NOTHING");
        let mut clients = Vec::new();
        for _ in 0..CONNECTIONS {
            let client = connect(database.uri()).await?;
            let statement = client.prepare(&insert).await?;
            clients.push((client, statement));
        }
        let start = Instant::now();
        try_join_all(clients.iter().map(async |(client, statement)| {
            while let Some(links) = outside.next_page() {
                for (url, slot) in links {
                    let key = KEY_SEED.key(&url).to_bytes();
                    let row_count = client
                        .execute(statement, &[&key.as_slice(), &url.as_str()])
                        .await?;
                    if row_count == 1 {
                        outside.truth.admit(Some(slot));
                    }
                }
            }
            anyhow::Ok(())
        }))
        .await?;
        Ok(Went {
            link_count: outside.taken(),
            round_trips: outside.taken(),
            wall_seconds: start.elapsed().as_secs_f64(),
        })
    })
}
