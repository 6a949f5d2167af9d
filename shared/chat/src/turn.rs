//! A turn: the model is asked, its calls are answered one after the other, the model is asked again, until it has nothing
//! more to call or a limit is reached.

use crate::{
    agent, ask, cancel,
    context::{assemble, record},
    gate::{GateDecision, GateRequest},
    handed,
    keys::{actor_id, model_key, tool_key},
    machine::{ChatEffect, ChatMachine},
    mode,
    phase::Phase,
    report, rollback,
    session::{carry_out, executor::Refused},
    state::{ChatState, QueuedTurn, Turn},
    team::member,
};
use actor::{EffectKey, OutboxMessage};
use domain::{
    Approval, CallId, ChatCommand, ChatConfig, ChatEvent, Code, CommandId, Error, FilePath, Limits, Message, MessageId,
    NextPersona, Stamp, Status, StopReason, Timestamp, ToolCall, TraceContext, TurnId, event::TurnWait, trace::span_id,
};
use ports::ModelRequest;
use serde_json::Value;
use std::{sync::Arc, time::Duration};
use tools::{Effects, ToolKind};

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
    /// The turn whose work is taken back first.
    pub rolls_back: Option<TurnId>,
    /// The trace that it came in.
    pub trace: Option<TraceContext>,
}

/// The parts of a message beside its words.
pub(crate) struct How {
    pub create: Option<Box<ChatConfig>>,
    pub interrupt: bool,
    pub approval: Option<Box<Approval>>,
    /// With an approval: the persona that carries the plan out.
    pub persona: Option<Box<NextPersona>>,
}

/// A step of a chat: each of its questions is asked of the state, which has all that the step has decided.
pub(crate) struct Step<'a> {
    pub machine: &'a ChatMachine,
    pub stamp: &'a Stamp,
    step: &'a mut actor::Step<ChatMachine>,
    ids: u32,
    /// The last failure that no turn has ended with yet.
    failure: Option<Error>,
    /// The reports on the turns that it has ended.
    reports: Vec<OutboxMessage>,
    /// The slots and the place that the chat had before.
    slots: Option<String>,
    place: Option<CallId>,
}

impl<'a> Step<'a> {
    pub fn new(machine: &'a ChatMachine, step: &'a mut actor::Step<ChatMachine>, stamp: &'a Stamp) -> Self {
        let turn = step.state().turn.as_ref();
        let (slots, place) = (turn.and_then(|turn| turn.slots.clone()), turn.and_then(|turn| turn.place));
        Self { machine, stamp, step, ids: 0, failure: None, reports: Vec::new(), slots, place }
    }

    /// The last messages of the step: the reports on ended turns, and slots and places that the chat has no more.
    pub fn end(mut self) {
        for report in std::mem::take(&mut self.reports) {
            self.send(report);
        }
        let (slots, place) = (self.slots.take(), self.place);
        self.give_slots(slots);
        self.give_place(place);
    }

    pub fn state(&self) -> &ChatState {
        self.step.state()
    }

    pub fn config(&self) -> Option<&Arc<ChatConfig>> {
        self.state().config.as_ref()
    }

    /// The turn that runs or waits.
    pub fn turn(&self) -> Option<&Turn> {
        self.state().turn.as_ref()
    }

    /// The first call of the last message that has no answer yet.
    pub fn next_unanswered(&self) -> Option<ToolCall> {
        self.turn()?.calls.front().cloned()
    }

    pub fn push(&mut self, event: ChatEvent) {
        if let ChatEvent::Failed { error } = &event {
            self.failure = Some(error.clone());
        } else if event.is_terminal() {
            let failure = self.failure.take();
            self.reports.extend(report::on_end(self.step.state(), &event, failure));
        } else if matches!(event, ChatEvent::PlanStep { .. }) {
            self.reports.extend(member::tells(self.step.state(), &event, None));
        }
        self.step.push(event);
    }

    /// A fresh id of this step.
    pub fn id(&mut self) -> uuid::Uuid {
        self.ids += 1;
        self.stamp.id(self.ids)
    }

    pub fn run(&mut self, key: EffectKey, effect: ChatEffect) {
        self.step.run(key, effect);
    }

    pub fn cancel(&mut self, key: EffectKey) {
        self.step.cancel(key);
    }

    pub fn send(&mut self, message: OutboxMessage) {
        self.step.send(message);
    }

    /// Gives the failed work up, so that the chat is not paused.
    pub fn give_up(&mut self) {
        self.step.give_up();
    }

    /// Sends the chat a command at a later time.
    pub fn later(&mut self, at: Timestamp, command: &ChatCommand) {
        let Some(config) = self.config() else { return };
        let to = actor_id(config.workspace, config.chat);
        if let Ok(command) = serde_json::to_value(command) {
            self.send(OutboxMessage { to, command, deliver_at: Some(at), priority: 0 });
        }
    }

    /// Begins a turn.
    fn begin(&mut self, asked: Asked) {
        let Some(config) = self.config() else { return };
        let limits = asked.limits.map_or(config.limits, |asked| asked.within(config.limits));
        let Asked { id, at: asked_at, content, files, context, limits: _, may_approve, rolls_back, trace } = asked;
        let stopped = self.state().stopped_for_rollback;
        self.push(ChatEvent::TurnStarted { turn_id: TurnId(id.0), attempt: 1, asked_at, limits, may_approve, trace });
        let message_id = MessageId(self.id());
        let message = Message::User { id: message_id, at: self.stamp.at, content, files, context };
        self.push(ChatEvent::MessageAdded { message });
        if !self.rolls_back(stopped, rolls_back) {
            self.begin_work();
        }
    }

    /// Begins the work of a turn whose words are there.
    pub(crate) fn begin_work(&mut self) {
        let plans = self.turn().is_some_and(|turn| turn.planning.is_some());
        let words = self.state().history.back().filter(|_| plans).and_then(|turn| {
            turn.messages.iter().find_map(|message| match &**message {
                Message::User { content, .. } => Some(content.clone()),
                Message::Assistant { .. } | Message::System { .. } | Message::Tool { .. } => None,
            })
        });
        match words {
            Some(words) => self.analyse(&words),
            None if self.begins_team() => self.call_team(),
            None => self.call_model(),
        }
    }

    /// Asks the model, unless a limit is reached.
    pub fn call_model(&mut self) {
        if let Some(reason) = self.turn().and_then(|turn| turn.reached(self.stamp.at)) {
            return self.finish(reason);
        }
        if self.waits_for_words() {
            return;
        }
        let message_id = MessageId(self.id());
        self.ask_model(message_id, 1);
    }

    pub fn ask_model(&mut self, message_id: MessageId, attempt: u32) {
        let Some(config) = self.config().cloned() else { return };
        if let Some(thread) = &config.thread {
            return self.prompt_agent((**thread).clone(), message_id);
        }
        if self.compacting().is_some() || !carry_out::analyses(self.state()) && self.compacts_by_itself() {
            return self.ask_for_summary(&config, message_id, attempt);
        }
        if self.waits_for_slots(&config, message_id) {
            return;
        }
        let Some(context) = assemble(self.state()) else {
            let message =
                format!("this turn alone is longer than the chat's context of {} tokens", config.context_tokens);
            let error = Error::new(Code::LimitReached, message)
                .hint("start a new turn: the files that were made are kept; ask for smaller parts of large files");
            self.push(ChatEvent::Failed { error });
            return self.finish(StopReason::ContextLimit);
        };
        if context.cut > 0 {
            self.push(ChatEvent::ContextCut { turns: context.cut });
        }
        let (system, tools) = (mode::system(&config, self.state()), self.offered(&config));
        // An analysis has a context of its own, which is small.
        let size = (tools.len(), self.machine.tools.bytes(&tools));
        let given = (!carry_out::analyses(self.state())).then(|| Box::new(record(self.state(), &system, size)));
        self.push(ChatEvent::ModelStarted { message_id, attempt, at: self.stamp.at, context: given });
        let Some(turn) = self.turn() else { return };
        let mut request = Box::new(ModelRequest {
            model: config.model.clone(),
            system,
            messages: context.messages,
            tools,
            conversation: config.chat.to_string(),
            temperature: config.agent.as_ref().and_then(|agent| agent.temperature),
            top_p: config.agent.as_ref().and_then(|agent| agent.top_p),
            max_tokens: config.agent.as_ref().and_then(|agent| agent.max_tokens),
            flow: config.agent.as_ref().and_then(|agent| Some((config.workspace, agent.flow.clone()?))),
            failures: turn.failures_of(message_id),
            trace: turn.trace.map(|trace| trace.below(span_id(&model_key(message_id, attempt).0))),
            media: Vec::new(),
        });
        if carry_out::analyses(self.state()) {
            carry_out::as_analysis(self.state(), &config, &mut request);
        }
        let deadline = turn.deadline(self.stamp.at);
        let served = agent::offers_served(self.machine, &config);
        let effect = ChatEffect::CallModel { message_id, request, deadline, config, served };
        self.run(model_key(message_id, attempt), effect);
    }

    /// Goes on with the first call that has no answer yet, or with the model when there is none.
    pub fn next_call(&mut self) {
        while let Some(call) = self.next_unanswered() {
            match self.executor_refuses(&call) {
                Some(Refused::Over(error)) => return self.give_up_turn(error, StopReason::StepLimit),
                Some(Refused::Again(why)) => {
                    self.refuse(&call, &why, Status::Partial);
                    continue;
                }
                None if self.is_plan(&call) => return self.run_plan(&call),
                None => {}
            }
            let refusal = self.config().and_then(|config| agent::runs(config, &call).err());
            let refusal = refusal.or_else(|| self.out_of_reach(&call));
            if let Some(agent::Refusal { error, status }) = refusal {
                self.refuse(&call, &tools::Outcome::from(error).output, status);
                continue;
            }
            match self.gate(&call) {
                GateDecision::Permit if self.is_of_client(&call) => return self.call_tool(call, 1),
                GateDecision::Permit if self.kind(&call.tool) == Some(ToolKind::Ask) && self.is_unattended() => {
                    self.refuse(&call, NOBODY, Status::Partial);
                }
                GateDecision::Permit if self.kind(&call.tool) == Some(ToolKind::Ask) => {
                    match ask::question(self, &call) {
                        Ok(()) => return,
                        Err(error) => self.refuse(&call, &describe(&error), Status::Failure),
                    }
                }
                GateDecision::Permit => return self.call_permitted(call),
                GateDecision::Deny { reason } => {
                    self.refuse(&call, &format!("not permitted: {reason}"), Status::Failure);
                }
                GateDecision::Ask { reason, .. } if self.is_unattended() => {
                    self.refuse(&call, &unpermitted(&reason), Status::Partial);
                }
                GateDecision::Ask { category, reason, always, timeout } => {
                    return ask::permission(self, &call, category, reason, always, timeout);
                }
            }
        }
        self.call_model();
    }

    /// Whether nobody is there who could be asked.
    pub fn is_unattended(&self) -> bool {
        self.config().is_some_and(|config| config.is_unattended())
    }

    pub fn gate(&self, call: &ToolCall) -> GateDecision {
        self.gate_as(call, self.is_approved())
    }

    /// Decides on a call of a turn that has the rights of an approved plan or not.
    pub fn gate_as(&self, call: &ToolCall, approved: bool) -> GateDecision {
        let Some(config) = self.config() else { return GateDecision::Deny { reason: "there is no chat".into() } };
        let decision = match self.effects(call) {
            Some(Ok(effects)) => {
                let (tool, args, effects, permissions) = (&*call.tool, &*call.args, &effects, self.permissions());
                self.machine.gate.decide(&GateRequest { config, effects, tool, args, approved, permissions })
            }
            Some(Err(error)) => GateDecision::Deny { reason: error.message },
            None => GateDecision::Deny { reason: "the effect of this call is unknown".into() },
        };
        tracing::debug!(tool = call.tool, args = call.args, ?decision, "decided on a call");
        decision
    }

    /// The effects of a call, by its arguments; an error for a call that has none. None without a configuration.
    pub fn effects(&self, call: &ToolCall) -> Option<Result<Effects, Error>> {
        let config = self.config()?;
        let plan = self.state().plan_path.clone().unwrap_or_else(|| mode::default_plan(config));
        Some(agent::effects(&self.machine.tools, config, call, &plan))
    }

    pub fn kind(&self, tool: &str) -> Option<ToolKind> {
        let config = self.config()?;
        agent::kind(&self.machine.tools, config, tool)
    }

    /// Whether the client of the chat runs the call.
    fn is_of_client(&self, call: &ToolCall) -> bool {
        self.config().is_some_and(|config| agent::of_client(config, &call.tool).is_some())
    }

    /// Runs a tool, or hands the call to the client that has its function; a command once it has a place.
    pub fn call_tool(&mut self, call: ToolCall, attempt: u32) {
        if self.is_of_client(&call) {
            return handed::to_client(self, &call);
        }
        if !self.waits_for_place(&call, attempt) {
            self.run_tool(call, attempt);
        }
    }

    pub fn run_tool(&mut self, call: ToolCall, attempt: u32) {
        self.run_with(call, attempt, None);
    }

    /// Goes on with a call whose server has asked a person.
    pub fn reply(&mut self, call: ToolCall, reply: Value) {
        let Some(turn) = self.turn() else { return };
        let attempt = match turn.phase {
            Phase::Tool { call_id, attempt } if call_id == call.call_id => attempt,
            _ => turn.tried.filter(|tried| tried.call_id == call.call_id).map_or(0, |tried| tried.attempt),
        };
        self.run_with(call, attempt + 1, Some(reply));
    }

    fn run_with(&mut self, call: ToolCall, attempt: u32, reply: Option<Value>) {
        let Some(config) = self.config().cloned() else { return };
        self.started(&call, attempt);
        let state = self.state();
        let place = config.scenario.as_ref().and_then(|setup| setup.plan_path.clone());
        let (seen, plan_path) = (state.seen.iter().cloned().collect(), state.plan_path.clone().or(place));
        let allowed = self.is_allowed(&call);
        let unready_since = state.turn.as_ref().and_then(|turn| turn.unready_since);
        let waited = unready_since.map_or(Duration::ZERO, |since| self.stamp.at.since(since));
        let key = tool_key(call.call_id, attempt);
        self.run(key, ChatEffect::CallTool { call, config, attempt, seen, plan_path, waited, allowed, reply });
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
    pub fn finish(&mut self, stop_reason: StopReason) {
        self.read_words();
        let Some(turn) = self.turn() else { return };
        let (turn_id, message) = (turn.id, turn.last_text.clone());
        self.push(ChatEvent::Done { turn_id, message, stop_reason, at: self.stamp.at });
        self.begin_queued();
    }

    /// Begins the next turn that waits, if one does.
    pub fn begin_queued(&mut self) {
        let Some(queued) = self.state().queued.front().cloned() else { return };
        let QueuedTurn { command_id: id, at, content, files, context, limits, next, may_approve, trace } = queued;
        // The message that has just stopped a turn that waited is the next one.
        let rolls_back = self.state().stopped_for_rollback.filter(|_| next);
        self.begin(Asked { id, at, content, files, context, limits, may_approve, rolls_back, trace });
    }
}

/// The answer to questions where nobody is there.
const NOBODY: &str = "nobody is there to answer: decide by yourself, and say in your last message what you assumed";

/// The answer to a call that needs a person's permission where nobody is there.
pub(crate) fn unpermitted(reason: &str) -> String {
    format!("not permitted: nobody is there to permit it: {reason}")
}

/// An error as a model reads it.
pub(crate) fn describe(error: &Error) -> String {
    match &error.hint {
        Some(hint) => format!("{}: {} ({hint})", error.code, error.message),
        None => format!("{}: {}", error.code, error.message),
    }
}

/// A person's message.
pub(crate) fn start(step: &mut Step<'_>, asked: Asked, How { create, interrupt, approval, persona }: How) {
    if step.state().deleted {
        if let Some(message) = report::gone(step.state()) {
            step.send(message);
        }
        return;
    }
    if step.config().is_none() {
        let Some(config) = create else {
            let error = Error::new(Code::NotFound, "this chat was never made").hint("POST …/chats makes one");
            return step.push(ChatEvent::Failed { error });
        };
        step.push(ChatEvent::Created { config });
    }
    if let Some(approval) = approval {
        step.approve(approval);
        step.hand_over(persona);
    }
    let Some(turn) = step.turn() else { return step.begin(asked) };
    let is_suspended = turn.phase.is_suspended();
    let takes_back = asked.rolls_back.filter(|meant| *meant == turn.id);
    // One that is just being taken back, for another message, is told of by the end of that.
    let is_going_back = |meant: TurnId| matches!(turn.phase, Phase::Rollback { turn_id, .. } if turn_id == meant);
    if let Some(other) = asked.rolls_back.filter(|meant| takes_back.is_none() && !is_going_back(*meant)) {
        step.not_rolled_back(other);
    }
    let Asked { id: command_id, at, content, files, context, limits, may_approve, trace, .. } = asked;
    let next = interrupt;
    let wait = TurnWait { command_id, at, content, files, context, limits, next, may_approve, trace };
    step.push(ChatEvent::TurnQueued(wait));
    if interrupt && is_suspended {
        cancel::interrupt(step, rollback::reason(takes_back));
    }
}
