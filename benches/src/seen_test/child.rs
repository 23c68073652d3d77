//! The child: runs one contender on one stream in this process, and measures it.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use frontier::{SeenConfig, SeenMode};
use store::{CrawlIdentity, Store};
use tempfile::TempDir;
use types::KEY_VERSION;

use super::{
    article::{self, Outside, Went},
    contender::Contender,
    driver::{Driven, Driver, KEY_SEED},
    measured::{Measured, Tiers},
    memory_store::MemoryStore,
    meter::{self, Aside},
    options::{Options, StoreKind},
    redis::RedisServer,
    server::Database,
    stream::LinkStream,
    truth::Truth,
    workload::Workload,
};

/// Runs what `--child` names.
///
/// # Errors
///
/// Fails when the stream, the store or a server does, or when the books do not balance.
pub fn run(contender: Contender, options: &Options) -> Result<Measured> {
    let workloads = Workload::of(options);
    let stream = workloads.first().context("no stream is named")?.open()?;
    let truth = Truth::new(stream.slot_count());
    let aside = Aside::default();
    let work = Work {
        contender,
        options,
        stream: &*stream,
        truth: &truth,
        aside: &aside,
    };
    let mut measured = match (contender, contender.seen_mode()) {
        (_, Some(mode)) => work.product(mode)?,
        (Contender::Redis, None) => work.redis(options.threads, true)?,
        (Contender::RedisOne, None) => work.redis(article::CONNECTIONS, false)?,
        (_, None) => work.article()?,
    };
    let judgement = truth.judge();
    ensure!(
        judgement.invented_count == 0,
        "{} URLs were admitted that were never offered",
        judgement.invented_count
    );
    measured.distinct_count = judgement.distinct_count;
    measured.lost_count = judgement.lost_count;
    measured.twice_count = judgement.twice_count;
    Ok(measured)
}

struct Work<'a> {
    contender: Contender,
    options: &'a Options,
    stream: &'a dyn LinkStream,
    truth: &'a Truth,
    aside: &'a Aside,
}

/// Meters that were read before the run.
struct Begun {
    held_bytes: u64,
    own_cpu: Duration,
    server_cpu_seconds: Option<f64>,
}

impl Begun {
    fn now(server_cpu_seconds: Option<f64>) -> Result<Self> {
        Ok(Self {
            held_bytes: meter::reset_peak()?,
            own_cpu: meter::process_cpu(),
            server_cpu_seconds,
        })
    }

    /// Reads the process's own meters again.
    fn end(&self, aside: &Aside) -> Measured {
        let own = meter::process_cpu().saturating_sub(self.own_cpu);
        Measured {
            own_cpu_seconds: own.saturating_sub(aside.spent()).as_secs_f64(),
            aside_cpu_seconds: aside.spent().as_secs_f64(),
            memory_bytes: Some(meter::peak_bytes().saturating_sub(self.held_bytes)),
            ..Measured::default()
        }
    }

    fn server_cpu_seconds(&self, now: Option<f64>) -> Option<f64> {
        Some(now? - self.server_cpu_seconds?)
    }
}

impl Work<'_> {
    fn product(&self, mode: SeenMode) -> Result<Measured> {
        let config = seen_config(mode, self.options)?;
        match self.options.store {
            StoreKind::Memory => {
                let store = MemoryStore::new(self.aside);
                let mut measured = self.drive(&config, &store, || None)?;
                measured.memory_bytes = None;
                Ok(measured)
            }
            StoreKind::Embedded => {
                let folder = TempDir::new().context("no temporary folder for the store")?;
                let opened = store::embedded::open(&folder.path().join("store"), &identity())?;
                self.drive(&config, &*opened.store, || None)
            }
            StoreKind::Postgres => {
                let database = self.database()?;
                let opened = store::postgres::open(database.uri(), database.schema(), &identity())?;
                let measured =
                    self.drive(&config, &*opened.store, || database.cpu_seconds_settled())?;
                drop(opened);
                database.drop_schema()?;
                Ok(measured)
            }
        }
    }

    /// Drives the product's seen test. `server_cpu` is read before and after.
    fn drive(
        &self,
        config: &SeenConfig,
        store: &dyn Store,
        server_cpu: impl Fn() -> Option<f64>,
    ) -> Result<Measured> {
        let driver = Driver {
            stream: self.stream,
            store,
            truth: self.truth,
            aside: self.aside,
            thread_count: self.options.threads,
            pages_max: self.options.pages,
        };
        let begun = Begun::now(server_cpu())?;
        let outcome = driver.run(config)?;
        let mut measured = begun.end(self.aside);
        measured.server_cpu_seconds = begun.server_cpu_seconds(server_cpu());
        fill_in(&mut measured, &outcome);
        let counters = store.counters();
        measured.store_reads = counters.confirmed_keys;
        measured.confirm_round_trips = counters.confirm_round_trips;
        measured.commits = counters.commits;
        let stored_count = store.scan_keys(&mut |_| {})?;
        ensure!(
            stored_count == outcome.counts.queued,
            "{} URLs were admitted, and the store has {stored_count}",
            outcome.counts.queued
        );
        Ok(measured)
    }

    fn article(&self) -> Result<Measured> {
        let database = self.database()?;
        let outside = self.outside();
        let begun = Begun::now(database.cpu_seconds_settled())?;
        let went = article::one_statement_a_link(&outside, &database)?;
        let mut measured = begun.end(self.aside);
        measured.server_cpu_seconds = begun.server_cpu_seconds(database.cpu_seconds_settled());
        database.drop_schema()?;
        fill_in_outside(&mut measured, went);
        measured.commits = went.round_trips;
        Ok(measured)
    }

    fn redis(&self, connection_count: usize, is_pipelined: bool) -> Result<Measured> {
        let server = RedisServer::start()?;
        let cpu = || Some(server.process().cpu().as_secs_f64());
        let outside = self.outside();
        let begun = Begun::now(cpu())?;
        let went = server.add(&outside, connection_count, is_pipelined)?;
        let mut measured = begun.end(self.aside);
        measured.server_cpu_seconds = begun.server_cpu_seconds(cpu());
        measured.server_memory_bytes = Some(server.process().peak_bytes());
        fill_in_outside(&mut measured, went);
        Ok(measured)
    }

    fn outside(&self) -> Outside<'_> {
        let links_max = if self.contender.is_one_by_one() {
            self.options.one_links
        } else {
            u64::MAX
        };
        Outside::new(self.stream, self.truth, self.aside, links_max)
    }

    fn database(&self) -> Result<Database> {
        let uri = self.options.uri.as_deref();
        Database::new(uri.context("--child needs --uri for PostgreSQL")?)
    }
}

fn seen_config(mode: SeenMode, options: &Options) -> Result<SeenConfig> {
    Ok(SeenConfig {
        mode,
        expected_urls: options.expected.unwrap_or_default().max(1),
        false_positive_rate: options.rate,
        cache_bytes: usize::try_from(options.cache.first().copied().unwrap_or_default())
            .context("the cache does not fit into memory")?,
        ..SeenConfig::default()
    })
}

fn fill_in(measured: &mut Measured, driven: &Driven) {
    let counts = &driven.counts;
    measured.link_count = counts.discovered;
    measured.wall_seconds = driven.wall_seconds;
    measured.false_positives = counts.false_positives;
    measured.filter_bytes = driven.stats.filter.size_bytes;
    measured.filter_slice_count = driven.stats.filter.slice_count;
    measured.expected_lost =
        (driven.stats.mode == SeenMode::Bloom).then_some(driven.stats.filter.expected_lost);
    measured.tiers = Tiers {
        in_page: counts.duplicates.in_page,
        cache: counts.duplicates.cache,
        unwritten: counts.duplicates.unwritten,
        exact: counts.duplicates.exact,
        filter: counts.duplicates.filter,
        new: counts.filter_no,
        store: counts.store_reads(),
    };
}

/// Every link is asked of the server.
fn fill_in_outside(measured: &mut Measured, went: Went) {
    measured.link_count = went.link_count;
    measured.wall_seconds = went.wall_seconds;
    measured.store_reads = went.link_count;
    measured.confirm_round_trips = went.round_trips;
    measured.tiers.store = went.link_count;
}

fn identity() -> CrawlIdentity {
    CrawlIdentity {
        crawl_id: "0123456789abcdef0123456789abcdef".to_owned(),
        key_seed: KEY_SEED.get(),
        key_version: KEY_VERSION,
    }
}
