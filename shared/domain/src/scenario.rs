//! Scenarios (spec 000 §4): the ways in which a chat works. A scenario sets up what chats have anyway (mode, persona, plan, limits), and says
//! whether a team of agents carries the plan out.

use crate::{Budget, ChatId, FileId, FilePath, ModelSettings, Timestamp, TurnId, Usage, session::Cut};
use serde::{Deserialize, Serialize};

/// The ways to work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scenario {
    /// A conversation: tools run at once, and the agent waits for the next message.
    #[default]
    ChatMode,
    /// A planner writes a plan; after a person approved it another persona carries it out.
    PlanThenExecute,
    /// As `plan_then_execute`, with several agents that carry the plan out side by side.
    ParallelAgents,
    /// The agent works without people until its goal is met or a limit is reached.
    Autonomous,
    /// A strategist plans a campaign for a topic, and a team writes it.
    CoWork,
}

/// The scenario of a chat, with what it still needs later.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScenarioSetup {
    /// The scenario.
    pub name: Scenario,
    /// The persona that carries the plan out once it is approved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub executor: Option<String>,
    /// The personas of the team, one for each of its agents; none without a team.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<String>,
    /// The place of the plan before it is written; the chat's own folder when none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan_path: Option<FilePath>,
}

/// The persona that a chat has from the approval of its plan on, as it was read then.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NextPersona {
    /// Its name.
    pub role: String,
    /// The system text.
    pub system: String,
    /// The tools that it allows; all when none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
    /// The model that it is made for; it counts where the chat names none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The settings of that model; each counts where the chat has none.
    #[serde(default, skip_serializing_if = "ModelSettings::is_empty")]
    pub model_settings: ModelSettings,
    /// The parts of the system text that were cut to their budget.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cut: Vec<Cut>,
}

/// The place of a team's agent: its chat works for another chat, and tells that one of its steps and of the end of its turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MemberOf {
    /// The chat that has the team.
    pub chat: ChatId,
    /// The turn of that chat.
    pub turn: TurnId,
}

/// An agent of a team.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    /// Its chat.
    pub chat_id: ChatId,
    /// Its persona.
    pub role: String,
}

/// A step of a plan that was told by an agent of a team.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToldStep {
    /// Counts from 1.
    pub step: u32,
    /// `pending`, `in_progress`, `done`, `failed` or `skipped`.
    pub status: String,
    /// The text of the step.
    pub title: String,
    /// The plan.
    pub plan: PlanFile,
    /// Steps done.
    pub done: u32,
    /// Steps in all.
    pub total: u32,
}

/// The end of a turn of a team's agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MemberEnd {
    /// Its chat.
    pub chat_id: ChatId,
    /// Why it ended: a stop reason, or `stopped`.
    pub stop_reason: String,
    /// The error, when it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<crate::Error>,
    /// The usage of the turn.
    #[serde(default, skip_serializing_if = "Usage::is_none")]
    pub usage: Usage,
}

/// A fact about a team.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum TeamFact {
    /// The plan is read: before the team carries it out, along with the personas, and when a step is done that others may wait for.
    Called {
        /// The time of it.
        at: Timestamp,
    },
    /// The plan was read.
    Looked {
        /// Steps done.
        done: u32,
        /// The time of it.
        at: Timestamp,
    },
    /// Its agents begin to carry the plan out, or go on with the steps that became free.
    Started {
        /// Counts from 1 within the turn.
        round: u32,
        /// The agents of this round.
        members: Vec<Member>,
        /// The budget that is set aside for each of them until it ends its turn.
        #[serde(default, skip_serializing_if = "Option::is_none", with = "crate::budget::of_turn")]
        budget: Option<Budget>,
        /// The time of it.
        at: Timestamp,
    },
    /// An agent has ended its turn; the steps that it had claimed and not ended are free again.
    MemberEnded {
        /// The end.
        end: MemberEnd,
        /// The time of it.
        at: Timestamp,
    },
    /// An agent has ended after the turn that it worked for, which was stopped. Also an executor of a session.
    Late {
        /// The chat of the agent.
        chat_id: ChatId,
        /// The usage of its turn.
        usage: Usage,
        /// The time of it.
        at: Timestamp,
    },
}

/// A plan that a chat was given when it was made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlanFile {
    /// Its path.
    pub path: FilePath,
    /// The plan file.
    pub id: FileId,
}
