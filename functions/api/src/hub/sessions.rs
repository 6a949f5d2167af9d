//! The sessions that a thread's agent keeps by itself.

use super::{
    InThread,
    agent_kind::AgentKind,
    agents::kind,
    caller::{Hub, Within},
    refused,
    schema::{SessionHistory, Sessions},
};
use crate::{
    Context,
    access::Read,
    error::Answer,
    extract::{Path, Query},
};
use axum::extract::State;
use domain::{ChatId, ThreadAgent};
use ports::Agents;
use serde::Deserialize;
use serde_json::json;
use std::sync::Arc;
use utoipa::IntoParams;

/// A page of sessions.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct After {
    /// The `nextCursor` of the page before.
    cursor: Option<String>,
}

/// A session.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase")]
pub(crate) struct OfSession {
    /// The agent's id of the session.
    session_id: String,
}

/// The agent's own sessions in the thread's folder. A persona keeps none: its threads are its sessions.
#[utoipa::path(get, path = "/v1/threads/{thread_id}/sessions", tag = "hub", params(InThread, After),
    responses((status = 200, description = "A page of them.", body = Sessions)))]
pub(crate) async fn list_sessions(
    State(context): State<Arc<Context>>,
    Hub { within, .. }: Hub<Read>,
    Path(at): Path<InThread>,
    Query(After { cursor }): Query<After>,
) -> Answer<axum::Json<Sessions>> {
    let page = match coding(&context, &within, at.thread_id).await? {
        None => None,
        Some((agents, agent)) => {
            let page = agents.sessions(&agent.agent, &agent.cwd, cursor.as_deref()).await;
            page.map_err(|error| refused("cursor", error))?
        }
    };
    let (supported, page) = (page.is_some(), page.unwrap_or_default());
    let (thread_id, sessions, next_cursor) = (at.thread_id.0, page.sessions, page.next);
    Ok(axum::Json(Sessions { thread_id, supported, sessions, next_cursor }))
}

/// The messages of one of the agent's own sessions.
#[utoipa::path(get, path = "/v1/threads/{thread_id}/session-history", tag = "hub", params(InThread, OfSession),
    responses((status = 200, description = "All of them.", body = SessionHistory)))]
pub(crate) async fn get_session_history(
    State(context): State<Arc<Context>>,
    Hub { within, .. }: Hub<Read>,
    Path(at): Path<InThread>,
    Query(OfSession { session_id }): Query<OfSession>,
) -> Answer<axum::Json<SessionHistory>> {
    let messages = match coding(&context, &within, at.thread_id).await? {
        None => None,
        Some((agents, agent)) => {
            let messages = agents.session_history(&agent.agent, &agent.cwd, &session_id).await;
            messages.map_err(|error| refused("sessionId", error))?
        }
    };
    let supported = messages.is_some();
    let messages = messages
        .unwrap_or_default()
        .into_iter()
        .map(|message| json!({ "role": message.role, "content": message.content }));
    Ok(axum::Json(SessionHistory { supported, messages: messages.collect() }))
}

/// The coding agent of a thread; none for a persona.
async fn coding<N>(
    context: &Context,
    within: &Within<N>,
    thread: ChatId,
) -> Answer<Option<(Arc<dyn Agents>, ThreadAgent)>> {
    let agent = context.threads().reader().get(within.workspace, thread).await?.record.agent;
    match kind(context, within.workspace, within.files.clone(), &agent.agent, "agent").await? {
        AgentKind::Persona(_) => Ok(None),
        AgentKind::Coding => Ok(Some((context.agents.clone(), agent))),
    }
}
