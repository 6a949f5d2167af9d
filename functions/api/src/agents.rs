//! The list of coding agents.

use crate::{Context, schema};
use axum::{Json, extract::State};
use std::sync::Arc;

/// The coding agents that can perform the turns of a chat, whether each can be started here, and the folders that they may work in.
#[utoipa::path(get, path = "/api/v1/agents", tag = "models",
    responses((status = 200, description = "All of them.", body = schema::CodingAgents)))]
pub(crate) async fn list_coding_agents(State(context): State<Arc<Context>>) -> Json<schema::CodingAgents> {
    let shown = |agent: ports::AgentInfo| schema::CodingAgent {
        id: agent.id,
        name: agent.name,
        available: agent.unavailable.is_none(),
        reason: agent.unavailable,
        install: agent.install,
    };
    let agents = context.agents.list().await.into_iter().map(shown).collect();
    Json(schema::CodingAgents { agents, allowed_roots: context.agents.roots() })
}
