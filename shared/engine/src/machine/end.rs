//! The end of a task and of its nodes, as its state has it.

use super::{
    TaskEffect, TaskMachine, actor_id,
    execution::{Execution, Mode},
};
use actor::{EffectKey, OutboxMessage, Step};
use domain::{ChatId, Error, NodeId, Stamp, Status, TaskCommand, TaskConfig, TaskEvent, Timestamp, task::ChildEnd};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// How a task ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TaskEnd {
    /// Why it failed.
    pub error: Option<Error>,
    /// The time of the end.
    pub at: Timestamp,
}

/// An agent whose node ended before its turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StoppedAgent {
    /// The node.
    pub node: NodeId,
    /// Its chat.
    pub chat: ChatId,
    /// The turn of the chat, from 1.
    pub round: u32,
}

impl StoppedAgent {
    /// The agent that is at work when the node in flight ends.
    pub(super) fn of(ended: Option<Execution>) -> Option<Self> {
        let Execution { node, mode: Mode::Agent { chat, round }, .. } = ended? else { return None };
        Some(Self { node, chat, round })
    }
}

/// A task without its manifests can do nothing but end, and tell the one that waits for it.
pub(super) fn without_a_flow(step: &mut Step<TaskMachine>, config: &TaskConfig, error: Error, stamp: &Stamp) {
    let (status, output, at) = (Status::Failure, Value::Null, stamp.at);
    if let Some(ended) = step.state().end_of_node(&error, at) {
        step.push(ended);
    }
    step.push(TaskEvent::Finished { status, output: output.clone(), exit: None, error: Some(error.clone()), at });
    if let Some(origin) = &config.origin {
        let end = Box::new(ChildEnd { status, output, merged: false, lost: 0, error: Some(error) });
        let command = TaskCommand::ChildEnded { child: origin.name(), end };
        if let Ok(command) = serde_json::to_value(command) {
            step.send(OutboxMessage::now(actor_id(config.workspace, origin.parent), command, config.priority));
        }
    }
    archive(step, stamp);
}

/// Has the artifacts of a task that has ended stored.
pub(super) fn archive(step: &mut Step<TaskMachine>, stamp: &Stamp) {
    if let Some(config) = step.state().config.clone().filter(|_| step.state().archiving) {
        step.run(EffectKey(format!("archive/{}", stamp.id(4))), TaskEffect::Archive(config));
    }
}
