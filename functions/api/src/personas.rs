//! The personas and the skills of a workspace: folders of `/system`, each described by the front matter of one file.

use crate::{
    Context,
    error::Answer,
    extract::Path,
    schema::{Agents, Described, Skills},
    workspaces::InWorkspace,
};
use axum::{Json, extract::State};
use domain::{Code, Error, FilePath};
use serde::Deserialize;
use std::sync::Arc;
use workspace::{Kind, Workspace};

/// The most that are listed; more would not fit into a system text either.
const MOST: usize = 200;
/// How much of a file is looked at for its front matter, in bytes.
const HEAD: u64 = 8 * 1024;

#[derive(Deserialize, Default)]
#[serde(default)]
struct FrontMatter {
    name: Option<String>,
    description: Option<String>,
}

/// The personas that a chat's `role` can name.
#[utoipa::path(get, path = "/api/v1/workspaces/{workspace_id}/agents", tag = "agents", params(InWorkspace),
    responses((status = 200, description = "All of them.", body = Agents)))]
pub(crate) async fn list_agents(
    State(context): State<Arc<Context>>,
    Path(at): Path<InWorkspace>,
) -> Answer<Json<Agents>> {
    let workspace = context.workspaces.open(at.workspace_id).await?;
    Ok(Json(Agents { agents: described(&workspace, "/system/agents", "AGENT.md").await? }))
}

/// The skills that agents can read.
#[utoipa::path(get, path = "/api/v1/workspaces/{workspace_id}/skills", tag = "agents", params(InWorkspace),
    responses((status = 200, description = "All of them.", body = Skills)))]
pub(crate) async fn list_skills(
    State(context): State<Arc<Context>>,
    Path(at): Path<InWorkspace>,
) -> Answer<Json<Skills>> {
    let workspace = context.workspaces.open(at.workspace_id).await?;
    Ok(Json(Skills { skills: described(&workspace, "/system/skills", "SKILL.md").await? }))
}

async fn described(workspace: &Workspace, folder: &str, file: &str) -> Result<Vec<Described>, Error> {
    let mut all = Vec::new();
    for entry in workspace.ls(&FilePath::parse(folder)?, MOST, None).await?.entries {
        if entry.kind != Kind::Folder {
            continue;
        }
        let path = entry.path.join(file)?;
        let content = match workspace.read(&path, Some(0..HEAD)).await {
            Ok(content) => content,
            // A folder without the file is none.
            Err(error) if matches!(error.code, Code::NotFound | Code::Unprocessable) => continue,
            Err(error) => return Err(error),
        };
        let about = front_matter(&String::from_utf8_lossy(&content.bytes));
        let title = about.name.unwrap_or_else(|| entry.name.clone());
        let description = about.description.unwrap_or_default();
        all.push(Described {
            name: entry.name,
            title,
            description,
            path: path.to_string(),
            file_id: content.info.file_id.0,
        });
    }
    Ok(all)
}

/// What is between the `---` lines at the beginning; nothing when that is not YAML.
fn front_matter(text: &str) -> FrontMatter {
    let yaml = text.strip_prefix("---\n").and_then(|rest| rest.split_once("\n---")).map(|(yaml, _)| yaml);
    yaml.and_then(|yaml| serde_saphyr::from_str(yaml).ok()).unwrap_or_default()
}
