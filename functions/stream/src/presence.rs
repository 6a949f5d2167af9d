//! The people that one watcher of a workspace knows to look at something: told when they come, and when they go.
//!
//! Clients repeat their presence, and the bus may lose anything, so a presence that is not repeated in time has ended. The clock is
//! that of the watcher's process alone.

use domain::{PresenceTarget, Timestamp, UserId, WorkspaceEvent};
use std::{collections::BTreeMap, time::Duration};

/// How long a presence lasts that is not repeated.
pub(crate) const LASTS: Duration = Duration::from_secs(60);
/// The most places at which one person is shown; a further one takes the place of the one that would end first.
const PLACES: usize = 16;
/// The most people that a watcher is shown. Those who come later are not told.
const PEOPLE: usize = 1000;

/// The presences that a watcher was told, each with its end.
#[derive(Debug, Default)]
pub(crate) struct Presences(BTreeMap<UserId, BTreeMap<PresenceTarget, Timestamp>>);

impl Presences {
    /// Takes a presence in; returns the events that the watcher is to be told.
    pub fn take(&mut self, user_id: UserId, at: PresenceTarget, here: bool, now: Timestamp) -> Vec<WorkspaceEvent> {
        let event = |at, here| WorkspaceEvent::Presence { user_id, at, here };
        if !here {
            let was_here = self.0.get_mut(&user_id).is_some_and(|places| places.remove(&at).is_some());
            self.0.retain(|_, places| !places.is_empty());
            return if was_here { vec![event(at, false)] } else { Vec::new() };
        }
        if self.0.len() >= PEOPLE && !self.0.contains_key(&user_id) {
            return Vec::new();
        }
        let places = self.0.entry(user_id).or_default();
        if places.insert(at.clone(), now + LASTS).is_some() {
            return Vec::new();
        }
        let mut told = Vec::new();
        if places.len() > PLACES {
            let others = places.iter().filter(|(place, _)| **place != at);
            if let Some(first) = others.min_by_key(|(_, end)| **end).map(|(place, _)| place.clone()) {
                places.remove(&first);
                told.push(event(first, false));
            }
        }
        told.push(event(at, true));
        told
    }

    /// Ends the presences that were not repeated in time; returns the events that tell so.
    pub fn expire(&mut self, now: Timestamp) -> Vec<WorkspaceEvent> {
        let mut told = Vec::new();
        for (user_id, places) in &mut self.0 {
            places.retain(|at, end| {
                let lasts = *end > now;
                if !lasts {
                    told.push(WorkspaceEvent::Presence { user_id: *user_id, at: at.clone(), here: false });
                }
                lasts
            });
        }
        self.0.retain(|_, places| !places.is_empty());
        told
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    fn person(n: u128) -> UserId {
        UserId(Uuid::from_u128(n))
    }

    fn at(name: usize) -> PresenceTarget {
        PresenceTarget::Path(domain::FilePath::parse(&format!("/{name}")).unwrap_or_else(|error| panic!("{error}")))
    }

    #[test]
    fn the_places_of_a_person_and_the_people_are_bounded() {
        let (mut here, now) = (Presences::default(), Timestamp::from_millis(0));
        for name in 0..PLACES {
            let now = now + Duration::from_secs(name as u64);
            assert_eq!(here.take(person(1), at(name), true, now).len(), 1);
        }
        let gone = |at| WorkspaceEvent::Presence { user_id: person(1), at, here: false };
        let later = now + Duration::from_secs(20);
        assert_eq!(here.take(person(1), at(99), true, later).first(), Some(&gone(at(0))));
        for n in 2..=PEOPLE as u128 {
            assert_eq!(here.take(person(n), at(0), true, later).len(), 1);
        }
        assert_eq!(here.take(person(5000), at(0), true, later), []);
        assert_eq!(here.expire(later + LASTS).len(), PLACES + PEOPLE - 1);
        assert!(here.0.is_empty());
    }
}
