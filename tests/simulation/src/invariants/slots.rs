//! The invariant of limits on what runs at once.

use super::{Held, broken};
use actor::Entry;
use chat::ChatState;
use domain::{ChatEvent, TaskEvent};
use engine::machine::TaskState;
use ports::Item;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// A holder, and whether it is one of places for commands.
type Holder = (bool, String);

/// A slot or a place, and a position in the line for one, belongs to work that goes on: to no task or chat that is paused, waits for a person
/// or has ended. And what such work holds or waits for, its semaphore knows. Holds whenever the queue is empty.
pub fn slots_are_held_by_work(items: &[Item]) -> Held {
    const NAME: &str = "slots_are_held_by_work";
    let (known, claimed) = (known(items), claimed(items));
    if let Some((_, holder)) = known.difference(&claimed).next() {
        return broken(NAME, format!("{holder} has slots or waits for them, and nothing goes on with them"));
    }
    if let Some((_, holder)) = claimed.difference(&known).next() {
        return broken(NAME, format!("{holder} waits for slots that nobody grants"));
    }
    Ok(())
}

/// The holders that semaphores know: they have asked, and have not given back.
fn known(items: &[Item]) -> BTreeSet<Holder> {
    let mut known = BTreeSet::new();
    for (semaphore, log) in logs::<Value>(items, "slots/") {
        let is_place = semaphore.contains("commands");
        for event in log.iter().flat_map(|entry| &entry.events) {
            let (asked, given) = (event["ask"]["holder"].as_str(), event["holder"].as_str());
            match event["type"].as_str() {
                Some("asked") => known.extend(asked.map(|holder| (is_place, holder.to_owned()))),
                Some("given") => _ = given.map(|holder| known.remove(&(is_place, holder.to_owned()))),
                _ => {}
            }
        }
    }
    known
}

/// The holders by the logs of tasks and chats.
fn claimed(items: &[Item]) -> BTreeSet<Holder> {
    let mut claimed = BTreeSet::new();
    for (_, log) in logs::<TaskEvent>(items, "task/") {
        let mut state = TaskState::default();
        log.iter().flat_map(|entry| &entry.events).for_each(|event| state.apply(event));
        let goes_on = state.parked.is_none() && state.inspector.paused_at.is_none();
        if let Some(execution) = state.execution.filter(|_| goes_on) {
            claimed.extend(execution.slots.map(|holder| (false, holder)));
            claimed.extend(execution.place.map(|holder| (true, holder)));
        }
    }
    for (_, log) in logs::<ChatEvent>(items, "chat/") {
        let mut state = ChatState::default();
        log.iter().flat_map(Entry::numbered).for_each(|(number, event)| state.apply(number, event));
        let goes_on = state.paused.is_none();
        if let Some(turn) = state.turn.filter(|turn| goes_on && !turn.phase.asks_people()) {
            claimed.extend(turn.slots.map(|holder| (false, holder)));
            claimed.extend(turn.place.map(|call| (true, call.to_string())));
        }
    }
    claimed
}

/// The logs of the actors of a kind, oldest first.
fn logs<E: DeserializeOwned>(items: &[Item], kind: &str) -> BTreeMap<String, Vec<Entry<E>>> {
    let of_kind = items.iter().filter(|item| item.key.pk.starts_with(kind) && item.key.sk.starts_with("log/"));
    let mut sorted: Vec<&Item> = of_kind.collect();
    sorted.sort_by(|left, right| left.key.cmp(&right.key));
    let mut logs: BTreeMap<String, Vec<Entry<E>>> = BTreeMap::new();
    for item in sorted {
        #[expect(clippy::expect_used, reason = "a test's own assertion: entries of the log can be read")]
        let entry = serde_json::from_str(&item.body).expect("an entry of the log");
        logs.entry(item.key.pk.clone()).or_default().push(entry);
    }
    logs
}
