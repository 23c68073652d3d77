//! Tests of the recent-key cache.

use super::*;

fn keys(count: usize) -> Vec<u128> {
    let mut random = fastrand::Rng::with_seed(5);
    (0..count).map(|_| random.u128(..)).collect()
}

fn cache(bytes_max: usize) -> RecentKeys {
    RecentKeys::new(bytes_max, Pages::System).expect("it fits")
}

fn has(cache: &RecentKeys, key: u128) -> bool {
    cache.read().contains(key)
}

fn held_count(cache: &RecentKeys, keys: &[u128]) -> usize {
    keys.iter().filter(|key| has(cache, **key)).count()
}

#[test]
fn holds_most_of_a_working_set_of_its_size_and_only_what_was_inserted() {
    // 1,000 sets, and as many as come of three doublings.
    for factor in [1, 128] {
        let cache = cache(64 * (1_000 * factor + 1));
        let keys = keys(9_000 * factor);
        let (inserted, others) = keys.split_at(6_000 * factor);
        for key in inserted {
            cache.insert(*key);
        }
        // Sets of six lose what is beyond the sixth: a sixth of a full cache.
        let share = held_count(&cache, inserted) * 100 / inserted.len();
        assert!((82..86).contains(&share), "{share} % at {factor}");
        assert_eq!(held_count(&cache, others), 0);
    }
}

#[test]
fn keeps_what_is_asked_for_over_what_is_not() {
    let cache = cache(64 * 2_000);
    let keys = keys(100_000);
    let (hot, cold) = keys.split_at(1_000);
    for key in hot {
        cache.insert(*key);
    }
    let mut hits_count = 0;
    for cold in cold.chunks(1_000) {
        for (hot, cold) in hot.iter().zip(cold) {
            if has(&cache, *hot) {
                hits_count += 1;
            } else {
                cache.insert(*hot);
            }
            cache.insert(*cold);
        }
    }
    assert!(hits_count > 98_500, "{hits_count} of 99,000");
}

#[test]
fn a_key_is_held_once_and_evicted_in_order_of_use() {
    // One set.
    let cache = cache(128);
    let keys = keys(7);
    for key in &keys[..6] {
        cache.insert(*key);
    }
    cache.insert(keys[0]);
    assert!(has(&cache, keys[1]));
    cache.insert(keys[6]);
    let held: Vec<bool> = keys.iter().map(|key| has(&cache, *key)).collect();
    assert_eq!(held, [true, true, false, true, true, true, true]);
}

#[test]
fn memory_follows_use_and_growth_forgets_nothing() {
    let cache = cache(8 << 20);
    let keys = keys(600_000);
    let mut size_bytes = cache.size_bytes();
    assert!(size_bytes <= 1 << 20);
    for (index, key) in keys.iter().enumerate() {
        cache.read().insert(*key);
        let before = cache.read().levels.current.held_count.load(Relaxed);
        if cache.grow_if_full() {
            size_bytes *= 2;
            let after = cache.read().levels.current.held_count.load(Relaxed);
            assert_eq!((cache.size_bytes(), after), (size_bytes, before));
            assert_eq!(held_count(&cache, &keys[..=index]) as u64, before);
        }
        // A key takes 10.7 bytes of a full set, and four times as much when the sets have just been doubled.
        assert!(size_bytes <= 1 << 20 || size_bytes <= 43 * (index as u64 + 1));
    }
    assert!(size_bytes > (8 << 20) * 9 / 10 && size_bytes <= 8 << 20);
}

#[test]
fn keys_that_differ_in_one_bit_are_told_apart_at_every_size() {
    let mut random = fastrand::Rng::with_seed(9);
    for doublings in [0, 2, 4] {
        let cache = cache(64 * ((16_000 << doublings) + 1));
        while cache.read().levels.current.doublings < doublings {
            cache.insert(random.u128(..));
        }
        let key = random.u128(..);
        // The partition is no hash, and not looked at.
        for bit in 0..120 {
            cache.insert(key);
            let other = key ^ 1 << bit;
            assert!(has(&cache, key));
            // In the middle of the place and what follows on it a bit may change neither.
            if !(56..120).contains(&bit) || bit >= 100 {
                assert!(!has(&cache, other), "bit {bit} of {doublings}");
            }
        }
    }
}

#[test]
fn never_asks_for_more_than_it_may() {
    for bytes_max in [0, 1, 64, 127, 128, 5_000, 1 << 20, 3_333_333] {
        let cache = cache(bytes_max);
        let mut random = fastrand::Rng::with_seed(9);
        for _ in 0..bytes_max / 5 {
            cache.insert(random.u128(..));
        }
        assert!(cache.size_bytes() <= bytes_max as u64);
        assert!(cache.size_bytes() + 128 + bytes_max as u64 / 512 > bytes_max as u64);
        cache.insert(7);
        assert_eq!(has(&cache, 7), bytes_max >= 128);
    }
}

#[test]
fn the_key_of_an_empty_place_is_never_claimed() {
    let cache = cache(1 << 12);
    for key in [0, 1 << 120, u128::MAX << 120] {
        assert!(!has(&cache, key));
        cache.insert(key);
        assert!(!has(&cache, key));
    }
}

#[test]
fn threads_that_share_a_set_never_mix_up_keys() {
    let cache = cache(128);
    let keys = keys(80);
    let (inserted, others) = keys.split_at(40);
    std::thread::scope(|scope| {
        for part in inserted.chunks(10) {
            let cache = &cache;
            scope.spawn(move || {
                for _ in 0..2_000 {
                    for key in part {
                        cache.insert(*key);
                    }
                    assert_eq!(held_count(cache, others), 0);
                }
            });
        }
    });
    assert_eq!(held_count(&cache, inserted), 6);
}

#[test]
fn threads_go_on_while_it_grows() {
    let cache = cache(4 << 20);
    let keys = keys(260_000);
    let (inserted, others) = keys.split_at(180_000);
    std::thread::scope(|scope| {
        for part in inserted.chunks(45_000) {
            let cache = &cache;
            scope.spawn(move || {
                for (key, other) in part.iter().zip(others) {
                    cache.insert(*key);
                    assert!(!has(cache, *other));
                }
            });
        }
    });
    // Where growth lags behind, sets overflow; from then on all is as ever.
    let again = &inserted[..10_000];
    for key in again {
        cache.insert(*key);
    }
    assert!(held_count(&cache, again) > 9_900);
}

#[test]
fn what_is_inserted_while_it_doubles_is_held_too() {
    let cache = cache(2 << 20);
    let keys = keys(90_000);
    for key in &keys[..45_000] {
        cache.read().insert(*key);
    }
    let (base_count, doublings) = (cache.base_count, 1);
    let next = Level::new(base_count << doublings, doublings, Pages::System).expect("it fits");
    cache.change(|levels| levels.next = Some(next));
    // As many again as make it full, of which some drive out others before these are copied.
    for key in &keys[45_000..] {
        cache.read().insert(*key);
    }
    cache.read().levels.copy_to_next();
    cache.change(|levels| levels.current = levels.next.take().expect("it was made"));
    let held = cache.read().levels.current.held_count.load(Relaxed);
    assert_eq!(held_count(&cache, &keys) as u64, held);
    assert!(held > 88_000, "{held} of 90,000");
}
