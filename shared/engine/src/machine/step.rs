//! One step of a task: carrying out the router's decision, and ending a node.

use crate::{
    call::call_of,
    machine::{Mode, NodeAnswer, NodeResult, Run, TaskEffect, TaskMachine, TaskState, actor_id, run_key},
};
use actor::{ActorId, EffectKey, OutboxMessage};
use domain::{
    Code, Error, NodeId, Stamp, Status, StopId, TaskCommand, TaskConfig, TaskEvent, TaskId,
    task::{ChildName, Retry, ToolUse, Wait, stopped},
};
use flow::{
    Flow,
    failure::Verdict,
    flow::{Node, Op},
    router::{Next, NodeOutcome, Record, Route, TaskMessage, selected},
};
use serde_json::Value;
use slots::Places;
use std::{sync::Arc, time::Duration};

/// Why a task ends whose parent goes on without it.
pub(super) const NOT_NEEDED: &str = "not needed any more";

/// A step of a task that has a flow: each of its questions is asked of the state, which has all that the step has decided.
pub(crate) struct Step<'a> {
    pub(super) step: &'a mut actor::Step<TaskMachine>,
    /// The setup of the task, with the priority that it had before.
    pub config: &'a Arc<TaskConfig>,
    pub flow: &'a Arc<Flow>,
    pub stamp: &'a Stamp,
    /// The record that a re-run follows.
    pub record: Option<Arc<Record>>,
    /// The places of the machine that commands run on.
    pub places: Option<Places>,
}

/// A node that is to begin.
pub(crate) struct NodeStart {
    pub node: NodeId,
    pub input: Arc<Value>,
    /// Counts from 1, crashes and retries together.
    pub attempt: u32,
    /// Why it begins anew, where it does so by decision.
    pub retry: Option<Retry>,
    /// How long the task waited for it.
    pub queue_ms: u64,
}

impl NodeStart {
    /// For the first time.
    pub fn first(node: NodeId, input: Arc<Value>, queue_ms: u64) -> Self {
        Self { node, input, attempt: 1, retry: None, queue_ms }
    }
}

impl<'a> Step<'a> {
    pub fn state(&self) -> &TaskState {
        self.step.state()
    }

    pub fn push(&mut self, event: TaskEvent) {
        self.step.push(event);
    }

    pub fn tell(&mut self, task: TaskId, command: &TaskCommand) {
        self.send(actor_id(self.config.workspace, task), command, None);
    }

    /// The actor of the task itself.
    pub fn own_id(&self) -> ActorId {
        actor_id(self.config.workspace, self.config.task)
    }

    pub fn send(&mut self, to: ActorId, command: &impl serde::Serialize, deliver_at: Option<domain::Timestamp>) {
        if let Ok(command) = serde_json::to_value(command) {
            let priority = self.config.priority;
            self.step.send(OutboxMessage { to, command, deliver_at, priority });
        }
    }

    /// Sends a command that overtakes other messages, as far as the queue lets it.
    pub fn hurry(&mut self, to: ActorId, command: &impl serde::Serialize) {
        if let Ok(command) = serde_json::to_value(command) {
            self.step.send(OutboxMessage::now(to, command, ports::URGENT));
        }
    }

    pub fn node(&self, id: &NodeId) -> Option<&'a Node> {
        self.flow.nodes.get(id)
    }

    /// Carries out the router's decision.
    pub fn carry_out(&mut self, route: Route, queue_ms: u64) {
        let Route { events, posts, next, .. } = self.as_recorded(route);
        events.into_iter().for_each(|event| self.push(event));
        for post in posts {
            match post {
                TaskMessage::Arrived(task, arrival) => {
                    self.tell(task, &TaskCommand::Arrived { arrival: Box::new(arrival) })
                }
                TaskMessage::Ended(task, child, end) => {
                    self.tell(task, &TaskCommand::ChildEnded { child, end: Box::new(end) })
                }
                TaskMessage::Cancel(child) => self.cancel(&child),
            }
        }
        match next {
            Next::Same => {}
            Next::Execute(node, input) => self.execute(&node, input, queue_ms),
            Next::Spawn(node) => self.spawn(&node),
            Next::End => self.archive(),
        }
    }

    fn cancel(&mut self, child: &ChildName) {
        let task = self.config.task.child(child);
        let stop_id = StopId::from_key(&self.config.task.to_string(), child.as_str());
        let stop = TaskCommand::Stop { stop_id, reason: NOT_NEEDED.into() };
        self.hurry(actor_id(self.config.workspace, task), &stop);
    }

    /// Begins a node, unless the inspector wants to look first.
    fn execute(&mut self, node: &NodeId, input: Arc<Value>, queue_ms: u64) {
        let inspector = &self.state().inspector;
        if inspector.next || inspector.before.contains(node) {
            return self.push(TaskEvent::PausedBefore { node: node.clone(), at: self.stamp.at });
        }
        self.begin_node(NodeStart::first(node.clone(), input, queue_ms));
    }

    /// Begins a node as soon as it has its slots; one that is tried again at once has them still.
    pub fn begin_node(&mut self, begins: NodeStart) {
        let wants = self.slots_of(&begins.node);
        let has_them = self.state().executing(&begins.node).is_some_and(|execution| execution.slots.is_some());
        if wants.is_empty() || has_them { self.begin_with_slots(begins) } else { self.wait_for_slots(begins, wants) }
    }

    /// Begins a node that has its slots; one that is a command once it has a place on its machine, too.
    fn begin_with_slots(&mut self, begins: NodeStart) {
        match self.places.filter(|_| self.needs_place(&begins.node)) {
            None => self.start_node(begins),
            Some(places) => self.wait_for_place(places, begins),
        }
    }

    pub(super) fn start_node(&mut self, begins: NodeStart) {
        let NodeStart { node, input, attempt, retry, queue_ms } = begins;
        let number = retry.as_ref().map_or_else(|| self.retries_of(&node), |retry| retry.number);
        let given = if retry.is_none() { self.given(&node) } else { None };
        let may_have_run = retry.is_none() && attempt > 1 && self.has_lost_a_worker(&node);
        self.push(TaskEvent::NodeStarted { node: node.clone(), attempt, retry, queue_ms, at: self.stamp.at });
        let run = Run { may_have_run, ..self.run_of(&node, attempt, number, input, given) };
        self.step.run(run_key(&node, attempt), TaskEffect::Run(Box::new(run)));
    }

    fn run_of(&self, node: &NodeId, attempt: u32, retry: u32, input: Arc<Value>, given: Option<Value>) -> Run {
        let outputs = self.state().outputs.clone();
        let unready_since = self.state().execution.as_ref().and_then(|execution| execution.unready_since);
        let waited = unready_since.map_or(Duration::ZERO, |since| self.stamp.at.since(since));
        let (config, node) = (self.config.clone(), node.clone());
        Run { config, node, attempt, retry, may_have_run: false, input, outputs, given, waited }
    }

    /// Whether a node that begins another time was lost with a worker. One that only waited, such as for its machine, has not begun before.
    fn has_lost_a_worker(&self, node: &NodeId) -> bool {
        let execution = self.state().executing(node);
        execution.is_some_and(|execution| execution.mode == Mode::Running || execution.crashes > 0)
    }

    /// The answer to the executing node, as its output.
    fn given(&self, node: &NodeId) -> Option<Value> {
        Some(match self.state().executing(node)?.given.as_ref()? {
            NodeAnswer::Text(text) => self.read_answer(node, text).0,
            NodeAnswer::Answers(answers) => self.output_of(node, answers),
        })
    }

    /// Ends the executing node with the given output; first the output is split and remembered, if the node says so.
    pub fn end_with(&mut self, node: NodeId, output: Value) {
        let repeats = self.config.repeats();
        let has_more =
            self.node(&node).is_some_and(|node| node.splits_a_list() || (node.remember.is_some() && !repeats));
        let execution = self.state().execution.as_ref().filter(|_| has_more && self.state().stopping.is_none());
        let Some(execution) = execution else {
            return self.done(NodeResult { node: Some(node), output, ..NodeResult::default() });
        };
        let (attempt, retries, input) = (execution.attempt, execution.retries, self.state().place.current.clone());
        let run = self.run_of(&node, attempt, retries, input, Some(output));
        let key = EffectKey(format!("remember/{node}/{attempt}"));
        self.step.run(key, TaskEffect::Run(Box::new(run)));
    }

    fn retries_of(&self, node: &NodeId) -> u32 {
        self.state().executing(node).map_or(0, |execution| execution.retries)
    }

    /// The worker that ran this is gone: the same again, as a new attempt under the same idempotency key.
    pub fn resume(&mut self) {
        if self.state().finished.is_some() {
            return self.archive();
        }
        if self.state().owes_a_request() {
            return self.ask_anew();
        }
        let Some(execution) = self.state().execution.as_ref().filter(|execution| execution.mode == Mode::Running)
        else {
            return;
        };
        if let Some((_, reason)) = &self.state().stopping {
            // It waited for the end of the node, which now never comes.
            let error = stopped(reason);
            self.kill_command("resume");
            return self.end_here(error);
        }
        let input = self.state().place.current.clone();
        let begins = NodeStart::first(execution.node.clone(), input, 0);
        self.begin_node(NodeStart { attempt: execution.attempt + 1, ..begins });
    }

    /// A node is done.
    pub fn done(&mut self, done: NodeResult) {
        let Some(execution) = done.node.as_ref().and_then(|node| self.state().executing(node)) else { return };
        let (node, queue_ms) = (execution.node.clone(), execution.queue_ms);
        let NodeResult {
            error,
            tolerated,
            recorded,
            mut output,
            partial,
            elements,
            context,
            denied,
            tools,
            plan,
            rejected,
            ..
        } = done;
        let unready = error.as_ref().filter(|_| self.state().stopping.is_none());
        if let Some((error, after)) = unready.and_then(|error| Some((error.clone(), tools::retry_after(error)?))) {
            return self.come_again(error, after);
        }
        if let Some(context) = context {
            self.push(TaskEvent::ContextAssembled { node: node.clone(), context });
        }
        self.denied(&node, denied);
        for used in tools {
            let used = ToolUse { queue_ms, ..used };
            self.push(TaskEvent::ToolUsed { node: node.clone(), used: Box::new(used) });
        }
        plan.into_iter().for_each(|event| self.push(event));
        if !rejected.is_empty() {
            self.push(TaskEvent::OutputRejected { node: node.clone(), round: 1, errors: rejected });
        }
        let mut error = error.or_else(|| self.selects_no_edge(&node, &output));
        let verdict = error.as_ref().map_or(Verdict::Stands, |error| self.verdict(error, recorded));
        if let (Verdict::Retry(after), Some(error)) = (&verdict, &error) {
            return self.back_off(*after, error.clone());
        }
        let mut status = match (&error, partial) {
            (Some(_), _) => Status::Failure,
            (None, true) => Status::Partial,
            (None, false) => Status::Success,
        };
        if let Some(tolerated) = tolerated.filter(|_| verdict == Verdict::Stands) {
            (status, error) = (tolerated, error.filter(|_| tolerated == Status::Failure));
        }
        if let Some((_, reason)) = &self.state().stopping
            && status != Status::Success
            && self.runs_command(&node)
        {
            // The stop ended it: it has no output that a re-run could go on with.
            (status, output, error) = (Status::Failure, Value::Null, Some(stopped(reason)));
        }
        let Some(execution) = &self.state().execution else { return };
        let (attempt, at) = (execution.attempt, self.stamp.at);
        let metrics = execution.metrics(at);
        let route = match (&self.state().stopping, &error) {
            (Some((_, reason)), _) => self.router().stop(stopped(reason)),
            (None, Some(error)) if self.was_stopped_then(error) => self.router().stop(error.clone()),
            (None, _) => {
                let caught = match &verdict {
                    Verdict::Route(to) => Some(to),
                    Verdict::Retry(_) | Verdict::Stands => None,
                };
                let outcome = NodeOutcome { status, output: &output, error: error.as_ref(), elements, caught };
                self.router().finished(&node, &outcome)
            }
        };
        self.push(TaskEvent::NodeFinished { node, attempt, status, output, error, metrics, at });
        self.carry_out(route, 0);
    }

    /// The failure of a decision whose output selects no edge.
    fn selects_no_edge(&self, node: &NodeId, output: &Value) -> Option<Error> {
        let decision = self.flow.graph.node(node).filter(|node| node.role == flow::graph::Role::Decision)?;
        if selected(decision, output).is_some() {
            return None;
        }
        let choices = decision.choices();
        Some(
            Error::new(Code::Unprocessable, format!("the decision {node} selected no edge that exists"))
                .hint(format!("its output has to be {{\"selected_edge\": name}} with one of: {choices}")),
        )
    }

    /// Decides on a failure of the node that executes.
    fn verdict(&self, error: &Error, recorded: bool) -> Verdict {
        let execution = self.state().execution.as_ref().filter(|_| self.state().stopping.is_none());
        let Some((execution, node)) = execution.and_then(|execution| Some((execution, self.node(&execution.node)?)))
        else {
            return Verdict::Stands;
        };
        if recorded {
            return node.failures.route(error);
        }
        let elapsed = self.stamp.at.since(execution.started_at);
        node.failures.decide(error, execution.retries, elapsed, chance(self.stamp))
    }

    /// The node that executes is tried again then. Until then it is rows, and a message that is under way.
    fn back_off(&mut self, after: Duration, error: Error) {
        let Some(execution) = &self.state().execution else { return };
        let (node, attempt) = (execution.node.clone(), execution.attempt);
        let retry = Retry { number: execution.retries + 1, error };
        let is_held_back = self.state().inspector.holds_back(&node);
        if after.is_zero() && !is_held_back {
            let input = self.state().place.current.clone();
            let begins = NodeStart::first(node, input, 0);
            return self.begin_node(NodeStart { attempt: attempt + 1, retry: Some(retry), ..begins });
        }
        let (at, until) = (self.stamp.at, self.stamp.at + after);
        self.push(TaskEvent::Waiting { node: node.clone(), attempt, wait: Wait::Backoff { until, retry }, at });
        if after.is_zero() {
            // The task was told to pause while the node ran.
            return self.push(TaskEvent::PausedBefore { node, at });
        }
        self.send(self.own_id(), &TaskCommand::Wake { node, attempt, request: None }, Some(until));
    }

    /// The time of a node that waits has come, or its slots are there. A message that comes twice, or after a stop, has no
    /// effect.
    pub fn wake(&mut self, node: &NodeId, attempt: u32, request: Option<u32>) {
        let Some((wait @ (Wait::Backoff { .. } | Wait::Slots { .. }), waited_ms)) =
            self.answered_wait(node, attempt, request)
        else {
            return;
        };
        // After the clock was set back, the date may be days ahead, and the queue brings the message when its delay is over.
        let since = self.state().execution.as_ref().and_then(|execution| execution.waiting_since);
        let is_set_back = since.is_some_and(|since| self.stamp.at < since);
        if let Wait::Backoff { until, .. } = wait
            && self.stamp.at < until
            && !is_set_back
        {
            // A grant of slots that came twice. The clock of the queue may also be ahead, so its message comes again.
            let again = TaskCommand::Wake { node: node.clone(), attempt, request: None };
            return self.send(self.own_id(), &again, Some(until));
        }
        if self.is_held_back(node) {
            return;
        }
        let begins = NodeStart::first(node.clone(), self.state().place.current.clone(), 0);
        match wait {
            Wait::Backoff { retry, .. } => {
                self.begin_node(NodeStart { attempt: attempt + 1, retry: Some(retry), ..begins });
            }
            Wait::Budget { .. } => {}
            Wait::Slots { retry, queue_ms, .. } | Wait::Place { retry, queue_ms, .. } => {
                let queue_ms = queue_ms + waited_ms;
                self.begin_with_slots(NodeStart { attempt, retry, queue_ms, ..begins });
            }
        }
    }

    /// The wait that a message to this node answers, and its milliseconds so far; none where the task is paused before the node. The answer to
    /// an earlier request is for no node. A node that has given back what it waits for asks anew instead, since the message came after the pause.
    pub(super) fn answered_wait(&mut self, node: &NodeId, attempt: u32, request: Option<u32>) -> Option<(Wait, u64)> {
        let execution = self.state().execution.as_ref().filter(|_| self.state().inspector.paused_at.is_none())?;
        let is_answer = request.is_none_or(|request| request == execution.requests);
        let Mode::Waiting { wait } = &execution.mode else { return None };
        if execution.node != *node || execution.attempt != attempt || !is_answer {
            return None;
        }
        if execution.gave_back {
            self.ask_anew();
            return None;
        }
        Some((wait.clone(), execution.waited_ms(self.stamp.at)))
    }

    pub fn denied(&mut self, node: &NodeId, denied: Vec<(String, String)>) {
        for (what, rule) in denied {
            self.push(TaskEvent::Denied { node: node.clone(), what, rule });
        }
    }

    /// Ends the node that executes with a failure.
    pub fn fail(&mut self, error: Error) {
        let node = self.state().execution.as_ref().map(|execution| execution.node.clone());
        self.done(NodeResult { node, error: Some(error), ..NodeResult::default() });
    }

    /// Has the artifacts of a task that has ended stored.
    fn archive(&mut self) {
        super::end::archive(self.step, self.stamp);
    }

    /// Takes in a request to end the task. A node that a worker runs ends first: it may be writing.
    pub fn stop(&mut self, stop_id: StopId, reason: &str) {
        if self.state().finished.is_some() || self.state().stopping.is_some() || self.outlives(stop_id) {
            return;
        }
        self.push(TaskEvent::StopRequested { stop_id, reason: reason.to_owned() });
        if self.state().is_running() && !self.leaves_server() {
            // A node runs to its end; a command comes to it at once.
            return self.kill_command("stop");
        }
        self.stop_agent(stop_id);
        self.end_here(stopped(reason));
    }

    /// Ends the task where it is, and before it the node that it is at: readers of the log wait for the end of each node that was started.
    pub fn end_here(&mut self, error: Error) {
        if let Some(ended) = self.state().end_of_node(&error, self.stamp.at) {
            self.push(ended);
        }
        let route = self.router().stop(error);
        self.carry_out(route, 0);
    }

    /// The tree was stopped, and nothing of this task runs: it ends at once.
    pub fn halt(&mut self, stop_id: StopId, reason: &str) {
        if self.state().finished.is_some() {
            return self.archive();
        }
        if self.state().stopping.is_none() {
            self.push(TaskEvent::StopRequested { stop_id, reason: reason.to_owned() });
        }
        if self.state().is_running() {
            self.kill_command("halt");
        }
        self.stop_agent(stop_id);
        self.end_here(stopped(reason));
    }

    /// Ends the call of a tool of a server that the node waits for, if it waits for one: it may take long, and nothing of ours is lost.
    fn leaves_server(&mut self) -> bool {
        let execution = self.state().execution.as_ref();
        let Some((node, attempt)) = execution.map(|execution| (execution.node.clone(), execution.attempt)) else {
            return false;
        };
        let is_served = self.node(&node).is_some_and(|node| self.flow.calls_server(node));
        if is_served {
            self.step.cancel(run_key(&node, attempt));
        }
        is_served
    }

    /// Ends the command that the node runs, if it runs one. `at` tells the two places apart where that is decided.
    fn kill_command(&mut self, at: &str) {
        let Some(execution) = &self.state().execution else { return };
        if self.runs_command(&execution.node) {
            let call = call_of(self.config.task, &execution.node, execution.retries);
            let key = EffectKey(format!("kill/{call}/{at}"));
            self.step.run(key, TaskEffect::KillCommand(self.config.workspace, call));
        }
    }

    /// Gives up the present work of a task that was paused for this reason.
    pub fn give_up(&mut self, why: Option<String>) {
        let why = why.as_deref().unwrap_or("it failed again and again");
        self.end_here(Error::new(Code::Paused, format!("given up: {why}")));
    }

    /// The agent of a node, by the manifest.
    pub fn agent_of(&self, node: &NodeId) -> Option<(&'a flow::flow::Agent, &'a Node)> {
        let node = self.node(node)?;
        match &node.op {
            Op::Agent { agent, .. } => Some((self.flow.agents.get(agent)?, node)),
            _ => None,
        }
    }
}

/// Between 0 and 1, the same for the same step: chance that was drawn before it.
fn chance(stamp: &Stamp) -> f64 {
    let bytes = stamp.id(2).into_bytes();
    let drawn = bytes.iter().skip(12).fold(0_u32, |number, byte| (number << 8) | u32::from(*byte));
    f64::from(drawn) / f64::from(u32::MAX)
}
