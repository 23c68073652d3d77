//! The parse threads' part: takes pages from the stream, makes candidates of their links and admits them.

use std::{mem, sync::Arc};

use crossbeam_channel::Sender;
use frontier::{PageToken, Scope, SeenTest};
use types::{Candidate, CanonicalUrl, PageTally, Via};

use super::{Driver, KEY_SEED, Settlement};

/// Where a parse thread sends what it makes.
pub(super) struct Outlets {
    /// Has room while another page may be under way.
    pub(super) permits: Sender<()>,
    pub(super) settlements: Sender<Settlement>,
    pub(super) suspects: Sender<Vec<Candidate>>,
}

/// Runs until the stream ends, or nobody takes the results any more.
pub(super) fn run(driver: &Driver<'_>, seen: &SeenTest, scope: &Scope, outlets: &Outlets) {
    let mut links = Vec::new();
    let mut urls = Vec::new();
    while outlets.permits.send(()).is_ok() {
        let page = driver.aside.does(|| {
            let page = driver.stream.next_page(&mut links)?;
            urls.extend(links.iter().map(|link| {
                driver.truth.offer(driver.stream.slot(*link));
                driver.stream.url(*link)
            }));
            Some(page)
        });
        let Some(page) = page else {
            return;
        };
        let mut tally = PageTally::default();
        let candidates = candidates(page, &mut urls);
        let token = PageToken(page);
        let mut admission = seen.admit(token, candidates, scope, &mut tally);
        let page_suspects = mem::take(&mut admission.suspects);
        if !page_suspects.is_empty() && outlets.suspects.send(page_suspects).is_err() {
            return;
        }
        let settlement = Settlement {
            token,
            admission,
            finish: tally,
        };
        if outlets.settlements.send(settlement).is_err() {
            return;
        }
    }
}

/// Makes the candidates of a page, as the engine does of a parsed one.
fn candidates(page: u64, urls: &mut Vec<CanonicalUrl>) -> Vec<Candidate> {
    let referrer: Arc<str> = Arc::from(format!("http://from.example/{page}"));
    urls.drain(..)
        .map(|url| Candidate {
            key: KEY_SEED.key(&url),
            url,
            depth: 1,
            via: Via::Link,
            redirect_count: 0,
            referrer: Some(Arc::clone(&referrer)),
        })
        .collect()
}
