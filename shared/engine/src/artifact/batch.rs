//! The artifacts of a task, from its log. Pure: the same events give the same batch.

use super::{ArtifactKind, Entry};
use domain::{
    NodeId, Status, TaskEvent, Timestamp,
    task::{NodeMetrics, ToolUse},
};
use flow::{flow::Flow, manifest};
use serde_json::{Value, json};

/// The rules of a flow for its artifacts (`artifacts.yaml`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Whether anything is.
    pub enabled: bool,
    /// Validated outputs.
    pub outputs: bool,
    /// Results of tools, and prompts of agents.
    pub tool_results: bool,
    /// The usage of stages.
    pub telemetry: bool,
    /// Of these nodes only, and all their outputs; when empty of all, and the outputs that have a schema.
    pub nodes: Vec<String>,
    /// Of a longer content only the digest is kept, in bytes of JSON.
    pub max_bytes: usize,
    /// Days until the index forgets them; never when none.
    pub retention_days: Option<u32>,
}

impl Default for Rules {
    fn default() -> Self {
        let (enabled, max_bytes) = (true, 1024 * 1024);
        let (outputs, tool_results, telemetry) = (true, true, true);
        Self { enabled, outputs, tool_results, telemetry, nodes: Vec::new(), max_bytes, retention_days: None }
    }
}

impl From<&manifest::Artifacts> for Rules {
    fn from(manifest: &manifest::Artifacts) -> Self {
        Self {
            enabled: manifest.enabled,
            outputs: manifest.outputs,
            tool_results: manifest.tool_results,
            telemetry: manifest.telemetry,
            nodes: manifest.nodes.clone(),
            retention_days: manifest.retention_days,
            ..Self::default()
        }
    }
}

impl Rules {
    fn keep(&self, kind: ArtifactKind, node: &NodeId) -> bool {
        let wanted = match kind {
            ArtifactKind::Output => self.outputs,
            ArtifactKind::ToolResult | ArtifactKind::Prompt => self.tool_results,
            ArtifactKind::Telemetry => self.telemetry,
        };
        self.enabled && wanted && (self.nodes.is_empty() || self.nodes.iter().any(|name| name == node.as_str()))
    }
}

/// The artifacts of one task as they are gathered from its log.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    rules: Rules,
    /// The artifacts to keep, in the order of the log.
    pub(super) entries: Vec<Entry>,
    /// The execution that the log is at.
    running: Option<(NodeId, u32, Timestamp)>,
    /// The entry of the tool that the node which is executed called last, where its output is cut.
    cut: Option<usize>,
    stages: Vec<Value>,
    stages_left_out: u64,
}

/// The most stages that telemetry tells one by one.
const STAGES: usize = 1000;

impl Batch {
    /// An empty one.
    pub fn new(rules: Rules) -> Self {
        Self { rules, ..Self::default() }
    }

    /// The rules that it is gathered by.
    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// Adds one thing by hand; the rules have a say.
    pub fn add(&mut self, entry: Entry) {
        let keep = entry.node.as_ref().is_none_or(|node| self.rules.keep(entry.kind, node));
        if self.rules.enabled && keep {
            self.entries.push(entry);
        }
    }

    /// Takes the artifacts of the next event of the log. Outputs are kept of nodes that have a schema for them, and of those
    /// that the rules name.
    pub fn take(&mut self, flow: &Flow, event: TaskEvent) {
        match event {
            TaskEvent::NodeStarted { node, attempt, at, .. } => {
                self.cut = None;
                self.running = Some((node, attempt, at));
            }
            TaskEvent::ToolUsed { node, used } => {
                let is_cut = used.output.ends_with('…');
                let before = self.entries.len();
                self.tool(&node, *used);
                self.cut = (is_cut && self.entries.len() > before).then_some(before);
            }
            TaskEvent::AgentAsked { node, chat, round, prompt } => {
                let content = json!({ "chat_id": chat, "round": round, "prompt": prompt });
                self.of_running(ArtifactKind::Prompt, &node, content);
            }
            TaskEvent::AgentReplied { node, answer } => {
                answer.tools.into_iter().for_each(|used| self.tool(&node, used));
            }
            TaskEvent::NodeFinished { node, attempt, status, output, metrics, at, .. } => {
                self.stage(&node, attempt, status, &metrics, at);
                // A node that calls a tool passes on the tool's output: the whole of it.
                let cut = self.cut.take().filter(|_| status != Status::Failure);
                if let Some(entry) = cut.and_then(|cut| self.entries.get_mut(cut)) {
                    entry.content["output"] = match &output {
                        Value::String(text) => text.as_str().into(),
                        other => other.to_string().into(),
                    };
                }
                let schema = flow.nodes.get(&node).and_then(|node| node.schema_out.clone());
                let is_named = self.rules.nodes.iter().any(|name| name == node.as_str());
                if (schema.is_some() || is_named) && status != Status::Failure {
                    let kind = ArtifactKind::Output;
                    self.add(Entry { kind, node: Some(node), attempt, schema, at, content: output });
                }
            }
            _ => {}
        }
    }

    fn tool(&mut self, node: &NodeId, used: ToolUse) {
        self.of_running(ArtifactKind::ToolResult, node, serde_json::to_value(used).unwrap_or_default());
    }

    /// Adds the results of a node in the middle of its execution.
    fn of_running(&mut self, kind: ArtifactKind, node: &NodeId, content: Value) {
        let (attempt, at) = match &self.running {
            Some((running, attempt, at)) if running == node => (*attempt, *at),
            _ => (1, Timestamp::default()),
        };
        self.add(Entry { kind, node: Some(node.clone()), attempt, schema: None, at, content });
    }

    fn stage(&mut self, node: &NodeId, attempt: u32, status: Status, metrics: &NodeMetrics, at: Timestamp) {
        if !self.rules.keep(ArtifactKind::Telemetry, node) {
            return;
        }
        if self.stages.len() == STAGES {
            self.stages_left_out += 1;
            return;
        }
        self.stages.push(json!({ "node": node, "attempt": attempt, "status": status, "metrics": metrics, "at": at }));
    }

    /// Ends the batch: with telemetry, where there is anything else to keep. Telemetry alone is in the log and in the
    /// metrics already, and not worth a file per task.
    pub(super) fn end(&mut self) {
        let Some(last) = self.entries.iter().map(|entry| entry.at).max() else { return };
        let stages = std::mem::take(&mut self.stages);
        if !stages.is_empty() {
            let content = json!({ "stages": stages, "left_out": self.stages_left_out });
            let (kind, schema) = (ArtifactKind::Telemetry, None);
            self.entries.push(Entry { kind, node: None, attempt: 1, schema, at: last, content });
        }
    }
}
