//! A schedule as it is: the fold of its events, and its view in lists.

use crate::{
    config::{Action, MissedPolicy, OverlapPolicy, ScheduleConfig, StartedWork},
    event::ScheduleEvent,
    rule::Times,
};
use domain::{Error, Timestamp, UserId, WorkspaceId};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// The states of a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ScheduleStatus {
    /// It waits for its next time.
    Active,
    /// A person paused it, or it was paused because its person lost the right to what it begins.
    Paused,
    /// It has no time left.
    Ended,
}

/// The last run of a schedule.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LastRun {
    /// Its id.
    pub run: Uuid,
    /// The time that it was due; none for one that a person asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub due: Option<Timestamp>,
    /// When it began.
    pub at: Timestamp,
    /// The chat or task that it began; none while it is beginning, or when it failed.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub began: Option<StartedWork>,
    /// Why it began nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<Error>,
}

/// The fold of the log.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ScheduleState {
    /// How it is set up; none before it is made.
    pub config: Option<ScheduleConfig>,
    /// Its next time; none when it is paused, ended or deleted.
    pub next: Option<Timestamp>,
    /// The last time of the rule that was due, whether it ran or was skipped.
    pub last_due: Option<Timestamp>,
    /// Whether it is paused, and the reason where no person paused it.
    pub paused: Option<Option<Error>>,
    /// The run that is beginning.
    pub beginning: Option<Uuid>,
    /// How often its beginning was tried.
    #[serde(default)]
    pub attempt: u32,
    /// The last run.
    pub last: Option<LastRun>,
    /// The work of the last run that began any; later runs may have begun none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_work: Option<StartedWork>,
    /// How many runs began.
    pub runs: u64,
    /// How many times were skipped or missed.
    pub skipped: u64,
    /// Whether it was deleted.
    pub deleted: bool,
}

impl ScheduleState {
    pub(crate) fn apply(&mut self, event: &ScheduleEvent) {
        match event {
            ScheduleEvent::Created { config, next, .. } | ScheduleEvent::Changed { config, next, .. } => {
                let is_new_time = self.config.as_ref().is_none_or(|now| now.times != config.times);
                if is_new_time {
                    self.last_due = None;
                }
                self.config = Some((**config).clone());
                self.next = *next;
            }
            ScheduleEvent::Paused { error, .. } => {
                self.paused = Some(error.clone());
                self.next = None;
            }
            ScheduleEvent::Resumed { next, .. } => {
                self.paused = None;
                self.next = *next;
            }
            ScheduleEvent::Due { run, due, next, missed, at } => {
                (self.beginning, self.attempt) = (Some(*run), 1);
                self.last = Some(LastRun { run: *run, due: *due, at: *at, began: None, error: None });
                self.skipped += u64::from(*missed);
                if due.is_some() {
                    (self.last_due, self.next) = (*due, *next);
                }
            }
            ScheduleEvent::Retried { attempt, .. } => self.attempt = *attempt,
            ScheduleEvent::Skipped { due, next, missed, .. } => {
                (self.last_due, self.next) = (Some(*due), *next);
                self.skipped += u64::from(*missed) + 1;
            }
            ScheduleEvent::Began { run, began, .. } => {
                self.beginning = None;
                self.runs += 1;
                self.last_work = Some(began.clone());
                if let Some(last) = self.last.as_mut().filter(|last| last.run == *run) {
                    last.began = Some(began.clone());
                }
            }
            ScheduleEvent::Failed { run, error, .. } => {
                self.beginning = None;
                if let Some(last) = self.last.as_mut().filter(|last| last.run == *run) {
                    last.error = Some(error.clone());
                }
            }
            ScheduleEvent::Deleted { .. } => {
                self.deleted = true;
                (self.next, self.beginning) = (None, None);
            }
        }
    }

    /// Its state, as people see it.
    pub fn status(&self) -> ScheduleStatus {
        match (&self.paused, self.next) {
            (Some(_), _) => ScheduleStatus::Paused,
            (None, Some(_)) => ScheduleStatus::Active,
            (None, None) => ScheduleStatus::Ended,
        }
    }
}

/// A schedule as lists and clients see it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScheduleView {
    /// Its id.
    pub schedule_id: Uuid,
    /// Its workspace.
    pub workspace_id: WorkspaceId,
    /// The person for whom it acts.
    pub user_id: UserId,
    /// Its name.
    pub name: String,
    /// When it is due.
    pub times: Times,
    /// The treatment of times that passed while nothing ran.
    pub missed: MissedPolicy,
    /// The treatment of a run that is due while the work of an earlier run is not done.
    #[serde(default, skip_serializing_if = "OverlapPolicy::begins")]
    pub overlap: OverlapPolicy,
    /// The work that begins when it is due.
    pub action: Action,
    /// Its state.
    pub status: ScheduleStatus,
    /// Why it is paused, where no person paused it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused_because: Option<Error>,
    /// Its next time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_at: Option<Timestamp>,
    /// Its last run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_run: Option<LastRun>,
    /// How many runs began.
    pub runs: u64,
    /// How many times were skipped or missed.
    pub skipped: u64,
    /// When it was made.
    pub created_at: Timestamp,
}

impl ScheduleView {
    /// Of this state; none before the schedule is made, and after its deletion.
    pub fn of(state: &ScheduleState) -> Option<Self> {
        let config = state.config.clone().filter(|_| !state.deleted)?;
        Some(Self {
            schedule_id: config.schedule,
            workspace_id: config.workspace,
            user_id: config.user,
            name: config.name,
            times: config.times,
            missed: config.missed,
            overlap: config.overlap,
            action: config.action,
            status: state.status(),
            paused_because: state.paused.clone().flatten(),
            next_at: state.next,
            last_run: state.last.clone(),
            runs: state.runs,
            skipped: state.skipped,
            created_at: config.created_at,
        })
    }
}
