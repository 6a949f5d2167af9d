//! Forks of chats: a new chat that begins with the history of another one.

use crate::{
    Context,
    access::{Access, Converse},
    chats::{InChat, checked_title},
    error::Answer,
    extract::Json,
    idempotency::Ids,
    schema,
};
use axum::{extract::State, response::IntoResponse};
use chat::ForkPoint;
use domain::{ChatId, CommandId, Error, TurnId};
use http::{StatusCode, header};
use serde::Deserialize;
use std::sync::Arc;
use utoipa::ToSchema;

/// A fork to make. The point is one of `at_seq`, `at_turn` and `before_turn`; without one it has all turns that have ended.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewFork {
    /// The number of an event: the fork has the turns that had ended then. With the number of a message of yours it has everything before that message.
    #[serde(default, deserialize_with = "crate::extract::some_number")]
    #[schema(minimum = 1, maximum = 9_223_372_036_854_775_807_i64)]
    at_seq: Option<u64>,
    /// A turn: the fork ends with it.
    #[schema(value_type = Option<Uuid>)]
    at_turn: Option<TurnId>,
    /// A turn: the fork ends before it.
    #[schema(value_type = Option<Uuid>)]
    before_turn: Option<TurnId>,
    /// Its title: 1 to 200 characters; that of the chat when none is given.
    #[schema(min_length = 1, max_length = 200)]
    title: Option<String>,
}

impl NewFork {
    fn point(&self) -> Result<ForkPoint, Error> {
        match (self.at_seq, self.at_turn, self.before_turn) {
            (None, None, None) => Ok(ForkPoint::Now),
            (Some(seq), None, None) => Ok(ForkPoint::Seq(seq)),
            (None, Some(turn), None) => Ok(ForkPoint::Turn(turn)),
            (None, None, Some(turn)) => Ok(ForkPoint::Before(turn)),
            _ => Err(Error::invalid("at_seq", "there is more than one point")
                .hint("give one of at_seq, at_turn and before_turn")),
        }
    }
}

/// Makes a chat that begins with the history of this one, up to a point: the whole turns that had ended there. A turn that runs is not in it, and goes on.
/// The fork is yours, and idle: post a message to it. Turns that the model reads no more are not copied: the agent is told where they are. Plans that were
/// approved and rules that were granted do not go along.
#[utoipa::path(post, path = "/api/v1/workspaces/{workspace_id}/chats/{chat_id}/fork", tag = "chats", params(InChat),
    request_body = NewFork, responses((status = 201, description = "The new chat.", body = schema::Chat)))]
pub(crate) async fn fork_chat(
    State(context): State<Arc<Context>>,
    Access { at, by, .. }: Access<Converse, InChat>,
    ids: Ids,
    Json(new): Json<NewFork>,
) -> Answer<impl IntoResponse> {
    let point = new.point()?;
    let title = new.title.map(checked_title).transpose()?;
    let fork = (ChatId(ids.id("chat")), CommandId(ids.id("command")));
    let view = context.chats.fork(at.workspace_id, at.chat_id, point, fork, title, &by).await?;
    let place = format!("/api/v1/workspaces/{}/chats/{}", at.workspace_id, view.chat_id);
    Ok((StatusCode::CREATED, [(header::LOCATION, place)], axum::Json(view)))
}
