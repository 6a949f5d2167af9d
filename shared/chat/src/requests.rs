//! Requests of people to chats, and the answer to an accepted one.

use crate::wait_reasons::QueuedBehind;
use domain::{
    AgentOptions, AnswerFormat, ChatId, ClientFunction, FileId, LabelChanges, Labels, Limits, Mode, ModelSettings,
    OnBusy, ScenarioSetup, ThreadAgent, TraceContext, TurnId, chat::SessionConfig, text,
};
use serde::Serialize;

/// How long the title of a chat is that nobody named, in characters (spec 003 §4 (5)).
const TITLE: usize = 50;

/// A chat to make.
#[derive(Clone, Debug, Default)]
pub struct NewChat {
    /// The goal: the first message.
    pub goal: String,
    /// Files to attach.
    pub files: Vec<FileId>,
    /// The persona; `assistant` when none.
    pub role: Option<String>,
    /// The model; the default one when none.
    pub model: Option<String>,
    /// The settings of the model. One that is none is that of the persona.
    pub model_settings: ModelSettings,
    /// How far it may go.
    pub mode: Mode,
    /// Limits of each of its turns.
    pub limits: Option<Limits>,
    /// Narrower limits for the first turn.
    pub turn_limits: Option<Limits>,
    /// The plan that it works on.
    pub plan: Option<FileId>,
    /// The version of that plan that is approved, for a chat that begins in `build` mode.
    pub plan_v: Option<u64>,
    /// Whether the caller may approve.
    pub may_approve: bool,
    /// Whether the caller may run no flows: then no file that the agent writes in the turn starts one.
    pub may_not_run: bool,
    /// The trace that the request came in.
    pub trace: Option<TraceContext>,
    /// The title; made of the goal when none.
    pub title: Option<String>,
    /// The coding agent that performs its turns, with a folder that is allowed; none for the loop of the system itself.
    pub thread: Option<ThreadAgent>,
    /// The context of a session of the planner chat; none for any other chat.
    pub session: Option<Box<SessionConfig>>,
    /// The conversation before the first message, for the model.
    pub earlier: String,
    /// The scenario, as [`crate::set_up`] has it; none for a conversation.
    pub scenario: Option<ScenarioSetup>,
    /// Words about the scenario, for the model.
    pub briefing: String,
    /// The functions that the client runs itself.
    pub functions: Vec<ClientFunction>,
    /// The format that the answer to the goal has to have, as [`crate::check_answer_format`] takes it.
    pub answer_format: Option<AnswerFormat>,
    /// Its labels.
    pub labels: Labels,
}

/// Changes of a chat's setup; none leaves a value as it is.
#[derive(Clone, Debug, Default)]
pub struct Setup {
    /// A new title.
    pub title: Option<String>,
    /// Another model.
    pub model: Option<String>,
    /// Other settings of the model, in the place of all that the chat has.
    pub model_settings: Option<ModelSettings>,
    /// Another mode.
    pub mode: Option<Mode>,
    /// Whether the caller may approve.
    pub may_approve: bool,
    /// Another context of a session.
    pub session: Option<Box<SessionConfig>>,
    /// Other settings of a coding agent.
    pub options: Option<Box<AgentOptions>>,
    /// Labels to set and to remove.
    pub labels: LabelChanges,
}

/// A message to a chat.
#[derive(Clone, Debug, Default)]
pub struct NewMessage {
    /// The words.
    pub content: String,
    /// Files to attach.
    pub files: Vec<FileId>,
    /// How to proceed when a turn runs.
    pub on_busy: OnBusy,
    /// With [`OnBusy::Steer`] and [`OnBusy::Rollback`]: the turn that is meant; without it the one that runs.
    pub expected_turn_id: Option<TurnId>,
    /// Narrower limits for this turn.
    pub limits: Option<Limits>,
    /// Settings of the model for the chat from the turn of this message on. One that is none stays as it is. Words that steer change none.
    pub model_settings: ModelSettings,
    /// The format that the answer has to have, as [`crate::check_answer_format`] takes it. Words that steer have none.
    pub answer_format: Option<AnswerFormat>,
    /// Instructions of the client, for the model.
    pub instructions: String,
    /// Whether the caller may approve.
    pub may_approve: bool,
    /// Whether the caller may run no flows: then no file that the agent writes in the turn starts one.
    pub may_not_run: bool,
    /// The trace that the request came in.
    pub trace: Option<TraceContext>,
}

/// The rights of a person who leads a turn on, beyond the one to talk in its chat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaderRights {
    /// Whether they may approve.
    pub may_approve: bool,
    /// Whether they may run no flows.
    pub may_not_run: bool,
}

/// A command that is durable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Accepted {
    /// The chat.
    pub chat_id: ChatId,
    /// The turn that it will be.
    pub turn_id: TurnId,
    /// Why it waits, as far as that was seen; none when it begins at once.
    pub queued_behind: Option<QueuedBehind>,
    /// Why the chat is paused, when it is.
    pub paused_reason: Option<String>,
}

/// The first line of the goal that has something to show, cut to the length of a title with the mark of what is left out.
pub(crate) fn title_of(goal: &str) -> String {
    let line = goal.lines().map(domain::nearest_name).find(|line| !line.trim().is_empty());
    text::shortened(line.unwrap_or_default().trim(), TITLE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_is_the_first_line_that_has_something_to_show() {
        assert_eq!(title_of(" a\u{202E}b\tc \nmore"), "ab c");
        assert_eq!(title_of("\n\u{200B}\nPlan the trip"), "Plan the trip");
        assert_eq!(title_of("\u{200B}"), "");
    }
}
