//! Slots of an agent's calls of its model: a flow, a node or a provider may have only so many at once (spec 002 §10.12). A call that waits
//! is rows: the chat has sent a request to the semaphore of its workspace and rests; a letter wakes it when the slots are its own.

use crate::{
    account::Account,
    machine::{ChatMachine, actor_id},
    phase::Phase,
    state::{ChatState, Turn},
    turn::Step,
};
use actor::{Decision, Letter};
use domain::{AgentOf, ChatCommand, ChatConfig, ChatEvent, MessageId};
use serde_json::json;
use slots::{Ask, SlotsCommand, semaphore};

impl Step<'_> {
    /// Whether the call has to wait for slots first; it has asked for them then.
    pub(crate) fn waits_for_slots(&mut self, config: &ChatConfig, message_id: MessageId) -> bool {
        let Some(agent) = config.agent.as_ref().filter(|agent| !agent.turns.is_empty()) else { return false };
        let has_them = self.state.turn.as_ref().is_some_and(|turn| turn.slots.is_some());
        if has_them && !self.decision.events.iter().any(|event| gives(event, self.state.turn.as_ref())) {
            return false;
        }
        let holder = format!("{}/{message_id}", config.chat);
        self.push(ChatEvent::SlotsAwaited { message_id, holder: holder.clone(), at: self.stamp.at });
        self.ask_for_slots(config, agent, holder, message_id);
        true
    }

    fn ask_for_slots(&mut self, config: &ChatConfig, agent: &AgentOf, holder: String, message_id: MessageId) {
        let ask = Ask {
            holder,
            wants: agent.turns.clone(),
            party: config.workspace.to_string(),
            priority: agent.priority,
            share: None,
            to: actor_id(config.workspace, config.chat),
            grant: json!(ChatCommand::Wake { message_id }),
            bound: None,
        };
        let command = json!(SlotsCommand::Ask { ask: Box::new(ask) });
        let to = semaphore(config.workspace);
        self.decision.send.push(Letter { to, command, deliver_at: None, priority: agent.priority });
    }

    /// The agent of a task has another priority from here on; its waiting call moves to the place of that priority.
    pub(crate) fn prioritize(&mut self, priority: i8) {
        let Some(mut config) = self.config.as_deref().cloned() else { return };
        let Some(agent) = config.agent.as_deref_mut().filter(|agent| agent.priority != priority) else { return };
        agent.priority = priority;
        let agent = agent.clone();
        self.push(ChatEvent::Configured { config: Box::new(config.clone()) });
        let Some(turn) = &self.state.turn else { return };
        match (&turn.phase, &turn.slots) {
            (Phase::Slots { message_id, .. }, Some(holder)) => {
                self.ask_for_slots(&config, &agent, holder.clone(), *message_id);
            }
            (Phase::Place { call_id, .. }, _) if turn.unready_since.is_none() => {
                self.ask_for_place(&config, *call_id);
            }
            _ => {}
        }
    }

    /// The slots are there. A letter that comes twice, or after a stop, has no effect.
    pub(crate) fn wake(&mut self, message: MessageId) {
        let Some(turn) = &self.state.turn else { return };
        if !matches!(turn.phase, Phase::Slots { message_id, .. } if message_id == message) {
            return;
        }
        let mut account = Account::of(turn);
        account.waited(turn, self.stamp.at);
        self.ask_model(&account, message, turn.attempt_of(message));
    }
}

/// Whether the event ends the call that the slots were for.
fn gives(event: &ChatEvent, turn: Option<&Turn>) -> bool {
    match event {
        ChatEvent::Used { .. }
        | ChatEvent::ModelPostponed { .. }
        | ChatEvent::Done { .. }
        | ChatEvent::Stopped { .. } => true,
        ChatEvent::Paused { .. } => turn.is_some_and(|turn| !turn.phase.is_suspended()),
        _ => false,
    }
}

/// Gives back the slots of a call that this decision has ended. It is added to a finished decision, so that no way of ending a call can
/// forget it.
pub(crate) fn give(state: &ChatState, decision: &mut Decision<ChatMachine>) {
    let (Some(config), Some(turn)) = (&state.config, &state.turn) else { return };
    let Some(holder) = &turn.slots else { return };
    if decision.events.iter().any(|event| gives(event, Some(turn))) {
        let command = json!(SlotsCommand::Give { holder: holder.clone() });
        let to = semaphore(config.workspace);
        decision.send.push(Letter { to, command, deliver_at: None, priority: 0 });
    }
}
