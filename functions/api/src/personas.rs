//! The personas and the skills of a workspace: folders of `/system`, each described by the front matter of one file.

use crate::{
    Context,
    access::{Access, Read},
    error::Answer,
    schema::{Agents, Described, Skills},
    workspaces::InWorkspace,
};
use axum::{Json, extract::State};
use chat::Shelf;
use std::sync::Arc;

/// The personas that a chat's `role` can name.
#[utoipa::path(get, path = "/api/v1/workspaces/{workspace_id}/agents", tag = "agents", params(InWorkspace),
    responses((status = 200, description = "All of them.", body = Agents)))]
pub(crate) async fn list_agents(
    State(context): State<Arc<Context>>,
    Access { at, files, .. }: Access<Read, InWorkspace>,
) -> Answer<Json<Agents>> {
    Ok(Json(Agents { agents: listed(&context, at, files, Shelf::Agents).await? }))
}

/// The skills that agents can read.
#[utoipa::path(get, path = "/api/v1/workspaces/{workspace_id}/skills", tag = "agents", params(InWorkspace),
    responses((status = 200, description = "All of them.", body = Skills)))]
pub(crate) async fn list_skills(
    State(context): State<Arc<Context>>,
    Access { at, files, .. }: Access<Read, InWorkspace>,
) -> Answer<Json<Skills>> {
    Ok(Json(Skills { skills: listed(&context, at, files, Shelf::Skills).await? }))
}

async fn listed(context: &Context, at: InWorkspace, files: workspace::Access, shelf: Shelf) -> Answer<Vec<Described>> {
    let workspace = context.base.workspaces.open(at.workspace_id, files).await?;
    let all = chat::described(&workspace, shelf).await?;
    let shown = |one: chat::Described| Described {
        name: one.name,
        title: one.title,
        description: one.description,
        path: one.path.to_string(),
        file_id: one.file_id.0,
    };
    Ok(all.into_iter().map(shown).collect())
}
