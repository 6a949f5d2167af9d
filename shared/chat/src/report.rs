//! The reports of a chat that works for others: for a task, for a session, or in a team. One is sent per turn, in the entry that ends the turn,
//! however it ended.
//!
//! It is made where a step takes in the event that ends a turn, so that no way of ending a turn can forget it.

use crate::{
    keys::actor_id,
    round::{Round, told},
    state::ChatState,
};
use actor::OutboxMessage;
use domain::{
    ActorRef, ChatCommand, ChatConfig, ChatEvent, Code, Error, MemberEnd, PlanFile, StopReason, TaskCommand, ToldStep,
    Usage, task::AgentAnswer,
};

/// The report on the turn that `event` ends, from the state before it; `error` is the failure that it ends with.
pub(crate) fn on_end(state: &ChatState, event: &ChatEvent, error: Option<Error>) -> Option<OutboxMessage> {
    let config = state.config.as_deref()?;
    if config.member.is_some() {
        return of_member(state, event, error.as_ref());
    }
    config.agent.as_ref()?;
    let (text, reason) = match event {
        ChatEvent::Done { message, stop_reason, .. } => (message, told(*stop_reason)),
        ChatEvent::Stopped { partial_response, .. } => (partial_response, "stopped".to_owned()),
        _ => return None,
    };
    let nothing = Round::default();
    let round = state.turn.as_ref().and_then(|turn| turn.round.as_deref()).unwrap_or(&nothing);
    message(config, round.answer(config, state.turns + 1, text, reason, error))
}

/// The answer to a task that asks a chat which was given up: it would wait for ever.
pub(crate) fn gone(state: &ChatState) -> Option<OutboxMessage> {
    let config = state.config.as_deref()?;
    let error = Error::new(Code::Cancelled, "the chat of this agent was deleted");
    if config.member.is_some() {
        return member_ended(config, "stopped", Some(error), Usage::default());
    }
    message(config, Round::default().answer(config, state.turns + 1, "", "stopped".into(), Some(error)))
}

/// The answer to a task whose words failed again and again before the chat took them in; none to commands of others.
pub(crate) fn not_taken_in(state: &ChatState, command: &ChatCommand, error: Error) -> Option<OutboxMessage> {
    let ChatCommand::StartTurn { create, .. } = command else { return None };
    let config = state.config.as_deref().or(create.as_deref())?;
    if config.member.is_some() {
        return member_ended(config, "error", Some(error), Usage::default());
    }
    message(config, Round::default().answer(config, state.turns + 1, "", told(StopReason::Error), Some(error)))
}

fn message(config: &ChatConfig, answer: AgentAnswer) -> Option<OutboxMessage> {
    let agent = config.agent.as_ref()?;
    if let Some(executor) = &agent.executor {
        let to = ActorRef::Chat { workspace: config.workspace, chat: executor.session }.into();
        let command = serde_json::to_value(ChatCommand::ExecutorEnded { answer: Box::new(answer) }).ok()?;
        return Some(OutboxMessage { to, command, deliver_at: None, priority: 0 });
    }
    let to = ActorRef::Task { workspace: config.workspace, task: agent.task }.into();
    let command = serde_json::to_value(TaskCommand::AgentAnswered { answer: Box::new(answer) }).ok()?;
    Some(OutboxMessage { to, command, deliver_at: None, priority: 0 })
}

/// The message about an event of an agent's chat to the chat that has the team; none about most.
pub(crate) fn of_member(state: &ChatState, event: &ChatEvent, error: Option<&Error>) -> Option<OutboxMessage> {
    let config = state.config.as_deref()?;
    match event {
        ChatEvent::PlanStep { step, status, title, plan_path, plan_id: Some(id), done, total } => {
            let (plan, status, title) = (PlanFile { path: plan_path.clone(), id: *id }, status.clone(), title.clone());
            let told = Box::new(ToldStep { step: *step, status, title, plan, done: *done, total: *total });
            to_team(config, &ChatCommand::StepTold { told })
        }
        ChatEvent::Done { stop_reason, .. } => {
            let told = serde_json::to_value(stop_reason).ok();
            let reason = told.as_ref().and_then(|reason| reason.as_str()).unwrap_or_default();
            member_ended(config, reason, error.cloned(), used(state))
        }
        ChatEvent::Stopped { .. } => member_ended(config, "stopped", error.cloned(), used(state)),
        _ => None,
    }
}

fn used(state: &ChatState) -> Usage {
    state.turn.as_ref().map(|turn| turn.usage).unwrap_or_default()
}

/// The message about the end of a turn with this usage.
fn member_ended(config: &ChatConfig, reason: &str, error: Option<Error>, usage: Usage) -> Option<OutboxMessage> {
    let end = MemberEnd { chat_id: config.chat, stop_reason: reason.to_owned(), error, usage };
    to_team(config, &ChatCommand::MemberEnded { end: Box::new(end) })
}

fn to_team(config: &ChatConfig, command: &ChatCommand) -> Option<OutboxMessage> {
    let to = actor_id(config.workspace, config.member?.chat);
    Some(OutboxMessage { to, command: serde_json::to_value(command).ok()?, deliver_at: None, priority: 0 })
}
