//! A turn of a session as frames: what was analysed, planned, called and said, and one end.

use super::{
    RUN_PLAN,
    session::{tool_call, tool_result},
};
use crate::{Frame, Projection, message_text::MessageText};
use domain::{
    CallId, ChatEvent, ChatId, Error, Message, StopReason, Strategy, Timestamp, TurnId, Usage, UserId,
    session::{PlannedStep, StepOutcome},
};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The turn that a stream shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shows {
    /// This one.
    Turn(TurnId),
    /// The first that ends after the event with this number: for a client that resumes.
    EndingAfter(u64),
    /// The one that takes in the words that steer, which are those of the command with this id: the turn that runs, or, where that ends before them,
    /// one of their own.
    Steered(TurnId),
}

/// The view of one turn. It is over with the turn's end, which is its last frame.
#[derive(Debug)]
pub struct PlannerTurn {
    session: ChatId,
    user: Option<UserId>,
    shows: Shows,
    turn: Option<Turn>,
    over: bool,
}

#[derive(Debug, Default)]
struct Turn {
    id: Option<TurnId>,
    /// Whether it has the words that steer.
    has_words: bool,
    words: String,
    strategy: Option<Strategy>,
    usage: Usage,
    error: Option<Error>,
    plan: Option<CallId>,
    /// The version of the last plan.
    version: u32,
    steps: BTreeMap<u32, (PlannedStep, Option<ChatId>)>,
    /// The message that is being written.
    said: MessageText,
}

impl PlannerTurn {
    /// The view of a turn of this session, folded from its first event or an earlier one.
    pub fn new(session: ChatId, user: Option<UserId>, shows: Shows) -> Self {
        Self { session, user, shows, turn: None, over: false }
    }

    fn is_shown(&self, id: TurnId) -> bool {
        match self.shows {
            Shows::Turn(turn) => turn == id,
            Shows::EndingAfter(_) | Shows::Steered(_) => true,
        }
    }

    fn end(&mut self, number: u64, error: Option<Value>, reason: &str, frames: &mut Vec<Frame>) {
        let Some(turn) = self.turn.take() else { return };
        let is_another = |words| turn.id.is_some_and(|id| id != words) && !turn.has_words;
        if matches!(self.shows, Shows::Steered(words) if is_another(words)) {
            return;
        }
        if let Some(error) = error {
            frames.push(frame(number, "error", error));
        }
        let Usage { input_tokens, output_tokens, .. } = turn.usage;
        let usage = json!({
            "total_tokens": input_tokens + output_tokens, "prompt_tokens": input_tokens, "completion_tokens": output_tokens,
        });
        frames.push(frame(number, "done", json!({ "usage": usage, "finished_reason": reason })));
        self.over = match self.shows {
            Shows::Turn(_) | Shows::Steered(_) => true,
            Shows::EndingAfter(after) => number > after,
        };
    }
}

/// A frame with its type in its data.
fn frame(number: u64, kind: &str, mut data: Value) -> Frame {
    if let Some(fields) = data.as_object_mut() {
        fields.insert("type".to_owned(), json!(kind));
    }
    Frame { number, event: None, data }
}

fn error_json(error: &Error) -> Value {
    let mut data = json!({ "error": error.message, "code": error.code });
    if let Some(hint) = &error.hint {
        data["hint"] = json!(hint);
    }
    data
}

/// The reason of an end, and the error that it is when the log has none.
fn ended(reason: StopReason) -> (&'static str, Option<&'static str>) {
    match reason {
        StopReason::EndTurn => ("stop", None),
        StopReason::MaxOutputTokens => ("length", None),
        StopReason::Refusal => ("refusal", Some("the provider refused to go on")),
        StopReason::StepLimit => ("step_limit", Some("the limit of model calls was reached")),
        StopReason::TokenLimit => ("token_limit", Some("the limit of tokens was reached")),
        StopReason::TimeLimit => ("time_limit", Some("the time of the turn was up")),
        StopReason::CostLimit => ("cost_limit", Some("the limit of costs was reached")),
        StopReason::ContextLimit => ("context_limit", Some("the turn is longer than the context")),
        StopReason::Error => ("error", Some("the turn failed")),
    }
}

impl Turn {
    fn step(&self, number: u32, status: &str) -> Option<Value> {
        self.steps.get(&number).map(|(step, _)| step_data(step, status))
    }

    fn plan(&self, id: CallId, (version, status): (u32, &str), session: ChatId, user: Option<UserId>) -> Value {
        let steps: Vec<Value> = self.steps.values().map(|(step, _)| step_data(step, "pending")).collect();
        json!({ "plan": {
            "id": id, "sessionId": session, "userId": user, "userMessage": self.words, "strategy": self.strategy, "steps": steps,
            "status": status, "version": version,
        } })
    }
}

fn step_data(step: &PlannedStep, status: &str) -> Value {
    json!({
        "stepNumber": step.step, "type": step.kind, "description": step.description, "executorRequired": true, "tools": step.tools,
        "dependsOn": step.depends_on, "status": status,
    })
}

fn result_data(executor: ChatId, result: &StepOutcome) -> Value {
    let mut data = json!({
        "executorId": executor, "success": result.success, "toolCallsMade": result.tool_calls,
        "tokensUsed": result.usage.input_tokens + result.usage.output_tokens, "durationMs": result.duration_ms,
    });
    if !result.data.is_empty() {
        data["data"] = json!(result.data);
    }
    if let Some(error) = &result.error {
        data["error"] = json!(error.message);
    }
    data
}

impl Projection for PlannerTurn {
    type Event = ChatEvent;

    fn take_in(&mut self, number: u64, _: Timestamp, event: &ChatEvent, frames: &mut Vec<Frame>) {
        match event {
            ChatEvent::TurnStarted { turn_id, attempt: 1, .. } => {
                self.turn = self.is_shown(*turn_id).then(|| Turn { id: Some(*turn_id), ..Turn::default() });
                return;
            }
            // A chat that is paused or deleted shows nothing more of a turn, not even of one that never began.
            ChatEvent::Paused { reason, .. } => {
                let error = json!({ "error": reason, "code": domain::Code::Paused });
                self.turn.get_or_insert_default().has_words = true;
                return self.end(number, Some(error), "paused", frames);
            }
            ChatEvent::Deleted { .. } if self.turn.is_none() => {
                let error = json!({ "error": "the session was deleted", "code": domain::Code::Cancelled });
                self.turn = Some(Turn::default());
                return self.end(number, Some(error), "cancelled", frames);
            }
            _ => {}
        }
        let (session, user) = (self.session, self.user);
        let Some(turn) = &mut self.turn else { return };
        match event {
            ChatEvent::MessageAdded { message: Message::User { content, .. } } => turn.words.clone_from(content),
            ChatEvent::Analysed { analysis, .. } => {
                turn.strategy = Some(analysis.strategy);
                let analysis = json!({
                    "strategy": analysis.strategy, "reasoning": analysis.reasoning,
                    "estimatedOperations": analysis.estimated_operations, "requiresTools": analysis.requires_tools,
                    "requiresExecutors": analysis.requires_executors,
                });
                frames.push(frame(number, "analysis", json!({ "analysis": analysis })));
            }
            ChatEvent::ModelStarted { message_id, .. } => turn.said.begin(*message_id),
            ChatEvent::Chunk { text, message_id } => say(number, turn.said.piece(*message_id, text), frames),
            ChatEvent::MessageAdded { message: Message::Assistant { id, content, .. } } => {
                say(number, turn.said.whole(*id, content), frames);
            }
            ChatEvent::CallStarted { call_id, attempt: 1, tool, args, .. } if tool != RUN_PLAN => {
                let call = tool_call(&call_id.to_string(), tool, args);
                frames.push(frame(number, "tool_call", json!({ "tool_call": call })));
            }
            ChatEvent::Observed { call_id, tool, output, success, .. } if tool != RUN_PLAN => {
                let result = tool_result(*call_id, *success, output);
                frames.push(frame(number, "tool_result", json!({ "result": result })));
            }
            // A plan that waits for a person, who reads it here and decides by its permission.
            ChatEvent::PermissionRequired { permission_id, call_id, tool, args, expires_at, .. }
                if tool == RUN_PLAN =>
            {
                // The chat has checked them.
                let steps = PlannedStep::read_all(args).unwrap_or_default();
                turn.steps = steps.into_iter().map(|step| (step.step, (step, None))).collect();
                let mut plan = turn.plan(*call_id, (turn.version + 1, "pending"), session, user);
                plan["plan"]["permission"] = json!({ "id": permission_id, "expires_at": expires_at });
                frames.push(frame(number, "plan_created", plan));
            }
            ChatEvent::Planned { call_id, version, steps, .. } => {
                (turn.plan, turn.version) = (Some(*call_id), *version);
                turn.steps = steps.iter().map(|step| (step.step, (step.clone(), None))).collect();
                let plan = turn.plan(*call_id, (*version, "executing"), session, user);
                frames.push(frame(number, "plan_created", plan));
            }
            ChatEvent::StepStarted { call_id, step, executor, task, .. } if turn.plan == Some(*call_id) => {
                if let Some((_, chat)) = turn.steps.get_mut(step) {
                    *chat = Some(*executor);
                }
                if let Some(step) = turn.step(*step, "executing") {
                    frames.push(frame(number, "step_start", json!({ "step": step })));
                }
                let mut told = json!({ "id": task.id, "description": task.description, "goal": task.goal });
                if !task.constraints.is_empty() {
                    told["constraints"] = json!(task.constraints);
                }
                if let Some(data) = &task.data {
                    told["contextData"] = data.clone();
                }
                frames.push(frame(number, "executor_spawned", json!({ "executorId": executor, "task": told })));
            }
            ChatEvent::StepEnded { call_id, step, result, .. } if turn.plan == Some(*call_id) => {
                turn.usage += result.usage;
                if let Some((_, Some(executor))) = turn.steps.get(step) {
                    let data = json!({ "executorId": executor, "result": result_data(*executor, result) });
                    frames.push(frame(number, "executor_result", data));
                }
                let status = if result.success { "completed" } else { "failed" };
                if let Some(step) = turn.step(*step, status) {
                    frames.push(frame(number, "step_complete", json!({ "step": step })));
                }
            }
            ChatEvent::Steered { words } => {
                turn.has_words |= self.shows == Shows::Steered(TurnId(words.command_id.0));
            }
            ChatEvent::Used { usage, .. } => turn.usage += *usage,
            ChatEvent::Failed { error } => turn.error = Some(error.clone()),
            ChatEvent::Done { stop_reason, .. } => {
                let (reason, otherwise) = ended(*stop_reason);
                let error =
                    otherwise.map(|text| turn.error.as_ref().map_or_else(|| json!({ "error": text }), error_json));
                self.end(number, error, reason, frames);
            }
            ChatEvent::Stopped { .. } => {
                let error = turn.error.as_ref().map(error_json);
                let reason = if error.is_some() { "error" } else { "cancelled" };
                self.end(number, error, reason, frames);
            }
            _ => {}
        }
    }

    fn is_over(&self) -> bool {
        self.over
    }

    fn ends_with_its_stream(&self) -> bool {
        true
    }
}

fn say(number: u64, text: String, frames: &mut Vec<Frame>) {
    if !text.is_empty() {
        frames.push(frame(number, "text", json!({ "content": text })));
    }
}
