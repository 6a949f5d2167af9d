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
    access::{Read, demand},
    error::Answer,
    extract::{Path, Query},
};
use axum::extract::State;
use domain::{ChatEvent, ChatId, Error, ThreadAgent};
use identity::Action;
use ports::{AgentMessage, Agents};
use protocols::hub::{History, Turn};
use serde::Deserialize;
use serde_json::json;
use std::{ops::ControlFlow, sync::Arc};
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

/// The agent's own sessions in the thread's folder. A persona keeps none: its threads are its sessions. Those of a
/// coding agent need the right to converse: a process of it may be started for this alone.
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

/// The messages of one of the agent's own sessions. Of a session that the thread has worked in only those from before its first turn there: the thread's
/// history has the others. A coding agent is asked for them, as for its sessions.
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
            let own = turns_in(&context, &within, at.thread_id, &session_id).await?;
            if own.first().is_some_and(|turn| turn.began_session) {
                // Nothing was there before.
                Some(Vec::new())
            } else {
                let messages = agents.session_history(&agent.agent, &agent.cwd, &session_id).await;
                let messages = messages.map_err(|error| refused("sessionId", error))?;
                messages.map(|messages| before(messages, &own))
            }
        }
    };
    let supported = messages.is_some();
    let messages = messages
        .unwrap_or_default()
        .into_iter()
        .map(|message| json!({ "role": message.role, "content": message.content }));
    Ok(axum::Json(SessionHistory { supported, messages: messages.collect() }))
}

/// The turns of a thread in a session, oldest first. Of a session that the thread has begun nothing is older than the first of them: so the log is read up to
/// that place alone.
async fn turns_in<N>(context: &Context, within: &Within<N>, thread: ChatId, session: &str) -> Result<Vec<Turn>, Error> {
    let mut history = History::of(thread, false);
    let take_in = |number, at, event: &ChatEvent| {
        history.take_in(number, at, event);
        let is_bound = matches!(event, ChatEvent::AgentBound { session_id } if session_id == session);
        if is_bound && history.has_begun(session) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    context.threads().reader().log_until(within.workspace, thread, 1, take_in).await?;
    let mut turns = history.turns();
    turns.retain(|turn| turn.session.as_deref() == Some(session));
    Ok(turns)
}

/// The messages from before these turns. The agent has the words of a turn at the end of a message, behind what was sent with them. A turn whose words it
/// has not kept is passed over.
fn before(mut messages: Vec<AgentMessage>, turns: &[Turn]) -> Vec<AgentMessage> {
    let mut end = messages.len();
    for words in turns.iter().rev().map(|turn| turn.request_text.trim()).filter(|words| !words.is_empty()) {
        let asks = |message: &AgentMessage| message.role == "user" && message.content.trim_end().ends_with(words);
        end = messages.iter().take(end).rposition(asks).unwrap_or(end);
    }
    messages.truncate(end);
    messages
}

/// The coding agent of a thread, for a caller with the right to converse: it is asked, in a process that may be started for this alone. None for a persona.
async fn coding<N>(
    context: &Context,
    within: &Within<N>,
    thread: ChatId,
) -> Answer<Option<(Arc<dyn Agents>, ThreadAgent)>> {
    let agent = context.threads().reader().get(within.workspace, thread).await?.record.agent;
    match kind(context, within.workspace, within.files.clone(), &agent.agent, "agent").await? {
        AgentKind::Persona(_) => Ok(None),
        AgentKind::Coding => {
            demand(&within.caller, within.role, Action::Converse)?;
            Ok(Some((context.agents.clone(), agent)))
        }
    }
}
