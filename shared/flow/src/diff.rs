//! The result of a comparison of two runs.

mod json;

pub use json::{Difference, differences};

use domain::{NodeId, Status, TaskId, task::FlowRef, text::counted};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::{collections::BTreeMap, fmt};

/// Characters of a value that are shown as text.
const SHOWN: usize = 160;

/// How two runs compare.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TaskDiff {
    /// The first run.
    pub a: RunOf,
    /// The second run.
    pub b: RunOf,
    /// The first place where they part, from cause to effect; none when they did the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parts: Option<Divergence>,
    /// The runs of each node in both, by name.
    pub nodes: BTreeMap<NodeId, NodeDiff>,
}

/// A run that is compared.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunOf {
    /// The task.
    pub task_id: TaskId,
    /// Its flow, with the hash of the manifests that it ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow: Option<FlowRef>,
    /// How it ended; none while it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<Status>,
}

/// The first place where two runs differ.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Divergence {
    /// The task, by the names from the root down; empty for the root.
    pub task: String,
    /// The node; none when it is about the task itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<NodeId>,
    /// The kind of difference.
    pub what: DivergenceKind,
    /// The value in the first run; none when it had ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub a: Option<Value>,
    /// The value in the second run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub b: Option<Value>,
    /// For an input or an output: the places where the values differ, at most 50.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub differences: Vec<Difference>,
}

/// The kind of difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DivergenceKind {
    /// The input of the run, or of a node.
    Input,
    /// The output.
    Output,
    /// How it ended.
    Status,
    /// A denial by a policy.
    Denial,
    /// The edge along which the router sent the task.
    Route,
    /// How many children were made, or of which kind.
    Fork,
    /// The outputs that a merge took.
    Merge,
    /// Whether there is anything more at all: one run stopped or ended here.
    End,
}

/// One node in two runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NodeDiff {
    /// In the first.
    pub a: NodeTotals,
    /// In the second.
    pub b: NodeTotals,
    /// Whether it gave the same outputs for the same tasks in both.
    pub same: bool,
}

/// One node in one run, in all its tasks together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NodeTotals {
    /// How often it executed.
    pub runs: u64,
    /// How often it failed.
    pub failures: u64,
    /// How often it was tried again.
    pub retries: u64,
    /// Milliseconds in all.
    pub duration_ms: u64,
    /// Tokens read and written.
    pub tokens: u64,
    /// US dollars.
    pub cost_usd: f64,
    /// The sum of the hashes of its facts: the same set of facts has the same sum, in any order.
    #[serde(skip)]
    pub facts: u128,
}

impl fmt::Display for TaskDiff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let (Some(a), Some(b)) = (&self.a.flow, &self.b.flow)
            && a != b
        {
            writeln!(f, "the manifests differ: {} {} and {} {}", a.name, a.hash, b.name, b.hash)?;
        }
        match &self.parts {
            None => writeln!(f, "both did the same")?,
            Some(parting) => parting.fmt(f)?,
        }
        for (node, diff) in &self.nodes {
            let mark = if diff.same { "=" } else { "≠" };
            writeln!(f, "{mark} {node}: {} | {}", diff.a, diff.b)?;
        }
        Ok(())
    }
}

impl fmt::Display for Divergence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.what {
            DivergenceKind::Input => "input",
            DivergenceKind::Output => "output",
            DivergenceKind::Status => "status",
            DivergenceKind::Denial => "denials",
            DivergenceKind::Route => "route",
            DivergenceKind::Fork => "children",
            DivergenceKind::Merge => "merge",
            DivergenceKind::End => "end",
        };
        write!(f, "they part in the {what}")?;
        if let Some(node) = &self.node {
            write!(f, " of {node}")?;
        }
        match self.task.as_str() {
            "" => writeln!(f)?,
            task => writeln!(f, ", task {task}")?,
        }
        if self.differences.is_empty() {
            writeln!(f, "  a {}\n  b {}", short(self.a.as_ref()), short(self.b.as_ref()))?;
        }
        for Difference { path, a, b } in &self.differences {
            let path = if path.is_empty() { "/" } else { path };
            writeln!(f, "  {path}: {} | {}", short(a.as_ref()), short(b.as_ref()))?;
        }
        Ok(())
    }
}

impl fmt::Display for NodeTotals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {} failed, {} ms", counted(self.runs, "run"), self.failures, self.duration_ms)?;
        if self.retries > 0 {
            write!(f, ", {}", counted(self.retries, "retry"))?;
        }
        if self.tokens > 0 {
            write!(f, ", {}, {:.4} $", counted(self.tokens, "token"), self.cost_usd)?;
        }
        Ok(())
    }
}

/// A value on one line, cut to a length that people read.
fn short(value: Option<&Value>) -> String {
    let Some(value) = value else { return "nothing".into() };
    let text = value.to_string();
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text,
    }
}
