//! The node of a task that executes or waits.

use domain::{
    ChatId, NodeId, QuestionId, Timestamp, Usage,
    event::Question,
    task::{NodeMetrics, Wait},
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The node that executes or waits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Execution {
    /// The node.
    pub node: NodeId,
    /// How often it was begun, crashes and retries together.
    pub attempt: u32,
    /// The attempt that was started last; none where it has only waited so far.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub started: u32,
    /// How often it was lost while it ran since it was last begun by decision: a worker died with it, or the task was parked.
    pub crashes: u32,
    /// How often it was begun anew because it failed for a passing reason.
    pub retries: u32,
    /// When it was first begun.
    pub started_at: Timestamp,
    /// How long it waited in the queue.
    pub queue_ms: u64,
    /// Its activity.
    pub mode: Mode,
    /// Tokens of its context.
    pub context_tokens: u64,
    /// Its usage so far.
    pub usage: Usage,
    /// How many answers of its agent did not fit its schema.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub rejected: u32,
    /// Tools called so far.
    pub tool_calls: u32,
    /// How often it asked for slots or for a place. A grant names the request that it answers.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub requests: u32,
    /// Whether it has given back what it waited for, because the task was parked: it asks anew when the task goes on.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub gave_back: bool,
    /// The name under which it has slots or waits for them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slots: Option<String>,
    /// The name under which its command has a place on its machine or waits for one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    /// The time from which on the machine of its command is not ready for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unready_since: Option<Timestamp>,
    /// The start of its wait, or of its last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting_since: Option<Timestamp>,
    /// The answer of its agent or of people: it is not asked for again after the death of a worker.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub given: Option<NodeAnswer>,
    /// Whether its agent waits for people.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub agent_waits: bool,
}

/// The answer of people or of an agent to a node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NodeAnswer {
    /// The text of its agent.
    #[serde(rename = "said")]
    Text(String),
    /// The answers of people.
    Answers(Map<String, Value>),
}

/// The activity of an executing node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "mode", rename_all = "snake_case")]
pub enum Mode {
    /// A worker runs it.
    Running,
    /// Nothing is held for it until a message wakes the task.
    Waiting {
        /// The wait.
        wait: Wait,
    },
    /// Its agent answers.
    Agent {
        /// The chat.
        chat: ChatId,
        /// Counts from 1.
        round: u32,
    },
    /// People are asked.
    Asking {
        /// The set of questions.
        question_id: QuestionId,
        /// The questions.
        questions: Vec<Question>,
        /// When no answer becomes a failure.
        expires_at: Option<Timestamp>,
    },
}

impl Mode {
    /// Whether it has asked for slots or for a place, and has no answer yet. One whose machine is not ready has its place.
    pub(super) fn is_in_line(&self) -> bool {
        matches!(self, Self::Waiting { wait: Wait::Slots { .. } | Wait::Place { until: None, .. } })
    }
}

impl Execution {
    pub(super) fn new(node: &NodeId, attempt: u32, mode: Mode, at: Timestamp) -> Self {
        Self {
            node: node.clone(),
            attempt,
            started: 0,
            crashes: 0,
            retries: 0,
            started_at: at,
            queue_ms: 0,
            mode,
            context_tokens: 0,
            usage: Usage::default(),
            rejected: 0,
            tool_calls: 0,
            requests: 0,
            gave_back: false,
            slots: None,
            place: None,
            unready_since: None,
            waiting_since: None,
            given: None,
            agent_waits: false,
        }
    }

    /// Milliseconds of its last wait, when that ends at `at`.
    pub(super) fn waited_ms(&self, at: Timestamp) -> u64 {
        self.waiting_since.map_or(0, |since| at.since(since).as_millis() as u64)
    }

    /// The resources that it used, if it ends at `at`.
    pub(super) fn metrics(&self, at: Timestamp) -> NodeMetrics {
        NodeMetrics {
            duration_ms: at.since(self.started_at).as_millis() as u64,
            queue_ms: self.queue_ms,
            context_tokens: self.context_tokens,
            usage: self.usage,
            tool_calls: self.tool_calls,
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}
