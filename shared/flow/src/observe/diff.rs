//! Where two runs part (issue 3, "`buildscale task diff A B`"): their traces are read side by side, line by line.

use super::{
    canonical,
    json_diff::{Difference, differences},
    line::{Line, Visit, What},
    trace::Tracer,
};
use domain::{
    NodeId, Status, TaskId,
    task::{FlowRef, NodeMetrics},
};
use ports::Result;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::{collections::BTreeMap, fmt};

/// Differences of one value that are told.
const MOST: usize = 50;
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
    pub parts: Option<Parting>,
    /// What each node did in both, by name.
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

/// The first place where two runs part.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Parting {
    /// The task, by the names from the root down; empty for the root.
    pub task: String,
    /// The node; none when it is about the task itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<NodeId>,
    /// What differs there.
    pub what: PartingKind,
    /// What the first run has there; none when it had ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub a: Option<Value>,
    /// What the second run has there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub b: Option<Value>,
    /// For an input or an output: where the values differ, at most 50 places.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub differences: Vec<Difference>,
}

/// What differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PartingKind {
    /// What the run, or a node, was given.
    Input,
    /// What came out.
    Output,
    /// How it ended.
    Status,
    /// What a policy refused.
    Denial,
    /// Where the router sent the task.
    Route,
    /// How many children were made, or of which kind.
    Fork,
    /// What a merge took.
    Merge,
    /// Whether there is anything more at all: one run stopped or ended here.
    End,
}

/// What one node did in two runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NodeDiff {
    /// In the first.
    pub a: Tally,
    /// In the second.
    pub b: Tally,
    /// Whether it gave the same outputs for the same tasks in both.
    pub same: bool,
}

/// What one node did in one run, in all its tasks together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Tally {
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
    /// The sum of the hashes of what it did: the same set of facts has the same sum, in any order.
    #[serde(skip)]
    facts: u128,
}

/// Compares two runs.
pub(super) async fn compare(tasks: (TaskId, TaskId), mut a: Tracer, mut b: Tracer) -> Result<TaskDiff> {
    let run = |task_id| RunOf { task_id, flow: None, status: None };
    let mut diff = TaskDiff { a: run(tasks.0), b: run(tasks.1), parts: None, nodes: BTreeMap::new() };
    loop {
        let (left, right) = (a.next().await?, b.next().await?);
        if left.is_none() && right.is_none() {
            break;
        }
        if diff.parts.is_none() {
            diff.parts = parting(left.as_ref(), right.as_ref());
        }
        if let Some(line) = &left {
            count(&mut diff.nodes, line, |node| &mut node.a);
            note(&mut diff.a, line);
        }
        if let Some(line) = &right {
            count(&mut diff.nodes, line, |node| &mut node.b);
            note(&mut diff.b, line);
        }
    }
    for node in diff.nodes.values_mut() {
        node.same = node.a.runs == node.b.runs && node.a.facts == node.b.facts;
    }
    Ok(diff)
}

fn note(run: &mut RunOf, line: &Line) {
    match &line.what {
        What::Began { flow: Some(flow), .. } if line.task.is_empty() => run.flow = Some(flow.clone()),
        What::Ended { status, .. } if line.task.is_empty() => run.status = Some(*status),
        _ => {}
    }
}

fn count(nodes: &mut BTreeMap<NodeId, NodeDiff>, line: &Line, side: impl Fn(&mut NodeDiff) -> &mut Tally) {
    let What::Node(visit) = &line.what else { return };
    let NodeMetrics { duration_ms, usage, .. } = visit.metrics;
    let tally = side(nodes.entry(visit.node.clone()).or_default());
    tally.runs += 1;
    tally.failures += u64::from(visit.status == Status::Failure);
    tally.retries += u64::from(visit.retries);
    tally.duration_ms += duration_ms;
    tally.tokens += usage.input_tokens + usage.output_tokens;
    tally.cost_usd += usage.cost_usd;
    let fact = canonical::hash(&json!([line.task, visit.status, visit.output])).to_string();
    let half = fact.get(..32).and_then(|digits| u128::from_str_radix(digits, 16).ok());
    tally.facts = tally.facts.wrapping_add(half.unwrap_or_default());
}

/// What differs between two lines at the same place of two traces.
fn parting(a: Option<&Line>, b: Option<&Line>) -> Option<Parting> {
    let (left, right) = match (a, b) {
        (Some(left), Some(right)) => (left, right),
        (None, None) => return None,
        (Some(only), None) | (None, Some(only)) => {
            return Some(at(only, PartingKind::End, a.map(value_of), b.map(value_of)));
        }
    };
    if left.task != right.task {
        // One of them made no such child, or stopped reading it earlier.
        return Some(at(left, PartingKind::End, Some(value_of(left)), Some(value_of(right))));
    }
    let values = |kind: PartingKind, a: &Value, b: &Value| Parting {
        differences: differences(a, b, MOST),
        ..at(left, kind, Some(canonical::shown(a)), Some(canonical::shown(b)))
    };
    let other = |kind: PartingKind| at(left, kind, Some(value_of(left)), Some(value_of(right)));
    match (&left.what, &right.what) {
        (What::Node(one), What::Node(two)) if one.node == two.node => node_parting(left, one, two),
        (What::Node(_), What::Node(_)) => Some(other(PartingKind::Route)),
        (What::Began { start, input, .. }, What::Began { start: other_start, input: other_input, .. }) => {
            match start == other_start {
                false => Some(other(PartingKind::Route)),
                true => (input != other_input).then(|| values(PartingKind::Input, input, other_input)),
            }
        }
        (What::Ended { status, output, .. }, What::Ended { status: other_status, output: other_output, .. }) => {
            match (status == other_status, output == other_output) {
                (true, true) => (left.text() != right.text()).then(|| other(PartingKind::End)),
                (true, false) => Some(values(PartingKind::Output, output, other_output)),
                (false, _) => Some(other(PartingKind::Status)),
            }
        }
        (What::Routed { .. }, _) | (_, What::Routed { .. }) if left.text() != right.text() => {
            Some(other(PartingKind::Route))
        }
        (What::Forked { .. }, What::Forked { .. }) if left.text() != right.text() => Some(other(PartingKind::Fork)),
        (What::Arrived { .. } | What::Merged { .. }, What::Arrived { .. } | What::Merged { .. })
            if left.text() != right.text() =>
        {
            Some(other(PartingKind::Merge))
        }
        _ => (left.text() != right.text()).then(|| other(PartingKind::End)),
    }
}

fn node_parting(line: &Line, a: &Visit, b: &Visit) -> Option<Parting> {
    let values = |kind: PartingKind, left: &Value, right: &Value| Parting {
        differences: differences(left, right, MOST),
        ..at(line, kind, Some(canonical::shown(left)), Some(canonical::shown(right)))
    };
    // The cause first: what was given, what was refused, how it ended, what it gave.
    if a.input != b.input {
        return Some(values(PartingKind::Input, &a.input, &b.input));
    }
    if a.denied != b.denied {
        return Some(at(line, PartingKind::Denial, Some(json!(a.denied)), Some(json!(b.denied))));
    }
    let code = |visit: &Visit| visit.error.as_ref().map(|error| error.code);
    if a.status != b.status || code(a) != code(b) {
        let told = |visit: &Visit| json!({ "status": visit.status, "error": visit.error });
        return Some(at(line, PartingKind::Status, Some(told(a)), Some(told(b))));
    }
    (a.output != b.output).then(|| values(PartingKind::Output, &a.output, &b.output))
}

fn at(line: &Line, what: PartingKind, a: Option<Value>, b: Option<Value>) -> Parting {
    let (task, node) = (line.task.to_string(), line.node().cloned());
    Parting { task, node, what, a, b, differences: Vec::new() }
}

fn value_of(line: &Line) -> Value {
    serde_json::from_str(&line.text()).unwrap_or_default()
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

impl fmt::Display for Parting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.what {
            PartingKind::Input => "input",
            PartingKind::Output => "output",
            PartingKind::Status => "status",
            PartingKind::Denial => "denials",
            PartingKind::Route => "route",
            PartingKind::Fork => "children",
            PartingKind::Merge => "merge",
            PartingKind::End => "end",
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

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} runs, {} failed, {} ms", self.runs, self.failures, self.duration_ms)?;
        if self.retries > 0 {
            write!(f, ", {} retries", self.retries)?;
        }
        if self.tokens > 0 {
            write!(f, ", {} tokens, {:.4} $", self.tokens, self.cost_usd)?;
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
