//! The inspector: pausing between nodes and going on (seed 002 §10.7). It changes when a task goes on, never where.

use crate::machine::step::Step;
use domain::{NodeId, TaskEvent};

impl Step<'_> {
    /// Pause before these nodes, or before the next one.
    pub fn pause(&mut self, before: Vec<NodeId>) {
        let is_paused = before.is_empty() && self.state.inspector.paused_at.is_some();
        if self.state.finished.is_none() && !is_paused {
            self.push(TaskEvent::PauseRequested { before });
        }
    }

    /// Go on; with `step`, pause again before the node after the next.
    pub fn go_on(&mut self, step: bool) {
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
}
