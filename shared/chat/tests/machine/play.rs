//! The chat machine, played by hand: inputs in, events and effects out. No I/O, and only the time that the test sets.

use crate::thread;
use actor::{Decision, EffectKey, Input, Machine, Step, StopRequest, StopTarget};
use buildscale_chat::{AgentDoes, ChatEffect, ChatMachine, ChatState, ModelAnswer, Report, SimpleGate};
use domain::{
    ActorRef, AgentOf, AgentTool, AgentToolRuns, Approval, CallId, ChatCommand, ChatConfig, ChatEvent, ChatId, Code,
    CommandId, FileId, FilePath, Limits, Message, Mode, ModelSettings, PermissionId, Principal, QuestionId, Sha256,
    Stamp, StopId, StopReason, TaskCommand, TaskId, Timestamp, TurnRequest, Usage, WorkspaceId, event::RollbackFact,
    task::AgentAnswer,
};
use ports::ModelRequest;
use serde_json::{Value, json};
use std::{collections::BTreeMap, sync::Arc, time::Duration};
use tools::Registry;
use uuid::Uuid;

/// A chat, its log, and the effects that it wants run.
pub struct Play {
    pub machine: ChatMachine,
    pub state: ChatState,
    pub log: Vec<ChatEvent>,
    pub running: BTreeMap<EffectKey, ChatEffect>,
    pub config: Box<ChatConfig>,
    pub now: u64,
    pub ids: u128,
    /// The model requests so far, as (role, text) lists.
    pub asked: Vec<Vec<String>>,
    pub scheduled: Vec<Value>,
    /// When the last of those is due.
    pub due: Option<Timestamp>,
    /// The sender of commands: a person, or for the chat of an agent its task.
    pub by: Principal,
    /// Reports to a task.
    pub reports: Vec<AgentAnswer>,
    /// The last model request as it was.
    pub request: Option<ModelRequest>,
    /// The commands that were ended.
    pub killed: Vec<CallId>,
    /// The calls whose servers were left.
    pub left: Vec<CallId>,
    /// The work with a coding agent so far.
    pub worked: Vec<String>,
    /// How many plans had their executors stopped.
    pub stopped_plans: u32,
    /// How many members of a team that is gone had their steps freed.
    pub freed: u32,
    /// Whether the person who speaks has the right to approve.
    pub may_approve: bool,
    /// Whether the person of the turns may run no flows.
    pub may_not_run: bool,
    in_flight_is_what_runs: bool,
}

impl Play {
    pub fn new() -> Self {
        Self::with(|_| {})
    }

    pub fn with(change: impl FnOnce(&mut ChatConfig)) -> Self {
        let mut config = ChatConfig {
            workspace: WorkspaceId(Uuid::from_u128(1)),
            chat: ChatId(Uuid::from_u128(2)),
            user: Principal::local().user(),
            title: "test".into(),
            role: "assistant".into(),
            model: None,
            model_settings: ModelSettings::default(),
            mode: Mode::Chat,
            limits: Limits::default(),
            system: "You are a test.".into(),
            cut: Vec::new(),
            tools: None,
            plan: None,
            context_tokens: 10_000,
            created_at: Timestamp::default(),
            agent: None,
            thread: None,
            forked_from: None,
            session: None,
            scenario: None,
            member: None,
            functions: Vec::new(),
            labels: domain::Labels::default(),
        };
        change(&mut config);
        Self {
            machine: ChatMachine {
                gate: Arc::new(SimpleGate { timeout: Duration::from_secs(60) }),
                tools: Arc::new(Registry::builtin()),
                question_timeout: Duration::from_secs(60),
                places: None,
                cost: Arc::new(|_, _| 0.0),
            },
            state: ChatState::default(),
            log: Vec::new(),
            running: BTreeMap::new(),
            config: Box::new(config),
            now: 1_000,
            ids: 1 << 64,
            asked: Vec::new(),
            scheduled: Vec::new(),
            due: None,
            by: Principal::local(),
            reports: Vec::new(),
            request: None,
            killed: Vec::new(),
            left: Vec::new(),
            worked: Vec::new(),
            stopped_plans: 0,
            freed: 0,
            may_approve: false,
            may_not_run: false,
            in_flight_is_what_runs: true,
        }
    }

    /// The chat of a task's agent with these tools.
    pub fn agent(tools: &[(&str, Option<&str>)]) -> Self {
        let tool = |(name, root): &(&str, Option<&str>)| {
            let (name, root) = ((*name).into(), root.and_then(|root| root.parse().ok()));
            AgentTool { name, description: None, runs: AgentToolRuns::Named, root }
        };
        Self::agent_with(tools.iter().map(tool).collect())
    }

    /// The chat of a task's agent with these tools.
    pub fn agent_with(tools: Vec<AgentTool>) -> Self {
        let agent = AgentOf {
            task: TaskId(Uuid::from_u128(3)),
            above: Vec::new(),
            node: "code".into(),
            tools,
            temperature: Some(0.25),
            top_p: Some(0.5),
            max_tokens: Some(77),
            priority: 0,
            turns: Vec::new(),
            flow: None,
            no_home: false,
            executor: None,
        };
        Self { by: Principal::System, ..Self::with(|config| config.agent = Some(Box::new(agent))) }
    }

    pub fn id(&mut self) -> Uuid {
        self.ids += 1 << 40;
        Uuid::from_u128(self.ids)
    }

    /// Hands in one input; returns the events, a word or two for each.
    pub fn input(&mut self, input: Input<ChatMachine>) -> Vec<String> {
        self.now += 10;
        let stamp = Stamp { at: self.at(), id: self.id() };
        let mut step = Step::new(std::mem::take(&mut self.state), self.log.len() as u64 + 1);
        self.machine.handle(&mut step, input, &stamp);
        let (state, Decision { events, send, effects, cancel, .. }) = step.end();
        self.state = state;
        self.log.extend(events.iter().cloned());
        for key in cancel {
            assert!(self.running.remove(&key).is_some(), "{key:?} was not running");
        }
        for (key, effect) in effects {
            if let ChatEffect::StopExecutors { .. } = &effect {
                self.stopped_plans += 1;
                continue;
            }
            if let ChatEffect::KillCommand { call_id, .. } = &effect {
                // Its report is not needed.
                self.killed.push(*call_id);
                continue;
            }
            if let ChatEffect::LeaveServer { call, .. } = &effect {
                self.left.push(call.call_id);
                continue;
            }
            if key.0.starts_with("free/") {
                self.freed += 1;
                continue;
            }
            if let ChatEffect::Agent(work) = &effect {
                self.worked.push(thread::does(work));
                if matches!(work.does, AgentDoes::Cancel | AgentDoes::End) {
                    continue;
                }
            }
            if let ChatEffect::CallModel { request, .. } = &effect {
                self.asked.push(request.messages.iter().map(|message| line(message)).collect());
                self.request = Some((**request).clone());
            }
            assert!(self.running.insert(key, effect).is_none());
        }
        assert!(self.running.len() <= 1, "one effect at a time");
        if self.in_flight_is_what_runs {
            assert_eq!(ChatMachine::in_flight(&self.state), !self.running.is_empty(), "in flight is what runs");
        }
        for message in send {
            match serde_json::from_value(message.command.clone()) {
                Ok(TaskCommand::AgentAnswered { answer }) => {
                    let task = TaskId(Uuid::from_u128(3));
                    assert_eq!(message.to, ActorRef::Task { workspace: self.config.workspace, task }.into());
                    assert_eq!((message.deliver_at, answer.chat), (None, self.config.chat));
                    self.reports.push(*answer);
                }
                Ok(TaskCommand::AgentWaits { .. }) => self.scheduled.insert(0, message.command),
                _ => {
                    self.due = message.deliver_at;
                    self.scheduled.push(message.command);
                }
            }
        }
        events.iter().map(word).collect()
    }

    pub fn at(&self) -> Timestamp {
        Timestamp::from_millis(i64::try_from(self.now).unwrap_or(i64::MAX))
    }

    pub fn command(&mut self, command: ChatCommand) -> Vec<String> {
        let (id, at) = (CommandId(self.id()), self.at());
        let by = self.by.clone();
        self.input(Input::Command { id, by, at, command })
    }

    pub fn say(&mut self, content: &str) -> Vec<String> {
        self.say_with(content, false)
    }

    pub fn say_with(&mut self, content: &str, interrupt: bool) -> Vec<String> {
        let command = self.words(content, interrupt);
        self.command(command)
    }

    /// The command to say something.
    pub fn words(&self, content: &str, interrupt: bool) -> ChatCommand {
        ChatCommand::StartTurn(TurnRequest {
            content: content.to_owned(),
            create: Some(self.config.clone()),
            interrupt,
            may_approve: self.may_approve,
            may_not_run: self.may_not_run,
            ..TurnRequest::default()
        })
    }

    pub fn streamed(&mut self, text: &str) -> Vec<String> {
        let message_id = self.message_id();
        self.input(Input::Report(Report::Wrote { message_id, text: text.into() }))
    }

    pub fn message_id(&self) -> domain::MessageId {
        let message = self.running.values().find_map(|effect| match effect {
            ChatEffect::CallModel { message_id, .. } => Some(*message_id),
            _ => None,
        });
        message.unwrap_or(domain::MessageId(Uuid::nil()))
    }

    /// The model's answer.
    pub fn answer(&mut self, text: &str, calls: &[(&str, Value)]) -> Vec<String> {
        self.answer_using(text, calls, Usage { input_tokens: 10, output_tokens: 5, ..Usage::default() })
    }

    pub fn answer_using(&mut self, text: &str, calls: &[(&str, Value)], usage: Usage) -> Vec<String> {
        let answer = ModelAnswer {
            message_id: self.message_id(),
            text: text.into(),
            unreported: String::new(),
            reasoning: String::new(),
            calls: calls.iter().map(|(tool, args)| ((*tool).into(), args.to_string())).collect(),
            reason: StopReason::EndTurn,
            usage,
            provider: Value::Null,
            model: None,
        };
        self.running.clear();
        self.input(Input::Report(Report::ModelFinished(Box::new(answer))))
    }

    /// The model does not answer.
    pub fn fail(&mut self, code: Code) -> Vec<String> {
        let message_id = self.message_id();
        self.running.clear();
        let error = domain::Error::new(code, "gone");
        self.input(Input::Report(Report::ModelFailed { message_id, error, timed_out: false }))
    }

    /// The model's provider fails for the so manyth time, and asks for patience.
    pub fn postpone(&mut self, failures: u32, after: Duration) -> Vec<String> {
        let message_id = self.message_id();
        self.running.clear();
        let error = domain::Error::new(Code::RateLimited, "slow down");
        self.input(Input::Report(Report::ModelPostponed { message_id, error, failures, after }))
    }

    /// The last message that the chat sent arrives.
    pub fn message(&mut self) -> Vec<String> {
        let command = self.scheduled.last().cloned().map(serde_json::from_value);
        self.command(command.and_then(Result::ok).unwrap_or_else(|| panic!("no message: {:?}", self.scheduled)))
    }

    /// The running tool's outcome.
    pub fn tool(&mut self, output: &str) -> Vec<String> {
        self.tool_ends(tools::CallOutcome {
            output: output.into(),
            success: true,
            truncated: false,
            result: Value::Null,
            error: None,
            resources: None,
            seen: vec![],
            events: vec![],
        })
    }

    pub fn tool_ends(&mut self, outcome: tools::CallOutcome) -> Vec<String> {
        let call_id = self.running.values().find_map(|effect| match effect {
            ChatEffect::CallTool { call, .. } => Some(call.call_id),
            _ => None,
        });
        self.running.clear();
        let call_id = call_id.unwrap_or(CallId(Uuid::nil()));
        self.input(Input::Report(Report::ToolFinished { call_id, outcome: Box::new(outcome) }))
    }

    /// The approval of a version of a plan.
    pub fn approval(&self, v: u64) -> Approval {
        Approval {
            plan_path: FilePath::parse("/projects/a/plan.md").unwrap_or_else(|_| FilePath::root()),
            plan_id: FileId(Uuid::from_u128(12)),
            v,
            digest: Sha256::of(b"plan"),
            by: self.by.to_string(),
            at: self.at(),
        }
    }

    /// The approval of a plan, and the turn that carries it out.
    pub fn approve(&mut self, v: u64) -> Vec<String> {
        let approval = self.approval(v);
        self.command(ChatCommand::StartTurn(TurnRequest {
            content: "Carry it out".to_owned(),
            create: Some(self.config.clone()),
            approval: Some(Box::new(approval)),
            may_approve: true,
            ..TurnRequest::default()
        }))
    }

    /// The plan was looked at before a command.
    pub fn plan_is(&mut self, changed: Option<&str>) -> Vec<String> {
        let call_id = self.running.values().find_map(|effect| match effect {
            ChatEffect::CheckPlan { call_id, .. } => Some(*call_id),
            _ => None,
        });
        self.running.clear();
        let call_id = call_id.unwrap_or(CallId(Uuid::nil()));
        self.input(Input::Report(Report::PlanChecked { call_id, changed: changed.map(String::from) }))
    }

    /// The tools that the model was told of last.
    pub fn offered(&self) -> Vec<String> {
        let tools = self.request.iter().flat_map(|request| request.tools.iter());
        tools.map(|tool| tool.name.clone()).collect()
    }

    pub fn stop(&mut self) -> Vec<String> {
        let stop_id = StopId(self.id());
        self.stop_again(stop_id, StopTarget::First)
    }

    pub fn stop_again(&mut self, stop_id: StopId, target: StopTarget) -> Vec<String> {
        let request = StopRequest { stop_id, target, at: self.at(), reason: "user_cancelled".into() };
        self.input(Input::Stop(request))
    }

    /// Running work failed too often: the runtime drops it and pauses the chat.
    pub fn park(&mut self, reason: &str) -> Vec<String> {
        self.running.clear();
        self.in_flight_is_what_runs = false;
        let happened = self.input(Input::Park { reason: reason.into(), command: None });
        self.in_flight_is_what_runs = true;
        happened
    }

    /// A command failed too often before it was taken in.
    pub fn park_before(&mut self, command: ChatCommand, reason: &str) -> Vec<String> {
        self.input(Input::Park { reason: reason.into(), command: Some(command) })
    }

    /// The worker died: its running effects are gone.
    pub fn crash(&mut self) -> Vec<String> {
        self.running.clear();
        let mut again = ChatState::default();
        for (position, event) in self.log.iter().enumerate() {
            ChatMachine::apply(&mut again, position as u64 + 1, event);
        }
        self.state = again;
        if ChatMachine::in_flight(&self.state) { self.input(Input::Resume) } else { vec![] }
    }

    pub fn question(&self) -> QuestionId {
        let asked = self.log.iter().rev().find_map(|event| match event {
            ChatEvent::Asked { question_id, .. } => Some(*question_id),
            _ => None,
        });
        asked.unwrap_or(QuestionId(Uuid::nil()))
    }

    pub fn permission(&self) -> PermissionId {
        let asked = self.log.iter().rev().find_map(|event| match event {
            ChatEvent::PermissionRequired { permission_id, .. } => Some(*permission_id),
            _ => None,
        });
        asked.unwrap_or(PermissionId(Uuid::nil()))
    }

    pub fn texts(&self) -> Vec<String> {
        self.state.history.iter().flat_map(|turn| turn.messages.iter().map(|message| line(message))).collect()
    }

    pub fn count(&self, wanted: impl Fn(&ChatEvent) -> bool) -> usize {
        self.log.iter().filter(|event| wanted(event)).count()
    }
}

/// The size of the tools of a chat, in tokens.
pub fn tools_tokens() -> u64 {
    let mut play = Play::new();
    play.say("go");
    play.state.tools_tokens
}

pub fn line(message: &Message) -> String {
    match message {
        Message::User { content, .. } => format!("user: {content}"),
        Message::Assistant { content, calls, .. } if calls.is_empty() => format!("assistant: {content}"),
        Message::Assistant { content, calls, .. } => {
            format!(
                "assistant: {content} -> {}",
                calls.iter().map(|call| call.tool.as_str()).collect::<Vec<_>>().join(", ")
            )
        }
        Message::Tool { output, success: true, .. } => format!("tool: {output}"),
        Message::Tool { output, success: false, .. } => format!("tool failed: {output}"),
        Message::System { content, .. } => content.clone(),
    }
}

pub fn word(event: &ChatEvent) -> String {
    match event {
        ChatEvent::TurnStarted { attempt, .. } => format!("turn_started {attempt}"),
        ChatEvent::ModelStarted { attempt, .. } => format!("model_started {attempt}"),
        ChatEvent::MessageAdded { message } => line(message),
        ChatEvent::CallStarted { tool, attempt, .. } => format!("call {tool} {attempt}"),
        ChatEvent::Observed { output, success, .. } => format!("observed {success}: {output}"),
        ChatEvent::Done { stop_reason, message, .. } => format!("done {stop_reason:?}: {message}"),
        ChatEvent::Stopped { reason, partial_response, .. } => format!("stopped {reason}: {partial_response}"),
        ChatEvent::Failed { error } => format!("failed {}", error.code),
        ChatEvent::ContextCut { turns } => format!("cut {turns}"),
        ChatEvent::PermissionResolved { outcome, by, .. } => format!("{outcome:?} by {by}"),
        ChatEvent::Rollback { fact } => match &**fact {
            RollbackFact::Began { .. } => "rollback began".into(),
            RollbackFact::Ended { .. } => "rollback ended".into(),
        },
        other => serde_json::to_value(other)
            .ok()
            .and_then(|value| value["type"].as_str().map(String::from))
            .unwrap_or_default(),
    }
}

pub fn ls() -> (&'static str, Value) {
    ("ls", json!({ "path": "/" }))
}

pub fn ask() -> (&'static str, Value) {
    let question = json!({ "name": "colour", "question": "Which colour?", "schema": { "type": "string" } });
    ("ask_user", json!({ "questions": [question] }))
}
