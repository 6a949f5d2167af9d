//! The events of chats and tasks: who may watch, and from where on. The stream itself is of another function.

use crate::{
    Context,
    access::{Access, Read},
    chats::InChat,
    error::Answer,
    extract::Query,
    tasks::InTask,
};
use actor::ActorId;
use async_trait::async_trait;
use axum::{extract::State, response::Response};
use domain::Error;
use http::HeaderMap;
use serde::Deserialize;
use std::sync::Arc;
use utoipa::IntoParams;

/// Where event streams come from: `stream::events` over its feeds, in the hub.
#[async_trait]
pub trait Streams: Send + Sync {
    /// Answers with the events of `actor`: after the request's `Last-Event-ID`, else after `after` (the value of `?after=`),
    /// else those numbered `first` and above. A cursor that is unknown or too old is no error but a `reset` event.
    async fn open(
        &self,
        actor: &ActorId,
        first: u64,
        headers: &HeaderMap,
        after: Option<&str>,
    ) -> ports::Result<Response>;
}

/// How to watch.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Watch {
    /// Only events after the one with this number; 0 for all of them. `Last-Event-ID` comes before it. Without either, the
    /// stream of a chat begins at the start of the running turn, or live when none runs; that of a task at its beginning.
    #[param(value_type = Option<u64>)]
    after: Option<String>,
    /// The wire format: `native`.
    #[param(default = "native")]
    protocol: Option<String>,
}

/// The events of a chat as Server-Sent Events: `id:` is the event's number, `event:` its type, `data:` one JSON object.
#[utoipa::path(get, path = "/api/v1/workspaces/{workspace_id}/chats/{chat_id}/events", tag = "chats",
    params(InChat, Watch, ("Last-Event-ID" = Option<u64>, Header, description = "As `after`; browsers send it."),
        ("ticket" = Option<String>, Query, description = "A ticket to this stream, instead of a token.")),
    responses((status = 200, description = "Events, until the client goes.", body = String,
        content_type = "text/event-stream",
        example = json!("id: 4\nevent: chunk\ndata: {\"text\":\"Hello\",\"message_id\":\"019bf537-…\"}\n\n"))))]
pub(crate) async fn watch_chat(
    State(context): State<Arc<Context>>,
    Access { at, .. }: Access<Read, InChat>,
    Query(watch): Query<Watch>,
    headers: HeaderMap,
) -> Answer<Response> {
    check_protocol(watch.protocol)?;
    let actor = chat::actor_id(at.workspace_id, at.chat_id);
    // Where the log ends comes first: what a turn that begins after the view was read adds is above that.
    let next = actor::next_number(&*context.table, &actor).await?;
    let view = context.chats.get(at.workspace_id, at.chat_id).await?;
    let first = view.turn_seq.unwrap_or(next);
    Ok(context.streams.open(&actor, first, &headers, watch.after.as_deref()).await?)
}

/// The events of a task as Server-Sent Events, from its beginning when no cursor is given. The last one is `done` or
/// `stopped`; of a clone or subtask that went on into a merge above it is `went_up`. Clones and subtasks are tasks with events
/// of their own; so are the chats of agents (`agent_asked` names them).
#[utoipa::path(get, path = "/api/v1/workspaces/{workspace_id}/tasks/{task_id}/events", tag = "tasks",
    params(InTask, Watch, ("Last-Event-ID" = Option<u64>, Header, description = "As `after`; browsers send it."),
        ("ticket" = Option<String>, Query, description = "A ticket to this stream, instead of a token.")),
    responses((status = 200, description = "Events, until the client goes.", body = String,
        content_type = "text/event-stream",
        example = json!("id: 3\nevent: node_started\ndata: {\"node\":\"draft\",\"attempt\":1}\n\n"))))]
pub(crate) async fn watch_task(
    State(context): State<Arc<Context>>,
    Access { at, .. }: Access<Read, InTask>,
    Query(watch): Query<Watch>,
    headers: HeaderMap,
) -> Answer<Response> {
    check_protocol(watch.protocol)?;
    context.tasks.get(at.workspace_id, at.task_id).await?;
    let actor = flow::machine::actor_id(at.workspace_id, at.task_id);
    Ok(context.streams.open(&actor, 1, &headers, watch.after.as_deref()).await?)
}

fn check_protocol(wanted: Option<String>) -> Result<(), Error> {
    let Some(protocol) = wanted.filter(|protocol| protocol != "native") else { return Ok(()) };
    let protocol: String = protocol.chars().take(64).collect();
    let error = Error::invalid("protocol", format!("{protocol:?} is not a wire format that is spoken here"));
    Err(error.hint("supported: native"))
}
