//! The chat of a team's agent: its setup, its words, and what it tells the chat that has the team.

use crate::{keys::actor_id, state::ChatState};
use actor::OutboxMessage;
use domain::{
    ChatCommand, ChatConfig, ChatEvent, ChatId, Error, FilePath, Limits, Member, MemberEnd, MemberOf, NextPersona,
    PlanFile, Timestamp, ToldStep, TurnId, Usage,
};

/// The tool that writes a whole plan: agents that share one change its steps alone.
const PLAN_WRITE: &str = "plan_write";
const PLAN_UPDATE_STEP: &str = "plan_update_step";

/// The setup of the chat of an agent. Its limits are those of the turn; each of its turns has a budget within them.
pub(crate) fn chat(
    config: &ChatConfig,
    plan: PlanFile,
    (turn, limits): (TurnId, Limits),
    member: &Member,
    persona: NextPersona,
    at: Timestamp,
) -> ChatConfig {
    let tools = persona.tools.map(|mut tools| {
        tools.retain(|tool| !tool.starts_with(PLAN_WRITE) && !tool.starts_with(PLAN_UPDATE_STEP));
        tools.push(PLAN_UPDATE_STEP.to_owned());
        tools
    });
    ChatConfig {
        chat: member.chat_id,
        title: crate::chats::title_of(&format!("{}: {}", member.role, config.title)),
        role: persona.role,
        model: config.model.clone().or(persona.model),
        limits,
        system: persona.system,
        tools,
        plan: Some(plan),
        created_at: at,
        agent: None,
        thread: None,
        forked_from: None,
        session: None,
        scenario: None,
        member: Some(MemberOf { chat: config.chat, turn }),
        functions: Vec::new(),
        ..config.clone()
    }
}

/// The words that an agent begins with, or goes on with in a later round.
pub(crate) fn words(goal: &str, plan: &FilePath, members: &[Member], own: ChatId, round: u32) -> String {
    if round > 1 {
        return format!(
            "Steps of the plan {plan} are free again. Go on: claim one, do it, and end it, until none is free."
        );
    }
    let others: Vec<&str> = members.iter().filter(|one| one.chat_id != own).map(|one| one.role.as_str()).collect();
    let company = match others.as_slice() {
        [] => String::new(),
        others => format!(" together with other agents ({})", others.join(", ")),
    };
    format!(
        "{goal}\n\nYou work on the plan {plan}{company}, at the same time. Read it. Then take one step after the other: claim it with \
         plan_update_step and the status in_progress (without a number you get the first free one), do it, and set it to done, or to failed \
         and say why. Leave steps to others that they are made for. When a file was changed by another agent, read it again before you write. \
         When no step is free, end with a short report: your steps, and the paths of their results. Nobody answers questions: decide, and note \
         what you assumed."
    )
}

/// The message about an event of an agent's chat to the chat that has the team; none about most.
pub(crate) fn tells(state: &ChatState, event: &ChatEvent, error: Option<&Error>) -> Option<OutboxMessage> {
    let config = state.config.as_deref()?;
    match event {
        ChatEvent::PlanStep { step, status, title, plan_path, plan_id: Some(id), done, total } => {
            let (plan, status, title) = (PlanFile { path: plan_path.clone(), id: *id }, status.clone(), title.clone());
            let told = Box::new(ToldStep { step: *step, status, title, plan, done: *done, total: *total });
            message(config, &ChatCommand::StepTold { told })
        }
        ChatEvent::Done { stop_reason, .. } => {
            let told = serde_json::to_value(stop_reason).ok();
            let reason = told.as_ref().and_then(|reason| reason.as_str()).unwrap_or_default();
            ended(config, reason, error.cloned(), usage(state))
        }
        ChatEvent::Stopped { .. } => ended(config, "stopped", error.cloned(), usage(state)),
        _ => None,
    }
}

fn usage(state: &ChatState) -> Usage {
    state.turn.as_ref().map(|turn| turn.usage).unwrap_or_default()
}

/// The message about the end of a turn with this usage.
pub(crate) fn ended(config: &ChatConfig, reason: &str, error: Option<Error>, usage: Usage) -> Option<OutboxMessage> {
    let end = MemberEnd { chat_id: config.chat, stop_reason: reason.to_owned(), error, usage };
    message(config, &ChatCommand::MemberEnded { end: Box::new(end) })
}

fn message(config: &ChatConfig, command: &ChatCommand) -> Option<OutboxMessage> {
    let to = actor_id(config.workspace, config.member?.chat);
    Some(OutboxMessage { to, command: serde_json::to_value(command).ok()?, deliver_at: None, priority: 0 })
}
