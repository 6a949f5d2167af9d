//! Deletion of a task: it is off the lists at once and stopped, and once it has ended an effect removes its files, chats and children. Its
//! log stays for a while, as that of a chat does. Its children are told the same by name, so that one whose making is still under way is gone, too; the
//! log says which they are.

use super::{TaskEffect, TaskMachine};
use actor::{EffectKey, Step};
use domain::{
    ChatId, NodeId, Stamp, StopId, TaskConfig, TaskEvent, TaskId,
    task::{ChildKind, ChildName},
};
use std::collections::{BTreeMap, BTreeSet};

/// Why a task ends that was deleted.
pub(super) const DELETED: &str = "deleted";

impl TaskMachine {
    /// Takes in a request to delete the task.
    pub(super) fn delete(&self, step: &mut Step<Self>, stamp: &Stamp) {
        if step.state().deleted {
            return;
        }
        step.push(TaskEvent::Deleted { at: stamp.at });
        if step.state().finished.is_none() {
            self.with(step, stamp, |step| step.stop(StopId(stamp.id(1)), DELETED));
        }
    }
}

/// Begins the effect that removes the remains of the task, if the task is deleted and has ended.
pub(super) fn clear(step: &mut Step<TaskMachine>, stamp: &Stamp) {
    if let Some(config) = step.state().config.clone().filter(|_| step.state().is_clearing()) {
        step.run(EffectKey(format!("clear/{}", stamp.id(3))), TaskEffect::Clear(config));
    }
}

/// The actors that a task began and that are deleted with it: the fold of its log, which knows every child, also of forks that are done.
#[derive(Debug, Default)]
pub struct TaskDescendants {
    /// Its children.
    pub children: BTreeSet<TaskId>,
    /// The chats of its agents.
    pub chats: BTreeSet<ChatId>,
    /// By node, with how many of its children are noted.
    forks: BTreeMap<NodeId, (ChildKind, Vec<NodeId>, u32)>,
}

impl TaskDescendants {
    /// Takes in the next event of the task.
    pub fn note(&mut self, config: &TaskConfig, event: &TaskEvent) {
        match event {
            TaskEvent::AgentAsked { chat, .. } => _ = self.chats.insert(*chat),
            TaskEvent::Forked { node, kind, to, .. } => _ = self.forks.insert(node.clone(), (*kind, to.clone(), 0)),
            TaskEvent::Spawned { node, until } => {
                let Some((kind, to, noted)) = self.forks.get_mut(node) else { return };
                // Only those that are new: a large split sends its children off in many steps.
                let edge_of = |index: u32| to.get((index as usize).checked_rem(to.len())?);
                let named = (*noted..*until).filter_map(|index| Some((index, edge_of(index)?)));
                let names = named.map(|(index, to)| ChildName::of(node, to, index, *kind));
                self.children.extend(names.map(|name| config.task.child(&name)));
                *noted = *until;
            }
            _ => {}
        }
    }
}
