//! The guarantees of a semaphore, tested with random requests, returns and repetitions.
#![expect(clippy::unwrap_used, reason = "tests")]

use actor::{ActorId, Input, Machine, OutboxMessage, Step};
use buildscale_slots::{Ask, QueueLimit, SlotsCommand, SlotsMachine, SlotsState};
use domain::{CommandId, Principal, Stamp, Timestamp};
use proptest::prelude::*;
use serde_json::json;
use std::collections::BTreeMap;
use uuid::Uuid;

/// A semaphore that gets commands, and a model of the expected holders.
#[derive(Default)]
struct Play {
    state: SlotsState,
    number: u64,
    at: i64,
}

impl Play {
    /// Sends it a command; returns the holders that were granted slots because of it.
    fn tell(&mut self, command: SlotsCommand) -> Vec<String> {
        self.number += 1;
        let at = Timestamp::from_millis(self.at);
        let stamp = Stamp { at, id: Uuid::from_u128(self.number.into()) };
        let input = Input::Command { id: CommandId(stamp.id), by: Principal::System, at, command };
        let mut step = Step::new(std::mem::take(&mut self.state), self.number);
        SlotsMachine.handle(&mut step, input, &stamp);
        let (state, decision) = step.end();
        self.state = state;
        // The state in memory equals the state from a snapshot.
        let read: SlotsState = serde_json::from_str(&serde_json::to_string(&self.state).unwrap()).unwrap();
        assert_eq!(read, self.state);
        decision
            .send
            .iter()
            .map(|OutboxMessage { command, .. }| command["holder"].as_str().unwrap().to_owned())
            .collect()
    }

    fn ask(&mut self, holder: &str, wants: &[(&str, u32)], party: &str, priority: i8) -> Vec<String> {
        self.tell(SlotsCommand::Ask { ask: Box::new(ask(holder, wants, party, priority)) })
    }

    fn give(&mut self, holder: &str) -> Vec<String> {
        self.tell(SlotsCommand::Give { holder: holder.to_owned() })
    }
}

fn ask(holder: &str, wants: &[(&str, u32)], party: &str, priority: i8) -> Ask {
    Ask {
        holder: holder.to_owned(),
        wants: wants.iter().map(|(name, limit)| ((*name).to_owned(), *limit)).collect(),
        party: party.to_owned(),
        priority,
        share: None,
        to: ActorId::new("task", holder),
        grant: json!({ "holder": holder }),
        bound: None,
    }
}

#[test]
fn slots_are_given_in_the_order_of_asking() {
    let mut play = Play::default();
    assert_eq!(play.ask("1", &[("a", 2)], "w", 0), ["1"]);
    assert_eq!(play.ask("2", &[("a", 2)], "w", 0), ["2"]);
    assert!(play.ask("3", &[("a", 2)], "w", 0).is_empty());
    assert!(play.ask("4", &[("a", 2)], "w", 0).is_empty());
    assert_eq!(play.ask("5", &[("b", 2)], "w", 0), ["5"], "another name does not wait");
    assert_eq!(play.ask("1", &[("a", 2)], "w", 0), ["1"], "a holder is told again");
    assert_eq!(play.give("2"), ["3"]);
    assert!(play.give("2").is_empty(), "a slot is given back once");
    assert!(play.give("4").is_empty(), "a waiting request may leave");
    assert!(play.give("1").is_empty());
    assert!(play.give("3").is_empty() && play.give("5").is_empty());
    assert_eq!(play.state, SlotsState::default(), "unused names leave nothing behind");
}

#[test]
fn a_request_that_waits_may_get_another_priority_and_keeps_its_waiting() {
    let mut play = Play::default();
    assert_eq!(play.ask("1", &[("a", 1)], "w", 0), ["1"]);
    for holder in ["2", "3", "4"] {
        assert!(play.ask(holder, &[("a", 1)], "w", 0).is_empty());
        play.at += 1;
    }
    assert!(play.ask("4", &[("a", 1)], "w", 1).is_empty());
    // As before, it would have waited longer than the fourth one.
    assert!(play.ask("3", &[("a", 1)], "w", 1).is_empty());
    let order: Vec<String> = ["1", "3", "4"].iter().flat_map(|holder| play.give(holder)).collect();
    assert_eq!(order, ["3", "4", "2"]);
    assert!(play.give("2").is_empty());
    assert_eq!(play.state, SlotsState::default());
}

#[test]
fn a_request_gets_all_of_its_slots_or_none() {
    let mut play = Play::default();
    assert_eq!(play.ask("1", &[("flow", 2), ("a", 1)], "w", 0), ["1"]);
    assert!(play.ask("2", &[("flow", 2), ("a", 1)], "w", 0).is_empty());
    assert_eq!(
        play.ask("3", &[("flow", 2), ("b", 1)], "w", 0),
        ["3"],
        "a request that waits for a node holds no place of the flow"
    );
    assert!(play.ask("4", &[("flow", 2), ("b", 1)], "w", 0).is_empty());
    assert_eq!(play.give("1"), ["2"]);
    assert_eq!(play.give("3"), ["4"]);
}

#[test]
fn s10_12_a_higher_priority_goes_first_and_a_long_wait_makes_up_for_a_low_one() {
    let mut play = Play::default();
    play.ask("0", &[("a", 1)], "w", 0);
    for (holder, priority) in [("low", -50), ("usual", 0), ("high", 50), ("highest", 100)] {
        play.at += 500;
        play.ask(holder, &[("a", 1)], "w", priority);
    }
    // Two thousand seconds are worth two hundred points.
    play.at += 2_000_000;
    play.ask("late", &[("a", 1)], "w", 100);
    let mut order = vec!["0".to_owned()];
    while let Some(next) = play.give(&order.last().unwrap().clone()).pop() {
        order.push(next);
    }
    assert_eq!(order, ["0", "highest", "high", "usual", "low", "late"]);
}

#[test]
fn parties_that_want_the_same_take_turns() {
    let mut play = Play::default();
    play.ask("0", &[("machine", 1)], "a", 0);
    for n in 1..=50 {
        play.ask(&format!("a{n}"), &[("machine", 1)], "a", 100);
    }
    play.ask("b1", &[("machine", 1)], "b", -100);
    play.ask("c1", &[("machine", 1)], "c", 0);
    let mut order = vec!["0".to_owned()];
    while order.len() < 4 {
        let next = play.give(&order.last().unwrap().clone()).pop().unwrap();
        order.push(next);
    }
    assert_eq!(order, ["0", "a1", "b1", "c1"], "fifty requests of one party hold up the others for one turn");
}

#[test]
fn a_party_that_takes_all_it_can_leaves_some_to_the_next_one() {
    let mut play = Play::default();
    let mut takes = |party: &str| {
        let mut granted = 0;
        for n in 0..40 {
            let mut ask = ask(&format!("{party}{n}"), &[("machine", 32)], party, 0);
            ask.share = Some(3);
            granted += play.tell(SlotsCommand::Ask { ask: Box::new(ask) }).len();
        }
        granted
    };
    assert_eq!([takes("a"), takes("b"), takes("c"), takes("d")], [24, 6, 2, 0]);
    // The next slot that is free is the turn of the one that has none; those with their share are passed over.
    assert_eq!(play.give("a0"), ["d0"]);
    assert_eq!(play.state.taken("machine"), 32);
}

#[test]
fn a_party_with_too_much_waiting_is_refused_and_the_others_are_not() {
    let asks = |play: &mut Play, holder: &str, party: &str| {
        let mut ask = ask(holder, &[("machine", 1)], party, 0);
        ask.bound = Some(QueueLimit { waiting: 2, refusal: json!({ "holder": format!("no {holder}") }) });
        play.tell(SlotsCommand::Ask { ask: Box::new(ask) })
    };
    let mut play = Play::default();
    assert_eq!(asks(&mut play, "a1", "a"), ["a1"]);
    assert!(asks(&mut play, "a2", "a").is_empty() && asks(&mut play, "a3", "a").is_empty());
    assert_eq!(asks(&mut play, "a4", "a"), ["no a4"]);
    assert!(asks(&mut play, "a3", "a").is_empty(), "a waiting request keeps its place");
    assert!(asks(&mut play, "b1", "b").is_empty(), "another party has its own bound");
    assert_eq!(play.give("a1"), ["a2"]);
    assert!(asks(&mut play, "a4", "a").is_empty(), "there is room again");
    assert_eq!((play.state.waiting_of("a"), play.state.waiting()), (2, 3));
}

#[test]
fn what_a_deleted_workspace_has_asked_for_is_given_back_also_what_lay_in_the_mailbox() {
    let mut play = Play::default();
    let release = |party: &str| SlotsCommand::Release { party: party.to_owned() };
    assert_eq!(play.ask("1", &[("a", 1)], "deleted", 0), ["1"]);
    assert!(play.ask("2", &[("a", 1)], "deleted", 100).is_empty());
    assert!(play.ask("3", &[("a", 1)], "other", 0).is_empty());
    // It is sent while the workspace is removed, and comes right before the release.
    assert!(play.ask("4", &[("a", 1)], "deleted", 100).is_empty());
    assert_eq!(play.tell(release("deleted")), ["3"], "no slot is granted to an actor that is gone");
    assert!(play.tell(release("deleted")).is_empty(), "again is harmless");
    assert_eq!((play.state.taken("a"), play.state.waiting()), (1, 0));
    assert!(play.give("3").is_empty());
    assert_eq!(play.state, SlotsState::default());
}

#[test]
fn slots_whose_asker_an_old_snapshot_does_not_tell_are_known_by_their_names() {
    let mut play = Play::default();
    for holder in ["one/node/1", "two/node/1", "call"] {
        play.ask(holder, &[("a", 3)], "w", 0);
    }
    let mut old = serde_json::to_value(&play.state).unwrap();
    for held in old["held"].as_object_mut().unwrap().values_mut() {
        held.as_object_mut().unwrap().remove("to").unwrap();
    }
    let state: SlotsState = serde_json::from_value(old).unwrap();
    let of = |actor: ActorId| state.holders(|_, asker| asker == Some(&actor));
    assert_eq!(of(ActorId::new("task", "w/one")), ["one/node/1"]);
    assert_eq!(of(ActorId::new("chat", "w/two")), ["two/node/1"]);
    assert!(of(ActorId::new("task", "other/one")).is_empty());
    assert_eq!(state.holders(|party, _| party == "w"), ["call", "one/node/1", "two/node/1"]);
}

#[test]
fn requests_that_come_after_the_clock_was_set_back_wait_behind_those_before_them() {
    let mut play = Play { at: 100_000_000, ..Play::default() };
    assert_eq!(play.ask("0", &[("a", 1)], "w", 0), ["0"]);
    assert!(play.ask("early", &[("a", 1)], "w", 0).is_empty());
    play.at = 1_000;
    assert!(play.ask("low", &[("a", 1)], "w", -1).is_empty());
    // Waiting is measured on: after a while it makes up for a lower priority.
    play.at += 20_000;
    assert!(play.ask("late", &[("a", 1)], "w", 0).is_empty());
    let mut order = vec!["0".to_owned()];
    while let Some(next) = play.give(&order.last().unwrap().clone()).pop() {
        order.push(next);
    }
    assert_eq!(order, ["0", "early", "low", "late"]);
    assert_eq!(play.state, SlotsState::default());
}

#[test]
fn where_slots_are_added_those_that_wait_go_before_a_new_request() {
    let mut play = Play::default();
    assert_eq!(play.ask("1", &[("a", 2)], "w", 0), ["1"]);
    assert_eq!(play.ask("2", &[("a", 2)], "w", 0), ["2"]);
    for holder in ["3", "4", "5"] {
        assert!(play.ask(holder, &[("a", 2)], "w", 0).is_empty());
    }
    // The process began anew with more of them.
    assert_eq!(play.ask("6", &[("a", 4)], "w", 0), ["3", "4"]);
    assert_eq!(play.give("1"), ["5"], "it has more slots than its own request knows");
    assert_eq!(play.give("2"), ["6"]);
    assert_eq!(play.state.taken("a"), 4);
    assert!(["3", "4", "5", "6"].iter().all(|holder| play.give(holder).is_empty()));
    assert_eq!(play.state, SlotsState::default());
}

proptest! {
    #[test]
    fn no_name_has_more_than_its_slots_and_no_request_waits_that_could_go(
        steps in prop::collection::vec((0_u8..12, 0_usize..5, 0_u8..3, -100_i8..=100, any::<bool>()), 1..200)
    ) {
        const WANTS: [&[(&str, u32)]; 5] =
            [&[("f", 3)], &[("f", 3), ("a", 1)], &[("f", 3), ("b", 2)], &[("b", 2)], &[("f", 3), ("a", 1), ("p", 2)]];
        let mut play = Play::default();
        // The expected holders of slots, from the commands.
        let mut held: BTreeMap<String, usize> = BTreeMap::new();
        let mut waiting: BTreeMap<String, usize> = BTreeMap::new();
        for (who, wants, party, priority, asks) in steps {
            play.at += 100;
            let holder = format!("h{who}");
            let granted = if asks {
                let known = held.contains_key(&holder) || waiting.contains_key(&holder);
                if !known {
                    waiting.insert(holder.clone(), wants);
                }
                let mut granted = play.ask(&holder, WANTS[wants], &format!("p{party}"), priority);
                granted.retain(|one| !held.contains_key(one));
                granted
            } else {
                held.remove(&holder);
                waiting.remove(&holder);
                play.give(&holder)
            };
            for one in granted {
                let wants = waiting.remove(&one);
                prop_assert!(wants.is_some(), "{one} did not wait");
                held.insert(one, wants.unwrap());
            }
            let taken = |name: &str| held.values().filter(|wants| WANTS[**wants].iter().any(|(want, _)| *want == name)).count() as u32;
            for (name, limit) in [("f", 3), ("a", 1), ("b", 2), ("p", 2)] {
                prop_assert!(taken(name) <= limit, "{name}: {} of {limit}", taken(name));
                prop_assert_eq!(play.state.taken(name), taken(name));
            }
            for (one, wants) in &waiting {
                let free = WANTS[*wants].iter().all(|(name, limit)| taken(name) < *limit);
                // Its turn may be behind another of the same line; then that one could go.
                prop_assert!(!free, "{one} waits although its slots are free");
            }
            prop_assert_eq!(play.state.waiting(), waiting.len());
        }
        for holder in held.into_keys().chain(waiting.into_keys()).collect::<Vec<_>>() {
            play.give(&holder);
        }
        for who in 0..12 {
            play.give(&format!("h{who}"));
        }
        prop_assert_eq!(&play.state, &SlotsState::default());
    }
}
