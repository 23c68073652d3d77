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

#[test]
fn a_lock_that_is_held_is_not_saved() {
    let filter = Filter::with_rate(1, 0.01).expect("in range");
    filter.check_and_insert(5);
    let line = filter.lines().line(0);
    let word = line[0].fetch_or(1 << 63, std::sync::atomic::Ordering::Relaxed);
    assert_eq!(line::without_lock(line, 0), word);
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

#[test]
fn a_label_that_is_too_long_is_refused() {
    let filter = filled(1, Exact::Small, &[]);
    let label = vec![0; LABEL_BYTES_MAX + 1];
    assert!(filter.save(&label, &mut Vec::new()).is_err());
}
