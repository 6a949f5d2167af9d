//! The state of a semaphore: the fold of its events.

use crate::{
    fair_queue::{FairQueue, Waiting},
    request::{Ask, SlotsEvent},
};
use actor::ActorId;
use domain::{ActorKind, Timestamp};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A time that is less than this before the newest one, in milliseconds, counts as it is: it is of another worker, or of a clock that is corrected a little.
const SET_BACK: i64 = 60_000;

/// A semaphore: holders of slots, and waiting requests.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SlotsState {
    /// How many are taken.
    taken: TakenSlots,
    /// The holders of slots.
    held: BTreeMap<String, Held>,
    /// The waiting requests, by the names that they want.
    lines: BTreeMap<String, FairQueue>,
    /// The position of each waiting request.
    places: BTreeMap<String, LinePosition>,
    /// How many slots there are of each name that is taken, by the newest request. A request that waits may have asked when there were fewer.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    limits: BTreeMap<String, u32>,
    /// The time by which waiting is measured.
    #[serde(default, skip_serializing_if = "WaitingClock::is_new")]
    clock: WaitingClock,
}

/// The time by which the waiting of requests is measured. It goes on with the clock, and does not go back with it: new requests would go before all that
/// wait until the clock is again where it was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
struct WaitingClock {
    /// The newest time that was read, in milliseconds.
    newest: i64,
    /// How far it is ahead of the clock, in milliseconds.
    ahead: i64,
}

impl WaitingClock {
    fn is_new(&self) -> bool {
        *self == Self::default()
    }

    /// The time of a request that came at `at` by the clock, in milliseconds.
    fn read(&mut self, at: Timestamp) -> i64 {
        let mut now = at.as_millis().saturating_add(self.ahead);
        if now < self.newest.saturating_sub(SET_BACK) {
            now = self.newest;
            self.ahead = now.saturating_sub(at.as_millis());
        }
        self.newest = self.newest.max(now);
        now
    }
}

/// The slots of a holder.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Held {
    party: String,
    names: Vec<String>,
    /// The actor that asked; none in a snapshot of an earlier version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    to: Option<ActorId>,
}

impl Held {
    /// The actors that may have asked. A snapshot of an earlier version has no asker: there the name of a node's slots begins with its task, and the name
    /// of a model call's slots with its chat. The name of the place of a chat's command has no actor in it.
    fn askers(&self, holder: &str) -> Vec<ActorId> {
        match (&self.to, holder.split_once('/')) {
            (Some(to), _) => vec![to.clone()],
            (None, Some((id, _))) => {
                let kinds = [ActorKind::Task, ActorKind::Chat];
                kinds.map(|kind| ActorId::new(kind.as_str(), format_args!("{}/{id}", self.party))).to_vec()
            }
            (None, None) => Vec::new(),
        }
    }
}

/// How many slots are taken, by name and by party. A name without a taken slot is removed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
struct TakenSlots(BTreeMap<String, BTreeMap<String, u32>>);

impl TakenSlots {
    fn of(&self, name: &str) -> u32 {
        self.0.get(name).map_or(0, |parties| parties.values().sum())
    }

    /// Whether the free slots are enough for this request, and its party is below its share. Of a name that has more slots by now than the request knows,
    /// `limits` has the number.
    fn has_room(&self, ask: &Ask, limits: &BTreeMap<String, u32>) -> bool {
        ask.wants.iter().all(|(name, limit)| {
            let limit = limits.get(name).map_or(*limit, |newest| (*newest).max(*limit));
            let free = limit.max(1).saturating_sub(self.of(name));
            let own = self.0.get(name).and_then(|parties| parties.get(&ask.party)).copied().unwrap_or(0);
            free > 0 && ask.share.is_none_or(|share| own < share.max(1).saturating_mul(free))
        })
    }

    fn take<'a>(&mut self, party: &str, names: impl Iterator<Item = &'a String>) {
        for name in names {
            *self.0.entry(name.clone()).or_default().entry(party.to_owned()).or_default() += 1;
        }
    }

    fn release(&mut self, held: &Held) {
        for name in &held.names {
            let Some(parties) = self.0.get_mut(name) else { continue };
            if let Some(count) = parties.get_mut(&held.party) {
                *count = count.saturating_sub(1);
            }
            parties.retain(|_, count| *count > 0);
            if parties.is_empty() {
                self.0.remove(name);
            }
        }
    }
}

/// The position of a request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct LinePosition {
    line: String,
    party: String,
    rank: i64,
}

impl SlotsState {
    /// Whether this holder has slots.
    pub fn holds(&self, holder: &str) -> bool {
        self.held.contains_key(holder)
    }

    /// The holders of slots, and behind them the waiting requests, whose party and asker are `wanted`. The asker is none where it is unknown: of some slots
    /// in a snapshot of an earlier version.
    pub fn holders(&self, wanted: impl Fn(&str, Option<&ActorId>) -> bool) -> Vec<String> {
        let is_wanted = |(holder, held): &(&String, &Held)| {
            let askers = held.askers(holder);
            let by_asker = askers.iter().any(|asker| wanted(&held.party, Some(asker)));
            by_asker || (askers.is_empty() && wanted(&held.party, None))
        };
        let held = self.held.iter().filter(is_wanted);
        let waiting = self.places.keys().filter(|holder| {
            self.waiting_of_holder(holder).is_some_and(|waiting| wanted(&waiting.ask.party, Some(&waiting.ask.to)))
        });
        held.map(|(holder, _)| holder).chain(waiting).cloned().collect()
    }

    /// Whether this holder waits for slots.
    pub fn waits(&self, holder: &str) -> bool {
        self.places.contains_key(holder)
    }

    /// The start of this holder's wait for slots.
    pub(crate) fn waits_since(&self, holder: &str) -> Option<Timestamp> {
        self.waiting_of_holder(holder).map(Waiting::since)
    }

    /// Whether the same request waits already with another priority.
    pub(crate) fn has_other_priority(&self, ask: &Ask) -> bool {
        self.waiting_of_holder(&ask.holder).is_some_and(|waiting| {
            let before = &waiting.ask;
            before.priority != ask.priority && before.party == ask.party && before.line() == ask.line()
        })
    }

    fn waiting_of_holder(&self, holder: &str) -> Option<&Waiting> {
        let LinePosition { line, party, rank } = self.places.get(holder)?;
        self.lines.get(line)?.get(party, *rank, holder)
    }

    /// How many of a name are taken.
    pub fn taken(&self, name: &str) -> u32 {
        self.taken.of(name)
    }

    /// How many requests wait.
    pub fn waiting(&self) -> usize {
        self.places.len()
    }

    /// How many requests of a party wait.
    pub fn waiting_of(&self, party: &str) -> usize {
        self.lines.values().map(|line| line.waiting_of(party)).sum()
    }

    /// Whether a new request can be granted at once, by the limits that it knows. Waiting requests cannot be, so it overtakes none of them; unless it
    /// [adds slots](Self::adds_slots).
    pub(crate) fn can_grant(&self, ask: &Ask) -> bool {
        self.taken.has_room(ask, &BTreeMap::new())
    }

    /// Whether there are more slots of a name by this request than there were: requests that wait may go, too.
    pub(crate) fn adds_slots(&self, ask: &Ask) -> bool {
        ask.wants.iter().any(|(name, limit)| self.limits.get(name).is_some_and(|before| before < limit))
    }

    /// The requests that can be granted now, in their order.
    pub(crate) fn granted_now(&self) -> Vec<&Waiting> {
        self.granted_of(self.taken.clone())
    }

    /// The requests that can be granted once this holder has given its slots back, in their order: of the requests that can go, always the
    /// first.
    pub(crate) fn granted_after(&self, holder: &str) -> Vec<&Waiting> {
        let Some(held) = self.held.get(holder) else { return Vec::new() };
        let mut taken = self.taken.clone();
        taken.release(held);
        self.granted_of(taken)
    }

    /// The requests that can be granted when so many are taken.
    fn granted_of(&self, mut taken: TakenSlots) -> Vec<&Waiting> {
        // Those of each line.
        let mut granted: BTreeMap<&str, Vec<&Waiting>> = BTreeMap::new();
        let mut all = Vec::new();
        loop {
            let served = |line: &str| granted.get(line).map(Vec::as_slice).unwrap_or_default();
            let firsts = self.lines.iter().filter_map(|(name, line)| {
                Some((name, line.first(served(name), |waiting| taken.has_room(&waiting.ask, &self.limits))?))
            });
            let Some((line, next)) = firsts.min_by_key(|(_, waiting)| waiting.rank) else { return all };
            taken.take(&next.ask.party, next.ask.wants.iter().map(|(name, _)| name));
            granted.entry(line).or_default().push(next);
            all.push(next);
        }
    }

    /// Folds one event.
    pub(crate) fn apply(&mut self, event: &SlotsEvent) {
        match event {
            SlotsEvent::Asked { ask, at } => {
                let clock = self.clock;
                let since = match self.leave(&ask.holder, false) {
                    // The request waits on: `at` is the start of its wait by the clock of waiting.
                    Some(_) => {
                        self.clock = clock;
                        at.as_millis()
                    }
                    None => self.clock.read(*at),
                };
                for (name, limit) in &ask.wants {
                    if let Some(newest) = self.limits.get_mut(name) {
                        *newest = *limit;
                    }
                }
                let waiting = Waiting { rank: ports::rank(since, ask.priority), ask: (**ask).clone() };
                let place = LinePosition { line: ask.line(), party: ask.party.clone(), rank: waiting.rank };
                self.lines.entry(place.line.clone()).or_default().add(waiting);
                self.places.insert(ask.holder.clone(), place);
            }
            SlotsEvent::Granted { holder } => {
                let Some(Waiting { ask, .. }) = self.leave(holder, true) else { return };
                for (name, limit) in &ask.wants {
                    self.limits.entry(name.clone()).or_insert(*limit);
                }
                let names = ask.wants.into_iter().map(|(name, _)| name).collect();
                let held = Held { party: ask.party, names, to: Some(ask.to) };
                self.taken.take(&held.party, held.names.iter());
                self.held.insert(holder.clone(), held);
            }
            SlotsEvent::Given { holder } => {
                self.leave(holder, false);
                if let Some(held) = self.held.remove(holder) {
                    self.taken.release(&held);
                    self.limits.retain(|name, _| self.taken.of(name) > 0);
                }
            }
        }
    }

    /// A request waits no more.
    fn leave(&mut self, holder: &str, served: bool) -> Option<Waiting> {
        let LinePosition { line, party, rank } = self.places.remove(holder)?;
        let requests = self.lines.get_mut(&line)?;
        let waiting = requests.remove(&party, rank, holder, served);
        if requests.is_empty() {
            self.lines.remove(&line);
        }
        if self.places.is_empty() {
            self.clock = WaitingClock::default();
        }
        waiting
    }
}
