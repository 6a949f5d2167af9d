//! Turns: begun, cancelled, and read as a history.

use super::{
    InThread, InTurn,
    agent_kind::AgentKind,
    agents::kind,
    attachments::{Given, attach, complete_links, input_of},
    caller::Hub,
    schema::{Compact, Compacted, History, NewTurn, TurnStatus},
    threads::demand_leave,
};
use crate::{
    Context,
    access::{Converse, Read, Write, demand, leader_rights},
    error::Answer,
    extract::{Json, Path, Query, TraceParent, Traced, page_length},
    ids::Ids,
    prompts::spoken,
    rate_limits::Paced,
    writes::author,
};
use actor::next_number;
use axum::{
    extract::{Request, State},
    response::{IntoResponse, Response},
};
use chat::ThreadTurn;
use domain::{ActorRef, Code, CommandId, Error, TurnId};
use http::{HeaderMap, StatusCode};
use protocols::{
    Span,
    hub::{Frames, Turn},
};
use serde::{Deserialize, Deserializer, de::Error as _};
use std::{sync::Arc, time::Duration};
use utoipa::IntoParams;

/// The most turns of a page of a history.
const MOST_TURNS: usize = 200;

/// The parts of a history.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Parts {
    /// Whether each turn has the events of its stream.
    #[serde(default, deserialize_with = "flag")]
    include_events: bool,
    /// Whether turns of the system itself are shown, too.
    #[serde(default, deserialize_with = "flag")]
    include_internal: bool,
    /// Only turns of this session of the coding agent.
    session_id: Option<String>,
    /// The most turns of a page, which has the newest ones; all turns when none.
    #[param(minimum = 1, maximum = 200)]
    limit: Option<usize>,
    /// The `nextCursor` of the page before: this one has earlier turns.
    #[param(value_type = Option<uuid::Uuid>)]
    cursor: Option<TurnId>,
}

/// A flag as clients write it: `true` and `1`, or `false` and `0`.
fn flag<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    match &*String::deserialize(deserializer)? {
        "true" | "1" => Ok(true),
        "false" | "0" => Ok(false),
        other => Err(D::Error::custom(format!("{other:?} is neither true nor false"))),
    }
}

/// Begins a turn. With `stream` the answer is the event stream of the turn, which ends with it, or breaks off, as that of
/// `GET /v1/turns/{id}/events`; without, the turn is watched on `GET /v1/threads/{id}/events`. 409 `CONFLICT` while another turn is active.
/// Multipart with `input`, `stream` and files named `attachments` brings files along. The first turn of a coding agent needs the right to approve.
#[utoipa::path(post, path = "/v1/threads/{thread_id}/turns", tag = "hub", params(InThread, TraceParent),
    request_body(content((NewTurn = "application/json"), (serde_json::Value = "multipart/form-data"))),
    responses((status = 200, description = "The events of the turn.", body = String, content_type = "text/event-stream",
        example = json!("id: 4\nevent: message_delta\ndata: {\"delta\":\"Hello\",\"turnId\":\"019bf537-…\",\"seq\":4}\n\n")),
        (status = 202, description = "It is accepted, and not streamed.", body = TurnStatus)))]
pub(crate) async fn create_turn(
    State(context): State<Arc<Context>>,
    Hub { client, within }: Hub<Converse>,
    Path(at): Path<InThread>,
    _: Paced,
    ids: Ids,
    Traced(trace): Traced,
    request: Request,
) -> Answer<Response> {
    let Given { input, stream, attachments } = input_of(&context, request).await?;
    if stream && !context.base.streams.are_here() {
        let error = Error::new(Code::UpstreamUnavailable, "this server begins turns and holds no streams");
        return Err(error.hint("send stream false, and watch GET /v1/turns/ID/events at the public address").into());
    }
    let found = context.threads().reader().get(within.workspace, at.thread_id).await?;
    let kind = kind(&context, within.workspace, within.files.clone(), &found.record.agent.agent, "agent").await?;
    if found.view.is_none() {
        // The first turn starts the agent, and the thread may be older than a coding agent of its agent's name.
        demand_leave(&within, &kind)?;
    }
    let (role, input) = match kind {
        AgentKind::Persona(role) => (Some(role), spoken(&context, within.workspace, &within.files, input).await?),
        // It has commands of its own.
        AgentKind::Coding => (None, input),
    };
    let command = CommandId(ids.id("command"));
    let mut files = Vec::new();
    if !attachments.is_empty() {
        // Files of a turn that does not begin would stay in the workspace, and no turn would name them.
        context.threads().check_start(within.workspace, &found, command, &input).await?;
        demand(&within.caller, within.role, <Write as crate::access::RequiredAction>::ACTION)?;
        let workspace = context.base.workspaces.open(within.workspace, within.files.clone()).await?;
        let writer = author(&within.caller, within.by.clone().into());
        files = attach(&workspace, &writer, at.thread_id, &ids, attachments).await?;
    }
    let actor = ActorRef::Chat { workspace: within.workspace, chat: at.thread_id };
    // Before the turn is begun, so that none of its events is below it.
    let first = next_number(&*context.base.table, &actor.into()).await?;
    let chat::LeaderRights { may_approve, may_not_run } = leader_rights(&within.caller, within.role);
    let turn = ThreadTurn { input, files, role, may_approve, may_not_run, trace, first, client };
    let accepted = context.threads().start(within.workspace, at.thread_id, command, turn, &within.by).await?;
    if !stream {
        let (turn_id, thread_id) = (accepted.turn_id.0, at.thread_id.0);
        return Ok(
            (StatusCode::ACCEPTED, axum::Json(TurnStatus { turn_id, thread_id, status: "running" })).into_response()
        );
    }
    // The record knows where the turn began, also when this request was sent before under the same key.
    let first = context.threads().reader().turn(within.workspace, accepted.turn_id).await?.first;
    let frames = Box::new(Frames::of_turn(at.thread_id, accepted.turn_id));
    let span = Span { fold_from: first, first, to_the_end: true };
    Ok(context.base.streams.open_projected(actor, frames, span, &HeaderMap::new(), None).await?)
}

/// Cancels a turn. 409 when it has ended.
#[utoipa::path(post, path = "/v1/turns/{turn_id}/cancel", tag = "hub", params(InTurn),
    responses((status = 200, description = "It was told to stop; `turn_completed` tells when it has.", body = TurnStatus)))]
pub(crate) async fn cancel_turn(
    State(context): State<Arc<Context>>,
    Hub { within, .. }: Hub<Converse>,
    Path(InTurn { turn_id }): Path<InTurn>,
    ids: Ids,
) -> Answer<axum::Json<TurnStatus>> {
    let threads = context.threads();
    let turn = threads.reader().turn(within.workspace, turn_id).await?;
    threads.cancel(within.workspace, &turn, CommandId(ids.id("command")), &within.by).await?;
    Ok(axum::Json(TurnStatus { turn_id: turn_id.0, thread_id: turn.thread_id.0, status: "cancelling" }))
}

/// The turns of a thread, oldest first, with the events of each if asked for: what its stream has shown or would show.
#[utoipa::path(get, path = "/v1/threads/{thread_id}/history", tag = "hub", params(InThread, Parts),
    responses((status = 200, description = "All of them, or a page.", body = History)))]
pub(crate) async fn get_thread_history(
    State(context): State<Arc<Context>>,
    Hub { within, .. }: Hub<Read>,
    Path(at): Path<InThread>,
    Query(parts): Query<Parts>,
) -> Answer<axum::Json<History>> {
    let limit = parts.limit.map(|limit| page_length(Some(limit), MOST_TURNS, MOST_TURNS)).transpose()?;
    let threads = context.threads();
    threads.reader().get(within.workspace, at.thread_id).await?;
    let mut history = protocols::hub::History::of(at.thread_id, parts.include_events);
    let take_in = |number, at, event: &_| history.take_in(number, at, event);
    threads.reader().log(within.workspace, at.thread_id, 1, take_in).await?;
    let mut turns = history.turns();
    turns.retain(|turn| {
        (parts.include_internal || !turn.is_internal)
            && (parts.session_id.is_none() || turn.session == parts.session_id)
    });
    let (mut turns, next_cursor) = page(turns, limit, parts.cursor)?;
    if parts.include_events && turns.iter().any(|turn| !turn.files.is_empty()) {
        let workspace = context.base.workspaces.open(within.workspace, within.files.clone()).await?;
        complete_links(&workspace, &mut turns).await;
    }
    Ok(axum::Json(History { turns, next_cursor }))
}

/// The newest turns before the one that is the cursor, and the cursor of those before them.
fn page(
    mut turns: Vec<Turn>,
    limit: Option<usize>,
    cursor: Option<TurnId>,
) -> Result<(Vec<Turn>, Option<uuid::Uuid>), Error> {
    if let Some(cursor) = cursor {
        let end = turns.iter().position(|turn| turn.turn_id == cursor).ok_or_else(|| {
            Error::invalid("cursor", "no turn of this history has this id")
                .hint("send the nextCursor of the page before")
        })?;
        turns.truncate(end);
    }
    let Some(limit) = limit else { return Ok((turns, None)) };
    let newest = turns.split_off(turns.len().saturating_sub(limit));
    let next = newest.first().filter(|_| !turns.is_empty()).map(|turn| turn.turn_id.0);
    Ok((newest, next))
}

/// Has the earlier turns of a thread summarised, in an internal turn that histories leave out, and waits for that for up to 100 seconds (20 on a server
/// without streams). A persona reads the summary in place of the words. A coding agent summarises its own session and goes on with it as it is: the summary is
/// for a process that cannot load the session. `CONFLICT` while a turn is active; `status` is `skipped` where nothing is to do.
#[utoipa::path(post, path = "/v1/threads/{thread_id}/compact", tag = "hub", params(InThread), request_body = Compact,
    responses((status = 200, description = "The compaction.", body = Compacted)))]
pub(crate) async fn compact_thread(
    State(context): State<Arc<Context>>,
    Hub { client, within }: Hub<Converse>,
    Path(at): Path<InThread>,
    _: Paced,
    ids: Ids,
    Json(Compact { max_summary_chars }): Json<Compact>,
) -> Answer<axum::Json<Compacted>> {
    let actor = ActorRef::Chat { workspace: within.workspace, chat: at.thread_id };
    let first = next_number(&*context.base.table, &actor.into()).await?;
    let patience = Duration::from_secs(if context.base.streams.are_here() { 100 } else { 20 });
    let waits = (&*client, first, patience);
    let command = CommandId(ids.id("command"));
    let threads = context.threads();
    let ended = threads.compact(within.workspace, at.thread_id, command, max_summary_chars, waits, &within.by).await;
    let ended = ended.map_err(|error| match error.code {
        Code::InvalidArgument => error.detail("field", "maxSummaryChars"),
        _ => error,
    })?;
    Ok(axum::Json(Compacted {
        thread_id: at.thread_id.0,
        turn_id: ended.turn_id.0,
        status: ended.status,
        stop_reason: ended.stop_reason,
        summary_chars: ended.summary.chars().count() as u64,
        summary: ended.summary,
        reason: ended.reason,
    }))
}
