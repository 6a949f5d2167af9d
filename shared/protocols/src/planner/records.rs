//! The plans of a session with the executions of their steps, its agents, and its compressions, as clients read them (spec 003 §10). They are folded
//! from the log of the session, which has all of them.

use super::RUN_PLAN;
use domain::{
    CallId, ChatEvent, ChatId, Code, PermissionId, Timestamp,
    event::PermissionOutcome,
    session::{ExecutorTask, PlannedStep, StepOutcome},
};
use serde_json::{Value, json};
use std::collections::{BTreeMap, VecDeque};

/// The most plans, and the most compressions: the latest ones.
const MOST: usize = 100;

/// A fold of a session's log into its plans and compressions.
#[derive(Debug, Default)]
pub struct Records {
    plans: VecDeque<Plan>,
    compressions: VecDeque<Value>,
    /// The version of the last plan of the turn that runs.
    version: u32,
}

#[derive(Debug)]
struct Plan {
    id: CallId,
    version: u32,
    steps: Vec<PlannedStep>,
    at: Timestamp,
    executions: Vec<Execution>,
    /// Steps that ended, those included that could not begin, and their statuses.
    ended: BTreeMap<u32, &'static str>,
    /// The permission that it waits for, and when no answer becomes a no.
    waits_for: Option<(PermissionId, Timestamp)>,
    /// Whether its turn has ended, or a person declined it.
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
            ChatEvent::TurnStarted { attempt: 1, .. } => self.version = 0,
            ChatEvent::PermissionRequired { permission_id, call_id, tool, args, at, expires_at, .. }
                if tool == RUN_PLAN =>
            {
                // The chat has checked them.
                let steps = PlannedStep::read_all(args).unwrap_or_default();
                let waits_for = Some((*permission_id, *expires_at));
                self.put(Plan { waits_for, ..Plan::new(*call_id, self.version + 1, steps, *at) });
            }
            ChatEvent::PermissionResolved { permission_id, outcome, .. } => {
                let is_it = |plan: &&mut Plan| plan.waits_for.is_some_and(|(id, _)| id == *permission_id);
                if let Some(plan) = self.plans.iter_mut().rev().find(is_it) {
                    plan.waits_for = None;
                    plan.is_over = *outcome != PermissionOutcome::Approved;
                }
            }
            ChatEvent::Planned { call_id, version, steps, at } => {
                self.version = *version;
                self.put(Plan::new(*call_id, *version, steps.clone(), *at));
            }
            ChatEvent::StepStarted { call_id, step, executor, task, at } => {
                let begun = Execution { step: *step, executor: *executor, task: (**task).clone(), at: *at, end: None };
                if let Some(plan) = self.plan(*call_id) {
                    plan.executions.push(begun);
                }
            }
            ChatEvent::StepEnded { call_id, step, result, at } => {
                let Some(plan) = self.plan(*call_id) else { return };
                plan.ended.insert(*step, status_of(result));
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

    /// Adds a plan. One that a person approved takes the place of the one that waited.
    fn put(&mut self, plan: Plan) {
        match self.plan(plan.id) {
            Some(asked) => *asked = plan,
            None => push(&mut self.plans, plan),
        }
    }

    fn plan(&mut self, id: CallId) -> Option<&mut Plan> {
        self.plans.iter_mut().rev().find(|plan| plan.id == id)
    }

    /// The plans, the oldest first, each with its `executions`.
    pub fn plans(&self, session: ChatId) -> Vec<Value> {
        self.plans.iter().map(|plan| plan.to_json(session)).collect()
    }

    /// The agents of the plans: their executors, the oldest first.
    pub fn agents(&self, session: ChatId) -> Vec<Value> {
        let of = |plan: &Plan| {
            let agent = |execution: &Execution| execution.agent(plan, session);
            plan.executions.iter().map(agent).collect::<Vec<_>>()
        };
        self.plans.iter().flat_map(of).collect()
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

/// The status of a step that ended. The stop of its turn ends a step with `CANCELLED`.
fn status_of(outcome: &StepOutcome) -> &'static str {
    match &outcome.error {
        _ if outcome.success => "completed",
        Some(error) if error.code == Code::Cancelled => "cancelled",
        _ => "failed",
    }
}

fn push<T>(latest: &mut VecDeque<T>, one: T) {
    if latest.len() == MOST {
        latest.pop_front();
    }
    latest.push_back(one);
}

impl Plan {
    fn new(id: CallId, version: u32, steps: Vec<PlannedStep>, at: Timestamp) -> Self {
        let executions = Vec::with_capacity(steps.len());
        Self { id, version, steps, at, executions, ended: BTreeMap::new(), waits_for: None, is_over: false }
    }

    fn to_json(&self, session: ChatId) -> Value {
        let has = |status: &str| self.ended.values().any(|one| *one == status);
        let status = match () {
            () if self.ended.len() < self.steps.len() && self.is_over => "cancelled",
            () if self.waits_for.is_some() => "pending",
            () if self.ended.len() < self.steps.len() => "executing",
            () if has("cancelled") => "cancelled",
            () if has("failed") => "failed",
            () => "completed",
        };
        let steps: Vec<Value> = self.steps.iter().map(|step| self.step(step)).collect();
        let executions: Vec<Value> = self.executions.iter().map(|execution| execution.to_json(self)).collect();
        let mut shown = json!({
            "id": self.id, "session_id": session, "strategy": "complex", "version": self.version, "steps": steps,
            "status": status, "executions": executions, "created_at": self.at,
        });
        if let Some((id, expires_at)) = self.waits_for.filter(|_| !self.is_over) {
            shown["permission"] = json!({ "id": id, "expires_at": expires_at });
        }
        shown
    }

    fn step(&self, step: &PlannedStep) -> Value {
        let has_begun = self.executions.iter().any(|execution| execution.step == step.step);
        let status = match self.ended.get(&step.step) {
            Some(status) => status,
            None if self.is_over => "cancelled",
            None if has_begun => "executing",
            None => "pending",
        };
        let mut shown = json!(step);
        shown["status"] = json!(status);
        shown
    }
}

impl Execution {
    fn status(&self, plan: &Plan) -> &'static str {
        match &self.end {
            Some((outcome, _)) => status_of(outcome),
            None if plan.is_over => "cancelled",
            None => "executing",
        }
    }

    fn agent(&self, plan: &Plan, session: ChatId) -> Value {
        json!({
            "id": self.executor, "session_id": session, "plan_id": plan.id, "execution_id": format!("{}/{}", plan.id, self.step),
            "status": self.status(plan), "created_at": self.at, "completed_at": self.end.as_ref().map(|(_, at)| at),
        })
    }

    fn to_json(&self, plan: &Plan) -> Value {
        let mut shown = json!({
            "id": format!("{}/{}", plan.id, self.step), "plan_id": plan.id, "step": self.step, "executor_id": self.executor,
            "task": { "description": self.task.description, "goal": self.task.goal }, "status": self.status(plan),
            "created_at": self.at,
        });
        if !self.task.constraints.is_empty() {
            shown["task"]["constraints"] = json!(self.task.constraints);
        }
        let Some((outcome, at)) = &self.end else { return shown };
        let StepOutcome { success: _, data, error, tool_calls, usage, duration_ms } = outcome;
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
