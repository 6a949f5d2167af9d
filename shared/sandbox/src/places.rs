//! Places: how many commands run at once on this machine. A pure machine: the time comes from outside.
//!
//! There is no queue here. Commands of agents and nodes wait for the machine's semaphore (`slots::Places`), which has as many places as
//! [`Rules::queued`]; so such a command finds its place, except while the command that had it before is still being ended. Requests of
//! people have places of their own, of which one workspace holds half at the most if several share the machine. A request without a place
//! asks again.

use domain::{CallId, WorkspaceId};
use ports::Grant;
use std::{collections::HashMap, time::Duration};
use tokio::time::Instant;
use uuid::Uuid;

/// The key of a call: a call is its workspace's own.
pub(crate) type Key = (WorkspaceId, CallId);

/// For how long a place is kept for a command that has not begun.
pub(crate) const KEPT: Duration = Duration::from_secs(60);

/// How many places there are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    /// For commands that hold a place of the machine's semaphore.
    pub queued: usize,
    /// For requests of people.
    pub direct: usize,
    /// How many of those one workspace holds at the most.
    pub direct_of_one: usize,
}

/// Places, and their holders.
#[derive(Debug)]
pub(crate) struct Places {
    rules: Rules,
    machine: Uuid,
    /// The number of the last grant.
    number: u64,
    held: HashMap<Key, HeldPlace>,
    /// Whether places are refused from now on.
    closed: bool,
}

#[derive(Debug)]
struct HeldPlace {
    number: u64,
    direct: bool,
    /// The time until which it is kept for a command that has not begun; none for one that has.
    until: Option<Instant>,
}

impl Places {
    pub fn new(rules: Rules, machine: Uuid) -> Self {
        Self { rules, machine, number: 0, held: HashMap::new(), closed: false }
    }

    /// A grant of this machine.
    pub fn grant(&self, number: u64) -> Grant {
        Grant { machine: self.machine, number }
    }

    /// A place for a call: the one that it holds, kept for it anew, or one that is free.
    pub fn ask(&mut self, key: Key, direct: bool, now: Instant) -> Option<Grant> {
        if let Some(held) = self.held.get_mut(&key) {
            if let Some(until) = &mut held.until {
                *until = now + KEPT;
            }
            return Some(Grant { machine: self.machine, number: held.number });
        }
        // Those under which nothing has begun for too long are free again.
        self.held.retain(|_, held| held.until.is_none_or(|until| until > now));
        if self.closed || !self.has_room(key.0, direct) {
            return None;
        }
        self.number += 1;
        let number = self.number;
        self.held.insert(key, HeldPlace { number, direct, until: Some(now + KEPT) });
        Some(self.grant(number))
    }

    fn has_room(&self, workspace: WorkspaceId, direct: bool) -> bool {
        let alike = || self.held.iter().filter(move |(_, held)| held.direct == direct);
        if !direct {
            return alike().count() < self.rules.queued;
        }
        let own = alike().filter(|((of, _), _)| *of == workspace).count();
        alike().count() < self.rules.direct && own < self.rules.direct_of_one
    }

    /// A command begins under this grant; false when it does not hold it.
    pub fn begin(&mut self, key: &Key, number: u64, now: Instant) -> bool {
        match self.held.get_mut(key) {
            Some(held) if held.number == number && held.until.is_some_and(|until| until > now) => {
                held.until = None;
                true
            }
            _ => false,
        }
    }

    /// A call has ended, or will not begin: its place is another's.
    pub fn release(&mut self, key: &Key) {
        self.held.remove(key);
    }

    /// The command that began under this grant has ended, or could not be started.
    pub fn ended(&mut self, key: &Key, number: u64) {
        if self.held.get(key).is_some_and(|held| held.number == number) {
            self.release(key);
        }
    }

    /// Lets no further command begin.
    pub fn close(&mut self) {
        self.closed = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(workspace: u128, call: u128) -> Key {
        (WorkspaceId::from(Uuid::from_u128(workspace)), CallId::from(Uuid::from_u128(call)))
    }

    fn places(queued: usize, direct: usize, direct_of_one: usize) -> Places {
        Places::new(Rules { queued, direct, direct_of_one }, Uuid::from_u128(7))
    }

    fn granted(places: &mut Places, workspace: u128, direct: bool, now: Instant) -> usize {
        let from = if direct { 100 } else { 0 };
        (from..from + 20).filter(|call| places.ask(key(workspace, *call), direct, now).is_some()).count()
    }

    #[tokio::test(start_paused = true)]
    async fn requests_of_people_and_commands_of_the_semaphore_take_no_places_from_each_other() {
        let now = Instant::now();
        let mut places = places(5, 4, 2);
        assert_eq!(granted(&mut places, 1, true, now), 2, "half of them are another workspace's");
        assert_eq!(granted(&mut places, 1, false, now), 5, "the semaphore has granted them");
        assert_eq!([granted(&mut places, 2, true, now), granted(&mut places, 3, true, now)], [2, 0]);
        places.release(&key(1, 100));
        assert_eq!(granted(&mut places, 3, true, now), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_place_under_which_nothing_begins_is_anothers_after_a_minute() {
        let began = Instant::now();
        let mut places = places(2, 0, 0);
        let (lapses, stays) = (key(1, 1), key(1, 2));
        let [first, second] = [lapses, stays].map(|key| places.ask(key, false, began).unwrap_or_default());
        assert!(places.begin(&stays, second.number, began));
        assert!(!places.begin(&stays, second.number, began), "once");
        assert_eq!(places.ask(key(2, 1), false, began + KEPT / 2), None);
        // Asking again keeps it.
        assert_eq!(places.ask(lapses, false, began + KEPT / 2), Some(first));
        assert_eq!(places.ask(key(2, 1), false, began + KEPT), None);
        let later = began + KEPT / 2 + KEPT;
        assert!(!places.begin(&lapses, first.number, later));
        assert!(places.ask(key(2, 1), false, later).is_some());
        places.ended(&stays, first.number);
        places.ended(&stays, second.number);
        places.close();
        assert_eq!(places.ask(key(3, 1), false, later), None);
    }
}
