//! A run: makes the store, crawls, and prints what was measured.

use anyhow::{Context as _, Result, ensure};
use frontier::{SeenConfig, SeenTest};
use store::{CrawlIdentity, Store, testing::Cluster};
use tempfile::TempDir;
use types::KEY_VERSION;

use super::{
    crawl::{Crawl, ReadMeter},
    demand, disk,
    mark::{Marks, Meters},
    memory::MemoryStore,
    options::Options,
    plan,
    web::Web,
};
use crate::{
    measure::{Count, line},
    seen_test::{
        driver::KEY_SEED,
        meter::{self, Aside, ServerProcess},
        options::StoreKind,
        server::Database,
    },
};

/// URLs that the crawl begins with.
const SEEDS: u64 = 1_000;

/// Settings of the temporary server: a small one for tables of gigabytes. With the 16 MB that serve the tests, almost every
/// page of an index would be read from the system.
const SERVER_SETTINGS: [&str; 2] = ["shared_buffers=512MB", "max_wal_size=4GB"];

/// Runs the benchmark that the options ask for.
///
/// # Errors
///
/// Fails when the store does, when the crawl's accounts do not add up, or when the options ask for what cannot be.
pub fn run(options: &Options) -> Result<()> {
    ensure!(
        options.known > 2 * SEEDS && options.links > 3 && options.hosts > 0,
        "there must be more than {} URLs, at least 4 links a page, and a host",
        2 * SEEDS
    );
    line(format_args!(
        "{} store, {} URLs on {} hosts, {} leases, {} threads that admit",
        options.store.name(),
        Count(options.known),
        Count(u64::from(options.hosts)),
        options.leases,
        options.threads
    ));
    match options.store {
        StoreKind::Memory => measure(options, &MemoryStore::default(), &Place::Memory),
        StoreKind::Embedded => {
            let folder = TempDir::new().context("no temporary folder for the store")?;
            let opened = store::embedded::open(&folder.path().join("store"), &identity())?;
            measure(options, &*opened.store, &Place::Folder(folder))
        }
        StoreKind::Postgres => {
            let cluster = if options.uri.is_some() {
                None
            } else {
                line(format_args!(
                    "temporary server: {}",
                    SERVER_SETTINGS.join(", ")
                ));
                Some(Cluster::start_with(&SERVER_SETTINGS)?)
            };
            let own = cluster.as_ref().map(Cluster::create_database);
            let uri = own.as_ref().or(options.uri.as_ref());
            let database = Database::new(uri.context("no database")?)?;
            let opened = store::postgres::open(database.uri(), database.schema(), &identity())?;
            let place = Place::Server(database);
            measure(options, &*opened.store, &place)?;
            drop(opened);
            place.remove()
        }
    }
}

/// Where the store is.
enum Place {
    Memory,
    Folder(TempDir),
    Server(Database),
}

impl Place {
    fn server(&self) -> Option<ServerProcess> {
        match self {
            Self::Server(database) => database.process(),
            Self::Memory | Self::Folder(_) => None,
        }
    }

    fn disk(&self) -> Result<Vec<disk::Part>> {
        match self {
            Self::Memory => Ok(Vec::new()),
            Self::Folder(folder) => disk::of_folder(&folder.path().join("store"), "keyspaces"),
            Self::Server(database) => disk::of_schema(database.uri(), database.schema()),
        }
    }

    /// Leaves every deleted row of the queue where it is.
    fn keep_dead_rows(&self) {
        if let Self::Server(database) = self {
            let schema = database.schema();
            let sql = format!("ALTER TABLE {schema}.queue SET (autovacuum_enabled = false)");
            Cluster::execute(database.uri(), &sql);
        }
    }

    fn print_plan(&self) -> Result<()> {
        match self {
            Self::Server(database) => plan::print(database),
            Self::Memory | Self::Folder(_) => Ok(()),
        }
    }

    fn remove(&self) -> Result<()> {
        match self {
            Self::Server(database) => database.drop_schema(),
            Self::Memory | Self::Folder(_) => Ok(()),
        }
    }
}

fn measure(options: &Options, store: &dyn Store, place: &Place) -> Result<()> {
    let config = SeenConfig {
        expected_urls: options.expected,
        cache_bytes: usize::try_from(options.cache)?,
        ..SeenConfig::default()
    };
    let seen = SeenTest::new(&config, 0).context("the filter cannot be made")?;
    let web = Web::new(options.known, options.hosts, options.links, SEEDS);
    let (aside, reads) = (Aside::default(), ReadMeter::default());
    let disk = || place.disk();
    let before_drain = || {
        place.print_plan()?;
        place.keep_dead_rows();
        Ok(())
    };
    let meters = Meters {
        seen: &seen,
        aside: &aside,
        reads: &reads,
        server: place.server(),
        disk: &disk,
        before_drain: &before_drain,
    };
    meter::reset_peak()?;
    let mut marks = Marks::new(meters, options.known);
    let crawl = Crawl {
        web: &web,
        seed_count: SEEDS,
        store,
        seen: &seen,
        aside: &aside,
        reads: &reads,
        thread_count: options.threads,
        leases_max: options.leases.max(1),
        seed: options.seed,
    };
    crawl.run(&mut marks)?;
    place.print_plan()?;
    let judged = marks.judged().context("the run has no end")?;
    judged.marks[1].print_disk();
    check(options, store)?;
    demand::print(&judged, options.store);
    Ok(())
}

/// Nothing may be lost, nor be there twice.
fn check(options: &Options, store: &dyn Store) -> Result<()> {
    let key_count = store.scan_keys(&mut |_| {})?;
    ensure!(
        key_count == options.known && store.next_sequence()? == options.known,
        "{} URLs were linked to, the store has {key_count}",
        options.known
    );
    Ok(())
}

fn identity() -> CrawlIdentity {
    CrawlIdentity {
        crawl_id: "0123456789abcdef0123456789abcdef".to_owned(),
        key_seed: KEY_SEED.get(),
        key_version: KEY_VERSION,
    }
}
