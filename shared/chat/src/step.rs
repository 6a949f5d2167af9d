//! A step of a chat: the state as it is, and what the step has decided so far. The parts of the machine add what they decide on.

use crate::{
    keys::actor_id,
    machine::{ChatEffect, ChatMachine},
    phase::Phase,
    report,
    state::{ChatState, Turn},
};
use actor::{ActorId, EffectKey, OutboxMessage, StopRequest, StopTarget};
use domain::{
    CallId, ChatCommand, ChatConfig, ChatEvent, ChatId, Error, Stamp, StopId, Timestamp, ToolCall, Usage,
    event::PermissionOutcome,
};
use slots::Held;
use std::sync::Arc;
use uuid::Uuid;

/// The usage of a call that read so many tokens and wrote so many bytes, at four bytes per token.
pub(crate) fn estimate(input_tokens: u64, written: u64, cost: impl Fn(&Usage) -> f64) -> Usage {
    let mut usage = Usage { input_tokens, output_tokens: written.div_ceil(4), ..Usage::default() };
    usage.cost_usd = cost(&usage);
    usage
}

/// A step of a chat: each of its questions is asked of the state, which has all that the step has decided.
pub(crate) struct Step<'a> {
    pub machine: &'a ChatMachine,
    pub stamp: &'a Stamp,
    step: &'a mut actor::Step<ChatMachine>,
    ids: u32,
    /// The last failure that no turn has ended with yet.
    failure: Option<Error>,
    /// The reports on the turns that it has ended.
    reports: Vec<OutboxMessage>,
    /// The slots and the place that the chat had before.
    held: Held,
    /// The request to people that was open before, and whether the step has declined it.
    asked: Option<Uuid>,
    declined: bool,
}

impl<'a> Step<'a> {
    pub fn new(machine: &'a ChatMachine, step: &'a mut actor::Step<ChatMachine>, stamp: &'a Stamp) -> Self {
        let turn = step.state().turn.as_ref();
        let held = turn.map(Turn::held).unwrap_or_default();
        let asked = turn.and_then(|turn| turn.phase.request());
        Self { machine, stamp, step, ids: 0, failure: None, reports: Vec::new(), held, asked, declined: false }
    }

    /// The last messages of the step: that the agent of a task waits or goes on, the reports on ended turns, and slots and places that the chat has
    /// no more.
    pub fn end(mut self) {
        if self.turn().is_some_and(|turn| turn.phase.request() != self.asked) {
            let waits = report::waits(self.state(), self.declined);
            waits.into_iter().for_each(|waits| self.send(waits));
        }
        for report in std::mem::take(&mut self.reports) {
            self.send(report);
        }
        let kept = self.turn().map(Turn::held).unwrap_or_default();
        let gone = std::mem::take(&mut self.held).without(&kept);
        self.give_back(gone);
    }

    pub fn state(&self) -> &ChatState {
        self.step.state()
    }

    pub fn config(&self) -> Option<&Arc<ChatConfig>> {
        self.state().config.as_ref()
    }

    /// The turn that runs or waits.
    pub fn turn(&self) -> Option<&Turn> {
        self.state().turn.as_ref()
    }

    /// The first call of the last message that has no answer yet.
    pub fn next_unanswered(&self) -> Option<ToolCall> {
        self.turn()?.calls.front().cloned()
    }

    pub fn push(&mut self, event: ChatEvent) {
        if let ChatEvent::Failed { error } = &event {
            self.failure = Some(error.clone());
        } else if let ChatEvent::PermissionResolved { permission_id, outcome, .. } = &event {
            self.declined |= self.asked == Some(permission_id.0) && *outcome != PermissionOutcome::Approved;
        } else if event.is_terminal() {
            let failure = self.failure.take();
            self.reports.extend(report::on_end(self.step.state(), &event, failure));
        } else if matches!(event, ChatEvent::PlanStep { .. }) {
            self.reports.extend(report::of_member(self.step.state(), &event, None));
        }
        self.step.push(event);
    }

    /// Counts an answer of the model.
    pub fn used(&mut self, usage: Usage, model: Option<String>) {
        self.count(usage, model, false);
    }

    /// Counts an answer of the model, or by an `estimated` usage one that was not read to its end.
    pub fn count(&mut self, usage: Usage, model: Option<String>, estimated: bool) {
        let context_limit = self.config().map_or(0, |config| config.context_tokens);
        self.push(ChatEvent::Used { usage, context_used: usage.input_tokens, context_limit, model, estimated });
    }

    /// Counts the part of an answer that came before its worker was lost or its turn ends. A provider is paid for it, and never tells what it was. A
    /// call of which nothing came may not have reached it, and counts for nothing.
    pub fn count_part(&mut self) {
        let Some((config, turn)) = self.config().zip(self.turn()) else { return };
        let Phase::Model { text, .. } = &turn.phase else { return };
        let written = text.len() as u64 + turn.thought;
        if turn.estimated == 0 || written == 0 {
            return;
        }
        let usage = estimate(turn.estimated, written, |usage| (self.machine.cost)(config.model.as_deref(), usage));
        self.count(usage, None, true);
    }

    /// A fresh id of this step.
    pub fn id(&mut self) -> uuid::Uuid {
        self.ids += 1;
        self.stamp.id(self.ids)
    }

    pub fn run(&mut self, key: EffectKey, effect: ChatEffect) {
        self.step.run(key, effect);
    }

    pub fn cancel(&mut self, key: EffectKey) {
        self.step.cancel(key);
    }

    pub fn send(&mut self, message: OutboxMessage) {
        self.step.send(message);
    }

    /// Gives the failed work up, so that the chat is not paused.
    pub fn give_up(&mut self) {
        self.step.give_up();
    }

    /// Sends the chat a command at a later time.
    pub fn later(&mut self, at: Timestamp, command: &ChatCommand) {
        let Some(config) = self.config() else { return };
        let to = actor_id(config.workspace, config.chat);
        if let Ok(command) = serde_json::to_value(command) {
            self.send(OutboxMessage { to, command, deliver_at: Some(at), priority: 0 });
        }
    }

    /// Sends another actor a command.
    pub fn tell(&mut self, to: ActorId, command: &ChatCommand, priority: i8) {
        if let Ok(command) = serde_json::to_value(command) {
            self.send(OutboxMessage::now(to, command, priority));
        }
    }

    /// Stops the agents that work on a plan of this chat.
    pub fn stop_agents(&mut self, plan: CallId, agents: &[ChatId], stop_id: StopId, reason: &str) {
        let Some((workspace, chat)) = self.config().map(|config| (config.workspace, config.chat)) else { return };
        for agent in agents {
            // The message stops an agent that waits; the request beside its log stops one that runs.
            let stop = ChatCommand::Stop { stop_id, turn_id: None };
            self.tell(actor_id(workspace, *agent), &stop, ports::URGENT);
        }
        let session = actor_id(workspace, chat);
        let request = StopRequest { stop_id, target: StopTarget::Tree, at: self.stamp.at, reason: reason.to_owned() };
        self.run(EffectKey(format!("stop/{plan}/{stop_id}")), ChatEffect::StopExecutors { session, plan, request });
    }
}
