//! Who is next: hosts in the order of their ready times, and the slots of each IP address.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
    time::Duration,
};

use super::table::HostId;

/// A host's place in an order: by time, then by arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    pub(super) at: Duration,
    pub(super) tick: u64,
    pub(super) id: HostId,
}

/// What a host waits to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lane {
    /// Be resolved.
    Resolve,
    /// Have its first URL disregarded.
    Disregard,
    /// Send a request for a robots.txt.
    Robots,
    /// Send a request for a page.
    Page,
}

impl Lane {
    pub(super) const ALL: [Self; 4] = [Self::Resolve, Self::Disregard, Self::Robots, Self::Page];
}

/// Where a host stands.
#[derive(Clone, Copy, Debug, Default)]
pub(super) enum Place {
    /// Nowhere: it has nothing to do, or an input will say when it has.
    #[default]
    Nowhere,
    /// In a lane. `woken_on` is the address whose free slot brought it there.
    Ready {
        lane: Lane,
        key: Key,
        woken_on: Option<IpAddr>,
    },
    /// In a lane by right, but every slot of its address is taken.
    Parked {
        lane: Lane,
        key: Key,
        address: IpAddr,
    },
}

/// The lanes.
#[derive(Debug, Default)]
pub(super) struct Lanes([BTreeSet<Key>; 4]);

impl Lanes {
    pub(super) fn insert(&mut self, lane: Lane, key: Key) {
        self.0[lane as usize].insert(key);
    }

    pub(super) fn remove(&mut self, lane: Lane, key: Key) {
        self.0[lane as usize].remove(&key);
    }

    /// Returns the first host of those lanes that are open.
    pub(super) fn first(&self, is_open: impl Fn(Lane) -> bool) -> Option<(Lane, Key)> {
        let firsts = Lane::ALL.into_iter().filter(|lane| is_open(*lane));
        firsts
            .filter_map(|lane| self.0[lane as usize].first().map(|key| (lane, *key)))
            .min_by_key(|(_, key)| *key)
    }
}

/// The slots of every address in use.
#[derive(Debug)]
pub(super) struct IpSlots {
    per_ip: u32,
    addresses: BTreeMap<IpAddr, Slots>,
}

#[derive(Debug, Default)]
struct Slots {
    taken: u32,
    parked: BTreeSet<Key>,
}

impl IpSlots {
    pub(super) const fn new(per_ip: u32) -> Self {
        Self {
            per_ip,
            addresses: BTreeMap::new(),
        }
    }

    /// Takes a slot; `false` if none is free.
    pub(super) fn take(&mut self, address: IpAddr) -> bool {
        let slots = self.addresses.entry(address).or_default();
        let is_free = slots.taken < self.per_ip;
        slots.taken += u32::from(is_free);
        is_free
    }

    /// Gives a slot back.
    pub(super) fn give_back(&mut self, address: IpAddr) {
        if let Some(slots) = self.addresses.get_mut(&address) {
            slots.taken = slots.taken.saturating_sub(1);
        }
        self.forget_unused(address);
    }

    pub(super) fn park(&mut self, address: IpAddr, key: Key) {
        self.addresses
            .entry(address)
            .or_default()
            .parked
            .insert(key);
    }

    pub(super) fn unpark(&mut self, address: IpAddr, key: Key) {
        if let Some(slots) = self.addresses.get_mut(&address) {
            slots.parked.remove(&key);
        }
        self.forget_unused(address);
    }

    /// Takes the first of the parked hosts out if a slot is free.
    pub(super) fn wake(&mut self, address: IpAddr) -> Option<Key> {
        let slots = self.addresses.get_mut(&address)?;
        if slots.taken >= self.per_ip {
            return None;
        }
        let key = slots.parked.pop_first();
        self.forget_unused(address);
        key
    }

    fn forget_unused(&mut self, address: IpAddr) {
        if self
            .addresses
            .get(&address)
            .is_some_and(|slots| slots.taken == 0 && slots.parked.is_empty())
        {
            self.addresses.remove(&address);
        }
    }
}
