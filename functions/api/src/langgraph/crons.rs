//! Crons: the schedules of the workspace.

use super::{MOST, OfThread, Thread, assistants::meant, part, selected, start::another, texts};
use crate::{
    Context,
    access::{Converse, Read, demand},
    converse::Speaker,
    error::Answer,
    extract::{Json, Open, Path, Traced},
    full_disk::demand_room,
    hub::Within,
    ids::Ids,
    rate_limits::{Paced, admit},
    schedules::{demand_rights, may_begin},
};
use ::schedule::{
    Action, MissedPolicy, NewSchedule, NewTimes, OverlapPolicy, ScheduleChange, ScheduleStatus, ScheduleView, Times,
};
use axum::extract::State;
use domain::{CommandId, Error, Limits, Mode, WorkspaceId};
use http::StatusCode;
use protocols::{
    fields::{flag, text},
    langgraph::{self as wire, AssistantKind, Input, Strategy},
};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use utoipa::IntoParams;
use uuid::Uuid;

/// The fields of a cron beside those of its run.
const FIELDS: [&str; 4] = ["schedule", "timezone", "end_time", "enabled"];

/// The cron of a path.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct OfCron {
    /// The cron, which is a schedule.
    cron_id: Uuid,
}

impl Open for OfCron {}

/// A schedule as a cron. One that was made elsewhere shows its rule.
fn cron_json(view: &ScheduleView) -> Value {
    let (schedule, zone, end) = match &view.times {
        Times::Rule { rrule, time_zone, .. } => {
            let schedule = wire::expression(&view.name, rrule).unwrap_or_else(|| rrule.clone());
            (schedule, Some(time_zone), wire::end_time(rrule))
        }
        Times::Once { at } => (at.to_string(), None, None),
    };
    let said = |content: &str| json!({ "messages": [{ "type": "human", "content": content }] });
    let (assistant, thread, input) = match &view.action {
        Action::Chat { goal, role, .. } => {
            (Some(AssistantKind::Persona.id(role.as_deref().unwrap_or("assistant"))), None, said(goal))
        }
        Action::Message { chat_id, content } => (None, Some(chat_id), said(content)),
        Action::Task { flow, input } => (Some(AssistantKind::Flow.id(flow)), None, input.clone()),
        // No run of this protocol is a call of a tool or a brief.
        Action::Tool { tool, .. } => (None, None, said(&format!("call {tool}"))),
        Action::DailyBrief { .. } => (None, None, said("write the daily brief")),
    };
    json!({
        "cron_id": view.schedule_id, "assistant_id": assistant, "thread_id": thread, "schedule": schedule, "timezone": zone,
        "created_at": view.created_at, "updated_at": view.created_at, "payload": { "assistant_id": assistant, "input": input },
        "user_id": view.user_id, "next_run_date": view.next_at, "end_time": end, "metadata": {},
        "enabled": view.status != ScheduleStatus::Paused, "on_run_completed": "keep",
    })
}

/// The same with the assistant of the chat that it posts to.
async fn shown_with_assistant(context: &Context, workspace: WorkspaceId, view: &ScheduleView) -> Value {
    let mut cron = cron_json(view);
    if let Action::Message { chat_id, .. } = &view.action
        && let Ok(chat) = context.chats.get(workspace, *chat_id).await
    {
        let assistant = AssistantKind::Persona.id(&chat.role);
        cron["assistant_id"] = json!(assistant);
        cron["payload"]["assistant_id"] = json!(assistant);
    }
    cron
}

/// The times of a body, and the name that keeps its expression.
fn times(body: &Map<String, Value>) -> Result<Option<(String, NewTimes)>, Error> {
    let (zone, end) = (text(body, "timezone")?, text(body, "end_time")?);
    let Some(expression) = text(body, "schedule")? else {
        let alone = zone.map(|_| "timezone").or(end.map(|_| "end_time"));
        return alone.map_or(Ok(None), |field| {
            Err(Error::invalid(field, format!("{field} goes with a schedule")).hint("send schedule along"))
        });
    };
    let name = expression.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut rrule = wire::rule(expression)?;
    if let Some(end) = end {
        let end = end.parse::<domain::Timestamp>().map_err(|_| {
            Error::invalid("end_time", "end_time is no moment").hint("such as 2026-12-24T08:00:00Z, with its offset")
        })?;
        rrule += &wire::until(end);
    }
    Ok(Some((name, NewTimes::Rule { rrule, time_zone: zone.unwrap_or("UTC").to_owned(), begins: None })))
}

/// The run of a cron: `body` without the fields of the cron itself.
fn run(body: &Map<String, Value>) -> Result<wire::Run, Error> {
    let fields = body.iter().filter(|(name, _)| !FIELDS.contains(&name.as_str()));
    let run = wire::Run::read(&fields.map(|(name, value)| (name.clone(), value.clone())).collect())?;
    if !run.breakpoints.is_empty() {
        return Err(Error::invalid("interrupt_before", "a run that begins by itself has nobody to go on for it"));
    }
    if run.thread.is_some() {
        return Err(Error::invalid("config", "the path names the thread of a cron").hint("leave thread_id out"));
    }
    if !run.labels.is_empty() {
        return Err(Error::invalid("metadata", "threads alone have labels").hint("leave metadata out"));
    }
    if run.checkpoint.is_some() {
        return Err(Error::invalid("checkpoint", "a run that begins by itself goes on at the last state"));
    }
    Ok(run)
}

async fn action(speaker: &Speaker<'_>, thread: Option<&str>, run: wire::Run) -> Result<Action, Error> {
    let assistant = meant(speaker, &run.assistant).await?;
    let limits = run.max_model_calls().map(Limits::of_steps);
    let input = match run.input {
        Input::New(input) => input,
        Input::Nothing if assistant.kind == AssistantKind::Flow => Value::Null,
        _ => return Err(Error::invalid("input", "a cron has an input").hint("send input with a message")),
    };
    let goes_alone = assistant.kind == AssistantKind::Persona && thread.is_none();
    if limits.is_some() && thread.is_some() {
        return Err(Error::invalid("config", "the message of a cron has the limits of its chat")
            .hint("leave recursion_limit out"));
    }
    if run.model.is_some() && !goes_alone {
        return Err(Error::invalid("config", "a flow and a chat have their models already").hint("leave model out"));
    }
    match (assistant.kind, thread) {
        (AssistantKind::Flow, None) => Ok(Action::Task { flow: assistant.name, input }),
        (AssistantKind::Flow, Some(_)) => {
            Err(Error::invalid("thread_id", "each run of a flow has a thread of its own")
                .hint("make the cron without a thread"))
        }
        (AssistantKind::Persona, None) => {
            let (goal, role, mode) = (alone(&input)?, Some(assistant.name), Mode::default());
            Ok(Action::Chat { goal, role, model: run.model, mode, scenario: None, limits })
        }
        (AssistantKind::Persona, Some(id)) => {
            let found = Thread::find(&speaker.context.base, speaker.workspace, id).await?.there(id)?;
            let Thread::Chat(view) = found else {
                return Err(
                    Error::invalid("thread_id", "the thread has no chat yet").hint("run the assistant in it once")
                );
            };
            if view.role != assistant.name {
                return Err(another(&view.role));
            }
            if run.strategy != Strategy::Enqueue {
                return Err(Error::invalid("multitask_strategy", "the message of a cron waits for its turn")
                    .hint("leave it out, or send enqueue"));
            }
            Ok(Action::Message { chat_id: view.chat_id, content: alone(&input)? })
        }
    }
}

/// The words of an input for a schedule, which keeps one message and no files.
fn alone(input: &Value) -> Result<String, Error> {
    let wire::Words { content, earlier, files } = wire::words(input)?;
    if !earlier.is_empty() {
        return Err(Error::invalid("input", "a cron says one message").hint("send the person's message alone"));
    }
    match files.is_empty() {
        true => Ok(content),
        false => Err(Error::invalid("input", "a schedule brings no files along")
            .hint("write them into the workspace, and name them in the message")),
    }
}

async fn created(
    context: &Context,
    within: &Within<Converse>,
    ids: Ids,
    thread: Option<&str>,
    body: &Map<String, Value>,
) -> Answer<axum::Json<Value>> {
    let (run, enabled) = (run(body)?, flag(body, "enabled")?);
    let (name, times) = times(body)?.ok_or_else(|| Error::invalid("schedule", "a cron has its schedule"))?;
    let speaker = Speaker::within(context, within, ids, Traced(None)).await?;
    let action = action(&speaker, thread, run).await?;
    may_begin(context, speaker.workspace, speaker.caller, speaker.role, &action).await?;
    let may_not_run = speaker.may_not_run();
    let (missed, overlap) = (MissedPolicy::default(), OverlapPolicy::default());
    let new = NewSchedule { name, times, missed, overlap, action, may_not_run };
    let (id, command) = (speaker.ids.id("schedule"), CommandId(speaker.ids.id("create")));
    let mut view = context.schedules.create(speaker.workspace, id, command, new, &speaker.by).await?;
    if enabled == Some(false) {
        let command = CommandId(speaker.ids.id("pause"));
        context.schedules.pause(speaker.workspace, id, command, true, &speaker.by).await?;
        view.status = ScheduleStatus::Paused;
    }
    let mut cron = shown_with_assistant(context, speaker.workspace, &view).await;
    if let Some(thread) = thread {
        // The client's own id of it.
        cron["thread_id"] = json!(thread);
    }
    Ok(axum::Json(cron))
}

/// Makes a cron whose runs have a thread of their own each.
#[utoipa::path(post, path = "/langgraph/runs/crons", tag = "langgraph", operation_id = "create_cron",
    request_body(content = Value, description = "`schedule` (five fields), `timezone`, `end_time`, `enabled`, and a run."),
    responses((status = 200, description = "It.", body = Value)))]
pub(crate) async fn create_cron(
    State(context): State<Arc<Context>>,
    within: Within<Converse>,
    _: Paced,
    ids: Ids,
    Json(body): Json<Map<String, Value>>,
) -> Answer<axum::Json<Value>> {
    created(&context, &within, ids, None, &body).await
}

/// Makes a cron whose runs are in one thread.
#[utoipa::path(post, path = "/langgraph/threads/{thread_id}/runs/crons", tag = "langgraph",
    operation_id = "create_thread_cron", params(OfThread), request_body(content = Value, description = "As that of `runs/crons`."),
    responses((status = 200, description = "It.", body = Value)))]
pub(crate) async fn create_thread_cron(
    State(context): State<Arc<Context>>,
    within: Within<Converse>,
    Path(OfThread { thread_id }): Path<OfThread>,
    _: Paced,
    ids: Ids,
    Json(body): Json<Map<String, Value>>,
) -> Answer<axum::Json<Value>> {
    created(&context, &within, ids, Some(&thread_id), &body).await
}

/// The crons, the oldest first.
#[utoipa::path(post, path = "/langgraph/runs/crons/search", tag = "langgraph", operation_id = "search_crons",
    request_body(content = Value, description = "`assistant_id`, `thread_id`, `enabled`, `limit`, `offset`, `select`."),
    responses((status = 200, description = "A part of them.", body = Value)))]
pub(crate) async fn search_crons(
    State(context): State<Arc<Context>>,
    within: Within<Read>,
    ids: Ids,
    Json(body): Json<Map<String, Value>>,
) -> Answer<axum::Json<Value>> {
    wire::plain(&body, &["assistant_id", "thread_id", "enabled", "limit", "offset", "select"])?;
    let ((offset, limit), select) = (part(&body, 10, MOST)?, texts(&body, "select")?);
    let speaker = Speaker::within(&context, &within, ids, Traced(None)).await?;
    let (views, assistant) = fitting(&speaker, &body).await?;
    let (mut found, mut passed) = (Vec::new(), 0);
    for view in &views {
        if found.len() == limit {
            break;
        }
        // The assistant costs a read of the chat, so it is looked up for the part that is shown, and for others only where it is asked for.
        let is_passed = passed < offset;
        if !is_passed || assistant.is_some() {
            let cron = shown_with_assistant(&context, speaker.workspace, view).await;
            if assistant.as_ref().is_some_and(|id| cron["assistant_id"] != **id) {
                continue;
            }
            if !is_passed {
                found.push(selected(cron, select.as_ref()));
            }
        }
        passed += 1;
    }
    Ok(axum::Json(found.into()))
}

/// The number of crons.
#[utoipa::path(post, path = "/langgraph/runs/crons/count", tag = "langgraph", operation_id = "count_crons",
    request_body(content = Value, description = "`assistant_id` and `thread_id`."),
    responses((status = 200, description = "It.", body = Value)))]
pub(crate) async fn count_crons(
    State(context): State<Arc<Context>>,
    within: Within<Read>,
    ids: Ids,
    Json(body): Json<Map<String, Value>>,
) -> Answer<axum::Json<Value>> {
    wire::plain(&body, &["assistant_id", "thread_id"])?;
    let speaker = Speaker::within(&context, &within, ids, Traced(None)).await?;
    let (views, assistant) = fitting(&speaker, &body).await?;
    let Some(assistant) = assistant else { return Ok(axum::Json(views.len().into())) };
    let mut count = 0;
    for view in &views {
        let cron = shown_with_assistant(&context, speaker.workspace, view).await;
        count += usize::from(cron["assistant_id"] == *assistant);
    }
    Ok(axum::Json(count.into()))
}

/// The crons in the thread and the state that a body names, the oldest first; and the assistant that it names, which the crons are to have.
async fn fitting(
    speaker: &Speaker<'_>,
    body: &Map<String, Value>,
) -> Result<(Vec<ScheduleView>, Option<String>), Error> {
    let (context, enabled) = (speaker.context, flag(body, "enabled")?);
    let assistant = match text(body, "assistant_id")? {
        Some(by) => meant(speaker, by).await.map(|one| Some(one.kind.id(&one.name).to_string()))?,
        None => None,
    };
    let thread = match text(body, "thread_id")? {
        Some(id) => match Thread::find(&context.base, speaker.workspace, id).await? {
            Thread::Chat(view) => Some(view.chat_id.to_string()),
            Thread::Empty(chat, ..) | Thread::Nothing(chat) => Some(chat.to_string()),
            Thread::Task(_) => Some(id.to_owned()),
        },
        None => None,
    };
    let (mut views, mut cursor) = (Vec::new(), None);
    loop {
        let page = context.schedules.list(speaker.workspace, MOST, cursor).await?;
        views.extend(page.schedules);
        cursor = page.next_cursor;
        if cursor.is_none() || views.len() > 1_000 {
            break;
        }
    }
    views.retain(|view| {
        let cron = cron_json(view);
        thread.as_ref().is_none_or(|id| cron["thread_id"] == **id)
            && enabled.is_none_or(|enabled| cron["enabled"] == enabled)
    });
    Ok((views, assistant))
}

/// Changes a cron: its schedule, its run, or whether it is enabled.
#[utoipa::path(patch, path = "/langgraph/runs/crons/{cron_id}", tag = "langgraph", operation_id = "change_cron",
    params(OfCron), request_body(content = Value, description = "`schedule` with `timezone` and `end_time`, `enabled`."),
    responses((status = 200, description = "It.", body = Value)))]
pub(crate) async fn change_cron(
    State(context): State<Arc<Context>>,
    within: Within<Converse>,
    Path(OfCron { cron_id }): Path<OfCron>,
    ids: Ids,
    Json(body): Json<Map<String, Value>>,
) -> Answer<axum::Json<Value>> {
    wire::plain(&body, &FIELDS)?;
    let (workspace, by) = (within.workspace, &within.by);
    let (times, enabled) = (times(&body)?, flag(&body, "enabled")?);
    // As for a schedule.
    if times.is_some() || enabled == Some(true) {
        demand_room(&context.base)?;
        demand_rights(&within.caller, within.role, &context.schedules.get(workspace, cron_id).await?.action)?;
        admit(&context, within.caller.user).await?;
    }
    if let Some((name, times)) = times {
        let may_not_run = demand(&within.caller, within.role, identity::Action::Run).is_err();
        let change = ScheduleChange { name: Some(name), times: Some(times), may_not_run, ..ScheduleChange::default() };
        context.schedules.change(workspace, cron_id, CommandId(ids.id("change")), change, by).await?;
    }
    let mut view = context.schedules.get(workspace, cron_id).await?;
    if let Some(enabled) = enabled {
        context.schedules.pause(workspace, cron_id, CommandId(ids.id("pause")), !enabled, by).await?;
        view = context.schedules.get(workspace, cron_id).await?;
    }
    Ok(axum::Json(shown_with_assistant(&context, workspace, &view).await))
}

/// Deletes a cron; threads that it began stay.
#[utoipa::path(delete, path = "/langgraph/runs/crons/{cron_id}", tag = "langgraph", operation_id = "delete_cron",
    params(OfCron), responses((status = 204, description = "It is going.")))]
pub(crate) async fn delete_cron(
    State(context): State<Arc<Context>>,
    within: Within<Converse>,
    Path(OfCron { cron_id }): Path<OfCron>,
    ids: Ids,
) -> Answer<StatusCode> {
    context.schedules.delete(within.workspace, cron_id, CommandId(ids.id("delete")), &within.by).await?;
    Ok(StatusCode::NO_CONTENT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedules_take_the_rules_of_crons() {
        let now = "2026-11-24T12:00:30Z".parse().expect("a moment");
        for cron in [
            "* * * * *",
            "*/15 * * * *",
            "5 */2 * * *",
            "30 8-10 * * mon-fri",
            "0 0 1 * *",
            "0 9 1,15 jan,jul *",
            "*/10 * 1 * *",
            "* * * dec *",
            "* * 31 * *",
            "0 0 29 feb *",
        ] {
            let rule = wire::rule(cron).expect("a rule");
            let times = Times::rule(&rule, "Europe/Berlin", None, now);
            assert!(times.is_ok(), "{cron}: {rule}: {times:?}");
        }
    }
}
