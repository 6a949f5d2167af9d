//! All tasks of one flow with the real router, each with a mailbox: the next one is random, and messages come twice.
//!
//! It promises the same as the queue (`ports::Queue`): messages of one send are in all mailboxes at once, and a mailbox is
//! read in order; no order between mailboxes, and at least once.

use crate::script::{Act, Script, without_errors};
use buildscale_flow::router::{Next, NodeOutcome, Position, Route, RouteState, Router, TaskMessage};
use domain::{
    Code, Error, NodeId, Status, TaskConfig, TaskEvent, TaskId, Timestamp, WorkspaceId,
    task::{Arrival, ChildEnd, ChildName, FlowRef, Origin},
};
use serde_json::Value;
use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    sync::Arc,
};

/// The steps, in order, by the names of tasks: all that the model is told.
#[derive(Clone, Debug)]
pub enum Step {
    /// A child was sent off.
    Sent(String),
    /// A task began.
    Begin(String),
    /// The node that it executes ended.
    Done(String),
    /// A task learned the end of another one.
    Heard { by: String, of: String },
    /// A task learned that it is not needed.
    Stop(String),
}

/// How one task went.
pub struct Ran {
    pub name: String,
    pub config: TaskConfig,
    pub place: RouteState,
    pub events: Vec<TaskEvent>,
    /// The nodes that it executed, with their inputs.
    pub trace: Vec<(NodeId, Value)>,
    running: Option<(NodeId, Arc<Value>)>,
    stopping: bool,
    inbox: VecDeque<Mail>,
}

#[derive(Clone)]
enum Mail {
    Start,
    Arrived(String, Arrival),
    Ended(ChildName, ChildEnd),
    Stop,
    SpawnMore(NodeId),
}

/// A flow that runs.
pub struct Drive<'a> {
    script: &'a Script,
    pub tasks: Vec<Ran>,
    by_id: HashMap<TaskId, usize>,
    /// Tasks that have something to do, each as often as it has.
    busy: Vec<usize>,
    pub steps: Vec<Step>,
    dice: Dice,
    /// Children that are sent off at once.
    chunk: u32,
    /// One message in so many comes twice; 0 for none.
    twice: u64,
}

impl<'a> Drive<'a> {
    /// Runs a flow to its end.
    pub fn run(script: &'a Script, seed: u64) -> Self {
        Self::run_with(script, seed, 2, 6)
    }

    pub fn run_with(script: &'a Script, seed: u64, chunk: u32, twice: u64) -> Self {
        let (dice, by_id, busy, steps) = (Dice::new(seed), HashMap::new(), Vec::new(), Vec::new());
        let mut drive = Self { script, tasks: Vec::new(), by_id, busy, steps, dice, chunk, twice };
        let task = TaskId::from_key("test", "root");
        let workspace = WorkspaceId::from_key("test", "workspace");
        let flow = FlowRef { name: "test".into(), hash: domain::Sha256::of(b"") };
        drive.make(testkit::flows::task(workspace, task, flow, script.start().clone()));
        while !drive.busy.is_empty() {
            let next = drive.dice.below(drive.busy.len());
            let task = drive.busy.swap_remove(next);
            drive.act(task);
        }
        drive
    }

    /// The task of this name; the root's is empty.
    pub fn task(&self, name: &str) -> &Ran {
        self.tasks.iter().find(|task| task.name == name).unwrap_or_else(|| panic!("there is no task {name:?}"))
    }

    pub fn root(&self) -> &Ran {
        &self.tasks[0]
    }

    fn make(&mut self, config: TaskConfig) {
        if self.by_id.contains_key(&config.task) {
            return;
        }
        let line = config.origin.as_ref().map(|origin| origin.line.as_slice()).unwrap_or_default();
        let name = line.iter().map(ChildName::as_str).collect::<Vec<_>>().join("/");
        let index = self.tasks.len();
        if index > 0 {
            self.steps.push(Step::Sent(name.clone()));
        }
        self.by_id.insert(config.task, index);
        self.tasks.push(Ran {
            name,
            config,
            place: RouteState::default(),
            events: Vec::new(),
            trace: Vec::new(),
            running: None,
            stopping: false,
            inbox: VecDeque::new(),
        });
        self.post(index, Mail::Start);
    }

    fn post(&mut self, to: usize, mail: Mail) {
        self.tasks[to].inbox.push_back(mail);
        self.busy.push(to);
    }

    /// One thing that a task has to do: end its node, or read a message.
    fn act(&mut self, index: usize) {
        let task = &mut self.tasks[index];
        let ends = task.running.is_some() && (task.inbox.is_empty() || self.dice.below(2) == 0);
        if ends && let Some((node, input)) = task.running.take() {
            return self.done(index, &node, &input);
        }
        let Some(mail) = task.inbox.pop_front() else { return };
        if self.twice > 0 && self.dice.below(self.twice as usize) == 0 {
            self.post(index, mail.clone());
        }
        let name = self.tasks[index].name.clone();
        match mail {
            Mail::Start => {
                if self.tasks[index].place.position == Position::Nowhere {
                    self.steps.push(Step::Begin(name));
                    let created = TaskEvent::Created { config: Box::new(self.tasks[index].config.clone()) };
                    self.happened(index, vec![created]);
                    let route = self.router(index).begin();
                    self.carry_out(index, route);
                }
            }
            Mail::Arrived(of, arrival) => {
                self.steps.push(Step::Heard { by: name, of });
                let route = self.router(index).arrived(arrival);
                self.carry_out(index, route);
            }
            Mail::Ended(child, end) => {
                let of = if name.is_empty() { child.to_string() } else { format!("{name}/{child}") };
                self.steps.push(Step::Heard { by: name, of });
                let route = self.router(index).child_ended(&child, end);
                self.carry_out(index, route);
            }
            Mail::Stop => {
                self.steps.push(Step::Stop(name));
                self.tasks[index].stopping = true;
                // A node that a worker runs ends first.
                if self.tasks[index].running.is_none() {
                    let route = self.router(index).stop(Error::new(Code::Cancelled, "stopped"));
                    self.carry_out(index, route);
                }
            }
            Mail::SpawnMore(node) => {
                if self.tasks[index].place.position != Position::Ended {
                    self.spawn(index, &node);
                }
            }
        }
    }

    fn router(&self, index: usize) -> Router<'_> {
        let Ran { config, place, .. } = &self.tasks[index];
        Router { graph: &self.script.graph, config, place, now: Timestamp::default(), follows: None }
    }

    fn happened(&mut self, index: usize, events: Vec<TaskEvent>) {
        let task = &mut self.tasks[index];
        for event in events {
            task.place.apply(&event);
            task.events.push(event);
        }
    }

    fn done(&mut self, index: usize, node: &NodeId, input: &Value) {
        let task = &self.tasks[index];
        self.steps.push(Step::Done(task.name.clone()));
        let Act { status, output, elements } = self.script.act(&task.name, node, input);
        let error = (status == Status::Failure).then(|| Error::new(Code::Internal, format!("{node} failed")));
        let route = if task.stopping {
            self.router(index).stop(Error::new(Code::Cancelled, "stopped"))
        } else {
            self.router(index)
                .finished(node, &NodeOutcome { status, output: &output, error: error.as_ref(), elements, caught: None })
        };
        let (at, metrics) = (Timestamp::default(), Default::default());
        self.happened(
            index,
            vec![TaskEvent::NodeFinished { node: node.clone(), attempt: 1, status, output, error, metrics, at }],
        );
        self.carry_out(index, route);
    }

    fn carry_out(&mut self, index: usize, route: Route) {
        self.happened(index, route.events);
        let Ran { name, config, .. } = &self.tasks[index];
        let (name, task) = (name.clone(), config.task);
        for post in route.posts {
            let (to, mail) = match post {
                TaskMessage::Arrived(to, arrival) => (to, Mail::Arrived(name.clone(), arrival)),
                TaskMessage::Ended(to, child, end) => (to, Mail::Ended(child, end)),
                TaskMessage::Cancel(child) => (task.child(&child), Mail::Stop),
            };
            let to = self.by_id[&to];
            self.post(to, mail);
        }
        match route.next {
            Next::Same | Next::End => {}
            Next::Execute(node, input) => {
                assert_eq!(*self.tasks[index].place.current, *input, "{name}: the place knows the input of {node}");
                let task = &mut self.tasks[index];
                task.trace.push((node.clone(), without_errors(&input)));
                let (attempt, retry, queue_ms, at) = (1, None, 0, Timestamp::default());
                let started = TaskEvent::NodeStarted { node: node.clone(), attempt, retry, queue_ms, at };
                assert!(task.running.replace((node, input)).is_none(), "a task executes one node at a time");
                self.happened(index, vec![started]);
                self.busy.push(index);
            }
            Next::Spawn(node) => self.spawn(index, &node),
        }
    }

    fn spawn(&mut self, index: usize, node: &NodeId) {
        let Some(fork) = self.tasks[index].place.forks.get(node).cloned() else { return };
        let until = fork.total.min(fork.spawned + self.chunk);
        for child in fork.spawned..until {
            let config = self.child(&self.tasks[index], node, &fork, child);
            self.make(config);
        }
        if until > fork.spawned {
            self.happened(index, vec![TaskEvent::Spawned { node: node.clone(), until }]);
        }
        if until > fork.spawned && until < fork.total {
            self.post(index, Mail::SpawnMore(node.clone()));
        }
    }

    fn child(&self, parent: &Ran, node: &NodeId, fork: &buildscale_flow::router::Fork, index: u32) -> TaskConfig {
        let name = fork.name(node, index).unwrap();
        let above = parent.config.origin.clone();
        let (mut ancestors, mut line, mut place) =
            above.map(|origin| (origin.ancestors, origin.line, origin.place)).unwrap_or_default();
        ancestors.push(parent.config.task);
        line.push(name.clone());
        place.push(index);
        let to = fork.target(index).unwrap().clone();
        let start = to.clone();
        let origin = Origin {
            parent: parent.config.task,
            ancestors,
            line,
            place,
            kind: fork.kind,
            node: node.clone(),
            to,
            index,
        };
        let input = (*parent.place.current).clone();
        TaskConfig {
            task: parent.config.task.child(&name),
            start,
            input,
            origin: Some(origin),
            ..parent.config.clone()
        }
    }
}

impl Ran {
    /// How it ended, and with what.
    pub fn end(&self) -> Option<(Status, &Value)> {
        self.events.iter().find_map(|event| match event {
            TaskEvent::Finished { status, output, .. } => Some((*status, output)),
            _ => None,
        })
    }

    pub fn status(&self) -> Status {
        self.end().unwrap_or_else(|| panic!("{:?} has not ended", self.name)).0
    }

    pub fn error(&self) -> Option<&Error> {
        self.events.iter().find_map(|event| match event {
            TaskEvent::Finished { error, .. } => error.as_ref(),
            _ => None,
        })
    }

    /// The nodes that it executed.
    pub fn path(&self) -> Vec<&str> {
        self.trace.iter().map(|(node, _)| node.as_str()).collect()
    }

    pub fn input_of(&self, node: &str) -> &Value {
        let found = self.trace.iter().find(|(executed, _)| executed.as_str() == node);
        &found.unwrap_or_else(|| panic!("{:?} did not execute {node}", self.name)).1
    }

    /// Whether it went on before all its children were sent off.
    pub fn left_some_behind(&self) -> bool {
        let (mut made, mut sent) = (BTreeMap::new(), BTreeMap::new());
        for event in &self.events {
            match event {
                TaskEvent::Forked { node, total, .. } => drop(made.insert(node, *total)),
                TaskEvent::Spawned { node, until } => drop(sent.insert(node, *until)),
                _ => {}
            }
        }
        made.iter().any(|(node, total)| sent.get(node).copied().unwrap_or_default() < *total)
    }

    pub fn is_stopped(&self) -> bool {
        self.error().is_some_and(|error| error.code == Code::Cancelled)
    }
}

/// A small generator of numbers (xorshift).
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % end.max(1)
    }
}
