//! Tasks (spec 002 §2.1): commands, events and views. A task is one actor that executes at most one node at a time; clones
//! and subtasks are tasks of their own.

mod budget;
mod event;
mod handoff;
mod view;
mod wait;

pub use crate::{
    answer::{AgentAnswer, Resources, ToolUse},
    flow::{FlowRef, NodeId},
    status::{Status, TaskPhase},
};
pub use budget::{BudgetChild, BudgetFact, BudgetMessage, BudgetPart, LEAST_TOKENS};
pub use event::TaskEvent;
pub use handoff::{Handoff, HandoffLink};
pub use view::TaskView;
pub use wait::{Retry, Wait};

use crate::{
    Budget, ChatEvent, ChatId, Code, CommandId, Error, FilePath, HoldId, LabelChanges, Labels, QuestionId, StopId,
    TaskId, Timestamp, TraceContext, Usage, UserId, WorkspaceId,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::{fmt, sync::Arc};
use uuid::Uuid;

/// The cause of a child task (spec 002 §2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChildKind {
    /// One of the clones that a branch makes.
    Clone,
    /// One of the subtasks that a split makes.
    Subtask,
}

/// The origin of a child task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Origin {
    /// The task that made it.
    pub parent: TaskId,
    /// All tasks above it, the root first and the parent last.
    pub ancestors: Vec<TaskId>,
    /// Its name and those of the tasks between it and the root, each under the one above: as many as there are ancestors.
    pub line: Vec<ChildName>,
    /// The places of the same among their siblings.
    pub place: Vec<u32>,
    /// The cause.
    pub kind: ChildKind,
    /// The branch or split node that made it.
    pub node: NodeId,
    /// The edge that it went along; its target is the child's first node.
    pub to: NodeId,
    /// Its place among its siblings, from 0.
    pub index: u32,
}

impl Origin {
    /// Its name among the children of its parent, such as `review/coder` or `items/worker[17]`: stable across runs.
    pub fn name(&self) -> ChildName {
        ChildName::of(&self.node, &self.to, self.index, self.kind)
    }
}

/// The name of a child under its parent; the same in every run of the same input.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ChildName(pub Arc<str>);

impl ChildName {
    /// From its parts: `node/to` for a clone, `node/to[index]` for a subtask.
    pub fn of(node: &NodeId, to: &NodeId, index: u32, kind: ChildKind) -> Self {
        match kind {
            ChildKind::Clone => Self(format!("{node}/{to}").into()),
            ChildKind::Subtask => Self(format!("{node}/{to}[{index}]").into()),
        }
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The index in the name of a subtask; 0 for a clone.
    fn index(&self) -> u32 {
        let number = self.0.strip_suffix(']').and_then(|text| text.rsplit_once('['));
        number.and_then(|(_, number)| number.parse().ok()).unwrap_or(0)
    }
}

impl fmt::Display for ChildName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for ChildName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The tasks above a task with this origin, the root first.
fn above(origin: Option<&Origin>) -> &[TaskId] {
    origin.map(|origin| origin.ancestors.as_slice()).unwrap_or_default()
}

impl TaskConfig {
    /// The tasks above this one, the root first.
    pub fn above(&self) -> &[TaskId] {
        above(self.origin.as_ref())
    }

    /// The task that people made: this one, or the one at the top of the tasks above it.
    pub fn root(&self) -> TaskId {
        self.task.top(self.above())
    }
}

/// How a task is set up; written once, when it is made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TaskConfig {
    /// The workspace that it is in.
    pub workspace: WorkspaceId,
    /// Its id.
    pub task: TaskId,
    /// The flow that it runs, with the manifests it began with.
    pub flow: FlowRef,
    /// The user that it works for.
    pub user: UserId,
    /// Its input, exactly.
    pub input: Value,
    /// The node that it begins at: a start node, or for a child the target of its edge.
    pub start: NodeId,
    /// The origin of a child.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
    /// Files given along with the input.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<FilePath>,
    /// The priority, -100 to 100: when not all tasks can run, those with higher values go first.
    #[serde(default)]
    pub priority: i8,
    /// Whether it pauses before each node (inspector, spec 002 §10.7).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stepping: bool,
    /// Nodes that it pauses before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub breakpoints: Vec<NodeId>,
    /// The task that it is a re-run of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replay: Option<Replay>,
    /// Whether outputs of earlier nodes are kept at hand, because an expression of the flow reads them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub keep_outputs: bool,
    /// Whether records are kept at the end in any case: outputs of the flow have schemas, or the flow uses memory.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub keep_artifacts: bool,
    /// Whether it holds one of the places that its flow has for tasks that run or wait, until it ends.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub counted: bool,
    /// The trace that the request for it came in, where it named one; clones and subtasks are in the same trace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<TraceContext>,
    /// The version of a file that started it, where one did; clones and subtasks have that of their root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handoff: Option<Box<Handoff>>,
    /// The tokens, the money and the time for its agents and those of all tasks below it.
    #[serde(default, skip_serializing_if = "Budget::is_none")]
    pub budget: Budget,
    /// The reason for which it ends before its first node, where a version of a file asked for a task that may not run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<Box<Error>>,
    /// Its labels. Clones and subtasks have none of it.
    #[serde(default, skip_serializing_if = "Labels::is_empty")]
    pub labels: Labels,
    /// When it was made.
    pub created_at: Timestamp,
}

/// A re-run of a task that has ended. The original task is never changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Replay {
    /// The recorded task; for a child, the recorded child of the same name.
    pub of: TaskId,
    /// None: every node runs, with the recorded answers of models, tools and people. A node: it and all nodes after it run for real, and every
    /// other node takes its recorded output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<NodeId>,
    /// Whether only nodes run for real that failed or were stopped, and nodes whose input changes because of them: every other node, those of children
    /// included, takes its recorded output.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub retry: bool,
}

impl TaskConfig {
    /// Whether the task is a recorded run once more, on recorded answers.
    pub fn repeats(&self) -> bool {
        self.replay.as_ref().is_some_and(Replay::repeats)
    }
}

impl Replay {
    /// Whether it is the recorded run once more, on recorded answers: nothing of it is for real.
    pub fn repeats(&self) -> bool {
        self.from.is_none() && !self.retry
    }
}

/// The commands of a task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "snake_case", deny_unknown_fields)]
pub enum TaskCommand {
    /// Begin.
    Start {
        /// The configuration.
        config: Box<TaskConfig>,
    },
    /// A descendant reached a merge that belongs to this task (spec 002 §3.3).
    Arrived {
        /// The arrival.
        arrival: Box<Arrival>,
    },
    /// A child has come to its end: by itself, or because all of it went on into merges above.
    ChildEnded {
        /// The child.
        child: ChildName,
        /// Its end.
        end: Box<ChildEnd>,
    },
    /// More children of a large split are to be made.
    SpawnMore {
        /// The split.
        node: NodeId,
    },
    /// An agent has answered.
    AgentAnswered {
        /// The answer.
        answer: Box<AgentAnswer>,
    },
    /// An agent waits for people, or goes on.
    AgentWaits {
        /// The chat.
        chat: ChatId,
        /// The round that it is in.
        round: u32,
        /// The question or request for permission that is open now, as the event of the chat; none when the agent goes on.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        asked: Option<Box<ChatEvent>>,
        /// Whether the request is cut. The chat has the whole.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        cut: bool,
        /// Whether the request that was open before was declined, or withdrawn without an answer.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        declined: bool,
    },
    /// Answer a human step. One that comes before the question is asked is kept for it.
    Answer {
        /// The node that asks.
        node: NodeId,
        /// One value per question, by its name; for an approval `{"approved": bool, "comment": text}`.
        answers: Map<String, Value>,
    },
    /// The wait of a node is over: the awaited thing is there, or its time has come.
    Wake {
        /// The node.
        node: NodeId,
        /// The attempt that it waits after.
        attempt: u32,
        /// Of a grant, the request that it answers, counted from 1 within the node. Older versions did not number them.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        request: Option<u32>,
    },
    /// The place that a node's command waited for is there.
    BeginCommand {
        /// The node.
        node: NodeId,
        /// The attempt that begins.
        attempt: u32,
        /// The request that it answers, as for `Wake`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        request: Option<u32>,
    },
    /// A node's command gets no place: too many of its workspace wait.
    RefuseCommand {
        /// The node.
        node: NodeId,
        /// The attempt that does not begin.
        attempt: u32,
        /// The request that it answers, as for `Wake`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        request: Option<u32>,
    },
    /// A human step was not answered in time.
    Expire {
        /// The questions.
        question_id: QuestionId,
    },
    /// Stop (a request that also goes around the mailbox).
    Stop {
        /// The request.
        stop_id: StopId,
        /// The reason.
        reason: String,
    },
    /// Pause before the next node, or before these; a task passes this on to its children, as the two below.
    Pause {
        /// Nodes to pause before; none for the next one, whichever it is.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        before: Vec<NodeId>,
        /// The request, if it also goes around the mailbox.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        hold: Option<HoldId>,
    },
    /// Execute one node, then pause again.
    Step,
    /// Go on until the end, or the next breakpoint.
    Resume,
    /// Go before others that wait, or after them, from here on; a task passes this on to its children.
    Prioritize {
        /// Higher ones go first; -100 to 100.
        priority: i8,
    },
    /// Change the labels, also after the end.
    Label {
        /// Labels to set and to remove.
        changes: LabelChanges,
    },
    /// A child, or the task above, tells something about the budget.
    Budget {
        /// The message.
        told: Box<BudgetMessage>,
    },
    /// Delete the task: stop it, and take the records that it and its children left off the lists.
    Delete,
}

/// An arrival at a merge.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Arrival {
    /// The merge.
    pub merge: NodeId,
    /// The node before it.
    pub from: NodeId,
    /// The child, by the names from the merge's owner down, joined by `/`: the key of the set. Empty for the owner itself.
    pub child: String,
    /// The places of the same among their siblings: the order of the merge's input.
    pub place: Vec<u32>,
    /// How it was when it came.
    pub status: Status,
    /// Its output.
    pub output: Value,
}

/// How a child ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChildEnd {
    /// Its status; of one that went on into a merge, the status it had then.
    pub status: Status,
    /// Its output; null for one that went on into a merge.
    pub output: Value,
    /// Whether it went on into a merge above instead of ending by itself.
    pub merged: bool,
    /// Of a task whose children went on without it: how many of them, and of those below them, failed.
    #[serde(default, skip_serializing_if = "is_none")]
    pub lost: u32,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Error>,
}

fn is_none(number: &u32) -> bool {
    *number == 0
}

/// The usage of one execution of a node.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct NodeMetrics {
    /// From start to end, in milliseconds.
    pub duration_ms: u64,
    /// How long the task waited in the queue before it, in milliseconds.
    pub queue_ms: u64,
    /// Tokens of assembled context.
    pub context_tokens: u64,
    /// Tokens and money.
    #[serde(skip_serializing_if = "Usage::is_none")]
    pub usage: Usage,
    /// Tools called.
    pub tool_calls: u32,
}

/// The read-only context that a node was given (spec 002 §4).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AssembledContext {
    /// The profile; `global` for all of it.
    pub profile: String,
    /// Its items, in the order in which the node reads them.
    pub items: Vec<ContextItem>,
    /// Their tokens.
    pub tokens: u64,
    /// Items that matched and did not fit the budget.
    pub left_out: u32,
}

/// One remembered thing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ContextItem {
    /// `task`, `project` or `global`.
    pub store: String,
    /// Its key in the store.
    pub key: String,
    /// The content.
    pub content: Value,
    /// Its tags.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// Its tokens.
    pub tokens: u64,
    /// When it was remembered.
    pub at: Timestamp,
}

impl TaskId {
    /// The id of a new task without a parent, from an id that was drawn for it: the same bits, as version 8 (RFC 9562 §5.8).
    pub fn root(drawn: Uuid) -> Self {
        Self(uuid::Builder::from_custom_bytes(drawn.into_bytes()).into_uuid())
    }

    /// The task that people made, given the tasks above this one, the root first: the root, or this task itself where there is none above it.
    pub fn top(self, above: &[Self]) -> Self {
        above.first().copied().unwrap_or(self)
    }

    /// The id of a child: the same whenever it is computed. Ids of siblings lie beside each other in an index, in the order of the siblings, so that a
    /// commit for some of them changes a few pages and not a page for each: the first 32 bits are a hash of the parent, the next 16 are of
    /// the index, and the others a hash of the name. Children of a task whose id has another version, from before this rule, have version 5.
    pub fn child(self, name: &ChildName) -> Self {
        if self.0.get_version_num() != 8 {
            return Self::from_key(&self.to_string(), name.as_str());
        }
        let parent = Uuid::new_v5(&Uuid::NAMESPACE_OID, self.0.as_bytes()).as_u128() >> 96;
        let hashed = Uuid::new_v5(&self.0, name.as_str().as_bytes()).as_u128() & ((1 << 80) - 1);
        let order = u128::from(name.index() & 0xffff);
        Self::root(Uuid::from_u128(parent << 96 | order << 80 | hashed))
    }
}

/// The command that makes a task; the same task is made once.
pub fn start_command(task: TaskId) -> CommandId {
    CommandId::from_key(&task.to_string(), "start")
}

/// Whether this is the error of a task or a node that a stop ended, and not that of a task above it.
pub fn is_stop(error: &Error) -> bool {
    error.code == Code::Cancelled && error.message.starts_with(STOPPED)
}

const STOPPED: &str = "stopped: ";

/// The error of a task that was stopped.
pub fn stopped(reason: &str) -> Error {
    Error::new(Code::Cancelled, format!("{STOPPED}{reason}"))
}

#[cfg(test)]
mod tests;
