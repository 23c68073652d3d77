//! The parse stage: plain threads that turn outcomes into settlements. Whatever is hot about a link happens here:
//! decoding, parsing, canonicalization and the seen test, a page at a time.

use std::{borrow::Cow, sync::Arc};

use crossbeam_channel::{Receiver, Sender};
use frontier::{Admission, PageToken, Scope, SeenTest};
use parser::Parser;
use types::{
    Candidate, CanonicalUrl, Canonicalizer, Disposition, FailureKind, FetchFailure, FetchOutcome,
    KeySeed, LinkKind, Outlink, PageRecord, PageTally, ParsedPage, Purpose, QueuedUrl, Redirect,
    RejectReason, Response, Truncation, Via,
};

use crate::{
    archive::Archivist,
    live::Live,
    memory::SMALL_PAGE_BYTES,
    message::{FetchedPage, Finish, FinishedPage, OwnerEvent, ParseJob, Settlement, SideMessage},
    page_guard::guarded,
    record,
    room::{Backlog, LargePage, LargePages, link_bytes},
};

/// What every parse thread shares.
pub(crate) struct ParseStage {
    pub(crate) parser: Parser,
    pub(crate) canonicalizer: Canonicalizer,
    pub(crate) scope: Scope,
    pub(crate) seen: Arc<SeenTest>,
    pub(crate) key_seed: KeySeed,
    /// Whether the sitemaps that robots.txt files name are read.
    pub(crate) takes_sitemaps: bool,
    /// Links taken from one page.
    pub(crate) outlinks_max: usize,
    pub(crate) decoded_bytes_max: usize,
    /// What a page's record keeps of the target of a redirect.
    pub(crate) redirect_bytes_max: usize,
    pub(crate) product_token: String,
    pub(crate) obey_nofollow: bool,
    pub(crate) archivist: Option<Archivist>,
    pub(crate) backlog: Arc<Backlog>,
    pub(crate) large_pages: LargePages,
    pub(crate) live: Arc<Live>,
}

/// Where a parse thread sends what it makes.
#[derive(Clone)]
pub(crate) struct ParseOutlets {
    pub(crate) owner: Sender<OwnerEvent>,
    pub(crate) commit: Sender<Box<Settlement>>,
    pub(crate) side: Sender<SideMessage>,
    pub(crate) suspects: Sender<Vec<Candidate>>,
}

/// A response of either kind, with the location of a redirect.
struct Answer {
    response: Response,
    location: Option<String>,
}

/// A body without its content codings, and the right to have it if it is large.
pub(crate) struct DecodedBody<'a> {
    pub(crate) bytes: Cow<'a, [u8]>,
    place: Option<LargePage<'a>>,
}

impl ParseStage {
    /// Runs until every sender of jobs is gone, or nobody takes the results any more.
    pub(crate) fn run(&self, jobs: &Receiver<ParseJob>, outlets: &ParseOutlets) {
        for job in jobs {
            self.wait_for_room();
            if self.live.is_halted() {
                return;
            }
            let is_taken = match job {
                ParseJob::Page(fetched) => self.take_page(*fetched, outlets),
                ParseJob::Robots(fetched) => self.take_robots(*fetched, outlets),
            };
            if is_taken.is_none() {
                return;
            }
        }
    }

    /// Waits until what was made before is written, as far as the memory for it asks for that.
    fn wait_for_room(&self) {
        self.backlog.wait_for_room(|| self.live.is_halted());
    }

    /// Settles a page; `None` when the next stage is gone.
    fn take_page(&self, fetched: FetchedPage, outlets: &ParseOutlets) -> Option<()> {
        let FetchedPage {
            lease,
            outcome,
            fetched_at,
            hold,
        } = fetched;
        let Purpose::Page(queued) = lease.purpose else {
            return Some(());
        };
        let answer = match outcome {
            FetchOutcome::Response(response) => Answer {
                response,
                location: None,
            },
            FetchOutcome::Redirect(Redirect { response, location }) => Answer {
                response,
                location: Some(location),
            },
            // The owner ends failures itself.
            FetchOutcome::Failed(_) => return Some(()),
        };
        let mut record = record::of_response(&queued, &answer.response, fetched_at);
        let mut tally = PageTally::default();
        let candidates = guarded(&mut record, &mut tally, |record, tally| {
            self.candidates(&queued, &answer, record, tally)
        });
        let token = PageToken(lease.id.0);
        let admission = self.admit(token, candidates, &mut tally);
        record.fresh_count = admission.fresh.len() as u64;
        let warc = self.archivist.as_ref().map(|archivist| {
            let _place = self.place_for(answer.response.wire_body.len());
            archivist.page(&queued, &answer.response, &record)
        });
        // The memory of the body is free before a stage is waited for.
        drop((answer, hold));
        let page = FinishedPage {
            lease: lease.id,
            disposition: record.disposition,
            queued,
            record,
            warc,
        };
        let admission = send_suspects(admission, outlets)?;
        let finish = Finish {
            tally,
            page: Some(page),
        };
        outlets
            .commit
            .send(Box::new(Settlement {
                token,
                admission,
                finish,
            }))
            .ok()
    }

    /// Extracts the candidates of an answer and completes the record.
    fn candidates(
        &self,
        queued: &QueuedUrl,
        answer: &Answer,
        record: &mut PageRecord,
        tally: &mut PageTally,
    ) -> Vec<Candidate> {
        let response = &answer.response;
        if let Some(location) = &answer.location {
            let end = location.floor_char_boundary(self.redirect_bytes_max);
            record.redirect = Some(location[..end].to_owned());
            record.outlink_count = 1;
            return self
                .redirect_target(queued, location, tally)
                .into_iter()
                .collect();
        }
        if response.status == 429 || response.status >= 500 {
            record.disposition = Disposition::Failed;
            record.error = Some(FailureKind::ServerError);
            return Vec::new();
        }
        let body = match self.decode(response) {
            Ok(body) => body,
            Err(failure) => {
                fail(record, failure);
                return Vec::new();
            }
        };
        record.body_bytes = body.bytes.len() as u64;
        // The links of an error page lead back to the site's front, seldom to content.
        if !(200..300).contains(&response.status) {
            return Vec::new();
        }
        match self.parse(queued, response, body) {
            Ok((parsed, is_cut)) => {
                if is_cut {
                    record.truncated = record.truncated.or(Some(Truncation::Length));
                }
                self.page_candidates(queued, parsed, record, tally)
            }
            Err(failure) => {
                fail(record, failure);
                Vec::new()
            }
        }
    }

    /// Parses a body, and says whether more of it than was parsed is packed in it.
    fn parse<'a>(
        &'a self,
        queued: &QueuedUrl,
        response: &Response,
        mut body: DecodedBody<'a>,
    ) -> Result<(ParsedPage, bool), FetchFailure> {
        let mut is_cut = false;
        let is_packed = is_packed_sitemap(queued, &body.bytes);
        if is_packed {
            // A small file may hold a large one.
            if body.place.is_none() {
                body.place = Some(self.large_pages.enter());
            }
            let bytes_max = self.decoded_bytes_max.saturating_sub(body.bytes.len());
            let is_cut_on_wire = response.truncation.is_some();
            let (bytes, has_more) = fetcher::unpack_gzip(&body.bytes, is_cut_on_wire, bytes_max)?;
            body.bytes = Cow::Owned(bytes);
            is_cut = has_more;
        }
        let (url, headers) = (&queued.url, &response.headers);
        // The memory of the body is free for the next page when this returns, before the links are looked up.
        let parsed = if queued.via == Via::Sitemap {
            self.parser.parse_sitemap(url, headers, &body.bytes)
        } else if is_packed {
            self.parser.parse_unpacked(url, headers, &body.bytes)
        } else {
            self.parser.parse(url, headers, &body.bytes)
        };
        Ok((parsed, is_cut))
    }

    /// Undoes the content codings; of a body that was cut, what comes before the cut. One that is large, or turns out to be,
    /// waits until fewer large ones are decoded and read.
    pub(crate) fn decode<'a>(
        &'a self,
        response: &'a Response,
    ) -> Result<DecodedBody<'a>, FetchFailure> {
        let Response {
            headers,
            wire_body,
            truncation,
            ..
        } = response;
        let decoded = |bytes_max, place| {
            let bytes = if truncation.is_some() {
                fetcher::decode_cut_body(headers, wire_body, bytes_max)
            } else {
                fetcher::decode_body(headers, wire_body, bytes_max)
            };
            bytes.map(|bytes| DecodedBody { bytes, place })
        };
        let bytes_max = self.decoded_bytes_max;
        if wire_body.len() > SMALL_PAGE_BYTES || bytes_max <= SMALL_PAGE_BYTES {
            return decoded(bytes_max, self.place_for(wire_body.len()));
        }
        match decoded(SMALL_PAGE_BYTES, None) {
            Err(failure) if failure.kind == FailureKind::DecodedTooLarge => {
                decoded(bytes_max, Some(self.large_pages.enter()))
            }
            decoded => decoded,
        }
    }

    /// Returns the right to copy a body of this length, which a large one needs.
    pub(crate) fn place_for(&self, body_bytes: usize) -> Option<LargePage<'_>> {
        (body_bytes > SMALL_PAGE_BYTES).then(|| self.large_pages.enter())
    }

    /// Asks which candidates are new, and counts those that a commit has to settle.
    pub(crate) fn admit(
        &self,
        token: PageToken,
        candidates: Vec<Candidate>,
        tally: &mut PageTally,
    ) -> Admission {
        let admission = self.seen.admit(token, candidates, &self.scope, tally);
        let fresh = admission.fresh.iter();
        let suspects = admission.suspects.iter();
        let bytes: u64 = fresh
            .map(|note| link_bytes(&note.url, note.referrer.as_ref()))
            .chain(suspects.map(|link| link_bytes(&link.url, link.referrer.as_ref())))
            .sum();
        self.backlog.add_links(bytes);
        admission
    }

    fn redirect_target(
        &self,
        queued: &QueuedUrl,
        location: &str,
        tally: &mut PageTally,
    ) -> Option<Candidate> {
        match self.canonicalizer.resolve(&queued.url.to_url(), location) {
            Ok(url) => Some(Candidate {
                key: self.key_seed.key(&url),
                url,
                depth: queued.position.depth,
                // What a sitemap redirects to is that sitemap.
                via: match queued.via {
                    Via::Sitemap => Via::Sitemap,
                    _ => Via::Redirect,
                },
                redirect_count: queued.redirect_count.saturating_add(1),
                referrer: Some(Arc::from(queued.url.as_str())),
            }),
            Err(rejection) => {
                tally.reject(rejection.reason());
                None
            }
        }
    }

    fn page_candidates(
        &self,
        queued: &QueuedUrl,
        parsed: ParsedPage,
        record: &mut PageRecord,
        tally: &mut PageTally,
    ) -> Vec<Candidate> {
        record.title = parsed.title;
        record.charset = (!parsed.charset.is_empty()).then(|| parsed.charset.to_owned());
        record.noindex = parsed.directives.noindex;
        record.nofollow = parsed.directives.nofollow;
        record.outlink_count = parsed.outlinks.len() as u64 + parsed.outlinks_dropped_count;
        tally.reject_many(RejectReason::TooManyLinks, parsed.outlinks_dropped_count);
        let page_is_nofollow = self.obey_nofollow && parsed.directives.nofollow;
        let referrer: Arc<str> = Arc::from(queued.url.as_str());
        parsed
            .outlinks
            .into_iter()
            .filter_map(|outlink| {
                let is_nofollow = page_is_nofollow || (self.obey_nofollow && outlink.is_nofollow);
                let kind = outlink.kind;
                match target(outlink, is_nofollow) {
                    Ok(url) => Some(self.link(url, kind, queued, &referrer)),
                    Err(reason) => {
                        tally.reject(reason);
                        None
                    }
                }
            })
            .collect()
    }

    fn link(
        &self,
        url: CanonicalUrl,
        kind: LinkKind,
        queued: &QueuedUrl,
        referrer: &Arc<str>,
    ) -> Candidate {
        let depth = queued.position.depth;
        let (depth, via, redirect_count) = match kind {
            // So that a chain of indexes ends as one of redirects does.
            LinkKind::Sitemap => (
                depth.max(1),
                Via::Sitemap,
                queued.redirect_count.saturating_add(1),
            ),
            LinkKind::Entry => (depth.saturating_add(1), Via::Entry, 0),
            LinkKind::Anchor | LinkKind::Link | LinkKind::Frame | LinkKind::Refresh => {
                (depth.saturating_add(1), Via::Link, 0)
            }
        };
        Candidate {
            key: self.key_seed.key(&url),
            url,
            depth,
            via,
            redirect_count,
            referrer: Some(Arc::clone(referrer)),
        }
    }

    /// Offers one batch of seeds under a token of its own; `None` when the run fetches no more.
    pub(crate) fn offer_seeds(
        &self,
        token: PageToken,
        seeds: &[CanonicalUrl],
        outlets: &ParseOutlets,
    ) -> Option<()> {
        self.wait_for_room();
        if self.live.is_halted() || self.live.is_ended() {
            return None;
        }
        let candidates = seeds
            .iter()
            .map(|url| Candidate {
                key: self.key_seed.key(url),
                url: url.clone(),
                depth: 0,
                via: Via::Seed,
                redirect_count: 0,
                referrer: None,
            })
            .collect();
        let mut tally = PageTally::default();
        let admission = self.admit(token, candidates, &mut tally);
        let admission = send_suspects(admission, outlets)?;
        let finish = Finish { tally, page: None };
        outlets
            .side
            .send(SideMessage::Batch(Box::new(Settlement {
                token,
                admission,
                finish,
            })))
            .ok()
    }
}

/// Records that a page's body cannot be used.
fn fail(record: &mut PageRecord, failure: FetchFailure) {
    record.disposition = Disposition::Failed;
    record.error = Some(failure.kind);
    record.error_detail = Some(failure.detail);
}

/// Says whether a body is a sitemap within a gzip file: one that was named as a sitemap, or whose name says so.
fn is_packed_sitemap(queued: &QueuedUrl, body: &[u8]) -> bool {
    let url = queued.url.as_str();
    let path = url.split('?').next().unwrap_or(url);
    fetcher::is_gzip(body) && (queued.via == Via::Sitemap || path.ends_with(".xml.gz"))
}

/// Returns where an outlink leads, or why it is not followed.
fn target(outlink: Outlink, is_nofollow: bool) -> Result<CanonicalUrl, RejectReason> {
    match outlink.target {
        Err(rejection) => Err(rejection.reason()),
        Ok(_) if is_nofollow => Err(RejectReason::Nofollow),
        Ok(url) => Ok(url),
    }
}

/// Hands suspects to the confirmer. A verdict may overtake its page's settlement; the ledger takes both in either order.
pub(crate) fn send_suspects(mut admission: Admission, outlets: &ParseOutlets) -> Option<Admission> {
    let suspects = std::mem::take(&mut admission.suspects);
    if !suspects.is_empty() {
        outlets.suspects.send(suspects).ok()?;
    }
    Some(admission)
}
