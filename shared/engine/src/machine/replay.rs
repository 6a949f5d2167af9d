//! A re-run follows its recorded task: it takes in its messages in the same turns. Random choices of that time are not made again (spec 002
//! §6, §10.7). Where other work runs than then, as from a node on or in a retry, it goes on by itself as soon as a turn is there and its
//! merge does not begin.
//!
//! A re-run on recorded answers alone also sends off as many children, and ends by itself where the recorded task did. Its children follow
//! their own records. So a child that was stopped as not needed must not have ended this time, and a child that ended although it was not
//! needed has to come to its end.

use super::{
    TaskMachine, TaskState,
    step::{NOT_NEEDED, Step},
};
use domain::{
    Error, Stamp, Status, StopId, TaskCommand, TaskEvent,
    task::{ChildName, is_stop, stopped},
};
use flow::router::{Position, Record, Route};
use serde_json::Value;
use std::{collections::BTreeSet, sync::Arc};

impl TaskMachine {
    /// The record that this task follows, if it is such a re-run.
    pub(super) fn follows(&self, state: &TaskState) -> Option<Arc<Record>> {
        let replay = state.config.as_ref()?.replay.as_ref()?;
        self.flows.record(replay.of).filter(|_| !state.diverged)
    }

    /// A child, or something further down, has told this task something.
    pub(super) fn receive(&self, step: &mut actor::Step<Self>, command: TaskCommand, stamp: &Stamp) {
        let state = step.state();
        let early = self.follows(state).is_some_and(|record| !record.is_due(&state.place, &command));
        if !early {
            return self.with(step, stamp, |step| step.receive(command));
        }
        // A repeated message is kept once, and none after the end.
        if state.finished.is_none() && !state.held.contains(&command) {
            step.push(TaskEvent::HeldBack { command: Box::new(command) });
        }
    }

    /// Takes in the messages that were held back, as far as this step has made it their turn. `sent_off` is how many children there were
    /// before it.
    pub(super) fn catch_up(&self, step: &mut actor::Step<Self>, sent_off: u32, stamp: &Stamp) {
        // A merge may have waited for nothing but children that were still to be sent off.
        let mut may_go_on = children(step.state()) > sent_off;
        let concerned = may_go_on || !step.state().held.is_empty();
        if !concerned || self.follows(step.state()).is_none() {
            return;
        }
        let mut tried = Vec::new();
        loop {
            let state = step.state();
            if state.finished.is_some() {
                return;
            }
            let record = self.follows(state);
            let is_due = |held: &&TaskCommand| {
                !tried.contains(*held) && record.as_ref().is_none_or(|record| record.is_due(&state.place, held))
            };
            if let Some(due) = state.held.iter().find(is_due).cloned() {
                tried.push(due.clone());
                self.with(step, stamp, |step| step.receive(due));
            } else if std::mem::take(&mut may_go_on) {
                self.with(step, stamp, |step| {
                    let route = step.router().go_on();
                    step.carry_out(route, 0);
                });
            } else if record.as_ref().is_some_and(|record| is_stuck(state, record)) {
                (may_go_on, tried) = (true, Vec::new());
                step.push(TaskEvent::Diverged { at: stamp.at });
            } else {
                return;
            }
        }
    }
}

/// How many children of a task are sent off, of forks that it still waits for.
pub(super) fn children(state: &TaskState) -> u32 {
    state.place.forks.values().map(|fork| fork.spawned).sum()
}

/// Whether none of the recorded task's messages can still come: all of its children have ended, and their messages are kept for turns
/// that do not come. Or, where other work may have run than then, whether all of the turn is there and was not enough.
fn is_stuck(state: &TaskState, record: &Record) -> bool {
    let ended = state.held.iter().filter_map(|held| match held {
        TaskCommand::Arrived { arrival } if arrival.place.len() == 1 => Some(ChildName(arrival.child.as_str().into())),
        TaskCommand::ChildEnded { child, .. } => Some(child.clone()),
        _ => None,
    });
    let ended: BTreeSet<ChildName> = ended.filter(|child| state.place.is_live(child)).collect();
    let waits = state.place.position == Position::Waiting && state.execution.is_none() && !state.held.is_empty();
    let repeats = state.config.as_ref().is_some_and(|config| config.repeats());
    waits && (state.place.live() as usize <= ended.len() || !repeats && record.is_complete(&state.place, 0))
}

impl Step<'_> {
    /// Takes in what a child, or something further down, has told.
    pub fn receive(&mut self, command: TaskCommand) {
        let route = match command {
            TaskCommand::Arrived { arrival } => self.router().arrived(*arrival),
            TaskCommand::ChildEnded { child, end } => self.router().child_ended(&child, *end),
            _ => return,
        };
        self.carry_out(route, 0);
    }

    /// Whether a request to stop is that of a parent that does not need the task, and that did not stop the recorded
    /// one before its end.
    pub fn outlives(&self, stop_id: StopId) -> bool {
        let Some(origin) = &self.config.origin else { return false };
        self.config.repeats()
            && self.record.as_ref().is_some_and(|record| record.ended_by_itself())
            && stop_id == StopId::from_key(&origin.parent.to_string(), origin.name().as_str())
    }

    /// Whether the recorded task was stopped at the node that ended with this error, so that this one ends there even if its node may fail.
    pub fn was_stopped_then(&self, error: &Error) -> bool {
        let was_stopped = self.record.as_ref().is_some_and(|record| !record.ended_by_itself());
        was_stopped && self.config.repeats() && is_stop(error)
    }

    /// The end of a child whose recorded task was stopped as not needed: it was stopped.
    pub fn as_recorded(&self, mut route: Route) -> Route {
        let was_stopped = self.record.as_ref().is_some_and(|record| !record.ended_by_itself());
        if !was_stopped || self.config.origin.is_none() || !self.config.repeats() {
            return route;
        }
        for event in &mut route.events {
            if let TaskEvent::Finished { status, output, exit, error, .. } = event
                && !error.as_ref().is_some_and(is_stop)
            {
                (*status, *output, *exit, *error) = (Status::Failure, Value::Null, None, Some(stopped(NOT_NEEDED)));
            }
        }
        route
    }
}
