//! The stream of a thread or of one of its turns.

use super::{permission, text::Shown, tool, update};
use crate::{Frame, Projection};
use domain::{CLIENT_PREFIX, ChatEvent, ChatId, Error, Message, StopReason, Timestamp, TurnId, event::HandedOut};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The frames of a thread, or of one turn of it (spec 004 §8 (3), (4)).
///
/// An `error` is held back until its turn ends: some clients stop reading there, and a turn may go on after a failure.
#[derive(Clone, Debug)]
pub struct Frames {
    thread: ChatId,
    /// The turn that is shown; all of them if none.
    only: Option<TurnId>,
    /// The turn that runs.
    turn: Option<TurnId>,
    words: Shown,
    thoughts: Shown,
    failure: Option<Error>,
    /// The steps of the plan, by their number: status and title.
    plan: BTreeMap<u32, (String, String)>,
    /// Whether the turn that runs is the system's own.
    is_internal: bool,
    /// Whether the chat is deleted and its turn has not ended.
    is_ending: bool,
    is_over: bool,
}

impl Frames {
    /// Of all turns of a thread.
    pub fn of_thread(thread: ChatId) -> Self {
        Self {
            thread,
            only: None,
            turn: None,
            words: Shown::default(),
            thoughts: Shown::default(),
            failure: None,
            plan: BTreeMap::new(),
            is_internal: false,
            is_ending: false,
            is_over: false,
        }
    }

    /// Of one turn, which ends with it. It needs no event from before the turn.
    pub fn of_turn(thread: ChatId, turn: TurnId) -> Self {
        Self { only: Some(turn), ..Self::of_thread(thread) }
    }

    /// The turn that runs, if its frames are shown.
    fn shown_turn(&self) -> Option<TurnId> {
        self.turn.filter(|turn| self.only.is_none_or(|only| only == *turn))
    }

    /// The frames of an event, as names and data without the turn.
    fn encode(&mut self, event: &ChatEvent) -> Vec<(&'static str, Value)> {
        match event {
            ChatEvent::TurnStarted { turn_id, attempt, .. } => self.begin(*turn_id, *attempt),
            ChatEvent::ModelStarted { attempt: 2.., .. } => {
                self.words.again();
                self.thoughts.again();
                Vec::new()
            }
            ChatEvent::CompactionBegan { internal: true, .. } => {
                self.is_internal = true;
                Vec::new()
            }
            // The summary is no answer to anybody.
            ChatEvent::Chunk { .. } | ChatEvent::Thought { .. } if self.is_internal => Vec::new(),
            ChatEvent::Chunk { text, message_id } => delta("message_delta", self.words.piece(*message_id, text)),
            ChatEvent::Thought { text, message_id } => delta("reasoning_delta", self.thoughts.piece(*message_id, text)),
            ChatEvent::MessageAdded { message: Message::Assistant { id, content, reasoning, .. } } => {
                let mut frames = delta("reasoning_delta", self.thoughts.whole(*id, reasoning));
                frames.extend(delta("message_delta", self.words.whole(*id, content)));
                frames
            }
            ChatEvent::CallStarted { call_id, attempt: 1, tool, path, args, .. } => {
                let args = tool::arguments(args);
                let mut data = json!({
                    "toolCallId": call_id, "title": tool::title(tool, path.as_deref(), &args), "kind": tool::kind(tool),
                    "status": "in_progress", "rawInput": args,
                });
                if let Some(path) = path {
                    data["locations"] = json!([{ "path": path }]);
                }
                vec![("tool_call", data)]
            }
            ChatEvent::Observed { call_id, output, success, .. } => {
                let status = if *success { "completed" } else { "failed" };
                let content = tool::content(output);
                vec![(
                    "tool_call_update",
                    json!({ "toolCallId": call_id, "status": status, "content": content, "rawOutput": output }),
                )]
            }
            ChatEvent::PlanStep { step, status, title, total, .. } => self.plan(*step, status, title, *total),
            ChatEvent::PermissionRequired {
                permission_id,
                call_id,
                category,
                tool,
                args,
                reason,
                always,
                agent,
                expires_at,
                ..
            } => {
                let digest = domain::shown_digest(category, tool, args, agent.as_deref());
                let args = tool::arguments(args);
                vec![(
                    "permission_required",
                    json!({
                        "permissionId": permission_id, "approval": category, "command": tool::asked(tool, &args, agent.is_some()),
                        "requestId": call_id, "options": permission::options(always.as_ref(), agent.as_deref()), "reason": reason,
                        "rawInput": args, "digest": digest, "expiresAt": expires_at,
                    }),
                )]
            }
            ChatEvent::PermissionResolved { permission_id, outcome, by, always, option_id, .. } => {
                let mut data = json!({ "permissionId": permission_id, "outcome": outcome, "by": by });
                if let Some(rule) = always {
                    data["always"] = json!(rule);
                }
                if let Some(option_id) = option_id {
                    data["optionId"] = json!(option_id);
                }
                vec![("permission_resolved", data)]
            }
            ChatEvent::Asked { question_id, questions, expires_at, .. } => {
                vec![(
                    "question",
                    json!({ "questionId": question_id, "questions": questions, "expiresAt": expires_at }),
                )]
            }
            ChatEvent::Failed { error } => {
                self.failure = Some(error.clone());
                Vec::new()
            }
            ChatEvent::Paused { reason, .. } => {
                vec![("error", json!({ "code": domain::Code::Paused, "message": reason }))]
            }
            ChatEvent::Done { stop_reason, .. } => {
                let failure = self.failure.take().filter(|_| *stop_reason == StopReason::Error);
                let told = if *stop_reason == StopReason::Error { "error" } else { "end_turn" };
                let mut data = json!({ "stopReason": told });
                if *stop_reason != StopReason::EndTurn {
                    data["reason"] = json!(stop_reason);
                }
                let error = failure.map(|error| ("error", error_data(&error)));
                error.into_iter().chain([("turn_completed", data)]).collect()
            }
            ChatEvent::Stopped { reason, .. } => {
                vec![("turn_completed", json!({ "stopReason": "cancelled", "reason": reason }))]
            }
            ChatEvent::AgentBound { session_id } => {
                vec![("session_bound", json!({ "threadId": self.thread, "sessionId": session_id }))]
            }
            ChatEvent::AgentUpdated { update, .. } => update::encode(update).into_iter().collect(),
            ChatEvent::HandedOut(HandedOut { call_id, tool, args, expires_at, .. }) => {
                let Some(name) = tool.strip_prefix(CLIENT_PREFIX) else { return Vec::new() };
                let input = domain::exact_numbers::value_or_text(args);
                let data =
                    json!({ "toolCallId": call_id, "function": name, "rawInput": input, "expiresAt": expires_at });
                vec![("call_handed_out", data)]
            }
            // Facts that this protocol has no words for.
            ChatEvent::Created { .. }
            | ChatEvent::Configured { .. }
            | ChatEvent::TurnQueued { .. }
            | ChatEvent::SlotsAwaited { .. }
            | ChatEvent::ModelPostponed { .. }
            | ChatEvent::ModelStarted { .. }
            | ChatEvent::AgentBegan { .. }
            | ChatEvent::MessageAdded { .. }
            | ChatEvent::ContextCut { .. }
            | ChatEvent::CompactionBegan { .. }
            | ChatEvent::Compacted { .. }
            | ChatEvent::CompactionSkipped { .. }
            | ChatEvent::CompactionUndone { .. }
            | ChatEvent::SteerRequested { .. }
            | ChatEvent::SteerAwaited { .. }
            | ChatEvent::Steered { .. }
            | ChatEvent::Rollback { .. }
            | ChatEvent::PlaceAwaited { .. }
            | ChatEvent::CallStarted { .. }
            | ChatEvent::FileUpdated { .. }
            | ChatEvent::DecisionRefused { .. }
            | ChatEvent::PermissionsForgotten { .. }
            | ChatEvent::ModeChanged { .. }
            | ChatEvent::PlanApproved { .. }
            | ChatEvent::RightsNarrowed { .. }
            | ChatEvent::RunWithheld
            | ChatEvent::HomeWithheld
            | ChatEvent::FormatAsked { .. }
            | ChatEvent::DenialsRead { .. }
            | ChatEvent::Used { .. }
            | ChatEvent::StopRequested { .. }
            | ChatEvent::Deleted { .. }
            | ChatEvent::Unpaused { .. }
            | ChatEvent::Analysed { .. }
            | ChatEvent::Planned { .. }
            | ChatEvent::StepStarted { .. }
            | ChatEvent::Team { .. }
            | ChatEvent::StepEnded { .. } => Vec::new(),
        }
    }

    /// A turn begins, or begins again after a crash: then the text of its unfinished message is void.
    fn begin(&mut self, turn: TurnId, attempt: u32) -> Vec<(&'static str, Value)> {
        if self.turn != Some(turn) {
            (self.words, self.thoughts) = Default::default();
            self.is_internal = false;
        }
        self.turn = Some(turn);
        self.failure = None;
        let mut data = json!({ "threadId": self.thread });
        if attempt > 1 {
            self.words.again();
            self.thoughts.again();
            data["attempt"] = json!(attempt);
        }
        vec![("turn_started", data)]
    }

    /// The whole plan, which replaces the one before. A step that the stream has not seen has only its number.
    fn plan(&mut self, step: u32, status: &str, title: &str, total: u32) -> Vec<(&'static str, Value)> {
        self.plan.retain(|number, _| *number <= total);
        self.plan.insert(step, (status.to_owned(), title.to_owned()));
        let entries = (1..=total.min(MOST_STEPS)).map(|number| match self.plan.get(&number) {
            Some((status, title)) => entry(status, title),
            None => entry("pending", &format!("Step {number}")),
        });
        vec![("plan_update", json!({ "entries": entries.collect::<Vec<_>>() }))]
    }
}

/// The most steps of a plan that are shown.
const MOST_STEPS: u32 = 500;

/// A step as the Agent Client Protocol has it: that knows three states, so the others are told by words.
fn entry(status: &str, title: &str) -> Value {
    let (told, note) = match status {
        "done" => ("completed", ""),
        "failed" => ("completed", " (failed)"),
        "skipped" => ("completed", " (skipped)"),
        "in_progress" => ("in_progress", ""),
        _ => ("pending", ""),
    };
    json!({ "content": format!("{title}{note}"), "status": told, "priority": "medium" })
}

fn delta(name: &'static str, text: Option<String>) -> Vec<(&'static str, Value)> {
    text.map(|text| (name, json!({ "delta": text }))).into_iter().collect()
}

fn error_data(error: &Error) -> Value {
    let mut data = json!({ "code": error.code, "message": error.message });
    if let Some(hint) = &error.hint {
        data["hint"] = json!(hint);
    }
    data
}

impl Projection for Frames {
    type Event = ChatEvent;

    fn take_in(&mut self, number: u64, _: Timestamp, event: &ChatEvent, frames: &mut Vec<Frame>) {
        let encoded = self.encode(event);
        if let Some(turn) = self.shown_turn() {
            let count = encoded.len();
            frames.extend(encoded.into_iter().zip(1..).map(|((name, mut data), place)| {
                data["turnId"] = json!(turn);
                // As the `id:` of the stream: the last frame of an event has it, so that a client that comes back after it misses none.
                if place == count {
                    data["seq"] = json!(number);
                }
                Frame { number, event: Some(name), data }
            }));
        }
        match event {
            ChatEvent::Done { turn_id, .. } | ChatEvent::Stopped { turn_id, .. } => {
                self.is_over |= self.is_ending || self.only == Some(*turn_id);
                self.turn = None;
            }
            ChatEvent::Deleted { turn_id, .. } => {
                let is_shown = |turn: &TurnId| self.only.is_none_or(|only| only == *turn);
                self.is_ending = turn_id.as_ref().is_some_and(is_shown);
                self.is_over |= !self.is_ending;
            }
            _ => {}
        }
    }

    fn is_over(&self) -> bool {
        self.is_over
    }

    fn ends_with_its_stream(&self) -> bool {
        self.only.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::{AgentAsk, AgentOption, Limits, Sha256};

    #[test]
    fn a_deleted_thread_is_over_with_its_turn_and_a_turn_that_never_begins_at_once() {
        let (turn, later) = (TurnId(uuid::Uuid::from_u128(2)), TurnId(uuid::Uuid::from_u128(3)));
        let (thread, at) = (ChatId(uuid::Uuid::from_u128(1)), Timestamp::from_millis(0));
        let (limits, reason) = (Limits::default(), "deleted".to_owned());
        let begun =
            ChatEvent::TurnStarted { turn_id: turn, attempt: 1, asked_at: at, limits, may_approve: false, trace: None };
        let partial_response = String::new();
        let stopped = ChatEvent::Stopped { turn_id: turn, stop_id: None, reason, partial_response, at };
        let deleted = |turn_id| ChatEvent::Deleted { turn_id, at };
        let told = |mut frames: Frames, events: &[&ChatEvent]| {
            let mut told = Vec::new();
            for (number, event) in (1..).zip(events) {
                assert!(!frames.is_over(), "it ends before {event:?}");
                frames.take_in(number, at, event, &mut told);
            }
            assert!(frames.is_over());
            told.into_iter().filter_map(|frame| frame.event).collect::<Vec<_>>()
        };
        let while_it_runs = [&begun, &deleted(Some(turn)), &stopped];
        for frames in [Frames::of_thread(thread), Frames::of_turn(thread, turn)] {
            assert_eq!(told(frames, &while_it_runs), ["turn_started", "turn_completed"]);
        }
        assert!(told(Frames::of_turn(thread, later), &while_it_runs[..2]).is_empty());
        let between = [&begun, &stopped, &deleted(None)];
        assert_eq!(told(Frames::of_thread(thread), &between), ["turn_started", "turn_completed"]);
    }

    #[test]
    fn the_facts_of_coding_agents_have_their_frames() {
        let thread = ChatId(uuid::Uuid::from_u128(1));
        let mut frames = Frames::of_thread(thread);
        let bound = ChatEvent::AgentBound { session_id: "s".into() };
        let expected = json!({ "threadId": thread, "sessionId": "s" });
        assert_eq!(frames.encode(&bound), [("session_bound", expected)]);
        let update = json!({ "sessionUpdate": "tool_call_update", "toolCallId": "t", "status": "completed" });
        let updated = ChatEvent::AgentUpdated { call_id: None, update, at: Timestamp::from_millis(0) };
        let expected = json!({ "toolCallId": "t", "status": "completed" });
        assert_eq!(frames.encode(&updated), [("tool_call_update", expected)]);
        let option = AgentOption { id: "x".into(), name: "Yes".into(), kind: "allow_once".into() };
        let ask = AgentAsk { request: "r".into(), options: vec![option], digest: Sha256::of(b"") };
        let expected = json!([{ "optionId": "x", "name": "Yes", "kind": "allow_once" }]);
        assert_eq!(permission::options(None, Some(&ask)), expected);
    }
}
