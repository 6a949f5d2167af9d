//! BuildScale's own wire format for the events of a task (spec 002 §6). The last event of a task is `done` or `stopped`; for a task that
//! went on into a merge of a task above it, it is `went_up`, which names that task.

use crate::{
    Code, TaskConfig, TaskEvent, native,
    object::object,
    task::{AgentAnswer, AssembledContext},
};
use serde::{Serialize, Serializer};
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
    // Every key in the data is a text, so a value takes all of it.
    write(event, serde_json::value::Serializer).ok().flatten()
}

/// Writes the data of `event` to `to`. Returns its name on the wire and the result of `to`; none for a fact that only the machine needs, of
/// which nothing is written.
///
/// # Errors
/// Those of `to`.
pub fn write<S: Serializer>(event: &TaskEvent, to: S) -> Result<Option<(&'static str, S::Ok)>, S::Error> {
    Ok(Some(match event {
        TaskEvent::Spawned { .. }
        | TaskEvent::Archived { .. }
        | TaskEvent::PauseRequested { .. }
        | TaskEvent::StopRequested { .. }
        | TaskEvent::Budget { .. }
        | TaskEvent::Prioritized { .. }
        | TaskEvent::Labelled { .. }
        | TaskEvent::Deleted { .. }
        | TaskEvent::Cleared
        | TaskEvent::HeldBack { .. }
        | TaskEvent::Unparked { .. } => return Ok(None),
        TaskEvent::Created { config } => ("task_started", started(config, to)?),
        TaskEvent::NodeStarted { node, attempt, retry, queue_ms, at } => (
            "node_started",
            object!(to, { "node": node, "attempt": attempt, "queue_ms": queue_ms, "at": at }, maybe { "retry": retry }),
        ),
        TaskEvent::ContextAssembled { node, context } => ("context", context_data(node.as_str(), context, to)?),
        TaskEvent::Denied { node, what, rule } => ("denied", object!(to, { "node": node, "what": what, "rule": rule })),
        TaskEvent::AgentAsked { node, chat, round, prompt } => {
            ("agent_asked", object!(to, { "node": node, "chat_id": chat, "round": round, "prompt": prompt }))
        }
        TaskEvent::AgentReplied { node, answer } => ("agent_replied", reply(node.as_str(), answer, to)?),
        TaskEvent::AgentWaits { node, chat, asked, cut, at, .. } => {
            let asked = asked.as_deref().and_then(native::encode).map(|(event, mut asked)| {
                // The digest is of the whole, which only the chat has.
                if *cut && let Some(asked) = asked.as_object_mut() {
                    asked.remove("digest");
                }
                json!({ "event": event, "data": asked })
            });
            ("agent_waits", object!(to, { "node": node, "chat_id": chat, "at": at }, maybe { "asked": asked }))
        }
        TaskEvent::ToolUsed { node, used } => {
            let mut data = json!(used);
            data["node"] = json!(node);
            ("tool", data.serialize(to)?)
        }
        TaskEvent::PlanStep { node, step, status, title, plan_path, plan_id, done, total } => (
            "plan_step",
            object!(to, {
                "node": node, "step": step, "status": status, "title": title, "plan_path": plan_path,
                "plan_id": plan_id, "done": done, "total": total,
            }),
        ),
        TaskEvent::OutputRejected { node, round, errors } => {
            ("output_rejected", object!(to, { "node": node, "round": round, "errors": errors }))
        }
        TaskEvent::Asked { node, question_id, questions, at, expires_at } => (
            "question",
            object!(to, {
                "node": node, "question_id": question_id, "questions": questions, "at": at, "expires_at": expires_at,
            }),
        ),
        TaskEvent::Answered { node, answers, by, at } => {
            ("answered", object!(to, { "node": node, "answers": answers, "by": by, "at": at }))
        }
        TaskEvent::NodeFinished { node, attempt, status, output, error, metrics, at } => (
            "node_finished",
            object!(to, {
                "node": node, "attempt": attempt, "status": status, "output": output, "metrics": metrics, "at": at,
            }, maybe { "error": error }),
        ),
        TaskEvent::Waiting { node, attempt, wait, at } => {
            let mut data = json!(wait);
            data["node"] = json!(node);
            data["attempt"] = json!(attempt);
            data["at"] = json!(at);
            ("waiting", data.serialize(to)?)
        }
        TaskEvent::Caught { node, error, .. } => ("caught", object!(to, { "node": node, "error": error })),
        TaskEvent::StatusSet { status } => ("status", object!(to, { "status": status })),
        TaskEvent::Diverged { at } => ("diverged", object!(to, { "at": at })),
        TaskEvent::Routed { from, to: next } => ("routed", object!(to, { "from": from, "to": next })),
        TaskEvent::Forked { node, kind, to: nodes, total } => {
            ("forked", object!(to, { "node": node, "kind": kind, "to": nodes, "total": total }))
        }
        TaskEvent::ChildArrived { arrival } => (
            "child_arrived",
            object!(to, {
                "node": arrival.merge, "from": arrival.from, "child": arrival.child, "status": arrival.status,
                "output": arrival.output,
            }),
        ),
        TaskEvent::ChildFinished { child, end } => (
            "child_finished",
            object!(to, { "child": child, "status": end.status, "output": end.output, "merged": end.merged }, maybe {
                "error": end.error,
            }),
        ),
        TaskEvent::Merged { node, taken, failed, cancelled, .. } => {
            ("merged", object!(to, { "node": node, "taken": taken, "failed": failed, "cancelled": cancelled }))
        }
        TaskEvent::WentUp { merge, owner } => ("went_up", object!(to, { "node": merge, "task_id": owner })),
        TaskEvent::PausedBefore { node, at } => ("paused", object!(to, { "node": node, "at": at })),
        TaskEvent::Continued { step, at } => ("continued", object!(to, { "step": step, "at": at })),
        TaskEvent::Finished { status, output, exit, error, at } => {
            let cancelled = error.as_ref().is_some_and(|error| error.code == Code::Cancelled);
            let data = object!(to, { "status": status, "output": output, "exit": exit, "at": at }, maybe {
                "error": error,
            });
            (if cancelled { "stopped" } else { "done" }, data)
        }
        TaskEvent::Parked { reason, at } => (
            "error",
            object!(to, {
                "code": Code::Paused, "message": reason, "at": at,
                "hint": "POST …/tasks/:tid/resume goes on; with {\"drop\": true} the command is dropped",
            }),
        ),
    }))
}

fn started<S: Serializer>(config: &TaskConfig, to: S) -> Result<S::Ok, S::Error> {
    let origin = config.origin.as_ref();
    let origin = origin.map(|origin| json!({ "parent": origin.parent, "kind": origin.kind, "child": origin.name() }));
    let files = (!config.files.is_empty()).then_some(&config.files);
    Ok(object!(to, {
        "task_id": config.task, "flow": config.flow, "input": config.input, "start": config.start, "at": config.created_at,
    }, maybe { "origin": origin, "files": files, "replay": config.replay }))
}

/// The structure of the context without its texts: those are in the task's history, and may be long.
fn context_data<S: Serializer>(node: &str, context: &AssembledContext, to: S) -> Result<S::Ok, S::Error> {
    let items: Vec<Value> = context
        .items
        .iter()
        .map(|item| json!({ "store": item.store, "key": item.key, "tokens": item.tokens }))
        .collect();
    Ok(object!(to, {
        "node": node, "profile": context.profile, "tokens": context.tokens, "left_out": context.left_out, "items": items,
    }))
}

fn reply<S: Serializer>(node: &str, answer: &AgentAnswer, to: S) -> Result<S::Ok, S::Error> {
    Ok(object!(to, {
        "node": node, "chat_id": answer.chat, "round": answer.round, "text": answer.text,
        "stop_reason": answer.stop_reason, "usage": answer.usage, "steps": answer.steps, "tools": answer.tools,
    }, maybe { "error": answer.error }))
}
