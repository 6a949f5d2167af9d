//! How long turns took. A turn's time is that which its limit counts: from its first call of a model to its end, without the time that it waited for
//! people, slots and places. So an approval that takes a night makes no turn slow.
//!
//! Limits: a turn whose process dies between its end and this count is not counted. Of a turn that another process began, a wait for slots before
//! its first call is taken off, too.

use crate::histogram::{Histogram, MetricFamily, head};
use actor::{ActorId, Entry};
use chat::ChatState;
use domain::{ChatEvent, Timestamp, TurnId, event::StopReason};
use parking_lot::Mutex;
use std::{
    collections::{BTreeMap, HashMap},
    time::Duration,
};

const TOOK: MetricFamily = (
    "buildscale_turn_duration_seconds",
    "histogram",
    "outcome",
    "How long turns of chats and of agents worked, without their waits for people, slots and places.",
);
/// The most turns that are followed at once. Those of chats that another process goes on with are forgotten only here.
const MOST: usize = 100_000;

/// The outcome of a turn that this event ends, as a label.
pub(super) fn ended(event: &ChatEvent) -> Option<(TurnId, &'static str, Timestamp)> {
    match event {
        ChatEvent::Done { turn_id, stop_reason: StopReason::Error, at, .. } => Some((*turn_id, "failed", *at)),
        ChatEvent::Done { turn_id, at, .. } => Some((*turn_id, "done", *at)),
        ChatEvent::Stopped { turn_id, at, .. } => Some((*turn_id, "stopped", *at)),
        _ => None,
    }
}

/// A turn that has not ended, as the last entry left it.
#[derive(Clone, Copy, Debug)]
struct OpenTurn {
    id: TurnId,
    /// Its first call of a model.
    started_at: Option<Timestamp>,
    /// The waits before that call, in milliseconds.
    waited_before_ms: u64,
    /// All waits that are over, in milliseconds.
    waited_ms: u64,
    /// The begin of the wait that lasts.
    waits_since: Option<Timestamp>,
}

impl OpenTurn {
    fn took(&self, until: Timestamp) -> Duration {
        let Some(started_at) = self.started_at else { return Duration::ZERO };
        let waited = Duration::from_millis(self.waited_ms.saturating_sub(self.waited_before_ms));
        let waits = self.waits_since.map_or(Duration::ZERO, |since| until.since(since));
        until.since(started_at).saturating_sub(waited).saturating_sub(waits)
    }
}

/// The durations, since this process began.
#[derive(Debug, Default)]
pub(super) struct TurnDurations {
    open: Mutex<HashMap<ActorId, OpenTurn>>,
    took: Mutex<BTreeMap<&'static str, Histogram>>,
}

impl TurnDurations {
    /// Appends them in Prometheus' text format.
    pub(super) fn render(&self, out: &mut String) {
        let name = head(out, TOOK);
        for (outcome, took) in self.took.lock().iter() {
            took.write(out, name, &format!("outcome=\"{outcome}\""));
        }
    }

    /// Notes the turn that the chat is at.
    pub(super) fn note(&self, actor: &ActorId, state: &ChatState) {
        let mut open = self.open.lock();
        let Some(turn) = &state.turn else {
            open.remove(actor);
            return;
        };
        let before = open.get(actor).filter(|before| before.id == turn.id);
        let waited_before_ms = match before {
            Some(before) if before.started_at.is_some() => before.waited_before_ms,
            // All waits so far were before the first call.
            Some(_) => turn.waited_ms,
            None => 0,
        };
        let (started_at, waited_ms, waits_since) = (turn.started_at, turn.waited_ms, turn.phase.since());
        if open.len() >= MOST
            && !open.contains_key(actor)
            && let Some(other) = open.keys().next().cloned()
        {
            open.remove(&other);
        }
        let turn = OpenTurn { id: turn.id, started_at, waited_before_ms, waited_ms, waits_since };
        open.insert(actor.clone(), turn);
    }

    /// Counts the turns that an entry ended; `state` is the one after it.
    pub(super) fn committed(&self, actor: &ActorId, state: &ChatState, entry: &Entry<ChatEvent>) {
        for event in &entry.events {
            let Some((id, outcome, at)) = ended(event) else { continue };
            let turn = self.open.lock().get(actor).filter(|turn| turn.id == id).copied();
            // One that began and ended in the same entry asked no model.
            let took = turn.map_or(Duration::ZERO, |turn| turn.took(at));
            self.took.lock().entry(outcome).or_default().add(took);
        }
        self.note(actor, state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::{CallId, Limits, MessageId, PermissionId, event::PermissionOutcome};

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_millis(1_700_000_000_000 + seconds * 1_000)
    }

    fn turn(number: u32) -> TurnId {
        TurnId::from_key("turns", &number.to_string())
    }

    fn started(number: u32, asked_at: Timestamp) -> ChatEvent {
        let (turn_id, limits) = (turn(number), Limits::default());
        ChatEvent::TurnStarted { turn_id, attempt: 1, asked_at, limits, may_approve: false, trace: None }
    }

    fn asks_model(at: Timestamp) -> ChatEvent {
        let message_id = MessageId::from_key("turns", &at.to_string());
        ChatEvent::ModelStarted { message_id, attempt: 1, at, context: None }
    }

    fn asks_person(at: Timestamp) -> ChatEvent {
        ChatEvent::PermissionRequired {
            permission_id: PermissionId::from_key("turns", "p"),
            call_id: CallId::from_key("turns", "c"),
            category: "command".into(),
            tool: "exec".into(),
            args: "{}".into(),
            reason: "it is asked".into(),
            always: None,
            agent: None,
            at,
            expires_at: at,
        }
    }

    fn person_answers(at: Timestamp) -> ChatEvent {
        let (permission_id, outcome) = (PermissionId::from_key("turns", "p"), PermissionOutcome::Approved);
        let (by, always, reason, option_id) = ("user:a".into(), None, None, None);
        ChatEvent::PermissionResolved { permission_id, outcome, by, always, reason, option_id, at }
    }

    fn done(number: u32, stop_reason: StopReason, at: Timestamp) -> ChatEvent {
        ChatEvent::Done { turn_id: turn(number), message: String::new(), stop_reason, at }
    }

    fn stopped(number: u32, at: Timestamp) -> ChatEvent {
        let (turn_id, reason) = (turn(number), "user_cancelled".to_owned());
        ChatEvent::Stopped { turn_id, stop_id: None, reason, partial_response: String::new(), at }
    }

    /// Commits an entry of these events.
    fn commit(durations: &TurnDurations, state: &mut ChatState, first: u64, events: Vec<ChatEvent>) {
        (first..).zip(&events).for_each(|(number, event)| state.apply(number, event));
        let next = first + events.len() as u64;
        let entry = Entry {
            first,
            next,
            at: at(0),
            step: Default::default(),
            commands: Vec::new(),
            events,
            outbox: Vec::new(),
            parking: None,
        };
        durations.committed(&ActorId::new("chat", "a"), state, &entry);
    }

    fn shown(durations: &TurnDurations) -> String {
        let mut out = String::new();
        durations.render(&mut out);
        out
    }

    #[test]
    fn a_turn_takes_the_time_from_its_first_call_to_its_end_without_its_waits_for_people() {
        let (durations, mut state) = (TurnDurations::default(), ChatState::default());
        // It waited in the queue of the chat for a minute, and for a person for a night.
        commit(&durations, &mut state, 1, vec![started(1, at(-60))]);
        commit(&durations, &mut state, 2, vec![asks_model(at(0))]);
        commit(&durations, &mut state, 3, vec![asks_person(at(3))]);
        commit(&durations, &mut state, 4, vec![person_answers(at(30_000))]);
        commit(&durations, &mut state, 5, vec![asks_model(at(30_001))]);
        // The next turn begins in the entry that ends the first one.
        commit(&durations, &mut state, 6, vec![done(1, StopReason::EndTurn, at(30_004)), started(2, at(5))]);
        let name = "buildscale_turn_duration_seconds";
        let first = shown(&durations);
        for line in [
            format!("# TYPE {name} histogram"),
            format!("{name}_bucket{{outcome=\"done\",le=\"4\"}} 0"),
            format!("{name}_bucket{{outcome=\"done\",le=\"8\"}} 1"),
            format!("{name}_sum{{outcome=\"done\"}} 7.000"),
            format!("{name}_count{{outcome=\"done\"}} 1"),
        ] {
            assert!(first.contains(&format!("{line}\n")), "{line} is not in\n{first}");
        }

        // One is stopped while it waits for a person, one fails before it asks a model.
        commit(&durations, &mut state, 8, vec![asks_model(at(30_010))]);
        commit(&durations, &mut state, 9, vec![asks_person(at(30_012))]);
        commit(&durations, &mut state, 10, vec![stopped(2, at(90_000))]);
        commit(&durations, &mut state, 11, vec![started(3, at(90_001)), done(3, StopReason::Error, at(90_001))]);
        let all = shown(&durations);
        for line in [
            format!("{name}_sum{{outcome=\"stopped\"}} 2.000"),
            format!("{name}_sum{{outcome=\"failed\"}} 0.000"),
            format!("{name}_count{{outcome=\"failed\"}} 1"),
        ] {
            assert!(all.contains(&format!("{line}\n")), "{line} is not in\n{all}");
        }
        assert!(durations.open.lock().is_empty(), "nothing is held of turns that have ended");
    }

    #[test]
    fn a_turn_that_another_process_began_is_measured_from_its_log() {
        let mut state = ChatState::default();
        commit(&TurnDurations::default(), &mut state, 1, vec![started(1, at(0))]);
        commit(&TurnDurations::default(), &mut state, 2, vec![asks_model(at(1))]);
        let durations = TurnDurations::default();
        durations.note(&ActorId::new("chat", "a"), &state);
        commit(&durations, &mut state, 3, vec![done(1, StopReason::EndTurn, at(11))]);
        let shown = shown(&durations);
        assert!(shown.contains("buildscale_turn_duration_seconds_sum{outcome=\"done\"} 10.000\n"), "{shown}");
    }
}
