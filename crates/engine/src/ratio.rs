//! Counts as shares and rates, for people to read.

/// Returns `part / whole`; `of_nothing` where there is nothing to share.
#[expect(
    clippy::cast_precision_loss,
    reason = "a share is read to a few digits"
)]
pub(crate) fn share(part: u64, whole: u64, of_nothing: f64) -> f64 {
    if whole == 0 {
        of_nothing
    } else {
        part as f64 / whole as f64
    }
}

/// Returns `count` a second over `seconds`; 0 over no time.
#[expect(clippy::cast_precision_loss, reason = "a rate is read to a few digits")]
pub(crate) fn per_second(count: u64, seconds: f64) -> f64 {
    if seconds > 0.0 {
        count as f64 / seconds
    } else {
        0.0
    }
}

/// Returns how long `count` takes at `rate` a second, if that is any time at all.
#[expect(
    clippy::cast_precision_loss,
    reason = "an estimate is read to a few digits"
)]
pub(crate) fn time_at(count: u64, rate: f64) -> Option<std::time::Duration> {
    (rate > 0.0)
        .then(|| std::time::Duration::try_from_secs_f64(count as f64 / rate).ok())
        .flatten()
}
