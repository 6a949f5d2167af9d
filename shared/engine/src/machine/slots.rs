//! Waiting for slots: limits of a flow, a node or a provider on what runs at once (spec 002 §10.12), and then for a place on the machine
//! that a node's command runs on. A node that waits is rows: the task has sent a request to a semaphore and rests; a message wakes it when
//! the slots, or the place, are its own. Slots come before the place, so that no two nodes wait for each other.
//!
//! A task that is paused holds nothing that others need: it gives its slots and its place back, or takes its request out of the line, and
//! asks anew when it goes on. Requests are numbered, because the answer to an earlier one may still be under way then.

use crate::machine::{
    Execution, Mode, TaskMachine, TaskState, actor_id,
    step::{NodeStart, Step},
};
use actor::OutboxMessage;
use domain::{
    ChatCommand, Code, Error, NodeId, TaskCommand, TaskConfig, TaskEvent,
    task::{FlowRef, Retry, Wait},
};
use flow::{
    Flow,
    flow::{Node, Op},
};
use serde_json::json;
use slots::{Held, Places, SlotRequest};
use std::time::Duration;

/// The slots that one execution of a node takes: of its flow, and its own.
pub(crate) fn of_node(flow: &Flow, node: &Node) -> Vec<(String, u32)> {
    let FlowRef { name, hash } = &flow.reference;
    let of_flow = flow.limits.max_concurrency.map(|limit| (format!("flow/{name}/{hash}"), limit));
    let of_node = node.max_concurrency.map(|limit| (format!("node/{name}/{hash}/{}", node.id), limit));
    of_flow.into_iter().chain(of_node).collect()
}

/// The slots that one call of a model takes for the agent of a node: those of the node, and one of the provider.
pub(crate) fn of_model(flow: &Flow, node: &Node, model: Option<&str>) -> Vec<(String, u32)> {
    let mut slots = of_node(flow, node);
    let provider = model.and_then(|model| model.split_once('/')).map(|(provider, _)| provider);
    if let Some((provider, limit)) = provider.and_then(|name| flow.limits.providers.get_key_value(name)) {
        slots.push((format!("provider/{}/{provider}", flow.reference.name), *limit));
    }
    slots
}

/// The holder of the slots of an execution that begins with this attempt.
fn holder(config: &TaskConfig, node: &NodeId, attempt: u32) -> String {
    format!("{}/{node}/{attempt}", config.task)
}

impl Step<'_> {
    /// The slots that the node has to have before it begins: none for a node that asks people, and none for one that asks an
    /// agent, whose every call of a model takes slots by itself.
    pub(super) fn slots_of(&self, node: &NodeId) -> Vec<(String, u32)> {
        match self.node(node) {
            Some(node) if !matches!(node.op, Op::Agent { .. } | Op::Ask(_)) => of_node(self.flow, node),
            _ => Vec::new(),
        }
    }

    /// Asks for slots, and rests until they are there.
    pub(super) fn wait_for_slots(&mut self, begins: NodeStart, wants: Vec<(String, u32)>) {
        let NodeStart { node, attempt, retry, queue_ms, .. } = begins;
        let holder = holder(self.config, &node, attempt);
        let names = wants.iter().map(|(name, _)| name.clone()).collect();
        let (at, wait) = (self.stamp.at, Wait::Slots { names, holder: holder.clone(), retry, queue_ms });
        self.push(TaskEvent::Waiting { node: node.clone(), attempt, wait, at });
        self.ask_for_slots(node, attempt, holder, wants, self.config.priority);
    }

    fn ask_for_slots(&mut self, node: NodeId, attempt: u32, holder: String, wants: Vec<(String, u32)>, priority: i8) {
        let grant = json!(TaskCommand::Wake { node, attempt, request: self.last_request() });
        let wanted = SlotRequest { holder, priority, to: self.own_id(), grant };
        self.step.send(wanted.for_slots(self.config.workspace, wants));
    }

    /// The number of the request that the node has made last.
    fn last_request(&self) -> Option<u32> {
        self.state().execution.as_ref().map(|execution| execution.requests)
    }

    pub(super) fn runs_command(&self, node: &NodeId) -> bool {
        self.node(node).is_some_and(|node| self.flow.runs_command(node))
    }

    /// Whether the node is a command that has no place yet.
    pub(super) fn needs_place(&self, node: &NodeId) -> bool {
        let has_one = self.state().executing(node).is_some_and(|execution| execution.place.is_some());
        !has_one && self.runs_command(node)
    }

    /// Asks for a place, and rests until it is there.
    pub(super) fn wait_for_place(&mut self, places: Places, begins: NodeStart) {
        let NodeStart { node, attempt, retry, queue_ms, .. } = begins;
        let holder = holder(self.config, &node, attempt);
        let (at, why, until) = (self.stamp.at, None, None);
        let wait = Wait::Place { holder: holder.clone(), retry, queue_ms, why, until };
        self.push(TaskEvent::Waiting { node: node.clone(), attempt, wait, at });
        self.ask_for_place(places, node, attempt, holder, self.config.priority);
    }

    fn ask_for_place(&mut self, places: Places, node: NodeId, attempt: u32, holder: String, priority: i8) {
        let request = self.last_request();
        let grant = json!(TaskCommand::BeginCommand { node: node.clone(), attempt, request });
        let refusal = json!(TaskCommand::RefuseCommand { node, attempt, request });
        let wanted = SlotRequest { holder, priority, to: self.own_id(), grant };
        self.step.send(places.ask(self.config.workspace, wanted, refusal));
    }

    /// The machine is not ready for a command that has its place: it is begun again after this long, and keeps the place.
    pub(super) fn come_again(&mut self, error: Error, after: Duration) {
        let Some(execution) = &self.state().execution else { return };
        let (node, attempt) = (execution.node.clone(), execution.attempt + 1);
        let (at, until) = (self.stamp.at, self.stamp.at + after);
        let holder = execution.place.clone().unwrap_or_else(|| holder(self.config, &node, attempt));
        let (why, queue_ms) = (Some(error.message), execution.queue_ms);
        let wait = Wait::Place { holder, retry: None, queue_ms, why, until: Some(until) };
        self.push(TaskEvent::Waiting { node: node.clone(), attempt, wait, at });
        let request = self.last_request();
        self.send(self.own_id(), &TaskCommand::BeginCommand { node, attempt, request }, Some(until));
    }

    /// Asks anew for all that the node waits for: it was given back when the task was parked.
    pub(super) fn ask_anew(&mut self) {
        let Some(Execution { node, attempt, mode: Mode::Waiting { wait }, .. }) = &self.state().execution else {
            return;
        };
        let (Wait::Slots { retry, queue_ms, .. } | Wait::Place { retry, queue_ms, .. }) = wait else { return };
        let (node, attempt, retry, queue_ms) = (node.clone(), *attempt, retry.clone(), *queue_ms);
        if self.is_held_back(&node) {
            return;
        }
        let (wants, input) = (self.slots_of(&node), self.state().place.current.clone());
        let places = self.places.filter(|_| self.runs_command(&node));
        let begins = NodeStart { node, input, attempt, retry, queue_ms };
        match places {
            _ if !wants.is_empty() => self.wait_for_slots(begins, wants),
            Some(places) => self.wait_for_place(places, begins),
            None => self.start_node(begins),
        }
    }

    /// How the command begins that waits for a place, if it is this node's.
    fn placed(&mut self, node: &NodeId, attempt: u32, request: Option<u32>) -> Option<(Option<Retry>, u64)> {
        match self.answered_wait(node, attempt, request)? {
            (Wait::Place { retry, queue_ms, .. }, waited_ms) => Some((retry, queue_ms + waited_ms)),
            _ => None,
        }
    }

    /// The place is there. A message that comes twice, or after a stop, begins nothing.
    pub(super) fn begin_command(&mut self, node: &NodeId, attempt: u32, request: Option<u32>) {
        let Some((retry, queue_ms)) = self.placed(node, attempt, request) else { return };
        if !self.is_held_back(node) {
            let input = self.state().place.current.clone();
            self.start_node(NodeStart { node: node.clone(), input, attempt, retry, queue_ms });
        }
    }

    /// There is no place, and too many wait for one: the command has not begun.
    pub(super) fn refuse_command(&mut self, node: &NodeId, attempt: u32, request: Option<u32>) {
        if self.placed(node, attempt, request).is_some() {
            let error =
                Error::new(Code::NotBegun, "too many commands of this workspace wait already, so it did not run");
            self.fail(error.hint("try again when some of them have ended, or run fewer at once"));
        }
    }

    /// Goes before others that wait, or after them, from here on; and so do all tasks below. This command brings messages that already wait
    /// in the queue to the front; a request for slots or for a place gets the place of its new priority, and an agent that is asked is
    /// told.
    pub(super) fn prioritize(&mut self, priority: i8) {
        if self.state().finished.is_some() || self.config.priority == priority {
            return;
        }
        self.push(TaskEvent::Prioritized { priority });
        self.tell_children(&TaskCommand::Prioritize { priority });
        let Some(execution) = &self.state().execution else { return };
        let Execution { node, attempt, mode, gave_back, slots, place, .. } = execution;
        let (node, attempt) = (node.clone(), *attempt);
        if *gave_back {
            return;
        }
        match (mode, self.places) {
            // A task that is paused before the node has taken its request back: nobody would give back what it was granted.
            (Mode::Waiting { wait: Wait::Slots { holder, .. } }, _) if slots.as_ref() == Some(holder) => {
                let (holder, wants) = (holder.clone(), self.slots_of(&node));
                self.ask_for_slots(node, attempt, holder, wants, priority);
            }
            (Mode::Waiting { wait: Wait::Place { holder, until: None, .. } }, Some(places))
                if place.as_ref() == Some(holder) =>
            {
                self.ask_for_place(places, node, attempt, holder.clone(), priority);
            }
            (Mode::Agent { chat, .. }, _) => {
                let to = chat::actor_id(self.config.workspace, *chat);
                self.hurry(to, &ChatCommand::Prioritize { priority });
            }
            _ => {}
        }
    }
}

impl TaskState {
    /// Whether its node waits for what it has given back, and the task goes on. Its own message has it ask anew; a version before that gave nothing
    /// back resumes a task without one.
    pub(crate) fn owes_a_request(&self) -> bool {
        let gave_back = |execution: &Execution| execution.gave_back && matches!(execution.mode, Mode::Waiting { .. });
        self.parked.is_none() && self.execution.as_ref().is_some_and(gave_back)
    }
}

/// Has a task that goes on ask anew for what its node gave back when it was parked. It is told by a message: to ask, it needs its manifests, and
/// a resume needs nothing.
pub(super) fn wake_to_ask_anew(step: &mut actor::Step<TaskMachine>) {
    let waits = step.state().execution.as_ref().filter(|execution| execution.gave_back);
    let Some((config, execution)) = step.state().config.as_ref().zip(waits) else { return };
    let (node, attempt, request) = (execution.node.clone(), execution.attempt, Some(execution.requests));
    let (to, priority) = (actor_id(config.workspace, config.task), config.priority);
    step.send(OutboxMessage::now(to, json!(TaskCommand::Wake { node, attempt, request }), priority));
}

/// The slots and the place that a task has or waits for.
pub(super) fn held_by(state: &TaskState) -> Held {
    let held = |execution: &Execution| Held { slots: execution.slots.clone(), place: execution.place.clone() };
    state.execution.as_ref().map(held).unwrap_or_default()
}

/// Gives slots and a place back, and takes requests for them out of the line.
pub(super) fn give_back(held: Held, step: &mut actor::Step<TaskMachine>, config: &TaskConfig, places: Option<Places>) {
    held.give_back(config.workspace, places, config.priority).for_each(|message| step.send(message));
}
