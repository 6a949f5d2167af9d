//! The task as a state machine of the actor runtime: the route of each input to its part, and the outside view of a task.
//!
//! ```text
//!   Start ─ router.begin ─┐
//!   a node is done ───────┼─ router ─ Route ─ carry_out ─┬─ NodeStarted + effect Run
//!   a child came, ended ──┘                              ├─ Forked + messages that make children
//!                                                        └─ Finished + message to the parent
//! ```

mod agent;
mod budget;
mod delete;
mod end;
mod execution;
mod human;
mod inspect;
mod labels;
mod replay;
pub(crate) mod slots;
mod spawn;
mod spending;
mod state;
mod step;
mod view;

pub use delete::TaskDescendants;
pub use execution::{Execution, Mode, NodeAnswer};
pub use spending::{ForkBudget, Spending};
pub use state::TaskState;
pub use view::phase;
pub(crate) use view::{view, waiting};

use self::slots::{give_back, held_by, wake_to_ask_anew};
use crate::{admission_keys, cache::FlowCache};
use ::slots::Places;
use actor::{ActorId, ActorTree, Announcement, EffectKey, Input, Machine, StopRequest, View};
use domain::{
    ActorKind, ActorRef, CallId, ChatId, Code, Error, HoldId, NodeId, Principal, Stamp, Status, TaskCommand,
    TaskConfig, TaskEvent, TaskId, Timestamp, Waiting, WorkspaceEvent, WorkspaceId,
    event::Question,
    task::{AssembledContext, ToolUse, stopped},
};
use flow::{flow::Node, router::Router};
use ports::Key;
use serde_json::Value;
use std::{collections::BTreeMap, sync::Arc, time::Duration};
use step::Step;

/// The task machine.
#[derive(Clone)]
pub struct TaskMachine {
    /// The flows of the tasks that are driven.
    pub flows: FlowCache,
    /// The places of the machine that commands run on; none where that is unknown, and commands wait as they run.
    pub places: Option<Places>,
}

/// A request of a task to the outside.
#[derive(Debug)]
pub enum TaskEffect {
    /// Execute a node.
    Run(Box<Run>),
    /// Store the artifacts of a task that has ended.
    Archive(Arc<TaskConfig>),
    /// Have the worker of a chat stop its turn.
    StopAgent(ActorId, StopRequest),
    /// End a command of a node, which does not need its result.
    KillCommand(WorkspaceId, CallId),
    /// Remove the remains of a deleted task: its artifacts, the chats of its agents, and its children.
    Clear(Arc<TaskConfig>),
}

/// One execution of a node.
#[derive(Clone, Debug)]
pub struct Run {
    /// The task.
    pub config: Arc<TaskConfig>,
    /// The node.
    pub node: NodeId,
    /// Counts from 1.
    pub attempt: u32,
    /// How often it was begun anew because it failed for a passing reason.
    pub retry: u32,
    /// Whether a worker was lost with this same try: it may have taken effect.
    pub may_have_run: bool,
    /// Its input.
    pub input: Arc<Value>,
    /// Outputs of earlier nodes that an expression of the flow reads.
    pub outputs: BTreeMap<NodeId, Arc<Value>>,
    /// The answer of its agent or of people; the run has only to remember it.
    pub given: Option<Value>,
    /// How long it has waited for the machine of its command.
    pub waited: Duration,
}

impl Run {
    /// Its access to files: it works for the person who started the task. A person whose file started it did not choose the flow, so it has not
    /// their home: its author would read there through them.
    pub(crate) fn access(&self) -> workspace::Access {
        let by = domain::Principal::Task { task: self.config.task, user: self.config.user };
        let access = workspace::Access::of(&by, None);
        if self.config.handoff.is_some() { access.without_home() } else { access }
    }
}

/// A report of an effect.
#[derive(Debug)]
pub enum TaskReport {
    /// A node is done.
    Done(Box<NodeResult>),
    /// A node is to ask its agent this.
    AgentReady(Box<AgentReady>),
    /// A node is to ask people this.
    Questions {
        /// The node.
        node: NodeId,
        /// The questions.
        questions: Vec<Question>,
        /// When no answer becomes a failure.
        expires_at: Option<Timestamp>,
    },
    /// The artifacts are stored.
    Archived {
        /// The number of files.
        files: u32,
    },
    /// A chat was told to stop.
    Told,
    /// The files and chats of a deleted task are gone.
    Cleared,
}

/// How the execution of a node ended.
#[derive(Debug, Default)]
pub struct NodeResult {
    /// The node.
    pub node: Option<NodeId>,
    /// Why it failed; none when it did not.
    pub error: Option<Error>,
    /// The status that it has where its failure is neither tried again nor taken by an edge; `Failure` when none.
    pub tolerated: Option<Status>,
    /// Whether it is the failure of a recorded task, which is not tried again.
    pub recorded: bool,
    /// Its output.
    pub output: Value,
    /// Whether only some of it succeeded.
    pub partial: bool,
    /// For a split over a list: how many elements the output has.
    pub elements: Option<u32>,
    /// The context it was given, where it was given one.
    pub context: Option<Box<AssembledContext>>,
    /// Denials by policies: the refused thing, and the rule.
    pub denied: Vec<(String, String)>,
    /// The tools it called.
    pub tools: Vec<ToolUse>,
    /// Steps of plans that its tools have changed, as events of the task.
    pub plan: Vec<TaskEvent>,
    /// Why its output was refused by its schema.
    pub rejected: Vec<String>,
    /// How long it took, in milliseconds.
    pub duration_ms: u64,
}

/// An agent node that is ready to ask.
#[derive(Debug)]
pub struct AgentReady {
    /// The node.
    pub node: NodeId,
    /// The chat that it makes.
    pub config: Box<domain::ChatConfig>,
    /// The text for the agent.
    pub prompt: String,
    /// The context it was given.
    pub context: Option<Box<AssembledContext>>,
    /// Denials by policies.
    pub denied: Vec<(String, String)>,
}

/// The actor of a task.
pub fn actor_id(workspace: WorkspaceId, task: TaskId) -> ActorId {
    ActorRef::Task { workspace, task }.into()
}

/// The chat that a node talks to.
pub fn chat_of(task: TaskId, node: &NodeId, retry: u32) -> ChatId {
    ChatId::from_key(&task.to_string(), &format!("{node}/{retry}"))
}

/// The key of a task's view.
pub(crate) fn view_key(workspace: WorkspaceId, task: TaskId) -> Key {
    Key::new(format!("{workspace}/tasks"), task.to_string())
}

/// The actor of the task of a view, by its key.
pub(crate) fn actor_of(view: &Key) -> Option<ActorId> {
    Some(actor_id(view.pk.strip_suffix("/tasks")?.parse().ok()?, view.sk.parse().ok()?))
}

/// The key of a view in the index: root tasks of a workspace, or children of a task, by when they were made.
pub(crate) fn view_index(config: &TaskConfig) -> Key {
    let under = match &config.origin {
        None => format!("{}/tasks", config.workspace),
        Some(origin) => format!("{}/children", origin.parent),
    };
    let order = match &config.origin {
        None => config.created_at.to_string(),
        Some(origin) => format!("{:010}", origin.index),
    };
    Key::new(under, format!("{order}/{}", config.task))
}

pub(crate) fn run_key(node: &NodeId, attempt: u32) -> EffectKey {
    EffectKey(format!("node/{node}/{attempt}"))
}

impl Machine for TaskMachine {
    const KIND: &'static str = ActorKind::Task.as_str();
    const VERSION: u32 = 10;
    type State = TaskState;
    type Command = TaskCommand;
    type Event = TaskEvent;
    type Effect = TaskEffect;
    type Report = TaskReport;

    fn apply(state: &mut TaskState, _number: u64, event: &TaskEvent) {
        state.apply(event);
    }

    fn handle(&self, step: &mut actor::Step<Self>, input: Input<Self>, stamp: &Stamp) {
        let (resumes, was_clearing) = (matches!(input, Input::Resume | Input::Halt(_)), step.state().is_clearing());
        let stores_anew = resumes && step.state().archiving && !self.has_flow(step.state());
        self.decide(step, input, stamp);
        if stores_anew {
            end::archive(step, stamp);
        }
        // The worker that cleared may be gone.
        if resumes || !was_clearing {
            delete::clear(step, stamp);
        }
    }

    fn tree(state: &TaskState, next: Option<&TaskCommand>) -> Option<ActorTree> {
        let config = match (&state.config, next) {
            (Some(config), _) => config,
            (None, Some(TaskCommand::Start { config })) => &**config,
            (None, _) => return None,
        };
        let root = actor_id(config.workspace, config.root());
        Some(ActorTree { root, members: config.above().iter().chain([&config.task]).map(|task| task.0).collect() })
    }

    fn in_flight(state: &TaskState) -> bool {
        state.is_running() || state.archiving || state.is_clearing()
    }

    fn asks_anew(state: &TaskState) -> bool {
        state.owes_a_request()
    }

    /// One with children may still hear of them, one after the other.
    fn is_over(state: &TaskState) -> bool {
        state.finished.is_some() && state.place.made == 0
    }

    fn waits(&self, effect: &TaskEffect) -> bool {
        match effect {
            TaskEffect::Run(run) => {
                let Some(flow) = self.flows.get(&run.config.flow) else { return false };
                flow.nodes.get(&run.node).is_some_and(|node| flow.runs_command(node) || flow.calls_server(node))
            }
            TaskEffect::Archive(_) | TaskEffect::Clear(_) => false,
            TaskEffect::StopAgent(..) | TaskEffect::KillCommand(..) => true,
        }
    }

    fn is_pure(&self, effect: &TaskEffect) -> bool {
        // A re-run reads the record that it follows.
        let TaskEffect::Run(run) = effect else { return false };
        let flow = self.flows.get(&run.config.flow).filter(|_| run.config.replay.is_none());
        flow.is_some_and(|flow| flow.nodes.get(&run.node).is_some_and(Node::is_pure))
    }

    fn ends(command: &TaskCommand) -> bool {
        matches!(command, TaskCommand::Delete)
    }

    fn gives_up(command: &TaskCommand) -> bool {
        matches!(command, TaskCommand::Stop { .. })
    }

    fn is_transient(_event: &TaskEvent) -> bool {
        false
    }

    /// The place that a root task holds among those of its flow, for as long as it runs or waits: given back by the entry that
    /// ends it, so that no death can keep it, and no worker gives it back twice.
    fn record(state: &TaskState, event: &TaskEvent) -> Option<View> {
        let key = match event {
            TaskEvent::Created { config } if config.origin.is_none() => admission_keys::start_key(config),
            TaskEvent::Finished { .. } => {
                admission_keys::place_key(state.config.as_ref().filter(|config| config.counted)?)
            }
            _ => return None,
        };
        Some(View { key, index: None, body: None })
    }

    fn view(state: &TaskState) -> Option<View> {
        let config = state.config.as_ref()?;
        let key = view_key(config.workspace, config.task);
        if state.deleted {
            return Some(View { key, index: None, body: None });
        }
        let body = Some(serde_json::to_string(&view(state, config)).ok()?);
        Some(View { key, index: Some(view_index(config)), body })
    }

    fn waiting(state: &TaskState) -> Option<Waiting> {
        waiting(state, state.config.as_ref().filter(|_| !state.deleted)?)
    }

    fn announce(state: &TaskState) -> Option<Announcement> {
        let config = state.config.as_ref()?;
        let event = match state.deleted {
            true => config.origin.is_none().then_some(WorkspaceEvent::TaskDeleted { task_id: config.task })?,
            false => view(state, config).event()?,
        };
        Announcement::of_workspace(config.workspace, event)
    }
}

impl TaskMachine {
    fn decide(&self, step: &mut actor::Step<Self>, input: Input<Self>, stamp: &Stamp) {
        let (state, sent_off) = (step.state(), replay::children(step.state()));
        match input {
            Input::Command { by, at, command, .. } => {
                self.command(step, &by, at, command, stamp);
                self.catch_up(step, sent_off, stamp);
            }
            Input::Report(report) => {
                self.report(step, report, stamp);
                self.catch_up(step, sent_off, stamp);
            }
            Input::Resume => self.with(step, stamp, |step| step.resume()),
            Input::Stop(request) => self.with(step, stamp, |step| step.stop(request.stop_id, &request.reason)),
            Input::Halt(request) => self.with(step, stamp, |step| step.halt(request.stop_id, &request.reason)),
            Input::Hold(request) => {
                let hold = HoldId(request.hold_id);
                let requested = TaskEvent::PauseRequested { before: Vec::new(), hold: Some(hold) };
                match state.inspector.heard.contains(&hold) {
                    true => {}
                    false if state.finished.is_some() => {}
                    false if state.config.is_none() => step.push(requested),
                    false => self.with(step, stamp, |step| step.push(requested)),
                }
            }
            Input::Park { reason, command } => {
                let parked = TaskEvent::Parked { reason, at: stamp.at };
                match (&state.config, command) {
                    // A task that needs a person's attention holds nothing that others need, and waits in no line: it would be granted what
                    // it cannot use. The pause needs no manifests: a process that begins after deaths has not read them.
                    (Some(config), _) => {
                        let (config, held) = (config.clone(), held_by(state));
                        step.push(parked);
                        give_back(held, step, &config, self.places);
                    }
                    // Its very beginning failed. People find it in the lists, and the one above it can end it.
                    (None, Some(TaskCommand::Start { config })) if !state.deleted => {
                        step.push(TaskEvent::Created { config });
                        step.push(parked);
                    }
                    (None, _) => step.push(parked),
                }
            }
            Input::Unpark { drop } => {
                let why = state.parked.clone();
                step.push(TaskEvent::Unparked { at: stamp.at });
                match drop {
                    true => self.with(step, stamp, |step| step.give_up(why)),
                    false => wake_to_ask_anew(step),
                }
            }
        }
    }

    fn command(
        &self,
        step: &mut actor::Step<Self>,
        by: &Principal,
        at: Timestamp,
        command: TaskCommand,
        stamp: &Stamp,
    ) {
        match command {
            TaskCommand::Start { config } => self.start(step, config, at, stamp),
            TaskCommand::Arrived { .. } | TaskCommand::ChildEnded { .. } => self.receive(step, command, stamp),
            TaskCommand::SpawnMore { node } => self.with(step, stamp, |step| step.spawn_more(&node)),
            TaskCommand::AgentAnswered { answer } if step.state().finished.is_some() => {
                budget::agent_ended(step, *answer);
            }
            TaskCommand::AgentAnswered { answer } => self.with(step, stamp, |step| step.agent_answered(*answer)),
            TaskCommand::AgentWaits { chat, round, asked, cut, declined } => {
                self.with(step, stamp, |step| step.agent_waits((chat, round), asked, cut, declined));
            }
            TaskCommand::Answer { node, answers } => {
                self.with(step, stamp, |step| step.answered(&node, answers, &by.to_string()));
            }
            TaskCommand::Wake { node, attempt, request } => {
                self.with(step, stamp, |step| step.wake(&node, attempt, request));
            }
            TaskCommand::BeginCommand { node, attempt, request } => {
                self.with(step, stamp, |step| step.begin_command(&node, attempt, request));
            }
            TaskCommand::RefuseCommand { node, attempt, request } => {
                self.with(step, stamp, |step| step.refuse_command(&node, attempt, request));
            }
            TaskCommand::Expire { question_id } => self.with(step, stamp, |step| step.expired(question_id)),
            TaskCommand::Stop { stop_id, reason } => self.with(step, stamp, |step| step.stop(stop_id, &reason)),
            TaskCommand::Pause { before, hold } => self.with(step, stamp, |step| step.pause(before, hold)),
            TaskCommand::Step => self.with(step, stamp, |step| step.go_on(true)),
            TaskCommand::Resume => self.with(step, stamp, |step| step.go_on(false)),
            TaskCommand::Prioritize { priority } => self.with(step, stamp, |step| step.prioritize(priority)),
            TaskCommand::Budget { told } if step.state().finished.is_some() => budget::told_late(step, *told),
            TaskCommand::Budget { told } => self.with(step, stamp, |step| step.budget_told(*told)),
            TaskCommand::Label { changes } => labels::change(step, changes),
            TaskCommand::Delete => self.delete(step, stamp),
        }
    }

    fn start(&self, step: &mut actor::Step<Self>, config: Box<TaskConfig>, at: Timestamp, stamp: &Stamp) {
        let state = step.state();
        if state.deleted && state.config.is_none() && config.origin.is_none() {
            // Deleted before it began: its end gives back what its making took, and its first message is not sent again.
            step.push(TaskEvent::Created { config: config.clone() });
            return end::without_a_flow(step, &config, stopped(delete::DELETED), stamp);
        }
        if state.deleted || state.config.as_ref().is_some_and(|_| !state.is_unbegun()) {
            return;
        }
        if state.config.is_none() {
            step.push(TaskEvent::Created { config });
        }
        // It needs no manifests: those may be what is wrong.
        let refused = step.state().config.clone().and_then(|config| Some((config.refused.as_deref()?.clone(), config)));
        if let Some((why, config)) = refused {
            return end::without_a_flow(step, &config, why, stamp);
        }
        let queue_ms = stamp.at.since(at).as_millis() as u64;
        self.with(step, stamp, |step| {
            let route = step.router().begin();
            step.carry_out(route, queue_ms);
        });
    }

    fn report(&self, step: &mut actor::Step<Self>, report: TaskReport, stamp: &Stamp) {
        match report {
            TaskReport::Cleared => return step.push(TaskEvent::Cleared),
            // It needs no manifests, as the end without them does not.
            TaskReport::Archived { files } => return step.push(TaskEvent::Archived { files }),
            _ => {}
        }
        self.with(step, stamp, |step| match report {
            TaskReport::Done(done) => step.done(*done),
            TaskReport::AgentReady(ready) => step.ask_agent(*ready),
            TaskReport::Questions { node, questions, expires_at } => step.ask_people(&node, questions, expires_at),
            TaskReport::Archived { .. } | TaskReport::Told | TaskReport::Cleared => {}
        });
    }

    fn has_flow(&self, state: &TaskState) -> bool {
        state.config.as_ref().is_some_and(|config| self.flows.get(&config.flow).is_some())
    }

    /// Acts on a state that has a task and a flow; nothing happens to one that has none.
    fn with(&self, step: &mut actor::Step<Self>, stamp: &Stamp, act: impl FnOnce(&mut Step<'_>)) {
        let state = step.state();
        let Some(config) = state.config.clone().filter(|_| state.finished.is_none() || state.archiving) else { return };
        let (held, record, was_settled) = (held_by(state), self.follows(state), budget::is_settled(state));
        match self.flows.get(&config.flow) {
            Some(flow) => {
                act(&mut Step { step, config: &config, flow: &flow, stamp, record, places: self.places });
            }
            // Its artifacts are being stored.
            None if step.state().finished.is_some() => {}
            None => {
                let error = Error::new(Code::Internal, "the manifests that this task began with are gone");
                end::without_a_flow(step, &config, error, stamp);
            }
        }
        give_back(held.without(&held_by(step.state())), step, &config, self.places);
        budget::close(was_settled, step, &config);
    }
}

impl Step<'_> {
    pub(crate) fn router(&self) -> Router<'_> {
        let (place, follows) = (&self.state().place, self.record.as_deref());
        Router { graph: &self.flow.graph, config: self.config, place, now: self.stamp.at, follows }
    }
}
