//! One simulated run: a frontier, a clock, and messages that arrive when chance has it.

use std::{
    collections::{BTreeMap, BTreeSet},
    mem,
    time::Duration,
};

use fastrand::Rng;
use frontier::{
    Action, Admission, Fetched, Ledger, NextStep, PageToken, RobotsAnswer, Scope, ScopeConfig,
    ScopeRule, SeenConfig, SeenTest, Settled, Workbench, WorkbenchConfig,
};
use types::{
    Candidate, CanonicalUrl, Disposition, FetchFailure, Host, KeySeed, Lease, LeaseId, PageTally,
    Purpose, QueuePosition, QueuedUrl, Resolution, Verdict, Via,
};

use crate::{
    audit::Audit,
    store::{Finish, FinishedPage, Store},
    web::{Answer, Web, is_in_scope},
};

pub(crate) const KEYS: KeySeed = KeySeed::new(7);

/// How a run ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum End {
    Drained,
    /// Everything in memory is gone; whatever was under way may be done again.
    Crashed,
    Stopped,
    LimitReached,
}

/// What is on its way.
enum Message {
    Response(Lease),
    Resolved(Host),
    ReadQueue(Host, QueuePosition, usize),
    Refilled(Host, Vec<QueuedUrl>),
    Parsed(Lease),
    Confirm(Vec<Candidate>),
    Verdicts(Vec<(Candidate, Verdict)>),
    Arrive(PageToken, Admission, Finish),
    Settled(Settled),
    Committed(Vec<QueuedUrl>, Vec<FinishedPage>, Vec<Host>),
    Durable(Vec<QueuedUrl>, Vec<LeaseId>),
}

/// How a run is to be cut short.
pub(crate) struct Cuts {
    pub(crate) crash_at_step: Option<u64>,
    pub(crate) stop_at_step: Option<u64>,
}

pub(crate) struct Crawl<'a> {
    rng: &'a mut Rng,
    web: &'a mut Web,
    store: &'a mut Store,
    config: WorkbenchConfig,
    scope: Scope,
    seen: SeenTest,
    ledger: Ledger<Finish>,
    workbench: Workbench,
    audit: Audit,
    now: Duration,
    inbox: BTreeMap<(Duration, u64), Message>,
    message_count: u64,
    durable_at: Duration,
    is_committing: bool,
    /// Pages kept since the last commit; they are recorded with their finish.
    kept: BTreeSet<LeaseId>,
    offered_count: u64,
    ended_count: u64,
    noted_count: u64,
    suspect_count: u64,
}

impl<'a> Crawl<'a> {
    /// Begins a run from what the store holds.
    pub(crate) fn begin(
        rng: &'a mut Rng,
        web: &'a mut Web,
        store: &'a mut Store,
        config: WorkbenchConfig,
        seen: &SeenConfig,
    ) -> Self {
        let rule = ScopeConfig {
            rule: ScopeRule::Any,
            include: Vec::new(),
            exclude: vec!["/out/".to_owned()],
            max_depth: None,
            redirects_max: u8::MAX,
            repeats_max: u16::MAX,
        };
        let scope = Scope::new(&rule, &web.seeds).expect("the pattern is valid");
        let seen = SeenTest::new(seen, store.next_sequence).expect("the sizes are in range");
        seen.load(&store.keys.iter().copied().collect::<Vec<_>>());
        let mut workbench = Workbench::new(config.clone(), store.pages_count, store.next_sequence);
        let mut audit = Audit::default();
        audit.kept_count = store.pages_count;
        audit.domain_pages = store.domain_pages.clone();
        for (domain, count) in &store.domain_pages {
            for _ in 0..*count {
                workbench.restore_page(&Host::new(&format!("http://{domain}")));
            }
        }
        for (host, queue) in &store.queue {
            let first = *queue.keys().next().expect("no empty queue is kept");
            workbench.restore_host(host.clone(), queue.len() as u64, first);
            audit.known_count += queue.len() as u64;
        }
        let mut crawl = Self {
            ledger: Ledger::new(store.next_sequence),
            rng,
            web,
            store,
            config,
            scope,
            seen,
            workbench,
            audit,
            now: Duration::ZERO,
            inbox: BTreeMap::new(),
            message_count: 0,
            durable_at: Duration::ZERO,
            is_committing: false,
            kept: BTreeSet::new(),
            offered_count: 0,
            ended_count: 0,
            noted_count: 0,
            suspect_count: 0,
        };
        let seeds = crawl.web.seeds.clone();
        crawl.admit(PageToken(0), seeds, Via::Seed, 0, None);
        crawl
    }

    /// Runs until the end, or until a cut.
    pub(crate) fn run(mut self, cuts: &Cuts) -> End {
        for step in 0..400_000 {
            if cuts.crash_at_step == Some(step) {
                return End::Crashed;
            }
            let is_stopping = cuts.stop_at_step.is_some_and(|at| step >= at);
            if cuts.stop_at_step == Some(step) {
                self.workbench.stop_leasing();
            }
            let wake_at = self.act();
            self.audit.check(&self.workbench, &self.config);
            self.begin_commit();
            if let Some(((at, _), message)) = self.next_message(wake_at) {
                self.now = self.now.max(at);
                self.receive(message);
                self.check_accounts();
                continue;
            }
            match wake_at {
                Some(at) if !is_stopping => self.now = self.now.max(at),
                _ => return self.end(is_stopping),
            }
        }
        panic!("the crawl does not end: {:?}", self.workbench.stats());
    }

    /// Judges the state in which nothing moves any more.
    fn end(&self, is_stopping: bool) -> End {
        assert!(
            self.ledger.is_empty(),
            "pages or notes are stuck in the ledger"
        );
        assert_eq!(
            (self.suspect_count, self.seen.stats().unwritten_count),
            (0, 0),
            "unsettled or unwritten keys"
        );
        assert_eq!(
            self.audit.known_count,
            self.store.queued_count() as u64,
            "the store and the workbench differ"
        );
        assert!(
            !self.workbench.has_leases(),
            "nothing moves, but leases are out"
        );
        if self.workbench.is_drained() {
            End::Drained
        } else if self.workbench.is_limit_reached() {
            End::LimitReached
        } else if self.workbench.has_only_spent() && !is_stopping {
            let hosts = self.store.queue.keys();
            let max = self.config.domain_pages_max;
            let mut counts = hosts.map(|host| self.audit.domain_pages.get(host.domain()).copied());
            assert!(counts.all(|count| count >= max), "a domain has pages left");
            End::LimitReached
        } else {
            assert!(
                is_stopping,
                "the workbench waits for nothing: {:?}",
                self.workbench.stats()
            );
            End::Stopped
        }
    }

    /// Does what the workbench asks for; returns when it wants to be asked again.
    fn act(&mut self) -> Option<Duration> {
        loop {
            match self.workbench.next_action(self.now) {
                Action::Wait(at) => {
                    assert!(
                        at.is_none_or(|at| at > self.now),
                        "the workbench asks to be polled"
                    );
                    return at;
                }
                Action::Fetch(lease) => {
                    self.check_lease(&lease);
                    self.audit.started(&lease, self.now, &self.config);
                    self.send(5_000, Message::Response(lease));
                }
                Action::Disregard(lease, reason) => {
                    self.audit.page_leased(&lease);
                    self.send_finish(lease, Disposition::Disregarded, Some(&reason));
                }
                Action::Resolve(host) => self.send(2_000, Message::Resolved(host)),
                Action::Refill { host, from, limit } => {
                    self.send(500, Message::ReadQueue(host, from, limit));
                }
            }
            self.audit.check(&self.workbench, &self.config);
        }
    }

    fn check_lease(&self, lease: &Lease) {
        if let Purpose::Page(queued) = &lease.purpose {
            assert!(
                !self.store.pages.contains_key(&queued.url),
                "{} is finished already",
                queued.url
            );
            if self.config.obey_robots {
                let rules = self
                    .web
                    .rules(&lease.host)
                    .expect("no page is fetched without rules");
                assert!(
                    rules.allows(queued.url.path_and_query()),
                    "{} is disallowed",
                    queued.url
                );
            }
        }
    }

    fn send(&mut self, delay_ms_max: u64, message: Message) {
        let at = self.now + Duration::from_millis(self.rng.u64(..delay_ms_max));
        self.send_at(at, message);
    }

    fn send_at(&mut self, at: Duration, message: Message) {
        self.message_count += 1;
        self.inbox.insert((at, self.message_count), message);
    }

    /// Takes the next message, unless the workbench wants to act before it arrives.
    fn next_message(&mut self, wake_at: Option<Duration>) -> Option<((Duration, u64), Message)> {
        let (at, _) = *self.inbox.first_key_value()?.0;
        if wake_at.is_some_and(|wake| wake < at) {
            return None;
        }
        self.inbox.pop_first()
    }

    fn receive(&mut self, message: Message) {
        match message {
            Message::Response(lease) => self.respond(lease),
            Message::Resolved(host) => {
                let resolution: Resolution = self.web.resolve(&host);
                self.workbench.resolved(&host, resolution, self.now);
            }
            Message::ReadQueue(host, from, limit) => {
                let urls = self.store.read_queue(&host, from, limit);
                self.send(1_000, Message::Refilled(host, urls));
            }
            Message::Refilled(host, urls) => self.workbench.refilled(&host, urls, self.now),
            Message::Parsed(lease) => self.parse(lease),
            Message::Confirm(suspects) => self.confirm(suspects),
            Message::Verdicts(verdicts) => self.settle(verdicts),
            Message::Arrive(page, admission, finish) => {
                self.ledger.arrive(page, admission, finish);
            }
            Message::Settled(settled) => self.ledger.settled(settled),
            Message::Committed(notes, finished, kept) => {
                self.store.commit(&notes, &finished, &kept);
                self.seen.noted(notes.iter().map(|note| note.key));
                self.is_committing = false;
                self.durable_at = self
                    .durable_at
                    .max(self.now + Duration::from_millis(self.rng.u64(..800)));
                let leases = finished.into_iter().map(|page| page.lease).collect();
                self.send_at(self.durable_at, Message::Durable(notes, leases));
            }
            Message::Durable(notes, leases) => {
                self.audit.known_count += notes.len() as u64;
                self.workbench.enqueue(notes, self.now);
                for lease in leases {
                    self.workbench.finished(lease);
                    self.audit.finished(lease);
                }
            }
        }
    }

    /// Asks the store about suspects, as it is at this moment.
    fn confirm(&mut self, suspects: Vec<Candidate>) {
        let mut verdicts = Vec::new();
        for suspect in suspects {
            let is_seen = self.store.keys.contains(&suspect.key);
            let verdict = if is_seen {
                Verdict::Seen
            } else {
                Verdict::FalsePositive
            };
            verdicts.push((suspect, verdict));
        }
        self.send(500, Message::Verdicts(verdicts));
    }

    fn settle(&mut self, verdicts: Vec<(Candidate, Verdict)>) {
        for (suspect, verdict) in verdicts {
            let settled = self.seen.settle(suspect, verdict);
            self.suspect_count -= 1;
            self.noted_count += u64::from(verdict == Verdict::FalsePositive);
            self.ended_count += u64::from(verdict == Verdict::Seen);
            self.send(300, Message::Settled(settled));
        }
    }

    /// Delivers the answer to a request.
    fn respond(&mut self, lease: Lease) {
        self.audit.ended(lease.id, self.now);
        let Purpose::Page(queued) = &lease.purpose else {
            return self.respond_robots(&lease);
        };
        let answer = self.web.fetch(&queued.url, self.rng);
        let fetched = match &answer {
            Answer::Status(status, retry_after) => Fetched::Response {
                status: *status,
                retry_after: *retry_after,
            },
            Answer::Failed(failure) => Fetched::Failed(failure),
        };
        if let Answer::Status(_, Some(pause)) = answer {
            self.audit.postpone(&lease.host, self.now + pause);
        }
        match self.workbench.fetched(lease.id, fetched, self.now) {
            NextStep::Retry => self.audit.retried(lease.id),
            NextStep::GiveUp => self.send_finish(lease, Disposition::Failed, None),
            NextStep::Keep => {
                self.audit.kept(&lease.host);
                self.kept.insert(lease.id);
                match answer {
                    Answer::Status(500.., _) => self.send_finish(lease, Disposition::Failed, None),
                    _ => self.send(1_000, Message::Parsed(lease)),
                }
            }
        }
    }

    fn respond_robots(&mut self, lease: &Lease) {
        let Purpose::Robots { url, of, hop } = &lease.purpose else {
            return;
        };
        assert!(*hop <= 5, "{hop} redirects are too many");
        let answer = self.web.fetch_robots(url, of);
        if let RobotsAnswer::Rules(rules) = &answer {
            let pause = rules.crawl_delay().unwrap_or_default();
            self.audit
                .slow_down(of, pause.min(self.config.crawl_delay_max));
        }
        self.workbench.robots_answered(lease.id, answer, self.now);
    }

    fn parse(&mut self, lease: Lease) {
        let Purpose::Page(queued) = lease.purpose else {
            return;
        };
        let links = self.web.links(&queued.url);
        let via = if self.web.is_redirect(&queued.url) {
            Via::Redirect
        } else {
            Via::Link
        };
        let outlinks = links
            .iter()
            .filter(|link| is_in_scope(link))
            .map(|link| KEYS.key(link))
            .collect();
        let depth = queued.position.depth + u32::from(via == Via::Link);
        let finish = FinishedPage {
            lease: lease.id,
            queued,
            disposition: Disposition::Succeeded,
            outlinks,
        };
        self.admit(PageToken(lease.id.0 + 1), links, via, depth, Some(finish));
    }

    fn admit(
        &mut self,
        page: PageToken,
        links: Vec<CanonicalUrl>,
        via: Via,
        depth: u32,
        finish: Finish,
    ) {
        let mut tally = PageTally::default();
        let candidates: Vec<Candidate> = links
            .into_iter()
            .map(|url| Candidate {
                key: KEYS.key(&url),
                url,
                depth,
                via,
                redirect_count: 0,
                referrer: None,
            })
            .collect();
        self.offered_count += candidates.len() as u64;
        let mut admission = self.seen.admit(page, candidates, &self.scope, &mut tally);
        self.ended_count += tally.total();
        self.noted_count += admission.fresh.len() as u64;
        self.suspect_count += admission.suspects.len() as u64;
        let suspects = mem::take(&mut admission.suspects);
        if !suspects.is_empty() {
            self.send(500, Message::Confirm(suspects));
        }
        self.send(1_500, Message::Arrive(page, admission, finish));
    }

    fn send_finish(
        &mut self,
        lease: Lease,
        disposition: Disposition,
        reason: Option<&FetchFailure>,
    ) {
        assert!(reason.is_none_or(|reason| reason.detail.chars().count() <= 200));
        let Purpose::Page(queued) = lease.purpose else {
            return;
        };
        let finish = FinishedPage {
            lease: lease.id,
            queued,
            disposition,
            outlinks: Vec::new(),
        };
        let page = PageToken(lease.id.0 + 1);
        self.send(
            300,
            Message::Arrive(page, Admission::default(), Some(finish)),
        );
    }

    fn begin_commit(&mut self) {
        let is_idle = self.inbox.is_empty();
        if self.is_committing || (!is_idle && self.rng.u8(..3) > 0) {
            return;
        }
        let batch = self.ledger.take_batch(self.rng.usize(1..40));
        if batch.is_empty() {
            return;
        }
        let finished: Vec<FinishedPage> = batch.finished.into_iter().flatten().collect();
        let kept = finished
            .iter()
            .filter(|page| self.kept.remove(&page.lease))
            .map(|page| page.queued.url.host())
            .collect();
        self.is_committing = true;
        self.send(600, Message::Committed(batch.notes, finished, kept));
    }

    /// Every candidate offered in this run ended, became a note, or is a suspect.
    fn check_accounts(&self) {
        assert_eq!(
            self.offered_count,
            self.ended_count + self.noted_count + self.suspect_count,
            "the accounts differ"
        );
        assert_eq!(
            self.seen.stats().suspect_count,
            self.suspect_count,
            "suspects"
        );
    }
}
