//! A turn: the model is asked, its calls are answered one after the other, the model is asked again, until it has nothing
//! more to call or a limit is reached.

use crate::{
    agent, ask,
    calls::{denied, describe, unpermitted},
    cancel,
    context::{self, assemble, record},
    gate::GateDecision,
    handed_out_calls,
    keys::model_key,
    machine::ChatEffect,
    offered_tools,
    phase::Phase,
    report,
    session::{analysis, execution, executor::CallRefusal},
    step::Step,
    tool_disclosure::Offer,
};
use domain::{
    ChatConfig, ChatEvent, Code, CommandId, Error, Message, MessageId, Status, StopReason, Timestamp, ToolCall, TurnId,
    TurnRequest, TurnWishes, UserId, event::TurnWait, trace::span_id,
};
use ports::ModelRequest;
use tools::ToolKind;

impl Step<'_> {
    /// Begins a turn.
    fn begin(&mut self, asked: TurnWait, rolls_back: Option<TurnId>) {
        let Some(config) = self.config() else { return };
        let limits = asked.limits.map_or(config.limits, |asked| asked.within(config.limits));
        let (turn_id, asked_at) = (TurnId(asked.command_id.0), asked.at);
        let no_home = asked.no_home || asked.user_id.is_some_and(|user| user != config.user);
        let TurnWait { content, files, context, may_approve, may_not_run, trace, user_id, wishes, .. } = asked;
        let TurnWishes { settings, format } = wishes.map(|wishes| *wishes).unwrap_or_default();
        let model_settings = settings.or(config.model_settings);
        let other = (model_settings != config.model_settings)
            .then(|| Box::new(ChatConfig { model_settings, ..(**config).clone() }));
        let stopped = self.state().stopped_for_rollback;
        if let Some(config) = other {
            self.push(ChatEvent::Configured { config });
        }
        self.push(ChatEvent::TurnStarted { turn_id, attempt: 1, asked_at, limits, may_approve, trace });
        if let Some(format) = format {
            self.push(ChatEvent::FormatAsked { format });
        }
        if may_not_run {
            self.push(ChatEvent::RunWithheld);
        }
        if no_home {
            self.push(ChatEvent::HomeWithheld);
        }
        let message_id = MessageId(self.id());
        let message = Message::User { id: message_id, at: self.stamp.at, content, files, context, user_id };
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
        if let Some(error) = self.repeats_in_vain() {
            return self.give_up_turn(error, StopReason::Error);
        }
        let message_id = MessageId(self.id());
        self.ask_model(message_id, 1);
    }

    pub fn ask_model(&mut self, message_id: MessageId, attempt: u32) {
        let Some(config) = self.config().cloned() else { return };
        if let Some(thread) = &config.thread {
            return self.prompt_agent((**thread).clone(), message_id);
        }
        if self.compacting().is_some() || !execution::analyses(self.state()) && self.compacts_by_itself() {
            return self.ask_for_summary(&config, message_id, attempt);
        }
        if self.waits_for_slots(&config, message_id) {
            return;
        }
        let Offer { specs: tools, cut } = self.offered(&config);
        let bytes = self.machine.tools.bytes(&tools);
        let Some(context) = assemble(self.state(), bytes as u64 / 4) else {
            let message =
                format!("this turn alone is longer than the chat's context of {} tokens", config.context_tokens);
            let error = Error::new(Code::LimitReached, message)
                .hint("start a new turn: the files that were made are kept; ask for smaller parts of large files");
            self.push(ChatEvent::Failed { error });
            return self.finish(StopReason::ContextLimit);
        };
        // An analysis has a context of its own, which is small.
        let analysis = execution::analyses(self.state()).then(|| analysis::Request::of(self.state(), &config));
        if context.cut > 0 && analysis.is_none() {
            self.push(ChatEvent::ContextCut { turns: context.cut });
        }
        let (system, size) = (context::system(&config, self.state()), (tools.len(), bytes));
        let given = match &analysis {
            Some(analysis) => analysis.record(&config),
            None => {
                let mut given = record(self.state(), &system, size, context.earlier);
                given.cut.extend(cut);
                context.note(&mut given);
                given
            }
        };
        let given = Some(Box::new(given));
        self.push(ChatEvent::ModelStarted { message_id, attempt, at: self.stamp.at, context: given });
        let Some(turn) = self.turn() else { return };
        let settings = config.settings_of_calls();
        let mut request = Box::new(ModelRequest {
            model: config.model.clone(),
            system,
            messages: context.messages.into(),
            tools,
            conversation: config.chat.to_string(),
            temperature: settings.temperature,
            top_p: settings.top_p,
            max_tokens: settings.max_output_tokens,
            schema: turn.format.as_ref().filter(|format| format.strict).map(|format| format.schema.clone()),
            flow: config.agent.as_ref().and_then(|agent| Some((config.workspace, agent.flow.clone()?))),
            failures: turn.failures_of(message_id),
            trace: turn.trace.map(|trace| trace.below(span_id(&model_key(message_id, attempt).0))),
            media: Vec::new(),
        });
        if let Some(analysis) = analysis {
            analysis.put_into(&mut request);
        }
        let deadline = turn.deadline(self.stamp.at);
        let (served, reads_rules) = (offered_tools::offers_served(self.machine, &config), !self.knows_denials());
        let has_home = self.has_home();
        let effect = ChatEffect::CallModel { message_id, request, deadline, config, served, reads_rules, has_home };
        self.run(model_key(message_id, attempt), effect);
    }

    /// Goes on with the first call that has no answer yet, or with the model when there is none.
    pub fn next_call(&mut self) {
        while let Some(call) = self.next_unanswered() {
            match self.executor_refuses(&call) {
                Some(CallRefusal::Over(error)) => return self.give_up_turn(error, StopReason::StepLimit),
                Some(CallRefusal::Again(why)) => {
                    self.refuse(&call, &why, Status::Partial);
                    continue;
                }
                None if self.is_plan(&call) => return self.run_plan(&call),
                None if self.asks_about_tools(&call) => {
                    self.tell_of_tools(&call);
                    continue;
                }
                None => {}
            }
            let refusal = self.config().and_then(|config| agent::runs(config, &call).err());
            let refusal = refusal.or_else(|| self.out_of_allowlist(&call));
            if let Some(agent::Refusal { error, status }) = refusal {
                self.refuse(&call, &tools::CallOutcome::from(error).output, status);
                continue;
            }
            if let Some(rule) = self.denied_by(&call) {
                self.refuse(&call, &denied(&rule), Status::Partial);
                continue;
            }
            let decision = self.gate(&call);
            if decision == GateDecision::Permit
                && let Some(why) = self.denied_in_all_chats(&call)
            {
                self.refuse(&call, &why, Status::Partial);
                continue;
            }
            match decision {
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

    /// Runs a tool, or hands the call to the client that has its function; a command once it has a place.
    pub fn call_tool(&mut self, call: ToolCall, attempt: u32) {
        if self.is_of_client(&call) {
            return handed_out_calls::to_client(self, &call);
        }
        if !self.waits_for_place(&call, attempt) {
            self.run_tool(call, attempt);
        }
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
        // The message that has just stopped a turn that waited is the next one.
        let rolls_back = self.state().stopped_for_rollback.filter(|_| queued.next == Some(true));
        self.begin(queued, rolls_back);
    }
}

/// The answer to questions where nobody is there.
const NOBODY: &str = "nobody is there to answer: decide by yourself, and say in your last message what you assumed";

/// Takes a message in: its turn begins, or waits. `user_id` is its author; none where a program wrote it.
pub(crate) fn start(
    step: &mut Step<'_>,
    command_id: CommandId,
    at: Timestamp,
    user_id: Option<UserId>,
    request: TurnRequest,
) {
    let TurnRequest {
        content,
        files,
        context,
        create,
        limits,
        interrupt,
        approval,
        persona,
        may_approve,
        may_not_run,
        no_home,
        noted: _,
        rolls_back,
        trace,
        wishes,
    } = request;
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
    let asked = TurnWait {
        command_id,
        at,
        content,
        files,
        context,
        limits,
        next: interrupt.then_some(true),
        may_approve,
        may_not_run,
        no_home,
        trace,
        user_id,
        wishes,
    };
    let Some(turn) = step.turn() else { return step.begin(asked, rolls_back) };
    let is_suspended = turn.phase.is_suspended();
    let takes_back = rolls_back.filter(|meant| *meant == turn.id);
    // One that is just being taken back, for another message, is told of by the end of that.
    let is_going_back = |meant: TurnId| matches!(turn.phase, Phase::Rollback { turn_id, .. } if turn_id == meant);
    if let Some(other) = rolls_back.filter(|meant| takes_back.is_none() && !is_going_back(*meant)) {
        step.not_rolled_back(other);
    }
    step.push(ChatEvent::TurnQueued(asked));
    if interrupt && is_suspended {
        cancel::interrupt(step, cancel::interruption(takes_back));
    }
}
