//! A task as lists and clients see it.

use super::{Mode, TaskState};
use domain::{TaskConfig, TaskPhase, TaskView, Waiting};
use serde_json::{Value, json};

/// The phase of a task.
pub fn phase(state: &TaskState) -> TaskPhase {
    match state.execution.as_ref().map(|execution| &execution.mode) {
        _ if state.parked.is_some() => TaskPhase::Parked,
        _ if state.finished.is_some() => TaskPhase::Finished,
        _ if state.inspector.paused_at.is_some() || state.is_held() => TaskPhase::Paused,
        Some(Mode::Agent { .. } | Mode::Asking { .. } | Mode::Waiting { .. }) => TaskPhase::Suspended,
        Some(Mode::Running) | None => TaskPhase::Running,
    }
}

/// A task as lists and clients see it.
pub(crate) fn view(state: &TaskState, config: &TaskConfig) -> TaskView {
    let execution = state.execution.as_ref();
    let wait = execution.and_then(|execution| match &execution.mode {
        Mode::Waiting { wait } => Some(wait.clone()),
        Mode::Running | Mode::Agent { .. } | Mode::Asking { .. } => None,
    });
    let finished = state.finished.as_ref();
    TaskView {
        task_id: config.task,
        workspace_id: config.workspace,
        flow: config.flow.clone(),
        labels: config.labels.clone(),
        phase: phase(state),
        status: state.place.status(),
        node: execution.map(|execution| execution.node.clone()).or_else(|| state.inspector.paused_at.clone()),
        parked_reason: state.parked.clone(),
        waiting_for: asked(state).into_iter().collect(),
        agent_waits: execution.is_some_and(|execution| execution.agent_waits),
        wait,
        origin: config.origin.clone(),
        handoff: config.handoff.clone(),
        output: finished.map(|_| (*state.place.current).clone()),
        error: finished.and_then(|finished| finished.error.clone()),
        priority: config.priority,
        steps: state.steps,
        children: state.place.made,
        usage: state.usage,
        budget: config.budget,
        usage_below: state.spending.below,
        created_at: config.created_at,
        finished_at: finished.map(|finished| finished.at),
    }
}

/// A task as the list of what waits for people has it; none that waits for nobody. The requests of an agent are those of its chat.
pub(crate) fn waiting(state: &TaskState, config: &TaskConfig) -> Option<Waiting> {
    Some(Waiting {
        workspace_id: config.workspace,
        chat_id: None,
        task_id: Some(config.task),
        above: config.above().to_vec(),
        waiting_for: vec![asked(state)?],
        node: state.execution.as_ref().map(|execution| execution.node.clone()),
        title: config.flow.name.clone(),
        user_id: config.user,
    })
}

/// The open questions of the node, as their event.
fn asked(state: &TaskState) -> Option<Value> {
    let execution = state.execution.as_ref()?;
    match &execution.mode {
        Mode::Asking { question_id, questions, expires_at } => Some(json!({
            "event": "question",
            "data": { "node": execution.node, "question_id": question_id, "questions": questions, "expires_at": expires_at },
        })),
        Mode::Running | Mode::Agent { .. } | Mode::Waiting { .. } => None,
    }
}
