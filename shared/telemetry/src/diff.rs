//! The place at which two runs part (`buildscale task diff A B`): their traces are read side by side, line by line.

use super::{
    line::{NodeExecution, TraceFact, TraceLine},
    trace::Tracer,
};
use domain::{NodeId, Status, TaskId, task::NodeMetrics};
use flow::{
    canonical,
    diff::{Divergence, DivergenceKind, NodeDiff, NodeTotals, RunOf, TaskDiff, differences},
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

fn note(run: &mut RunOf, line: &TraceLine) {
    match &line.what {
        TraceFact::Began { flow: Some(flow), .. } if line.task.is_empty() => run.flow = Some(flow.clone()),
        TraceFact::Ended { status, .. } if line.task.is_empty() => run.status = Some(*status),
        _ => {}
    }
}

fn count(nodes: &mut BTreeMap<NodeId, NodeDiff>, line: &TraceLine, side: impl Fn(&mut NodeDiff) -> &mut NodeTotals) {
    let TraceFact::Node(visit) = &line.what else { return };
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
fn parting(a: Option<&TraceLine>, b: Option<&TraceLine>) -> Option<Divergence> {
    let (left, right) = match (a, b) {
        (Some(left), Some(right)) => (left, right),
        (None, None) => return None,
        (Some(only), None) | (None, Some(only)) => {
            return Some(at(only, DivergenceKind::End, a.map(value_of), b.map(value_of)));
        }
    };
    if left.task != right.task {
        // One of them made no such child, or stopped reading it earlier.
        return Some(at(left, DivergenceKind::End, Some(value_of(left)), Some(value_of(right))));
    }
    let values = |kind: DivergenceKind, a: &Value, b: &Value| Divergence {
        differences: differences(a, b, MOST),
        ..at(left, kind, Some(canonical::trace_value(a)), Some(canonical::trace_value(b)))
    };
    let other = |kind: DivergenceKind| at(left, kind, Some(value_of(left)), Some(value_of(right)));
    match (&left.what, &right.what) {
        (TraceFact::Node(one), TraceFact::Node(two)) if one.node == two.node => node_parting(left, one, two),
        (TraceFact::Node(_), TraceFact::Node(_)) => Some(other(DivergenceKind::Route)),
        (TraceFact::Began { start, input, .. }, TraceFact::Began { start: other_start, input: other_input, .. }) => {
            match start == other_start {
                false => Some(other(DivergenceKind::Route)),
                true => (input != other_input).then(|| values(DivergenceKind::Input, input, other_input)),
            }
        }
        (
            TraceFact::Ended { status, output, .. },
            TraceFact::Ended { status: other_status, output: other_output, .. },
        ) => match (status == other_status, output == other_output) {
            (true, true) => (left.text() != right.text()).then(|| other(DivergenceKind::End)),
            (true, false) => Some(values(DivergenceKind::Output, output, other_output)),
            (false, _) => Some(other(DivergenceKind::Status)),
        },
        (TraceFact::Routed { .. }, _) | (_, TraceFact::Routed { .. }) if left.text() != right.text() => {
            Some(other(DivergenceKind::Route))
        }
        (TraceFact::Forked { .. }, TraceFact::Forked { .. }) if left.text() != right.text() => {
            Some(other(DivergenceKind::Fork))
        }
        (
            TraceFact::Arrived { .. } | TraceFact::Merged { .. },
            TraceFact::Arrived { .. } | TraceFact::Merged { .. },
        ) if left.text() != right.text() => Some(other(DivergenceKind::Merge)),
        _ => (left.text() != right.text()).then(|| other(DivergenceKind::End)),
    }
}

fn node_parting(line: &TraceLine, a: &NodeExecution, b: &NodeExecution) -> Option<Divergence> {
    let values = |kind: DivergenceKind, left: &Value, right: &Value| Divergence {
        differences: differences(left, right, MOST),
        ..at(line, kind, Some(canonical::trace_value(left)), Some(canonical::trace_value(right)))
    };
    // The cause first: the input, the denials, the end, the output.
    if a.input != b.input {
        return Some(values(DivergenceKind::Input, &a.input, &b.input));
    }
    if a.denied != b.denied {
        return Some(at(line, DivergenceKind::Denial, Some(json!(a.denied)), Some(json!(b.denied))));
    }
    let code = |visit: &NodeExecution| visit.error.as_ref().map(|error| error.code);
    if a.status != b.status || code(a) != code(b) {
        let told = |visit: &NodeExecution| json!({ "status": visit.status, "error": visit.error });
        return Some(at(line, DivergenceKind::Status, Some(told(a)), Some(told(b))));
    }
    (a.output != b.output).then(|| values(DivergenceKind::Output, &a.output, &b.output))
}

fn at(line: &TraceLine, what: DivergenceKind, a: Option<Value>, b: Option<Value>) -> Divergence {
    let (task, node) = (line.task.to_string(), line.node().cloned());
    Divergence { task, node, what, a, b, differences: Vec::new() }
}

fn value_of(line: &TraceLine) -> Value {
    serde_json::from_str(&line.text()).unwrap_or_default()
}
