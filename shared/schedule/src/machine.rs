//! The schedule as a machine of the actor runtime.

use crate::{
    config::{Action, MissedPolicy, OverlapPolicy, ScheduleConfig, StartedWork},
    event::{ScheduleCommand, ScheduleEvent},
    rule::{Next, Times},
    state::{ScheduleState, ScheduleView},
};
use actor::{ActorId, EffectKey, Input, Machine, OutboxMessage, Step, View};
use domain::{Code, Error, Stamp, Timestamp, WorkspaceId};
use ports::Key;
use std::time::Duration;
use uuid::Uuid;

/// A time that is found later than this was missed.
const GRACE: Duration = Duration::from_secs(300);
/// A tick that comes this long before its time was sent before the clock was set back.
const EARLY: Duration = Duration::from_secs(60);

/// The schedules.
#[derive(Clone, Copy, Debug, Default)]
pub struct ScheduleMachine;

/// The actor of a schedule.
pub fn actor_id(workspace: WorkspaceId, schedule: Uuid) -> ActorId {
    ActorId::new(ScheduleMachine::KIND, format_args!("{workspace}/{}", schedule.hyphenated()))
}

/// The partition of the schedules of a workspace, of the table and of its index.
pub(crate) fn partition(workspace: WorkspaceId) -> String {
    format!("{workspace}/schedules")
}

pub(crate) fn view_key(workspace: WorkspaceId, schedule: Uuid) -> Key {
    Key::new(partition(workspace), schedule.hyphenated().to_string())
}

pub(crate) fn view_index(config: &ScheduleConfig) -> Key {
    Key::new(partition(config.workspace), format!("{}/{}", config.created_at, config.schedule.hyphenated()))
}

/// A request of a schedule to the outside: begin a run.
#[derive(Clone, Debug)]
pub struct ScheduleEffect {
    /// Its id.
    pub run: Uuid,
    /// The schedule.
    pub config: ScheduleConfig,
    /// The work that has to be done before this run begins anything.
    pub after: Option<StartedWork>,
}

/// The report of the effect.
#[derive(Debug)]
pub struct ScheduleReport {
    /// The run.
    pub run: Uuid,
    /// The chat or task that it began, or why it began none.
    pub outcome: Result<StartedWork, Error>,
}

impl Machine for ScheduleMachine {
    const KIND: &'static str = "schedule";
    const VERSION: u32 = 2;
    type State = ScheduleState;
    type Command = ScheduleCommand;
    type Event = ScheduleEvent;
    type Effect = ScheduleEffect;
    type Report = ScheduleReport;

    fn apply(state: &mut ScheduleState, _number: u64, event: &ScheduleEvent) {
        state.apply(event);
    }

    fn handle(&self, step: &mut Step<Self>, input: Input<Self>, stamp: &Stamp) {
        if step.state().deleted {
            return;
        }
        match input {
            Input::Command { command, at: accepted, .. } => take_in(step, command, accepted, stamp),
            Input::Report(ScheduleReport { run, outcome }) => reported(step, run, outcome, stamp.at),
            Input::Resume => {
                if let Some(run) = step.state().beginning {
                    step.push(ScheduleEvent::Retried { run, attempt: step.state().attempt + 1 });
                    begin(step, run);
                }
            }
            // Its effect is begun in a moment: there is nothing to stop.
            Input::Stop(_) | Input::Halt(_) | Input::Hold(_) => {}
            Input::Park { reason, .. } => {
                if let Some(run) = step.state().beginning {
                    let error = Error::new(Code::Internal, reason);
                    step.push(ScheduleEvent::Failed { run, error, at: stamp.at });
                }
                step.give_up();
            }
            Input::Unpark { .. } => {}
        }
    }

    fn in_flight(state: &ScheduleState) -> bool {
        state.beginning.is_some()
    }

    fn is_over(state: &ScheduleState) -> bool {
        state.deleted
    }

    /// A tool may wait for servers elsewhere; all else is begun in a moment.
    fn waits(&self, effect: &ScheduleEffect) -> bool {
        matches!(effect.config.action, Action::Tool { .. })
    }

    fn is_transient(_event: &ScheduleEvent) -> bool {
        false
    }

    fn ends(command: &ScheduleCommand) -> bool {
        matches!(command, ScheduleCommand::Delete)
    }

    fn view(state: &ScheduleState) -> Option<View> {
        let config = state.config.as_ref()?;
        let key = view_key(config.workspace, config.schedule);
        match ScheduleView::of(state) {
            None => Some(View { key, index: None, body: None }),
            Some(view) => {
                Some(View { key, index: Some(view_index(config)), body: Some(serde_json::to_string(&view).ok()?) })
            }
        }
    }
}

/// A time that comes between the answer to a person and this step is not lost: times count from the moment in which the command was accepted.
fn take_in(step: &mut Step<ScheduleMachine>, command: ScheduleCommand, accepted: Timestamp, stamp: &Stamp) {
    let at = stamp.at;
    match command {
        ScheduleCommand::Create { config } if step.state().config.is_none() => {
            let next = config.times.next(None, accepted).at;
            step.push(ScheduleEvent::Created { config, next, at });
            wake(step);
        }
        ScheduleCommand::Create { .. } => {}
        ScheduleCommand::Change { mut config } => {
            let Some(now) = step.state().config.clone() else { return };
            // Work that stays the same gets no more rights from a later change.
            config.may_not_run |= now.may_not_run && config.action == now.action;
            if *config == now {
                return;
            }
            let last = step.state().last_due.filter(|_| config.times == now.times);
            let is_paused = step.state().paused.is_some();
            let next = config.times.next(last, accepted).at.filter(|_| !is_paused);
            let wakes = next != step.state().next;
            step.push(ScheduleEvent::Changed { config, next, at });
            if wakes {
                wake(step);
            }
        }
        ScheduleCommand::Pause => {
            if step.state().config.is_some() && step.state().paused.is_none() {
                step.push(ScheduleEvent::Paused { error: None, at });
            }
        }
        ScheduleCommand::Resume => {
            let Some(config) = step.state().config.clone().filter(|_| step.state().paused.is_some()) else { return };
            let next = config.times.next(step.state().last_due, accepted).at;
            step.push(ScheduleEvent::Resumed { next, at });
            wake(step);
        }
        ScheduleCommand::RunNow { run } => {
            let is_known = step.state().last.as_ref().is_some_and(|last| last.run == run);
            if step.state().config.is_some() && !is_known {
                if step.state().beginning.is_some() {
                    return come_again(step, &ScheduleCommand::RunNow { run });
                }
                let next = step.state().next;
                step.push(ScheduleEvent::Due { run, due: None, next, missed: 0, at });
                begin(step, run);
            }
        }
        ScheduleCommand::Tick { due } => due_now(step, due, stamp),
        ScheduleCommand::Delete => {
            if step.state().config.is_some() {
                step.push(ScheduleEvent::Deleted { at });
            }
        }
    }
}

/// A time is due: it runs, or is skipped when it was missed, and the next one is asked for.
fn due_now(step: &mut Step<ScheduleMachine>, due: Timestamp, stamp: &Stamp) {
    let at = stamp.at;
    // A time of before a change, or one that came twice.
    if step.state().next != Some(due) {
        return;
    }
    let Some(config) = step.state().config.clone() else { return };
    if step.state().beginning.is_some() {
        return come_again(step, &ScheduleCommand::Tick { due });
    }
    if due.since(at) >= EARLY {
        // The clock was set back, and other times may come before this one.
        let last = step.state().last_due.filter(|last| *last <= at);
        let next = config.times.next(last, at).at.filter(|next| *next < due);
        if next.is_some() {
            step.push(ScheduleEvent::Changed { config: Box::new(config), next, at });
        }
        return wake(step);
    }
    let Next { at: next, missed } = next_after(&config.times, due, at);
    if config.missed == MissedPolicy::Skip && at.since(due) > GRACE {
        step.push(ScheduleEvent::Skipped { due, next, missed, at });
    } else {
        let run = stamp.id(0);
        step.push(ScheduleEvent::Due { run, due: Some(due), next, missed, at });
        begin(step, run);
    }
    wake(step);
}

/// The next time after this one that is still to come.
fn next_after(times: &Times, due: Timestamp, now: Timestamp) -> Next {
    times.next(Some(due), now.max(due))
}

/// Has the queue tell when the next time is due.
fn wake(step: &mut Step<ScheduleMachine>) {
    let (Some(config), Some(due)) = (step.state().config.as_ref(), step.state().next) else { return };
    let to = actor_id(config.workspace, config.schedule);
    if let Ok(command) = serde_json::to_value(ScheduleCommand::Tick { due }) {
        step.send(OutboxMessage { to, command, deliver_at: Some(due), priority: 0 });
    }
}

/// Has the queue bring a command behind the run that is beginning. The state has one such run, and a second one would take its place: the report of the first one
/// would come to nothing, and no crash would begin it again. A command finds a run at its beginning only where a worker was lost or cut short: a message is taken in
/// when nothing of the one before it is in flight.
fn come_again(step: &mut Step<ScheduleMachine>, command: &ScheduleCommand) {
    let Some(config) = step.state().config.as_ref() else { return };
    let to = actor_id(config.workspace, config.schedule);
    if let Ok(command) = serde_json::to_value(command) {
        step.send(OutboxMessage::now(to, command, 0));
    }
}

fn begin(step: &mut Step<ScheduleMachine>, run: Uuid) {
    let state = step.state();
    let Some(config) = state.config.clone() else { return };
    // A person who asks for a run gets it.
    let is_due = state.last.as_ref().is_some_and(|last| last.due.is_some());
    let after = state.last_work.clone().filter(|_| is_due && config.overlap == OverlapPolicy::Skip);
    let key = EffectKey(format!("run/{}/{}", run.hyphenated(), state.attempt));
    step.run(key, ScheduleEffect { run, config, after });
}

fn reported(step: &mut Step<ScheduleMachine>, run: Uuid, outcome: Result<StartedWork, Error>, at: Timestamp) {
    if step.state().beginning != Some(run) {
        return;
    }
    match outcome {
        Ok(began) => step.push(ScheduleEvent::Began { run, began, at }),
        Err(error) => {
            // A person who left, or lost the right, is asked by nobody again and again.
            let pauses = matches!(error.code, Code::Forbidden | Code::Unauthorized);
            step.push(ScheduleEvent::Failed { run, error: error.clone(), at });
            if pauses && step.state().paused.is_none() {
                step.push(ScheduleEvent::Paused { error: Some(error), at });
            }
        }
    }
}
