//! The way in to schedules: made, listed, changed, paused, run and removed.

use crate::{
    config::{Action, MissedPolicy, OverlapPolicy, ScheduleConfig, new_chat},
    event::ScheduleCommand,
    machine::{actor_id, partition, view_index, view_key},
    rule::{Times, TimesError},
    state::{ScheduleState, ScheduleView},
};
use actor::{Content, Envelope, Mailbox};
use domain::{Code, CommandId, Error, Mode, Principal, Timestamp, WorkspaceId, chat::persona_name};
use ports::{Clock, Expect, Query, Table, URGENT, Write, validate};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;
use uuid::Uuid;
use workspace::Workspaces;

/// The most schedules of a workspace.
const MOST: usize = 200;
/// The longest name, in characters.
const MAX_NAME: usize = 100;
/// The longest name of a persona, and of a model, in characters.
const MAX_NAMED: usize = 200;
/// The largest input of a task, goal or message, in bytes.
const MAX_ACTION: usize = 32 * 1024;

/// Schedules.
///
/// # Errors
/// Of every method: `NOT_FOUND` for a workspace or schedule that there is not, `UPSTREAM_UNAVAILABLE` when the store does not answer.
#[derive(Clone)]
pub struct Schedules {
    table: Arc<dyn Table>,
    mailbox: Mailbox,
    clock: Arc<dyn Clock>,
    workspaces: Workspaces,
}

/// A schedule to make.
#[derive(Clone, Debug)]
pub struct NewSchedule {
    /// Its name.
    pub name: String,
    /// When it is due.
    pub times: NewTimes,
    /// The treatment of times that passed while nothing ran.
    pub missed: MissedPolicy,
    /// The treatment of a run that is due while the work of an earlier run is not done.
    pub overlap: OverlapPolicy,
    /// The work that begins.
    pub action: Action,
    /// Whether the caller may run no flows: then no file that an agent of that work writes starts one.
    pub may_not_run: bool,
}

/// Times as people give them.
#[derive(Clone, Debug)]
pub enum NewTimes {
    /// Once.
    Once(Timestamp),
    /// By a rule.
    Rule {
        /// The rule, such as `FREQ=DAILY`.
        rrule: String,
        /// The time zone.
        time_zone: String,
        /// The first moment on the clock of the zone, such as `2026-12-01T08:00:00`; this minute when none.
        begins: Option<String>,
    },
}

/// Changes of a schedule; none leaves a value as it is.
#[derive(Clone, Debug, Default)]
pub struct ScheduleChange {
    /// Another name.
    pub name: Option<String>,
    /// Other times.
    pub times: Option<NewTimes>,
    /// Another treatment of missed times.
    pub missed: Option<MissedPolicy>,
    /// Another treatment of work that is not done.
    pub overlap: Option<OverlapPolicy>,
    /// Another action.
    pub action: Option<Action>,
    /// Whether the caller may run no flows, as for a [`NewSchedule`].
    pub may_not_run: bool,
}

/// A page of schedules, the oldest first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SchedulePage {
    /// The schedules.
    pub schedules: Vec<ScheduleView>,
    /// The cursor of the next page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

impl NewTimes {
    fn checked(self, now: Timestamp) -> Result<Times, Error> {
        let never = match &self {
            Self::Once(_) => ("at", "a time in the future"),
            Self::Rule { rrule, .. } if rrule.to_uppercase().contains("UNTIL=") => {
                ("rrule", "leave UNTIL out, or set it later")
            }
            Self::Rule { .. } => ("rrule", "name days and times that there are: no time fits all of its parts"),
        };
        let times = match self {
            Self::Once(at) => Times::once(at, now),
            Self::Rule { rrule, time_zone, begins } => Times::rule(&rrule, &time_zone, begins.as_deref(), now),
        };
        times.map_err(|error| {
            let (field, hint) = match &error {
                TimesError::Rule(_) | TimesError::TooOften => ("rrule", "such as FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR"),
                TimesError::Zone(_) => ("time_zone", "a name of the IANA database, such as Europe/Berlin"),
                TimesError::Begins(_) => ("begins", "the first time on the clock of the zone, without an offset"),
                TimesError::Never => never,
            };
            Error::invalid(field, error.to_string()).hint(hint)
        })
    }
}

impl Schedules {
    /// Over these.
    pub fn new(table: Arc<dyn Table>, mailbox: Mailbox, clock: Arc<dyn Clock>, workspaces: Workspaces) -> Self {
        Self { table, mailbox, clock, workspaces }
    }

    /// Makes a schedule; the same id again changes nothing.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` with the field; `CONFLICT` when the workspace has 200 schedules; those of [`Schedules`].
    pub async fn create(
        &self,
        workspace: WorkspaceId,
        schedule: Uuid,
        command: CommandId,
        new: NewSchedule,
        by: &Principal,
    ) -> Result<ScheduleView, Error> {
        self.workspaces.get(workspace).await?;
        let now = self.clock.now();
        let NewSchedule { name, times, missed, overlap, action, may_not_run } = new;
        let name = domain::checked_name("name", &name, MAX_NAME)?;
        check(&action)?;
        // The search for the times of a rule computes.
        let times = ::workspace::blocking::run(move || times.checked(now)).await.map_err(internal)??;
        let (user, created_at) = (by.user(), now);
        let config =
            ScheduleConfig { workspace, schedule, user, name, times, missed, overlap, action, may_not_run, created_at };
        let is_full = self.list(workspace, MOST, None).await?.schedules.len() >= MOST;
        // A repetition adds no schedule.
        if is_full && self.table.get(&view_key(workspace, schedule)).await.map_err(internal)?.is_none() {
            return Err(Error::new(Code::Conflict, format!("a workspace has {MOST} schedules at most"))
                .hint("remove one that has ended"));
        }
        let next = config.times.next(None, now).at;
        let state = ScheduleState { config: Some(config.clone()), next, ..ScheduleState::default() };
        let view = ScheduleView::of(&state).ok_or_else(|| Error::not_found("schedule", schedule))?;
        let body = serde_json::to_string(&view).map_err(internal)?;
        // The message first: a view without a schedule would be listed for ever, run nothing, and take no command, not even that to remove it.
        self.send(workspace, schedule, command, by, ScheduleCommand::Create { config: Box::new(config.clone()) })
            .await?;
        // Then the view, unless the schedule has written it, so that it is there when this answers.
        let write = Write::put(view_key(workspace, schedule), body, Expect::Absent).indexed(view_index(&config));
        match self.table.commit(vec![write]).await {
            Ok(()) | Err(ports::Error::Conflict { .. }) => {}
            Err(error) => return Err(internal(error)),
        }
        Ok(view)
    }

    /// The schedule as it is.
    ///
    /// # Errors
    /// Those of [`Schedules`].
    pub async fn get(&self, workspace: WorkspaceId, schedule: Uuid) -> Result<ScheduleView, Error> {
        let item = self.table.get(&view_key(workspace, schedule)).await.map_err(internal)?;
        let item = item.ok_or_else(|| Error::not_found("schedule", schedule))?;
        serde_json::from_str(&item.body).map_err(internal)
    }

    /// The schedules of a workspace, the oldest first.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for a cursor of another list; those of [`Schedules`].
    pub async fn list(
        &self,
        workspace: WorkspaceId,
        limit: usize,
        cursor: Option<String>,
    ) -> Result<SchedulePage, Error> {
        self.workspaces.get(workspace).await?;
        let query = Query::all(partition(workspace), limit).after(cursor);
        let page = self.table.query_index(&query).await;
        let page = page.map_err(validate::of_page(&query, internal))?;
        let schedules = ports::readable(&page.items).map(|(_, view)| view).collect();
        Ok(SchedulePage { schedules, next_cursor: page.next })
    }

    /// Sets a schedule up anew. Only its own person may: it acts with their rights.
    ///
    /// # Errors
    /// `FORBIDDEN` for another person, `INVALID_ARGUMENT` with the field; those of [`Schedules`].
    pub async fn change(
        &self,
        workspace: WorkspaceId,
        schedule: Uuid,
        command: CommandId,
        change: ScheduleChange,
        by: &Principal,
    ) -> Result<ScheduleView, Error> {
        let mut view = self.get(workspace, schedule).await?;
        if view.user_id != by.user() {
            return Err(Error::new(
                Code::Forbidden,
                "a schedule acts with the rights of its maker, who alone changes it",
            )
            .hint("make one of your own; you may pause and remove this one"));
        }
        let now = self.clock.now();
        let ScheduleChange { name, times, missed, overlap, action, may_not_run } = change;
        if let Some(times) = times {
            view.times = ::workspace::blocking::run(move || times.checked(now)).await.map_err(internal)??;
        }
        // A schedule that was made before a rule keeps its name and its action until it is given another one.
        if let Some(name) = name {
            view.name = domain::checked_name("name", &name, MAX_NAME)?;
        }
        if let Some(action) = action {
            check(&action)?;
            view.action = action;
        }
        view.missed = missed.unwrap_or(view.missed);
        view.overlap = overlap.unwrap_or(view.overlap);
        let config = ScheduleConfig {
            workspace,
            schedule,
            user: view.user_id,
            name: view.name.clone(),
            times: view.times.clone(),
            missed: view.missed,
            overlap: view.overlap,
            action: view.action.clone(),
            may_not_run,
            created_at: view.created_at,
        };
        self.send(workspace, schedule, command, by, ScheduleCommand::Change { config: Box::new(config) }).await?;
        Ok(view)
    }

    /// Pauses or resumes a schedule.
    ///
    /// # Errors
    /// Those of [`Schedules`].
    pub async fn pause(
        &self,
        workspace: WorkspaceId,
        schedule: Uuid,
        command: CommandId,
        paused: bool,
        by: &Principal,
    ) -> Result<(), Error> {
        self.get(workspace, schedule).await?;
        let body = if paused { ScheduleCommand::Pause } else { ScheduleCommand::Resume };
        self.send(workspace, schedule, command, by, body).await
    }

    /// Begins a run now, besides the times; its id.
    ///
    /// # Errors
    /// Those of [`Schedules`].
    pub async fn run_now(
        &self,
        workspace: WorkspaceId,
        schedule: Uuid,
        command: CommandId,
        run: Uuid,
        by: &Principal,
    ) -> Result<(), Error> {
        self.get(workspace, schedule).await?;
        self.send(workspace, schedule, command, by, ScheduleCommand::RunNow { run }).await
    }

    /// Removes a schedule. The chats and tasks that it began stay.
    ///
    /// # Errors
    /// Those of [`Schedules`].
    pub async fn delete(
        &self,
        workspace: WorkspaceId,
        schedule: Uuid,
        command: CommandId,
        by: &Principal,
    ) -> Result<(), Error> {
        self.get(workspace, schedule).await?;
        self.send(workspace, schedule, command, by, ScheduleCommand::Delete).await
    }

    async fn send(
        &self,
        workspace: WorkspaceId,
        schedule: Uuid,
        id: CommandId,
        by: &Principal,
        body: ScheduleCommand,
    ) -> Result<(), Error> {
        let ends_work = matches!(body, ScheduleCommand::Pause | ScheduleCommand::Delete);
        let envelope = Envelope { id, at: self.clock.now(), by: by.clone(), content: Content::Command { body } };
        let mut message = envelope.to(&actor_id(workspace, schedule)).map_err(internal)?;
        if ends_work {
            message.priority = URGENT;
        }
        self.mailbox.send(message).await.map_err(internal)
    }
}

/// Whether a schedule can have this action.
fn check(action: &Action) -> Result<(), Error> {
    let (role, model) = match action {
        Action::Chat { role, model, .. } => (role.as_deref(), model.as_deref()),
        Action::DailyBrief { model } => (None, model.as_deref()),
        Action::Message { .. } | Action::Task { .. } | Action::Tool { .. } => (None, None),
    };
    for (field, name) in [("action.role", role), ("action.model", model)] {
        if name.is_some_and(|name| name.chars().count() > MAX_NAMED || name.chars().any(char::is_control)) {
            return Err(Error::invalid(field, format!("a name has at most {MAX_NAMED} characters on one line")));
        }
    }
    if role.is_some_and(|role| !domain::is_folder_name(persona_name(role))) {
        return Err(Error::invalid("action.role", "no persona can have this name")
            .hint("a persona is named as its folder under /system/agents"));
    }
    if matches!(action, Action::Task { flow, .. } if !domain::is_flow_name(flow)) {
        return Err(Error::invalid("action.flow", "no flow can have this name")
            .hint("a flow is named as its folder under /system/flows"));
    }
    let (field, length, is_empty) = match action {
        Action::Chat { mode: Mode::Build, .. } => {
            return Err(Error::invalid(
                "action.mode",
                "a schedule carries out no plan: a person approves it by its version",
            )
            .hint("use chat or plan"));
        }
        Action::Chat { goal, role, model, mode, scenario, limits } => {
            new_chat(goal.clone(), role.clone(), model.clone(), *mode, *scenario, *limits)?;
            ("action.goal", goal.len(), goal.trim().is_empty())
        }
        Action::DailyBrief { .. } => return Ok(()),
        Action::Message { content, .. } => ("action.content", content.len(), content.trim().is_empty()),
        Action::Task { flow, input } => ("action.input", input.to_string().len() + flow.len(), false),
        Action::Tool { tool, args } => {
            ("action.args", domain::json_length(&Value::Object(args.clone())) + tool.len(), tool.trim().is_empty())
        }
    };
    if is_empty {
        let field = if field == "action.args" { "action.tool" } else { field };
        return Err(Error::invalid(field, "it is empty"));
    }
    if length > MAX_ACTION {
        return Err(Error::invalid(field, format!("it has {length} bytes; {MAX_ACTION} fit"))
            .hint("put long texts into a file, and name it"));
    }
    Ok(())
}

fn internal(error: impl std::error::Error + 'static) -> Error {
    engine::error::internal(error)
}
