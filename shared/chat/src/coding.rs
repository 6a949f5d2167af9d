//! Threads: chats whose turns a coding agent performs, a program with a loop and tools of its own (spec 004 §2).
//!
//! The agent takes the place of the model and of the tools. A *leg* is a stretch of its work: from the prompt, or from an answer, to its next
//! request or its end. An effect follows a leg. A request for permission ends the effect, so that the chat rests like any other that waits for a
//! person, while the process of the agent waits behind the port. The decision begins the next leg.

mod allow;
mod attachments;
mod choice;
mod copy;
mod perform;

use crate::{
    allow::{NO_RULE, is_too_long},
    cancel, compact,
    context::assemble,
    machine::{AgentDoes, AgentReport, AgentWork, ChatEffect, Report},
    perform::agent_of,
    phase::Phase,
    size::{MAX_ANSWER, beginning},
    state::ChatState,
    step::Step,
};
use actor::EffectKey;
pub(crate) use allow::all as rules_for;
pub(crate) use choice::{chosen, no};
use domain::{
    AgentAsk, AgentOptions, AgentReply, CallId, ChatCommand, ChatConfig, ChatEvent, Code, Error, Message, MessageId,
    Mode, PermissionId, PermissionRule, Principal, Sha256, StopReason, ThreadAgent, Timestamp,
};
use ports::{AgentPrompt, AgentRequest, AgentTurn};
use serde_json::{Value, json};

/// How long a message of an agent gets, in bytes, before the next one begins.
const MESSAGE: usize = 256 * 1024;
/// The most that a person is shown of a call before they decide on it, in bytes. A longer one is answered with no.
const MAX_CALL: usize = 256 * 1024;
/// The most that a new process reads of the conversation so far, in bytes.
const CONTEXT: usize = 24 * 1024;

/// The id under which the log has a tool call of an agent.
fn call_id(turn: AgentTurn, tool_call: &str) -> CallId {
    CallId::from_key(&turn.turn.to_string(), tool_call)
}

fn key(leg: MessageId, attempt: u32) -> EffectKey {
    EffectKey(format!("agent/{leg}/{attempt}"))
}

impl ChatState {
    /// Folds an event of a thread.
    pub(crate) fn apply_agent(&mut self, event: &ChatEvent) {
        match (event, &mut self.turn) {
            (ChatEvent::AgentBegan { leg, attempt, answer, at }, Some(turn)) => {
                if turn.started_at.is_none() {
                    turn.started_at = Some(*at);
                    self.active_at = *at;
                }
                turn.waited_ms = turn.waited_until(*at);
                turn.steps += u32::from(*attempt == 1 && answer.is_none());
                let (leg, attempt, compacts) = (*leg, *attempt, turn.compacting.is_some());
                let (message_id, text) = match &mut turn.phase {
                    // The message that the agent was at was completed before the leg began again; a summary goes on over all legs.
                    Phase::Agent { leg: same, message_id, text, .. } if *same == leg || compacts => {
                        (*message_id, if compacts { std::mem::take(text) } else { String::new() })
                    }
                    _ => (leg, String::new()),
                };
                turn.phase = Phase::Agent { leg, attempt, message_id, text };
            }
            (ChatEvent::AgentBound { session_id }, _) => {
                if let Some(thread) =
                    self.config.as_mut().and_then(|config| std::sync::Arc::make_mut(config).thread.as_mut())
                {
                    thread.options.session_id = Some(session_id.clone());
                }
            }
            (ChatEvent::AgentUpdated { update, at, .. }, _) if AgentOptions::is_choice(update) => {
                let config = self.config.as_mut().map(std::sync::Arc::make_mut);
                let Some(thread) = config.and_then(|config| config.thread.as_mut()) else { return };
                let before = thread.options.chosen_mode().map(ToOwned::to_owned);
                if thread.options.follow(update) {
                    self.agent_chose_at = Some(*at);
                    let mode = thread.options.chosen_mode().map(ToOwned::to_owned);
                    self.agent_mode = mode.filter(|mode| before.as_ref() != Some(mode)).or(self.agent_mode.take());
                }
            }
            _ => {}
        }
    }
}

impl Step<'_> {
    fn person(&self) -> Principal {
        self.config().map_or(Principal::System, |config| Principal::User { id: config.user })
    }

    fn agent_turn(&self) -> Option<AgentTurn> {
        let config = self.config().filter(|config| config.thread.is_some())?;
        Some(AgentTurn { workspace: config.workspace, chat: config.chat, turn: self.turn()?.id })
    }

    /// Hands the words of the turn to the agent of the thread.
    pub(crate) fn prompt_agent(&mut self, thread: ThreadAgent, leg: MessageId) {
        let Some(turn) = self.agent_turn() else { return };
        let compacting = self.compacting();
        if let Some(context) = assemble(self.state(), 0).filter(|context| context.cut > 0 && compacting.is_none()) {
            self.push(ChatEvent::ContextCut { turns: context.cut });
        }
        let content = match compacting {
            Some(compacting) => vec![json!({ "type": "text", "text": compact::asks_agent(compacting.max_chars) })],
            None => words(self.state()),
        };
        let context = earlier(self.state());
        let own_mode = self.state().agent_mode.as_deref().is_some_and(|own| thread.options.chosen_mode() == Some(own));
        let prompt = Box::new(AgentPrompt { turn, thread, content, context, own_mode });
        self.follow(leg, 1, None, AgentDoes::Prompt(prompt));
    }

    fn follow(&mut self, leg: MessageId, attempt: u32, answer: Option<AgentReply>, does: AgentDoes) {
        let at = self.stamp.at;
        self.push(ChatEvent::AgentBegan { leg, attempt, answer, at });
        let (Some(turn), Some(deadline)) = (self.agent_turn(), self.turn().map(|turn| turn.deadline(at))) else {
            return;
        };
        let work = self.agent_work(turn, leg, deadline, does);
        self.run(key(leg, attempt), ChatEffect::Agent(Box::new(work)));
    }

    fn agent_work(&self, turn: AgentTurn, leg: MessageId, deadline: Timestamp, does: AgentDoes) -> AgentWork {
        let config = self.config();
        let author = config.map_or(Principal::System, |config| agent_of(config));
        let folder = config.and_then(|config| ThreadAgent::folder(&config.thread.as_ref()?.cwd));
        let (by, may_run, has_home) = (self.person(), self.may_run(), self.has_home());
        AgentWork { turn, leg, by, author, may_run, has_home, folder, deadline, does }
    }

    /// The worker that followed the agent is gone. The agent itself may be there: it is not asked twice for the same work.
    pub(crate) fn follow_again(&mut self, leg: MessageId, attempt: u32) {
        self.follow(leg, attempt + 1, None, AgentDoes::Follow);
    }

    /// Drops the reports of a leg.
    pub(crate) fn unfollow(&mut self, leg: MessageId, attempt: u32) {
        self.cancel(key(leg, attempt));
    }

    /// Has the agent end a turn that has come to its end here, if one performs it.
    pub(crate) fn leave_agent(&mut self) {
        let works = matches!(self.turn().map(|turn| &turn.phase), Some(Phase::Agent { .. } | Phase::Permission { .. }));
        if let Some(turn) = self.agent_turn().filter(|_| works) {
            self.tell_agent(turn, AgentDoes::Cancel, "leave");
        }
    }

    /// Ends the process of a thread that was given up.
    pub(crate) fn end_agent(&mut self) {
        let Some(config) = self.config().filter(|config| config.thread.is_some()) else { return };
        let turn = domain::TurnId(self.stamp.id);
        let turn = AgentTurn { workspace: config.workspace, chat: config.chat, turn };
        self.tell_agent(turn, AgentDoes::End, "end");
    }

    fn tell_agent(&mut self, turn: AgentTurn, does: AgentDoes, what: &str) {
        let work = self.agent_work(turn, MessageId(turn.turn.0), self.stamp.at, does);
        self.run(EffectKey(format!("{what}/{}", turn.turn)), ChatEffect::Agent(Box::new(work)));
    }

    /// The request of the agent behind the permission that the turn waits for.
    pub(crate) fn agent_asks(&self) -> Option<AgentAsk> {
        match &self.turn()?.phase {
            Phase::Permission { asked, .. } => match &**asked {
                ChatEvent::PermissionRequired { agent, .. } => agent.as_deref().cloned(),
                _ => None,
            },
            _ => None,
        }
    }

    /// Answers the request of the agent, which goes on then.
    pub(crate) fn answer_agent(&mut self, request: String, option: Option<String>, by: String) {
        let leg = MessageId(self.id());
        let answer = AgentReply { request: request.clone(), option: option.clone(), by };
        self.follow(leg, 1, Some(answer), AgentDoes::Answer { request, option });
    }

    /// Keeps the text of the model or of the agent so far as a message, if there is any.
    pub fn keep_partial(&mut self) {
        let (id, text) = match self.turn().map(|turn| &turn.phase) {
            Some(Phase::Model { message_id, text, .. } | Phase::Agent { message_id, text, .. }) => (*message_id, text),
            _ => return,
        };
        // A summary is no message of the conversation.
        if text.is_empty() || self.compacting().is_some() {
            return;
        }
        let message = Message::Assistant {
            id,
            at: self.stamp.at,
            content: beginning(text, MAX_ANSWER).to_owned(),
            calls: Vec::new(),
            reasoning: String::new(),
            provider: Value::Null,
        };
        self.push(ChatEvent::MessageAdded { message });
    }
}

/// The last words of a person, as content of a prompt.
fn words(state: &ChatState) -> Vec<Value> {
    let last = state.history.back().into_iter().flat_map(|turn| &turn.messages).find_map(|message| match &**message {
        Message::User { content, context, files, .. } => Some((content, context, files)),
        _ => None,
    });
    let Some((content, context, files)) = last else { return Vec::new() };
    let text = |text: &String| (!text.is_empty()).then(|| json!({ "type": "text", "text": text }));
    // A plan is no attachment.
    let repeats = !files.is_empty() && !context.contains("role=\"plan\"");
    let more = text(context).map(|mut block| {
        if repeats {
            block[AgentPrompt::REPEATS] = json!(true);
        }
        block
    });
    let (before, after) = if repeats { (more, None) } else { (None, more) };
    files.iter().map(attachments::named).chain(before).chain(text(content)).chain(after).collect()
}

/// The conversation before the turn that runs, as much of its end as fits.
fn earlier(state: &ChatState) -> String {
    let (mut said, mut room) = (Vec::new(), CONTEXT);
    let summary = state.summary.as_ref().and_then(|summary| match &*summary.message {
        Message::System { content, .. } if content.len() < CONTEXT => Some(content.clone()),
        _ => None,
    });
    room -= summary.as_ref().map_or(0, String::len);
    let running = usize::from(state.turn.as_ref().is_some_and(|turn| !turn.is_internal()));
    let past = state.history.iter().rev().skip(running).flat_map(|turn| turn.messages.iter().rev());
    for message in past {
        let line = match &**message {
            Message::User { content, .. } => format!("User: {content}"),
            Message::Assistant { content, .. } if !content.is_empty() => format!("Assistant: {content}"),
            Message::System { content, .. } => content.clone(),
            Message::Assistant { .. } | Message::Tool { .. } => continue,
        };
        let Some(left) = room.checked_sub(line.len() + 2) else { break };
        room = left;
        said.push(line);
    }
    said.extend(summary);
    said.reverse();
    said.join("\n\n")
}

/// Takes in a report while an agent works; gives back one that is about something else.
pub(crate) fn reported(step: &mut Step<'_>, report: Report) -> Option<Report> {
    let Some(Phase::Agent { leg, message_id, text, .. }) = step.turn().map(|turn| &turn.phase) else {
        return Some(report);
    };
    let (current, message_id, length) = (*leg, *message_id, text.len());
    match report {
        // The end of a summary that is far too long is of no use.
        Report::Wrote { message_id: leg, .. } if leg == current && step.compacting().is_some() && length > MESSAGE => {}
        Report::Wrote { message_id: leg, text } if leg == current => {
            let is_full = length + text.len() > MESSAGE;
            step.push(ChatEvent::Chunk { text, message_id });
            if is_full {
                step.keep_partial();
            }
        }
        Report::Reasoned { message_id: leg, text } if leg == current => {
            step.push(ChatEvent::Thought { text, message_id })
        }
        Report::Agent { leg, report } if leg == current => take_report(step, report),
        _ => {}
    }
    None
}

fn take_report(step: &mut Step<'_>, report: AgentReport) {
    match report {
        AgentReport::Bound(session_id) => {
            let known = step.config().and_then(|config| config.thread.as_ref()?.options.session_id.clone());
            if known.as_ref() != Some(&session_id) {
                step.push(ChatEvent::AgentBound { session_id });
            }
        }
        AgentReport::Denies(rule_ids) => {
            // Its agent keeps no files of commands.
            step.push(ChatEvent::DenialsRead { rule_ids, files: Vec::new() });
        }
        AgentReport::Changed(files) => files.into_iter().for_each(|file| step.push(file)),
        AgentReport::Updated(updates) => updates.into_iter().for_each(|update| updated(step, update)),
        AgentReport::Asked(request) => {
            step.keep_partial();
            asked(step, *request);
        }
        AgentReport::Ended(reason) => ended(step, &reason),
        AgentReport::Lost => {
            let error =
                Error::new(Code::UpstreamUnavailable, "the process of the agent is gone, and with it this turn")
                    .hint("what it has changed is kept; send a message to go on: it loads its session where it can");
            fail(step, error, false);
        }
        AgentReport::Failed { error, timed_out } => fail(step, error, timed_out),
    }
}

fn updated(step: &mut Step<'_>, update: Value) {
    let call_id = update["toolCallId"].as_str().zip(step.agent_turn()).map(|(id, turn)| call_id(turn, id));
    if update["sessionUpdate"] == "tool_call" {
        // Its words so far come before the call.
        step.keep_partial();
    }
    step.push(ChatEvent::AgentUpdated { call_id, update, at: step.stamp.at });
}

/// Ends the turn, whose model or agent failed. Its words so far stay.
pub(crate) fn fail(step: &mut Step<'_>, error: Error, timed_out: bool) {
    step.keep_partial();
    if !timed_out {
        step.push(ChatEvent::Failed { error });
    }
    step.finish(if timed_out { StopReason::TimeLimit } else { StopReason::Error });
}

fn ended(step: &mut Step<'_>, reason: &str) {
    if let (Some(_), "end_turn", Some(Phase::Agent { leg, text, .. })) =
        (step.compacting(), reason, step.turn().map(|turn| &turn.phase))
    {
        let (leg, text) = (*leg, text.clone());
        return step.take_summary(leg, &text);
    }
    step.keep_partial();
    let reason = match reason {
        "end_turn" => StopReason::EndTurn,
        "max_tokens" => StopReason::MaxOutputTokens,
        "max_turn_requests" => StopReason::StepLimit,
        "refusal" => StopReason::Refusal,
        // By itself: a stop of ours has ended the turn before.
        "cancelled" => return cancel::ended_by_agent(step),
        other => {
            let message = format!("the agent ended the turn for a reason that is not known: {other}");
            step.push(ChatEvent::Failed { error: Error::new(Code::UpstreamUnavailable, message) });
            StopReason::Error
        }
    };
    step.finish(reason);
}

/// The agent asks for permission: a rule answers, or a person is asked.
fn asked(step: &mut Step<'_>, request: AgentRequest) {
    let Some(turn) = step.agent_turn() else { return };
    let AgentRequest { request, category, title, call, options } = request;
    if step.compacting().is_some() {
        return step.answer_agent(request, no(&options), "nothing is done for a summary".into());
    }
    if call.len() > MAX_CALL {
        let option = no(&options);
        return step.answer_agent(request, option, "a call that is too long to be shown is not allowed".into());
    }
    let parsed: Value = serde_json::from_str(&call).unwrap_or_default();
    // A rule that denies counts in the turns of all people, and before those that allow.
    let denied = step.state().permissions.iter().filter_map(PermissionRule::denies);
    let config = step.config().cloned();
    let own = config.as_ref().and_then(|config: &std::sync::Arc<ChatConfig>| allow::own(config, &category, &parsed));
    let denied = config.as_deref().and_then(|config| allow::denying((config, &category), &parsed, denied));
    if let Some(denied) = denied {
        let (by, option) = (format!("rule: {}", denied.clone().denied()), no(&options));
        return step.answer_agent(request, option, by);
    }
    // A plan changes nothing, so no rule is granted in its mode.
    let rule = own.filter(|_| config.as_ref().is_some_and(|config| config.mode != Mode::Plan));
    let note = if rule.as_ref().is_some_and(is_too_long) { NO_RULE } else { "" };
    let rule = rule.filter(|rule| !is_too_long(rule));
    let once = options.iter().find(|option| option.kind == "allow_once").map(|option| option.id.clone());
    let covered = allow::covered(&parsed, rule.as_ref(), step.permissions().iter());
    if let (Some(covered), Some(once)) = (covered, once) {
        let rules = config.as_deref().map(|config| allow::all(config, &category, &parsed)).unwrap_or_default();
        let denied = rules.into_iter().find(|rule| step.standing_denial(rule).is_some());
        let (by, option) = match denied {
            Some(rule) => (format!("rule: {}", rule.denied()), no(&options)),
            None => (format!("rule: {covered}"), Some(once)),
        };
        return step.answer_agent(request, option, by);
    }
    let permission_id = PermissionId(step.id());
    let (at, expires_at) = (step.stamp.at, step.stamp.at + step.machine.gate.patience());
    let digest = Sha256::of(json!([&category, &call, &options]).to_string().as_bytes());
    let tool = parsed["kind"].as_str().unwrap_or("other").to_owned();
    step.push(ChatEvent::PermissionRequired {
        permission_id,
        call_id: call_id(turn, parsed["toolCallId"].as_str().unwrap_or_default()),
        category,
        tool,
        args: call,
        reason: format!("{title}{note}"),
        always: rule,
        agent: Some(Box::new(AgentAsk { request, options, digest })),
        at,
        expires_at,
    });
    step.later(expires_at, &ChatCommand::Expire { permission_id: Some(permission_id), question_id: None });
}
