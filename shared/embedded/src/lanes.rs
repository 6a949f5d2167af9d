//! Whose turn it is among the groups that have something to deliver.
//!
//! Lanes take turns, a group each: a tenant with ten thousand groups that are ready holds up another one's single group for one
//! turn only, and tasks do not hold up the chats of the same tenant. Within a lane the group goes first whose next
//! message has the highest priority, and of these the one that has been ready longest.

use ports::lane;
use std::{
    cmp::Reverse,
    collections::{BTreeMap, HashMap, VecDeque},
    sync::Arc,
};

/// Where a ready group stands in its lane.
pub(crate) type Place = (Reverse<i8>, u64);

#[derive(Debug, Default)]
pub(crate) struct Lanes {
    lanes: HashMap<Arc<str>, Lane>,
    /// Lanes with ready groups, the next one first.
    turns: VecDeque<Arc<str>>,
    /// How many groups have ever become ready.
    arrived: u64,
}

#[derive(Debug, Default)]
struct Lane {
    ready: BTreeMap<Place, Arc<str>>,
    /// Messages that are due and not in flight.
    waiting: usize,
}

impl Lanes {
    /// A group has something to deliver.
    pub fn add(&mut self, group: Arc<str>, priority: i8) {
        self.arrived += 1;
        let place = (Reverse(priority), self.arrived);
        let name = self.name(&group);
        let entry = self.lanes.entry(name.clone()).or_default();
        if entry.ready.is_empty() {
            self.turns.push_back(name);
        }
        entry.ready.insert(place, group);
    }

    /// Takes out the group whose turn it is.
    pub fn next(&mut self) -> Option<Arc<str>> {
        let name = self.turns.pop_front()?;
        let entry = self.lanes.get_mut(&name)?;
        let (_, group) = entry.ready.pop_first()?;
        if !entry.ready.is_empty() {
            self.turns.push_back(name);
        }
        Some(group)
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

    /// Whether nothing is ready and nothing waits.
    #[cfg(test)]
    pub fn is_empty(&self) -> bool {
        self.lanes.is_empty() && self.turns.is_empty()
    }

    fn name(&self, group: &str) -> Arc<str> {
        let lane = lane(group);
        self.lanes.get_key_value(lane).map_or_else(|| lane.into(), |(known, _)| known.clone())
    }
}
