//! The view of a chat: what lists and clients see of it.

use super::{Approval, ChatStatus, ForkOf};
use crate::{
    AgentOptions, CallId, ChatId, ExecutorOf, FileId, FilePath, Labels, Mode, ModelSettings, PermissionRule,
    ScenarioSetup, Session, TaskId, Timestamp, TurnId, Usage, UserId, WorkspaceEvent, WorkspaceId,
    context::CompactionRecord,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A message that was accepted and has not begun.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct QueuedMessage {
    /// The turn that it becomes.
    pub turn_id: TurnId,
    /// When it was accepted.
    pub at: Timestamp,
    /// The beginning of its words: at most [`QueuedMessage::SHOWN`] bytes.
    pub content: String,
    /// Attached files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<FilePath>,
    /// The person who wrote it; none where a program did. Views of earlier versions lack it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_id: Option<UserId>,
}

impl QueuedMessage {
    /// How much of a message is shown while it waits, in bytes.
    pub const SHOWN: usize = 1024;

    /// A message with these words, by this person where a person wrote it.
    pub fn new(turn_id: TurnId, at: Timestamp, content: &str, files: &[FilePath], user_id: Option<UserId>) -> Self {
        let end = content.floor_char_boundary(Self::SHOWN);
        Self { turn_id, at, content: content[..end].to_owned(), files: files.to_vec(), user_id }
    }
}

/// A compaction as people see it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CompactionView {
    /// The summary; empty if no model gave one.
    pub summary: String,
    /// The last line of the turns that it stands for, in the chat's file.
    pub last_line: u64,
    /// The size of the context before, in tokens.
    pub tokens_before: u64,
    /// The size of the context after, in tokens.
    pub tokens_after: u64,
    /// The second as a part of the first.
    pub ratio: f64,
    /// Whether it can be taken back.
    pub can_be_undone: bool,
    /// The time of it.
    pub at: Timestamp,
}

impl CompactionView {
    /// Of a compaction that can be taken back or not.
    pub fn of(record: &CompactionRecord, can_be_undone: bool) -> Self {
        Self {
            summary: record.summary.clone().unwrap_or_default(),
            last_line: record.last_line,
            tokens_before: record.tokens_before,
            tokens_after: record.tokens_after,
            ratio: record.ratio(),
            can_be_undone,
            at: record.at,
        }
    }
}

/// A chat as lists and clients see it; written with the log entries that change it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChatView {
    /// Its id.
    pub chat_id: ChatId,
    /// Its workspace.
    pub workspace_id: WorkspaceId,
    /// Its title.
    pub title: String,
    /// Its labels.
    #[serde(default, skip_serializing_if = "Labels::is_empty")]
    pub labels: Labels,
    /// Its persona.
    pub role: String,
    /// Its model, if one was chosen.
    pub model: Option<String>,
    /// The settings with which its model is asked.
    #[serde(default, skip_serializing_if = "ModelSettings::is_empty")]
    pub model_settings: ModelSettings,
    /// Its mode.
    pub mode: Mode,
    /// Its state.
    pub status: ChatStatus,
    /// Why it is paused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused_reason: Option<String>,
    /// The turn that runs or waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn_id: Option<TurnId>,
    /// The sequence number of the running turn's first event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn_seq: Option<u64>,
    /// The open questions and permissions while it is suspended, as their events.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waiting_for: Vec<Value>,
    /// The last compaction of its context, while the model reads its summary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compaction: Option<CompactionView>,
    /// Messages that wait behind the turn that runs or is suspended, in order; of many only the first ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub queued: Vec<QueuedMessage>,
    /// The sum of the usage of all its turns.
    pub usage: Usage,
    /// The sum of the usage of all turns of its agents: its executors, or its team.
    #[serde(default, skip_serializing_if = "Usage::is_none")]
    pub agents_usage: Usage,
    /// Turns ended.
    pub turns: u64,
    /// The messages of the turns that have ended: of people, of the model, and results of calls.
    #[serde(default)]
    pub message_count: u64,
    /// The plan file, if there is one.
    pub plan_path: Option<FilePath>,
    /// The identity of the plan file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan_id: Option<FileId>,
    /// The approval that the agent works under, in `build` mode.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<Approval>,
    /// The calls that need no further permission, in turns of people who may approve, and those that are denied.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub permissions: Vec<PermissionRule>,
    /// The settings of its coding agent, once that has begun a session, or has chosen a mode or an option by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_options: Option<AgentOptions>,
    /// When it last chose a mode or an option.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_chose_at: Option<Timestamp>,
    /// The chat's own file.
    pub file_id: FileId,
    /// The task whose agent talks here, if one does. People can watch such a chat, answer its questions, and stop it; it has no file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_id: Option<TaskId>,
    /// The chat whose history it begins with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forked_from: Option<ForkOf>,
    /// The person for whom its agent works; views of earlier versions have it for sessions of the planner chat alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_id: Option<UserId>,
    /// Of a session of the planner chat: its context.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<Session>,
    /// Of an executor: the session, and the step of its plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub executor: Option<ExecutorOf>,
    /// How it works; none for a conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scenario: Option<ScenarioSetup>,
    /// Of the chat of a team's agent: the chat that has the team.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_chat_id: Option<ChatId>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it last began or ended an interaction.
    pub active_at: Timestamp,
}

impl ChatView {
    /// The event that tells a workspace's clients of this state; none for the chat of a task's agent or an executor, which is on no list
    /// of people.
    pub fn event(&self) -> Option<WorkspaceEvent> {
        (self.task_id.is_none() && self.executor.is_none()).then(|| WorkspaceEvent::ChatUpdated {
            chat_id: self.chat_id,
            title: self.title.clone(),
            model: self.model.clone(),
            mode: self.mode,
            status: self.status,
            turn_id: self.turn_id,
            waiting_for: self.waiting_for.len() as u64,
            handed_out: self.handed_out(),
            active_at: self.active_at,
        })
    }

    /// The call that waits for a program, if one does.
    fn handed_out(&self) -> Option<CallId> {
        let asked = self.waiting_for.iter().find(|asked| asked["event"] == "call_handed_out")?;
        asked["data"]["call_id"].as_str()?.parse().ok()
    }
}
