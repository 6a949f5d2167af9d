//! A task as lists and clients see it.

use super::{FlowRef, Handoff, NodeId, Origin, Status, TaskPhase, Wait, above};
use crate::{Budget, Error, Labels, TaskId, Timestamp, Usage, WorkspaceEvent, WorkspaceId};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A task as lists and clients see it; written with the log entries that change it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TaskView {
    /// Its id.
    pub task_id: TaskId,
    /// Its workspace.
    pub workspace_id: WorkspaceId,
    /// Its flow, with the hash of the manifests it began with.
    pub flow: FlowRef,
    /// Its labels.
    #[serde(default, skip_serializing_if = "Labels::is_empty")]
    pub labels: Labels,
    /// Its state.
    pub phase: TaskPhase,
    /// Its outcome, once `phase` is `finished`. Before that it tells only that nothing has failed so far (`success`), or that something has.
    pub status: Status,
    /// The node that executes or waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<NodeId>,
    /// Why it is parked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parked_reason: Option<String>,
    /// The open question, as its event, while it waits for a person.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waiting_for: Vec<Value>,
    /// Whether the agent of its node waits for people: the list of what waits has the request.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub agent_waits: bool,
    /// The wait of its node, if it is not for an answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait: Option<Wait>,
    /// Its origin, for a child.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
    /// The version of a file that started it, where one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handoff: Option<Box<Handoff>>,
    /// Its output, once it is finished.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Value>,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Error>,
    /// The priority: when not all tasks can run, those with higher values go first. Left out where it is 0.
    #[serde(default, skip_serializing_if = "is_usual")]
    pub priority: i8,
    /// Nodes executed.
    pub steps: u64,
    /// Children made.
    pub children: u64,
    /// Its usage, without its children's.
    pub usage: Usage,
    /// The budget of its agents and of those of all tasks below it, where there is one.
    #[serde(default, skip_serializing_if = "Budget::is_none")]
    pub budget: Budget,
    /// Where there is a budget: the usage of children that have ended, and of all below them.
    #[serde(default, skip_serializing_if = "Usage::is_none")]
    pub usage_below: Usage,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Timestamp>,
}

impl TaskView {
    /// The tasks above this one, the root first.
    pub fn above(&self) -> &[TaskId] {
        above(self.origin.as_ref())
    }

    /// The task that people made: this one, or the one at the top of the tasks above it.
    pub fn root(&self) -> TaskId {
        self.task_id.top(self.above())
    }

    /// The event that tells a workspace's clients of this state; none for a clone or subtask, which its parent's stream tells of.
    pub fn event(&self) -> Option<WorkspaceEvent> {
        self.origin.is_none().then(|| WorkspaceEvent::TaskUpdated {
            task_id: self.task_id,
            flow: self.flow.name.clone(),
            phase: self.phase,
            status: self.status,
            asks: self.node.clone().filter(|_| !self.waiting_for.is_empty()),
            finished_at: self.finished_at,
        })
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
fn is_usual(priority: &i8) -> bool {
    *priority == 0
}
