//! Forks of chats: a new chat that begins with the history of another one.

use crate::{
    Context,
    access::{Access, Converse, leader_rights},
    chats::{InChat, checked_title},
    error::{Answer, about_event},
    extract::{Json, TraceParent, Traced},
    ids::Ids,
    rate_limits::Paced,
    schema,
};
use axum::{extract::State, response::IntoResponse};
use chat::ForkPoint;
use domain::{ChatId, CommandId, Error, FileId, TurnId};
use http::{StatusCode, header};
use serde::{Deserialize, Serialize};
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
    let title = new.title.as_deref().map(checked_title).transpose()?;
    let fork = (ChatId(ids.id("chat")), CommandId(ids.id("command")));
    let view = context.chats.fork(at.workspace_id, at.chat_id, point, fork, title, &by).await;
    let view = view.map_err(|error| about_event(error, "at_seq"))?;
    let place = format!("/api/v1/workspaces/{}/chats/{}", at.workspace_id, view.chat_id);
    Ok((StatusCode::CREATED, [(header::LOCATION, place)], axum::Json(view)))
}

/// An earlier message with other words.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct MessageEdit {
    /// The turn that the message began.
    #[schema(value_type = Uuid)]
    turn_id: TurnId,
    /// The new words: at most 200 KiB of UTF-8.
    #[schema(min_length = 1, max_length = 204_800)]
    content: String,
    /// Files to attach, by id.
    #[serde(default)]
    #[schema(value_type = Vec<Uuid>)]
    files: Vec<FileId>,
}

/// A fork in which the message has other words.
#[derive(Serialize, ToSchema)]
pub(crate) struct AcceptedEdit {
    /// The fork.
    #[schema(value_type = Uuid)]
    chat_id: ChatId,
    /// The turn that the new words begin.
    #[schema(value_type = Uuid)]
    turn_id: TurnId,
    /// The chat that it was forked from, which stays as it is.
    #[schema(value_type = Uuid)]
    forked_from: ChatId,
    /// Always `queued`.
    status: &'static str,
}

/// Changes an earlier message: a fork that ends before its turn goes on with the new words. This chat stays as it is, and so do the files that its turns
/// changed; `POST …/rewind` takes such changes back.
#[utoipa::path(post, path = "/api/v1/workspaces/{workspace_id}/chats/{chat_id}/edit", tag = "chats", params(InChat, TraceParent),
    request_body = MessageEdit, responses((status = 202, description = "The fork, whose turn is accepted.", body = AcceptedEdit)))]
pub(crate) async fn edit_message(
    State(context): State<Arc<Context>>,
    Access { at, by, caller, role, .. }: Access<Converse, InChat>,
    _: Paced,
    ids: Ids,
    Traced(trace): Traced,
    Json(MessageEdit { turn_id, content, files }): Json<MessageEdit>,
) -> Answer<impl IntoResponse> {
    let chat::LeaderRights { may_approve, may_not_run } = leader_rights(&caller, role);
    let fork = (ChatId(ids.id("chat")), CommandId(ids.id("fork")));
    let words = chat::NewMessage { content, files, may_approve, may_not_run, trace, ..chat::NewMessage::default() };
    let command = CommandId(ids.id("command"));
    let accepted = context.chats.edit(at.workspace_id, at.chat_id, turn_id, fork, (command, words), &by).await?;
    let chat::Accepted { chat_id, turn_id, .. } = accepted;
    let place = format!("/api/v1/workspaces/{}/chats/{chat_id}", at.workspace_id);
    let edited = AcceptedEdit { chat_id, turn_id, forked_from: at.chat_id, status: "queued" };
    Ok((StatusCode::ACCEPTED, [(header::LOCATION, place)], axum::Json(edited)))
}
