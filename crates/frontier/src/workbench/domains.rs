//! Budgets of registered domains: how many pages each may bring, over all runs of a crawl.
//!
//! A site that answers everything, a calendar without end, or names without end below one domain, use up their own budget
//! and not the crawl. What is queued beyond it stays in the store, for a run with a larger one.

use std::{
    collections::{BTreeSet, HashMap},
    time::Duration,
};

use types::Host;

use super::{
    Workbench,
    table::{HostId, Standing},
};

/// Domains whose names are kept to be told.
const TOLD_MAX: usize = 3;

/// The number of a domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct DomainId(u32);

/// Domains that have had all their pages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SpentDomains {
    /// How many there are.
    pub count: u64,
    /// The first three, in the order in which that became so.
    pub first: Vec<String>,
}

/// The pages of each domain; empty where there is no budget.
#[derive(Debug, Default)]
pub(super) struct Domains {
    ids: HashMap<Box<str>, DomainId>,
    pages_counts: Vec<u64>,
    /// The hosts of each domain that have their turn.
    active: BTreeSet<(DomainId, HostId)>,
    spent: SpentDomains,
}

impl Domains {
    fn find_or_add(&mut self, domain: &str) -> DomainId {
        if let Some(id) = self.ids.get(domain) {
            return *id;
        }
        let number = u32::try_from(self.pages_counts.len())
            .expect("memory ends before four billion domains do");
        self.pages_counts.push(0);
        self.ids.insert(domain.into(), DomainId(number));
        DomainId(number)
    }

    fn pages_count(&self, id: DomainId) -> u64 {
        self.pages_counts[id.0 as usize]
    }

    /// Counts a page; returns whether it is the last one that the domain may bring.
    fn count_page(&mut self, id: DomainId, name: &str, pages_max: Option<u64>) -> bool {
        let count = &mut self.pages_counts[id.0 as usize];
        *count += 1;
        let is_last = Some(*count) == pages_max;
        if is_last {
            self.spent.count += 1;
            if self.spent.first.len() < TOLD_MAX {
                self.spent.first.push(name.to_owned());
            }
        }
        is_last
    }
}

impl Workbench {
    /// Counts a page that an earlier run had from `host`. To be told before hosts are restored.
    pub fn restore_page(&mut self, host: &Host) {
        if self.config.domain_pages_max.is_some() {
            let id = self.domains.find_or_add(host.domain());
            self.domains
                .count_page(id, host.domain(), self.config.domain_pages_max);
        }
    }

    /// Returns the domains that have had all the pages they may bring.
    #[must_use]
    pub const fn spent_domains(&self) -> &SpentDomains {
        &self.domains.spent
    }

    /// Says whether all that is left belongs to such domains, so that nothing can be done in this run.
    #[must_use]
    pub fn has_only_spent(&self) -> bool {
        self.queued_count > 0
            && self.active_count == 0
            && self.line.is_empty()
            && self.leases.is_empty()
    }

    /// Notes to which domain a host belongs, where that matters.
    pub(super) fn note_domain(&mut self, id: HostId) {
        let host = &mut self.hosts[id];
        if self.config.domain_pages_max.is_some() && host.domain.is_none() {
            host.domain = Some(self.domains.find_or_add(host.host.domain()));
        }
    }

    /// Counts a page of a host. After the last one of a domain, all its hosts end their turns.
    pub(super) fn count_page(&mut self, id: HostId, now: Duration) {
        self.pages_count += 1;
        let host = &self.hosts[id];
        let Some(domain) = host.domain else {
            return;
        };
        let pages_max = self.config.domain_pages_max;
        let name = host.host.domain();
        if self.domains.count_page(domain, name, pages_max) {
            let (first, last) = ((domain, HostId::FIRST), (domain, HostId::LAST));
            let of_domain: Vec<HostId> = self
                .domains
                .active
                .range(first..=last)
                .map(|(_, id)| *id)
                .collect();
            for id in of_domain {
                self.settle(id, now);
            }
        }
    }

    pub(super) fn begin_turn_in_domain(&mut self, id: HostId) {
        if let Some(domain) = self.hosts[id].domain {
            self.domains.active.insert((domain, id));
        }
    }

    pub(super) fn end_turn_in_domain(&mut self, id: HostId) {
        if let Some(domain) = self.hosts[id].domain {
            self.domains.active.remove(&(domain, id));
        }
    }

    /// Says whether the domain of a host has had all its pages. Requests that were under way by then still count.
    pub(super) fn is_spent(&self, id: HostId) -> bool {
        let domain = self.hosts[id].domain;
        domain
            .zip(self.config.domain_pages_max)
            .is_some_and(|(domain, max)| self.domains.pages_count(domain) >= max)
    }

    /// Takes a host whose domain is spent out of its turn, or out of the line for it.
    pub(super) fn stand_down_if_spent(&mut self, id: HostId) {
        if self.hosts[id].standing == Standing::Active && self.is_spent(id) {
            self.hosts[id].standing = Standing::Leaving;
        }
    }
}
