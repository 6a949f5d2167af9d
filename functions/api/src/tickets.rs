//! Tickets to event streams, for browsers' `EventSource`, which cannot send headers.

use crate::{
    Context,
    access::{Access, Read},
    error::Answer,
    extract::Json,
    keys::NO_STORE,
    schema,
    workspaces::InWorkspace,
};
use axum::{extract::State, response::IntoResponse};
use domain::{ChatId, Error, TaskId};
use http::StatusCode;
use identity::Stream;
use serde::Deserialize;
use std::sync::Arc;
use utoipa::ToSchema;

/// The stream to open: that of a chat or of a task; without either, the changes of the workspace.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewTicket {
    /// The chat.
    #[schema(value_type = Option<Uuid>)]
    chat_id: Option<ChatId>,
    /// The task.
    #[schema(value_type = Option<Uuid>)]
    task_id: Option<TaskId>,
    /// The `after` of the stream, which `url` then has: only events after the one with this `id:`; 0 for all that are kept. A browser that connects
    /// again names its last event by itself, and that one counts first.
    #[serde(default, deserialize_with = "crate::extract::some_number")]
    #[schema(maximum = 9_223_372_036_854_775_807_u64)]
    after: Option<u64>,
}

/// Makes a ticket that opens one event stream for a minute, also again: `EventSource` connects anew by itself. Whether you
/// are still a member is asked when it is used, and whether the API key that asked for it is still good.
#[utoipa::path(post, path = "/api/v1/workspaces/{workspace_id}/stream-tickets", tag = "chats", params(InWorkspace),
    request_body = NewTicket, responses((status = 201, description = "It is good from now on.", body = schema::Ticket)))]
pub(crate) async fn create_ticket(
    State(context): State<Arc<Context>>,
    Access { at, caller, .. }: Access<Read, InWorkspace>,
    Json(wanted): Json<NewTicket>,
) -> Answer<impl IntoResponse> {
    let (stream, place) = match (wanted.chat_id, wanted.task_id) {
        (Some(chat), None) => {
            context.chats.get(at.workspace_id, chat).await?;
            (Stream::Chat(chat), format!("/chats/{chat}"))
        }
        (None, Some(task)) => {
            context.tasks.get(at.workspace_id, task).await?;
            (Stream::Task(task), format!("/tasks/{task}"))
        }
        (None, None) => (Stream::Workspace, String::new()),
        (Some(_), Some(_)) => {
            return Err(Error::invalid("chat_id", "one ticket opens one stream: give a chat_id or a task_id").into());
        }
    };
    let now = context.base.clock.now();
    let (office, key) = (context.base.auth.ticket_office(), caller.means.key());
    let (ticket, expires_at) = office.issue(caller.user, key, at.workspace_id, stream, now)?;
    let after = wanted.after.map(|after| format!("&after={after}")).unwrap_or_default();
    let url = format!("/api/v1/workspaces/{}{place}/events?ticket={ticket}{after}", at.workspace_id);
    let made = schema::Ticket { ticket, url, expires_at: expires_at.to_string() };
    Ok((StatusCode::CREATED, [NO_STORE], axum::Json(made)))
}
