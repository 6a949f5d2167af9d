//! The events of chats and tasks: permission to watch, and the start of the stream. Another function serves the stream itself.

use crate::{
    StreamContext,
    access::{Access, Read},
    chats::InChat,
    error::{Answer, excerpt},
    extract::Query,
    followed_logs::{Followed, followed},
    schema,
    tasks::InTask,
    workspaces::InWorkspace,
};
use actor::{ActorId, next_number, read_after};
use async_trait::async_trait;
use axum::{
    extract::State,
    response::{IntoResponse, Response},
};
use domain::{ActorRef, ChatEvent, Error, TaskEvent, TaskPhase, WorkspaceId, task_native};
use http::{HeaderMap, StatusCode};
use ports::Table;
use protocols::{Projection, Span};
use serde::Deserialize;
use std::sync::Arc;
use utoipa::IntoParams;

/// The source of event streams: in the hub, `stream::events` over its feeds.
#[async_trait]
pub trait Streams: Send + Sync {
    /// Answers with the events of `actor`: after the request's `Last-Event-ID`, else after `after` (the value of `?after=`),
    /// else those numbered `first` and above. A cursor that is unknown or too old is no error but a `reset` event.
    ///
    /// # Errors
    /// [`ports::Error::Unavailable`] when the log cannot be read or this process serves no streams; [`ports::Error::Damaged`] for an entry
    /// that cannot be read.
    async fn open(
        &self,
        actor: ActorRef,
        first: u64,
        headers: &HeaderMap,
        after: Option<&str>,
    ) -> ports::Result<Response>;

    /// Answers with the frames of `projection` over the log of `actor`: after the request's `Last-Event-ID`, else after `after`, else from
    /// `span.first` on. A cursor that is not known counts as none.
    ///
    /// # Errors
    /// Those of [`Streams::open`].
    async fn open_projected(
        &self,
        actor: ActorRef,
        projection: Box<dyn Projection<Event = ChatEvent>>,
        span: Span,
        headers: &HeaderMap,
        after: Option<&str>,
    ) -> ports::Result<Response>;

    /// The same over the log of a task.
    ///
    /// # Errors
    /// Those of [`Streams::open`].
    async fn open_task(
        &self,
        actor: ActorRef,
        projection: Box<dyn Projection<Event = TaskEvent>>,
        span: Span,
        headers: &HeaderMap,
    ) -> ports::Result<Response>;

    /// Whether this process serves streams. Where it does not, a request that would command and then stream is refused before its command.
    fn are_here(&self) -> bool {
        true
    }

    /// Whether an answer that streams is dropped when its client goes. Where it is not, a request that depends on it is refused.
    fn see_clients_go(&self) -> bool {
        true
    }

    /// Answers with the changes of a workspace: after the request's `Last-Event-ID`, else after `after`, else those to come. The events of
    /// the actors `followed` come along, as `chat_event` and `task_event`.
    ///
    /// # Errors
    /// Those of [`Streams::open`].
    async fn open_changes(
        &self,
        workspace: WorkspaceId,
        access: workspace::Access,
        followed: Vec<Followed>,
        headers: &HeaderMap,
        after: Option<&str>,
    ) -> ports::Result<Response>;
}

/// How to watch.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Watch {
    /// Only events after the one with this `id:`; 0 for all that are kept. `Last-Event-ID` comes before it. Without either, the
    /// stream of a chat begins at the start of the running turn, or live when none runs; that of a task at its beginning; that of
    /// a workspace with the next change. The `id:` of a change of a workspace is a time in milliseconds since 1970.
    #[param(value_type = Option<u64>)]
    after: Option<String>,
    /// As the header `Last-Event-ID`, for an `EventSource` of a library: it puts the number behind the address when it connects again.
    #[serde(rename = "lastEventId")]
    #[param(value_type = Option<u64>)]
    last_event_id: Option<String>,
    /// The wire format: `native`.
    #[param(default = "native")]
    protocol: Option<String>,
    /// A ticket to this stream, of `POST …/stream-tickets`, instead of a token. It is checked before the handler.
    #[expect(dead_code, reason = "it is part of the description")]
    ticket: Option<String>,
}

impl Watch {
    /// The cursor of the address, whose `after` is that of the first connection.
    fn cursor(&self) -> Option<&str> {
        self.last_event_id.as_deref().filter(|id| !id.is_empty()).or(self.after.as_deref())
    }
}

/// Chats and tasks on the same connection.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Along {
    /// Up to 32 chats and tasks whose events come along: `chat:ID` or `task:ID`, with `:AFTER` where the client has events, and commas
    /// between. Their events are `chat_event` and `task_event`. A client that comes back names the last number of each.
    #[param(example = "chat:019bf537-f228-7cd3-aa1c-3da8af302e12:17")]
    actors: Option<String>,
}

/// The events of a chat as Server-Sent Events: `id:` is the event's number, `event:` its type, `data:` one JSON object. The stream of a chat
/// that is deleted ends with its last event; a client that comes back gets 404, which ends an `EventSource`.
#[utoipa::path(get, path = "/api/v1/workspaces/{workspace_id}/chats/{chat_id}/events", tag = "chats",
    params(InChat, Watch, ("Last-Event-ID" = Option<u64>, Header, description = "As `after`; browsers send it.")),
    responses((status = 200, description = "Events, until the client goes or the chat is deleted. The schema is that of one block of the stream: its \
        `event` is the block's `event:` field, `id` its `id:` field, `data` its `data:` field parsed as JSON.",
        body = schema::ChatEvent, content_type = "text/event-stream",
        example = json!("id: 4\nevent: chunk\ndata: {\"text\":\"Hello\",\"message_id\":\"019bf537-…\"}\n\n"))))]
pub(crate) async fn watch_chat(
    State(context): State<Arc<StreamContext>>,
    Access { at, .. }: Access<Read, InChat>,
    Query(watch): Query<Watch>,
    headers: HeaderMap,
) -> Answer<Response> {
    check_protocol(watch.protocol.as_deref())?;
    let actor = ActorRef::Chat { workspace: at.workspace_id, chat: at.chat_id };
    // The end of the log comes first: events of a turn that begins after the view was read are above it.
    let next = next_number(&*context.table, &actor.into()).await?;
    let view = context.chats.get(at.workspace_id, at.chat_id).await?;
    let first = view.turn_seq.unwrap_or(next);
    Ok(context.streams.open(actor, first, &headers, watch.cursor()).await?)
}

/// The events of a task as Server-Sent Events, from its beginning when no cursor is given. The last one is `done` or
/// `stopped`, and the stream ends after it. 204 when the client has that last event already: `EventSource` then stops
/// connecting. Clones and subtasks are tasks with events of their own; so are the chats of agents (`agent_asked` names them).
#[utoipa::path(get, path = "/api/v1/workspaces/{workspace_id}/tasks/{task_id}/events", tag = "tasks",
    params(InTask, Watch, ("Last-Event-ID" = Option<u64>, Header, description = "As `after`; browsers send it.")),
    responses((status = 204, description = "The task has ended, and the client has its last event."),
        (status = 200, description = "Events, to the last one. The schema is that of one block of the stream: its `event` is the \
        block's `event:` field, `id` its `id:` field, `data` its `data:` field parsed as JSON.",
        body = schema::TaskEvent, content_type = "text/event-stream",
        example = json!("id: 3\nevent: node_started\ndata: {\"node\":\"draft\",\"attempt\":1}\n\n"))))]
pub(crate) async fn watch_task(
    State(context): State<Arc<StreamContext>>,
    Access { at, .. }: Access<Read, InTask>,
    Query(watch): Query<Watch>,
    headers: HeaderMap,
) -> Answer<Response> {
    check_protocol(watch.protocol.as_deref())?;
    let view = context.tasks.get(at.workspace_id, at.task_id).await?;
    let actor = ActorRef::Task { workspace: at.workspace_id, task: at.task_id };
    if view.phase == TaskPhase::Finished
        && let Some(after) = cursor(&headers, watch.cursor())
        && has_all(&*context.table, &actor.into(), after).await?
    {
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    Ok(context.streams.open(actor, 1, &headers, watch.cursor()).await?)
}

/// The changes of a workspace as Server-Sent Events: files that anybody changed, and chats and tasks that began, ended or wait.
/// Changes come at least once: after a reconnect those of the last seconds may come again. To show a workspace, open the stream, then
/// load the lists. With `actors` the events of chats and tasks come on the same connection: browsers open six per server.
#[utoipa::path(get, path = "/api/v1/workspaces/{workspace_id}/events", tag = "workspaces",
    params(InWorkspace, Watch, Along, ("Last-Event-ID" = Option<u64>, Header, description = "As `after`; browsers send it.")),
    responses((status = 200, description = "Changes, until the client goes.", body = schema::WorkspaceEvent,
        content_type = "text/event-stream",
        example = json!("id: 1763891000123\nevent: file_updated\ndata: {\"path\":\"/src/auth.rs\",\"v\":4,…}\n\n"))))]
pub(crate) async fn watch_workspace(
    State(context): State<Arc<StreamContext>>,
    Access { at, files, .. }: Access<Read, InWorkspace>,
    Query(watch): Query<Watch>,
    Query(along): Query<Along>,
    headers: HeaderMap,
) -> Answer<Response> {
    check_protocol(watch.protocol.as_deref())?;
    context.workspaces.get(at.workspace_id).await?;
    let followed = followed(&context, at.workspace_id, along.actors.as_deref()).await?;
    Ok(context.streams.open_changes(at.workspace_id, files, followed, &headers, watch.cursor()).await?)
}

/// The number after which a client wants events, if it names one.
pub(crate) fn cursor(headers: &HeaderMap, after: Option<&str>) -> Option<u64> {
    let sent = headers.get("last-event-id").and_then(|value| value.to_str().ok());
    sent.filter(|text| !text.is_empty()).or(after)?.trim().parse().ok()
}

/// Whether a client that has seen the event numbered `after` of a task that has ended has seen them all. A number that the log
/// has not come to is a mistake of the client's, which the stream answers.
async fn has_all(table: &dyn Table, actor: &ActorId, after: u64) -> ports::Result<bool> {
    let page = read_after::<TaskEvent>(table, actor, after, 4).await?;
    if page.more {
        return Ok(false);
    }
    let mut rest = page.entries.iter().flat_map(|entry| entry.numbered()).filter(|(number, _)| *number > after);
    let is_over = rest.all(|(_, event)| task_native::encode(event).is_none());
    Ok(is_over && after < next_number(table, actor).await?)
}

fn check_protocol(wanted: Option<&str>) -> Result<(), Error> {
    let Some(protocol) = wanted.filter(|protocol| *protocol != "native") else { return Ok(()) };
    let message = format!("{:?} is not a wire format that is spoken here", excerpt(protocol));
    let error = Error::invalid("protocol", message);
    Err(error.hint("supported: native; a protocol of clients streams at its own address, such as GET …/ai-sdk/chat/{chat_id}/stream"))
}
