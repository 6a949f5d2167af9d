//! The inspector: pausing between nodes and going on (spec 002 §10.7). It changes when a task goes on, never where.
//!
//! Its commands hold for the whole tree below the task. A pause goes around the mailboxes: it is an item beside the root's log that all of
//! the tree read before they begin something, and a task follows it once. Everything is also told by messages to children that are on their
//! way, and children that are made later begin as their parent is (`Step::child`).

use crate::machine::{
    Execution, Mode, actor_id,
    step::{NodeStart, Step},
};
use domain::{
    HoldId, NodeId, TaskCommand, TaskEvent,
    task::{ChildName, Wait},
};

impl Step<'_> {
    /// Pause before these nodes, or before the next one.
    pub fn pause(&mut self, before: Vec<NodeId>, hold: Option<HoldId>) {
        if self.state().finished.is_some() {
            return;
        }
        self.tell_children(&TaskCommand::Pause { before: before.clone(), hold });
        let inspector = &self.state().inspector;
        let is_news = match hold {
            Some(hold) => !inspector.heard.contains(&hold),
            None => !inspector.holds() || inspector.passes.is_some(),
        };
        if !before.is_empty() || is_news {
            self.push(TaskEvent::PauseRequested { before, hold });
        }
    }

    /// Whether a node that waited is held back now; it is paused before then, and gives back its slots or its place.
    pub(super) fn is_held_back(&mut self, node: &NodeId) -> bool {
        let holds = self.state().inspector.holds_back(node);
        if holds {
            self.push(TaskEvent::PausedBefore { node: node.clone(), at: self.stamp.at });
        }
        holds
    }

    /// Go on; with `step`, pause again before the node after the next.
    pub fn go_on(&mut self, step: bool) {
        if self.state().finished.is_some() {
            return;
        }
        self.tell_children(if step { &TaskCommand::Step } else { &TaskCommand::Resume });
        let Some(node) = self.state().inspector.paused_at.clone() else {
            if !step && self.state().inspector.next {
                self.push(TaskEvent::Continued { step, at: self.stamp.at });
            }
            return;
        };
        self.push(TaskEvent::Continued { step, at: self.stamp.at });
        let waited = self.state().executing(&node);
        let begins = NodeStart::first(node, self.state().place.current.clone(), 0);
        let Some(Execution { attempt, mode: Mode::Waiting { wait }, .. }) = waited else {
            return self.begin_node(begins);
        };
        let (attempt, wait) = (*attempt, wait.clone());
        self.begin_node(match wait {
            Wait::Budget { .. } => return self.share(),
            Wait::Backoff { retry, .. } => NodeStart { attempt: attempt + 1, retry: Some(retry), ..begins },
            Wait::Slots { retry, queue_ms, .. } | Wait::Place { retry, queue_ms, .. } => {
                NodeStart { attempt, retry, queue_ms, ..begins }
            }
        });
    }

    /// Tells all children that are on their way. One that has ended meanwhile does not listen.
    pub(super) fn tell_children(&mut self, command: &TaskCommand) {
        let forks = self.state().place.forks.iter();
        let children: Vec<ChildName> = forks.flat_map(|(node, fork)| fork.live_names(node)).collect();
        for child in children {
            self.hurry(actor_id(self.config.workspace, self.config.task.child(&child)), command);
        }
    }
}
