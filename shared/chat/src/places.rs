//! Waiting for a place on the machine that a command runs on. The call rests as rows: the chat has sent a request to the machine's
//! semaphore, and a message starts the command when the place is its own. So does a command whose machine is not ready: a message that is
//! due later has it tried again.

use crate::{calls::describe, keys::actor_id, phase::Phase, step::Step};
use domain::{CallId, ChatCommand, ChatConfig, ChatEvent, Code, Error, ToolCall, event::PlaceWait};
use serde_json::json;
use slots::{Held, SlotRequest};
use std::time::Duration;
use tools::ToolKind;

impl Step<'_> {
    /// Whether the call is a command that has to wait for a place first; it has asked for one then.
    pub(crate) fn waits_for_place(&mut self, call: &ToolCall, attempt: u32) -> bool {
        let Some(config) = self.config().filter(|_| self.machine.places.is_some()).cloned() else { return false };
        let has_one = self.turn().is_some_and(|turn| {
            // It has lent its place meanwhile.
            let was_asked_about =
                turn.tried.is_some_and(|tried| tried.call_id == call.call_id && tried.attempt + 1 == attempt);
            turn.place == Some(call.call_id) && !was_asked_about
        });
        if has_one || self.kind(&call.tool) != Some(ToolKind::Exec) {
            return false;
        }
        self.await_place(&config, call.call_id, attempt);
        true
    }

    /// Asks for a place, and rests until it is there.
    pub(crate) fn await_place(&mut self, config: &ChatConfig, call_id: CallId, attempt: u32) {
        self.push(ChatEvent::PlaceAwaited(PlaceWait { call_id, attempt, at: self.stamp.at, why: None, until: None }));
        self.ask_for_place(config, call_id);
    }

    /// Asks for a place, or for the same with another priority.
    pub(crate) fn ask_for_place(&mut self, config: &ChatConfig, call_id: CallId) {
        let request = self.last_request();
        let Some(places) = self.machine.places else {
            // The configuration has changed while the chat was paused, and no semaphore would answer.
            return self.later(self.stamp.at, &ChatCommand::BeginCall { call_id, request });
        };
        let wanted = SlotRequest {
            holder: call_id.to_string(),
            priority: config.agent.as_ref().map_or(0, |agent| agent.priority),
            to: actor_id(config.workspace, config.chat),
            grant: json!(ChatCommand::BeginCall { call_id, request }),
        };
        self.send(places.ask(config.workspace, wanted, json!(ChatCommand::RefuseCall { call_id, request })));
    }

    /// The machine is not ready for a command that has its place: the call is made again after this long, and keeps the place.
    pub(crate) fn come_again(&mut self, call_id: CallId, attempt: u32, error: Error, after: Duration) {
        let (at, until) = (self.stamp.at, self.stamp.at + after);
        let (why, attempt) = (Some(error.message), attempt + 1);
        self.push(ChatEvent::PlaceAwaited(PlaceWait { call_id, attempt, at, why, until: Some(until) }));
        self.later(until, &ChatCommand::BeginCall { call_id, request: self.last_request() });
    }

    /// The call that waits for a place, if it is this one, with the attempt that starts then. The answer to an earlier request is for no call.
    fn placed(&self, call: CallId, request: Option<u32>) -> Option<(ToolCall, u32)> {
        let turn = self.turn().filter(|_| self.is_answer(request))?;
        match turn.phase {
            Phase::Place { call_id, attempt, .. } if call_id == call => {
                Some((turn.calls.iter().find(|known| known.call_id == call)?.clone(), attempt))
            }
            _ => None,
        }
    }

    /// The place is there. A message that comes twice, or after a stop, begins nothing.
    pub(crate) fn begin_call(&mut self, call: CallId, request: Option<u32>) {
        if let Some((call, attempt)) = self.placed(call, request) {
            self.run_tool(call, attempt);
        }
    }

    /// There is no place, and too many wait for one: the command has not begun.
    pub(crate) fn refuse_call(&mut self, call: CallId, request: Option<u32>) {
        let Some((call, attempt)) = self.placed(call, request) else { return };
        let error = Error::new(Code::NotBegun, "too many commands of this workspace wait already, so it did not run")
            .hint("try again when some of them have ended, or run fewer at once");
        self.started(&call, attempt);
        self.failed(&call, describe(&error), error.code);
        self.next_call();
    }

    /// Gives back the place of a command, or takes it out of the line, while the command waits for a person: one that a policy asks about, or one in a
    /// chat that is paused. It asks for a place again afterwards.
    pub(crate) fn lend_place(&mut self, call_id: CallId) {
        if self.turn().is_some_and(|turn| turn.place == Some(call_id)) {
            self.give_back(Held { slots: None, place: Some(call_id.to_string()) });
        }
    }
}
