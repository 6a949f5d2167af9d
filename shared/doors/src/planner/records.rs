//! The plans of a session with the executions of their steps, and its compressions, as clients read them (spec 003 §10). They are folded from
//! the log of the session, which has all of them.

use domain::{
    CallId, ChatEvent, ChatId, Timestamp,
    session::{ExecutorTask, PlannedStep, StepOutcome},
};
use serde_json::{Value, json};
use std::collections::VecDeque;

/// The most plans, and the most compressions: the latest ones.
const MOST: usize = 100;

/// A fold of a session's log into its plans and compressions.
#[derive(Debug, Default)]
pub struct Records {
    plans: VecDeque<Plan>,
    compressions: VecDeque<Value>,
}

#[derive(Debug)]
struct Plan {
    id: CallId,
    version: u32,
    steps: Vec<PlannedStep>,
    at: Timestamp,
    executions: Vec<Execution>,
    /// Steps that ended, those included that could not begin; and those of them that failed.
    ended: usize,
    failed: usize,
    /// Whether its turn has ended.
    is_over: bool,
}

#[derive(Debug)]
struct Execution {
    step: u32,
    executor: ChatId,
    task: ExecutorTask,
    at: Timestamp,
    end: Option<(StepOutcome, Timestamp)>,
}

impl Records {
    /// Takes in the next event of the log.
    pub fn take_in(&mut self, event: &ChatEvent) {
        match event {
            ChatEvent::Planned { call_id, version, steps, at } => {
                let (id, version, steps, at) = (*call_id, *version, steps.clone(), *at);
                let executions = Vec::with_capacity(steps.len());
                push(&mut self.plans, Plan { id, version, steps, at, executions, ended: 0, failed: 0, is_over: false });
            }
            ChatEvent::StepStarted { call_id, step, executor, task, at } => {
                let begun = Execution { step: *step, executor: *executor, task: (**task).clone(), at: *at, end: None };
                if let Some(plan) = self.plan(*call_id) {
                    plan.executions.push(begun);
                }
            }
            ChatEvent::StepEnded { call_id, step, result, at } => {
                let Some(plan) = self.plan(*call_id) else { return };
                plan.ended += 1;
                plan.failed += usize::from(!result.success);
                if let Some(execution) = plan.executions.iter_mut().find(|execution| execution.step == *step) {
                    execution.end = Some(((**result).clone(), *at));
                }
            }
            ChatEvent::Done { .. } | ChatEvent::Stopped { .. } => {
                self.plans.iter_mut().for_each(|plan| plan.is_over = true);
            }
            ChatEvent::Compacted { compaction } => push(
                &mut self.compressions,
                json!({
                    "id": compaction.message_id, "turns": compaction.turns, "last_line": compaction.last_line,
                    "summary": compaction.summary, "tokens_before": compaction.tokens_before,
                    "tokens_after": compaction.tokens_after, "ratio": compaction.ratio(), "created_at": compaction.at,
                }),
            ),
            _ => {}
        }
    }

    fn plan(&mut self, id: CallId) -> Option<&mut Plan> {
        self.plans.iter_mut().rev().find(|plan| plan.id == id)
    }

    /// The plans, the oldest first, each with its `executions`.
    pub fn plans(&self, session: ChatId) -> Vec<Value> {
        self.plans.iter().map(|plan| plan.shown(session)).collect()
    }

    /// The compressions, the oldest first.
    pub fn compressions(&self, session: ChatId) -> Vec<Value> {
        let of = |compression: &Value| {
            let mut compression = compression.clone();
            compression["session_id"] = json!(session);
            compression
        };
        self.compressions.iter().map(of).collect()
    }
}

fn push<T>(latest: &mut VecDeque<T>, one: T) {
    if latest.len() == MOST {
        latest.pop_front();
    }
    latest.push_back(one);
}

impl Plan {
    fn shown(&self, session: ChatId) -> Value {
        let status = match () {
            () if self.ended < self.steps.len() && self.is_over => "cancelled",
            () if self.ended < self.steps.len() => "executing",
            () if self.failed > 0 => "failed",
            () => "completed",
        };
        let executions: Vec<Value> = self.executions.iter().map(|execution| execution.shown(self)).collect();
        json!({
            "id": self.id, "session_id": session, "strategy": "complex", "version": self.version, "steps": self.steps,
            "status": status, "executions": executions, "created_at": self.at,
        })
    }
}

impl Execution {
    fn shown(&self, plan: &Plan) -> Value {
        let mut shown = json!({
            "id": format!("{}/{}", plan.id, self.step), "plan_id": plan.id, "step": self.step, "executor_id": self.executor,
            "task": { "description": self.task.description, "goal": self.task.goal }, "created_at": self.at,
        });
        let Some((outcome, at)) = &self.end else {
            shown["status"] = json!(if plan.is_over { "cancelled" } else { "executing" });
            return shown;
        };
        let StepOutcome { success, data, error, tool_calls, usage, duration_ms } = outcome;
        shown["status"] = json!(if *success { "completed" } else { "failed" });
        shown["result"] = json!(data);
        if let Some(error) = error {
            shown["error"] = json!(error);
        }
        shown["tool_calls"] = json!(tool_calls);
        shown["tokens_used"] = json!(usage.input_tokens + usage.output_tokens);
        shown["duration_ms"] = json!(duration_ms);
        shown["ended_at"] = json!(at);
        shown
    }
}
