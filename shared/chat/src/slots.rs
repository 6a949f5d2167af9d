//! Slots of an agent's calls of its model: a flow, a node or a provider may have only so many at once (spec 002 §10.12). A call that waits
//! is rows: the chat has sent a request to the semaphore of its workspace and rests; a message wakes it when the slots are its own.
//!
//! A chat that is paused while it waits, for slots or for a place, withdraws its request and asks anew when it goes on. Requests are numbered,
//! because the answer to an earlier one may still be under way then.

use crate::{keys::actor_id, phase::Phase, step::Step};
use domain::{AgentOf, ChatCommand, ChatConfig, ChatEvent, MessageId, event::SlotWait};
use serde_json::json;
use slots::{Held, SlotRequest};

impl Step<'_> {
    /// Whether the call has to wait for slots first; it has asked for them then.
    pub(crate) fn waits_for_slots(&mut self, config: &ChatConfig, message_id: MessageId) -> bool {
        let Some(agent) = config.agent.as_ref().filter(|agent| !agent.turns.is_empty()) else { return false };
        if self.turn().is_some_and(|turn| turn.slots.is_some()) {
            return false;
        }
        self.await_slots(config, agent, message_id);
        true
    }

    /// Asks for slots, and rests until they are there.
    fn await_slots(&mut self, config: &ChatConfig, agent: &AgentOf, message_id: MessageId) {
        let holder = format!("{}/{message_id}", config.chat);
        self.push(ChatEvent::SlotsAwaited(SlotWait { message_id, holder: holder.clone(), at: self.stamp.at }));
        self.ask_for_slots(config, agent, holder, message_id);
    }

    fn ask_for_slots(&mut self, config: &ChatConfig, agent: &AgentOf, holder: String, message_id: MessageId) {
        let grant = json!(ChatCommand::Wake { message_id, request: self.last_request() });
        let (priority, to) = (agent.priority, actor_id(config.workspace, config.chat));
        let wanted = SlotRequest { holder, priority, to, grant };
        self.send(wanted.for_slots(config.workspace, agent.turns.clone()));
    }

    /// The agent of a task has another priority from here on; its waiting call moves to the place of that priority.
    pub(crate) fn prioritize(&mut self, priority: i8) {
        let Some(mut config) = self.config().map(|config| (**config).clone()) else { return };
        let Some(agent) = config.agent.as_deref_mut().filter(|agent| agent.priority != priority) else { return };
        agent.priority = priority;
        self.push(ChatEvent::Configured { config: Box::new(config) });
        let (Some(config), Some(turn)) = (self.config().cloned(), self.turn()) else { return };
        match (&turn.phase, &turn.slots, &config.agent) {
            (Phase::Slots { message_id, .. }, Some(holder), Some(agent)) => {
                self.ask_for_slots(&config, agent, holder.clone(), *message_id);
            }
            (Phase::Place { call_id, .. }, _, _) if turn.unready_since.is_none() => {
                self.ask_for_place(&config, *call_id);
            }
            _ => {}
        }
    }

    /// The number of the request that the turn has made last.
    pub(crate) fn last_request(&self) -> Option<u32> {
        self.turn().map(|turn| turn.requests)
    }

    /// Whether a message answers this request, and no earlier one. An older version did not number its requests.
    pub(crate) fn is_answer(&self, request: Option<u32>) -> bool {
        request.is_none() || request == self.last_request()
    }

    /// Withdraws the request for slots or for a place: the chat is paused, and a person may take a day.
    pub(crate) fn withdraw_request(&mut self) {
        let Some(turn) = self.turn() else { return };
        match turn.phase {
            Phase::Slots { .. } => {
                let slots = turn.slots.clone();
                self.give_back(Held { slots, place: None });
            }
            Phase::Place { call_id, .. } => self.lend_place(call_id),
            _ => {}
        }
    }

    /// Asks anew for what the chat waited for when it was paused.
    pub(crate) fn renew_request(&mut self) {
        let Some(config) = self.config().cloned() else { return };
        match (self.turn().map(|turn| &turn.phase), &config.agent) {
            (Some(&Phase::Slots { message_id, .. }), Some(agent)) => self.await_slots(&config, agent, message_id),
            (Some(&Phase::Place { call_id, attempt, .. }), _) => self.await_place(&config, call_id, attempt),
            _ => {}
        }
    }

    /// The slots are there. A message that comes twice, or after a stop, has no effect.
    pub(crate) fn wake(&mut self, message: MessageId, request: Option<u32>) {
        let Some(turn) = self.turn().filter(|_| self.is_answer(request)) else { return };
        if matches!(turn.phase, Phase::Slots { message_id, .. } if message_id == message) {
            self.ask_model(message, turn.attempt_of(message));
        }
    }

    /// Gives slots and a place back, and takes requests for them out of the line.
    pub(crate) fn give_back(&mut self, held: Held) {
        let Some(workspace) = self.config().map(|config| config.workspace) else { return };
        held.give_back(workspace, self.machine.places, 0).for_each(|message| self.send(message));
    }
}
