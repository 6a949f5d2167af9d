//! The work of larger effects, and its results: with a coding agent, of a rollback, and of a team's look at its plan.

use super::ChatEffect;
use domain::{
    CallId, ChatConfig, ChatEvent, ChatId, Error, FileId, FilePath, MessageId, NextPersona, Principal, Timestamp,
    TurnId,
};
use ports::{AgentPrompt, AgentRequest, AgentTurn};
use serde_json::Value;
use std::sync::Arc;
use tools::PlanState;
use uuid::Uuid;

/// A piece of work with the process of a thread.
#[derive(Debug)]
pub struct AgentWork {
    /// The turn.
    pub turn: AgentTurn,
    /// The leg that its reports belong to.
    pub leg: MessageId,
    /// The person that the agent works for.
    pub by: Principal,
    /// The author of the versions that the agent makes.
    pub author: Principal,
    /// Whether these versions may start flows.
    pub may_run: bool,
    /// Whether the agent has the home of the person of the chat.
    pub has_home: bool,
    /// The folder of the workspace that the agent has a copy of; none where it works in a folder of the machine.
    pub folder: Option<FilePath>,
    /// When the turn's wall time is up.
    pub deadline: Timestamp,
    /// The work.
    pub does: AgentDoes,
}

/// The kinds of work with the process of a thread.
#[derive(Debug)]
pub enum AgentDoes {
    /// Hand over the person's words, and follow the agent.
    Prompt(Box<AgentPrompt>),
    /// Answer a request, and follow the agent.
    Answer {
        /// The request.
        request: String,
        /// The option of the agent; none cancels the request.
        option: Option<String>,
    },
    /// Follow an agent that was followed by a worker which is gone.
    Follow,
    /// Have the agent end the turn.
    Cancel,
    /// End the process: the chat was given up.
    End,
}

/// A report of a leg.
#[derive(Debug)]
pub enum AgentReport {
    /// The agent works in this session.
    Bound(String),
    /// Standing rules with these ids deny calls in this turn.
    Denies(Vec<String>),
    /// Session updates, each whole.
    Updated(Vec<Value>),
    /// Files of the workspace that it has changed in its working copy, as events.
    Changed(Vec<ChatEvent>),
    /// The agent asks for permission: the leg is over.
    Asked(Box<AgentRequest>),
    /// The agent has ended the turn, for this reason of the Agent Client Protocol.
    Ended(String),
    /// No process has the turn.
    Lost,
    /// The turn came to nothing.
    Failed {
        /// The error.
        error: Error,
        /// Whether the turn's wall time was up.
        timed_out: bool,
    },
}

/// A request to take back the changes of files that a turn made.
#[derive(Debug)]
pub struct FileRewind {
    /// The chat.
    pub config: Arc<ChatConfig>,
    /// The turn that is taken back.
    pub turn: TurnId,
    /// Its calls.
    pub calls: Vec<CallId>,
    /// The time of its first message.
    pub since: Timestamp,
    /// Whether the versions that it makes may start flows.
    pub may_run: bool,
}

/// The answer to a [`FileRewind`].
#[derive(Debug)]
pub struct FileRewindResult {
    /// Its id.
    pub rewind_id: Uuid,
    /// How many changes were taken back.
    pub changes: u64,
    /// Files that stay: others changed them, or their earlier content cannot be brought back.
    pub kept: Vec<FilePath>,
}

/// A request to read the plan of a team, and the personas that its next agents need.
#[derive(Clone, Debug)]
pub struct PlanPoll {
    /// The chat that has the team.
    pub config: Arc<ChatConfig>,
    /// Its turn.
    pub turn: TurnId,
    /// The plan.
    pub plan: FileId,
    /// The chats of the agents that work no more.
    pub free: Vec<ChatId>,
    /// The personas to read.
    pub personas: Vec<String>,
}

/// The answer to a [`PlanPoll`].
#[derive(Clone, Debug)]
pub struct PlanPollResult {
    /// The plan.
    pub plan: PlanState,
    /// The personas.
    pub personas: Vec<NextPersona>,
}

impl From<PlanPoll> for ChatEffect {
    fn from(poll: PlanPoll) -> Self {
        Self::PollPlan(Box::new(poll))
    }
}
