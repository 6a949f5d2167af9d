//! Pictures as text for others to lay out: Mermaid and DOT.

use super::{RunVisits, class, did, does, title};
use crate::{
    flow::Flow,
    graph::{GraphNode, Role},
};
use std::{collections::HashMap, fmt::Write as _};

/// The colours of statuses: name, fill, line.
const COLOURS: &[(&str, &str, &str)] = &[
    ("success", "#d3f0dc", "#1f883d"),
    ("failure", "#fddcd9", "#cf222e"),
    ("partial", "#fbe9bf", "#9a6700"),
    ("running", "#d6e7ff", "#0969da"),
];

/// The flow as a Mermaid flowchart.
pub fn mermaid(flow: &Flow, run_visits: &RunVisits) -> String {
    let mut out = String::from("flowchart TD\n");
    let places = places(flow);
    for (place, node) in flow.graph.nodes().iter().enumerate() {
        let (open, close) = match node.role {
            Role::Start => ("([", "])"),
            Role::Linear => ("[", "]"),
            Role::Decision => ("{", "}"),
            Role::Branch => ("{{", "}}"),
            Role::Split => ("[/", "\\]"),
            Role::Merge => ("[\\", "/]"),
            Role::Exit => ("(((", ")))"),
        };
        let label =
            lines(flow, run_visits, node).iter().map(|line| mermaid_text(line)).collect::<Vec<_>>().join("<br/>");
        let class = class(run_visits, &node.id).map(|class| format!(":::{class}")).unwrap_or_default();
        let _ = writeln!(out, "    n{place}{open}\"{label}\"{close}{class}");
    }
    for (place, node) in flow.graph.nodes().iter().enumerate() {
        for edge in &node.out {
            let to = places.get(edge.to.as_str()).copied().unwrap_or_default();
            let label = edge.label.as_ref().map(|label| format!("|\"{}\"|", mermaid_text(label))).unwrap_or_default();
            let _ = writeln!(out, "    n{place} -->{label} n{to}");
        }
    }
    if !run_visits.is_empty() {
        for (name, fill, line) in COLOURS {
            let _ = writeln!(out, "    classDef {name} fill:{fill},stroke:{line},color:#1f2328");
        }
    }
    out
}

/// The flow as a DOT graph.
pub fn dot(flow: &Flow, run_visits: &RunVisits) -> String {
    let name = dot_text(&flow.reference.name);
    let mut out = format!("digraph \"{name}\" {{\n    rankdir=TB;\n    node [fontname=\"sans-serif\", fontsize=11];\n");
    out.push_str("    edge [fontname=\"sans-serif\", fontsize=10];\n");
    for node in flow.graph.nodes() {
        let shape = match node.role {
            Role::Start => "oval",
            Role::Linear => "box",
            Role::Decision => "diamond",
            Role::Branch => "hexagon",
            Role::Split => "trapezium",
            Role::Merge => "invtrapezium",
            Role::Exit => "doubleoctagon",
        };
        let label = lines(flow, run_visits, node).iter().map(|line| dot_text(line)).collect::<Vec<_>>().join("\\n");
        let colours = class(run_visits, &node.id).and_then(|class| COLOURS.iter().find(|(name, ..)| *name == class));
        let style = colours
            .map(|(_, fill, line)| format!(", style=filled, fillcolor=\"{fill}\", color=\"{line}\""))
            .unwrap_or_default();
        let _ = writeln!(out, "    \"{}\" [shape={shape}, label=\"{label}\"{style}];", dot_text(node.id.as_str()));
    }
    for node in flow.graph.nodes() {
        for edge in &node.out {
            let label =
                edge.label.as_ref().map(|label| format!(" [label=\"{}\"]", dot_text(label))).unwrap_or_default();
            let (from, to) = (dot_text(node.id.as_str()), dot_text(edge.to.as_str()));
            let _ = writeln!(out, "    \"{from}\" -> \"{to}\"{label};");
        }
    }
    out.push_str("}\n");
    out
}

/// The lines of text in a node.
fn lines(flow: &Flow, run_visits: &RunVisits, node: &GraphNode) -> Vec<String> {
    let name = Some(title(flow, &node.id).to_string());
    [name, does(flow, &node.id), did(run_visits, &node.id)].into_iter().flatten().collect()
}

fn places(flow: &Flow) -> HashMap<&str, usize> {
    flow.graph.nodes().iter().enumerate().map(|(place, node)| (node.id.as_str(), place)).collect()
}

fn mermaid_text(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '"' => out.push_str("#quot;"),
            '#' => out.push_str("#35;"),
            '<' => out.push_str("#lt;"),
            '>' => out.push_str("#gt;"),
            letter if letter.is_control() => out.push(' '),
            letter => out.push(letter),
        }
    }
    out
}

fn dot_text(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '"' | '\\' => out.extend(['\\', letter]),
            letter if letter.is_control() => out.push(' '),
            letter => out.push(letter),
        }
    }
    out
}
