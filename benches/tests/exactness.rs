//! In every mode that promises it no URL is lost and none is admitted twice; in the mode that does not, as many are lost
//! as it expects.

#![expect(clippy::unwrap_used, reason = "a failed set-up fails the test")]
#![expect(clippy::print_stderr, reason = "a skipped test says so")]

use std::env;

use benches::seen_test::{
    driver::{Driven, Driver},
    memory_store::MemoryStore,
    meter::Aside,
    stream::{Census, LinkStream, Model, ModelConfig, link_stream},
    truth::{Judgement, Truth},
    workload::{CORPORA, corpus},
};
use frontier::{SeenConfig, SeenMode};
use store::{CommitBatch, Store, StoreCounters, StoreError};
use types::{Host, QueuePosition, QueuedUrl, UrlKey};

fn config(mode: SeenMode, census: &Census) -> SeenConfig {
    SeenConfig {
        mode,
        expected_urls: census.distinct_count,
        cache_bytes: 1 << 20,
        ..SeenConfig::default()
    }
}

fn drive(
    stream: &dyn LinkStream,
    store: &dyn Store,
    config: &SeenConfig,
) -> anyhow::Result<(Driven, Judgement)> {
    stream.rewind();
    let truth = Truth::new(stream.slot_count());
    let driver = Driver {
        stream,
        store,
        truth: &truth,
        aside: &Aside::default(),
        thread_count: 3,
        pages_max: 64,
    };
    let outcome = driver.run(config)?;
    Ok((outcome, truth.judge()))
}

fn assert_exact(stream: &dyn LinkStream) {
    let census = Census::take(stream);
    for mode in SeenMode::ALL {
        let aside = Aside::default();
        let store = MemoryStore::new(&aside);
        let (driven, judgement) = drive(stream, &store, &config(mode, &census)).unwrap();
        assert_eq!(driven.counts.discovered, census.link_count, "{mode}");
        assert_eq!(
            driven.counts.duplicates.in_page, census.in_page_count,
            "{mode}"
        );
        assert_eq!(judgement.distinct_count, census.distinct_count, "{mode}");
        assert_eq!(
            (judgement.twice_count, judgement.invented_count),
            (0, 0),
            "{mode}"
        );
        let asked = store.counters().confirmed_keys;
        assert_eq!(asked, driven.counts.store_reads(), "{mode}");
        match mode {
            SeenMode::Bloom => assert_loses_as_expected(&driven, judgement.lost_count),
            SeenMode::BloomStore => {
                assert_eq!(judgement.lost_count, 0, "{mode}");
                assert!(
                    driven.counts.false_positives > 0,
                    "the test would not see a loss"
                );
                assert!(asked < census.link_count / 10, "{asked} reads");
            }
            SeenMode::Exact => assert_eq!((judgement.lost_count, asked), (0, 0), "{mode}"),
            SeenMode::Store => {
                assert_eq!(judgement.lost_count, 0, "{mode}");
                assert!(asked > census.distinct_count, "{asked} reads");
            }
        }
    }
}

/// The mode without a store loses what the filter wrongly claims to know: a random number with a known mean.
fn assert_loses_as_expected(driven: &Driven, lost_count: u64) {
    let lost = f64::from(u32::try_from(lost_count).unwrap());
    let expected = driven.stats.filter.expected_lost;
    let deviation = (lost - expected).abs();
    assert!(
        lost > 0.0 && deviation < 6.0 * expected.sqrt() + 5.0,
        "{lost}, expected {expected}"
    );
}

#[test]
fn a_modelled_stream_is_judged_exactly() {
    let model = Model::new(ModelConfig {
        link_count: 300_000,
        host_count: 300,
        active_count: 30,
        seed: 5,
    });
    assert_exact(&model.unwrap());
}

#[test]
fn the_links_of_real_pages_are_judged_exactly() {
    if env::var_os(CORPORA).is_none() {
        eprintln!("skipped: {CORPORA} is not set");
        return;
    }
    assert_exact(&link_stream(&corpus("link-stream.tsv.gz").unwrap()).unwrap());
}

/// A store that answers questions wrongly, or not at all.
struct FaultyStore {
    inner: MemoryStore<'static>,
    answer: fn(&[UrlKey]) -> Result<Vec<bool>, StoreError>,
}

impl Store for FaultyStore {
    fn confirm(&self, keys: &[UrlKey]) -> Result<Vec<bool>, StoreError> {
        (self.answer)(keys)
    }

    fn commit(&self, batch: &CommitBatch<'_>) -> Result<(), StoreError> {
        self.inner.commit(batch)
    }

    fn is_durable_at_commit(&self) -> bool {
        self.inner.is_durable_at_commit()
    }

    fn sync(&self) -> Result<(), StoreError> {
        self.inner.sync()
    }

    fn read_queue(
        &self,
        host: &Host,
        from: QueuePosition,
        limit: usize,
    ) -> Result<Vec<QueuedUrl>, StoreError> {
        self.inner.read_queue(host, from, limit)
    }

    fn queued_hosts(
        &self,
        each: &mut dyn FnMut(Host, u64, QueuePosition),
    ) -> Result<(), StoreError> {
        self.inner.queued_hosts(each)
    }

    fn scan_keys(&self, each: &mut dyn FnMut(&[UrlKey])) -> Result<u64, StoreError> {
        self.inner.scan_keys(each)
    }

    fn scan_pages(&self, each: &mut dyn FnMut(UrlKey, &[u8])) -> Result<(), StoreError> {
        self.inner.scan_pages(each)
    }

    fn next_sequence(&self) -> Result<u64, StoreError> {
        self.inner.next_sequence()
    }

    fn counters(&self) -> StoreCounters {
        self.inner.counters()
    }
}

fn drive_faulty(
    answer: fn(&[UrlKey]) -> Result<Vec<bool>, StoreError>,
) -> anyhow::Result<Judgement> {
    let model = Model::new(ModelConfig {
        link_count: 100_000,
        host_count: 100,
        active_count: 10,
        seed: 6,
    })?;
    let census = Census::take(&model);
    let store = FaultyStore {
        inner: MemoryStore::default(),
        answer,
    };
    let config = SeenConfig {
        cache_bytes: 0,
        // A filter that is far too small, so that whatever the order of the threads it claims many that are new.
        fixed_filter_urls: Some(census.distinct_count / 10),
        ..config(SeenMode::BloomStore, &census)
    };
    drive(&model, &store, &config).map(|(_, judgement)| judgement)
}

#[test]
fn the_books_show_what_a_store_that_errs_does() {
    let judgement = drive_faulty(|keys| Ok(vec![true; keys.len()])).unwrap();
    assert!(judgement.lost_count > 0, "{judgement:?}");
    let judgement = drive_faulty(|keys| Ok(vec![false; keys.len()])).unwrap();
    assert!(judgement.twice_count > 0, "{judgement:?}");
}

#[test]
fn a_store_that_fails_ends_the_run() {
    let failed = drive_faulty(|_| Err(StoreError::Unavailable("it is gone".to_owned())));
    assert_eq!(
        failed.unwrap_err().to_string(),
        "the store is unavailable: it is gone"
    );
}
