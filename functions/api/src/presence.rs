//! Presence: a person tells that they look at a chat, a file or a page, for as long as they repeat it.

use crate::{
    Context,
    access::{Access, Read},
    error::Answer,
    extract::Json,
    workspaces::InWorkspace,
};
use axum::{extract::State, response::IntoResponse};
use domain::{ChatId, Error, FilePath, PresenceTarget};
use http::StatusCode;
use serde::Deserialize;
use std::sync::Arc;
use utoipa::ToSchema;

/// The subject of attention: `chat_id` or `path`.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PresenceUpdate {
    /// The chat.
    #[schema(value_type = Option<Uuid>)]
    chat_id: Option<ChatId>,
    /// The file or folder.
    #[schema(value_type = Option<String>, min_length = 1, max_length = 4096, example = "/projects/plan.md")]
    path: Option<FilePath>,
    /// False when you have looked away.
    #[serde(default = "yes")]
    #[schema(default = true)]
    here: bool,
}

fn yes() -> bool {
    true
}

/// Tells the watchers of the workspace that you look at a chat, a file or a folder (`presence` in its events). It ends by itself 60 s after the
/// last request: repeat it every 20 s. Watchers who may not read the path are not told. It is kept nowhere.
#[utoipa::path(put, path = "/api/v1/workspaces/{workspace_id}/presence", tag = "workspaces", params(InWorkspace),
    request_body = PresenceUpdate, responses((status = 204, description = "They are told.")))]
pub(crate) async fn put_presence(
    State(context): State<Arc<Context>>,
    Access { at, caller, files, .. }: Access<Read, InWorkspace>,
    Json(PresenceUpdate { chat_id, path, here }): Json<PresenceUpdate>,
) -> Answer<impl IntoResponse> {
    let looked = match (chat_id, path) {
        (Some(chat), None) => PresenceTarget::ChatId(chat),
        (None, Some(path)) => PresenceTarget::Path(path),
        _ => {
            return Err(Error::invalid("path", "a presence names a chat or a path, and not both")
                .hint("send one of them, chat_id or path")
                .into());
        }
    };
    if let (PresenceTarget::ChatId(chat), true) = (&looked, here) {
        context.base.chats.get(at.workspace_id, *chat).await?;
    }
    let workspace = context.base.workspaces.open(at.workspace_id, files).await?;
    workspace.announce_presence(caller.user, looked, here).await?;
    Ok(StatusCode::NO_CONTENT)
}
