//! The personas and the skills of a workspace: folders of `/system`, each described by the front matter of one file, and the personas in the box.

use crate::{
    Context,
    access::{Access, Read},
    error::Answer,
    schema::{FrontMatterFault, ModelSettings, PersonaList, PersonaOrSkill, SkillList},
    workspaces::InWorkspace,
};
use axum::{Json, extract::State};
use chat::DefinitionKind;
use domain::{WorkspaceId, text::shortened};
use serde::Deserialize;
use std::sync::Arc;
use utoipa::IntoParams;

/// A persona of a workspace.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct InAgent {
    /// The workspace.
    #[param(value_type = uuid::Uuid)]
    workspace_id: WorkspaceId,
    /// The persona, as a chat's `role` names it.
    #[param(example = "reviewer")]
    agent: String,
}

/// The personas that a chat's `role` can name: the caller's own, those of the workspace, and those in the box; of one name the first of these.
#[utoipa::path(get, path = "/api/v1/workspaces/{workspace_id}/agents", tag = "agents", params(InWorkspace),
    responses((status = 200, description = "All of them.", body = PersonaList)))]
pub(crate) async fn list_agents(
    State(context): State<Arc<Context>>,
    Access { at, files, .. }: Access<Read, InWorkspace>,
) -> Answer<Json<PersonaList>> {
    Ok(Json(PersonaList { agents: listed(&context, at, files, DefinitionKind::Agents).await? }))
}

/// A persona with the text of its file. To change one in the box, write its text to its `path` and change it there.
#[utoipa::path(get, path = "/api/v1/workspaces/{workspace_id}/agents/{agent}", tag = "agents", params(InAgent),
    responses((status = 200, description = "It.", body = PersonaOrSkill)))]
pub(crate) async fn get_agent(
    State(context): State<Arc<Context>>,
    Access { at, files, .. }: Access<Read, InAgent>,
) -> Answer<Json<PersonaOrSkill>> {
    let workspace = context.base.workspaces.open(at.workspace_id, files).await?;
    let (one, text) = chat::persona_file(&workspace, &at.agent).await?;
    Ok(Json(PersonaOrSkill { text: Some(text), ..persona_or_skill(&context, one) }))
}

/// The skills that agents of the caller can read, the caller's own among them, with the faults in their front matter. A skill with a fault is named to agents all the same.
#[utoipa::path(get, path = "/api/v1/workspaces/{workspace_id}/skills", tag = "agents", params(InWorkspace),
    responses((status = 200, description = "All of them.", body = SkillList)))]
pub(crate) async fn list_skills(
    State(context): State<Arc<Context>>,
    Access { at, files, .. }: Access<Read, InWorkspace>,
) -> Answer<Json<SkillList>> {
    Ok(Json(SkillList { skills: listed(&context, at, files, DefinitionKind::Skills).await? }))
}

async fn listed(
    context: &Context,
    at: InWorkspace,
    files: workspace::Access,
    kind: DefinitionKind,
) -> Answer<Vec<PersonaOrSkill>> {
    let workspace = context.base.workspaces.open(at.workspace_id, files).await?;
    let all = chat::definitions(&workspace, kind).await?;
    Ok(all.into_iter().map(|one| persona_or_skill(context, one)).collect())
}

fn persona_or_skill(context: &Context, one: chat::Definition) -> PersonaOrSkill {
    let chat::Definition { name, title, description, path, file_id, tools, model, model_line, .. } = one;
    let mut faults: Vec<FrontMatterFault> = one
        .faults
        .into_iter()
        .map(|chat::FrontMatterFault { line, message }| FrontMatterFault { line, message })
        .collect();
    if let (Some(model), Some(line)) = (&model, model_line)
        && !(context.knows_model)(model)
    {
        let shown = shortened(model, 100);
        let message = format!("there is no model {shown:?} here: GET /api/v1/models lists those that there are");
        faults.push(FrontMatterFault { line, message });
    }
    PersonaOrSkill {
        name,
        title,
        description,
        path: path.to_string(),
        file_id: file_id.map(|id| id.0),
        tools,
        model,
        model_settings: (!one.model_settings.is_empty()).then(|| ModelSettings::from(one.model_settings)),
        license: one.license,
        compatibility: one.compatibility,
        metadata: one.metadata,
        allowed_tools: one.allowed_tools,
        faults,
        text: None,
    }
}
