//! The place at which two runs part (`buildscale task diff A B`): their traces are read side by side, line by line.

use super::{
    line::{Line, Visit, What},
    trace::Tracer,
};
use domain::{NodeId, Status, TaskId, task::NodeMetrics};
use flow::{
    canonical,
    diff::{NodeDiff, Parting, PartingKind, RunOf, Tally, TaskDiff, differences},
};
use ports::Result;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Differences of one value that are told.
const MOST: usize = 50;

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

/// The difference between two lines at the same place of two traces.
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
    // The cause first: the input, the denials, the end, the output.
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
