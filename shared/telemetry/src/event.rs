//! Facts for observers: one committed event of a task, with the data that places it.

use domain::{
    NodeId, TaskConfig, TaskEvent, TaskId, Timestamp, TraceContext, WorkspaceId, json_length,
    task::{FlowRef, Origin},
};
use engine::machine::TaskState;
use flow::{Flow, flow::Op};
use serde::Serialize;
use serde_json::Value;

/// One event of a task. As JSON it is what observers read, so its shape is stable: fields are only ever added.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TaskFact {
    /// The workspace.
    pub workspace_id: WorkspaceId,
    /// The task.
    pub task_id: TaskId,
    /// The task that people made: itself, or the first of those above it.
    pub root_task_id: TaskId,
    /// The task that made it, for a clone or a subtask.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent_task_id: Option<TaskId>,
    /// Its name below the root, for a clone or a subtask.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub child: Option<String>,
    /// Its flow.
    pub flow: FlowRef,
    /// The event's number in the task's log: with the task's id it is the key by which a sink recognises a repeated event.
    pub number: u64,
    /// When it was committed.
    pub at: Timestamp,
    /// The event's name, as on the task's event stream.
    pub event: &'static str,
    /// Its data, as on the task's event stream, without secrets.
    pub data: Value,
    /// The trace that the request for the task came in, where it named one.
    #[serde(rename = "traceparent", skip_serializing_if = "Option::is_none")]
    pub trace: Option<TraceContext>,
    /// The part of the manifest about its node.
    #[serde(skip)]
    pub about: Option<NodeAbout>,
    /// When the task was made.
    #[serde(skip)]
    pub created_at: Timestamp,
    /// The length of the data as JSON, in bytes.
    #[serde(skip)]
    pub bytes: usize,
}

/// The part of a node's manifest that observers need.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeAbout {
    /// The node.
    pub node: NodeId,
    /// Its role.
    pub role: String,
    /// For an agent node, the agent.
    pub agent: Option<String>,
    /// For an agent node, `provider/model` where the manifest names one.
    pub model: Option<String>,
}

impl TaskFact {
    pub(super) fn new(
        config: &TaskConfig,
        flow: Option<&Flow>,
        (number, at): (u64, Timestamp),
        node: Option<&NodeId>,
        (event, data): (&'static str, Value),
    ) -> Self {
        let origin = config.origin.as_ref();
        let bytes = json_length(&data);
        Self {
            workspace_id: config.workspace,
            task_id: config.task,
            root_task_id: config.root(),
            parent_task_id: origin.map(|origin| origin.parent),
            child: origin.map(path),
            flow: config.flow.clone(),
            number,
            at,
            event,
            data,
            trace: config.trace,
            about: flow.zip(node).and_then(|(flow, node)| NodeAbout::of(flow, node)),
            created_at: config.created_at,
            bytes,
        }
    }
}

impl NodeAbout {
    fn of(flow: &Flow, id: &NodeId) -> Option<Self> {
        let node = flow.nodes.get(id)?;
        let agent = match &node.op {
            Op::Agent { agent, .. } => Some(agent.clone()),
            _ => None,
        };
        let model = agent.as_ref().and_then(|agent| flow.agents.get(agent)?.model.clone());
        Some(Self { node: id.clone(), role: node.role.to_string(), agent, model })
    }
}

/// The node that an event is about.
pub(super) fn node_of<'a>(event: &'a TaskEvent, state: &'a TaskState) -> Option<&'a NodeId> {
    match event {
        TaskEvent::NodeStarted { node, .. }
        | TaskEvent::ContextAssembled { node, .. }
        | TaskEvent::Denied { node, .. }
        | TaskEvent::AgentAsked { node, .. }
        | TaskEvent::AgentReplied { node, .. }
        | TaskEvent::AgentWaits { node, .. }
        | TaskEvent::ToolUsed { node, .. }
        | TaskEvent::PlanStep { node, .. }
        | TaskEvent::OutputRejected { node, .. }
        | TaskEvent::Asked { node, .. }
        | TaskEvent::Answered { node, .. }
        | TaskEvent::NodeFinished { node, .. }
        | TaskEvent::Forked { node, .. }
        | TaskEvent::Merged { node, .. }
        | TaskEvent::PausedBefore { node, .. } => Some(node),
        TaskEvent::Created { .. } => state.config.as_ref().map(|config| &config.start),
        _ => None,
    }
}

fn path(origin: &Origin) -> String {
    origin.line.iter().map(|name| name.as_str()).collect::<Vec<_>>().join("/")
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use domain::Sha256;
    use serde_json::json;
    use uuid::Uuid;

    /// The end of a node, as the fact with this number.
    pub fn fact(number: u64) -> TaskFact {
        let data = json!({ "node": "plan", "status": "success" });
        TaskFact {
            workspace_id: WorkspaceId(Uuid::nil()),
            task_id: TaskId(Uuid::nil()),
            root_task_id: TaskId(Uuid::nil()),
            parent_task_id: None,
            child: None,
            flow: FlowRef { name: "flow".into(), hash: Sha256::of(b"flow") },
            number,
            at: Timestamp::default(),
            event: "node_finished",
            bytes: json_length(&data),
            data,
            trace: None,
            about: None,
            created_at: Timestamp::default(),
        }
    }
}
