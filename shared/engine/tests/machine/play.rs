//! The task machine, played by hand: inputs in, events, messages and effects out. No I/O, and only the time that the test sets.

use actor::{Decision, EffectKey, Input, Machine, OutboxMessage, Step, StopRequest, StopTarget};
use buildscale_engine::{
    FlowCache, TaskMachine,
    machine::{AgentReady, NodeResult, Run, TaskEffect, TaskReport, TaskState, chat_of},
};
use domain::{
    CallId, ChatCommand, ChatConfig, ChatId, CommandId, Error, Limits, Mode, ModelSettings, NodeId, Principal, Stamp,
    Status, StopId, TaskCommand, TaskConfig, TaskEvent, TaskId, Timestamp, Usage, WorkspaceId,
    task::{AgentAnswer, ChildEnd, ChildName},
};
use flow::{
    Flow,
    load::{KnownNames, load},
};
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// A task, its log, and its requests to the outside.
pub struct Play {
    pub machine: TaskMachine,
    pub state: TaskState,
    pub log: Vec<TaskEvent>,
    pub running: BTreeMap<EffectKey, TaskEffect>,
    pub config: TaskConfig,
    pub sent: Vec<OutboxMessage>,
    used: BTreeSet<EffectKey>,
    now: i64,
    ids: u32,
    /// The commands that were ended.
    pub killed: Vec<CallId>,
}

impl Play {
    /// A task of the flow with these nodes and edges, as workflow.yaml has them.
    pub fn new(nodes: Value, edges: &[(&str, &str)]) -> Self {
        let edges: Vec<Value> = edges.iter().map(|(from, to)| json!({ "from": from, "to": to })).collect();
        Self::with_edges(nodes, json!(edges))
    }

    /// The same with edges as workflow.yaml has them.
    pub fn with_edges(nodes: Value, edges: Value) -> Self {
        let workflow = json!({ "nodes": nodes, "edges": edges });
        let files = [
            ("workflow.json", workflow),
            (
                "agents.json",
                json!({ "agents": [{ "id": "writer" }, { "id": "brief", "limits": { "max_tokens": 1_000 } }] }),
            ),
            (
                "tools.json",
                json!({ "tools": [
                    { "id": "look", "entrypoint": "read" },
                    { "id": "ticket", "entrypoint": "http__ticket", "permissions": { "allow_network": true } },
                ] }),
            ),
            (
                "schemas/number.json",
                json!({ "type": "object", "properties": { "n": { "type": "integer" } }, "required": ["n"] }),
            ),
        ];
        let files = files.into_iter().map(|(path, content)| (path.to_owned(), content.to_string())).collect();
        let flow = load("test", files, &KnownNames { sandbox: true, ..KnownNames::default() })
            .unwrap_or_else(|report| panic!("{report:?}"));
        Self::of(flow)
    }

    fn of(flow: Flow) -> Self {
        let flows = FlowCache::default();
        let (workspace, task) = (WorkspaceId::from_key("test", "workspace"), TaskId::from_key("test", "task"));
        let config = testkit::flows::task(workspace, task, flow.reference.clone(), flow.default_start.clone());
        let config = TaskConfig { input: json!({ "in": 1 }), ..config };
        flows.put(Arc::new(flow));
        Self {
            machine: TaskMachine { flows, places: None },
            state: TaskState::default(),
            log: Vec::new(),
            running: BTreeMap::new(),
            config,
            sent: Vec::new(),
            used: BTreeSet::new(),
            now: 1_000,
            ids: 0,
            killed: Vec::new(),
        }
    }

    /// Nodes one after the other: a start, these, and an exit.
    pub fn chain(middle: Value) -> Self {
        let Value::Array(middle) = middle else { panic!("a list of nodes") };
        let mut nodes = vec![node("s", "start", json!({}))];
        nodes.extend(middle);
        nodes.push(node("done", "exit", json!({})));
        let ids: Vec<String> = nodes.iter().map(|node| node["id"].as_str().unwrap().to_owned()).collect();
        let edges: Vec<(&str, &str)> = ids.windows(2).map(|pair| (pair[0].as_str(), pair[1].as_str())).collect();
        Self::new(json!(nodes), &edges)
    }

    /// Hands in one input; returns the events, a word or two for each.
    pub fn input(&mut self, input: Input<TaskMachine>) -> Vec<String> {
        self.now += 10;
        let stamp = Stamp { at: self.at(), id: self.id().0 };
        let mut step = Step::new(std::mem::take(&mut self.state), self.log.len() as u64 + 1);
        self.machine.handle(&mut step, input, &stamp);
        let (state, Decision { events, send, effects, cancel, .. }) = step.end();
        self.state = state;
        for key in cancel {
            assert!(self.running.remove(&key).is_some(), "{key:?} does not run");
        }
        self.log.extend(events.iter().cloned());
        for (key, effect) in effects {
            assert!(self.used.insert(key.clone()), "{key:?} is used twice");
            if let TaskEffect::KillCommand(_, call) = &effect {
                // Its result is not needed.
                self.killed.push(*call);
                continue;
            }
            self.running.insert(key, effect);
        }
        assert_eq!(TaskMachine::in_flight(&self.state), !self.running.is_empty(), "in flight is what runs");
        assert!(self.log.iter().filter(|event| matches!(event, TaskEvent::Finished { .. })).count() <= 1);
        self.sent.extend(send);
        events.iter().map(word).collect()
    }

    pub fn at(&self) -> Timestamp {
        Timestamp::from_millis(self.now)
    }

    /// The clock is set back by so many milliseconds.
    pub fn set_back(&mut self, ms: i64) {
        self.now -= ms;
    }

    fn id(&mut self) -> CommandId {
        self.ids += 1;
        CommandId::from_key("test", &self.ids.to_string())
    }

    pub fn command(&mut self, command: TaskCommand) -> Vec<String> {
        let (id, at) = (self.id(), self.at());
        self.input(Input::Command { id, by: Principal::local(), at, command })
    }

    pub fn start(&mut self) -> Vec<String> {
        let config = Box::new(self.config.clone());
        self.command(TaskCommand::Start { config })
    }

    /// The running node.
    pub fn run(&self) -> Run {
        let run = self.running.values().find_map(|effect| match effect {
            TaskEffect::Run(run) => Some((**run).clone()),
            TaskEffect::Archive(_)
            | TaskEffect::StopAgent(..)
            | TaskEffect::KillCommand(..)
            | TaskEffect::Clear(..) => None,
        });
        run.unwrap_or_else(|| panic!("no node runs: {:?}", self.log))
    }

    /// The node that runs ends.
    pub fn ends(&mut self, done: NodeResult) -> Vec<String> {
        let node = Some(self.run().node);
        self.running.clear();
        self.input(Input::Report(TaskReport::Done(Box::new(NodeResult { node, ..done }))))
    }

    /// The node that runs gives this.
    pub fn gives(&mut self, output: Value) -> Vec<String> {
        self.ends(NodeResult { output, ..NodeResult::default() })
    }

    pub fn fails(&mut self, error: Error) -> Vec<String> {
        self.ends(NodeResult { error: Some(error), ..NodeResult::default() })
    }

    /// The message that wakes a node that waits comes, when it is due.
    pub fn wakes(&mut self) -> Vec<String> {
        self.comes("wake")
    }

    /// The message of the task to itself that brings this command comes, when it is due.
    pub fn comes(&mut self, command: &str) -> Vec<String> {
        let is_it = |message: &OutboxMessage| message.command["command"] == command && message.deliver_at.is_some();
        let place = self.sent.iter().position(is_it).expect("a message");
        let message = self.sent.remove(place);
        self.now = self.now.max(message.deliver_at.expect("a time").as_millis());
        self.command(serde_json::from_value(message.command).unwrap())
    }

    /// The node that runs reports something else than its end.
    pub fn reports(&mut self, report: TaskReport) -> Vec<String> {
        self.running.clear();
        self.input(Input::Report(report))
    }

    /// The worker dies, and another one goes on.
    pub fn dies(&mut self) -> Vec<String> {
        self.running.clear();
        self.input(Input::Resume)
    }

    pub fn stop(&mut self) -> Vec<String> {
        let stop_id = StopId(self.id().0);
        let request =
            StopRequest { stop_id, target: StopTarget::First, at: self.at(), reason: "user_cancelled".into() };
        self.input(Input::Stop(request))
    }

    pub fn answer(&mut self, node: &str, answers: Value) -> Vec<String> {
        let Value::Object(answers) = answers else { panic!("answers by name") };
        self.command(TaskCommand::Answer { node: node.into(), answers })
    }

    /// The running agent node is ready to ask.
    pub fn agent_ready(&mut self) -> Vec<String> {
        let run = self.run();
        let chat = chat_of(run.config.task, &run.node, run.retry);
        let config = Box::new(ChatConfig {
            workspace: run.config.workspace,
            chat,
            user: run.config.user,
            title: "test".into(),
            role: "assistant".into(),
            model: None,
            model_settings: ModelSettings::default(),
            mode: Mode::Chat,
            limits: Limits::default(),
            system: String::new(),
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
        });
        let (prompt, node) = ("write".into(), run.node);
        self.reports(TaskReport::AgentReady(Box::new(AgentReady {
            node,
            config,
            prompt,
            context: None,
            denied: Vec::new(),
        })))
    }

    /// The agent answers.
    pub fn says(&mut self, chat: ChatId, round: u32, text: &str) -> Vec<String> {
        self.turn_ends(chat, round, text, "end_turn", None)
    }

    pub fn turn_ends(&mut self, chat: ChatId, round: u32, text: &str, why: &str, error: Option<Error>) -> Vec<String> {
        let usage = Usage { input_tokens: 10, output_tokens: 5, ..Usage::default() };
        let (text, stop_reason) = (text.into(), why.into());
        let answer =
            AgentAnswer { chat, round, text, stop_reason, usage, model: None, steps: 1, tools: Vec::new(), error };
        self.command(TaskCommand::AgentAnswered { answer: Box::new(answer) })
    }

    pub fn chat(&self, node: &str, retry: u32) -> ChatId {
        chat_of(self.config.task, &NodeId::from(node), retry)
    }

    /// A child ends by itself.
    pub fn child_ends(&mut self, child: &str, status: Status, output: Value) -> Vec<String> {
        let end = Box::new(ChildEnd { status, output, merged: false, lost: 0, error: None });
        self.command(TaskCommand::ChildEnded { child: ChildName(child.into()), end })
    }

    /// The messages of tasks sent since the last look.
    pub fn messages(&mut self) -> Vec<TaskCommand> {
        let messages = std::mem::take(&mut self.sent);
        messages.into_iter().filter_map(|message| serde_json::from_value(message.command).ok()).collect()
    }

    /// The messages to chats since the last look.
    pub fn prompts(&mut self) -> Vec<String> {
        let messages = std::mem::take(&mut self.sent).into_iter();
        let commands = messages.filter_map(|message| serde_json::from_value(message.command).ok());
        commands
            .filter_map(|command| match command {
                ChatCommand::StartTurn(request) => Some(request.content),
                _ => None,
            })
            .collect()
    }

    pub fn end(&self) -> Option<(Status, Value, Option<Error>)> {
        self.log.iter().find_map(|event| match event {
            TaskEvent::Finished { status, output, error, .. } => Some((*status, output.clone(), error.clone())),
            _ => None,
        })
    }

    /// The log, folded anew, is the same state.
    pub fn check_fold(&self) {
        let mut state = TaskState::default();
        self.log.iter().enumerate().for_each(|(index, event)| TaskMachine::apply(&mut state, index as u64 + 1, event));
        assert_eq!(serde_json::to_value(&state).unwrap(), serde_json::to_value(&self.state).unwrap());
        let text = serde_json::to_string(&self.state).unwrap();
        let read: TaskState = serde_json::from_str(&text).unwrap();
        assert_eq!(serde_json::to_string(&read).unwrap(), text, "a snapshot is the state");
    }
}

/// A deterministic node, with more keys.
pub fn node(id: &str, role: &str, more: Value) -> Value {
    let mut node = json!({ "id": id, "kind": "deterministic", "role": role, "context": "none" });
    for (key, value) in more.as_object().into_iter().flatten() {
        node[key] = value.clone();
    }
    node
}

fn word(event: &TaskEvent) -> String {
    match event {
        TaskEvent::Created { .. } => "created".into(),
        TaskEvent::NodeStarted { node, attempt, retry, .. } => match retry {
            None => format!("{node} {attempt}"),
            Some(retry) => format!("{node} {attempt} retry {}", retry.number),
        },
        TaskEvent::NodeFinished { node, status, .. } => format!("{node} {status}"),
        TaskEvent::Routed { from, to } => format!("{from} > {to}"),
        TaskEvent::Forked { node, total, .. } => format!("{node} forks {total}"),
        TaskEvent::Spawned { until, .. } => format!("spawned {until}"),
        TaskEvent::Merged { node, .. } => format!("{node} merges"),
        TaskEvent::ChildFinished { child, end } => format!("{child} {}", end.status),
        TaskEvent::ChildArrived { arrival } => format!("{} arrives", arrival.child),
        TaskEvent::AgentAsked { round, .. } => format!("asked {round}"),
        TaskEvent::AgentReplied { .. } => "replied".into(),
        TaskEvent::AgentWaits { asked, .. } => if asked.is_some() { "agent waits" } else { "agent goes on" }.into(),
        TaskEvent::OutputRejected { round, .. } => format!("rejected {round}"),
        TaskEvent::Asked { .. } => "asks".into(),
        TaskEvent::Answered { .. } => "answered".into(),
        TaskEvent::PauseRequested { .. } => "pause".into(),
        TaskEvent::PausedBefore { node, .. } => format!("paused before {node}"),
        TaskEvent::Continued { step, .. } => if *step { "steps" } else { "continues" }.into(),
        TaskEvent::StopRequested { .. } => "stop".into(),
        TaskEvent::Finished { status, .. } => format!("finished {status}"),
        TaskEvent::Archived { .. } => "archived".into(),
        TaskEvent::Waiting { node, .. } => format!("{node} waits"),
        TaskEvent::Deleted { .. } => "deleted".into(),
        TaskEvent::Cleared => "cleared".into(),
        TaskEvent::Prioritized { priority } => format!("priority {priority}"),
        TaskEvent::Labelled { labels } => format!("labels {}", json!(labels)),
        TaskEvent::Caught { node, error, .. } => format!("{node} caught {}", error.code),
        other => format!("{other:?}"),
    }
}
