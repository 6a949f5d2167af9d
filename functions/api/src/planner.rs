//! Door 3, the planner chat (spec 003 §1): a message in, the events of its turn out; and the sessions of a person.
//!
//! The paths name no workspace, as its clients know none: `workspace_id` says which one, and without it the caller's first one is meant. So
//! the right to act is asked here, as [`crate::access`] does it elsewhere.

use crate::{
    Context, StreamContext,
    access::{demand, leader_rights},
    auth,
    error::{Answer, excerpt},
    extract::{Json, Query, TraceParent, Traced, UnscopedCaller, or_default, page_length},
    ids::Ids,
    pauses::resumed,
    rate_limits::PacedMessage,
    workspaces::{first_there, oldest_first},
};
use axum::{
    body::Body,
    extract::State,
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use chat::{ChatPage, ChatState, NewSessionMessage, SessionChange, Sessions};
use domain::{
    ActorRef, ChatEvent, ChatId, ChatStatus, ChatView, Code, CommandId, Error, MessageId, OnBusy, Principal,
    SessionContext, Timestamp, TurnId, WorkspaceId,
};
use futures::{StreamExt, stream};
use http::{HeaderMap, StatusCode};
use identity::{Action, Caller, Role};
use protocols::{
    Span, after_pauses,
    planner::{PlannerTurn, Records, Shows, message, session, session_frame},
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::{fmt::Write as _, sync::Arc};
use utoipa::{IntoParams, ToSchema};

/// The latest messages of a session that are shown with it.
const MESSAGES: usize = 50;
/// The most messages that a client may bring along.
const BROUGHT: usize = 50;

/// A message to the planner chat.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AgentRequest {
    /// The words: at most 200 KiB of UTF-8.
    #[schema(min_length = 1, max_length = 204_800, example = "Compare the two drafts and write a recommendation")]
    message: String,
    /// The session that goes on; a new one without it.
    #[schema(value_type = Option<Uuid>)]
    session_id: Option<ChatId>,
    /// `global`, `project`, `calendar`, `task`, `project_create`, `project_update`, `project_audit`, `project_forecast`, `task_update` or
    /// `daily_brief_update`; `general` means `global`. Without it the session keeps its own.
    #[schema(example = "project")]
    context_type: Option<String>,
    /// The entity: for a context of a project the name of its folder below `/projects`.
    entity_id: Option<String>,
    /// The entity that the person looks at, in the form of the client, at most 4 KiB; null takes it away.
    #[serde(default, deserialize_with = "given_object")]
    #[schema(value_type = Option<Object>)]
    project_focus: Option<Value>,
    /// Earlier messages, of a client that keeps them itself; a new session reads them.
    #[serde(default, rename = "conversationHistory", deserialize_with = "or_default")]
    #[schema(value_type = Option<Vec<HistoryMessage>>)]
    conversation_history: Vec<HistoryMessage>,
    /// The treatment of a message that comes while a turn runs: `enqueue`, `reject`, `interrupt` or `steer`. With `steer` the turn that runs reads
    /// it, and its further events are the answer.
    #[serde(default, deserialize_with = "or_default")]
    #[schema(value_type = Option<crate::schema::OnBusy>)]
    on_busy: OnBusy,
    /// Whether a person approves each plan before its executors begin, from this message on. A plan that waits is told by `plan_created` with the status
    /// `pending` and its `permission`, which is decided on as any permission of the chat with the session's id. Without it the session keeps its own. `false`
    /// for a session whose plans are approved needs the right to approve.
    approve_plans: Option<bool>,
    /// Whether the answer is the stream of the turn. With `false` it is the session, as soon as the message is durable; `GET` shows the answer later.
    /// Where a server holds no streams, only `false` is taken.
    #[schema(default = true)]
    stream: Option<bool>,
}

/// A message that a client brings along.
#[derive(Deserialize, ToSchema)]
pub(crate) struct HistoryMessage {
    /// `user` or `assistant`.
    role: String,
    /// The words; null, or no such field, in a message of calls alone.
    #[serde(default)]
    content: Option<String>,
}

/// An object or null. It tells a null from nothing.
fn given_object<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    let given = Option::<Map<String, Value>>::deserialize(deserializer)?;
    Ok(Some(given.map_or(Value::Null, Value::Object)))
}

/// The place of a message.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct InAny {
    /// The workspace; the first one of the caller without it.
    #[param(value_type = Option<Uuid>)]
    workspace_id: Option<WorkspaceId>,
}

/// The wanted sessions, or the part of a stream.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct SessionQuery {
    /// The workspace; the first one of the caller without it.
    #[param(value_type = Option<Uuid>)]
    workspace_id: Option<WorkspaceId>,
    /// The session; a list of them without it.
    #[param(value_type = Option<Uuid>)]
    session_id: Option<ChatId>,
    /// Goes on with the stream of a session after the event with this `id:`; `Last-Event-ID` comes before it.
    #[param(value_type = Option<u64>)]
    after: Option<String>,
    /// At most this many sessions; 1 to 200. A page can be shorter although there are more.
    #[param(default = 50, minimum = 1, maximum = 200)]
    limit: Option<usize>,
    /// `next_cursor` of the page of sessions before.
    cursor: Option<String>,
}

/// A session.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct OfSession {
    /// The workspace; the first one of the caller without it.
    #[param(value_type = Option<Uuid>)]
    workspace_id: Option<WorkspaceId>,
    /// The session; it is needed.
    #[param(value_type = Uuid)]
    session_id: Option<ChatId>,
    /// The compression that comes with its `original_messages`.
    #[param(value_type = Option<Uuid>)]
    compression_id: Option<MessageId>,
}

/// The plans of a session with their agents, and its compressions: the latest 100 plans and compressions, the oldest first.
#[derive(Serialize, ToSchema)]
pub(crate) struct SessionRecords {
    /// Each has `id`, `session_id`, `strategy`, `version`, `steps`, `status` (`pending`, `executing`, `completed`, `failed` or `cancelled`),
    /// `created_at` and `executions`: one for each step that began, with `id`, `plan_id`, `step`, `executor_id`, `task`, `status` and `created_at`, and
    /// once it has ended with `result`, `error`, `tool_calls`, `tokens_used`, `duration_ms` and `ended_at`. A step has a `status`, too. A plan that
    /// waits for a person has `permission`, with `id` and `expires_at`.
    #[schema(value_type = Vec<Object>)]
    plans: Vec<Value>,
    /// The executors of these plans. Each has `id`, which is its chat, `session_id`, `plan_id`, `execution_id`, `status`, `created_at` and
    /// `completed_at`.
    #[schema(value_type = Vec<Object>)]
    agents: Vec<Value>,
    /// Each has `id`, `session_id`, `turns`, `last_line`, `summary`, `tokens_before`, `tokens_after`, `ratio` and `created_at`; the one of
    /// `compression_id` has `original_messages`, too: the messages that gave way to its summary, whole, the oldest first.
    #[schema(value_type = Vec<Object>)]
    compressions: Vec<Value>,
}

/// An event of the stream. The fields beside its type are those of the specification of the planner chat.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes a stream")]
pub(crate) struct AgentEvent {
    /// `session`, `analysis`, `plan_created`, `step_start`, `step_complete`, `executor_spawned`, `executor_result`, `text`, `tool_call`,
    /// `tool_result`, `error` or `done`.
    #[schema(example = "analysis")]
    r#type: String,
}

/// Sessions, or one with its latest messages.
#[derive(Default, Serialize, ToSchema)]
pub(crate) struct SessionsResponse {
    /// The sessions, the last active first.
    #[schema(value_type = Option<Vec<Object>>)]
    #[serde(skip_serializing_if = "Option::is_none")]
    sessions: Option<Vec<Value>>,
    /// The `cursor` of the next page of sessions; none at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
    /// The session that was asked for.
    #[schema(value_type = Option<Object>)]
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<Value>,
    /// Its latest messages, the oldest first.
    #[schema(value_type = Option<Vec<Object>>)]
    #[serde(skip_serializing_if = "Option::is_none")]
    messages: Option<Vec<Value>>,
    /// The number of its last event.
    #[serde(skip_serializing_if = "Option::is_none")]
    last_seq: Option<u64>,
}

/// Sends a message to a session, or makes one, and answers with the events of its turn: `data:` is one JSON object with a `type`. `session`
/// comes at once, before any model is asked; `done` is the last, and `error` comes right before it. A message is processed although its
/// client goes: `GET` with `after` goes on with the stream.
#[utoipa::path(post, path = "/api/agent/stream", tag = "planner", params(InAny, TraceParent), request_body = AgentRequest,
    responses((status = 200, description = "The events of the turn, to its end.", body = AgentEvent, content_type = "text/event-stream",
            example = json!("data: {\"type\":\"session\",\"session\":{…}}\n\nid: 5\ndata: {\"type\":\"analysis\",…}\n\n")),
        (status = 202, description = "Without a stream: the session that takes the message.", body = SessionsResponse)))]
pub(crate) async fn agent_stream(
    State(context): State<Arc<Context>>,
    UnscopedCaller(caller): UnscopedCaller,
    Query(InAny { workspace_id }): Query<InAny>,
    _: PacedMessage,
    ids: Ids,
    Traced(trace): Traced,
    Json(request): Json<AgentRequest>,
) -> Answer<Response> {
    let (workspace, role) = place(&context, &caller, workspace_id, Action::Converse).await?;
    let is_streamed = request.stream.unwrap_or(true);
    if is_streamed && !context.base.streams.are_here() {
        return Err(not_here().into());
    }
    let AgentRequest {
        message,
        session_id,
        context_type,
        entity_id,
        project_focus,
        conversation_history,
        on_busy,
        approve_plans,
        stream: _,
    } = request;
    if on_busy == OnBusy::Rollback {
        demand(&caller, role, Action::Write)?;
    }
    let chat::LeaderRights { may_approve, may_not_run } = leader_rights(&caller, role);
    let new = NewSessionMessage {
        message,
        change: SessionChange {
            context: context_type.as_deref().map(context_of).transpose()?,
            entity: entity_id,
            focus: project_focus,
            approve_plans,
        },
        earlier: earlier(&conversation_history)?,
        on_busy,
        may_approve,
        may_not_run,
        trace,
    };
    let (by, command) = (caller.principal(), CommandId(ids.id("command")));
    let sessions = Sessions::new(context.chats.clone());
    let words = TurnId(command.0);
    let (view, (shows, resumed), span) = match session_id {
        Some(chat) => {
            let before = theirs(sessions.get(workspace, chat).await?, &by)?;
            let (shown, span) = shown_turn(&context, &sessions, &before, &ids, (words, on_busy)).await?;
            (sessions.post(workspace, chat, command, new, &by).await?, shown, span)
        }
        None => {
            let made = sessions.create(workspace, ChatId(ids.id("chat")), command, new, &by).await?;
            (made, (Shows::Turn(words), 0), Span { fold_from: 1, first: 1, to_the_end: true })
        }
    };
    if !is_streamed {
        let found = SessionsResponse { session: Some(session(&view)), ..SessionsResponse::default() };
        return Ok((StatusCode::ACCEPTED, axum::Json(found)).into_response());
    }
    streamed(&context, workspace, &view, (shows, resumed), span, (&HeaderMap::new(), None)).await
}

/// The turn that a message to a session begins or steers, the event before which all pauses have ended, and the part of the log that shows the turn.
async fn shown_turn(
    context: &Context,
    sessions: &Sessions,
    before: &ChatView,
    ids: &Ids,
    (words, on_busy): (TurnId, OnBusy),
) -> Result<((Shows, u64), Span), Error> {
    let (workspace, chat) = (before.workspace_id, before.chat_id);
    // A repeated request may find its turn begun; a new one begins at the end of the log or later.
    let (end, resumed) = match ids {
        Ids::Fresh(_) => {
            let next = sessions.next_number(workspace, chat).await?;
            (next, next)
        }
        Ids::Key(..) => (1, resumed(context, workspace, chat, words).await?),
    };
    let (shows, fold_from) = match on_busy {
        OnBusy::Steer => (Shows::Steered(words), before.turn_seq.unwrap_or(end).min(end)),
        OnBusy::Enqueue | OnBusy::Reject | OnBusy::Interrupt | OnBusy::Rollback => (Shows::Turn(words), end),
    };
    Ok(((shows, resumed), Span { fold_from, first: end, to_the_end: true }))
}

/// The sessions of the caller; with `session_id` one with its latest messages; with `after` (or `Last-Event-ID`) the rest of the stream of
/// that session's turn. 204 when the client has all of it.
#[utoipa::path(get, path = "/api/agent/stream", tag = "planner",
    params(SessionQuery, ("Last-Event-ID" = Option<u64>, Header, description = "As `after`; browsers send it.")),
    responses((status = 200, description = "Sessions, or one with its messages; a stream of events where a cursor is given.", body = SessionsResponse),
        (status = 204, description = "No turn runs, and the client has the last event.")))]
pub(crate) async fn agent_sessions(
    State(context): State<Arc<Context>>,
    UnscopedCaller(caller): UnscopedCaller,
    Query(wanted): Query<SessionQuery>,
    headers: HeaderMap,
) -> Answer<Response> {
    let limit = page_length(wanted.limit, 50, 200)?;
    let (workspace, _) = place(&context, &caller, wanted.workspace_id, Action::Read).await?;
    let (by, sessions) = (caller.principal(), Sessions::new(context.chats.clone()));
    let Some(chat) = wanted.session_id else {
        let ChatPage { chats, next_cursor } = sessions.list(workspace, &by, limit, wanted.cursor).await?;
        let found = SessionsResponse {
            sessions: Some(chats.iter().map(session).collect()),
            next_cursor,
            ..SessionsResponse::default()
        };
        return Ok(axum::Json(found).into_response());
    };
    let sent = headers.get("last-event-id").and_then(|value| value.to_str().ok()).filter(|text| !text.is_empty());
    if let Some(text) = sent.or(wanted.after.as_deref()) {
        let after: u64 = text.trim().parse().map_err(|_| {
            Error::invalid("after", "a cursor is the number of an event")
                .hint("send the id: of the last event that you have")
        })?;
        return resume(&context, &sessions, workspace, chat, &by, after).await;
    }
    let view = theirs(sessions.look(workspace, chat).await?, &by)?;
    let history = context.chats.history_before(workspace, chat, i64::MAX as u64, MESSAGES).await?;
    let mut messages: Vec<_> =
        history.messages.iter().filter_map(|numbered| message(&view, &numbered.message)).collect();
    // A page of the log has whole entries, so it may begin before the oldest message that is shown.
    messages.drain(..messages.len().saturating_sub(MESSAGES));
    let last_seq = Some(history.last_seq);
    let found = SessionsResponse {
        session: Some(session(&view)),
        messages: Some(messages),
        last_seq,
        ..SessionsResponse::default()
    };
    Ok(axum::Json(found).into_response())
}

/// The plans of a session with the executions of their steps, its agents, and its compressions.
#[utoipa::path(get, path = "/api/agent/plans", tag = "planner", params(OfSession),
    responses((status = 200, description = "They.", body = SessionRecords)))]
pub(crate) async fn agent_plans(
    State(context): State<Arc<Context>>,
    UnscopedCaller(caller): UnscopedCaller,
    Query(OfSession { workspace_id, session_id, compression_id }): Query<OfSession>,
) -> Answer<impl IntoResponse> {
    let (workspace, _) = place(&context, &caller, workspace_id, Action::Read).await?;
    let needed = || Error::invalid("session_id", "a session is needed").hint("GET /api/agent/stream lists yours");
    let session_id = session_id.ok_or_else(needed)?;
    let sessions = Sessions::new(context.chats.clone());
    let view = theirs(sessions.get(workspace, session_id).await?, &caller.principal())?;
    let (mut records, mut state, mut originals) = (Records::default(), ChatState::default(), Vec::new());
    let take_in = |number: u64, _: Timestamp, event: &ChatEvent| {
        records.take_in(event);
        let Some(wanted) = compression_id else { return };
        state.apply(number, event);
        if matches!(event, ChatEvent::Compacted { compaction } if compaction.message_id == wanted) {
            originals = state.replaced().filter_map(|one| message(&view, one)).collect();
        }
    };
    context.threads().reader().log(workspace, session_id, 1, take_in).await?;
    let (plans, agents) = (records.plans(session_id), records.agents(session_id));
    let mut compressions = records.compressions(session_id);
    if let Some(wanted) = compression_id {
        let found = compressions.iter_mut().find(|compression| compression["id"] == json!(wanted));
        found.ok_or_else(|| Error::not_found("compression", wanted))?["original_messages"] = json!(originals);
    }
    Ok(axum::Json(SessionRecords { plans, agents, compressions }))
}

async fn resume(
    context: &Context,
    sessions: &Sessions,
    workspace: WorkspaceId,
    chat: ChatId,
    by: &Principal,
    after: u64,
) -> Answer<Response> {
    let view = theirs(sessions.look(workspace, chat).await?, by)?;
    // The log is read after the view, so it has a turn that has begun since.
    let threads = context.threads();
    if view.status == ChatStatus::Idle && !threads.reader().has_turn_behind(workspace, chat, after).await? {
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    // A turn that has ended meanwhile began somewhere before the cursor.
    let fold_from = view.turn_seq.filter(|begun| *begun <= after.saturating_add(1)).unwrap_or(1);
    let span = Span { fold_from, first: after.saturating_add(1), to_the_end: false };
    let cursor = after.to_string();
    // The client knows of a pause before its cursor, and comes back for the events behind it.
    let shows = (Shows::EndingAfter(after), after.saturating_add(1));
    streamed(context, workspace, &view, shows, span, (&HeaderMap::new(), Some(&cursor))).await
}

/// The stream of a turn, with the session before it. All pauses before the event `resumed` have ended.
async fn streamed(
    context: &Context,
    workspace: WorkspaceId,
    view: &ChatView,
    (shows, resumed): (Shows, u64),
    span: Span,
    (headers, after): (&HeaderMap, Option<&str>),
) -> Answer<Response> {
    let actor = ActorRef::Chat { workspace, chat: view.chat_id };
    let projection = after_pauses(resumed, Box::new(PlannerTurn::new(view.chat_id, view.user_id, shows)));
    let (parts, body) =
        context.base.streams.open_projected(actor, projection, span, headers, after).await?.into_parts();
    let first = Bytes::from(session_frame(view));
    let all = stream::once(async { Ok(first) }).chain(body.into_data_stream());
    Ok(Response::from_parts(parts, Body::from_stream(all)))
}

/// The workspace of a request, and the caller's role there, which allows the action.
async fn place(
    context: &Context,
    caller: &Caller,
    asked: Option<WorkspaceId>,
    action: Action,
) -> Result<(WorkspaceId, Role), Error> {
    let (workspace, role) = workspace_and_role(&context.base, caller, asked).await?;
    auth::found(workspace);
    demand(caller, role, action)?;
    Ok((workspace, role))
}

/// The workspace of a request that asks for this one, and the caller's role there.
pub(crate) async fn workspace_and_role(
    stage: &StreamContext,
    caller: &Caller,
    asked: Option<WorkspaceId>,
) -> Result<(WorkspaceId, Role), Error> {
    let workspace = match asked {
        Some(workspace) => workspace,
        None => first_workspace(stage, caller).await?,
    };
    let role = auth::role(stage, caller, workspace).await?;
    // The very words for one that does not exist.
    let role = role.ok_or_else(|| Error::not_found("workspace", workspace))?;
    Ok((workspace, role))
}

async fn first_workspace(stage: &StreamContext, caller: &Caller) -> Result<WorkspaceId, Error> {
    let first = first_there(stage, oldest_first(stage, caller).await?).await?;
    first.map(|(workspace, _)| workspace).ok_or_else(|| {
        Error::new(Code::NotFound, "you have no workspace yet")
            .hint("POST /api/v1/workspaces makes one; sessions live in workspaces")
    })
}

/// A session of the caller; that of another person is not there.
fn theirs(view: ChatView, by: &Principal) -> Result<ChatView, Error> {
    match chat::is_session_of(&view, by) {
        true => Ok(view),
        false => Err(Error::not_found("session", view.chat_id)),
    }
}

fn context_of(name: &str) -> Result<SessionContext, Error> {
    let name = if name == "general" { "global" } else { name };
    serde_json::from_value(Value::from(name)).map_err(|_| {
        Error::invalid("context_type", format!("{:?} is no context", excerpt(name))).hint(
            "one of global, project, calendar, task, project_create, project_update, project_audit, project_forecast, task_update, \
             daily_brief_update",
        )
    })
}

/// The messages that a client brings along, as a text; the first ones of many are left out.
fn earlier(brought: &[HistoryMessage]) -> Result<String, Error> {
    let mut text = String::new();
    for HistoryMessage { role, content } in brought.iter().skip(brought.len().saturating_sub(BROUGHT)) {
        let who = match role.as_str() {
            "user" => "person",
            "assistant" => "you",
            // Calls of tools and system texts of a client mean nothing here.
            "tool" | "system" => continue,
            _ => return Err(Error::invalid("conversationHistory", "a message is of the user or of the assistant")),
        };
        if let Some(content) = content {
            let _ = writeln!(text, "{who}: {content}");
        }
    }
    Ok(text)
}

fn not_here() -> Error {
    Error::new(Code::UpstreamUnavailable, "this server answers no message with a stream")
        .hint("the message was not taken; send it with \"stream\": false, and read the answer with GET and session_id")
}
