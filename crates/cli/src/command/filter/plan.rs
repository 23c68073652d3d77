//! What a filter for a number of URLs costs and how it ages, and what the alternatives cost: the figures.

use filter::{Exact, FilterStats, GrowingFilter, GrowthConfig, Pages, SIZE_BYTES_MAX, sizing};

use crate::{
    failure::{Exit, Failure},
    unit::{grouped, human_bytes, percent},
};

/// Below this rate the filter costs more than it saves.
const RATE_MIN: f64 = 0.000_1;

/// URLs that the model of growth is planned for; twice as many are put in.
const MODEL_COUNT: u32 = 100_000;

/// Bits of a counter of a counting filter.
const COUNTER_BITS: f64 = 4.0;

/// Bits a URL of a cuckoo filter beyond those of its rate, and the share of its places that can be used (Fan et al.,
/// "Cuckoo Filter: Practically Better Than Bloom", 2014).
const CUCKOO_EXTRA_BITS: f64 = 3.0;
const CUCKOO_LOAD: f64 = 0.95;

/// What our filter costs, and how it ages.
pub(super) struct Plan {
    pub(super) urls: u64,
    pub(super) rate: f64,
    pub(super) bytes: u64,
    /// The rate at the number of URLs, and at twice as many.
    pub(super) rate_full: f64,
    pub(super) rate_double: f64,
    /// Once grown to twice as many: the rate, and the memory.
    pub(super) grown_rate: f64,
    pub(super) grown_bytes: u64,
    /// False positives among all URLs until the number is reached, if it does not grow.
    pub(super) false_positives: f64,
    /// Bits a URL at half the rate.
    pub(super) bits_at_half_rate: f64,
}

/// Another way to keep the same URLs.
pub(super) struct Alternative {
    pub(super) name: &'static str,
    pub(super) bits_a_url: f64,
    pub(super) remark: String,
}

#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "figures for people, none of them negative"
)]
impl Plan {
    /// Plans a filter for `urls` at `rate`.
    ///
    /// # Errors
    ///
    /// Fails when it would be larger than any may be.
    pub(super) fn new(urls: u64, rate: f64) -> Result<Self, Failure> {
        let lines_count = sizing::lines_for(urls, rate);
        let bytes = lines_count.saturating_mul(sizing::LINE_BYTES);
        if bytes > SIZE_BYTES_MAX {
            return Err(Failure::new(
                Exit::Usage,
                format!(
                    "a filter for {} URLs at {} is over the limit of {}",
                    grouped(urls),
                    percent(rate),
                    human_bytes(SIZE_BYTES_MAX)
                ),
            )
            .with_hint("expect fewer URLs (--urls) or accept a higher rate (--rate)"));
        }
        let load = urls as f64 / lines_count as f64;
        let grown = grown(rate)?;
        let grown_share = grown.size_bytes as f64 / f64::from(MODEL_COUNT);
        Ok(Self {
            urls,
            rate,
            bytes,
            rate_full: sizing::rate_of_load(load),
            rate_double: sizing::rate_of_load(2.0 * load),
            grown_rate: grown.predicted_rate,
            grown_bytes: (grown_share * urls as f64) as u64,
            false_positives: urls as f64 * mean_rate(load),
            bits_at_half_rate: bits_a_url(urls, rate / 2.0),
        })
    }

    /// Returns the memory of a URL in bits.
    pub(super) fn bits_a_url(&self) -> f64 {
        bits_a_url(self.urls, self.rate)
    }

    /// Returns what speaks against the rate, if something does.
    pub(super) fn advice(&self) -> Option<String> {
        (self.rate < RATE_MIN).then(|| {
            format!(
                "a rate below 0.01 % is seldom worth its memory: the store confirms each yes of the filter anyway, and each halving of the rate costs 1.44 bits a URL in an ideal filter and {:.1} in this one; 1 % to 0.1 % serves",
                self.bits_at_half_rate - self.bits_a_url()
            )
        })
    }
}

#[expect(clippy::cast_precision_loss, reason = "figures for people")]
fn bits_a_url(urls: u64, rate: f64) -> f64 {
    let bits_a_line = (sizing::LINE_BYTES * 8) as f64;
    sizing::lines_for(urls, rate) as f64 * bits_a_line / urls as f64
}

/// Returns the mean rate while a filter fills up to a load.
fn mean_rate(load: f64) -> f64 {
    const STEPS: u32 = 200;
    let rates = (0..STEPS)
        .map(|step| sizing::rate_of_load(load * (f64::from(step) + 0.5) / f64::from(STEPS)));
    rates.sum::<f64>() / f64::from(STEPS)
}

/// Grows a small filter to twice its URLs: the rate, and the memory for each URL planned, are those of any size.
fn grown(rate: f64) -> Result<FilterStats, Failure> {
    let model = GrowingFilter::new(&GrowthConfig {
        expected_count: MODEL_COUNT.into(),
        rate,
        exact: Exact::Never,
        grows: true,
        pages: Pages::System,
    })
    .map_err(|error| Failure::new(Exit::Usage, error.to_string()))?;
    let mut random = fastrand::Rng::with_seed(1);
    let keys: Vec<u128> = (0..2 * MODEL_COUNT).map(|_| random.u128(..)).collect();
    model.enter(&keys);
    Ok(model.stats())
}

/// Returns other ways to keep `urls`, those that are not exact at `rate`. The bytes a URL of the sets were measured, those
/// of the filters follow from their formulas.
#[expect(clippy::cast_precision_loss, reason = "figures for people")]
pub(super) fn alternatives(urls: u64, rate: f64) -> Vec<Alternative> {
    let bytes = |bytes: f64| bytes * 8.0;
    let halvings = -rate.log2();
    let classic_bits = halvings / std::f64::consts::LN_2;
    // The chance of one pair to be equal is 2^-64.
    let clashes = urls as f64 * urls as f64 / 2.0 / 2.0_f64.powi(64);
    let alternative = |name, bits_a_url, remark: &str| Alternative {
        name,
        bits_a_url,
        remark: remark.to_owned(),
    };
    let hashes = halvings.round().max(1.0);
    vec![
        alternative("HashSet of URLs", bytes(202.0), "exact"),
        alternative(
            "Redis SET of URLs",
            bytes(142.0),
            "exact, asked over a socket",
        ),
        alternative(
            "HashSet of 128-bit keys",
            bytes(28.5),
            "exact (--seen-mode exact)",
        ),
        alternative(
            "HashSet of 64-bit keys",
            bytes(15.1),
            &format!("two URLs in one key: {}", chance(clashes)),
        ),
        alternative(
            "counting Bloom filter",
            classic_bits * COUNTER_BITS,
            "deletes; 4 bits a counter",
        ),
        alternative(
            "cuckoo filter",
            (halvings + CUCKOO_EXTRA_BITS) / CUCKOO_LOAD,
            "deletes; refuses when full",
        ),
        alternative(
            "classic Bloom filter",
            classic_bits,
            &format!("{hashes:.0} cache lines a URL"),
        ),
    ]
}

/// Writes how many pairs of URLs share a key.
fn chance(clashes: f64) -> String {
    if clashes < 1.0 {
        percent(1.0 - (-clashes).exp())
    } else {
        format!("about {clashes:.0}")
    }
}

/// Returns the bytes of all URLs.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "figures for people, none of them negative"
)]
pub(super) fn total(urls: u64, bits_a_url: f64) -> u64 {
    (urls as f64 * bits_a_url / 8.0) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(urls: u64, rate: f64) -> Plan {
        Plan::new(urls, rate).expect("a filter that fits")
    }

    #[test]
    fn the_plan_of_50_million_at_one_percent_is_the_documented_one() {
        let plan = plan(50_000_000, 0.01);
        assert!(
            (60_000_000..=64_000_000).contains(&plan.bytes),
            "{}",
            plan.bytes
        );
        assert!(
            (0.009_9..=0.01).contains(&plan.rate_full),
            "{}",
            plan.rate_full
        );
        assert!(
            (0.15..0.18).contains(&plan.rate_double),
            "{}",
            plan.rate_double
        );
        assert!(plan.grown_rate <= 0.01, "{}", plan.grown_rate);
        assert!(
            (plan.bytes * 2..plan.bytes * 4).contains(&plan.grown_bytes),
            "{}",
            plan.grown_bytes
        );
        assert!((50_000.0..250_000.0).contains(&plan.false_positives));
        assert_eq!(plan.advice(), None);
    }

    #[test]
    fn alternatives_cost_what_their_formulas_say() {
        let found = alternatives(50_000_000, 0.01);
        let bytes = |name: &str| {
            let other = found.iter().find(|other| other.name == name);
            other.map_or(0.0, |other| other.bits_a_url / 8.0)
        };
        for (name, expected) in [
            ("classic Bloom filter", 1.198),
            ("counting Bloom filter", 4.793),
            ("cuckoo filter", 1.269),
            ("HashSet of URLs", 202.0),
        ] {
            assert!(
                (bytes(name) - expected).abs() < 0.001,
                "{name}: {}",
                bytes(name)
            );
        }
        // 50 million 64-bit keys have 1.25e15 pairs.
        assert!(found.iter().any(|other| other.remark.ends_with("0.0068 %")));
    }

    #[test]
    fn a_rate_that_costs_more_than_it_saves_is_advised_against() {
        assert!(plan(1_000, 0.000_1).advice().is_none());
        let plan = plan(1_000_000, 0.000_05);
        let advice = plan.advice().expect("below 0.01 %");
        assert!(advice.contains("0.01 %") && advice.contains("1.44"));
        assert!(plan.bits_at_half_rate - plan.bits_a_url() > 1.44);
    }

    #[test]
    fn what_no_memory_holds_is_wrong_usage() {
        for (urls, rate) in [(u64::MAX, 0.01), (1_000_000_000_000, 1e-9)] {
            let failure = Plan::new(urls, rate)
                .map(|_| ())
                .expect_err("over the limit");
            assert_eq!(failure.exit, Exit::Usage);
            assert!(failure.message.contains("over the limit"), "{failure}");
        }
    }
}
