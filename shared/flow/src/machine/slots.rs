//! Waiting for slots: what a flow, a node or a provider may do at once (seed 002 §10.12). A node that waits is rows: the task has sent
//! a request to the semaphore of its workspace and rests; a letter wakes it when the slots are its own.

use crate::{
    Flow,
    flow::{Node, Op},
    machine::{Execution, actor_id, step::Step},
};
use domain::{
    NodeId, TaskCommand, TaskConfig, TaskEvent,
    task::{FlowRef, Retry, Wait},
};
use serde_json::json;
use slots::{Ask, SlotsCommand, semaphore};

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

/// Who holds the slots of an execution that begins with this attempt.
fn holder(config: &TaskConfig, node: &NodeId, attempt: u32) -> String {
    format!("{}/{node}/{attempt}", config.task)
}

impl Step<'_> {
    /// What the node has to have before it begins: nothing for one that asks people, and nothing for one that asks an agent, whose
    /// every call of a model takes slots by itself.
    pub(super) fn slots_of(&self, node: &NodeId) -> Vec<(String, u32)> {
        match self.node(node) {
            Some(node) if !matches!(node.op, Op::Agent { .. } | Op::Ask(_)) => of_node(self.flow, node),
            _ => Vec::new(),
        }
    }

    /// Asks for slots, and rests until they are there. `attempt` is the one that begins then.
    pub(super) fn wait_for_slots(
        &mut self,
        node: &NodeId,
        attempt: u32,
        retry: Option<Retry>,
        queue_ms: u64,
        wants: Vec<(String, u32)>,
    ) {
        let holder = holder(self.config, node, attempt);
        let names = wants.iter().map(|(name, _)| name.clone()).collect();
        let (at, wait) = (self.stamp.at, Wait::Slots { names, holder: holder.clone(), retry, queue_ms });
        self.push(TaskEvent::Waiting { node: node.clone(), attempt, wait, at });
        let ask = Ask {
            holder,
            wants,
            party: self.config.workspace.to_string(),
            priority: self.config.priority,
            to: actor_id(self.config.workspace, self.config.task),
            grant: json!(TaskCommand::Wake { node: node.clone(), attempt }),
        };
        self.send(semaphore(self.config.workspace), &SlotsCommand::Ask { ask: Box::new(ask) }, None);
    }

    /// Gives back what the node had or waited for, if this step has ended it or has it wait for something else.
    pub(super) fn give_slots(&mut self) {
        let Some(Execution { slots: Some(holder), .. }) = &self.state.execution else { return };
        let gives = |event: &TaskEvent| {
            matches!(
                event,
                TaskEvent::NodeFinished { .. }
                    | TaskEvent::Finished { .. }
                    | TaskEvent::Parked { .. }
                    | TaskEvent::Waiting { wait: Wait::Backoff { .. }, .. }
            )
        };
        if self.decision.events.iter().any(gives) {
            let give = SlotsCommand::Give { holder: holder.clone() };
            self.send(semaphore(self.config.workspace), &give, None);
        }
    }
}
