//! What one link costs on its way: canonicalization, its key, and the filter's answer.
//!
//! Run it with `cargo bench --package benches --bench links`. Figures of one run compare; those of two machines do not.

use std::hint::black_box;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use filter::Filter;
use types::{Canonicalizer, KeySeed};
use url::Url;

/// Keys in the filter; its 12.6 MB are more than a core's own caches hold.
const KEYS: u64 = 10_000_000;
/// Look-ups a measured round, about a page's links.
const ROUND: usize = 64;

fn canonicalize(criterion: &mut Criterion) {
    let canonicalizer = Canonicalizer::default();
    let base = Url::parse("https://docs.example/guide/part/index.html").expect("a valid URL");
    let hrefs = [
        "../a.html",
        "/b/c?x=1&y=2",
        "https://other.example/%7euser/",
        "d#top",
        "./e/f/g.html?q=%c3%a4",
    ];
    let seed = KeySeed::new(7);
    let mut group = criterion.benchmark_group("canonicalize");
    group.throughput(Throughput::Elements(hrefs.len() as u64));
    group.bench_function("resolve", |bencher| {
        bencher.iter(|| {
            for href in hrefs {
                drop(black_box(canonicalizer.resolve(&base, black_box(href))));
            }
        });
    });
    let urls: Vec<_> = hrefs
        .iter()
        .filter_map(|href| canonicalizer.resolve(&base, href).ok())
        .collect();
    group.bench_function("key", |bencher| {
        bencher.iter(|| {
            for url in &urls {
                black_box(seed.key(black_box(url)));
            }
        });
    });
    group.finish();
}

fn filter(criterion: &mut Criterion) {
    let filter = Filter::with_rate(KEYS, 0.01).expect("a size that fits");
    let mut random = fastrand::Rng::with_seed(1);
    for _ in 0..KEYS / 2 {
        filter.check_and_insert(random.u128(..));
    }
    let mut group = criterion.benchmark_group("filter");
    group.throughput(Throughput::Elements(ROUND as u64));
    group.bench_function("contains, absent", |bencher| {
        bencher.iter_batched_ref(
            || [(); ROUND].map(|()| random.u128(..)),
            |keys| keys.iter().filter(|key| filter.contains(**key)).count(),
            BatchSize::SmallInput,
        );
    });
    let mut random = fastrand::Rng::with_seed(2);
    group.bench_function("check and insert", |bencher| {
        bencher.iter_batched_ref(
            || [(); ROUND].map(|()| random.u128(..)),
            |keys| {
                let mut is_new = [false; ROUND];
                filter.check_and_insert_batch(keys, &mut is_new);
                is_new
            },
            BatchSize::SmallInput,
        );
    });
    group.finish();
}

criterion_group!(benches, canonicalize, filter);
criterion_main!(benches);
