//! The parse threads' part: makes the links of a page, admits them, and writes the page's record.

use std::{mem, sync::Arc};

use crossbeam_channel::{Receiver, Sender};
use fastrand::Rng;
use frontier::{Admission, PageToken, Scope};
use store::FinishedUrl;
use types::{
    Candidate, CanonicalUrl, Disposition, Lease, LeaseId, PageRecord, PageTally, Purpose,
    QueuedUrl, Via,
};

use super::{Crawl, Finish, Settlement};
use crate::seen_test::driver::KEY_SEED;

/// Where a parse thread sends what it makes.
#[derive(Clone)]
pub(super) struct Outlets {
    pub(super) settlements: Sender<Settlement>,
    pub(super) suspects: Sender<Vec<Candidate>>,
}

/// Runs until nobody sends pages any more, or nobody takes the results.
pub(super) fn run(
    crawl: &Crawl<'_>,
    scope: &Scope,
    thread: u64,
    pages: &Receiver<Lease>,
    outlets: &Outlets,
) {
    let mut random = Rng::with_seed(crawl.seed.wrapping_mul(1_000).wrapping_add(thread));
    let (mut numbers, mut urls) = (Vec::new(), Vec::new());
    for lease in pages {
        let Purpose::Page(queued) = lease.purpose else {
            continue;
        };
        if crawl.web.has_links(&mut random) {
            crawl.aside.does(|| {
                crawl.web.draw_links(&mut random, &mut numbers);
                urls.extend(numbers.iter().map(|number| crawl.web.url(*number)));
            });
        }
        let mut tally = PageTally::default();
        let LeaseId(id) = lease.id;
        let token = PageToken(id);
        let candidates = candidates(&queued, &mut urls);
        let outlink_count = candidates.len() as u64;
        let Some(admission) = admit(crawl, scope, token, candidates, &mut tally, outlets) else {
            return;
        };
        let page = FinishedUrl {
            record: record(&queued, outlink_count, admission.fresh.len() as u64),
            host: queued.url.host(),
            position: queued.position,
            key: queued.key,
        };
        let finish = Finish {
            tally,
            page: Some((lease.id, page)),
        };
        let settlement = Settlement {
            token,
            admission,
            finish,
        };
        if outlets.settlements.send(settlement).is_err() {
            return;
        }
    }
}

/// Offers the web's first URLs.
pub(super) fn offer_seeds(crawl: &Crawl<'_>, scope: &Scope, outlets: &Outlets) {
    let seeds = (0..crawl.seed_count).map(|number| candidate(crawl.web.url(number), 0, None));
    let mut tally = PageTally::default();
    let token = PageToken(u64::MAX);
    let Some(admission) = admit(crawl, scope, token, seeds.collect(), &mut tally, outlets) else {
        return;
    };
    let finish = Finish { tally, page: None };
    drop(outlets.settlements.send(Settlement {
        token,
        admission,
        finish,
    }));
}

fn admit(
    crawl: &Crawl<'_>,
    scope: &Scope,
    token: PageToken,
    candidates: Vec<Candidate>,
    tally: &mut PageTally,
    outlets: &Outlets,
) -> Option<Admission> {
    let mut admission = crawl.seen.admit(token, candidates, scope, tally);
    let suspects = mem::take(&mut admission.suspects);
    if !suspects.is_empty() {
        outlets.suspects.send(suspects).ok()?;
    }
    Some(admission)
}

/// Makes the candidates of a page, as the engine does of a parsed one.
fn candidates(queued: &QueuedUrl, urls: &mut Vec<CanonicalUrl>) -> Vec<Candidate> {
    if urls.is_empty() {
        return Vec::new();
    }
    let referrer: Arc<str> = Arc::from(queued.url.as_str());
    let depth = queued.position.depth + 1;
    urls.drain(..)
        .map(|url| candidate(url, depth, Some(Arc::clone(&referrer))))
        .collect()
}

fn candidate(url: CanonicalUrl, depth: u32, referrer: Option<Arc<str>>) -> Candidate {
    Candidate {
        key: KEY_SEED.key(&url),
        url,
        depth,
        via: Via::Link,
        redirect_count: 0,
        referrer,
    }
}

/// Makes a page record of the usual length, with a digest that compresses as little as a real one.
fn record(queued: &QueuedUrl, outlink_count: u64, fresh_count: u64) -> Vec<u8> {
    let record = PageRecord {
        url: queued.url.as_str().to_owned(),
        disposition: Disposition::Succeeded,
        status: Some(200),
        fetched_at: "2026-11-30T12:00:00.000Z".to_owned(),
        first_byte_ms: Some(12.345),
        total_ms: Some(23.456),
        depth: queued.position.depth,
        via: queued.via,
        referrer: queued.referrer.as_deref().map(str::to_owned),
        retry_count: queued.attempt,
        content_type: Some("text/html".to_owned()),
        charset: Some("UTF-8".to_owned()),
        wire_bytes: 5_432,
        body_bytes: 23_456,
        truncated: None,
        digest: Some(format!("sha1:{:032X}", queued.key.as_u128())),
        title: Some("A page of a generated web".to_owned()),
        redirect: None,
        outlink_count,
        fresh_count,
        noindex: false,
        nofollow: false,
        error: None,
        error_detail: None,
        warc: None,
    };
    serde_json::to_vec(&record).expect("texts and numbers always serialize")
}
