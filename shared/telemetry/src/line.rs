//! One line of a trace: a fact about a run that is the same in every run of the same input with the same answers.

use super::stage::Denial;
use domain::{
    Error, FilePath, NodeId, Status,
    task::{ChildKind, ChildName, FlowRef, NodeMetrics},
};
use flow::canonical;
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// One fact.
#[derive(Clone, Debug)]
pub(super) struct TraceLine {
    /// The task: the names from the traced task down to it, joined by `/`; empty for the traced task itself.
    pub task: Arc<str>,
    /// The fact.
    pub what: TraceFact,
}

/// A fact of a trace.
#[derive(Clone, Debug)]
pub(super) enum TraceFact {
    /// A task began.
    Began { flow: Option<FlowRef>, kind: Option<ChildKind>, start: NodeId, input: Value, files: Vec<FilePath> },
    /// A node executed.
    Node(Box<NodeExecution>),
    /// The router sent the task on.
    Routed { from: NodeId, to: NodeId },
    /// Children were made; their lines follow.
    Forked { node: NodeId, kind: ChildKind, to: Vec<NodeId>, total: u32 },
    /// The output of a child is in the input of a merge.
    Arrived { merge: NodeId, child: String, from: NodeId, status: Status, output: Arc<Value> },
    /// A merge begins.
    Merged { node: NodeId, failed: Vec<ChildName>, cancelled: Vec<ChildName> },
    /// The task went on into a merge of a task above it.
    WentUp { merge: NodeId },
    /// The task has come to its end.
    Ended { status: Status, output: Value, exit: Option<NodeId>, error: Option<Error> },
    /// The task was stopped because its result was not needed. How far it had come is chance.
    Stopped,
}

/// One execution of a node.
#[derive(Clone, Debug)]
pub(super) struct NodeExecution {
    pub node: NodeId,
    pub input: Arc<Value>,
    pub output: Value,
    pub status: Status,
    pub error: Option<Error>,
    pub denied: Vec<Denial>,
    /// Not part of the text: usage differs from run to run.
    pub metrics: NodeMetrics,
    /// Not part of the text, either.
    pub retries: u32,
}

impl TraceLine {
    /// Its text, with the line's end.
    pub fn text(&self) -> String {
        let mut fields = Map::new();
        let mut put = |key: &str, value: Value| {
            fields.insert(key.to_owned(), value);
        };
        put("task", json!(self.task));
        match &self.what {
            TraceFact::Began { flow, kind, start, input, files } => {
                put("began", json!(start));
                if let Some(flow) = flow {
                    put("flow", json!(flow.name));
                    put("manifests", json!(flow.hash));
                }
                if let Some(kind) = kind {
                    put("kind", json!(kind));
                }
                put("input", canonical::trace_value(input));
                if !files.is_empty() {
                    put("files", json!(files));
                }
            }
            TraceFact::Node(visit) => {
                put("node", json!(visit.node));
                put("status", json!(visit.status));
                put("input", canonical::trace_value(&visit.input));
                put("output", canonical::trace_value(&visit.output));
                if let Some(error) = &visit.error {
                    put("error", json!(error.code));
                }
                if !visit.denied.is_empty() {
                    put("denied", json!(visit.denied));
                }
            }
            TraceFact::Routed { from, to } => {
                put("routed", json!(from));
                put("to", json!(to));
            }
            TraceFact::Forked { node, kind, to, total } => {
                put("forked", json!(node));
                put("kind", json!(kind));
                put("to", json!(to));
                put("total", json!(total));
            }
            TraceFact::Arrived { merge, child, from, status, output } => {
                put("arrived", json!(merge));
                put("child", json!(child));
                put("from", json!(from));
                put("status", json!(status));
                put("sha256", json!(canonical::hash(output)));
            }
            TraceFact::Merged { node, failed, cancelled } => {
                put("merged", json!(node));
                put("failed", json!(failed));
                put("cancelled", json!(cancelled));
            }
            TraceFact::WentUp { merge } => put("went_up", json!(merge)),
            TraceFact::Ended { status, output, exit, error } => {
                put("ended", json!(status));
                put("exit", json!(exit));
                put("output", canonical::trace_value(output));
                if let Some(error) = error {
                    put("error", json!(error.code));
                }
            }
            TraceFact::Stopped => put("stopped", json!(true)),
        }
        let mut text = Value::Object(fields).to_string();
        text.push('\n');
        text
    }

    /// The node that it is about; none for the task itself.
    pub fn node(&self) -> Option<&NodeId> {
        match &self.what {
            TraceFact::Node(visit) => Some(&visit.node),
            TraceFact::Routed { from: node, .. }
            | TraceFact::Forked { node, .. }
            | TraceFact::Arrived { merge: node, .. }
            | TraceFact::Merged { node, .. }
            | TraceFact::WentUp { merge: node } => Some(node),
            TraceFact::Ended { exit, .. } => exit.as_ref(),
            TraceFact::Began { start, .. } => Some(start),
            TraceFact::Stopped => None,
        }
    }
}
