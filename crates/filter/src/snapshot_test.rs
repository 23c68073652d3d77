//! Unit tests of snapshots: what comes back, and that nothing damaged does.

use super::*;
use crate::Answer;

fn keys(count: usize) -> Vec<u128> {
    let mut random = fastrand::Rng::with_seed(8);
    (0..count).map(|_| random.u128(..)).collect()
}

fn filled(expected_count: u64, exact: Exact, keys: &[u128]) -> GrowingFilter {
    let filter = GrowingFilter::new(&GrowthConfig {
        expected_count,
        exact,
        ..GrowthConfig::default()
    })
    .expect("in range");
    filter.enter(keys);
    filter
}

fn saved(filter: &GrowingFilter) -> Vec<u8> {
    let mut bytes = Vec::new();
    filter
        .save(b"a label", &mut bytes)
        .expect("memory takes it");
    bytes
}

#[test]
fn a_filter_comes_back_as_it_was_and_grows_on() {
    let keys = keys(40_000);
    for (expected_count, exact, offered_count) in [
        (1_000, Exact::Small, 0),
        (1_000, Exact::Small, 2_000),
        (1_000, Exact::Always, 20_000),
        (50_000, Exact::Never, 20_000),
        (1_000, Exact::Never, 20_000),
    ] {
        let (offered, others) = keys.split_at(offered_count);
        let filter = filled(expected_count, exact, offered);
        let (label, loaded) = GrowingFilter::load(&mut &saved(&filter)[..]).expect("whole");
        assert_eq!(label, b"a label");
        assert_eq!(loaded.config(), filter.config());
        let (mut stats, mut expected) = (loaded.stats(), filter.stats());
        // The maps of an exact set may have grown by other steps.
        if expected.is_exact {
            (stats.size_bytes, expected.size_bytes) = (0, 0);
        }
        assert_eq!(stats, expected);
        let (mut before, mut after) = (
            vec![Answer::New; others.len()],
            vec![Answer::New; others.len()],
        );
        filter.check_and_insert_batch(others, &mut before);
        loaded.check_and_insert_batch(others, &mut after);
        assert!(before == after, "both answer alike while they grow");
        let mut answers = vec![Answer::New; keys.len()];
        loaded.contains_batch(&keys, &mut answers);
        assert!(!answers.contains(&Answer::New));
    }
}

/// The first line of a filter that has one slice of one line.
fn with_first_line<T>(filter: &GrowingFilter, act: impl FnOnce(&line::Line) -> T) -> T {
    match &*filter.read().stage {
        Stage::Slices(slices) => act(slices[0].filter.lines().line(0)),
        Stage::Exact(_) => panic!("it has slices"),
    }
}

#[test]
fn a_lock_that_is_held_is_neither_saved_nor_loaded() {
    const LOCK: u64 = 1 << 63;
    let filter = filled(10, Exact::Never, &[5]);
    let free = saved(&filter);
    let lock = |line: &line::Line| line[0].fetch_or(LOCK, std::sync::atomic::Ordering::Relaxed);
    with_first_line(&filter, lock);
    assert!(saved(&filter) == free);
    // One that has it all the same, under a right checksum.
    let mut locked = free.clone();
    let (content, checksum) = (free.len() - 8 - 64, free.len() - 8);
    locked[content + 7] |= 0x80;
    let sum = xxhash_rust::xxh3::xxh3_64(&locked[content..checksum]);
    locked[checksum..].copy_from_slice(&sum.to_le_bytes());
    let (_, loaded) = GrowingFilter::load(&mut &locked[..]).expect("whole");
    assert!(saved(&loaded) == free);
    let mut answers = [Answer::New];
    loaded.check_and_insert_batch(&[1 << 90], &mut answers);
}

#[test]
fn numbers_that_no_filter_has_are_refused_under_a_right_checksum() {
    let whole = saved(&filled(10, Exact::Never, &[5]));
    let resealed = |changed: &mut [u8], checksum: usize| {
        let sum = xxhash_rust::xxh3::xxh3_64(&changed[..checksum]);
        changed[checksum..checksum + 8].copy_from_slice(&sum.to_le_bytes());
    };
    // Header and label come before the table of five numbers.
    let table = HEADER_BYTES + 7;
    let checksum = table + 40;
    let mut unchanged = whole.clone();
    resealed(&mut unchanged, checksum);
    assert!(
        unchanged == whole,
        "the checksum is where it is taken to be"
    );
    for (at, bytes) in [
        (12, &[2][..]),
        (16, &[0; 8]),
        (24, &[0; 8]),
        (24, &f64::NAN.to_le_bytes()),
        (32, &[3]),
        (table, &[0; 8]),
        (table + 8, &[0xff; 8]),
        (table + 16, &[0; 8]),
        (table + 24, &[0; 8]),
        (table + 24, &[0xff; 8]),
        (table + 32, &[0xff; 8]),
    ] {
        let mut changed = whole.clone();
        changed[at..at + bytes.len()].copy_from_slice(bytes);
        resealed(&mut changed, checksum);
        let error = GrowingFilter::load(&mut &changed[..]).expect_err("refused");
        assert!(
            matches!(error, SnapshotError::Damaged(_)),
            "{bytes:?} at {at}: {error}"
        );
    }
}

#[test]
fn only_the_snapshot_that_is_wanted_is_read() {
    let bytes = saved(&filled(1_000, Exact::Never, &keys(10)));
    let mut from = &bytes[..];
    let unwanted = GrowingFilter::load_if(&mut from, |label| label == b"another");
    assert!(unwanted.expect("whole").is_none());
    assert!(from.len() > 64, "its content was left");
    let wanted = GrowingFilter::load_if(&mut &bytes[..], |label| label == b"a label");
    assert_eq!(
        wanted.expect("whole").expect("wanted").stats().item_count,
        10
    );
}

#[test]
fn every_flipped_bit_and_every_cut_is_refused() {
    for (expected_count, exact) in [
        (1_000, Exact::Never),
        (10, Exact::Never),
        (1_000, Exact::Small),
    ] {
        let bytes = saved(&filled(expected_count, exact, &keys(100)));
        let bits_count = bytes.len() * 8;
        // A step that is prime to the bits of a byte comes by all kinds of them.
        for bit in (0..bits_count).step_by(if bits_count > 20_000 { 7 } else { 1 }) {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            let error = GrowingFilter::load(&mut &flipped[..]).expect_err("refused");
            match bit / 8 {
                0..8 => assert!(matches!(error, SnapshotError::NotASnapshot), "{error}"),
                8..12 => assert!(matches!(error, SnapshotError::Version(_)), "{error}"),
                _ => assert!(
                    matches!(error, SnapshotError::Damaged(_) | SnapshotError::Cut),
                    "bit {bit}: {error}"
                ),
            }
        }
        for length in 0..bytes.len() {
            let error = GrowingFilter::load(&mut &bytes[..length]).expect_err("refused");
            if length < 8 {
                assert!(matches!(error, SnapshotError::NotASnapshot), "{error}");
            } else {
                assert!(matches!(error, SnapshotError::Cut), "{length}: {error}");
            }
        }
        let mut longer = bytes.clone();
        longer.push(0);
        let error = GrowingFilter::load(&mut &longer[..]).expect_err("refused");
        assert!(matches!(error, SnapshotError::Damaged(_)), "{error}");
    }
}

#[test]
fn the_format_is_the_documented_one() {
    let bytes = saved(&filled(64, Exact::Never, &[u128::MAX]));
    assert_eq!(&bytes[..12], b"BLMFILTR\x01\0\0\0");
    // Header, label, table, checksum; then the lines and their checksum.
    let lines_count = Filter::lines_for(64, 0.01).expect("in range");
    assert_eq!(bytes.len(), 64 + 7 + 40 + 8 + lines_count * 64 + 8);
    assert_eq!(&bytes[64..71], b"a label");
}

/// Which bits a key sets is part of the format. If this fails, the version has to be another.
#[test]
fn keys_set_the_bits_that_version_1_says() {
    let bytes = saved(&filled(100, Exact::Never, &keys(100)));
    assert_eq!(SNAPSHOT_VERSION, 1);
    assert_eq!(xxhash_rust::xxh3::xxh3_64(&bytes), 0x3a03_f1a7_7e5c_e405);
}

#[test]
fn a_label_that_is_too_long_is_refused() {
    let filter = filled(1, Exact::Small, &[]);
    let label = vec![0; LABEL_BYTES_MAX + 1];
    assert!(filter.save(&label, &mut Vec::new()).is_err());
}
