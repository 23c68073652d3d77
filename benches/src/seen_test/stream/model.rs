//! The modelled web: a stream generated on the fly, of any length, in memory that does not grow with it.
//!
//! Host h has min(30 / u^0.9, 500,000) pages; a page has exponentially many links, 62.5 in the mean. Of them 45 % lead to
//! the 25 hot pages of the page's host, 35 % to page floor(n u^2) of its n, 13 % to host floor(H u^5) of all H (in 60 % of
//! cases to its front page, else to page floor(n u^2.5)), and 7 % to a page that nothing has linked to before. The next
//! page is of an active host in 95 % of cases, of any host else. The set of active hosts moves on through all hosts, in
//! random order, once during the stream. u is uniform in (0, 1).

use std::sync::{Mutex, PoisonError};

use anyhow::{Result, ensure};
use fastrand::Rng;
use types::CanonicalUrl;

use super::{LinkId, LinkStream};

/// Links of a page, in the mean.
const PAGE_LINKS: f64 = 62.5;
/// The pages of a host that most of its links lead to.
const HOT_PAGES: u32 = 25;
/// The most pages of a host.
const HOST_PAGES_MAX: f64 = 500_000.0;
/// Marks the number of a link whose target nothing has linked to before.
const NEW: u64 = 1 << 63;

/// The parameters of a modelled stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModelConfig {
    /// Links in all; the last page is cut to end there.
    pub link_count: u64,
    /// Hosts, at most 2^31.
    pub host_count: u32,
    /// Hosts that are crawled at a time, at most all.
    pub active_count: u32,
    /// The seed of the random numbers.
    pub seed: u64,
}

/// A modelled stream.
pub struct Model {
    config: ModelConfig,
    hosts: Hosts,
    state: Mutex<State>,
}

/// The pages of every host.
struct Hosts {
    page_counts: Vec<u32>,
    /// The slot of each host's front page.
    first_slots: Vec<u64>,
    page_count: u64,
}

struct State {
    random: Rng,
    /// All hosts in the order in which they become active.
    order: Vec<u32>,
    /// Hosts that have been active or are: the last of them are.
    entered_count: usize,
    page_count: u64,
    link_count: u64,
    new_count: u64,
}

impl Model {
    /// Makes a stream.
    ///
    /// # Errors
    ///
    /// Fails when there is no host, or there are more active ones than hosts.
    pub fn new(config: ModelConfig) -> Result<Self> {
        ensure!(
            (1..=config.host_count).contains(&config.active_count) && config.host_count <= 1 << 31,
            "{} of {} hosts cannot be active: 1 to all, of at most 2^31, can",
            config.active_count,
            config.host_count
        );
        ensure!(
            config.link_count < 1 << 32,
            "a modelled stream has fewer than 2^32 links"
        );
        let mut random = Rng::with_seed(config.seed);
        let page_counts: Vec<u32> = (0..config.host_count)
            .map(|_| host_pages(uniform(&mut random)))
            .collect();
        let mut page_count = 0;
        let first_slots = page_counts
            .iter()
            .map(|pages| {
                page_count += u64::from(*pages);
                page_count - u64::from(*pages)
            })
            .collect();
        Ok(Self {
            config,
            hosts: Hosts {
                page_counts,
                first_slots,
                page_count,
            },
            state: Mutex::new(State::new(&config)),
        })
    }
}

impl State {
    fn new(config: &ModelConfig) -> Self {
        let mut random = Rng::with_seed(config.seed.wrapping_add(1));
        let mut order: Vec<u32> = (0..config.host_count).collect();
        random.shuffle(&mut order);
        Self {
            random,
            order,
            entered_count: config.active_count as usize,
            page_count: 0,
            link_count: 0,
            new_count: 0,
        }
    }

    /// Moves the active set on, in step with the stream, and chooses the host of the next page.
    fn next_host(&mut self, config: &ModelConfig) -> u32 {
        let to_enter = u64::from(config.host_count - config.active_count);
        let entered = to_enter * self.link_count / config.link_count.max(1);
        self.entered_count = config.active_count as usize + index(entered);
        let among = if uniform(&mut self.random) < 0.95 {
            self.entered_count - config.active_count as usize..self.entered_count
        } else {
            0..self.order.len()
        };
        self.order[self.random.usize(among)]
    }

    fn link(&mut self, hosts: &Hosts, host: u32) -> LinkId {
        let random = &mut self.random;
        let page_count = hosts.page_counts[host as usize];
        let kind = uniform(random);
        if kind < 0.45 {
            page(host, random.u32(..HOT_PAGES.min(page_count)))
        } else if kind < 0.80 {
            page(host, scaled(page_count, uniform(random).powi(2)))
        } else if kind < 0.93 {
            let host_count = u32::try_from(hosts.page_counts.len()).unwrap_or(u32::MAX);
            let foreign = scaled(host_count, uniform(random).powi(5));
            if uniform(random) < 0.60 {
                page(foreign, 0)
            } else {
                let u = uniform(random);
                let page_count = hosts.page_counts[foreign as usize];
                page(foreign, scaled(page_count, u * u * u.sqrt()))
            }
        } else {
            self.new_count += 1;
            LinkId(NEW | u64::from(host) << 32 | (self.new_count - 1))
        }
    }
}

impl LinkStream for Model {
    fn next_page(&self, links: &mut Vec<LinkId>) -> Option<u64> {
        links.clear();
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let left = self.config.link_count - state.link_count;
        if left == 0 {
            return None;
        }
        let host = state.next_host(&self.config);
        let count = page_links(uniform(&mut state.random)).min(left);
        for _ in 0..count {
            links.push(state.link(&self.hosts, host));
        }
        state.link_count += count;
        state.page_count += 1;
        Some(state.page_count - 1)
    }

    fn rewind(&self) {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) = State::new(&self.config);
    }

    fn url(&self, link: LinkId) -> CanonicalUrl {
        let (host, number) = parts(link);
        let kind = if link.0 & NEW == 0 { 'p' } else { 'n' };
        CanonicalUrl::from_stored(format!("http://h{host}.example/{kind}/{number}"))
            .expect("the text is written in canonical form")
    }

    fn link_of(&self, url: &CanonicalUrl) -> Option<LinkId> {
        let host = url.host_str().strip_prefix("http://h")?;
        let host: u64 = host.strip_suffix(".example")?.parse().ok()?;
        let (kind, number) = url.path_and_query().strip_prefix('/')?.split_once('/')?;
        let number: u32 = number.parse().ok()?;
        let mark = match kind {
            "p" => 0,
            "n" => NEW,
            _ => return None,
        };
        Some(LinkId(mark | host << 32 | u64::from(number)))
    }

    fn slot(&self, link: LinkId) -> u64 {
        let (host, number) = parts(link);
        if link.0 & NEW == 0 {
            self.hosts.first_slots[host as usize] + u64::from(number)
        } else {
            self.hosts.page_count + u64::from(number)
        }
    }

    fn slot_count(&self) -> u64 {
        self.hosts.page_count + self.config.link_count
    }
}

/// Draws from (0, 1).
fn uniform(random: &mut Rng) -> f64 {
    loop {
        let number = random.f64();
        if number > 0.0 {
            return number;
        }
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "between 30 and 500,000"
)]
fn host_pages(u: f64) -> u32 {
    (30.0 / u.powf(0.9)).min(HOST_PAGES_MAX) as u32
}

/// Draws the links of a page; at least one, since a page without any is none of a link stream.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the logarithm of what an f64 can hold is small"
)]
fn page_links(u: f64) -> u64 {
    ((-PAGE_LINKS * u.ln()).round() as u64).max(1)
}

/// Returns floor(count * share), below `count`.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the product is below the count"
)]
fn scaled(count: u32, share: f64) -> u32 {
    ((f64::from(count) * share) as u32).min(count - 1)
}

fn page(host: u32, page: u32) -> LinkId {
    LinkId(u64::from(host) << 32 | u64::from(page))
}

#[expect(clippy::cast_possible_truncation, reason = "the halves of a number")]
const fn parts(link: LinkId) -> (u32, u32) {
    (((link.0 & !NEW) >> 32) as u32, link.0 as u32)
}

fn index(number: u64) -> usize {
    usize::try_from(number).expect("it is at most the number of hosts")
}
