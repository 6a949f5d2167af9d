//! The state of a task: the fold of its events.

use super::{
    end::{StoppedAgent, TaskEnd},
    execution::{Execution, Mode, NodeAnswer},
    spending::Spending,
};
use domain::{
    Error, HoldId, NodeId, Status, StopId, TaskCommand, TaskConfig, TaskEvent, Timestamp, Usage,
    task::{BudgetFact, Wait},
};
use flow::router::{Position, RouteState};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::{collections::BTreeMap, sync::Arc};

/// A task.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct TaskState {
    /// How it is set up; none before its first command.
    pub config: Option<Arc<TaskConfig>>,
    /// Its position in the graph.
    pub place: RouteState,
    /// The node that executes or waits for an answer.
    pub execution: Option<Execution>,
    /// Outputs of earlier nodes that an expression of the flow reads.
    pub outputs: BTreeMap<NodeId, Arc<Value>>,
    /// Answers of people to questions that are not asked yet, with their authors.
    pub early: BTreeMap<NodeId, (Map<String, Value>, String)>,
    /// Breakpoints and pauses.
    pub inspector: Inspector,
    /// For a re-run, messages that came before their turn.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub held: Vec<TaskCommand>,
    /// Whether a re-run could not go on as the recorded task did.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub diverged: bool,
    /// A stop that waits for a running tool.
    pub stopping: Option<(StopId, String)>,
    /// How it ended.
    pub finished: Option<TaskEnd>,
    /// The agent that was at work when the last node ended, until it has told its usage: that of a task that was stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped_agent: Option<StoppedAgent>,
    /// Whether its deletion was requested.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub deleted: bool,
    /// Whether its files and chats are gone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cleared: bool,
    /// Whether its artifacts are still to be stored.
    pub archiving: bool,
    /// Whether something happened that artifacts are kept of.
    pub has_artifacts: bool,
    /// Nodes executed.
    pub steps: u64,
    /// Their usage.
    pub usage: Usage,
    /// The use of its budget by the tasks below it.
    #[serde(default, skip_serializing_if = "Spending::is_none")]
    pub spending: Spending,
    /// Why it is parked.
    pub parked: Option<String>,
}

/// The inspector's settings of a task (spec 002 §10.7).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Inspector {
    /// Pause before the next node.
    pub next: bool,
    /// Pause before these nodes.
    pub before: Vec<NodeId>,
    /// The node that it is paused before.
    pub paused_at: Option<NodeId>,
    /// The node that a step lets go on, also where it waits for slots or for another try.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passes: Option<NodeId>,
    /// The requests to hold its tree that it has followed, the newest last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub heard: Vec<HoldId>,
}

/// How many requests to hold its tree a task remembers: a request is there until a command lets the tree go on.
const HEARD: usize = 32;

impl Inspector {
    /// Whether the task is paused, or will be before its next node.
    pub fn holds(&self) -> bool {
        self.next || self.paused_at.is_some()
    }

    /// Whether a node that waited does not begin now.
    pub fn holds_back(&self, node: &NodeId) -> bool {
        self.next && self.passes.as_ref() != Some(node)
    }
}

impl TaskState {
    /// Whether it waits for its children, and it and they were told to pause.
    pub fn is_held(&self) -> bool {
        self.finished.is_none() && self.inspector.next && self.place.position == Position::Waiting
    }

    /// Whether nothing of it has begun: its beginning failed, and a person may have it tried again.
    pub fn is_unbegun(&self) -> bool {
        self.finished.is_none() && self.steps == 0 && self.execution.is_none() && self.inspector.paused_at.is_none()
    }

    /// The end of the node that is in flight when the task ends with this error; none where no node was started.
    pub(super) fn end_of_node(&self, error: &Error, at: Timestamp) -> Option<TaskEvent> {
        let execution = self.execution.as_ref().filter(|execution| execution.started > 0)?;
        Some(TaskEvent::NodeFinished {
            node: execution.node.clone(),
            attempt: execution.started,
            status: Status::Failure,
            output: Value::Null,
            error: Some(error.clone()),
            metrics: execution.metrics(at),
            at,
        })
    }

    /// The execution of this node, if it is the one that is executed.
    pub(super) fn executing(&self, node: &NodeId) -> Option<&Execution> {
        self.execution.as_ref().filter(|execution| execution.node == *node)
    }

    /// Whether a worker runs a node.
    pub fn is_running(&self) -> bool {
        self.finished.is_none()
            && self.execution.as_ref().is_some_and(|execution| matches!(execution.mode, Mode::Running))
    }

    /// Whether it was deleted and has ended, and its files and chats are still there.
    pub fn is_clearing(&self) -> bool {
        self.deleted && self.finished.is_some() && !self.archiving && !self.cleared
    }

    /// Folds one event.
    pub fn apply(&mut self, event: &TaskEvent) {
        self.place.apply(event);
        match event {
            TaskEvent::Created { config } => {
                self.inspector.next |= config.stepping;
                self.inspector.before.clone_from(&config.breakpoints);
                self.config = Some(Arc::new((**config).clone()));
            }
            TaskEvent::NodeStarted { node, attempt, retry, queue_ms, at } => {
                self.node_started(node, *attempt, retry.as_ref().map(|retry| retry.number), *queue_ms, *at);
            }
            TaskEvent::ContextAssembled { context, .. } => {
                if let Some(execution) = &mut self.execution {
                    execution.context_tokens = context.tokens;
                }
            }
            TaskEvent::AgentAsked { chat, round, .. } => {
                self.has_artifacts = true;
                if let Some(execution) = &mut self.execution {
                    execution.mode = Mode::Agent { chat: *chat, round: *round };
                    (execution.given, execution.agent_waits) = (None, false);
                }
            }
            TaskEvent::AgentReplied { answer, .. } => {
                self.usage += answer.usage;
                if let Some(execution) = &mut self.execution {
                    execution.usage += answer.usage;
                    execution.tool_calls += answer.tools.len() as u32;
                    execution.agent_waits = false;
                    (execution.mode, execution.given) = (Mode::Running, Some(NodeAnswer::Text(answer.text.clone())));
                }
            }
            TaskEvent::AgentWaits { asked, .. } => {
                if let Some(execution) = &mut self.execution {
                    execution.agent_waits = asked.is_some();
                }
            }
            TaskEvent::ToolUsed { .. } => {
                self.has_artifacts = true;
                if let Some(execution) = &mut self.execution {
                    execution.tool_calls += 1;
                }
            }
            TaskEvent::Asked { question_id, questions, expires_at, .. } => {
                if let Some(execution) = &mut self.execution {
                    let (question_id, questions, expires_at) = (*question_id, questions.clone(), *expires_at);
                    execution.mode = Mode::Asking { question_id, questions, expires_at };
                }
            }
            TaskEvent::Waiting { node, attempt, wait, at } => self.waiting(node, *attempt, wait, *at),
            TaskEvent::HeldBack { command } => self.held.push((**command).clone()),
            TaskEvent::Diverged { .. } => self.diverged = true,
            TaskEvent::Answered { node, answers, by, .. } => {
                let asks = |execution: &&mut Execution| {
                    execution.node == *node && matches!(execution.mode, Mode::Asking { .. })
                };
                match self.execution.as_mut().filter(asks) {
                    Some(execution) => {
                        (execution.mode, execution.given) = (Mode::Running, Some(NodeAnswer::Answers(answers.clone())));
                    }
                    None => drop(self.early.insert(node.clone(), (answers.clone(), by.clone()))),
                }
            }
            TaskEvent::NodeFinished { node, status, output, .. } => {
                self.inspector.passes = None;
                self.stopped_agent = StoppedAgent::of(self.execution.take());
                self.steps += 1;
                self.early.remove(node);
                if *status != Status::Failure && self.config.as_ref().is_some_and(|config| config.keep_outputs) {
                    self.outputs.insert(node.clone(), Arc::new(output.clone()));
                }
            }
            TaskEvent::PauseRequested { before, hold } => {
                if before.is_empty() {
                    self.inspector.next |= self.inspector.paused_at.is_none();
                    self.inspector.passes = None;
                }
                self.inspector.before.extend(before.iter().cloned());
                self.inspector.heard.extend(hold);
                let over = self.inspector.heard.len().saturating_sub(HEARD);
                self.inspector.heard.drain(..over);
            }
            TaskEvent::PausedBefore { node, .. } => {
                self.inspector.next = false;
                self.inspector.paused_at = Some(node.clone());
                if let Some(execution) = &mut self.execution {
                    (execution.slots, execution.place, execution.gave_back) = (None, None, false);
                }
            }
            TaskEvent::Continued { step, .. } => {
                self.inspector.next = *step;
                let node = self.inspector.paused_at.take();
                self.inspector.passes = node.filter(|_| *step);
            }
            TaskEvent::Prioritized { priority } => {
                if let Some(config) = &mut self.config {
                    Arc::make_mut(config).priority = *priority;
                }
            }
            TaskEvent::Labelled { labels } => {
                if let Some(config) = &mut self.config {
                    Arc::make_mut(config).labels = labels.clone();
                }
            }
            TaskEvent::Budget { fact } => {
                match (&**fact, &mut self.config) {
                    (BudgetFact::Granted { more }, Some(config)) => {
                        let config = Arc::make_mut(config);
                        config.budget = config.budget.with(*more);
                    }
                    (BudgetFact::AgentEnded { used, .. }, _) => {
                        self.usage += *used;
                        self.stopped_agent = None;
                    }
                    _ => {}
                }
                self.spending.apply(fact);
            }
            TaskEvent::Deleted { .. } => self.deleted = true,
            TaskEvent::Cleared => self.cleared = true,
            TaskEvent::StopRequested { stop_id, reason } => self.stopping = Some((*stop_id, reason.clone())),
            TaskEvent::Finished { error, at, .. } => {
                (self.finished, self.execution) = (Some(TaskEnd { error: error.clone(), at: *at }), None);
                self.inspector.paused_at = None;
                self.archiving = self.has_artifacts || self.config.as_ref().is_some_and(|config| config.keep_artifacts);
                self.outputs.clear();
                self.held.clear();
            }
            TaskEvent::Archived { .. } => self.archiving = false,
            TaskEvent::Parked { reason, .. } => {
                self.parked = Some(reason.clone());
                match &mut self.execution {
                    Some(execution) if execution.mode == Mode::Running => {
                        // The runtime drops what runs: it may have taken effect, as after a death.
                        (execution.slots, execution.place) = (None, None);
                        execution.crashes += 1;
                    }
                    Some(execution) => execution.gave_back = execution.slots.is_some() || execution.place.is_some(),
                    None => {}
                }
            }
            TaskEvent::Unparked { .. } => self.parked = None,
            // A message that was held back for its turn has been taken in.
            TaskEvent::ChildArrived { arrival } => {
                self.held.retain(|held| !matches!(held, TaskCommand::Arrived { arrival: kept } if kept == arrival));
            }
            TaskEvent::ChildFinished { child, .. } => {
                self.held.retain(|held| !matches!(held, TaskCommand::ChildEnded { child: kept, .. } if kept == child));
            }
            TaskEvent::OutputRejected { .. } => {
                if let Some(execution) = &mut self.execution {
                    execution.rejected += 1;
                }
            }
            TaskEvent::Denied { .. }
            | TaskEvent::Caught { .. }
            | TaskEvent::StatusSet { .. }
            | TaskEvent::Routed { .. }
            | TaskEvent::Forked { .. }
            | TaskEvent::Spawned { .. }
            | TaskEvent::Merged { .. }
            | TaskEvent::WentUp { .. }
            | TaskEvent::PlanStep { .. } => {}
        }
    }

    fn node_started(&mut self, node: &NodeId, attempt: u32, retry: Option<u32>, queue_ms: u64, at: Timestamp) {
        self.inspector.paused_at = None;
        match self.execution.as_mut().filter(|execution| execution.node == *node) {
            Some(execution) => {
                let before = std::mem::replace(&mut execution.mode, Mode::Running);
                let (waited, first) = (before != Mode::Running, execution.started == 0);
                (execution.attempt, execution.started, execution.gave_back) = (attempt, attempt, false);
                match retry {
                    Some(retries) => {
                        (execution.retries, execution.crashes, execution.given) = (retries, 0, None);
                        (execution.rejected, execution.unready_since) = (0, None);
                    }
                    None if waited => {}
                    None => execution.crashes += 1,
                }
                // A node that was only told to come again has not begun before, unless an earlier try of it has.
                if waited && (first || execution.unready_since.is_some()) {
                    execution.queue_ms = queue_ms;
                    if execution.retries == 0 {
                        execution.started_at = at;
                    }
                }
                if before.is_in_line() {
                    // It was paused since: the machine has its whole time once more.
                    execution.unready_since = execution.unready_since.map(|_| at);
                }
            }
            None => {
                let new = Execution::new(node, attempt, Mode::Running, at);
                self.execution = Some(Execution { queue_ms, started: attempt, ..new });
            }
        }
    }

    fn waiting(&mut self, node: &NodeId, attempt: u32, wait: &Wait, at: Timestamp) {
        self.inspector.paused_at = None;
        let mode = Mode::Waiting { wait: wait.clone() };
        if self.executing(node).is_none() {
            self.execution = Some(Execution::new(node, attempt, mode.clone(), at));
        }
        let Some(execution) = &mut self.execution else { return };
        execution.mode = mode;
        (execution.waiting_since, execution.gave_back) = (Some(at), false);
        match wait {
            Wait::Budget { .. } => execution.given = None,
            Wait::Backoff { .. } => (execution.slots, execution.place, execution.unready_since) = (None, None, None),
            Wait::Slots { holder, .. } => {
                // Slots come before the place: a node that asks for them has no place.
                (execution.attempt, execution.slots, execution.place) = (attempt, Some(holder.clone()), None);
            }
            Wait::Place { holder, until, .. } => {
                (execution.attempt, execution.place) = (attempt, Some(holder.clone()));
                execution.unready_since = execution.unready_since.or(until.map(|_| at));
            }
        }
        execution.requests += u32::from(execution.mode.is_in_line());
    }
}
