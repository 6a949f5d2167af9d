//! The context of a chat: compacted, restored, and shown as the model was given it.

use crate::{
    Context,
    access::{Access, Converse, Read},
    chats::InChat,
    error::Answer,
    extract::{Json, Query},
    ids::Ids,
    rate_limits::Paced,
    schema,
};
use axum::{extract::State, response::IntoResponse};
use domain::{ChatId, CommandId, TurnId};
use http::StatusCode;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use utoipa::{IntoParams, ToSchema};

/// How to compact.
#[derive(Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewCompaction {
    /// The longest summary, in characters; 4,000 by default.
    #[schema(minimum = 200, maximum = 16_000)]
    max_summary_chars: Option<u32>,
}

/// A compaction that will be.
#[derive(Serialize, ToSchema)]
pub(crate) struct AcceptedCompaction {
    /// The chat.
    #[schema(value_type = Uuid)]
    chat_id: ChatId,
    /// The internal turn; its `compacted` or `compaction_skipped` event tells the result.
    #[schema(value_type = Uuid)]
    turn_id: TurnId,
    /// Always `queued`.
    status: &'static str,
}

/// The turn whose contexts are shown.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct OfTurn {
    /// The turn; the last one by default.
    #[param(value_type = Option<Uuid>)]
    turn: Option<TurnId>,
}

/// Has the model summarise the oldest turns, so that later requests have the summary in place of their words. The last four messages and all calls with
/// their results stay whole, and the words stay in the chat's file, whose lines the summary names. A chat does so by itself when its context is nearly
/// full. The thread of a coding agent has its agent summarise; see `POST /v1/threads/{thread_id}/compact`. `CONFLICT` while a turn runs.
#[utoipa::path(post, path = "/api/v1/workspaces/{workspace_id}/chats/{chat_id}/compact", tag = "chats", params(InChat),
    request_body = NewCompaction, responses((status = 202, description = "It is accepted.", body = AcceptedCompaction)))]
pub(crate) async fn compact_chat(
    State(context): State<Arc<Context>>,
    Access { at, by, .. }: Access<Converse, InChat>,
    _: Paced,
    ids: Ids,
    Json(NewCompaction { max_summary_chars }): Json<NewCompaction>,
) -> Answer<impl IntoResponse> {
    let command = CommandId(ids.id("command"));
    let turn_id = context.chats.compact(at.workspace_id, at.chat_id, command, max_summary_chars, &by).await?;
    Ok((StatusCode::ACCEPTED, axum::Json(AcceptedCompaction { chat_id: at.chat_id, turn_id, status: "queued" })))
}

/// Takes the last compaction back: the model reads the words of these turns again. `CONFLICT` when there is none, or when older turns were left out
/// since. The summary stays in the chat's file.
#[utoipa::path(delete, path = "/api/v1/workspaces/{workspace_id}/chats/{chat_id}/compact", tag = "chats", params(InChat),
    responses((status = 202, description = "It is accepted.", body = schema::Accepted)))]
pub(crate) async fn undo_compaction(
    State(context): State<Arc<Context>>,
    Access { at, by, .. }: Access<Converse, InChat>,
    ids: Ids,
) -> Answer<impl IntoResponse> {
    context.chats.undo_compaction(at.workspace_id, at.chat_id, CommandId(ids.id("command")), &by).await?;
    Ok(schema::Accepted::of(at.chat_id))
}

/// The contexts that the model was given in a turn, one for each of its calls: the parts with their tokens (estimated at four characters per token), their
/// place in the chat's file and the reason of each, the parts that were cut, and the turns that were left out; in a session the analysis of the message and
/// its subject, too. Calls of earlier versions have no record.
#[utoipa::path(get, path = "/api/v1/workspaces/{workspace_id}/chats/{chat_id}/context", tag = "chats", params(InChat, OfTurn),
    responses((status = 200, description = "The contexts.", body = schema::TurnContexts)))]
pub(crate) async fn get_context(
    State(context): State<Arc<Context>>,
    Access { at, .. }: Access<Read, InChat>,
    Query(OfTurn { turn }): Query<OfTurn>,
) -> Answer<impl IntoResponse> {
    Ok(axum::Json(context.chats.contexts(at.workspace_id, at.chat_id, turn).await?))
}
