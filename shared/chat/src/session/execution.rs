//! A plan is carried out: its executors are sent their tasks and report, until every step has ended. Then the call that is the plan is
//! answered, and the turn goes on.

use super::{analysis, contexts, executor, rules};
use crate::{
    ask,
    keys::actor_id,
    machine::ModelAnswer,
    offered_tools,
    phase::Phase,
    requests::title_of,
    session_plan::{self, MAX_VERSIONS, PlanAction, RUN_PLAN, Run, SECOND_CHANCES},
    state::ChatState,
    step::Step,
    tool_disclosure::{self, Offer, TOOL_INFO},
};
use domain::{
    Analysis, ChatCommand, ChatConfig, ChatEvent, ChatId, Code, Error, Message, SessionContext, Status, StopId,
    StopReason, Strategy, TeamFact, ToolCall, TurnRequest, Usage,
    session::{AnalysisOrigin, SessionBudget, StepOutcome},
    task::AgentAnswer,
};
use std::sync::Arc;
use tools::ToolKind;

/// Tokens of the result of one step that are kept, within those of all results.
const RESULT: u32 = 1_000;

impl ChatState {
    /// Folds an event of a session.
    pub(crate) fn apply_to_session(&mut self, event: &ChatEvent) {
        let Some(turn) = &mut self.turn else { return };
        let Some(planning) = &mut turn.planning else { return };
        match event {
            ChatEvent::Analysed { analysis, .. } => {
                planning.analysis = Some(analysis.clone());
                (turn.phase, turn.postponed) = (Phase::Begun, None);
            }
            ChatEvent::Planned { call_id, version, steps, .. } => {
                planning.version = *version;
                planning.run = Some(Run::new(*call_id, steps));
                turn.phase = Phase::Plan { call_id: *call_id };
            }
            ChatEvent::StepStarted { step, executor, task, at, .. } => {
                if let Some(run) = &mut planning.run {
                    run.begun(*step, *executor, *at, task.budget);
                }
            }
            ChatEvent::StepEnded { step, result, .. } => {
                if let Some(run) = &mut planning.run {
                    run.ended(*step, result);
                }
            }
            ChatEvent::Observed { tool, misuse, .. } if tool == RUN_PLAN => {
                planning.refused += u32::from(*misuse);
                planning.run = None;
            }
            _ => {}
        }
    }
}

/// Whether the next call of the model is the analysis of the message.
pub(crate) fn analyses(state: &ChatState) -> bool {
    state.turn.as_ref().and_then(|turn| turn.planning.as_ref()).is_some_and(|planning| planning.analysis.is_none())
}

impl Step<'_> {
    fn strategy(&self) -> Option<Strategy> {
        Some(self.turn()?.planning.as_ref()?.analysis.as_ref()?.strategy)
    }

    /// The tools that the model is told of: in a session those that the analysis asks for. Those of a session and of an executor have a budget.
    pub fn offered(&self, config: &ChatConfig) -> Offer {
        let usual = offered_tools::specs(self.machine, config);
        let (usual, plan) = match self.strategy() {
            None | Some(Strategy::Tool) => (usual, None),
            Some(Strategy::Simple) => (Arc::from([]), None),
            Some(Strategy::Complex) => (usual, Some(session_plan::spec(config.tools.as_deref().unwrap_or_default()))),
        };
        let Some(tokens) = tool_disclosure::budget(config) else { return Offer { specs: usual, cut: None } };
        let messages = self.state().history.iter().flat_map(|turn| &turn.messages);
        let shown = tool_disclosure::earlier_answers(messages.map(|message| &**message));
        let changes = |tool: &str| self.machine.tools.kind(tool).is_some_and(|kind| kind != ToolKind::Read);
        tool_disclosure::within((&usual, self.machine.tools.bytes(&usual)), plan, tokens, &shown, changes)
    }

    /// Whether a call asks for the declarations of tools that the request had no room for.
    pub fn asks_about_tools(&self, call: &ToolCall) -> bool {
        call.tool == TOOL_INFO && self.config().is_some_and(|config| tool_disclosure::budget(config).is_some())
    }

    /// Answers such a call.
    pub fn tell_of_tools(&mut self, call: &ToolCall) {
        let Some(config) = self.config().cloned() else { return };
        match tool_disclosure::describe_tools(&offered_tools::specs(self.machine, &config), &call.args) {
            Ok(told) => {
                self.started(call, 1);
                let (told, _) = self.fit_result(told);
                self.observe(call, told, Status::Success);
            }
            Err(why) => self.refuse(call, &why, Status::Failure),
        }
    }

    /// Begins the turn of a session: with the rules, and with the model where no rule is certain.
    pub fn analyse(&mut self, content: &str) {
        self.name_session(content);
        match rules::certain(content, self.message_place(content)) {
            Some(analysis) => self.analysed(analysis, AnalysisOrigin::Rule),
            None => self.call_model(),
        }
    }

    /// The place of the last message, which has these words, in its session.
    fn message_place(&self, content: &str) -> rules::MessagePlace {
        let (state, config) = (self.state(), self.config());
        let is_global = config
            .and_then(|config| config.session.as_ref())
            .is_none_or(|session| session.context == SessionContext::Global && session.entity.is_none());
        let location = config.and_then(|config| contexts::location_in(&config.system));
        let is_of_location = location.is_some_and(|location| rules::names_something(content, location));
        rules::MessagePlace { follows: state.turns > 0 || self.has_context(), is_global, is_of_location }
    }

    /// Whether the client gave words that were said before, with the last message.
    fn has_context(&self) -> bool {
        let last = self.state().history.iter().rev().flat_map(|turn| turn.messages.iter().rev()).next();
        last.is_some_and(|message| matches!(&**message, Message::User { context, .. } if !context.is_empty()))
    }

    /// A session that began with a greeting is named after the first message that says more, of the first five, until the model names it.
    fn name_session(&mut self, content: &str) {
        let says_more = |text: &str| {
            rules::certain(text, rules::MessagePlace::default()).is_none_or(|one| one.reasoning != rules::COURTESY)
        };
        let Some(config) = self.config() else { return };
        if (1..5).contains(&self.state().turns) && !says_more(&config.title) && says_more(content) {
            self.rename(title_of(content));
        }
    }

    fn rename(&mut self, title: String) {
        let Some(config) = self.config().filter(|config| config.title != title) else { return };
        let config = Box::new(ChatConfig { title, ..(**config).clone() });
        self.push(ChatEvent::Configured { config });
    }

    fn analysed(&mut self, analysis: Analysis, by: AnalysisOrigin) {
        self.push(ChatEvent::Analysed { analysis, by, at: self.stamp.at });
        self.call_model();
    }

    /// The model has answered with an analysis, or with something else.
    pub fn analysis_answered(&mut self, answer: ModelAnswer) {
        self.used(answer.usage, answer.model);
        match analysis::read(&answer.text) {
            Some(analysis) => {
                if analysis::wants_title(self.state())
                    && let Some(title) = analysis::title(&answer.text)
                {
                    self.rename(title);
                }
                self.analysed(analysis, AnalysisOrigin::Model);
            }
            None => self.analysed(analysis::fallback(), AnalysisOrigin::Fallback),
        }
    }

    /// The model did not answer with an analysis.
    pub fn analysis_failed(&mut self) {
        self.analysed(analysis::fallback(), AnalysisOrigin::Fallback);
    }

    /// Whether a call is a plan of this session.
    pub fn is_plan(&self, call: &ToolCall) -> bool {
        call.tool == RUN_PLAN && self.strategy() == Some(Strategy::Complex)
    }

    /// A plan: it is carried out, or the model reads why not and plans again.
    pub fn run_plan(&mut self, call: &ToolCall) {
        let Some(planning) = self.turn().and_then(|turn| turn.planning.as_ref()) else { return };
        let (version, refused) = (planning.version + 1, planning.refused);
        if version > MAX_VERSIONS {
            self.refuse(
                call,
                &format!("{MAX_VERSIONS} plans were carried out in this turn: answer now"),
                Status::Partial,
            );
            return self.next_call();
        }
        let tools = self.config().and_then(|config| config.tools.clone()).unwrap_or_default();
        match session_plan::check(&call.args, &tools) {
            Ok(_) if self.asks_about_plans(call) => {
                let (reason, patience) =
                    ("a person approves each plan of this session".to_owned(), self.machine.gate.patience());
                ask::permission(self, call, "plan".to_owned(), reason, None, patience);
            }
            Ok(steps) => {
                self.started(call, 1);
                self.push(ChatEvent::Planned { call_id: call.call_id, version, steps, at: self.stamp.at });
                self.advance();
            }
            Err(why) => {
                self.refuse(call, &format!("the plan is not carried out: {why}"), Status::Failure);
                if refused < SECOND_CHANCES {
                    return self.next_call();
                }
                let error = Error::new(
                    Code::Unprocessable,
                    format!("no plan could be carried out; the last one failed because {why}"),
                )
                .hint("say in other words what is wanted, or ask for a part of it");
                self.give_up_turn(error, StopReason::Error);
            }
        }
    }

    /// Whether a person has to approve this plan, and has not yet.
    fn asks_about_plans(&self, plan: &ToolCall) -> bool {
        let asks = self.config().and_then(|config| config.session.as_ref()).is_some_and(|one| one.approve_plans);
        asks && self.turn().is_none_or(|turn| turn.allowed != Some(plan.call_id))
    }

    /// Ends the turn with a failure; calls without an answer get one.
    pub fn give_up_turn(&mut self, error: Error, reason: StopReason) {
        while let Some(call) = self.next_unanswered() {
            self.refuse(&call, "not run: the turn has ended", Status::Partial);
        }
        self.push(ChatEvent::Failed { error });
        self.finish(reason);
    }

    /// Begins the steps that are ready, and answers the call when all have ended.
    fn advance(&mut self) {
        let at_once = self.config().and_then(|config| config.session.as_ref()).map_or(1, |one| one.executors.at_once);
        loop {
            let Some(run) = self.running_plan() else { return };
            match run.next(at_once) {
                PlanAction::Fail(steps) => {
                    for (step, because) in steps {
                        let error = Error::new(Code::NotBegun, format!("step {because}, which it depends on, failed"));
                        self.end_step(step, failed(error, Usage::default(), 0, 0));
                    }
                }
                // A step that is not begun for want of a budget has ended, and others may wait for it.
                PlanAction::Begin(steps) => steps.into_iter().for_each(|step| self.begin_step(step)),
                PlanAction::Wait => return,
                PlanAction::End => {
                    let told = run.results_text(SessionBudget::bytes(self.results()));
                    let Some(call) = self.next_unanswered() else { return };
                    self.observe(&call, told, Status::Success);
                    return self.next_call();
                }
            }
        }
    }

    fn running_plan(&self) -> Option<&Run> {
        self.turn()?.planning.as_ref()?.run.as_ref()
    }

    fn begin_step(&mut self, number: u32) {
        let (at, executor) = (self.stamp.at, ChatId(self.id()));
        let Some((run, session)) = self.running_plan().zip(self.config()) else { return };
        let Some(step) = run.steps.iter().find(|step| step.planned.step == number) else { return };
        let call_id = run.call_id;
        let (Some(turn), Some(of_session)) = (self.turn(), session.session.as_deref()) else { return };
        let budget = executor::budget(turn.free(at), run.pending(), of_session.executors);
        if turn.exhausts(budget).is_some() {
            let error = Error::new(Code::LimitReached, "not begun: nothing is left of the budget of the turn");
            return self.end_step(number, failed(error, Usage::default(), 0, 0));
        }
        let task = executor::task(call_id, &step.planned, &run.needed(number), of_session.budgets, Some(budget));
        let Some(config) = executor::chat(session, executor, call_id, &step.planned, budget, at) else { return };
        let (to, content) = (actor_id(session.workspace, executor), executor::words(&task));
        let command = ChatCommand::StartTurn(TurnRequest {
            content,
            create: Some(Box::new(config)),
            may_not_run: turn.may_not_run,
            no_home: turn.no_home,
            trace: self.turn().and_then(|turn| turn.trace),
            ..TurnRequest::default()
        });
        self.push(ChatEvent::StepStarted { call_id, step: number, executor, task: Box::new(task), at });
        self.tell(to, &command, 0);
    }

    fn end_step(&mut self, step: u32, result: StepOutcome) {
        let Some(call_id) = self.running_plan().map(|run| run.call_id) else { return };
        self.push(ChatEvent::StepEnded { call_id, step, result: Box::new(result), at: self.stamp.at });
    }

    /// Counts the usage of an agent that ends after the turn that it worked for.
    pub fn late(&mut self, chat_id: ChatId, usage: Usage) {
        if !usage.is_none() && !self.state().deleted && self.config().is_some() {
            let fact = Box::new(TeamFact::Late { chat_id, usage, at: self.stamp.at });
            self.push(ChatEvent::Team { fact });
        }
    }

    /// Takes in the report of an executor. If its step has ended or its plan is gone, only the usage counts.
    pub fn executor_ended(&mut self, answer: AgentAnswer) {
        let Some((step, since)) = self.running_plan().and_then(|run| run.of(answer.chat)) else {
            return self.late(answer.chat, answer.usage);
        };
        let took = u64::try_from(self.stamp.at.since(since).as_millis()).unwrap_or(u64::MAX);
        let calls = u32::try_from(answer.tools.len()).unwrap_or(u32::MAX);
        let kept = SessionBudget::bytes(RESULT.min(self.results()));
        let result = if answer.stop_reason == "end_turn" && !answer.text.trim().is_empty() {
            let data = session_plan::cut(answer.text.trim(), kept);
            StepOutcome { success: true, data, error: None, tool_calls: calls, usage: answer.usage, duration_ms: took }
        } else {
            let data = session_plan::cut(answer.text.trim(), kept);
            let error = answer.error.clone().unwrap_or_else(|| unended(&answer.stop_reason));
            StepOutcome { data, ..failed(error, answer.usage, calls, took) }
        };
        self.end_step(step, result);
        self.advance();
    }

    /// Stops the executors of the plan that is carried out.
    pub fn stop_executors(&mut self, stop_id: StopId, reason: &str) {
        let Some(run) = self.running_plan() else { return };
        let (plan, running) = (run.call_id, run.running().collect::<Vec<_>>());
        let executors: Vec<ChatId> = running.iter().map(|(_, executor, _)| *executor).collect();
        for (step, _, since) in running {
            let took = u64::try_from(self.stamp.at.since(since).as_millis()).unwrap_or(u64::MAX);
            let error = Error::new(Code::Cancelled, "the turn was stopped");
            self.end_step(step, failed(error, Usage::default(), 0, took));
        }
        self.stop_agents(plan, &executors, stop_id, reason);
    }

    /// The tokens of the results of a plan, and of the result of one tool (spec 003 §3).
    fn results(&self) -> u32 {
        let session = self.config().and_then(|config| config.session.as_deref());
        session.map_or_else(SessionBudget::default, |session| session.budgets).results
    }

    /// The text of a tool's result, within the budget of a session.
    pub fn fit_result(&self, output: String) -> (String, bool) {
        let is_session = self.config().is_some_and(|config| config.session.is_some());
        let room = SessionBudget::bytes(self.results());
        match is_session && output.len() > room {
            true => (session_plan::cut(&output, room), true),
            false => (output, false),
        }
    }
}

/// Why an executor came to no result; one at the end of its budget asks for more, and the planner decides.
fn unended(stop_reason: &str) -> Error {
    match stop_reason {
        "end_turn" => {
            let told = "the executor ended without a word: its calls stand, so look at what they did before you plan the step again";
            Error::new(Code::Unprocessable, told)
        }
        "token_limit" | "cost_limit" => {
            Error::new(Code::LimitReached, "its budget is used up: plan what is left as smaller steps, or leave it")
        }
        reason => Error::new(Code::LimitReached, format!("the executor did not come to an end: {reason}")),
    }
}

fn failed(error: Error, usage: Usage, tool_calls: u32, duration_ms: u64) -> StepOutcome {
    StepOutcome { success: false, data: String::new(), error: Some(error), tool_calls, usage, duration_ms }
}
