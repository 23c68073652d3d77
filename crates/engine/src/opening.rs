//! Opening a crawl: the store, and everything that is rebuilt from it.

use std::sync::Arc;

use fastrand::Rng;
use frontier::{SeenMode, SeenTest, Workbench, WorkbenchConfig};
use store::{CrawlIdentity, OpenedStore, Store, StoreError};
use types::{CanonicalUrl, Host, KEY_VERSION, KeySeed};

use crate::{
    CrawlConfig, EngineError, OpeningEvent, StoreConfig, archive,
    folder::{CanonicalRules, Folder, FolderIdentity},
    output::{Outputs, PagesFile, WarcFiles},
    patience::patiently_at_opening,
    saved::SavedProgress,
    seen::{self, OpenedSeen, SnapshotUse},
    snapshot::SnapshotLabel,
};

/// The folder of the embedded store.
const STORE_FOLDER: &str = "store";

/// An opened crawl, ready to run.
pub(crate) struct Opened {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) seen: Arc<SeenTest>,
    pub(crate) workbench: Workbench,
    pub(crate) outputs: Outputs,
    pub(crate) saved: SavedProgress,
    pub(crate) key_seed: KeySeed,
    pub(crate) next_sequence: u64,
    pub(crate) random: Rng,
    /// What a snapshot of the state as opened is called.
    pub(crate) snapshot: SnapshotLabel,
    /// What became of the one that was kept.
    pub(crate) snapshot_use: SnapshotUse,
}

/// Opens the store of a crawl, and rebuilds what lives in memory from what it holds.
pub(crate) fn open(
    config: &CrawlConfig,
    folder: &Folder,
    observer: &mut dyn FnMut(OpeningEvent),
) -> Result<Opened, EngineError> {
    let mut random = system_random()?;
    let claimed = folder.identity()?;
    let rules = CanonicalRules::from(&config.canonical);
    check_rules(config, claimed.as_ref(), &rules)?;
    // The id is always a fresh one: a store that lacks the folder's crawl must not come to look as if it had it.
    let offered = CrawlIdentity {
        crawl_id: format!("{:032x}", random.u128(..)),
        key_seed: random.u64(..),
        key_version: KEY_VERSION,
    };
    let OpenedStore {
        store,
        identity,
        progress,
    } = open_store(config, &offered)?;
    check_identity(
        config,
        folder,
        claimed.as_ref(),
        &identity,
        progress.is_some(),
    )?;
    if claimed.is_none() {
        folder.set_identity(&FolderIdentity {
            crawl_id: identity.crawl_id.clone(),
            canonical: rules,
        })?;
    }
    let saved = match progress {
        Some(bytes) => SavedProgress::from_bytes(&bytes)?,
        None => SavedProgress::default(),
    };
    check_mode(config, &saved)?;
    // The first connection is not waited for, since its address may be wrong; from here on it is known to be right.
    let next_sequence = patiently_at_opening(|| store.next_sequence())?;
    let snapshot = SnapshotLabel::new(identity.crawl_id, next_sequence, saved.key_sum);
    let OpenedSeen {
        seen,
        holds,
        snapshot_use,
    } = seen::open(config, store.as_ref(), &snapshot, observer)?;
    let workbench = patiently_at_opening(|| {
        rebuild_workbench(config, store.as_ref(), saved.totals.pages, next_sequence)
    })?;
    check_holdings(&saved, &holds, workbench.stats().queued_count)?;
    let outputs = open_outputs(config, &saved, &mut random)?;
    Ok(Opened {
        store: Arc::from(store),
        seen: Arc::new(seen),
        workbench,
        outputs,
        saved,
        key_seed: KeySeed::new(identity.key_seed),
        next_sequence,
        random,
        snapshot,
        snapshot_use,
    })
}

/// Opens the store of a crawl that was begun, and makes none where there is none.
pub(crate) fn open_begun_store(
    config: &CrawlConfig,
    folder: &Folder,
    claimed: &FolderIdentity,
) -> Result<OpenedStore, EngineError> {
    let is_there = match &config.store {
        StoreConfig::Embedded => store::embedded::is_there(&config.data.join(STORE_FOLDER)),
        StoreConfig::Postgres { uri, schema } => store::postgres::is_there(uri, schema)?,
    };
    if !is_there {
        return Err(EngineError::Mismatch {
            folder: config.data.clone(),
            folder_crawl: format!("crawl {}", claimed.crawl_id),
            store_crawl: "no crawl".to_owned(),
        });
    }
    let offered = CrawlIdentity {
        crawl_id: format!("{:032x}", system_random()?.u128(..)),
        key_seed: 0,
        key_version: KEY_VERSION,
    };
    let opened = open_store(config, &offered)?;
    let has_progress = opened.progress.is_some();
    check_identity(
        config,
        folder,
        Some(claimed),
        &opened.identity,
        has_progress,
    )?;
    Ok(opened)
}

/// Refuses to go on with a crawl under other rules of canonicalization than it was begun with.
fn check_rules(
    config: &CrawlConfig,
    claimed: Option<&FolderIdentity>,
    rules: &CanonicalRules,
) -> Result<(), EngineError> {
    if claimed.is_none_or(|claimed| claimed.canonical == *rules) {
        return Ok(());
    }
    Err(EngineError::Config(format!(
        "the crawl in {} was begun with other rules of canonicalization; under these the same pages would have \
         other keys, so go on with the rules it was begun with",
        config.data.display()
    )))
}

/// Refuses to go on in another mode of the seen test, where that would pass off as complete what is not, or mix counts of
/// unlike things.
fn check_mode(config: &CrawlConfig, saved: &SavedProgress) -> Result<(), EngineError> {
    if saved.seen_mode.is_empty() {
        // A crawl that has not begun.
        return Ok(());
    }
    let before: SeenMode = saved
        .seen_mode
        .parse()
        .map_err(|error| StoreError::Corrupt(format!("the crawl's progress: {error}")))?;
    if config.seen_mode.continues(before) {
        return Ok(());
    }
    Err(EngineError::Config(format!(
        "the crawl in {} was begun with the seen test in mode {before}, and cannot go on in mode {}: go on in {before}, \
         or begin a new crawl in another folder",
        config.data.display(),
        config.seen_mode
    )))
}

/// Seeds a generator from the system, so that no site can guess the crawl's key seed.
fn system_random() -> Result<Rng, EngineError> {
    let mut seed = [0; 8];
    getrandom::fill(&mut seed).map_err(|error| {
        EngineError::Internal(format!("the system gave no random bytes: {error}"))
    })?;
    Ok(Rng::with_seed(u64::from_le_bytes(seed)))
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

/// Refuses a folder and a store that are not of one crawl, before any output is touched.
fn check_identity(
    config: &CrawlConfig,
    folder: &Folder,
    claimed: Option<&FolderIdentity>,
    identity: &CrawlIdentity,
    store_has_progress: bool,
) -> Result<(), EngineError> {
    let mismatch = |folder_crawl: &str| {
        let store_crawl = if store_has_progress {
            format!("crawl {}", identity.crawl_id)
        } else {
            "no crawl yet".to_owned()
        };
        Err(EngineError::Mismatch {
            folder: config.data.clone(),
            folder_crawl: folder_crawl.to_owned(),
            store_crawl,
        })
    };
    match claimed {
        Some(claimed) if claimed.crawl_id == identity.crawl_id => Ok(()),
        Some(claimed) => mismatch(&format!("crawl {}", claimed.crawl_id)),
        None if store_has_progress => mismatch("no crawl"),
        None if folder.has_outputs() => mismatch("a crawl whose crawl.json is gone"),
        None => Ok(()),
    }
}

/// Refuses a store that holds less, or more, or other things than its own accounts say: to go on with it would lose URLs,
/// or fetch them twice, without a word. Where the filter came from its snapshot, the keys in the store itself were not
/// read.
fn check_holdings(
    saved: &SavedProgress,
    holds: &SnapshotLabel,
    queued_count: u64,
) -> Result<(), EngineError> {
    let corrupt = |problem: String| {
        Err(EngineError::Store(StoreError::Corrupt(format!(
            "{problem}; restore it from a copy, or begin a new crawl"
        ))))
    };
    let counts = &saved.counts;
    let admitted_count = counts.queued + counts.finished();
    for (what, held, accounted) in [
        ("queued URLs", queued_count, counts.queued),
        ("known keys", holds.next_sequence(), admitted_count),
    ] {
        if held != accounted {
            return corrupt(format!(
                "it has {held} {what}, but its accounts say {accounted}"
            ));
        }
    }
    if holds.key_sum() != saved.key_sum {
        return corrupt("its keys are not those that its accounts speak of".to_owned());
    }
    Ok(())
}

fn rebuild_workbench(
    config: &CrawlConfig,
    store: &dyn Store,
    pages_done: u64,
    next_sequence: u64,
) -> Result<Workbench, StoreError> {
    let mut workbench = Workbench::new(workbench_config(config), pages_done, next_sequence);
    if config.limits.max_pages_per_domain.is_some() {
        // What each domain has brought, the records of the pages say; only this limit needs to know.
        store.scan_pages(&mut |_, bytes| {
            if let Some(host) = host_of_page(bytes) {
                workbench.restore_page(&host);
            }
        })?;
    }
    store.queued_hosts(&mut |host, queued_count, first| {
        workbench.restore_host(host, queued_count, first);
    })?;
    Ok(workbench)
}

/// Returns the host of a page with a response, by its record. One that cannot be read is for `verify` to report.
fn host_of_page(record: &[u8]) -> Option<Host> {
    #[derive(serde::Deserialize)]
    struct Page {
        url: String,
        status: Option<u16>,
    }
    let page: Page = serde_json::from_slice(record).ok()?;
    page.status?;
    Some(CanonicalUrl::from_stored(page.url).ok()?.host())
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
        host_attempts_max: config.host_attempts_max,
        max_pages: config.limits.max_pages,
        domain_pages_max: config.limits.max_pages_per_domain,
        obey_robots: config.robots,
        active_hosts_max: config.active_hosts_max,
        idle_hosts_max: config.idle_hosts_max,
        rules_bytes_max: config.rules_bytes_max,
        window_max: CrawlConfig::WINDOW_URLS_MAX,
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
