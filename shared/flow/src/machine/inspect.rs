//! The inspector: pausing between nodes and going on (spec 002 §10.7). It changes when a task goes on, never where.
//!
//! What it is told holds for the whole tree below the task: children that are on their way are told by letters, which come after
//! the one that made them, and those that are made later begin as their parent is (`Step::child`).

use crate::machine::{actor_id, step::Step};
use domain::{NodeId, TaskCommand, TaskEvent};

impl Step<'_> {
    /// Pause before these nodes, or before the next one.
    pub fn pause(&mut self, before: Vec<NodeId>) {
        if self.state.finished.is_some() {
            return;
        }
        self.tell_children(&TaskCommand::Pause { before: before.clone() });
        if !before.is_empty() || !self.state.inspector.holds() {
            self.push(TaskEvent::PauseRequested { before });
        }
    }

    /// Go on; with `step`, pause again before the node after the next.
    pub fn go_on(&mut self, step: bool) {
        if self.state.finished.is_some() {
            return;
        }
        self.tell_children(if step { &TaskCommand::Step } else { &TaskCommand::Resume });
        let Some(node) = self.state.inspector.paused_at.clone() else {
            if !step && self.state.inspector.next {
                self.push(TaskEvent::Continued { step, at: self.stamp.at });
            }
            return;
        };
        self.push(TaskEvent::Continued { step, at: self.stamp.at });
        let input = self.state.place.current.clone();
        self.begin_node(&node, input, 1, None, 0);
    }

    /// Tells all children that are on their way. One that has ended meanwhile does not listen.
    pub(super) fn tell_children(&mut self, command: &TaskCommand) {
        let state = self.state;
        for child in state.place.forks.iter().flat_map(|(node, fork)| fork.live_names(node)) {
            self.hurry(actor_id(self.config.workspace, self.config.task.child(&child)), command);
        }
    }
}
