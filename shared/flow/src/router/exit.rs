//! The error of an exit that makes a failure of each task: it tells how the task came there, and the value that came along. A person who has
//! declined something, or whose agent has given up, reads it without the history.

use crate::graph::{Graph, GraphNode, Role};
use domain::{Code, Error, NodeId};
use serde_json::Value;

/// The most characters of a value that the error tells.
const MAX_TOLD: usize = 400;

/// Why a task that has come to `exit` with the value `came` fails. `from` is the node before the exit; none where the state does not have it.
pub(super) fn always_fails(graph: &Graph, exit: &GraphNode, from: Option<&NodeId>, came: &Value) -> Error {
    let always = format!("the exit {} always fails", exit.id);
    let Some(before) = from.and_then(|from| graph.node(from)).or_else(|| only_node_before(graph, exit, came)) else {
        let error = Error::new(Code::Unprocessable, with_words(always, &in_words(came)));
        return error.detail("exit", exit.id.as_str()).hint("the history says which node came before it");
    };
    let from = &before.id;
    let chosen = before.selected_edge(came).filter(|edge| before.role == Role::Decision && edge.to == exit.id);
    let (message, hint) = match (chosen, caught_failure(came)) {
        (Some(edge), _) => {
            let label = edge.label.as_deref().unwrap_or(edge.to.as_str());
            // A text alone is the edge.
            let told = if came.is_string() { String::new() } else { in_words(came) };
            let message = with_words(format!("{always}: {from} chose {label}"), &told);
            (message, format!("a re-run from {from} decides again"))
        }
        (None, Some(why)) => {
            let message = with_words(format!("{always}: {from} failed"), &cut(why));
            (message, format!("a retry runs {from} again"))
        }
        (None, None) => {
            let message = with_words(format!("{always}: the task came from {from}"), &in_words(came));
            (message, format!("a re-run from {from} may come to another end"))
        }
    };
    Error::new(Code::Unprocessable, message).hint(hint).detail("exit", exit.id.as_str()).detail("from", from.as_str())
}

/// The message of the failure that an edge took, with the input of the node that failed.
fn caught_failure(came: &Value) -> Option<&str> {
    let fields = came.as_object().filter(|fields| fields.len() == 2 && fields.contains_key("input"))?;
    fields.get("error")?.get("message")?.as_str()
}

/// The node from which the task must have come, if the graph and the value leave one alone.
fn only_node_before<'a>(graph: &'a Graph, exit: &GraphNode, came: &Value) -> Option<&'a GraphNode> {
    let before: Vec<&GraphNode> = exit.inbound.iter().filter_map(|id| graph.node(id)).collect();
    let chose = |node: &&GraphNode| {
        node.role == Role::Decision && node.selected_edge(came).is_some_and(|edge| edge.to == exit.id)
    };
    only(before.iter().copied()).or_else(|| only(before.iter().copied().filter(chose)))
}

fn only<'a>(mut nodes: impl Iterator<Item = &'a GraphNode>) -> Option<&'a GraphNode> {
    let first = nodes.next()?;
    nodes.all(|node| node.id == first.id).then_some(first)
}

fn with_words(text: String, told: &str) -> String {
    if told.is_empty() { text } else { format!("{text} ({told})") }
}

/// A value for people: `approved: no; comment: too dear`. The edge that a decision chose is left out.
fn in_words(value: &Value) -> String {
    let Value::Object(fields) = value else { return cut(&in_word(value)) };
    let mut words = Vec::new();
    for (name, value) in fields {
        match (name.as_str(), value) {
            ("selected_edge", _) => {}
            ("answers", Value::Object(answers)) => words.extend(answers.iter().filter_map(named)),
            _ => words.extend(named((name, value))),
        }
    }
    cut(&words.join("; "))
}

fn named((name, value): (&String, &Value)) -> Option<String> {
    let word = in_word(value);
    (!word.is_empty()).then(|| format!("{name}: {word}"))
}

fn in_word(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::Bool(yes) => String::from(if *yes { "yes" } else { "no" }),
        Value::String(text) => text.split_whitespace().collect::<Vec<_>>().join(" "),
        // An error has a message for people.
        Value::Object(fields) if fields.get("message").is_some_and(Value::is_string) => in_word(&value["message"]),
        Value::Number(_) | Value::Array(_) | Value::Object(_) => value.to_string(),
    }
}

fn cut(text: &str) -> String {
    let mut told: String = text.chars().take(MAX_TOLD).collect();
    if told.len() < text.len() {
        told.push('…');
    }
    told
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]

    use super::*;
    use crate::graph::{Join, NewEdge, NewNode};
    use serde_json::json;

    /// `start ─ work ─ review ─ (again) ─ last ─ (give_up) ─ out`, with ways to `out` from `work`, if it fails, and from `review`.
    fn graph() -> Graph {
        let node = |id: &str, role| {
            let (continue_on_failure, always_fail) = (false, id == "out");
            let (id, join) = (id.into(), Join::default());
            NewNode { id, role, continue_on_failure, always_fail, fails_partial: false, join }
        };
        let edge = |from: &str, to: &str, label: Option<&str>| {
            let (from, to, label) = (from.into(), to.into(), label.map(str::to_owned));
            NewEdge { from, to, label, takes_errors: false }
        };
        let nodes = vec![
            node("start", Role::Start),
            node("work", Role::Linear),
            node("review", Role::Decision),
            node("last", Role::Decision),
            node("done", Role::Exit),
            node("out", Role::Exit),
        ];
        let edges = vec![
            edge("start", "work", None),
            edge("work", "review", None),
            NewEdge { takes_errors: true, ..edge("work", "out", None) },
            edge("review", "last", Some("again")),
            edge("review", "out", Some("give_up")),
            edge("last", "done", Some("approve")),
            edge("last", "out", Some("never")),
        ];
        Graph::build(nodes, edges).unwrap()
    }

    fn told(from: Option<&str>, came: &Value) -> String {
        let graph = graph();
        let exit = graph.node(&"out".into()).unwrap();
        always_fails(&graph, exit, from.map(NodeId::from).as_ref(), came).message
    }

    #[test]
    fn the_decision_is_named_with_its_edge_and_the_answer_of_the_person() {
        let declined = json!({ "selected_edge": "give_up", "answers": { "approved": false, "comment": "too\ndear" } });
        let words = "the exit out always fails: review chose give_up (approved: no; comment: too dear)";
        assert_eq!(told(Some("review"), &declined), words);
        // The label leaves one of the decisions alone.
        assert_eq!(told(None, &declined), words);
        assert_eq!(told(Some("last"), &json!(" never ")), "the exit out always fails: last chose never");
        assert_eq!(told(None, &json!({ "selected_edge": "out" })), "the exit out always fails", "both name it so");
    }

    #[test]
    fn a_failure_that_an_edge_takes_is_told_with_its_reason() {
        let caught = json!({ "error": { "code": "TIMEOUT", "message": "no answer came in time" }, "input": 1 });
        let words = "failed (no answer came in time)";
        assert_eq!(told(Some("work"), &caught), format!("the exit out always fails: work {words}"));
        assert_eq!(told(Some("review"), &caught), format!("the exit out always fails: review {words}"));
        // A tool that met an error has not failed.
        let met =
            json!({ "selected_edge": "give_up", "error": { "code": "NOT_FOUND", "message": "there is no file" } });
        let words = "the exit out always fails: review chose give_up (error: there is no file)";
        assert_eq!(told(Some("review"), &met), words);
    }

    #[test]
    fn a_long_value_is_cut() {
        let words = told(Some("review"), &json!({ "selected_edge": "give_up", "why": "é".repeat(9_000) }));
        assert!(words.ends_with("…)") && words.chars().count() < MAX_TOLD + 80, "{words}");
    }
}
