//! The order of groups that have something to deliver.
//!
//! Lanes take turns, a group each: a tenant with ten thousand ready groups delays another one's single group by one turn only, and tasks do
//! not delay the chats of the same tenant. Within a lane the group goes first that has an urgent message, then the one that has waited
//! longest, where each point of priority counts as [some waiting](ports::POINT): so a higher priority goes first, and no group starves
//! behind it.
//!
//! A tenant has at most as many groups in flight as there are free places in the worker. One tenant alone gets half of them, two
//! get a third each, and so on (the dynamic threshold of Choudhury and Hahne, IEEE/ACM Transactions on Networking 6(2), 1998): a
//! tenant whose model hangs never takes the last place from the others.

use ports::{lane, rank, tenant};
use std::{
    cmp::Reverse,
    collections::{BTreeMap, HashMap, VecDeque},
    sync::Arc,
};

/// The sort key of a ready group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ReadyKey {
    /// Whether it has an urgent message, at any position in the group.
    pub urgent: bool,
    /// The priority of its next message.
    pub priority: i8,
    /// The time at which it became ready, in milliseconds.
    pub since: i64,
}

/// The position of a ready group in its lane.
pub(crate) type LanePosition = (Reverse<bool>, i64, u64);

#[derive(Debug)]
pub(crate) struct Lanes {
    lanes: HashMap<Arc<str>, Lane>,
    /// Lanes with ready groups, the next one first.
    turns: VecDeque<Arc<str>>,
    /// How many groups have ever become ready.
    arrived: u64,
    /// How many groups the worker drives at once.
    places: usize,
    /// Groups in flight, by tenant and in all.
    in_flight: HashMap<Arc<str>, usize>,
    taken: usize,
    /// Whether only groups with something urgent go.
    only_urgent: bool,
}

#[derive(Debug, Default)]
struct Lane {
    ready: BTreeMap<LanePosition, Arc<str>>,
    /// Messages that are due and not in flight.
    waiting: usize,
}

impl Lanes {
    /// For a worker that drives so many groups at once.
    pub fn new(places: usize) -> Self {
        let (lanes, turns, in_flight) = (HashMap::new(), VecDeque::new(), HashMap::new());
        Self { lanes, turns, arrived: 0, places: places.max(1), in_flight, taken: 0, only_urgent: false }
    }

    /// Adds a group that has something to deliver. Returns its position.
    pub fn add(&mut self, group: Arc<str>, key: ReadyKey) -> LanePosition {
        self.arrived += 1;
        let place = (Reverse(key.urgent), rank(key.since, key.priority), self.arrived);
        let name = self.name(&group);
        let entry = self.lanes.entry(name.clone()).or_default();
        if entry.ready.is_empty() {
            self.turns.push_back(name);
        }
        entry.ready.insert(place, group);
        place
    }

    /// The group at this position has something urgent now. Returns its new position.
    pub fn hurry(&mut self, group: Arc<str>, place: LanePosition) -> LanePosition {
        let hurried = (Reverse(true), place.1, place.2);
        if let Some(entry) = self.lanes.get_mut(lane(&group))
            && entry.ready.remove(&place).is_some()
        {
            entry.ready.insert(hurried, group);
        }
        hurried
    }

    /// Takes out the group with the next turn, and counts it as in flight.
    pub fn next(&mut self) -> Option<Arc<str>> {
        for _ in 0..self.turns.len() {
            let name = self.turns.pop_front()?;
            if !self.is_urgent(&name) && (self.only_urgent || !self.has_place(&name)) {
                self.turns.push_back(name);
                continue;
            }
            let entry = self.lanes.get_mut(&name)?;
            let (_, group) = entry.ready.pop_first()?;
            if !entry.ready.is_empty() {
                self.turns.push_back(name);
            }
            *self.in_flight.entry(tenant(&group).into()).or_default() += 1;
            self.taken += 1;
            return Some(group);
        }
        None
    }

    /// A group is in flight no more. Says whether another one may go because of it.
    pub fn landed(&mut self, group: &str) -> bool {
        let tenant = tenant(group);
        self.taken = self.taken.saturating_sub(1);
        if let Some(count) = self.in_flight.get_mut(tenant) {
            *count -= 1;
            if *count == 0 {
                self.in_flight.remove(tenant);
            }
        }
        !self.turns.is_empty()
    }

    /// From now on only groups with something urgent go; or all of them again. Returns how many may go because of it, at most.
    pub fn only_urgent(&mut self, only: bool) -> usize {
        let was = std::mem::replace(&mut self.only_urgent, only);
        if was && !only { self.lanes.values().map(|lane| lane.ready.len()).sum() } else { 0 }
    }

    /// Whether the next group of this lane has something urgent. That may always go: it frees places or room.
    fn is_urgent(&self, lane: &str) -> bool {
        let first = self.lanes.get(lane).and_then(|lane| lane.ready.first_key_value());
        first.is_some_and(|((Reverse(urgent), ..), _)| *urgent)
    }

    /// Whether the tenant of this lane may have one more in flight.
    fn has_place(&self, lane: &str) -> bool {
        let taken = self.in_flight.get(tenant(lane)).copied().unwrap_or_default();
        taken < self.places.saturating_sub(self.taken).max(1)
    }

    /// The number of messages of `group` that wait was `before` and is `now`.
    pub fn recount(&mut self, group: &str, before: usize, now: usize) {
        if before == now {
            return;
        }
        let name = self.name(group);
        let entry = self.lanes.entry(name.clone()).or_default();
        entry.waiting = (entry.waiting + now).saturating_sub(before);
        if entry.waiting == 0 && entry.ready.is_empty() {
            self.lanes.remove(&name);
        }
    }

    /// How many messages of a lane wait.
    pub fn waiting(&self, lane: &str) -> usize {
        self.lanes.get(lane).map_or(0, |lane| lane.waiting)
    }

    /// Whether nothing is ready, nothing waits and nothing is in flight.
    #[cfg(test)]
    pub fn is_empty(&self) -> bool {
        self.lanes.is_empty() && self.turns.is_empty() && self.in_flight.is_empty() && self.taken == 0
    }

    fn name(&self, group: &str) -> Arc<str> {
        let lane = lane(group);
        self.lanes.get_key_value(lane).map_or_else(|| lane.into(), |(known, _)| known.clone())
    }
}
