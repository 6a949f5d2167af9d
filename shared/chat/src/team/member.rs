//! The chat of a team's agent: its setup and its words. Its reports to the chat that has the team are in `report`.

use crate::{requests::title_of, tool_allowlist::PLAN_WRITE};
use domain::{
    ChatConfig, ChatId, FilePath, Labels, Limits, Member, MemberOf, NextPersona, PlanFile, Timestamp, TurnId,
};

/// The tool that changes a step of a plan: agents that share one change its steps alone.
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
        title: title_of(&format!("{}: {}", member.role, config.title)),
        role: persona.role,
        model: config.model.clone().or(persona.model),
        model_settings: config.model_settings.or(persona.model_settings),
        limits,
        system: persona.system,
        cut: persona.cut,
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
        labels: Labels::default(),
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
