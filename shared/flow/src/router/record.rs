//! The record that a re-run follows: the order in which the recorded task took in the messages of its children.
//!
//! Nodes of a whole re-run have the outputs of the recorded ones, and so do those of one from a node on, or of a retry, until another
//! node runs. Only the order of arrival is left to chance: the children that a quorum takes, the clone that wins, the number of children
//! that a merge did not wait for. A task goes on by itself in *turns*: one ends whenever one of its merges begins. Within a turn the
//! order of messages changes nothing; so a re-run takes in, turn by turn, the messages that the recorded task had taken in, keeps those
//! that come too early, and begins no merge before all of a turn is there.

use crate::router::route_state::{RouteState, key_of};
use domain::{
    NodeId, TaskCommand, TaskEvent,
    task::{Arrival, ChildName, is_stop},
};
use std::collections::{BTreeMap, HashMap};

/// The messages of a recorded task by turn, and its end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    turn_of: HashMap<String, usize>,
    /// The same by child: a message that goes elsewhere now is taken in when its child was heard of then.
    turn_of_child: HashMap<ChildName, usize>,
    turns: Vec<Turn>,
    /// The number of the first event of each node: it began, or waited before that.
    began: HashMap<NodeId, u64>,
    has_ended: bool,
    ended_by_itself: bool,
}

/// The messages between two merges.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Turn {
    /// How much the task was told.
    heard: u32,
    /// How many children its forks had sent off at the end of it.
    spawned: BTreeMap<NodeId, u32>,
}

impl Record {
    /// Takes in the next event of the recorded task, and its number in the log.
    pub fn see(&mut self, number: u64, event: &TaskEvent) {
        if self.turns.is_empty() {
            self.turns.push(Turn::default());
        }
        match event {
            // An arrival of the task's own at its merge is no news to it.
            TaskEvent::ChildArrived { arrival } if !arrival.place.is_empty() => {
                self.heard(of_arrival(arrival), child_of(arrival))
            }
            TaskEvent::ChildFinished { child, .. } => self.heard(of_end(child), Some(child.clone())),
            // A command that waits for its place may be refused, and ends without a start.
            TaskEvent::NodeStarted { node, .. } | TaskEvent::Waiting { node, .. } => {
                self.began.entry(node.clone()).or_insert(number);
            }
            TaskEvent::Spawned { node, until } => {
                if let Some(turn) = self.turns.last_mut() {
                    turn.spawned.insert(node.clone(), *until);
                }
            }
            TaskEvent::Merged { .. } => self.turns.push(Turn::default()),
            TaskEvent::Finished { error, .. } => {
                (self.has_ended, self.ended_by_itself) = (true, !error.as_ref().is_some_and(is_stop));
            }
            _ => {}
        }
    }

    fn heard(&mut self, what: String, child: Option<ChildName>) {
        let turn = self.turns.len().saturating_sub(1);
        self.turn_of.insert(what, turn);
        self.turn_of_child.extend(child.map(|child| (child, turn)));
        if let Some(turn) = self.turns.last_mut() {
            turn.heard += 1;
        }
    }

    /// The number of the first event of this node; none for a node that the recorded task has not come to, as far as the record goes.
    pub fn began(&self, node: &NodeId) -> Option<u64> {
        self.began.get(node).copied()
    }

    /// Whether the recorded task has ended, so that nothing will be added to its record.
    pub fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// Whether the recorded task came to an end by itself: it was not stopped before, and it was made at all.
    pub fn ended_by_itself(&self) -> bool {
        self.ended_by_itself
    }

    /// Whether a task at this place takes in this message now.
    pub fn is_due(&self, place: &RouteState, command: &TaskCommand) -> bool {
        let (what, child) = match command {
            TaskCommand::Arrived { arrival } => (of_arrival(arrival), child_of(arrival)),
            TaskCommand::ChildEnded { child, .. } => (of_end(child), Some(child.clone())),
            _ => return true,
        };
        let by_child = || self.turn_of_child.get(child.as_ref()?);
        match self.turn_of.get(&what).or_else(by_child) {
            Some(turn) => *turn <= place.begun.len(),
            // Beyond the point at which it was stopped there is nothing to follow.
            None => !self.ended_by_itself && place.begun.len() + 1 >= self.turns.len(),
        }
    }

    /// Whether all of the turn is there: the task's messages, `more` besides, and the children that were sent off.
    pub fn is_complete(&self, place: &RouteState, more: u32) -> bool {
        let Some(turn) = self.turns.get(place.begun.len()) else { return true };
        let sent = |(node, until): (&NodeId, &u32)| place.forks.get(node).is_none_or(|fork| fork.spawned >= *until);
        place.heard + more >= turn.heard && turn.spawned.iter().all(sent)
    }

    /// How many children this fork may send off.
    pub fn spawns(&self, node: &NodeId) -> Option<u32> {
        let last = self.turns.iter().filter_map(|turn| turn.spawned.get(node)).max().copied();
        last.filter(|_| self.ended_by_itself)
    }
}

fn of_arrival(arrival: &Arrival) -> String {
    format!("{} {}", arrival.merge, key_of(arrival))
}

/// The child of this task that arrives; none for one further down.
fn child_of(arrival: &Arrival) -> Option<ChildName> {
    (arrival.place.len() == 1).then(|| ChildName(arrival.child.as_str().into()))
}

fn of_end(child: &ChildName) -> String {
    format!("end of {child}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::{Code, Error, Status, Timestamp, task::Wait};

    #[test]
    fn a_node_that_was_refused_before_its_start_is_in_the_record() {
        let (node, at) = (NodeId::from("command"), Timestamp::from_millis(0));
        let wait = Wait::Place { holder: "task/command/1".into(), retry: None, queue_ms: 0, why: None, until: None };
        let refused = TaskEvent::NodeFinished {
            node: node.clone(),
            attempt: 1,
            status: Status::Failure,
            output: serde_json::Value::Null,
            error: Some(Error::new(Code::NotBegun, "too many commands wait already")),
            metrics: domain::task::NodeMetrics::default(),
            at,
        };
        let mut record = Record::default();
        record.see(7, &TaskEvent::Waiting { node: node.clone(), attempt: 1, wait, at });
        record.see(8, &refused);
        assert_eq!((record.began(&node), record.began(&"other".into())), (Some(7), None));
    }
}
