//! The expressions and templates of nodes: each must be one, and read only outputs that its task has by then (steps 2 and 4).

use super::{
    Loader,
    report::{At, Faults, nearest, there_are},
};
use crate::{
    Graph,
    graph::GraphNode,
    manifest::{KeepManifest, NodeManifest, OpManifest},
    op,
};
use domain::NodeId;
use serde_json::Value;
use std::collections::HashSet;

/// A text that is more than a text.
#[derive(Clone, Copy)]
pub(super) enum Text<'a> {
    Expression(&'a str),
    Template(&'a str),
}

/// Every expression and template of a node, with its place in the node.
pub(super) fn texts<'a>(node: &'a NodeManifest) -> Vec<(String, Text<'a>)> {
    let mut found = Vec::new();
    let mut add = |pointer: &str, text: Option<Text<'a>>| found.extend(text.map(|text| (pointer.to_owned(), text)));
    add("/prompt", node.prompt.as_deref().map(Text::Template));
    add("/split/over", node.split.as_ref().and_then(|split| split.over.as_deref()).map(Text::Expression));
    add("/remember/key", node.remember.as_ref().and_then(|remember| remember.key.as_deref()).map(Text::Template));
    if let Some(ask) = &node.ask {
        add("/ask/approve", ask.approve.as_deref().map(Text::Template));
        for (index, question) in ask.questions.iter().enumerate() {
            add(&format!("/ask/questions/{index}/question"), Some(Text::Template(&question.question)));
        }
    }
    if let Some(OpManifest::Spec(op)) = &node.op {
        add("/op/expr", op.expr.as_deref().map(Text::Expression));
        for (index, word) in op.command.iter().flatten().enumerate() {
            add(&format!("/op/command/{index}"), Some(Text::Template(word)));
        }
        for (index, KeepManifest { from, to }) in op.keep.iter().enumerate() {
            add(&format!("/op/keep/{index}/from"), Some(Text::Template(from)));
            add(&format!("/op/keep/{index}/to"), Some(Text::Template(to)));
        }
        if let Some(template) = &op.template {
            inside("/op/template".into(), template, &mut found);
        }
        for (name, value) in op.args.iter().flatten() {
            inside(format!("/op/args/{}", escaped(name)), value, &mut found);
        }
    }
    found
}

fn inside<'a>(pointer: String, value: &'a Value, found: &mut Vec<(String, Text<'a>)>) {
    match value {
        Value::String(text) => found.push((pointer, Text::Template(text))),
        Value::Array(list) => {
            list.iter().enumerate().for_each(|(index, value)| inside(format!("{pointer}/{index}"), value, found));
        }
        Value::Object(map) => {
            map.iter().for_each(|(key, value)| inside(format!("{pointer}/{}", escaped(key)), value, found));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn escaped(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

/// Whether a text is a template.
pub(super) fn check_template(text: &str) -> Result<(), String> {
    op::template::check(&Value::String(text.into()))
}

/// Whether the calls in a template are such as can succeed.
pub(super) fn check_template_calls(text: &str) -> Result<(), String> {
    op::template::check_calls(&Value::String(text.into()))
}

/// Refuses a call that fails whenever it is evaluated.
pub(super) fn bad_call(faults: &mut Faults, at: At<'_>, why: &str) {
    let hint = "functions of texts are called like `input.name.trim()`, others like `max(input.list)`";
    faults.refuse(at, "bad_call", format!("a call fails whenever it is evaluated: {why}"), hint);
}

/// The nodes whose outputs an expression reads; none of one that is none.
pub(super) fn expression_reads(text: &str) -> Vec<String> {
    op::expr::outputs_read(text).unwrap_or_default()
}

fn template_reads(text: &str) -> Vec<String> {
    op::template::outputs_read(&Value::String(text.into())).unwrap_or_default()
}

/// A reason without the list of everything that a parser would have taken.
pub(super) fn short(reason: &str) -> String {
    match (reason.split_once(" expecting {"), reason.rsplit_once('}')) {
        (Some((before, _)), Some((_, after))) => format!("{before}{after}"),
        _ => reason.into(),
    }
}

impl Loader<'_> {
    /// The nodes whose outputs a text reads; none of one that is no expression, which has its own fault.
    fn reads(text: Text<'_>) -> Vec<String> {
        match text {
            Text::Expression(text) => expression_reads(text),
            Text::Template(text) => template_reads(text),
        }
    }

    /// Of nodes that there are, a task can read the outputs only of those that it has executed itself before.
    pub(super) fn check_reads(&mut self, graph: &Graph) {
        let nodes = std::mem::take(&mut self.docs.workflow.value.nodes);
        for (place, manifest) in nodes.iter().enumerate() {
            let Some(node) = manifest.id.as_deref().and_then(|id| graph.node(&NodeId::from(id))) else { continue };
            for (pointer, text) in texts(manifest) {
                for name in Self::reads(text) {
                    let Some(read) = graph.node(&NodeId::from(name.as_str())) else { continue };
                    let Some((message, hint)) = never_there(graph, node, read) else { continue };
                    let at = self.docs.workflow.at(&format!("/nodes/{place}{pointer}"));
                    self.faults.refuse(at, "output_not_there", message, hint);
                }
            }
        }
        self.docs.workflow.value.nodes = nodes;
    }

    /// A node whose output is read must be there; whether it comes in time is asked when the graph is known.
    pub(super) fn check_read_names(&mut self) {
        let nodes = std::mem::take(&mut self.docs.workflow.value.nodes);
        let ids: Vec<&str> = nodes.iter().filter_map(|node| node.id.as_deref()).collect();
        // Nodes whose id could not be read are not missed.
        let known = self.docs.workflow.listed && ids.len() == nodes.len();
        let there: HashSet<&str> = ids.iter().copied().collect();
        for (place, manifest) in nodes.iter().enumerate().filter(|_| known) {
            for (pointer, text) in texts(manifest) {
                for name in Self::reads(text).into_iter().filter(|name| !there.contains(name.as_str())) {
                    let hint = nearest(&name, ids.iter().copied(), "workflow.yaml").unwrap_or_default();
                    let at = self.docs.workflow.at(&format!("/nodes/{place}{pointer}"));
                    let message = format!("there is no node `{name}`, whose output this reads");
                    self.faults.refuse(at, "unknown_node", message, hint);
                }
            }
        }
        for (place, tool) in self.docs.tools.value.tools.iter().enumerate() {
            for (index, word) in tool.command.iter().flatten().enumerate() {
                let at = self.docs.tools.at(&format!("/tools/{place}/command/{index}"));
                if let Err(reason) = check_template(word) {
                    let message = format!("this is no template: {}", short(&reason));
                    self.faults.refuse(at, "bad_template", message, "a template is a text with CEL in `{{…}}`");
                } else if let Some(name) = template_reads(word).first() {
                    let message = format!("a tool reads its arguments only, not the output of `{name}`");
                    self.faults.refuse(at, "output_not_there", message, "give it as an argument, and read `input.…`");
                } else if let Err(why) = check_template_calls(word) {
                    bad_call(&mut self.faults, at, &why);
                }
            }
        }
        self.docs.workflow.value.nodes = nodes;
    }
}

/// Why the task that executes `node` never has the output of `read`, and a hint.
fn never_there(graph: &Graph, node: &GraphNode, read: &GraphNode) -> Option<(String, String)> {
    let (id, name) = (&node.id, &read.id);
    let is_before = graph.reaches(name, id);
    if is_before && read.forks == node.forks {
        return None;
    }
    let there = || {
        let before = graph.nodes().iter().filter(|each| graph.reaches(&each.id, id) && each.forks == node.forks);
        let names: Vec<&str> = before.map(|each| each.id.as_str()).collect();
        there_are(name.as_str(), &names, "workflow.yaml").map_or_else(
            || "it reads `input` only: nothing comes before it in its task".into(),
            |there| format!("before it in its task {there}"),
        )
    };
    Some(if id == name {
        (format!("`{id}` cannot read its own output"), there())
    } else if graph.reaches(id, name) {
        (format!("`{name}` comes after `{id}`, which reads its output"), there())
    } else if !is_before {
        (format!("`{name}` is on no way to `{id}`, which reads its output"), there())
    } else if node.forks.starts_with(&read.forks) {
        let hint = "clones and subtasks see outputs of their own only: give it along in the input, as part of each element \
                    that the split is over, or before the branch";
        (format!("`{name}` is executed by the task above `{id}`, which reads its output"), hint.into())
    } else {
        let hint = "the outputs of clones and subtasks come with the merge, as its `input`";
        (format!("`{name}` is executed by clones or subtasks below `{id}`, which reads its output"), hint.into())
    })
}
