//! Facts as spans. Ids are derived from the ids of tasks and nodes, so that every process makes the same span: the trace is that of the
//! request for the root task, else the root task itself; the parent of a child's span is the span of the task that made it.

use super::attributes::{Attributes, provider_name};
use domain::{ChatId, TaskId, Timestamp, trace::span_id};
use serde_json::{Value, json};
use std::time::Duration;
use telemetry::TaskFact;

/// OTLP's numbers.
const INTERNAL: u8 = 1;
const OK: u8 = 1;
const ERROR: u8 = 2;

/// The span that a fact ends; none for a fact that ends nothing, and in a trace that its caller does not record.
pub(super) fn span(fact: &TaskFact, chat: Option<ChatId>, content: bool) -> Option<Value> {
    if fact.trace.is_some_and(|trace| !trace.sampled) {
        return None;
    }
    match fact.event {
        "node_finished" => node(fact, chat, content),
        "tool" => tool(fact, content),
        "done" | "stopped" => Some(task(fact)),
        _ => None,
    }
}

/// The id of the span of the node that a fact is about.
pub(super) fn node_span(fact: &TaskFact) -> Option<String> {
    let node = text(&fact.data, "node")?;
    Some(format!("{:016x}", domain::trace::node_span(fact.task_id, &node.into())))
}

/// The id of the span of a task.
pub(crate) fn task_span_id(task: TaskId) -> u64 {
    span_id(&task.to_string())
}

fn task_span(task: TaskId) -> String {
    format!("{:016x}", task_span_id(task))
}

fn task(fact: &TaskFact) -> Value {
    let attributes = about_task(fact)
        .maybe("buildscale.task.status", text(&fact.data, "status"))
        .maybe("buildscale.task.exit", text(&fact.data, "exit"));
    let parent = fact.parent_task_id.map(task_span);
    // The first of its tree is a part of what the request for it was a part of.
    let parent = parent.or_else(|| fact.trace.map(|trace| format!("{:016x}", trace.span_id)));
    let name = format!("task {}", fact.flow.name);
    whole(fact, (task_span(fact.task_id), parent), &name, fact.created_at, attributes)
}

fn node(fact: &TaskFact, chat: Option<ChatId>, content: bool) -> Option<Value> {
    let data = &fact.data;
    let node = text(data, "node")?;
    let metrics = data.get("metrics")?;
    let about = fact.about.as_ref();
    let agent = about.and_then(|about| about.agent.as_deref());
    let mut attributes = about_task(fact)
        .text("buildscale.node", node)
        .maybe("buildscale.node.role", about.map(|about| about.role.as_str()))
        .maybe("buildscale.node.status", text(data, "status"))
        .whole("buildscale.node.attempt", number(data, "attempt"))
        .whole("buildscale.node.queue_ms", number(metrics, "queue_ms"))
        .whole("buildscale.node.context_tokens", number(metrics, "context_tokens"));
    if let Some(agent) = agent {
        let model = about.and_then(|about| about.model.as_deref());
        let chat = chat.map(|chat| chat.to_string());
        attributes = attributes
            .text("gen_ai.operation.name", "invoke_agent")
            .text("gen_ai.agent.name", agent)
            .maybe("gen_ai.provider.name", model.and_then(|model| model.split('/').next()).map(provider_name))
            .maybe("gen_ai.request.model", model.map(|model| model.split_once('/').map_or(model, |(_, name)| name)))
            .maybe("gen_ai.conversation.id", chat.as_deref());
        if let Some(usage) = metrics.get("usage") {
            attributes = attributes
                .whole("gen_ai.usage.input_tokens", number(usage, "input_tokens"))
                .whole("gen_ai.usage.output_tokens", number(usage, "output_tokens"))
                .number("buildscale.cost_usd", usage.get("cost_usd").and_then(Value::as_f64).unwrap_or_default());
        }
        if content && let Some(output) = data.get("output") {
            attributes = attributes.text("gen_ai.output.messages", &said(output));
        }
    } else if content && let Some(output) = data.get("output") {
        attributes = attributes.text("buildscale.node.output", &output.to_string());
    }
    let name = agent.map_or_else(|| format!("node {node}"), |agent| format!("invoke_agent {agent}"));
    let start = end_of(fact) - Duration::from_millis(number(metrics, "duration_ms"));
    Some(whole(fact, (node_span(fact)?, Some(task_span(fact.task_id))), &name, start, attributes))
}

fn tool(fact: &TaskFact, content: bool) -> Option<Value> {
    let data = &fact.data;
    let tool = text(data, "tool")?;
    let mut attributes = about_task(fact)
        .text("gen_ai.operation.name", "execute_tool")
        .text("gen_ai.tool.name", tool)
        .maybe("buildscale.node", text(data, "node"))
        .maybe("buildscale.tool.status", text(data, "status"));
    if content {
        attributes = attributes
            .maybe("gen_ai.tool.call.arguments", text(data, "args"))
            .maybe("gen_ai.tool.call.result", text(data, "output"));
    }
    let own = format!("{:016x}", span_id(&format!("{}#{}", fact.task_id, fact.number)));
    let start = fact.at - Duration::from_millis(number(data, "duration_ms"));
    Some(whole(fact, (own, node_span(fact)), &format!("execute_tool {tool}"), start, attributes))
}

fn whole(
    fact: &TaskFact,
    (own, parent): (String, Option<String>),
    name: &str,
    start: Timestamp,
    attributes: Attributes,
) -> Value {
    let error = fact.data.get("error");
    let failed = text(&fact.data, "status") == Some("failure");
    let code = error.and_then(|error| text(error, "code"));
    let attributes = attributes.maybe("error.type", code.or(failed.then_some("failure")));
    let mut status = json!({ "code": if failed { ERROR } else { OK } });
    if let Some(message) = error.filter(|_| failed).and_then(|error| text(error, "message")) {
        status["message"] = json!(message);
    }
    let mut span = json!({
        "traceId": format!("{:032x}", fact.trace.map_or(fact.root_task_id.0.as_u128(), |trace| trace.trace_id)),
        "spanId": own,
        "name": name,
        "kind": INTERNAL,
        "startTimeUnixNano": nanos(start),
        "endTimeUnixNano": nanos(end_of(fact)),
        "attributes": attributes.into_value(),
        "status": status,
    });
    if let Some(parent) = parent {
        span["parentSpanId"] = json!(parent);
    }
    span
}

fn about_task(fact: &TaskFact) -> Attributes {
    Attributes::default()
        .text("buildscale.workspace.id", &fact.workspace_id.to_string())
        .text("buildscale.task.id", &fact.task_id.to_string())
        .text("buildscale.flow.name", &fact.flow.name)
        .text("buildscale.flow.hash", &fact.flow.hash.to_string())
        .maybe("buildscale.task.child", fact.child.as_deref())
}

/// The output of an agent, in the form of the conventions.
fn said(output: &Value) -> String {
    let text = output.as_str().map_or_else(|| output.to_string(), str::to_owned);
    json!([{ "role": "assistant", "parts": [{ "type": "text", "content": text }] }]).to_string()
}

fn end_of(fact: &TaskFact) -> Timestamp {
    text(&fact.data, "at").and_then(|at| at.parse().ok()).unwrap_or(fact.at)
}

pub(super) fn nanos(at: Timestamp) -> String {
    (i128::from(at.as_millis()).max(0) * 1_000_000).to_string()
}

fn text<'a>(value: &'a Value, key: &str) -> Option<&'a str> {
    value.get(key).and_then(Value::as_str)
}

pub(super) fn number(value: &Value, key: &str) -> u64 {
    value.get(key).and_then(Value::as_u64).unwrap_or_default()
}
