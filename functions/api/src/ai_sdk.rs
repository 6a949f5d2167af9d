//! The AI SDK of Vercel (`useChat`): a message in, the chunks of its answer out by [`protocols::ai_sdk`].

use crate::{
    Context,
    access::{Access, Converse, Read, demand},
    converse::{ConversationTarget, MessageInput, Reply, Run, Speaker, waits},
    error::{Answer, excerpt},
    extract::{JsonWithFiles, TraceParent, Traced},
    ids::Ids,
    rate_limits::Paced,
    workspaces::InWorkspace,
};
use axum::{
    extract::State,
    response::{IntoResponse, Response},
};
use domain::{ChatStatus, CommandId, Error, WorkspaceId};
use http::{HeaderName, HeaderValue, StatusCode};
use identity::Action;
use protocols::{
    Part,
    ai_sdk::{self as wire, Chunks, Input, Request},
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::sync::Arc;
use utoipa::{IntoParams, ToSchema};

/// Says that a stream is one of UI messages, and its version.
pub(crate) const STREAM: HeaderName = HeaderName::from_static("x-vercel-ai-ui-message-stream");
/// The end of a stream.
const DONE: &str = "data: [DONE]\n\n";

/// The chat of a path.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct InUiChat {
    /// The workspace.
    #[param(value_type = uuid::Uuid)]
    workspace_id: WorkspaceId,
    /// The client's own id of the chat, or the chat's.
    #[param(example = "Kq3v0bYx2nW1tQzP")]
    id: String,
}

/// A chat that was told to stop.
#[derive(Serialize, ToSchema)]
pub(crate) struct UiStopped {
    /// Always `cancelled`; the stream tells when it has.
    status: &'static str,
}

/// Takes the last message of a client of the AI SDK, or the approval or answer in it, and answers with the chunks of its turn up to the next
/// question. A new id makes a chat; a UUID is that of a chat that is there. A message is processed although its client goes.
#[utoipa::path(post, path = "/api/v1/workspaces/{workspace_id}/ai-sdk/chat", tag = "clients", params(InWorkspace, TraceParent),
    request_body(content = Value, description = "As `DefaultChatTransport` sends it. Beside it, `role`, a persona or a flow, and `model` of a new chat."),
    responses((status = 200, description = "The chunks of the answer (UI message stream, version 1).", body = String,
        content_type = "text/event-stream")))]
pub(crate) async fn send_ui_message(
    State(context): State<Arc<Context>>,
    Access { at, by, caller, role, files, .. }: Access<Converse, InWorkspace>,
    _: Paced,
    ids: Ids,
    Traced(trace): Traced,
    JsonWithFiles(body): JsonWithFiles<Map<String, Value>>,
) -> Answer<Response> {
    let Request { id, role: persona, model, earlier, input } = wire::request(&body)?;
    let speaker =
        Speaker { context: &context, workspace: at.workspace_id, by, caller: &caller, role, files, ids, trace };
    speaker.demand_streams("post it to the chat, and watch its events at the public address")?;
    let meant = ConversationTarget::find(&context.base, at.workspace_id, &id).await?;
    let chat = meant.chat();
    let run = match input {
        Input::Words { content, files } => {
            let words = MessageInput { content, earlier, role: persona, model, files, ..MessageInput::default() };
            speaker.say(chat, meant.is_there(), words).await?
        }
        Input::Decision { id, approved, reason } => {
            speaker.reply(chat, id.0, Reply::Decision { approved, reason }).await?
        }
        Input::Answers(call, output) => speaker.reply(chat, call.0, Reply::Given(output)).await?,
    };
    Ok(marked(speaker.streamed(run, Box::new(Chunks::of(run.chat, run.part)), DONE).await?))
}

/// The chunks of the turn that runs or waits for a person, from its beginning: for a client that comes back and builds the message anew. 204 when
/// no turn is under way.
#[utoipa::path(get, path = "/api/v1/workspaces/{workspace_id}/ai-sdk/chat/{id}/stream", tag = "clients", params(InUiChat),
    responses((status = 200, description = "The chunks of the turn.", body = String, content_type = "text/event-stream"),
        (status = 204, description = "No turn is under way.")))]
pub(crate) async fn resume_ui_stream(
    State(context): State<Arc<Context>>,
    Access { at, by, caller, role, files, .. }: Access<Read, InUiChat>,
    ids: Ids,
) -> Answer<Response> {
    let meant = ConversationTarget::find(&context.base, at.workspace_id, &at.id).await?;
    let speaker =
        Speaker { context: &context, workspace: at.workspace_id, by, caller: &caller, role, files, ids, trace: None };
    let (chat, view) = match &meant {
        ConversationTarget::Chat(view) if view.status != ChatStatus::Idle => (view.chat_id, view),
        ConversationTarget::Task(view) => {
            let Some(run) = speaker.under_way(view).await? else { return Ok(StatusCode::NO_CONTENT.into_response()) };
            let chunks = Box::new(Chunks::through(run.chat, run.part));
            return Ok(marked(speaker.streamed(run, chunks, DONE).await?));
        }
        ConversationTarget::Chat(_) | ConversationTarget::Nothing(_) => {
            return Ok(StatusCode::NO_CONTENT.into_response());
        }
    };
    let parts = speaker.parts(chat).await?;
    let last = match (parts.last(), view.turn_id) {
        (Some(last), _) if parts.is_running() => last,
        // A turn that has not begun.
        (_, Some(turn)) => Part::first(turn),
        _ => return Ok(StatusCode::NO_CONTENT.into_response()),
    };
    // A turn that waits for a person is shown up to its question.
    let number = if waits(view) { last.number.saturating_sub(1) } else { last.number };
    let part = Part { number, ..last };
    let run = Run { chat, part, first: view.turn_seq.unwrap_or(1), resumed: parts.resumed() };
    Ok(marked(speaker.streamed(run, Box::new(Chunks::through(chat, part)), DONE).await?))
}

/// Stops the turn of a chat. `stop` of `useChat` ends only the client's own stream.
#[utoipa::path(post, path = "/api/v1/workspaces/{workspace_id}/ai-sdk/chat/{id}/stop", tag = "clients", params(InUiChat),
    responses((status = 200, description = "It was told to stop.", body = UiStopped)))]
pub(crate) async fn stop_ui_stream(
    State(context): State<Arc<Context>>,
    Access { at, by, caller, role, .. }: Access<Converse, InUiChat>,
    ids: Ids,
) -> Answer<axum::Json<UiStopped>> {
    let command = CommandId(ids.id("command"));
    match ConversationTarget::find(&context.base, at.workspace_id, &at.id).await? {
        ConversationTarget::Chat(view) => context.chats.stop(at.workspace_id, view.chat_id, command, &by).await?,
        ConversationTarget::Task(view) => {
            demand(&caller, role, Action::Run)?;
            context.tasks.stop(at.workspace_id, view.task_id, command, &by).await.map(drop)?
        }
        ConversationTarget::Nothing(_) => return Err(Error::not_found("chat", excerpt(&at.id)).into()),
    }
    Ok(axum::Json(UiStopped { status: "cancelled" }))
}

fn marked(mut response: Response) -> Response {
    response.headers_mut().insert(STREAM, HeaderValue::from_static("v1"));
    response
}
