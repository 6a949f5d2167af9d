//! The agents of the hub: the personas of the workspace, and the coding agents that this installation knows.

use super::{
    agent_kind::AgentKind,
    caller::{Hub, Within},
    refused,
    schema::{Agent, Agents, Models},
};
use crate::{
    Context,
    access::{Read, demand},
    error::{Answer, excerpt},
    extract::{Open, Path, Query},
};
use axum::{Json, extract::State};
use chat::DefinitionKind;
use domain::{Error, WORKSPACE_FOLDER, WorkspaceId};
use identity::Action;
use ports::AgentOffers;
use serde::Deserialize;
use serde_json::json;
use std::sync::Arc;
use utoipa::IntoParams;

/// The agent that is the persona of chats without a `role`.
pub(crate) const OURS: &str = "buildscale";
const OURS_ROLE: &str = "assistant";
/// An agent of a path, which is not found where another place is invalid.
const PATH: &str = "path";

/// An agent of a path.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct OfAgent {
    /// The agent.
    #[param(example = "buildscale")]
    agent: String,
}

impl Open for OfAgent {}

/// A folder in the query.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct InCwd {
    /// The folder that the agent is asked in; the first allowed root by default.
    cwd: Option<String>,
}

/// The agents: `buildscale`, the personas of the workspace, and the coding agents with the reason why one is not available. Asks and
/// starts nothing.
#[utoipa::path(get, path = "/v1/agents", tag = "hub", responses((status = 200, description = "All of them.", body = Agents)))]
pub(crate) async fn list_hub_agents(
    State(context): State<Arc<Context>>,
    Hub { within, .. }: Hub<Read>,
) -> Answer<Json<Agents>> {
    within.settle(&context).await?;
    let persona = |id, name| Agent { id, name, kind: "persona", status: "available", reason: None, install: None };
    let workspace = context.base.workspaces.open(within.workspace, within.files).await?;
    let personas = chat::definitions(&workspace, DefinitionKind::Agents).await?;
    let personas = personas.into_iter().map(|described| persona(described.name, described.title));
    let coding = context.agents.list().await.into_iter().map(|agent| Agent {
        id: agent.id,
        name: agent.name,
        kind: "coding",
        status: if agent.unavailable.is_some() { "unavailable" } else { "available" },
        reason: agent.unavailable,
        install: agent.install,
    });
    // A coding agent wins over a persona of its name: its name is in the configuration of the installation.
    let ours = persona(OURS.into(), "BuildScale".into());
    let mut all: Vec<Agent> = [ours].into_iter().chain(coding).collect();
    for persona in personas {
        if all.iter().all(|agent| agent.id != persona.id) {
            all.push(persona);
        }
    }
    Ok(Json(Agents { agents: all }))
}

/// The models of an agent. A coding agent is asked for them, in a process that may be started for this alone; 503 when it does not answer. Without the right to converse one sees those
/// that it has told in the last hour.
#[utoipa::path(get, path = "/v1/agents/{agent}/models", tag = "hub", params(OfAgent, InCwd),
    responses((status = 200, description = "Its models.", body = Models)))]
pub(crate) async fn list_hub_models(
    State(context): State<Arc<Context>>,
    Hub { within, .. }: Hub<Read>,
    Path(OfAgent { agent }): Path<OfAgent>,
    Query(InCwd { cwd }): Query<InCwd>,
) -> Answer<Json<Models>> {
    within.settle(&context).await?;
    let models = match kind(&context, within.workspace, within.files.clone(), &agent, PATH).await? {
        AgentKind::Persona(_) => our_models(&context),
        AgentKind::Coding => {
            let cwd = match (cwd, &context.folders) {
                (Some(cwd), _) => super::folders::allowed(&context, &AgentKind::Coding, &cwd).await?,
                (None, Some(folders)) => folders.roots().into_iter().next().unwrap_or_else(|| WORKSPACE_FOLDER.into()),
                (None, None) => WORKSPACE_FOLDER.into(),
            };
            offers(&context, &within, &agent, &cwd).await?.models
        }
    };
    Ok(Json(Models { agent_id: agent, models }))
}

/// The models of our own personas that can be asked now.
pub(super) fn our_models(context: &Context) -> Vec<serde_json::Value> {
    let available = context.models.iter().filter(|model| model.available);
    available.map(|model| json!({ "id": model.id, "name": model.id })).collect()
}

/// The offers of a coding agent. No process of it is started for a caller without the right to converse, who gets what it has told.
///
/// # Errors
/// `UPSTREAM_UNAVAILABLE` when it does not answer; `INVALID_ARGUMENT` for a folder that is not allowed.
pub(super) async fn offers<N>(
    context: &Context,
    within: &Within<N>,
    agent: &str,
    cwd: &str,
) -> Result<AgentOffers, Error> {
    if demand(&within.caller, within.role, Action::Converse).is_err() {
        return Ok(context.agents.told_offers(agent, cwd).await.unwrap_or_default());
    }
    context.agents.offers(agent, cwd).await.map_err(|error| refused("agent", error))
}

/// The kind of an agent: one that is known and available.
pub(super) async fn kind(
    context: &Context,
    workspace: WorkspaceId,
    files: workspace::Access,
    agent: &str,
    field: &str,
) -> Result<AgentKind, Error> {
    if agent == OURS {
        return Ok(AgentKind::Persona(OURS_ROLE.into()));
    }
    if let Some(found) = context.agents.list().await.into_iter().find(|known| known.id == agent) {
        let Some(reason) = found.unavailable else { return Ok(AgentKind::Coding) };
        let error = Error::invalid(field, format!("the agent {agent:?} is not available: {reason}"));
        return Err(match found.install {
            Some(install) => error.hint(format!("install it with: {install}")),
            None => error.hint("GET /v1/agents lists those that are"),
        });
    }
    let opened = context.base.workspaces.open(workspace, files).await?;
    let personas = chat::definitions(&opened, DefinitionKind::Agents).await?;
    if personas.iter().any(|persona| persona.name == agent) {
        return Ok(AgentKind::Persona(agent.to_owned()));
    }
    let shown = excerpt(agent);
    if field == PATH {
        return Err(Error::not_found("agent", shown).hint("GET /v1/agents lists those that there are"));
    }
    Err(Error::invalid(field, format!("there is no agent {shown:?}")).hint("GET /v1/agents lists those that there are"))
}
