//! The list of what waits for people in a workspace.

use crate::{
    Context,
    access::{Access, Read},
    error::Answer,
    extract::{Query, page_length},
    schema,
    workspaces::InWorkspace,
};
use actor::waiting::{self, WaitingPage};
use axum::{extract::State, response::IntoResponse};
use domain::TaskId;
use serde::Deserialize;
use std::sync::Arc;
use utoipa::IntoParams;

/// How many parts of the list one request reads.
const MOST_PAGES: usize = 20;

/// The selection of what waits.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct WaitingQuery {
    /// Only this task, its clones and subtasks, and their agents.
    #[param(value_type = Option<Uuid>)]
    task: Option<TaskId>,
    /// At most this many; 1 to 200. A page may have fewer and still have a next one.
    #[param(default = 50, minimum = 1, maximum = 200)]
    limit: Option<usize>,
    /// The `next_cursor` of the page before.
    cursor: Option<String>,
}

/// The chats and tasks with open questions or requests for permission, those included that are on no other list: agents of tasks, clones,
/// subtasks. Each says where it is from. A question of a chat is answered at the chat, a question of a node at its task, and
/// a permission at its chat or at `POST /v1/permissions/{permission_id}`.
#[utoipa::path(get, path = "/api/v1/workspaces/{workspace_id}/waiting", tag = "workspaces", params(InWorkspace, WaitingQuery),
    responses((status = 200, description = "A page of them, in the order of their ids.", body = schema::WaitingPage)))]
pub(crate) async fn list_waiting(
    State(context): State<Arc<Context>>,
    Access { at, .. }: Access<Read, InWorkspace>,
    Query(WaitingQuery { task, limit, cursor }): Query<WaitingQuery>,
) -> Answer<impl IntoResponse> {
    let limit = page_length(limit, 50, 200)?;
    let root = match task {
        None => None,
        Some(task) => Some(context.tasks.get(at.workspace_id, task).await?.root()),
    };
    let mut page = WaitingPage { waiting: Vec::new(), next_cursor: cursor };
    // The list is that of the whole tree, of which a subtask has a part.
    for _ in 0..MOST_PAGES {
        let missing = limit - page.waiting.len();
        let more = waiting::list(&*context.base.table, at.workspace_id, root, missing, page.next_cursor).await?;
        page.waiting.extend(more.waiting.into_iter().filter(|one| task.is_none_or(|task| one.is_below(task))));
        page.next_cursor = more.next_cursor;
        if page.next_cursor.is_none() || page.waiting.len() >= limit {
            break;
        }
    }
    Ok(axum::Json(page))
}
