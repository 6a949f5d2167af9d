//! Schedules: chats, messages, tasks and calls of tools that begin at a time, or again and again by a rule.

use crate::{
    Context,
    access::{Access, Converse, Read, demand},
    chats::check_model,
    error::{Answer, excerpt},
    extract::{Json, Query},
    full_disk::demand_room,
    ids::Ids,
    rate_limits::{Paced, admit},
    schema,
    workspaces::{InWorkspace, Paging},
};
use ::schedule::{Action, MissedPolicy, NewTimes, OverlapPolicy, ScheduleChange, ScheduleView, StartedWork};
use axum::{extract::State, response::IntoResponse};
use domain::{CommandId, Error, Principal, Timestamp, WorkspaceId};
use http::{StatusCode, header};
use identity::{Caller, Role};
use serde::Deserialize;
use std::sync::Arc;
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

/// The schedule of a path.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct InSchedule {
    /// The workspace.
    #[param(value_type = Uuid)]
    workspace_id: WorkspaceId,
    /// The schedule.
    schedule_id: Uuid,
}

/// A schedule to make: `at` for once, or `rrule` for again and again.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewSchedule {
    /// Its name: 1 to 100 characters.
    #[schema(min_length = 1, max_length = 100, example = "Daily brief")]
    name: String,
    /// The moment, for a schedule that is due once.
    #[schema(value_type = Option<String>, format = DateTime)]
    at: Option<Timestamp>,
    /// The rule of RFC 5545 §3.3.10, without COUNT and BYSECOND.
    #[schema(max_length = 300, example = "FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR")]
    rrule: Option<String>,
    /// The time zone of the IANA database, for a rule [default: UTC].
    #[schema(max_length = 64, example = "Europe/Berlin")]
    time_zone: Option<String>,
    /// The first moment on the clock of the zone, from which a rule takes the parts that it does not name [default: this minute].
    #[schema(example = "2026-12-01T08:00:00")]
    begins: Option<String>,
    /// The treatment of times that passed while nothing ran.
    #[serde(default)]
    #[schema(value_type = schema::MissedRunPolicy)]
    missed: MissedPolicy,
    /// The treatment of a run that is due while the work of an earlier run is not done.
    #[serde(default)]
    #[schema(value_type = schema::OverlapPolicy)]
    overlap: OverlapPolicy,
    /// The work that begins.
    #[schema(value_type = schema::ScheduleAction)]
    action: Action,
}

/// Changes of a schedule; what is left out stays.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ScheduleChanges {
    /// Another name.
    #[schema(min_length = 1, max_length = 100)]
    name: Option<String>,
    /// Another moment, for a schedule that is due once from now on.
    #[schema(value_type = Option<String>, format = DateTime)]
    at: Option<Timestamp>,
    /// Another rule.
    #[schema(max_length = 300)]
    rrule: Option<String>,
    /// The time zone, beside `rrule` [default: UTC].
    #[schema(max_length = 64)]
    time_zone: Option<String>,
    /// The first moment, beside `rrule` [default: this minute].
    begins: Option<String>,
    /// Another treatment of missed times.
    #[schema(value_type = Option<schema::MissedRunPolicy>)]
    missed: Option<MissedPolicy>,
    /// Another treatment of work that is not done.
    #[schema(value_type = Option<schema::OverlapPolicy>)]
    overlap: Option<OverlapPolicy>,
    /// Another action.
    #[schema(value_type = Option<schema::ScheduleAction>)]
    action: Option<Action>,
    /// Whether nothing begins until it is resumed.
    paused: Option<bool>,
}

/// The times of a request: one of `at` and `rrule`, if any.
fn times_of(
    at: Option<Timestamp>,
    rrule: Option<String>,
    time_zone: Option<String>,
    begins: Option<String>,
) -> Result<Option<NewTimes>, Error> {
    match (at, rrule) {
        (Some(_), Some(_)) => {
            Err(Error::invalid("rrule", "a schedule is due once or by a rule").hint("send at or rrule, and not both"))
        }
        (at, None) if time_zone.is_some() || begins.is_some() => {
            let field = if time_zone.is_some() { "time_zone" } else { "begins" };
            let hint = if at.is_some() { "leave it out: at names its moment" } else { "send rrule along" };
            Err(Error::invalid(field, "it is for a rule alone").hint(hint))
        }
        (Some(at), None) => Ok(Some(NewTimes::Once(at))),
        (None, Some(rrule)) => {
            Ok(Some(NewTimes::Rule { rrule, time_zone: time_zone.unwrap_or_else(|| "UTC".into()), begins }))
        }
        (None, None) => Ok(None),
    }
}

/// Refuses an action to a caller without the rights to begin it. To begin a run of a schedule, or to give it other times, takes these, too, also from its
/// maker: a key of theirs may have fewer.
pub(crate) fn demand_rights(caller: &Caller, role: Role, action: &Action) -> Result<(), Error> {
    match action {
        Action::Task { .. } => demand(caller, role, identity::Action::Run),
        Action::Tool { .. } => {
            demand(caller, role, identity::Action::Write)?;
            // A file that the tool writes may begin a flow, by the right that the maker of the schedule has when it is due.
            demand(caller, role, identity::Action::Run)
        }
        Action::Message { .. } | Action::Chat { .. } | Action::DailyBrief { .. } => Ok(()),
    }
}

/// Refuses an action that the caller could not begin now.
pub(crate) async fn may_begin(
    context: &Context,
    workspace: WorkspaceId,
    caller: &Caller,
    role: Role,
    action: &Action,
) -> Result<(), Error> {
    demand_rights(caller, role, action)?;
    match action {
        Action::Task { .. } => Ok(()),
        // On AWS only workers have tools that reach the network: such a one is looked up when it is due.
        Action::Tool { tool, .. } => match tool.as_str() {
            "sync_calendar" => Ok(()),
            tool if context.tools.kind(tool).is_some() => Ok(()),
            tool => Err(Error::invalid("action.tool", format!("there is no tool {:?}", excerpt(tool)))
                .hint("GET …/tools lists them")),
        },
        Action::Message { chat_id, .. } => context.chats.get(workspace, *chat_id).await.map(drop),
        Action::Chat { model, .. } | Action::DailyBrief { model } => {
            check_model(context, "action.model", model.as_deref())
        }
    }
}

/// Makes a schedule. It acts for the caller, with the rights that they have when it is due.
#[utoipa::path(post, path = "/api/v1/workspaces/{workspace_id}/schedules", tag = "schedules", params(InWorkspace),
    request_body = NewSchedule,
    responses((status = 202, description = "It is accepted.", body = schema::Schedule)))]
pub(crate) async fn create_schedule(
    State(context): State<Arc<Context>>,
    Access { at, by, caller, role, .. }: Access<Converse, InWorkspace>,
    _: Paced,
    ids: Ids,
    Json(asked): Json<NewSchedule>,
) -> Answer<impl IntoResponse> {
    let NewSchedule { name, at: moment, rrule, time_zone, begins, missed, overlap, action } = asked;
    may_begin(&context, at.workspace_id, &caller, role, &action).await?;
    let times = times_of(moment, rrule, time_zone, begins)?.ok_or_else(|| {
        Error::invalid("rrule", "a schedule needs its times").hint("send at, or rrule such as FREQ=DAILY")
    })?;
    let may_not_run = demand(&caller, role, identity::Action::Run).is_err();
    let new = ::schedule::NewSchedule { name, times, missed, overlap, action, may_not_run };
    let (id, command) = (ids.id("schedule"), CommandId(ids.id("create")));
    let view = context.schedules.create(at.workspace_id, id, command, new, &by).await?;
    let place = format!("/api/v1/workspaces/{}/schedules/{id}", at.workspace_id);
    Ok((StatusCode::ACCEPTED, [(header::LOCATION, place)], axum::Json(view)))
}

/// The schedules of a workspace, the oldest first.
#[utoipa::path(get, path = "/api/v1/workspaces/{workspace_id}/schedules", tag = "schedules", params(InWorkspace, Paging),
    responses((status = 200, description = "A page of them.", body = schema::SchedulePage)))]
pub(crate) async fn list_schedules(
    State(context): State<Arc<Context>>,
    Access { at, by, .. }: Access<Read, InWorkspace>,
    Query(paging): Query<Paging>,
) -> Answer<impl IntoResponse> {
    let mut page = context.schedules.list(at.workspace_id, paging.limit()?, paging.cursor).await?;
    page.schedules = page.schedules.into_iter().map(|view| view_for(view, &by)).collect();
    Ok(axum::Json(page))
}

/// A schedule as this party sees it. The answer of a tool is for its maker alone: it tells what they may read, such as their home.
fn view_for(mut view: ScheduleView, to: &Principal) -> ScheduleView {
    if view.user_id != to.user()
        && let Some(last) = &mut view.last_run
        && matches!(last.began, Some(StartedWork::Output(_)))
    {
        last.began = None;
    }
    view
}

/// A schedule, with its next time and its last run.
#[utoipa::path(get, path = "/api/v1/workspaces/{workspace_id}/schedules/{schedule_id}", tag = "schedules",
    params(InSchedule), responses((status = 200, description = "The schedule.", body = schema::Schedule)))]
pub(crate) async fn get_schedule(
    State(context): State<Arc<Context>>,
    Access { at, by, .. }: Access<Read, InSchedule>,
) -> Answer<impl IntoResponse> {
    Ok(axum::Json(view_for(context.schedules.get(at.workspace_id, at.schedule_id).await?, &by)))
}

/// Changes, pauses or resumes a schedule. It acts with the rights of its maker, who alone changes it (`FORBIDDEN`); everybody who may converse
/// pauses it, and everybody who may do what it does resumes it.
#[utoipa::path(patch, path = "/api/v1/workspaces/{workspace_id}/schedules/{schedule_id}", tag = "schedules",
    params(InSchedule), request_body = ScheduleChanges,
    responses((status = 202, description = "It is accepted.", body = schema::Schedule)))]
pub(crate) async fn change_schedule(
    State(context): State<Arc<Context>>,
    Access { at, by, caller, role, .. }: Access<Converse, InSchedule>,
    ids: Ids,
    Json(asked): Json<ScheduleChanges>,
) -> Answer<impl IntoResponse> {
    let ScheduleChanges { name, at: moment, rrule, time_zone, begins, missed, overlap, action, paused } = asked;
    if let Some(action) = &action {
        may_begin(&context, at.workspace_id, &caller, role, action).await?;
    }
    let times = times_of(moment, rrule, time_zone, begins)?;
    let changes = name.is_some() || times.is_some() || missed.is_some() || overlap.is_some() || action.is_some();
    if changes || paused == Some(false) {
        demand_room(&context.base)?;
    }
    // New times may be those of now, and a schedule that goes on may be due. A pause is never refused.
    if times.is_some() || paused == Some(false) {
        if action.is_none() {
            let schedule = context.schedules.get(at.workspace_id, at.schedule_id).await?;
            demand_rights(&caller, role, &schedule.action)?;
        }
        admit(&context, caller.user).await?;
    }
    if !changes && paused.is_none() {
        return Err(Error::invalid("body", "there is nothing to change")
            .hint("send paused, a name, times or an action")
            .into());
    }
    let (workspace, schedule) = (at.workspace_id, at.schedule_id);
    if changes {
        let may_not_run = demand(&caller, role, identity::Action::Run).is_err();
        let change = ScheduleChange { name, times, missed, overlap, action, may_not_run };
        context.schedules.change(workspace, schedule, CommandId(ids.id("change")), change, &by).await?;
    }
    if let Some(paused) = paused {
        context.schedules.pause(workspace, schedule, CommandId(ids.id("pause")), paused, &by).await?;
    }
    Ok((StatusCode::ACCEPTED, axum::Json(view_for(context.schedules.get(workspace, schedule).await?, &by))))
}

/// Removes a schedule; chats and tasks that it began stay.
#[utoipa::path(delete, path = "/api/v1/workspaces/{workspace_id}/schedules/{schedule_id}", tag = "schedules",
    params(InSchedule), responses((status = 204, description = "It is going.")))]
pub(crate) async fn delete_schedule(
    State(context): State<Arc<Context>>,
    Access { at, by, .. }: Access<Converse, InSchedule>,
    ids: Ids,
) -> Answer<impl IntoResponse> {
    context.schedules.delete(at.workspace_id, at.schedule_id, CommandId(ids.id("delete")), &by).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Begins a run now, besides the times. It acts for the maker of the schedule, and needs the right to do what it does.
#[utoipa::path(post, path = "/api/v1/workspaces/{workspace_id}/schedules/{schedule_id}/run", tag = "schedules",
    params(InSchedule), responses((status = 202, description = "It is accepted.", body = schema::AcceptedRun)))]
pub(crate) async fn run_schedule(
    State(context): State<Arc<Context>>,
    Access { at, by, caller, role, .. }: Access<Converse, InSchedule>,
    _: Paced,
    ids: Ids,
) -> Answer<impl IntoResponse> {
    demand_rights(&caller, role, &context.schedules.get(at.workspace_id, at.schedule_id).await?.action)?;
    let (run, command) = (ids.id("run"), CommandId(ids.id("command")));
    context.schedules.run_now(at.workspace_id, at.schedule_id, command, run, &by).await?;
    Ok((StatusCode::ACCEPTED, axum::Json(schema::AcceptedRun { schedule_id: at.schedule_id, run })))
}
