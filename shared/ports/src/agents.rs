//! Coding agents that are programs of their own, each in a process per thread (spec 004 §2, §4). The actor of a chat asks for a turn, takes
//! updates until the agent asks for something or ends, and knows no process: in the hub one is a child of the machine, on AWS a process in
//! the workspace's sandbox.

mod none;
mod offers;

use crate::{Result, WorkingCopies};
use async_trait::async_trait;
use domain::{AgentOption, AgentOptions, ChatId, FilePath, ThreadAgent, TurnId, WorkspaceId};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;

pub use none::{NoAgents, STOCK_AGENTS};
pub use offers::{Unoffered, offered};

/// The coding agents that this installation knows, and the processes of their threads.
///
/// Nothing here is durable. A process may be gone at any moment: the turn that it worked on then ends with [`AgentUpdate::Gone`], and the
/// next prompt of the thread starts another process.
///
/// # Errors
/// Of every method: `Unavailable` when the agent cannot be started or does not answer in time, with the reason; `Invalid` for an agent, an
/// option or a folder that is not known or not allowed.
#[async_trait]
pub trait Agents: Send + Sync {
    /// All agents that are known, in the order of their names. Starts nothing.
    async fn list(&self) -> Vec<AgentInfo>;
    /// The folder under its resolved path, if threads may work in it.
    ///
    /// # Errors
    /// `Invalid` for a path that is relative, absent, no folder, or outside of the allowed roots.
    async fn allowed(&self, cwd: &str) -> Result<String>;
    /// The roots in which the folders of threads have to be, resolved.
    fn roots(&self) -> Vec<String>;
    /// Hands a prompt to the process of its thread; starts one where there is none. Returns once the agent has the prompt. The same turn
    /// again has no effect: a prompt is not given twice. It waits for an earlier turn of the thread that is being cancelled.
    ///
    /// # Errors
    /// Those of [`Agents`].
    async fn prompt(&self, prompt: AgentPrompt) -> Result<()>;
    /// The next updates of a turn, one at least: waits until there is one. Updates that wait are joined. While the agent waits for an
    /// answer the last one is [`AgentUpdate::Asks`] or [`AgentUpdate::Wrote`], and a further call has it again; so with
    /// [`AgentUpdate::Ended`] and [`AgentUpdate::Gone`]. So a caller that lost an answer asks again.
    ///
    /// # Errors
    /// Those of [`Agents`]. `Conflict` when no process here has this turn, as after a restart of the machine that ran it.
    async fn updates(&self, turn: &AgentTurn) -> Result<Vec<AgentUpdate>>;
    /// Answers the request `request` of a turn: with one of the options that the agent offered, or with none, which cancels the request.
    ///
    /// # Errors
    /// Those of [`Agents`]. `Conflict` when the process that asked is gone, or asks nothing under this id: the answer reaches nobody.
    async fn answer(&self, turn: &AgentTurn, request: &str, option: Option<&str>) -> Result<()>;
    /// Answers [`AgentUpdate::Wrote`]: the agent hears that its file is written, or why not.
    ///
    /// # Errors
    /// Those of [`Agents`]. `Conflict` when no process here waits for it.
    async fn settle(&self, _turn: &AgentTurn, _request: &str, _refused: Option<&str>) -> Result<()> {
        Err(crate::Error::Conflict { write: 0 })
    }
    /// The working copies, for threads in the files of their workspace ([`ThreadAgent::folder`]). None where agents work elsewhere alone.
    fn copies(&self) -> Option<Arc<dyn WorkingCopies>> {
        None
    }
    /// Asks the agent to end the turn, and kills the process group after a grace. Fine for a turn that has ended.
    ///
    /// # Errors
    /// Those of [`Agents`].
    async fn cancel(&self, turn: &AgentTurn) -> Result<()>;
    /// Ends the process of a thread, if there is one.
    ///
    /// # Errors
    /// Those of [`Agents`].
    async fn end(&self, workspace: WorkspaceId, chat: ChatId) -> Result<()>;
    /// The models, modes and options that the agent offers for a session in `cwd`. Asks a process that it may start for this alone.
    ///
    /// # Errors
    /// Those of [`Agents`].
    async fn offers(&self, agent: &str, cwd: &str) -> Result<AgentOffers>;
    /// [`Agents::offers`] as the agent has told them here in the last hour; none where it has not. Starts nothing.
    async fn told_offers(&self, _agent: &str, _cwd: &str) -> Option<AgentOffers> {
        None
    }
    /// The agent's own sessions in `cwd`; none where it keeps none.
    ///
    /// # Errors
    /// Those of [`Agents`].
    async fn sessions(&self, agent: &str, cwd: &str, cursor: Option<&str>) -> Result<Option<AgentSessions>>;
    /// The messages of one of the agent's own sessions; none where it cannot replay them.
    ///
    /// # Errors
    /// Those of [`Agents`].
    async fn session_history(&self, agent: &str, cwd: &str, session: &str) -> Result<Option<Vec<AgentMessage>>>;
    /// The slash commands that the thread's process has announced; none before its first turn.
    async fn commands(&self, workspace: WorkspaceId, chat: ChatId) -> Vec<AgentCommand>;
}

/// An agent that the installation knows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentInfo {
    /// Its id, such as `codex`.
    pub id: String,
    /// Its name for people.
    pub name: String,
    /// None when it can be started; else the reason why not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unavailable: Option<String>,
    /// The command that would install it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub install: Option<String>,
}

/// A turn of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct AgentTurn {
    /// The workspace of the chat.
    pub workspace: WorkspaceId,
    /// The chat that the thread is.
    pub chat: ChatId,
    /// The turn.
    pub turn: TurnId,
}

/// A prompt for the process of a thread.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AgentPrompt {
    /// The turn.
    pub turn: AgentTurn,
    /// The agent, its folder and options.
    pub thread: ThreadAgent,
    /// The person's words, and attachments, as content blocks of ACP. In place of a kind of block that the agent does not take it gets a
    /// `resource_link`. Text with [`AgentPrompt::REPEATS`] is left out where the agent takes the attachments themselves.
    pub content: Vec<Value>,
    /// The text that brings a process up to date that does not know the thread: the summary and the recent turns, within a budget. It is
    /// sent before the prompt where the process is new and the agent cannot load its session.
    pub context: String,
    /// Whether the agent chose the mode of `thread` by itself. A new process that refuses it goes on in its own default, and tells that as a choice of the
    /// agent. A mode that people chose is never replaced.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub own_mode: bool,
}

/// An update of a turn, in its order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentUpdate {
    /// The session that the process works in.
    Bound {
        /// The agent's id of the session.
        session: String,
    },
    /// A piece of the answer.
    Text(String),
    /// A piece of reasoning.
    Thought(String),
    /// Any other session update of ACP, whole: tool calls and their updates, plans, commands, modes, content that is no text.
    Session(Value),
    /// The agent had a file of its working copy written, and waits to hear whether its workspace has it, too.
    Wrote {
        /// The id of the request in the process.
        request: String,
        /// The path in the workspace.
        path: FilePath,
    },
    /// The agent asks for permission, and waits.
    Asks(AgentRequest),
    /// The turn has ended.
    Ended {
        /// As ACP names it: `end_turn`, `max_tokens`, `max_turn_requests`, `refusal` or `cancelled`.
        stop_reason: String,
    },
    /// The process or its turn came to nothing.
    Gone {
        /// The reason for people, with the exit code and the last lines of the error output, without secrets.
        reason: String,
    },
}

/// A request for permission.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentRequest {
    /// Its id in the process.
    pub request: String,
    /// `command`, `file`, `network` or `mcp`.
    pub category: String,
    /// The title of the tool call that it is for.
    pub title: String,
    /// The tool call as ACP has it, as JSON text.
    pub call: String,
    /// The answers that the agent offers.
    pub options: Vec<AgentOption>,
}

/// The offers of an agent for a session.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AgentOffers {
    /// Models, each with `id` and `name`.
    pub models: Vec<Value>,
    /// Modes, each with `id` and `name`.
    pub modes: Vec<Value>,
    /// The model of a new session, where the agent says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The mode of a new session, where the agent says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// Options of the configuration, as ACP has them.
    pub options: Vec<Value>,
}

/// A page of an agent's own sessions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AgentSessions {
    /// Each with `sessionId`, and `cwd`, `title`, `updatedAt` where known.
    pub sessions: Vec<Value>,
    /// The cursor of the next page.
    pub next: Option<String>,
}

/// A message of an agent's own session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentMessage {
    /// `user` or `assistant`.
    pub role: String,
    /// Its text.
    pub content: String,
}

/// A slash command of an agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentCommand {
    /// Its name, without the slash.
    pub name: String,
    /// Its purpose.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The input that it takes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_hint: Option<String>,
}

impl AgentPrompt {
    /// The field of a text block that repeats attached files as words, for agents that take no embedded resources. No agent sees it.
    pub const REPEATS: &str = "repeatsAttachments";

    /// Whether two prompts can share a process: it runs with the folder and the settings that it was started with, and those that it has chosen since.
    pub fn shares_process(a: &ThreadAgent, b: &ThreadAgent) -> bool {
        let settings = |options: &AgentOptions| AgentOptions { session_id: None, ..options.clone() };
        a.agent == b.agent && a.cwd == b.cwd && settings(&a.options) == settings(&b.options)
    }
}
