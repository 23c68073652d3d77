//! The robots.txt files at the parse stage: what an answer says of its host, and the sitemaps that a file names.

use std::{sync::Arc, time::Duration};

use frontier::{PageToken, RobotsAnswer};
use jiff::Timestamp;
use robots::Rules;
use types::{
    Candidate, CanonicalUrl, FailureKind, FetchFailure, FetchOutcome, PageTally, RejectReason,
    Response, Truncation, Via,
};

use crate::{
    message::{FetchedPage, Finish, OwnerEvent, Settlement, SideMessage},
    page::{ParseOutlets, ParseStage, send_suspects},
    record,
};

impl ParseStage {
    /// Takes the answer to a request for a robots.txt file; `None` when the next stage is gone.
    pub(crate) fn take_robots(&self, fetched: FetchedPage, outlets: &ParseOutlets) -> Option<()> {
        let FetchedPage {
            lease,
            outcome,
            fetched_at,
            hold,
        } = fetched;
        if let (Some(archivist), Some(response)) = (&self.archivist, response_of(&outcome)) {
            let place = self.place_for(response.wire_body.len());
            let members = archivist.aside(lease.url(), response, fetched_at);
            drop(place);
            outlets.side.send(SideMessage::Archive(members)).ok()?;
        }
        let wire_bytes = response_of(&outcome).map_or(0, |response| response.wire_body.len());
        self.live.count_unrecorded(wire_bytes as u64);
        let answer = self.robots_answer(lease.url(), outcome);
        drop(hold);
        let batch_count = match &answer {
            RobotsAnswer::Rules(rules) if self.takes_sitemaps => {
                self.offer_sitemaps(PageToken(lease.id.0), lease.url(), rules, outlets)?
            }
            _ => 0,
        };
        // Only now: while the owner waits for this answer, it does not take the crawl for finished.
        outlets
            .owner
            .send(OwnerEvent::Robots {
                lease: lease.id,
                answer,
                batch_count,
            })
            .ok()
    }

    /// Offers the sitemaps that a robots.txt file names (sitemaps.org, "Specifying the Sitemap location"), as links of its
    /// host's front page would be: one batch, or none, whose number is returned. As many are taken as links of a page.
    fn offer_sitemaps(
        &self,
        token: PageToken,
        robots_url: &CanonicalUrl,
        rules: &Rules,
        outlets: &ParseOutlets,
    ) -> Option<u64> {
        // The next run asks for the file again.
        if rules.sitemaps().is_empty() || self.live.is_ended() {
            return Some(0);
        }
        let base = robots_url.to_url();
        let referrer: Arc<str> = Arc::from(robots_url.as_str());
        let mut tally = PageTally::default();
        let mut candidates = Vec::new();
        let mut bytes_left = parser::outlink_bytes_max(self.outlinks_max);
        for text in rules.sitemaps() {
            if candidates.len() == self.outlinks_max || bytes_left == 0 {
                tally.reject(RejectReason::TooManyLinks);
                continue;
            }
            match self.canonicalizer.resolve(&base, text) {
                Ok(url) => {
                    bytes_left = bytes_left.saturating_sub(url.as_str().len());
                    candidates.push(Candidate {
                        key: self.key_seed.key(&url),
                        url,
                        depth: 1,
                        via: Via::Sitemap,
                        redirect_count: 0,
                        referrer: Some(Arc::clone(&referrer)),
                    });
                }
                Err(rejection) => tally.reject(rejection.reason()),
            }
        }
        let admission = self.admit(token, candidates, &mut tally);
        let admission = send_suspects(admission, outlets)?;
        let finish = Finish { tally, page: None };
        let settlement = Settlement {
            token,
            admission,
            finish,
        };
        let message = SideMessage::Batch(Box::new(settlement));
        outlets.side.send(message).ok().map(|()| 1)
    }

    /// Reads a robots.txt answer by RFC 9309, section 2.3.1.
    fn robots_answer(&self, url: &CanonicalUrl, outcome: FetchOutcome) -> RobotsAnswer {
        match outcome {
            FetchOutcome::Failed(failure) => unreachable(failure, None),
            FetchOutcome::Redirect(redirect) => {
                let target = self
                    .canonicalizer
                    .resolve(&url.to_url(), &redirect.location);
                target.map_or(RobotsAnswer::Unavailable, RobotsAnswer::Redirect)
            }
            FetchOutcome::Response(response) => match response.status {
                200..300 => self.robots_rules(&response),
                429 | 500.. => {
                    let retry_after = record::retry_after(&response, Timestamp::now());
                    let detail = format!("status {}", response.status);
                    unreachable(failure(FailureKind::ServerError, detail), retry_after)
                }
                _ => RobotsAnswer::Unavailable,
            },
        }
    }

    /// Reads the rules of a file. One that broke off could miss any rule, and its last could be cut; one at the cap on
    /// bodies is longer than what is read of it anyway.
    fn robots_rules(&self, response: &Response) -> RobotsAnswer {
        if let Some(Truncation::Time | Truncation::Disconnect) = response.truncation {
            let detail = "the file broke off".to_owned();
            return unreachable(failure(FailureKind::Disconnected, detail), None);
        }
        match self.decode(response) {
            Ok(body) => {
                RobotsAnswer::Rules(Arc::new(Rules::parse(&body.bytes, &self.product_token)))
            }
            Err(failure) => unreachable(failure, None),
        }
    }
}

const fn unreachable(failure: FetchFailure, retry_after: Option<Duration>) -> RobotsAnswer {
    RobotsAnswer::Unreachable {
        failure,
        retry_after,
    }
}

const fn failure(kind: FailureKind, detail: String) -> FetchFailure {
    FetchFailure { kind, detail }
}

fn response_of(outcome: &FetchOutcome) -> Option<&Response> {
    match outcome {
        FetchOutcome::Response(response) => Some(response),
        FetchOutcome::Redirect(redirect) => Some(&redirect.response),
        FetchOutcome::Failed(_) => None,
    }
}
