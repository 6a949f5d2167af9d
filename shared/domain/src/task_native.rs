//! BuildScale's own wire format for the events of a task (spec 002 §6). The last event of a task is `done` or `stopped`; for a task that
//! went on into a merge of a task above it, it is `went_up`, which names that task.

use crate::{
    Code, Error, TaskConfig, TaskEvent, native,
    task::{AgentAnswer, AssembledContext},
};
use serde_json::{Value, json};

/// The names of all events on the wire, as observers can ask for them.
pub const NAMES: [&str; 28] = [
    "task_started",
    "node_started",
    "context",
    "denied",
    "agent_asked",
    "agent_replied",
    "agent_waits",
    "tool",
    "output_rejected",
    "question",
    "answered",
    "node_finished",
    "routed",
    "forked",
    "child_arrived",
    "child_finished",
    "merged",
    "went_up",
    "paused",
    "plan_step",
    "continued",
    "done",
    "stopped",
    "error",
    "waiting",
    "caught",
    "status",
    "diverged",
];

/// The name and the data of `event` on the wire; none for a fact that only the machine needs.
pub fn encode(event: &TaskEvent) -> Option<(&'static str, Value)> {
    Some(match event {
        TaskEvent::Spawned { .. }
        | TaskEvent::Archived { .. }
        | TaskEvent::PauseRequested { .. }
        | TaskEvent::StopRequested { .. }
        | TaskEvent::Budget { .. }
        | TaskEvent::Prioritized { .. }
        | TaskEvent::Deleted { .. }
        | TaskEvent::Cleared
        | TaskEvent::HeldBack { .. }
        | TaskEvent::Unparked { .. } => return None,
        TaskEvent::Created { config } => ("task_started", started(config)),
        TaskEvent::NodeStarted { node, attempt, retry, queue_ms, at } => {
            let mut data = json!({ "node": node, "attempt": attempt, "queue_ms": queue_ms, "at": at });
            if let Some(retry) = retry {
                data["retry"] = json!(retry);
            }
            ("node_started", data)
        }
        TaskEvent::ContextAssembled { node, context } => ("context", context_data(node.as_str(), context)),
        TaskEvent::Denied { node, what, rule } => ("denied", json!({ "node": node, "what": what, "rule": rule })),
        TaskEvent::AgentAsked { node, chat, round, prompt } => {
            ("agent_asked", json!({ "node": node, "chat_id": chat, "round": round, "prompt": prompt }))
        }
        TaskEvent::AgentReplied { node, answer } => ("agent_replied", reply(node.as_str(), answer)),
        TaskEvent::AgentWaits { node, chat, asked, cut, at, .. } => {
            let mut data = json!({ "node": node, "chat_id": chat, "at": at });
            if let Some((event, mut asked)) = asked.as_deref().and_then(native::encode) {
                // The digest is of the whole, which only the chat has.
                if *cut && let Some(asked) = asked.as_object_mut() {
                    asked.remove("digest");
                }
                data["asked"] = json!({ "event": event, "data": asked });
            }
            ("agent_waits", data)
        }
        TaskEvent::ToolUsed { node, used } => ("tool", {
            let mut data = json!(used);
            data["node"] = json!(node);
            data
        }),
        TaskEvent::PlanStep { node, step, status, title, plan_path, plan_id, done, total } => (
            "plan_step",
            json!({
                "node": node, "step": step, "status": status, "title": title, "plan_path": plan_path,
                "plan_id": plan_id, "done": done, "total": total,
            }),
        ),
        TaskEvent::OutputRejected { node, round, errors } => {
            ("output_rejected", json!({ "node": node, "round": round, "errors": errors }))
        }
        TaskEvent::Asked { node, question_id, questions, at, expires_at } => (
            "question",
            json!({
                "node": node, "question_id": question_id, "questions": questions, "at": at, "expires_at": expires_at,
            }),
        ),
        TaskEvent::Answered { node, answers, by, at } => {
            ("answered", json!({ "node": node, "answers": answers, "by": by, "at": at }))
        }
        TaskEvent::NodeFinished { node, attempt, status, output, error, metrics, at } => (
            "node_finished",
            with_error(
                json!({
                    "node": node, "attempt": attempt, "status": status, "output": output, "metrics": metrics, "at": at,
                }),
                error.as_ref(),
            ),
        ),
        TaskEvent::Waiting { node, attempt, wait, at } => {
            let mut data = json!(wait);
            data["node"] = json!(node);
            data["attempt"] = json!(attempt);
            data["at"] = json!(at);
            ("waiting", data)
        }
        TaskEvent::Caught { node, error, .. } => ("caught", json!({ "node": node, "error": error })),
        TaskEvent::StatusSet { status } => ("status", json!({ "status": status })),
        TaskEvent::Diverged { at } => ("diverged", json!({ "at": at })),
        TaskEvent::Routed { from, to } => ("routed", json!({ "from": from, "to": to })),
        TaskEvent::Forked { node, kind, to, total } => {
            ("forked", json!({ "node": node, "kind": kind, "to": to, "total": total }))
        }
        TaskEvent::ChildArrived { arrival } => (
            "child_arrived",
            json!({
                "node": arrival.merge, "from": arrival.from, "child": arrival.child, "status": arrival.status,
                "output": arrival.output,
            }),
        ),
        TaskEvent::ChildFinished { child, end } => (
            "child_finished",
            with_error(
                json!({ "child": child, "status": end.status, "output": end.output, "merged": end.merged }),
                end.error.as_ref(),
            ),
        ),
        TaskEvent::Merged { node, taken, failed, cancelled, .. } => {
            ("merged", json!({ "node": node, "taken": taken, "failed": failed, "cancelled": cancelled }))
        }
        TaskEvent::WentUp { merge, owner } => ("went_up", json!({ "node": merge, "task_id": owner })),
        TaskEvent::PausedBefore { node, at } => ("paused", json!({ "node": node, "at": at })),
        TaskEvent::Continued { step, at } => ("continued", json!({ "step": step, "at": at })),
        TaskEvent::Finished { status, output, exit, error, at } => {
            let cancelled = error.as_ref().is_some_and(|error| error.code == Code::Cancelled);
            let data = json!({ "status": status, "output": output, "exit": exit, "at": at });
            (if cancelled { "stopped" } else { "done" }, with_error(data, error.as_ref()))
        }
        TaskEvent::Parked { reason, at } => (
            "error",
            json!({
                "code": Code::Paused, "message": reason, "at": at,
                "hint": "POST …/tasks/:tid/resume goes on; with {\"drop\": true} the command is dropped",
            }),
        ),
    })
}

fn started(config: &TaskConfig) -> Value {
    let mut data = json!({
        "task_id": config.task, "flow": config.flow, "input": config.input, "start": config.start, "at": config.created_at,
    });
    if let Some(origin) = &config.origin {
        data["origin"] = json!({ "parent": origin.parent, "kind": origin.kind, "child": origin.name() });
    }
    if !config.files.is_empty() {
        data["files"] = json!(config.files);
    }
    if let Some(replay) = &config.replay {
        data["replay"] = json!(replay);
    }
    data
}

/// The structure of the context without its texts: those are in the task's history, and may be long.
fn context_data(node: &str, context: &AssembledContext) -> Value {
    let items: Vec<Value> = context
        .items
        .iter()
        .map(|item| json!({ "store": item.store, "key": item.key, "tokens": item.tokens }))
        .collect();
    json!({
        "node": node, "profile": context.profile, "tokens": context.tokens, "left_out": context.left_out, "items": items,
    })
}

fn reply(node: &str, answer: &AgentAnswer) -> Value {
    let data = json!({
        "node": node, "chat_id": answer.chat, "round": answer.round, "text": answer.text,
        "stop_reason": answer.stop_reason, "usage": answer.usage, "steps": answer.steps, "tools": answer.tools,
    });
    with_error(data, answer.error.as_ref())
}

fn with_error(mut data: Value, error: Option<&Error>) -> Value {
    if let Some(error) = error {
        data["error"] = json!(error);
    }
    data
}
