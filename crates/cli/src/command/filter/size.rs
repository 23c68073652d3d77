//! `bloomcrawl filter size`: what a filter for a number of URLs costs, how it ages, and what the alternatives cost.

use serde_json::{Value, json};

use super::{
    plan::{Alternative, Plan, alternatives, total},
    print,
};
use crate::{
    failure::{Exit, Failure},
    printer,
    rows::Page,
    unit::{estimate_text, grouped, human_bytes, percent},
};

/// Bits that one URL sets, all in one cache line.
const BITS_SET: u32 = 8;

/// Prints the plan for `urls` at `rate`.
///
/// # Errors
///
/// Fails when the filter would be larger than any may be.
pub(super) fn run(urls: u64, rate: f64, is_json: bool) -> Result<Exit, Failure> {
    let plan = Plan::new(urls, rate)?;
    let alternatives = alternatives(urls, rate);
    print(
        &object(&plan, &alternatives),
        &text(&plan, &alternatives),
        is_json,
    )?;
    if let Some(advice) = plan.advice() {
        printer::warn(&advice);
    }
    Ok(Exit::Done)
}

fn object(plan: &Plan, alternatives: &[Alternative]) -> Value {
    let alternatives: Vec<Value> = alternatives
        .iter()
        .map(|other| {
            json!({
                "name": other.name,
                "bytes_a_url": other.bits_a_url / 8.0,
                "bytes": total(plan.urls, other.bits_a_url),
                "remark": other.remark,
            })
        })
        .collect();
    json!({
        "urls": plan.urls,
        "rate": plan.rate,
        "bytes": plan.bytes,
        "bits_a_url": plan.bits_a_url(),
        "bits_set_a_url": BITS_SET,
        "rate_at_urls": plan.rate_full,
        "rate_at_twice_the_urls": plan.rate_double,
        "false_positives": plan.false_positives,
        "grown_to_twice_the_urls": { "rate": plan.grown_rate, "bytes": plan.grown_bytes },
        "alternatives": alternatives,
        "advice": plan.advice(),
    })
}

fn text(plan: &Plan, alternatives: &[Alternative]) -> String {
    let mut page = Page::default();
    page.section(&format!(
        "The filter for {} URLs at {}",
        grouped(plan.urls),
        percent(plan.rate)
    ));
    page.row_with(
        "memory",
        &human_bytes(plan.bytes),
        &format!("{:.2} bytes a URL", plan.bits_a_url() / 8.0),
    );
    page.row("bits a URL", &format!("{:.1}", plan.bits_a_url()));
    page.row_with(
        "bits set a URL",
        &BITS_SET.to_string(),
        "all in one cache line",
    );
    page.section("False positives: new URLs that it takes for known, until the store is asked");
    let twice = plan.urls.saturating_mul(2);
    page.row(
        &format!("at {}", grouped(plan.urls)),
        &percent(plan.rate_full),
    );
    page.row_with(
        "until then, in all",
        &estimate_text(plan.false_positives),
        "each costs one store read",
    );
    page.row_with(
        &format!("at {}", grouped(twice)),
        &percent(plan.rate_double),
        "if nothing were done",
    );
    page.row_with(
        "  as it grows by then",
        &percent(plan.grown_rate),
        &format!("in {}", human_bytes(plan.grown_bytes)),
    );
    page.section("What else could keep them");
    page.line(&format!(
        "  {:<24}{:>11}{:>11}",
        "", "bytes a URL", "in all"
    ));
    let ours = Alternative {
        name: "this filter",
        bits_a_url: plan.bits_a_url(),
        remark: "1 cache line a URL".to_owned(),
    };
    for other in alternatives.iter().chain([&ours]) {
        page.line(&format!(
            "  {:<24}{:>11.2}{:>11}  {}",
            other.name,
            other.bits_a_url / 8.0,
            human_bytes(total(plan.urls, other.bits_a_url)),
            other.remark
        ));
    }
    page.line("");
    page.line("At 80 % of these URLs a crawl's filter grows by a further slice, and goes on so.");
    page.line("A crawl holds its first 10,000 URLs or more exactly, and makes no filter before.");
    page.line("A Bloom filter cannot delete: a bit may belong to many URLs. A crawl need not:");
    page.line("what was seen stays seen. To forget some, the filter is made anew from the");
    page.line("store's keys, at about a second of processor time for each 25 million in memory.");
    page.into_text()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_fit_80_columns() {
        for (urls, rate) in [(1, 0.5), (50_000_000, 0.01), (20_000_000_000, 0.000_01)] {
            let text = text(
                &Plan::new(urls, rate).expect("a filter that fits"),
                &alternatives(urls, rate),
            );
            for line in text.lines() {
                assert!(line.chars().count() <= 80, "{line}");
            }
        }
    }
}
