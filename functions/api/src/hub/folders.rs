//! The folders that threads may work in.

use super::{
    agent_kind::AgentKind,
    caller::Hub,
    refused,
    schema::{Directories, Paths},
};
use crate::{Context, access::Read, error::Answer, extract::Query};
use axum::{Json, extract::State};
use domain::{Error, ThreadAgent, WORKSPACE_FOLDER};
use serde::Deserialize;
use std::sync::Arc;
use utoipa::IntoParams;

/// The most folders in an answer.
const MOST: usize = 50;
/// The longest path, in bytes.
const MAX_PATH: usize = 4096;
/// How many threads are looked through for their folders.
const LOOKED_THROUGH: usize = 200;

/// A path to complete.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Sought {
    /// The beginning of a path; the allowed roots without it.
    #[serde(default)]
    q: String,
}

/// Folders below the allowed roots that complete a path: for a picker of `cwd`.
#[utoipa::path(get, path = "/v1/path-search", tag = "hub", params(Sought),
    responses((status = 200, description = "At most 50 of them.", body = Paths)))]
pub(crate) async fn search_paths(
    State(context): State<Arc<Context>>,
    _: Hub<Read>,
    Query(Sought { q }): Query<Sought>,
) -> Answer<Json<Paths>> {
    if q.len() > MAX_PATH {
        return Err(Error::invalid("q", format!("a path has at most {MAX_PATH} bytes")).into());
    }
    let mut paths: Vec<String> =
        [WORKSPACE_FOLDER.to_owned()].into_iter().filter(|home| home.starts_with(&q)).collect();
    if let Some(folders) = &context.folders {
        paths.extend(folders.search(&q, MOST).await.map_err(|error| refused("q", error))?);
        paths.truncate(MOST);
    }
    Ok(Json(Paths { query: q, results: paths }))
}

/// The folders of the latest threads, each once.
#[utoipa::path(get, path = "/v1/recent-directories", tag = "hub",
    responses((status = 200, description = "The last used first.", body = Directories)))]
pub(crate) async fn list_recent_directories(
    State(context): State<Arc<Context>>,
    Hub { within, .. }: Hub<Read>,
) -> Answer<Json<Directories>> {
    let threads = context.threads().reader().list(within.workspace, LOOKED_THROUGH, None).await?.threads;
    let mut used: Vec<_> = threads.into_iter().map(|thread| (thread.updated_at(), thread.record.agent.cwd)).collect();
    used.sort_by(|a, b| b.cmp(a));
    let mut directories: Vec<String> = Vec::new();
    for (_, cwd) in used {
        if !directories.contains(&cwd) {
            directories.push(cwd);
        }
    }
    directories.truncate(MOST);
    Ok(Json(Directories { directories }))
}

/// The folder of a thread, resolved, if it is allowed: one of the machine, or one of the workspace's files.
pub(super) async fn allowed(context: &Context, kind: &AgentKind, cwd: &str) -> Result<String, Error> {
    if cwd.len() > MAX_PATH {
        return Err(Error::invalid("cwd", format!("a path has at most {MAX_PATH} bytes")));
    }
    let of_workspace = ThreadAgent::folder(cwd).map(|folder| ThreadAgent::cwd_of(&folder));
    let Some(folders) = &context.folders else {
        return of_workspace.ok_or_else(|| {
            Error::invalid("cwd", "the folder is outside of the workspace's files")
                .hint(format!("use {WORKSPACE_FOLDER} or a folder in it"))
        });
    };
    let error = match folders.allowed(cwd).await {
        Ok(folder) => return Ok(folder),
        Err(error) => error,
    };
    match (of_workspace, kind) {
        (Some(cwd), AgentKind::Persona(_)) => return Ok(cwd),
        (Some(cwd), AgentKind::Coding) => {
            if let Ok(cwd) = context.agents.allowed(&cwd).await {
                return Ok(cwd);
            }
        }
        (None, _) => {}
    }
    let roots = folders.roots();
    let hint = match roots.is_empty() {
        true => {
            format!(
                "use {WORKSPACE_FOLDER}, the files of the workspace; start the hub with --allowed-root DIR for folders of the machine"
            )
        }
        false => format!(
            "use an absolute path inside of {}, or {WORKSPACE_FOLDER}, the files of the workspace",
            roots.join(", ")
        ),
    };
    Err(refused("cwd", error).hint(hint))
}
