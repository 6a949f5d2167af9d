//! A flow as lines of text for terminals: its nodes in an order in which every edge leads down, each with its edges.
//!
//! ```text
//! pick  Choose a way  decision, expression
//! ├─ left → left
//! └─ right → right
//! ```

use super::{RunVisits, class, did, does};
use crate::{flow::Flow, graph::Graph};
use std::{
    collections::{BTreeSet, HashMap},
    fmt::Write as _,
};

/// The flow as an outline.
pub fn outline(flow: &Flow, run_visits: &RunVisits) -> String {
    let mut out = String::new();
    let nodes = flow.graph.nodes();
    for node in order(&flow.graph).into_iter().filter_map(|place| nodes.get(place)) {
        let name = flow.nodes.get(&node.id).and_then(|node| node.name.as_deref());
        let state = class(run_visits, &node.id).map(str::to_owned);
        let about = [Some(node.role.to_string()), does(flow, &node.id), did(run_visits, &node.id), state];
        let about: Vec<String> = about.into_iter().flatten().collect();
        let name = name.map(|name| format!("  {}", plain(name))).unwrap_or_default();
        let _ = writeln!(out, "{}{name}  {}", plain(node.id.as_str()), plain(&about.join(", ")));
        let last = node.out.len().saturating_sub(1);
        for (place, edge) in node.out.iter().enumerate() {
            let line = if place == last { "└─" } else { "├─" };
            let label = edge.label.as_ref().map(|label| format!(" {}", plain(label))).unwrap_or_default();
            let _ = writeln!(out, "{line}{label} → {}", plain(edge.to.as_str()));
        }
    }
    out
}

/// The positions of the nodes: each one after all from which an edge leads to it, otherwise as in the manifest.
fn order(graph: &Graph) -> Vec<usize> {
    let nodes = graph.nodes();
    let places: HashMap<&str, usize> =
        nodes.iter().enumerate().map(|(place, node)| (node.id.as_str(), place)).collect();
    let mut missing: Vec<usize> = nodes.iter().map(|node| node.inbound.len()).collect();
    let mut ready: BTreeSet<usize> = (0..nodes.len()).filter(|place| missing.get(*place) == Some(&0)).collect();
    let mut ordered = Vec::with_capacity(nodes.len());
    while let Some(place) = ready.pop_first() {
        ordered.push(place);
        for edge in nodes.get(place).into_iter().flat_map(|node| &node.out) {
            let Some(to) = places.get(edge.to.as_str()).copied() else { continue };
            let Some(left) = missing.get_mut(to) else { continue };
            *left = left.saturating_sub(1);
            if *left == 0 {
                ready.insert(to);
            }
        }
    }
    ordered
}

/// In one line.
fn plain(text: &str) -> String {
    text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect()
}
