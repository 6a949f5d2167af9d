//! A stage: one execution of a node, in the history of a task (spec 002 §3.2, §6).

use domain::{
    ChatId, Error, NodeId, QuestionId, Status, Timestamp,
    event::Question,
    task::{AgentAnswer, AssembledContext, ChildKind, ChildName, NodeMetrics, ToolUse},
};
use flow::{Flow, flow::Op, graph::Role};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::sync::Arc;

/// A page of a task's history.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HistoryPage {
    /// The stages, in the order in which they began.
    pub stages: Vec<Stage>,
    /// The number of the last of them, as text, when more follow: the cursor of the next page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// One execution of a node, with everything that was given, done and decided.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stage {
    /// Counts from 1 in its task.
    pub number: u64,
    /// The node.
    pub node: NodeId,
    /// The kind of worker; none when the flow loads no more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<StageKind>,
    /// The effect of the node on the task; none when the flow loads no more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
    /// How it ended; none while it executes or waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<Status>,
    /// How often it was begun: crashes, retries and the first time together.
    pub attempt: u32,
    /// How often a worker died with it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub crashes: u32,
    /// When it first began; none for a merge that failed before its node did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Timestamp>,
    /// Its input, exactly.
    pub input: Arc<Value>,
    /// Its output, exactly; null while it executes, or when it failed without an output.
    pub output: Value,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Error>,
    /// The context that it was given, as it was put together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<AssembledContext>,
    /// Why it was begun anew.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub retries: Vec<RetryMade>,
    /// Denials by policies.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub denials: Vec<Denial>,
    /// The tools that it called itself; those of its agent are in the conversation.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<ToolUse>,
    /// The conversation with its agent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conversation: Vec<Round>,
    /// Outputs that did not fit the node's schema.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rejected: Vec<Rejection>,
    /// Questions to people, and their answers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub questions: Vec<QuestionAsked>,
    /// When it was paused before it by the inspector, and when it went on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pauses: Vec<Pause>,
    /// For a merge: the outputs that it takes, and the children that it does not wait for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merge: Option<Merge>,
    /// For a branch or a split: its children.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fork: Option<Forked>,
    /// The node to which the router sent the task next; none for a fork, an exit, and a failure that ended the task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub routed_to: Option<NodeId>,
    /// Its usage; none while it executes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metrics: Option<NodeMetrics>,
}

/// The kind of worker of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StageKind {
    /// A model.
    Agent,
    /// People.
    Human,
    /// Code: the same input gives the same output.
    Deterministic,
}

/// A retry.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RetryMade {
    /// Counts from 1.
    pub number: u32,
    /// The failure before it.
    pub error: Error,
    /// When it was begun anew.
    pub at: Timestamp,
}

/// A denial by a policy (spec 002 §10.5).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Denial {
    /// The refused thing, such as `tool deploy`.
    pub what: String,
    /// The rule that refused it.
    pub rule: String,
}

/// One round of a conversation with an agent: above the first when the output did not fit the schema.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Round {
    /// The chat that carries it; its events can be read like those of any chat.
    pub chat: ChatId,
    /// Counts from 1.
    pub round: u32,
    /// The prompt; its beginning where it is long, the whole is an artifact of the task. Empty for older tasks.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub prompt: String,
    /// The agent's answer, with its usage; none until it has answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply: Option<AgentAnswer>,
}

/// An output that did not fit the schema.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rejection {
    /// Counts from 1.
    pub round: u32,
    /// The validator's messages.
    pub errors: Vec<String>,
}

/// A set of questions to people.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct QuestionAsked {
    /// The set of questions.
    pub question_id: QuestionId,
    /// The questions.
    pub questions: Vec<Question>,
    /// When they were asked.
    pub at: Timestamp,
    /// When no answer becomes a failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// People's answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<AnswerGiven>,
}

/// People's answer; it may have come before the question.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AnswerGiven {
    /// One value per question.
    pub answers: Map<String, Value>,
    /// Its author.
    pub by: String,
    /// The time of the answers.
    pub at: Timestamp,
}

/// A pause of the inspector.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pause {
    /// The time of the pause.
    pub at: Timestamp,
    /// The time of the continuation; none while it lasts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continued_at: Option<Timestamp>,
}

/// How a merge came to begin.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Merge {
    /// The children whose outputs it takes, in the order of its input.
    pub taken: Vec<String>,
    /// Those that could have come and failed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed: Vec<ChildName>,
    /// Those that the merge has stopped waiting for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cancelled: Vec<ChildName>,
}

/// The children of a branch or a split. The children themselves are tasks of their own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Forked {
    /// Their kind.
    pub kind: ChildKind,
    /// The targets of its edges.
    pub to: Vec<NodeId>,
    /// How many there will be.
    pub total: u32,
    /// How many were sent off.
    pub spawned: u32,
    /// How many ended by themselves with success.
    pub succeeded: u32,
    /// How many failed.
    pub failed: u32,
    /// How many ended with some of their work done.
    pub partial: u32,
    /// How many went on into a merge.
    pub merged: u32,
}

impl Forked {
    /// Whether all of them have come to their end.
    pub(super) fn is_settled(&self) -> bool {
        let ended = [self.succeeded, self.failed, self.partial, self.merged];
        ended.iter().fold(0, |sum: u32, count| sum.saturating_add(*count)) >= self.total
    }
}

impl Stage {
    /// The stage of this number, with what the manifest says of its node.
    pub(super) fn new(number: u64, node: &NodeId, flow: Option<&Flow>, input: Arc<Value>) -> Self {
        let kind = flow.and_then(|flow| flow.nodes.get(node)).map(|node| match node.op {
            Op::Agent { .. } => StageKind::Agent,
            Op::Ask(_) => StageKind::Human,
            Op::Identity | Op::Expr(_) | Op::Template(_) | Op::Tool { .. } | Op::Command(_) | Op::Function(_) => {
                StageKind::Deterministic
            }
        });
        Self {
            number,
            node: node.clone(),
            kind,
            role: flow.and_then(|flow| flow.graph.node(node)).map(|node| node.role),
            status: None,
            attempt: 1,
            crashes: 0,
            started_at: None,
            finished_at: None,
            input,
            output: Value::Null,
            error: None,
            context: None,
            retries: Vec::new(),
            denials: Vec::new(),
            tools: Vec::new(),
            conversation: Vec::new(),
            rejected: Vec::new(),
            questions: Vec::new(),
            pauses: Vec::new(),
            merge: None,
            fork: None,
            routed_to: None,
            metrics: None,
        }
    }
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}
