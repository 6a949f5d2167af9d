//! Runs that were made: read, listed, joined, cancelled.

use super::{
    MOST, MOST_PASSED, OfRun, OfThread, Thread, conversation, course,
    log::{Log, Started, found, open, stop, values},
    runs::{pending, placed},
    wanted_status,
};
use crate::{
    Context, StreamContext,
    access::{Converse, Read, demand},
    converse::{Speaker, may_begin},
    error::{Answer, ApiError, excerpt},
    extract::{Path, Query, Traced, page_length},
    hub::Within,
    ids::Ids,
    long_answers::long_answer,
};
use actor::next_number;
use axum::{extract::State, response::Response};
use domain::{ActorRef, Code, Error, TurnId, WorkspaceId, text::percent_encoded};
use http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use identity::Action;
use protocols::{
    Span,
    langgraph::{self as wire, Mode, RunId, RunState, Status},
};
use serde::Deserialize;
use serde_json::Value;
use std::sync::Arc;
use utoipa::IntoParams;

/// The way of a join.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Join {
    /// Whether the run is stopped when the client goes: `1` or `0`.
    #[param(default = "0")]
    cancel_on_disconnect: Option<String>,
}

/// The modes of a joined stream.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "it describes parameters that may come more than once, and are read from the address")]
pub(crate) struct JoinModes {
    /// A mode, once for each: `values`, `messages`, `messages-tuple`, `updates`, `custom`, `tools`. Without any: `values`, `messages-tuple`, `updates`
    /// and `custom`.
    stream_mode: Option<String>,
}

/// The modes of the stream of a thread.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "it describes parameters that may come more than once, and are read from the address")]
pub(crate) struct ThreadModes {
    /// A mode, once for each: `run_modes` (`values`, `messages-tuple`, `updates` and `custom` of each run), `state_update` (`values`), `lifecycle` (the
    /// begin and the end of each run).
    #[param(default = "run_modes")]
    stream_mode: Option<String>,
}

/// The way of a cancellation.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Cancel {
    /// Whether the answer comes when the run has ended: `1` or `0`.
    #[param(default = "0")]
    wait: Option<String>,
    /// `interrupt`: what was done stays.
    #[param(default = "interrupt")]
    action: Option<String>,
}

/// The part of the list of runs.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Listing {
    /// At most this many; 1 to 100.
    #[param(default = 10, minimum = 1, maximum = 100)]
    limit: Option<usize>,
    /// So many of the newest are left out.
    #[param(default = 0, maximum = 10_000)]
    offset: Option<usize>,
    /// Only those that are, or were, like this: `pending`, `running`, `interrupted`, `success`, `error` or `timeout`.
    status: Option<String>,
}

/// The modes of a joined stream that names none: nobody keeps those that the run was started with, and a page that comes back needs these.
const JOINED: [Mode; 4] = [Mode::Values, Mode::Tuples, Mode::Updates, Mode::Custom];

/// Whether a flag is set. The SDKs write it as a number or as a word.
fn is_set(name: &str, flag: Option<&str>) -> Result<bool, Error> {
    match flag {
        None | Some("" | "0" | "false") => Ok(false),
        Some("1" | "true") => Ok(true),
        Some(other) => {
            let message = format!("{:?} is not a valid {name}", excerpt(other));
            Err(Error::invalid(name, message).hint(format!("{name} is 1 or 0")))
        }
    }
}

/// The runs of a thread as its log has them, and the run of this id.
async fn seen(stage: &StreamContext, workspace: WorkspaceId, at: &OfRun) -> Answer<(Started, RunState)> {
    let thread = Thread::find(stage, workspace, &at.thread_id).await?.there(&at.thread_id)?;
    let runs = runs(stage, workspace, &thread).await?;
    one_of(stage, &thread, &runs, at).await
}

/// The run of this id among those of its thread.
pub(super) async fn one_of(
    stage: &StreamContext,
    thread: &Thread,
    (all, resumed): &(Vec<RunState>, u64),
    at: &OfRun,
) -> Answer<(Started, RunState)> {
    let id: RunId = at.run_id.parse()?;
    let started = found(id, &at.thread_id, thread, *resumed)?;
    let next = all.last().is_some_and(|last| last.id.of == id.of && last.id.number + 1 == id.number);
    let may_begin = match (all.iter().find(|run| run.id == id), thread) {
        (Some(run), _) => return Ok((started, *run)),
        (None, Thread::Chat(view)) if id.number == 0 => may_begin(stage, view, TurnId(id.of)).await?,
        (None, Thread::Task(_)) if id.number == 0 => true,
        (None, _) => next,
    };
    if !may_begin {
        return Err(Error::not_found("run", id).into());
    }
    Ok((started, pending(id, stage.clock.now())))
}

/// The runs of a thread, and the event of its log before which all pauses have ended.
pub(super) async fn runs(
    stage: &StreamContext,
    workspace: WorkspaceId,
    thread: &Thread,
) -> Result<(Vec<RunState>, u64), Error> {
    Ok(match thread {
        Thread::Chat(view) => {
            let conversation = conversation(stage, workspace, view.chat_id).await?;
            (conversation.history().runs().to_vec(), conversation.resumed())
        }
        Thread::Task(view) => {
            let course = course(stage, workspace, view.task_id).await?;
            (course.history().runs().to_vec(), course.resumed())
        }
        Thread::Empty(..) | Thread::Nothing(_) => (Vec::new(), 0),
    })
}

/// A run.
#[utoipa::path(get, path = "/langgraph/threads/{thread_id}/runs/{run_id}", tag = "langgraph", operation_id = "get_run",
    params(OfRun), responses((status = 200, description = "It.", body = Value)))]
pub(crate) async fn get_run(
    State(context): State<Arc<Context>>,
    within: Within<Read>,
    Path(at): Path<OfRun>,
) -> Answer<axum::Json<Value>> {
    let (started, run) = seen(&context.base, within.workspace, &at).await?;
    Ok(axum::Json(wire::run(&run, &at.thread_id, &started.kind.id(&started.graph).to_string())))
}

/// The runs of a thread, the newest first.
#[utoipa::path(get, path = "/langgraph/threads/{thread_id}/runs", tag = "langgraph", operation_id = "list_runs",
    params(OfThread, Listing), responses((status = 200, description = "A part of them.", body = Value)))]
pub(crate) async fn list_runs(
    State(context): State<Arc<Context>>,
    within: Within<Read>,
    Path(OfThread { thread_id }): Path<OfThread>,
    Query(Listing { limit, offset, status }): Query<Listing>,
) -> Answer<axum::Json<Value>> {
    let (limit, offset) = (page_length(limit, 10, MOST)?, offset.unwrap_or(0));
    if offset > MOST_PASSED {
        return Err(Error::invalid("offset", format!("offset is 0 to {MOST_PASSED}")).into());
    }
    let status = wanted_status(status.as_deref(), &wire::Status::ALL.map(wire::Status::name))?;
    let thread = Thread::find(&context.base, within.workspace, &thread_id).await?.there(&thread_id)?;
    let (mut all, _) = runs(&context.base, within.workspace, &thread).await?;
    all.reverse();
    let of = match &thread {
        Thread::Chat(view) => wire::AssistantKind::Persona.id(&view.role).to_string(),
        Thread::Task(view) => wire::AssistantKind::Flow.id(&view.flow.name).to_string(),
        Thread::Empty(..) | Thread::Nothing(_) => String::new(),
    };
    let fits = |run: &&RunState| status.is_none_or(|status| run.status.name() == status);
    let page = all.iter().filter(fits).skip(offset).take(limit);
    Ok(axum::Json(page.map(|run| wire::run(run, &thread_id, &of)).collect()))
}

/// Waits for the end of a run, and answers with its last values.
#[utoipa::path(get, path = "/langgraph/threads/{thread_id}/runs/{run_id}/join", tag = "langgraph", operation_id = "join_run",
    params(OfRun), responses((status = 200, description = "The values; `__error__` has a failure.", body = Value)))]
pub(crate) async fn join_run(
    State(context): State<Arc<StreamContext>>,
    within: Within<Read>,
    Path(at): Path<OfRun>,
    Query(join): Query<Join>,
) -> Answer<Response> {
    let (started, _) = seen(&context, within.workspace, &at).await?;
    only_watches(&context, &join)?;
    let values = values(&context, within.workspace, &started).await?;
    Ok(placed(long_answer(values, ApiError::envelope).await?, &started, None))
}

/// The events of a run: those after `Last-Event-ID`, or all of them.
#[utoipa::path(get, path = "/langgraph/threads/{thread_id}/runs/{run_id}/stream", tag = "langgraph",
    operation_id = "join_run_stream",
    params(OfRun, Join, JoinModes, ("Last-Event-ID" = Option<String>, Header, description = "The `id:` of the last event that the client has; -1 for none.")),
    responses((status = 200, description = "The events of the run.", body = String, content_type = "text/event-stream")))]
pub(crate) async fn join_run_stream(
    State(context): State<Arc<StreamContext>>,
    within: Within<Read>,
    Path(at): Path<OfRun>,
    Query(join): Query<Join>,
    uri: Uri,
    headers: HeaderMap,
) -> Answer<Response> {
    let asked = asked_modes(&uri);
    let modes = if asked.is_empty() { JOINED.to_vec() } else { Mode::all(asked)? };
    let (started, _) = seen(&context, within.workspace, &at).await?;
    only_watches(&context, &join)?;
    let response = open(&context, within.workspace, &started, Some(modes.clone()), Some(&headers)).await?;
    Ok(placed(response, &started, Some(&modes)))
}

/// The events of the runs of a chat's thread, one run after the other: those after `Last-Event-ID`, all of them after -1, and without it those of the
/// turn that runs and of later ones.
#[utoipa::path(get, path = "/langgraph/threads/{thread_id}/stream", tag = "langgraph",
    params(OfThread, ThreadModes, ("Last-Event-ID" = Option<String>, Header, description = "The `id:` of the last event that the client has; -1 for none.")),
    responses((status = 200, description = "The events of the runs.", body = String, content_type = "text/event-stream")))]
pub(crate) async fn join_thread_stream(
    State(context): State<Arc<StreamContext>>,
    within: Within<Read>,
    Path(OfThread { thread_id }): Path<OfThread>,
    uri: Uri,
    headers: HeaderMap,
) -> Answer<Response> {
    let (workspace, modes) = (within.workspace, modes_of_thread(&asked_modes(&uri))?);
    let thread = Thread::find(&context, workspace, &thread_id).await?.there(&thread_id)?;
    let thread_id = thread.spelled(&thread_id);
    let (chat, graph) = match thread {
        Thread::Chat(view) => (view.chat_id, view.role),
        Thread::Empty(chat, _, persona, ..) => (chat, persona.unwrap_or_default()),
        Thread::Task(_) | Thread::Nothing(_) => {
            return Err(Error::invalid("thread_id", "the thread of a flow is watched run by run")
                .hint("join its runs: GET /langgraph/threads/ID/runs/ID/stream")
                .into());
        }
    };
    demand_streams(&context)?;
    let actor = ActorRef::Chat { workspace, chat };
    // The end of the log comes first: events of a turn that begins after the view was read are above it.
    let next = next_number(&*context.table, &actor.into()).await?;
    let view = super::found(context.chats.get(workspace, chat).await)?;
    let first = match headers.contains_key("last-event-id") {
        true => 1,
        false => view.and_then(|view| view.turn_seq).unwrap_or(next),
    };
    let again = format!("/threads/{}/stream?{}", percent_encoded(&thread_id), uri.query().unwrap_or_default());
    let runs = Box::new(wire::ThreadRuns::new(thread_id, graph, modes));
    let span = Span { fold_from: 1, first, to_the_end: false };
    let mut response = context.streams.open_projected(actor, runs, span, &headers, None).await?;
    if let Ok(again) = HeaderValue::try_from(again) {
        response.headers_mut().insert(header::LOCATION, again);
    }
    Ok(response)
}

/// The modes in which a stream of a thread shows its runs.
fn modes_of_thread(asked: &[&str]) -> Result<Vec<Mode>, Error> {
    let mut modes = if asked.is_empty() { JOINED.to_vec() } else { Vec::new() };
    for name in asked {
        modes.extend_from_slice(match *name {
            "run_modes" => &JOINED[..],
            "state_update" => &[Mode::Values],
            "lifecycle" => &[],
            other => {
                let message = format!("the mode {:?} cannot be honoured here", excerpt(other));
                return Err(Error::invalid("stream_mode", message).hint("one of: run_modes, state_update, lifecycle"));
            }
        });
    }
    Ok(modes)
}

/// The modes that an address names. The SDK for Python sends an empty one for none.
fn asked_modes(uri: &Uri) -> Vec<&str> {
    let pairs = uri.query().unwrap_or_default().split('&').filter_map(|pair| pair.split_once('='));
    pairs.filter(|(name, value)| *name == "stream_mode" && !value.is_empty()).map(|(_, value)| value).collect()
}

fn demand_streams(stage: &StreamContext) -> Result<(), Error> {
    if stage.streams.are_here() {
        return Ok(());
    }
    Err(Error::new(Code::UpstreamUnavailable, "this server holds no streams")
        .hint("ask for the run until it has ended, then for the state of its thread"))
}

/// A client that joins has the right to look, and stops nothing by going. It joins where streams are.
fn only_watches(stage: &StreamContext, join: &Join) -> Result<(), Error> {
    demand_streams(stage)?;
    if !is_set("cancel_on_disconnect", join.cancel_on_disconnect.as_deref())? {
        return Ok(());
    }
    Err(Error::invalid("cancel_on_disconnect", "a client that joins a run does not stop it by going")
        .hint("cancel the run, or start it with on_disconnect cancel"))
}

/// Stops a run, also one that has not begun: what was done stays. One that is over stays as it is. `CONFLICT` while it waits behind another run.
#[utoipa::path(post, path = "/langgraph/threads/{thread_id}/runs/{run_id}/cancel", tag = "langgraph",
    operation_id = "cancel_run", params(OfRun, Cancel),
    responses((status = 202, description = "It was told to stop."), (status = 204, description = "It has ended.")))]
pub(crate) async fn cancel_run(
    State(context): State<Arc<Context>>,
    within: Within<Converse>,
    Path(at): Path<OfRun>,
    Query(Cancel { wait, action }): Query<Cancel>,
    ids: Ids,
) -> Result<StatusCode, ApiError> {
    only_interrupts(action.as_deref())?;
    let speaker = Speaker::within(&context, &within, ids, Traced(None)).await?;
    let waits = is_set("wait", wait.as_deref())?;
    if waits {
        speaker.demand_streams("cancel it without wait, and ask for its state")?;
    }
    let (started, run) = seen(&context.base, within.workspace, &at).await?;
    let awaited = run.status == Status::Pending;
    if matches!(started.log, Log::Task(..)) {
        demand(&within.caller, within.role, Action::Run)?;
    }
    stop(&context, within.workspace, started.log, awaited, speaker.command(), &within.by).await?;
    if !waits {
        return Ok(StatusCode::ACCEPTED);
    }
    if !run.status.is_over() {
        values(&context.base, within.workspace, &started).await?.await?;
    }
    Ok(StatusCode::NO_CONTENT)
}

pub(super) fn only_interrupts(action: Option<&str>) -> Result<(), Error> {
    if action.is_none_or(|action| action == "interrupt") {
        return Ok(());
    }
    Err(Error::invalid("action", "a run is stopped, and not undone")
        .hint("send action interrupt; POST /api/v1/workspaces/ID/rewind takes work back"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flag_of_another_form_is_refused_by_name() {
        for (flag, expected) in
            [(None, false), (Some("0"), false), (Some("false"), false), (Some("1"), true), (Some("true"), true)]
        {
            assert_eq!(is_set("wait", flag), Ok(expected), "{flag:?}");
        }
        for flag in ["yes", "2", "True!"] {
            assert!(is_set("wait", Some(flag)).is_err_and(|error| error.details["field"] == "wait"), "{flag}");
        }
    }
}
