//! Checks of what a request for a task asks for.

use domain::{Budget, Error, NodeId, TaskView, event::Question};
use flow::{Flow, flow::AskRule, graph::Role};
use serde::Deserialize;
use serde_json::Value;

pub(super) fn check_priority(priority: i8) -> Result<(), Error> {
    if (-100..=100).contains(&priority) {
        return Ok(());
    }
    Err(Error::invalid("priority", "a priority is a number from -100 to 100"))
}

/// # Errors
/// `INVALID_ARGUMENT` for a part of which nothing can be done, or that does not fit the 64-bit integers of most languages.
pub(super) fn checked(budget: Budget) -> Result<Budget, Error> {
    let is_possible = |number: u64| i64::try_from(number).is_ok_and(|number| number > 0);
    let is_positive = |cost: f64| cost.is_finite() && cost > 0.0;
    let wrong = match budget {
        Budget { max_tokens: Some(tokens), .. } if !is_possible(tokens) => Some("max_tokens"),
        Budget { max_cost_usd: Some(cost), .. } if !is_positive(cost) => Some("max_cost_usd"),
        Budget { max_wall_ms: Some(time), .. } if !is_possible(time) => Some("max_wall_ms"),
        Budget { .. } => None,
    };
    match wrong {
        Some(part) => {
            Err(Error::invalid(&format!("budget.{part}"), "a part of a budget is a number above 0 and below 2^63")
                .hint("leave it out for that of the flow"))
        }
        None => Ok(budget),
    }
}

pub(super) fn start_of(flow: &Flow, name: Option<&str>) -> Result<NodeId, Error> {
    let Some(name) = name else { return Ok(flow.default_start.clone()) };
    let node = node_of(flow, name, "start")?;
    if flow.graph.node(&node).is_some_and(|node| node.role == Role::Start) {
        return Ok(node);
    }
    let starts = flow.graph.nodes().iter().filter(|node| node.role == Role::Start);
    let names: Vec<&str> = starts.map(|node| node.id.as_str()).collect();
    Err(Error::invalid("start", format!("{name} is no start node")).hint(format!("start nodes: {}", names.join(", "))))
}

pub(super) fn node_of(flow: &Flow, name: &str, field: &str) -> Result<NodeId, Error> {
    let id = NodeId::from(name);
    if flow.nodes.contains_key(&id) {
        return Ok(id);
    }
    let shown: String = name.chars().take(64).collect();
    let names: Vec<&str> = flow.graph.nodes().iter().map(|node| node.id.as_str()).take(50).collect();
    Err(Error::invalid(field, format!("the flow has no node {shown:?}"))
        .hint(format!("its nodes: {}", names.join(", "))))
}

/// The questions of a human step: as the task asks them, with their templates filled in, or as the flow has them where it does not ask now.
pub(super) fn questions_of(view: &TaskView, node: &NodeId, rule: &AskRule) -> Vec<Question> {
    let asks = |asked: &&Value| asked["data"]["node"] == node.as_str();
    let asked = view.waiting_for.iter().find(asks).map(|asked| &asked["data"]["questions"]);
    if let Some(questions) = asked.and_then(|questions| Vec::deserialize(questions).ok()) {
        return questions;
    }
    // It may ask later, or has its answer.
    let unasked = |question: Question| Question { question: "the task does not ask this now".into(), ..question };
    rule.all_questions().into_iter().map(unasked).collect()
}
