//! The commands of a chat, its configuration, and, in `view`, what lists show of it.

mod agent;
mod view;

pub use crate::{limits::Limits, scenario::PlanFile, status::ChatStatus};
pub use agent::{AgentOf, AgentTool, AgentToolRuns};
pub use view::{ChatView, CompactionView, QueuedMessage};

use crate::{
    AgentOptions, CallId, ChatId, ClientFunction, FileId, FilePath, LabelChanges, Labels, MemberEnd, MemberOf,
    MessageId, Mode, ModelSettings, NextPersona, PermissionId, QuestionId, Scenario, ScenarioSetup, Session, Sha256,
    StopId, ThreadAgent, Timestamp, ToldStep, TraceContext, TurnId, TurnWishes, UserId, WorkspaceId,
    answer::AgentAnswer, permission::PermissionOutcome, session::Cut,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The commands of a chat. The envelope around it (its id, sender, time) is the actor runtime's.
///
/// A command is consumed once, so no part of it may be overlooked: a worker that does not know a field leaves the command to a newer one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "snake_case", deny_unknown_fields)]
pub enum ChatCommand {
    /// Start a turn with a person's message.
    StartTurn(TurnRequest),
    /// Stop a turn (spec 000 §6).
    Stop {
        /// The request to stop; the same request twice stops once.
        stop_id: StopId,
        /// The turn that was seen running; none for the first one posted before the request.
        turn_id: Option<TurnId>,
    },
    /// Answer questions of `ask_user`.
    Answer {
        /// The questions.
        question_id: QuestionId,
        /// One value per question, by its name.
        answers: serde_json::Map<String, Value>,
        /// Whether the sender has the right to approve: other senders cannot steer a turn that a plan's approval applies to.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        may_approve: bool,
        /// Whether the sender may run no flows: then no file that the agent writes in the rest of the turn starts one.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        may_not_run: bool,
    },
    /// Answer a call that was handed out.
    AnswerCall {
        /// The call.
        call_id: CallId,
        /// The text that the model reads.
        output: String,
        /// Whether the call succeeded.
        success: bool,
        /// Whether the sender has the right to approve: other senders cannot steer a turn that a plan's approval applies to.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        may_approve: bool,
        /// Whether the sender may run no flows: then no file that the agent writes in the rest of the turn starts one.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        may_not_run: bool,
    },
    /// Decide on a permission.
    Decide {
        /// The permission.
        permission_id: PermissionId,
        /// Yes or no.
        outcome: PermissionOutcome,
        /// Whether a rule is granted, too: with a yes the one that was offered, with a no the one that denies its calls.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        always: bool,
        /// With a no: why, for the model.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// The option of the coding agent that asks; it has to agree with the outcome.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        option_id: Option<String>,
    },
    /// Note a decision on a permission that was refused, since it came late or second. It counts for nothing.
    NoteRefused {
        /// The permission.
        permission_id: PermissionId,
        /// The decision.
        outcome: PermissionOutcome,
    },
    /// Take back the rules that were granted in the chat.
    ForgetPermissions {
        /// The rule alone that has this id ([`PermissionRule::id`](crate::PermissionRule::id)); none for all.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rule_id: Option<String>,
    },
    /// A permission or a question was not answered in time.
    Expire {
        /// The permission, if it was one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        permission_id: Option<PermissionId>,
        /// The question, if it was one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        question_id: Option<QuestionId>,
    },
    /// A call that was handed out was not answered in time.
    ExpireCall {
        /// The call.
        call_id: CallId,
    },
    /// Give the chat up: the running turn is stopped, waiting messages are dropped, and it is listed no more. Its log stays.
    Delete,
    /// The slots that a call of the model waited for are there.
    Wake {
        /// The message that the call brings.
        message_id: MessageId,
        /// The request that it answers, counted from 1 within the turn. Older versions did not number them.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        request: Option<u32>,
    },
    /// The time has come to ask a model again whose provider had failed. A chat sends it to itself.
    AskAgain {
        /// The message that the call brings.
        message_id: MessageId,
        /// How often the call had failed.
        failures: u32,
    },
    /// The place that a command waited for is there.
    BeginCall {
        /// The call that the command is.
        call_id: CallId,
        /// The request that it answers, as for `Wake`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        request: Option<u32>,
    },
    /// A command gets no place: too many of its workspace wait.
    RefuseCall {
        /// The call that the command is.
        call_id: CallId,
        /// The request that it answers, as for `Wake`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        request: Option<u32>,
    },
    /// The agent of a task goes before others that wait, or after them, from here on.
    Prioritize {
        /// Higher ones go first; -100 to 100.
        priority: i8,
    },
    /// Change the configuration from the next turn on.
    Configure {
        /// A new title.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        title: Option<String>,
        /// Another model.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<String>,
        /// Other settings of the model, in the place of all that the chat has.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model_settings: Option<ModelSettings>,
        /// Another mode.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mode: Option<Mode>,
        /// Whether the sender has the right to approve: a mode that lets the agent do more than the present one needs that.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        may_approve: bool,
        /// For a session: another context.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session: Option<Box<SessionConfig>>,
        /// For a coding agent: other settings. Without a session of its own the present one stays.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        options: Option<Box<AgentOptions>>,
        /// Labels to set and to remove.
        #[serde(default, skip_serializing_if = "LabelChanges::is_empty")]
        labels: LabelChanges,
    },
    /// Summarise the oldest turns, in a turn of its own that is no part of the conversation.
    Compact {
        /// The longest summary, in characters.
        max_chars: u32,
    },
    /// Take the last compaction back.
    UndoCompaction,
    /// Add words to the turn that runs; the model reads them with its next call.
    Steer {
        /// The turn.
        turn_id: TurnId,
        /// The person's words.
        content: String,
        /// Files to attach.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        files: Vec<FilePath>,
        /// The text for the model after the words.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        context: String,
        /// Whether the sender has the right to approve: other senders cannot steer a turn that a plan's approval applies to.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        may_approve: bool,
        /// Whether the sender may run no flows: then no file that the agent writes in the rest of the turn starts one.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        may_not_run: bool,
    },
    /// An executor of the session's plan has ended its turn.
    ExecutorEnded {
        /// Its answer.
        answer: Box<AgentAnswer>,
    },
    /// An agent of the chat's team has changed a step of the plan.
    StepTold {
        /// The step.
        told: Box<ToldStep>,
    },
    /// An agent of the chat's team has ended its turn.
    MemberEnded {
        /// The end.
        end: Box<MemberEnd>,
    },
}

/// The request for a turn: a person's message. The first one of a chat brings its configuration.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TurnRequest {
    /// The person's words.
    pub content: String,
    /// Files to attach.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<FilePath>,
    /// The text for the model after the words: the attached files and the plan as they are now.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub context: String,
    /// Set on the first turn of a chat.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub create: Option<Box<ChatConfig>>,
    /// Narrower limits for this turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<Limits>,
    /// End a turn that waits for an answer or a permission instead of waiting behind it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub interrupt: bool,
    /// The plan that this turn begins to carry out. Only senders with the right to approve send it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<Box<Approval>>,
    /// With an approval: the persona that carries the plan out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub persona: Option<Box<NextPersona>>,
    /// Whether the sender has the right to approve: the approval of a plan applies in such turns alone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub may_approve: bool,
    /// Whether the sender may run no flows: then no file that the agent writes in the turn starts one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub may_not_run: bool,
    /// Set by an agent for those that work for it: whether its own turn has not the home of its person.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub no_home: bool,
    /// Whether a note beside the log says that it waits: it goes with the entry that takes this in.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub noted: bool,
    /// The turn that is running, with [`OnBusy::Rollback`]: its work is taken back before this turn begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rolls_back: Option<TurnId>,
    /// The trace that the request came in, where it named one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<TraceContext>,
    /// The wishes of the message about the calls of the model, where it has any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wishes: Option<Box<TurnWishes>>,
}

/// A context of a session, with the text and the tools that belong to it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SessionConfig {
    /// The context.
    pub session: Session,
    /// The system text.
    pub system: String,
    /// The tools.
    pub tools: Vec<String>,
    /// Whether the location alone was read again. A session that has another context by now keeps that one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub refreshes: bool,
}

/// The ways to handle a message that comes while a turn runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnBusy {
    /// Wait for the turn to end.
    #[default]
    Enqueue,
    /// Refuse with `CONFLICT`.
    Reject,
    /// Stop the turn, then start.
    Interrupt,
    /// Add the words to the turn: the model reads them with its next call.
    Steer,
    /// Stop the turn and take its work back: its changes of files, and its part of the conversation. Then start.
    Rollback,
}

/// A version of a plan that a person with the right to do so has approved (spec 000 §4.2).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Approval {
    /// The path of the plan at that moment.
    pub plan_path: FilePath,
    /// The file, which keeps this id when it is moved.
    pub plan_id: FileId,
    /// The version that was approved.
    pub v: u64,
    /// The SHA-256 of that version with every step pending: to tick a step does not change a plan.
    pub digest: Sha256,
    /// The person who approved it, as `user:<id>`.
    pub by: String,
    /// The time of the approval.
    pub at: Timestamp,
}

/// The beginning of the role of a persona that is a person's own. Policies, and authors of versions, so tell it from a persona of the workspace with
/// the same name: it has no rights of that one.
pub const OWN_PERSONA: char = '~';

/// The name of the persona that a role means.
pub fn persona_name(role: &str) -> &str {
    role.strip_prefix(OWN_PERSONA).unwrap_or(role)
}

/// How a chat is set up.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChatConfig {
    /// The workspace that it is in.
    pub workspace: WorkspaceId,
    /// Its id; also the id of its file.
    pub chat: ChatId,
    /// The user that its agent works for.
    pub user: UserId,
    /// Its title, for lists.
    pub title: String,
    /// The persona: the name of a folder under `/system/agents`; one of the person's own begins with [`OWN_PERSONA`].
    pub role: String,
    /// The model; none for the default one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The settings with which the model is asked. The chat of an agent of a task has none here: [`Self::settings_of_calls`].
    #[serde(default, skip_serializing_if = "ModelSettings::is_empty")]
    pub model_settings: ModelSettings,
    /// How far it may go.
    #[serde(default)]
    pub mode: Mode,
    /// The limits of a turn.
    #[serde(default)]
    pub limits: Limits,
    /// The system text, fixed when the chat was made so that the bytes sent to a model do not change.
    #[serde(default)]
    pub system: String,
    /// The parts of the system text that were cut to their budget.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cut: Vec<Cut>,
    /// The built-in tools that its persona allows, by name; all when none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
    /// The plan that it was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<PlanFile>,
    /// The context budget in tokens: history is cut to this.
    pub context_tokens: u64,
    /// When it was made.
    pub created_at: Timestamp,
    /// Set on the chat that a node of a task talks to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<Box<AgentOf>>,
    /// The coding agent that performs its turns; none for the loop of the system itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<Box<ThreadAgent>>,
    /// The chat whose history it begins with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forked_from: Option<ForkOf>,
    /// Set on a session of the planner chat: its turns begin with an analysis.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<Box<Session>>,
    /// How it works; none for a conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scenario: Option<Box<ScenarioSetup>>,
    /// Set on the chat of a team's agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub member: Option<MemberOf>,
    /// The functions of the client that made it, by names with [`CLIENT_PREFIX`]: the agent calls them, and the client runs them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub functions: Vec<ClientFunction>,
    /// Its labels.
    #[serde(default, skip_serializing_if = "Labels::is_empty")]
    pub labels: Labels,
}

impl ChatConfig {
    /// The name of its persona, for people.
    pub fn persona(&self) -> &str {
        persona_name(&self.role)
    }

    /// The settings of a call of its model. The agent of a task has those of its flow, and an executor has none.
    pub fn settings_of_calls(&self) -> ModelSettings {
        self.agent.as_ref().map_or(self.model_settings, |agent| ModelSettings {
            temperature: agent.temperature,
            top_p: agent.top_p,
            max_output_tokens: agent.max_tokens,
        })
    }

    /// Whether nobody is there to answer questions of the agent, or to permit calls.
    pub fn is_unattended(&self) -> bool {
        let is_autonomous = self.scenario.as_ref().is_some_and(|setup| setup.name == Scenario::Autonomous);
        let is_executor = self.agent.as_ref().is_some_and(|agent| agent.executor.is_some());
        is_autonomous || is_executor || self.member.is_some()
    }

    /// Whether it is a session of the planner chat, or an executor of one.
    pub fn is_of_session(&self) -> bool {
        self.session.is_some() || self.agent.as_ref().is_some_and(|agent| agent.executor.is_some())
    }

    /// The chat that this one works for: the session of an executor, or the chat that has the team.
    pub fn works_for(&self) -> Option<ChatId> {
        let session = self.agent.as_ref().and_then(|agent| agent.executor.as_ref()).map(|executor| executor.session);
        session.or_else(|| self.member.map(|member| member.chat))
    }
}

/// The beginning of a fork.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ForkOf {
    /// The chat that it was forked from.
    pub chat_id: ChatId,
    /// The number of the last event of that chat that it has; 0 for none.
    pub seq: u64,
}
