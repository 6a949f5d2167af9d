//! A turn: the model is asked, its calls are answered one after the other, the model is asked again, until it has nothing
//! more to call or a limit is reached.

use crate::{
    account::Account,
    agent, ask, cancel,
    context::assemble,
    gate::{GateDecision, GateRequest},
    machine::{ChatEffect, ChatMachine, ModelAnswer, Report, actor_id, just, kill_key, model_key, tool_key},
    mode,
    phase::Phase,
    report,
    size::{MAX_ANSWER, beginning},
    state::{ChatState, QueuedTurn, Turn},
};
use actor::{Decision, EffectKey, Letter};
use domain::{
    Approval, CallId, ChatCommand, ChatConfig, ChatEvent, Code, CommandId, Error, FilePath, Limits, Message, MessageId,
    Sha256, Stamp, Status, StopReason, Timestamp, ToolCall, TraceContext, TurnId, Usage, trace::span_id,
};
use ports::ModelRequest;
use serde_json::Value;
use std::{sync::Arc, time::Duration};
use tools::{Effects, Kind};

/// A turn as it was asked for.
pub(crate) struct Asked {
    pub id: CommandId,
    pub at: Timestamp,
    pub content: String,
    pub files: Vec<FilePath>,
    pub context: String,
    pub limits: Option<Limits>,
    /// Whether its sender may approve.
    pub may_approve: bool,
    /// The trace that it came in.
    pub trace: Option<TraceContext>,
}

/// The parts of a message beside its words.
pub(crate) struct How {
    pub create: Option<Box<ChatConfig>>,
    pub interrupt: bool,
    pub approval: Option<Box<Approval>>,
}

/// A decision in the making: the state before it, and the decision so far.
pub(crate) struct Step<'a> {
    pub machine: &'a ChatMachine,
    pub state: &'a ChatState,
    pub stamp: &'a Stamp,
    pub decision: Decision<ChatMachine>,
    ids: u32,
    pub config: Option<Arc<ChatConfig>>,
    pub approval: Option<Box<Approval>>,
    /// How many of the turns that wait this step has begun.
    begun: usize,
}

impl<'a> Step<'a> {
    pub fn new(machine: &'a ChatMachine, state: &'a ChatState, stamp: &'a Stamp) -> Self {
        let (config, approval) = (state.config.clone(), state.approval.clone());
        Self { machine, state, stamp, decision: Decision::default(), ids: 0, config, approval, begun: 0 }
    }

    pub fn push(&mut self, event: ChatEvent) {
        self.decision.events.push(event);
    }

    /// A fresh id of this step.
    pub fn id(&mut self) -> uuid::Uuid {
        self.ids += 1;
        self.stamp.id(self.ids)
    }

    pub fn run(&mut self, key: EffectKey, effect: ChatEffect) {
        self.decision.effects.push((key, effect));
    }

    /// Sends the chat a command at a later time.
    pub fn later(&mut self, at: Timestamp, command: &ChatCommand) {
        let Some(config) = &self.config else { return };
        let to = actor_id(config.workspace, config.chat);
        if let Ok(command) = serde_json::to_value(command) {
            self.decision.send.push(Letter { to, command, deliver_at: Some(at), priority: 0 });
        }
    }

    /// Begins a turn.
    fn begin(&mut self, asked: Asked) {
        let Some(config) = self.config.clone() else { return };
        let id = TurnId(asked.id.0);
        let limits = asked.limits.map_or(config.limits, |asked| asked.within(config.limits));
        let (may_approve, trace) = (asked.may_approve, asked.trace);
        self.push(ChatEvent::TurnStarted { turn_id: id, attempt: 1, asked_at: asked.at, limits, may_approve, trace });
        let message_id = MessageId(self.id());
        let Asked { content, files, context, .. } = asked;
        let message = Message::User { id: message_id, at: self.stamp.at, content, files, context };
        self.push(ChatEvent::MessageAdded { message });
        let account = Account { id, limits, steps: 0, usage: Usage::default(), started_at: None, waited_ms: 0 };
        self.call_model(&account);
    }

    /// Asks the model, unless a limit is reached.
    pub fn call_model(&mut self, account: &Account) {
        if let Some(reason) = account.reached(self.stamp.at) {
            return self.finish(account, reason);
        }
        let message_id = MessageId(self.id());
        self.ask_model(account, message_id, 1);
    }

    pub fn ask_model(&mut self, account: &Account, message_id: MessageId, attempt: u32) {
        let Some(config) = self.config.clone() else { return };
        if self.waits_for_slots(&config, message_id) {
            return;
        }
        let Some(context) = assemble(self.state, &self.decision.events) else {
            let message =
                format!("this turn alone is longer than the chat's context of {} tokens", config.context_tokens);
            let error = Error::new(Code::LimitReached, message)
                .hint("start a new turn: the files that were made are kept; ask for smaller parts of large files");
            self.push(ChatEvent::Failed { error });
            return self.finish(account, StopReason::ContextLimit);
        };
        if context.cut > 0 {
            self.push(ChatEvent::ContextCut { turns: context.cut });
        }
        self.push(ChatEvent::ModelStarted { message_id, attempt, at: self.stamp.at });
        let request = Box::new(ModelRequest {
            model: config.model.clone(),
            system: mode::system(&config),
            messages: context.messages,
            tools: agent::specs(self.machine, &config),
            conversation: config.chat.to_string(),
            temperature: config.agent.as_ref().and_then(|agent| agent.temperature),
            top_p: config.agent.as_ref().and_then(|agent| agent.top_p),
            max_tokens: config.agent.as_ref().and_then(|agent| agent.max_tokens),
            flow: config.agent.as_ref().and_then(|agent| Some((config.workspace, agent.flow.clone()?))),
            failures: self.state.turn.as_ref().map_or(0, |turn| turn.failures_of(message_id)),
            trace: self.trace().map(|trace| trace.below(span_id(&model_key(message_id, attempt).0))),
        });
        let deadline = account.deadline(self.stamp.at);
        self.run(model_key(message_id, attempt), ChatEffect::CallModel { message_id, request, deadline });
    }

    /// Goes on with the first of `calls`, or with the model when there is none.
    pub fn next_call(&mut self, account: &Account, calls: impl Iterator<Item = ToolCall>) {
        for call in calls {
            let refusal = self.config.as_ref().and_then(|config| agent::runs(config, &call).err());
            let refusal = refusal.or_else(|| self.effects(&call)?.err().map(agent::Refusal::from));
            if let Some(agent::Refusal { error, status }) = refusal {
                self.refuse(&call, &tools::Outcome::from(error).output, status);
                continue;
            }
            match self.gate(&call) {
                GateDecision::Permit if self.kind(&call.tool) == Some(Kind::Ask) => match ask::question(self, &call) {
                    Ok(()) => return,
                    Err(error) => self.refuse(&call, &describe(&error), Status::Failure),
                },
                GateDecision::Permit => return self.call_permitted(call),
                GateDecision::Deny { reason } => {
                    self.refuse(&call, &format!("not permitted: {reason}"), Status::Failure);
                }
                GateDecision::Ask { category, reason, timeout } => {
                    return ask::permission(self, &call, category, reason, timeout);
                }
            }
        }
        self.call_model(account);
    }

    pub fn gate(&self, call: &ToolCall) -> GateDecision {
        let Some(config) = &self.config else { return GateDecision::Deny { reason: "there is no chat".into() } };
        let decision = match self.effects(call) {
            Some(Ok(effects)) => {
                let approved = self.is_approved();
                self.machine.gate.decide(&GateRequest { config, effects: &effects, args: &call.args, approved })
            }
            Some(Err(error)) => GateDecision::Deny { reason: error.message },
            None => GateDecision::Deny { reason: "the effect of this call is unknown".into() },
        };
        tracing::debug!(tool = call.tool, args = call.args, ?decision, "decided on a call");
        decision
    }

    /// The effects of a call, by its arguments; an error for a call that has none. None without a configuration.
    fn effects(&self, call: &ToolCall) -> Option<Result<Effects, Error>> {
        let config = self.config.as_ref()?;
        let plan = self.state.plan_path.clone().unwrap_or_else(|| mode::default_plan(config));
        Some(agent::effects(&self.machine.tools, config, call, &plan))
    }

    pub fn kind(&self, tool: &str) -> Option<Kind> {
        let config = self.config.as_ref()?;
        agent::kind(&self.machine.tools, config, tool)
    }

    /// Runs a tool; a command once it has a place.
    pub fn call_tool(&mut self, call: ToolCall, attempt: u32) {
        if !self.waits_for_place(&call, attempt) {
            self.run_tool(call, attempt);
        }
    }

    pub fn run_tool(&mut self, call: ToolCall, attempt: u32) {
        let Some(config) = self.config.clone() else { return };
        let mut seen: Vec<(FilePath, Option<Sha256>)> = self.state.seen.iter().cloned().collect();
        let mut plan_path = self.state.plan_path.clone();
        // Observations of this very step are not in the state yet.
        for event in &self.decision.events {
            match event {
                ChatEvent::Observed { seen: more, .. } => seen.extend(more.iter().cloned()),
                ChatEvent::PlanStep { plan_path: path, .. } => plan_path = Some(path.clone()),
                _ => {}
            }
        }
        self.started(&call, attempt);
        let unready_since = self.state.turn.as_ref().and_then(|turn| turn.unready_since);
        let waited = unready_since.map_or(Duration::ZERO, |since| self.stamp.at.since(since));
        self.run(tool_key(call.call_id, attempt), ChatEffect::CallTool { call, config, seen, plan_path, waited });
    }

    /// Whether a call that runs is a command: it may take long, and nothing that it does is lost when it is ended.
    pub fn runs_command(&self, turn: &Turn, call_id: CallId) -> bool {
        let call = turn.calls.iter().find(|call| call.call_id == call_id);
        call.is_some_and(|call| self.kind(&call.tool) == Some(Kind::Exec))
    }

    /// Ends a command, and drops its report.
    pub fn kill_command(&mut self, call_id: CallId, attempt: u32) {
        self.decision.cancel.push(tool_key(call_id, attempt));
        self.end_command(call_id);
    }

    /// Ends a command that no effect follows.
    pub fn end_command(&mut self, call_id: CallId) {
        let Some(workspace) = self.config.as_ref().map(|config| config.workspace) else { return };
        self.run(kill_key(call_id), ChatEffect::KillCommand { workspace, call_id });
    }

    pub fn started(&mut self, call: &ToolCall, attempt: u32) {
        let effects = self.effects(call).and_then(Result::ok);
        let path = effects.and_then(|effects| effects.about().map(ToString::to_string));
        let (call_id, tool, args) = (call.call_id, call.tool.clone(), call.args.clone());
        self.push(ChatEvent::CallStarted { call_id, attempt, tool, path, args, at: Some(self.stamp.at) });
    }

    /// Answers a call that does not run.
    pub fn refuse(&mut self, call: &ToolCall, why: &str, status: Status) {
        self.started(call, 1);
        self.observe(call, why.to_owned(), status);
    }

    /// Answers a call: a `Failure` is a misuse, and `Partial` any other error (spec 002 §3.4).
    pub fn observe(&mut self, call: &ToolCall, output: String, status: Status) {
        let (call_id, tool, at) = (call.call_id, call.tool.clone(), self.stamp.at);
        let (success, misuse) = (status == Status::Success, status == Status::Failure);
        let (truncated, seen, code, resources) = (false, Vec::new(), None, None);
        self.push(ChatEvent::Observed { call_id, tool, output, success, misuse, code, resources, truncated, seen, at });
    }

    /// Answers a call that came to nothing, for a reason that programs know.
    pub fn failed(&mut self, call: &ToolCall, output: String, code: Code) {
        let (call_id, tool, at) = (call.call_id, call.tool.clone(), self.stamp.at);
        let (success, misuse, truncated, seen) = (false, false, false, Vec::new());
        let (code, resources) = (Some(code), None);
        self.push(ChatEvent::Observed { call_id, tool, output, success, misuse, code, resources, truncated, seen, at });
    }

    /// Ends the turn by itself, then begins the next one that waits.
    pub fn finish(&mut self, account: &Account, stop_reason: StopReason) {
        let message = self.last_text();
        self.push(ChatEvent::Done { turn_id: account.id, message, stop_reason, at: self.stamp.at });
        self.begin_queued();
    }

    /// Begins the next turn that waits, if one does.
    pub fn begin_queued(&mut self) {
        // The state does not move within a step: turns that the step queued are not in it yet, and turns that it began still are.
        let mut waiting = self.state.queued.clone();
        let new = self.decision.events.iter().filter_map(QueuedTurn::of);
        new.for_each(|queued| queued.queue(&mut waiting));
        let deleted = self.decision.events.iter().any(|event| matches!(event, ChatEvent::Deleted { .. }));
        if let Some(queued) = waiting.into_iter().nth(self.begun).filter(|_| !(deleted || self.state.deleted)) {
            self.begun += 1;
            let QueuedTurn { command_id: id, at, content, files, context, limits, next: _, may_approve, trace } =
                queued;
            self.begin(Asked { id, at, content, files, context, limits, may_approve, trace });
        }
    }

    /// The trace that the running turn came in.
    fn trace(&self) -> Option<TraceContext> {
        let begun = self.decision.events.iter().rev().find_map(|event| match event {
            ChatEvent::TurnStarted { trace, .. } => Some(*trace),
            _ => None,
        });
        begun.unwrap_or_else(|| self.state.turn.as_ref().and_then(|turn| turn.trace))
    }

    fn last_text(&self) -> String {
        for event in self.decision.events.iter().rev() {
            match event {
                ChatEvent::MessageAdded { message: Message::Assistant { content, .. } } => return content.clone(),
                ChatEvent::TurnStarted { attempt: 1, .. } => return String::new(),
                _ => {}
            }
        }
        self.state.turn.as_ref().map(|turn| turn.last_text.clone()).unwrap_or_default()
    }

    /// Keeps the text of the model so far as a message, if there is any.
    pub fn keep_partial(&mut self, message_id: MessageId, text: &str) {
        if !text.is_empty() {
            let message = Message::Assistant {
                id: message_id,
                at: self.stamp.at,
                content: beginning(text, MAX_ANSWER).to_owned(),
                calls: Vec::new(),
                reasoning: String::new(),
                provider: Value::Null,
            };
            self.push(ChatEvent::MessageAdded { message });
        }
    }
}

/// Whether the call itself was wrong, and not merely its circumstances.
fn is_misuse(error: &Error) -> bool {
    matches!(error.code, Code::InvalidArgument | Code::Forbidden | Code::Unauthorized)
}

/// An error as a model reads it.
pub(crate) fn describe(error: &Error) -> String {
    match &error.hint {
        Some(hint) => format!("{}: {} ({hint})", error.code, error.message),
        None => format!("{}: {}", error.code, error.message),
    }
}

/// A person's message.
pub(crate) fn start(
    machine: &ChatMachine,
    state: &ChatState,
    asked: Asked,
    How { create, interrupt, approval }: How,
    stamp: &Stamp,
) -> Decision<ChatMachine> {
    if state.deleted {
        return Decision { send: report::gone(state).into_iter().collect(), ..Decision::default() };
    }
    let mut step = Step::new(machine, state, stamp);
    if step.config.is_none() {
        let Some(config) = create else {
            let error = Error::new(Code::NotFound, "this chat was never made").hint("POST …/chats makes one");
            return just(ChatEvent::Failed { error });
        };
        step.config = Some(Arc::new((*config).clone()));
        step.push(ChatEvent::Created { config });
    }
    if let Some(approval) = approval {
        step.approve(approval);
    }
    match &state.turn {
        None => step.begin(asked),
        Some(turn) => {
            let Asked { id: command_id, at, content, files, context, limits, may_approve, trace } = asked;
            let next = interrupt;
            let queued =
                ChatEvent::TurnQueued { command_id, at, content, files, context, limits, next, may_approve, trace };
            step.push(queued);
            if interrupt && turn.phase.is_suspended() {
                cancel::end_at_once(&mut step, turn, None, "interrupted");
            }
        }
    }
    step.decision
}

/// Takes in the report of an effect. A report that does not fit the state is late, and is dropped.
pub(crate) fn effect_reported(
    machine: &ChatMachine,
    state: &ChatState,
    report: Report,
    stamp: &Stamp,
) -> Decision<ChatMachine> {
    let Some(turn) = &state.turn else { return Decision::default() };
    let mut step = Step::new(machine, state, stamp);
    match (report, &turn.phase) {
        (Report::Reasoned { message_id, text }, Phase::Model { message_id: current, .. }) if message_id == *current => {
            step.push(ChatEvent::Thought { text, message_id });
        }
        (Report::Wrote { message_id, text }, Phase::Model { message_id: current, .. }) if message_id == *current => {
            step.push(ChatEvent::Chunk { text, message_id });
        }
        (Report::ModelFinished(answer), Phase::Model { message_id, .. }) if answer.message_id == *message_id => {
            model_finished(&mut step, turn, *answer);
        }
        (Report::ModelFailed { message_id, error, timed_out }, Phase::Model { message_id: current, text, .. })
            if message_id == *current =>
        {
            step.keep_partial(message_id, text);
            if !timed_out {
                step.push(ChatEvent::Failed { error });
            }
            let reason = if timed_out { StopReason::TimeLimit } else { StopReason::Error };
            step.finish(&Account::of(turn), reason);
        }
        (Report::ModelPostponed { message_id, error, failures, after }, Phase::Model { message_id: current, .. })
            if message_id == *current =>
        {
            step.postpone(&Account::of(turn), message_id, error, failures, after);
        }
        (Report::ToolFinished { call_id, outcome }, Phase::Tool { call_id: current, attempt })
            if call_id == *current =>
        {
            let unready = outcome.error.as_ref().filter(|_| turn.stopping.is_none());
            match unready.and_then(|error| Some((error.clone(), tools::come_again(error)?))) {
                Some((error, after)) => step.come_again(call_id, *attempt, error, after),
                None => tool_finished(&mut step, turn, call_id, *outcome),
            }
        }
        (Report::PlanChecked { call_id, changed }, Phase::Begun) => {
            if let Some(call) = turn.calls.front().filter(|call| call.call_id == call_id) {
                match changed {
                    None => step.call_tool(call.clone(), 1),
                    Some(changed) => step.ask_anew(call, &changed),
                }
            }
        }
        (
            _,
            Phase::Begun
            | Phase::Slots { .. }
            | Phase::Backoff { .. }
            | Phase::Model { .. }
            | Phase::Place { .. }
            | Phase::Tool { .. }
            | Phase::Permission { .. }
            | Phase::Question { .. },
        ) => {}
    }
    step.decision
}

fn model_finished(step: &mut Step<'_>, turn: &Turn, answer: ModelAnswer) {
    let message_id = answer.message_id;
    if !answer.unreported.is_empty() {
        step.push(ChatEvent::Chunk { text: answer.unreported, message_id });
    }
    let calls: Vec<ToolCall> =
        answer.calls.into_iter().map(|(tool, args)| ToolCall { call_id: CallId(step.id()), tool, args }).collect();
    // A provider takes back no message that says nothing.
    if !(answer.text.is_empty() && calls.is_empty()) {
        let message = Message::Assistant {
            id: message_id,
            at: step.stamp.at,
            content: answer.text,
            calls: calls.clone(),
            reasoning: answer.reasoning,
            provider: answer.provider,
        };
        step.push(ChatEvent::MessageAdded { message });
    }
    let context_limit = step.config.as_ref().map_or(0, |config| config.context_tokens);
    let context_used = answer.usage.input_tokens;
    step.push(ChatEvent::Used { usage: answer.usage, context_used, context_limit, model: answer.model });
    let mut account = Account::of(turn);
    account.usage += answer.usage;
    if calls.is_empty() { step.finish(&account, answer.reason) } else { step.next_call(&account, calls.into_iter()) }
}

fn tool_finished(step: &mut Step<'_>, turn: &Turn, call_id: CallId, outcome: tools::Outcome) {
    let Some(call) = turn.calls.iter().find(|call| call.call_id == call_id) else { return };
    let tools::Outcome { output, success, truncated, seen, events, error, resources, .. } = outcome;
    let (tool, at) = (call.tool.clone(), step.stamp.at);
    let misuse = step.kind(&tool).is_none() || error.as_ref().is_some_and(is_misuse);
    let code = error.map(|error| error.code);
    step.push(ChatEvent::Observed { call_id, tool, output, success, misuse, code, resources, truncated, seen, at });
    step.decision.events.extend(events);
    let rest = turn.calls.iter().filter(|call| call.call_id != call_id).cloned();
    match &turn.stopping {
        None => step.next_call(&Account::of(turn), rest),
        Some((stop_id, reason)) => cancel::end(step, turn, rest, Some(*stop_id), reason, turn.last_text.clone()),
    }
}
