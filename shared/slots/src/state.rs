//! What a semaphore knows: the fold of its events.

use crate::{
    line::{Line, Waiting, rank},
    machine::{Ask, SlotsEvent},
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A semaphore: who has slots, and who waits for them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SlotsState {
    /// How many of them are taken.
    taken: BTreeMap<String, u32>,
    /// Who has slots, and of which names.
    held: BTreeMap<String, Vec<String>>,
    /// Those who wait, by the names that they want.
    lines: BTreeMap<String, Line>,
    /// Where each of those stands.
    places: BTreeMap<String, Place>,
}

/// Where a request stands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Place {
    line: String,
    party: String,
    rank: i64,
}

impl SlotsState {
    /// Whether this holder has slots.
    pub fn holds(&self, holder: &str) -> bool {
        self.held.contains_key(holder)
    }

    /// Whether this holder waits for slots.
    pub fn waits(&self, holder: &str) -> bool {
        self.places.contains_key(holder)
    }

    /// How many of a name are taken.
    pub fn taken(&self, name: &str) -> u32 {
        self.taken.get(name).copied().unwrap_or(0)
    }

    /// How many requests wait.
    pub fn waiting(&self) -> usize {
        self.places.len()
    }

    /// How many requests of a party wait.
    pub fn waiting_of(&self, party: &str) -> usize {
        self.lines.values().map(|line| line.waiting_of(party)).sum()
    }

    /// Whether a new request can be granted at once. Whoever waits cannot be, so nobody is overtaken by it.
    pub(crate) fn can_grant(&self, ask: &Ask) -> bool {
        ask.wants.iter().all(|(name, limit)| self.taken(name) < (*limit).max(1))
    }

    /// Those who can be granted once this holder has given its slots back, in their order: of the requests whose slots are all
    /// free, always the one that stands first.
    pub(crate) fn granted_after(&self, holder: &str) -> Vec<&Waiting> {
        let Some(names) = self.held.get(holder) else { return Vec::new() };
        let mut taken: BTreeMap<&str, u32> = BTreeMap::new();
        for name in names {
            taken.insert(name, self.taken(name).saturating_sub(1));
        }
        // Those of each line.
        let mut granted: BTreeMap<&str, Vec<&Waiting>> = BTreeMap::new();
        let mut all = Vec::new();
        loop {
            let has_room = |(name, limit): &(String, u32)| {
                taken.get(name.as_str()).copied().unwrap_or_else(|| self.taken(name)) < (*limit).max(1)
            };
            let can = |waiting: &&Waiting| waiting.ask.wants.iter().all(has_room);
            let none = Vec::new();
            let firsts = self
                .lines
                .iter()
                .filter_map(|(name, line)| Some((name, line.first(granted.get(name.as_str()).unwrap_or(&none))?)));
            let Some((line, next)) = firsts.filter(|(_, waiting)| can(waiting)).min_by_key(|(_, waiting)| waiting.rank)
            else {
                return all;
            };
            for (name, _) in &next.ask.wants {
                *taken.entry(name).or_insert_with(|| self.taken(name)) += 1;
            }
            granted.entry(line).or_default().push(next);
            all.push(next);
        }
    }

    /// Folds one event.
    pub(crate) fn apply(&mut self, event: &SlotsEvent) {
        match event {
            SlotsEvent::Asked { ask, at } => {
                let waiting = Waiting { rank: rank(ask, *at), ask: (**ask).clone() };
                let place = Place { line: ask.line(), party: ask.party.clone(), rank: waiting.rank };
                self.lines.entry(place.line.clone()).or_default().add(waiting);
                self.places.insert(ask.holder.clone(), place);
            }
            SlotsEvent::Granted { holder } => {
                let Some(waiting) = self.leave(holder, true) else { return };
                let names: Vec<String> = waiting.ask.wants.into_iter().map(|(name, _)| name).collect();
                for name in &names {
                    *self.taken.entry(name.clone()).or_default() += 1;
                }
                self.held.insert(holder.clone(), names);
            }
            SlotsEvent::Given { holder } => {
                self.leave(holder, false);
                for name in self.held.remove(holder).unwrap_or_default() {
                    self.release(&name);
                }
            }
        }
    }

    /// A request waits no more.
    fn leave(&mut self, holder: &str, served: bool) -> Option<Waiting> {
        let Place { line, party, rank } = self.places.remove(holder)?;
        let requests = self.lines.get_mut(&line)?;
        let waiting = requests.remove(&party, rank, holder, served);
        if requests.is_empty() {
            self.lines.remove(&line);
        }
        waiting
    }

    /// One slot of a name is free. Nothing is kept of a name that nobody has.
    fn release(&mut self, name: &str) {
        match self.taken(name) {
            0 | 1 => _ = self.taken.remove(name),
            taken => _ = self.taken.insert(name.to_owned(), taken - 1),
        }
    }
}
