//! The changes of a workspace's files, for audits: by whom, when and where something was changed.

use crate::{
    Context,
    access::{Access, Read},
    error::Answer,
    extract::{Query, page_length},
    schema,
    workspaces::InWorkspace,
};
use axum::{extract::State, response::IntoResponse};
use domain::{Error, FilePath, Principal, Timestamp};
use serde::Deserialize;
use std::sync::Arc;
use utoipa::IntoParams;
use workspace::{ChangeFilter, Op};

/// The changes to list.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct Listed {
    /// Only changes at or below this path, and moves from there.
    #[param(value_type = Option<String>, min_length = 1, max_length = 4096, example = "/projects")]
    path: Option<FilePath>,
    /// Only changes by this author, as changes name it: `user:<id>`, `agent:<persona>`, `task:<id>`, `system`, or one of an imported repository, such as
    /// `Ada <ada@example.org>`. Another text is refused.
    #[param(example = "agent:assistant")]
    author: Option<String>,
    /// Only changes of this kind.
    #[param(value_type = Option<schema::FileOp>)]
    op: Option<Op>,
    /// Only changes at this time or later.
    #[param(value_type = Option<String>, format = DateTime)]
    since: Option<Timestamp>,
    /// Only changes before this time.
    #[param(value_type = Option<String>, format = DateTime)]
    until: Option<Timestamp>,
    /// At most this many; 1 to 200.
    #[param(default = 50, minimum = 1, maximum = 200)]
    limit: Option<usize>,
    /// The `next_cursor` of the page before.
    cursor: Option<String>,
}

/// The changes of files by anybody, newest first: of those paths that the caller may list. They are kept for 30 days; versions of files are kept for
/// longer. A page can be short and have a next one, where few of many changes are asked for.
#[utoipa::path(get, path = "/api/v1/workspaces/{workspace_id}/changes", tag = "versions", params(InWorkspace, Listed),
    responses((status = 200, description = "A page of them.", body = schema::ChangeList)))]
pub(crate) async fn list_changes(
    State(context): State<Arc<Context>>,
    Access { at, files, .. }: Access<Read, InWorkspace>,
    Query(listed): Query<Listed>,
) -> Answer<impl IntoResponse> {
    let limit = page_length(listed.limit, 50, 200)?;
    let Listed { path, author, op, since, until, cursor, .. } = listed;
    author.as_deref().map_or(Ok(()), Principal::check_author)?;
    if since.zip(until).is_some_and(|(since, until)| since >= until) {
        return Err(Error::invalid("until", "until is not after since").hint("give the earlier time as since").into());
    }
    let workspace = context.base.workspaces.open(at.workspace_id, files).await?;
    let filter = ChangeFilter { path, author, op, since, until };
    Ok(axum::Json(workspace.changes(&filter, limit, cursor).await?))
}
