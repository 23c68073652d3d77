//! Opening a crawl: the data folder, its lock, the store, and everything that is rebuilt from them.

use std::{
    fs::{self, File, OpenOptions, TryLockError},
    path::Path,
    sync::Arc,
};

use fastrand::Rng;
use frontier::{SeenConfig, SeenTest, Workbench, WorkbenchConfig};
use serde::{Deserialize, Serialize};
use store::{CrawlIdentity, OpenedStore, Store};
use types::{KEY_VERSION, KeySeed};

use crate::{
    CrawlConfig, EngineError, StoreConfig, archive,
    output::{Outputs, PAGES_FILE, PagesFile, WarcFiles},
    saved::SavedProgress,
};

/// The file that names the crawl a data folder belongs to.
const IDENTITY_FILE: &str = "crawl.json";
/// The file whose lock keeps a second process out.
const LOCK_FILE: &str = "lock";
/// The folder of the embedded store.
const STORE_FOLDER: &str = "store";

/// An opened crawl, ready to run.
pub(crate) struct Opened {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) seen: SeenTest,
    pub(crate) workbench: Workbench,
    pub(crate) outputs: Outputs,
    pub(crate) saved: SavedProgress,
    pub(crate) key_seed: KeySeed,
    pub(crate) next_sequence: u64,
    pub(crate) random: Rng,
    pub(crate) lock: File,
}

#[derive(Serialize, Deserialize)]
struct FolderIdentity {
    crawl_id: String,
}

/// Opens the data folder and the store, and rebuilds what lives in memory from what they hold.
pub(crate) fn open(config: &CrawlConfig) -> Result<Opened, EngineError> {
    fs::create_dir_all(&config.data).map_err(EngineError::file(&config.data))?;
    let lock = lock_folder(&config.data)?;
    let mut random = system_random()?;
    let folder_id = read_identity(&config.data)?;
    let offered = CrawlIdentity {
        crawl_id: folder_id
            .clone()
            .unwrap_or_else(|| format!("{:032x}", random.u128(..))),
        key_seed: random.u64(..),
        key_version: KEY_VERSION,
    };
    let OpenedStore {
        store,
        identity,
        progress,
    } = open_store(config, &offered)?;
    check_identity(
        &config.data,
        folder_id.as_deref(),
        &identity,
        progress.is_some(),
    )?;
    write_identity(&config.data, &identity)?;
    let saved = match progress {
        Some(bytes) => SavedProgress::from_bytes(&bytes)?,
        None => SavedProgress::default(),
    };
    let next_sequence = store.next_sequence()?;
    let seen = rebuild_seen(config, store.as_ref(), next_sequence)?;
    let workbench = rebuild_workbench(config, store.as_ref(), saved.totals.pages, next_sequence)?;
    let outputs = open_outputs(config, &saved, &mut random)?;
    let key_seed = KeySeed::new(identity.key_seed);
    Ok(Opened {
        store: Arc::from(store),
        seen,
        workbench,
        outputs,
        saved,
        key_seed,
        next_sequence,
        random,
        lock,
    })
}

/// Locks the folder for this process; the lock ends with the process, however it ends.
fn lock_folder(data: &Path) -> Result<File, EngineError> {
    let path = data.join(LOCK_FILE);
    let file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .open(&path)
        .map_err(EngineError::file(&path))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(EngineError::FolderInUse(data.to_path_buf())),
        Err(TryLockError::Error(error)) => Err(EngineError::file(&path)(error)),
    }
}

/// Seeds a generator from the system, so that no site can guess the crawl's key seed.
fn system_random() -> Result<Rng, EngineError> {
    let mut seed = [0; 8];
    getrandom::fill(&mut seed).map_err(|error| {
        EngineError::Internal(format!("the system gave no random bytes: {error}"))
    })?;
    Ok(Rng::with_seed(u64::from_le_bytes(seed)))
}

fn read_identity(data: &Path) -> Result<Option<String>, EngineError> {
    let path = data.join(IDENTITY_FILE);
    let bytes = match fs::read(&path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(EngineError::file(&path)(error)),
    };
    let identity: FolderIdentity =
        serde_json::from_slice(&bytes).map_err(|error| EngineError::Damaged {
            path,
            problem: format!("expected {{\"crawl_id\": ...}}: {error}"),
        })?;
    Ok(Some(identity.crawl_id))
}

/// Writes the folder's identity, whole or not at all.
fn write_identity(data: &Path, identity: &CrawlIdentity) -> Result<(), EngineError> {
    let path = data.join(IDENTITY_FILE);
    if path.exists() {
        return Ok(());
    }
    let folder = FolderIdentity {
        crawl_id: identity.crawl_id.clone(),
    };
    let bytes = serde_json::to_vec(&folder).expect("one text always serializes");
    let temporary = data.join("crawl.json.new");
    fs::write(&temporary, bytes).map_err(EngineError::file(&temporary))?;
    fs::rename(&temporary, &path).map_err(EngineError::file(&path))
}

fn open_store(config: &CrawlConfig, offered: &CrawlIdentity) -> Result<OpenedStore, EngineError> {
    let opened = match &config.store {
        StoreConfig::Embedded => store::embedded::open(&config.data.join(STORE_FOLDER), offered)?,
        StoreConfig::Postgres { uri, schema } => store::postgres::open(uri, schema, offered)?,
    };
    if opened.identity.key_version != KEY_VERSION {
        return Err(EngineError::Config(format!(
            "the crawl was begun with version {} of the key rule, this program knows version {KEY_VERSION}",
            opened.identity.key_version
        )));
    }
    Ok(opened)
}

/// Refuses a folder and a store that are not of one crawl, before anything of either is touched.
fn check_identity(
    data: &Path,
    folder_id: Option<&str>,
    identity: &CrawlIdentity,
    store_has_progress: bool,
) -> Result<(), EngineError> {
    let mismatch = |folder_id: &str| EngineError::Mismatch {
        folder: data.to_path_buf(),
        folder_id: folder_id.to_owned(),
        store_id: identity.crawl_id.clone(),
    };
    match folder_id {
        Some(folder_id) if folder_id != identity.crawl_id => Err(mismatch(folder_id)),
        None if store_has_progress => Err(mismatch("none")),
        _ if !store_has_progress && has_pages(data) => Err(EngineError::Config(format!(
            "{} holds the pages of a crawl, but the store is empty; give the store that belongs to it, \
             or another data folder",
            data.display()
        ))),
        _ => Ok(()),
    }
}

fn has_pages(data: &Path) -> bool {
    fs::metadata(data.join(PAGES_FILE)).is_ok_and(|metadata| metadata.len() > 0)
}

fn rebuild_seen(
    config: &CrawlConfig,
    store: &dyn Store,
    next_sequence: u64,
) -> Result<SeenTest, EngineError> {
    let seen_config = SeenConfig {
        expected_urls: config.expected_urls,
        false_positive_rate: config.false_positive_rate,
        fixed_filter_urls: config.fixed_filter_urls,
        cache_bytes: config.cache_bytes,
    };
    let seen = SeenTest::new(&seen_config, next_sequence)
        .map_err(|error| EngineError::Config(error.to_string()))?;
    store.scan_keys(&mut |keys| seen.load(keys))?;
    Ok(seen)
}

fn rebuild_workbench(
    config: &CrawlConfig,
    store: &dyn Store,
    pages_done: u64,
    next_sequence: u64,
) -> Result<Workbench, EngineError> {
    let mut workbench = Workbench::new(workbench_config(config), pages_done, next_sequence);
    store.queued_hosts(&mut |host, queued_count, first| {
        workbench.restore_host(host, queued_count, first);
    })?;
    Ok(workbench)
}

/// Returns the workbench's settings: the user's, and the documented constants.
fn workbench_config(config: &CrawlConfig) -> WorkbenchConfig {
    WorkbenchConfig {
        concurrency: config.concurrency,
        leases_max: config.leases_in_force(),
        per_host: config.per_host,
        per_ip: config.per_ip.unwrap_or(CrawlConfig::PER_IP_DEFAULT),
        delay: config.delay,
        attempts_max: config.attempts_max,
        max_pages: config.limits.max_pages,
        obey_robots: config.robots,
        ..WorkbenchConfig::default()
    }
}

fn open_outputs(
    config: &CrawlConfig,
    saved: &SavedProgress,
    random: &mut Rng,
) -> Result<Outputs, EngineError> {
    let pages = PagesFile::open(&config.data, saved.outputs.jsonl_bytes)?;
    let warc = if config.warc {
        let maker = archive::warcinfo_maker(
            config.fetch.user_agent.clone(),
            config.robots,
            random.fork(),
        );
        Some(WarcFiles::open(
            &config.data,
            &saved.outputs,
            config.warc_bytes_max,
            maker,
        )?)
    } else {
        None
    };
    Ok(Outputs::new(pages, warc, saved.outputs.clone()))
}
