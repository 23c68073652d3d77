//! Names to addresses: the system's resolver behind a bounded cache with one lookup under way per name.

use std::{
    collections::HashMap,
    fmt, io,
    net::IpAddr,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use futures_util::future::BoxFuture;
use thiserror::Error;
use tokio::{
    sync::{OnceCell, Semaphore},
    time::Instant,
};

/// Lookups under way at once. The system's resolver blocks a thread for each.
const LOOKUPS_MAX: usize = 64;
/// How long a failed lookup is believed: short, so that a retry after a backoff asks again.
const FAILURE_TTL: Duration = Duration::from_secs(5);
/// Addresses of one name that are kept.
const ADDRESSES_MAX: usize = 32;

/// A name did not resolve. Travels through the HTTP client's errors as a cause.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{name} does not resolve: {reason}")]
pub(crate) struct LookupError {
    pub(crate) name: String,
    pub(crate) reason: String,
}

type Addresses = Result<Arc<[IpAddr]>, LookupError>;
pub(crate) type Lookup =
    Box<dyn Fn(String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> + Send + Sync>;

/// The cache. Its order of addresses is the resolver's, the same for all who ask while an answer lives.
pub(crate) struct NameCache {
    generations: Mutex<Generations>,
    permits: Arc<Semaphore>,
    lookup: Lookup,
    ttl: Duration,
    generation_entries_max: usize,
}

/// Two generations: when the young one is full it becomes the old one, and what nobody asked for since is dropped.
#[derive(Default)]
struct Generations {
    young: HashMap<String, Arc<Entry>>,
    old: HashMap<String, Arc<Entry>>,
}

type Entry = OnceCell<Answer>;

struct Answer {
    addresses: Addresses,
    expires: Instant,
}

impl NameCache {
    /// Makes a cache in front of the system's resolver.
    pub(crate) fn new(ttl: Duration, entries_max: usize) -> Self {
        Self::with_lookup(
            ttl,
            entries_max,
            Box::new(|name| Box::pin(ask_system(name))),
        )
    }

    pub(crate) fn with_lookup(ttl: Duration, entries_max: usize, lookup: Lookup) -> Self {
        Self {
            generations: Mutex::default(),
            permits: Arc::new(Semaphore::new(LOOKUPS_MAX)),
            lookup,
            ttl,
            generation_entries_max: (entries_max / 2).max(1),
        }
    }

    /// Returns the addresses of a name, at least one.
    pub(crate) async fn addresses(&self, name: &str) -> Addresses {
        let entry = self.entry(name);
        entry.get_or_init(|| self.ask(name)).await.addresses.clone()
    }

    /// Returns the entry of a name: a live answer, one under way, or an empty one.
    fn entry(&self, name: &str) -> Arc<Entry> {
        let mut guard = self
            .generations
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let Generations { young, old } = &mut *guard;
        let is_live = |entry: &Arc<Entry>| {
            entry
                .get()
                .is_none_or(|answer| Instant::now() < answer.expires)
        };
        if let Some(entry) = young.get(name).filter(|entry| is_live(entry)) {
            return Arc::clone(entry);
        }
        let entry = old.remove(name).filter(is_live).unwrap_or_default();
        if young.len() >= self.generation_entries_max {
            *old = std::mem::take(young);
        }
        young.insert(name.to_owned(), Arc::clone(&entry));
        entry
    }

    /// Asks the resolver. A lookup that has begun runs on when its asker gives up, since its thread cannot be called
    /// back; it keeps its permit so long. One that still waits for its permit is forgotten.
    async fn ask(&self, name: &str) -> Answer {
        let permit = Arc::clone(&self.permits).acquire_owned().await;
        let looking = (self.lookup)(name.to_owned());
        let found = tokio::spawn(async move {
            let _permit = permit;
            looking.await
        })
        .await;
        let fail = |reason: String| {
            Err(LookupError {
                name: name.to_owned(),
                reason,
            })
        };
        let addresses = match found {
            Ok(Ok(found)) if found.is_empty() => fail("it has no address".to_owned()),
            Ok(Ok(found)) => Ok(distinct(found)),
            Ok(Err(error)) => fail(error.to_string()),
            Err(error) => fail(error.to_string()),
        };
        let ttl = if addresses.is_ok() {
            self.ttl
        } else {
            self.ttl.min(FAILURE_TTL)
        };
        Answer {
            addresses,
            expires: Instant::now() + ttl,
        }
    }
}

impl fmt::Debug for NameCache {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("NameCache").finish_non_exhaustive()
    }
}

async fn ask_system(name: String) -> io::Result<Vec<IpAddr>> {
    let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
    Ok(found.map(|address| address.ip()).collect())
}

fn distinct(found: Vec<IpAddr>) -> Arc<[IpAddr]> {
    let mut kept: Vec<IpAddr> = Vec::with_capacity(found.len().min(ADDRESSES_MAX));
    for address in found {
        if kept.len() < ADDRESSES_MAX && !kept.contains(&address) {
            kept.push(address);
        }
    }
    kept.into()
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a failed set-up fails the test")]

    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    /// A cache whose resolver answers with the number of the lookup, after a moment; names in `nowhere.` fail.
    fn counting(ttl: Duration, entries_max: usize) -> (Arc<NameCache>, Arc<AtomicU64>) {
        let count = Arc::new(AtomicU64::new(0));
        let counter = Arc::clone(&count);
        let lookup: Lookup = Box::new(move |name| {
            let number = counter.fetch_add(1, Ordering::SeqCst);
            Box::pin(async move {
                tokio::time::sleep(Duration::from_millis(20)).await;
                if name.ends_with("nowhere") {
                    return Err(io::Error::other("no such name"));
                }
                let first = IpAddr::from([10, 0, 0, u8::try_from(number).unwrap()]);
                Ok(vec![first, IpAddr::from([1, 1, 1, 1]), first])
            })
        });
        (
            Arc::new(NameCache::with_lookup(ttl, entries_max, lookup)),
            count,
        )
    }

    #[tokio::test]
    async fn many_askers_share_one_lookup_and_its_order() {
        let (cache, count) = counting(Duration::from_mins(1), 10);
        let askers: Vec<_> = (0..50)
            .map(|_| {
                let cache = Arc::clone(&cache);
                tokio::spawn(async move { cache.addresses("a.example").await })
            })
            .collect();
        for asker in askers {
            let found = asker.await.unwrap().unwrap();
            assert_eq!(
                *found,
                [IpAddr::from([10, 0, 0, 0]), IpAddr::from([1, 1, 1, 1])]
            );
        }
        assert_eq!(count.load(Ordering::SeqCst), 1);
    }

    #[tokio::test]
    async fn an_asker_that_gives_up_does_not_spoil_the_entry() {
        let (cache, _) = counting(Duration::from_mins(1), 10);
        let impatient =
            tokio::time::timeout(Duration::from_millis(1), cache.addresses("a.example")).await;
        assert!(impatient.is_err());
        assert!(cache.addresses("a.example").await.is_ok());
    }

    #[tokio::test]
    async fn answers_expire_and_failures_are_cached_too() {
        let (cache, count) = counting(Duration::from_millis(40), 10);
        let error = cache.addresses("nowhere").await.unwrap_err();
        assert_eq!(error.to_string(), "nowhere does not resolve: no such name");
        assert_eq!(cache.addresses("nowhere").await.unwrap_err(), error);
        assert_eq!(count.load(Ordering::SeqCst), 1);
        tokio::time::sleep(Duration::from_millis(60)).await;
        assert!(cache.addresses("nowhere").await.is_err());
        assert_eq!(count.load(Ordering::SeqCst), 2);
    }

    #[tokio::test]
    async fn entries_stay_bounded_and_what_is_used_stays() {
        let (cache, count) = counting(Duration::from_mins(1), 8);
        let mut askers = Vec::new();
        for number in 0..60 {
            cache.addresses("hot.example").await.unwrap();
            let cache = Arc::clone(&cache);
            askers.push(tokio::spawn(async move {
                cache.addresses(&format!("{number}.example")).await
            }));
            tokio::task::yield_now().await;
        }
        for asker in askers {
            asker.await.unwrap().unwrap();
        }
        let generations = cache.generations.lock().unwrap();
        assert!(generations.young.len() + generations.old.len() <= 8);
        assert_eq!(
            count.load(Ordering::SeqCst),
            61,
            "the hot name was looked up once"
        );
    }
}
