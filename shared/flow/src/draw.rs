//! Pictures of flows: Mermaid, DOT, SVG with a layout of our own, and lines of text. A run can be painted onto each.
//!
//! The same flow with the same visits gives the same bytes.

mod layout;
mod outline;
mod svg;
mod text;

pub use outline::outline;
pub use svg::svg;
pub use text::{dot, mermaid};

use crate::flow::{AskRule, Flow, Op};
use domain::{NodeId, task::Status};
use std::collections::HashMap;

/// The visits of a run to a node: their number, time and last status.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeVisits {
    /// How it ended, the last time.
    pub status: Option<Status>,
    /// How often it was executed, over all clones and subtasks.
    pub visits: u64,
    /// How long that took, all together, in milliseconds.
    pub duration_ms: u64,
    /// Whether it is executing.
    pub running: bool,
    /// Whether it may have been executed more often than was looked at.
    pub more: bool,
}

/// The visits of a run by node. Empty for a drawing without a run.
pub type RunVisits = HashMap<NodeId, NodeVisits>;

/// The name of a painted node's class, which selects its colour.
fn class(run_visits: &RunVisits, id: &NodeId) -> Option<&'static str> {
    let node_visits = run_visits.get(id)?;
    match (node_visits.running, node_visits.status) {
        (true, _) => Some("running"),
        (false, Some(Status::Success)) => Some("success"),
        (false, Some(Status::Failure)) => Some("failure"),
        (false, Some(Status::Partial)) => Some("partial"),
        (false, None) => None,
    }
}

/// The title of a node: its name, or its id.
fn title<'a>(flow: &'a Flow, id: &'a NodeId) -> &'a str {
    flow.nodes.get(id).and_then(|node| node.name.as_deref()).unwrap_or(id.as_str())
}

/// The operation of a node, in a few words; none for a node that returns its input.
fn does(flow: &Flow, id: &NodeId) -> Option<String> {
    Some(match &flow.nodes.get(id)?.op {
        Op::Identity => return None,
        Op::Expr(_) => "expression".into(),
        Op::Template(_) => "template".into(),
        Op::Tool { tool, .. } => format!("tool {tool}"),
        Op::Command(_) => "command".into(),
        Op::Function(name) => name.clone(),
        Op::Agent { agent, .. } => format!("agent {agent}"),
        Op::Ask(AskRule { approve: Some(_), .. }) => "approval".into(),
        Op::Ask(_) => "question".into(),
    })
}

/// The visits of a run to a node, in a few words, such as `3× · 1.2 s`; `3+×` when only a part of a large run was read.
fn did(run_visits: &RunVisits, id: &NodeId) -> Option<String> {
    let node_visits = run_visits.get(id).filter(|node| node.visits > 0)?;
    let visits = match (node_visits.visits, node_visits.more) {
        (visits, true) => format!("{visits}+× · "),
        (0 | 1, false) => String::new(),
        (visits, false) => format!("{visits}× · "),
    };
    Some(format!("{visits}{}", duration(node_visits.duration_ms)))
}

fn duration(ms: u64) -> String {
    match ms {
        0..1_000 => format!("{ms} ms"),
        1_000..60_000 => format!("{}.{} s", ms / 1_000, ms % 1_000 / 100),
        60_000..3_600_000 => format!("{} min {} s", ms / 60_000, ms % 60_000 / 1_000),
        _ => format!("{} h {} min", ms / 3_600_000, ms % 3_600_000 / 60_000),
    }
}
