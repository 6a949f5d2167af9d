//! Calls that were handed out: a program of the workspace's people takes one, runs it, and answers.

use crate::{
    Context,
    access::{Access, Converse, leader_rights},
    error::Answer,
    extract::Json,
    ids::Ids,
    schema,
};
use axum::{extract::State, response::IntoResponse};
use chat::CallAnswer;
use domain::{CallId, ChatId, Code, CommandId, Error, WorkspaceId};
use ports::{Expect, Key, Write};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::{sync::Arc, time::Duration};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

/// How long it is known who took a call: longer than any call waits.
const KEPT: Duration = Duration::from_secs(3 * 24 * 3600);

/// The call of a path.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct AtCall {
    /// The workspace.
    #[param(value_type = Uuid)]
    workspace_id: WorkspaceId,
    /// The chat.
    #[param(value_type = Uuid)]
    chat_id: ChatId,
    /// The call, of the `call_handed_out` event.
    #[param(value_type = Uuid)]
    call_id: CallId,
}

/// The program that wants a call.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CallClaim {
    /// An id that the program has made for itself at its start.
    program: Uuid,
}

/// The answer of a program to a call.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CallResult {
    /// The result: a text as it is, any other value as JSON. The agent reads at most 50 KiB of it.
    #[schema(value_type = Value)]
    output: Value,
    /// Whether the call failed; the output then says why.
    #[serde(default)]
    is_error: bool,
}

/// The taker of a call, as it is kept.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct TakenCall {
    program: Uuid,
}

/// Takes a call that was handed out: no other program gets it from then on, and the same program gets it again. `CONFLICT` when another program
/// has it, or it waits no more.
#[utoipa::path(post, path = "/api/v1/workspaces/{workspace_id}/chats/{chat_id}/calls/{call_id}/take", tag = "chats",
    params(AtCall), request_body = CallClaim,
    responses((status = 200, description = "It is this program's.", body = schema::ChatCallHandedOut)))]
pub(crate) async fn take_call(
    State(context): State<Arc<Context>>,
    Access { at, .. }: Access<Converse, AtCall>,
    Json(CallClaim { program }): Json<CallClaim>,
) -> Answer<impl IntoResponse> {
    let AtCall { workspace_id, chat_id, call_id } = at;
    let call = context.chats.handed_out(workspace_id, chat_id, call_id).await?;
    let (table, place) = (&context.base.table, Key::new(format!("{workspace_id}/calls"), call_id.to_string()));
    let body = serde_json::to_string(&TakenCall { program }).unwrap_or_default();
    let write = Write::put(place.clone(), body, Expect::Absent).expiring(context.base.clock.now() + KEPT);
    match table.commit(vec![write]).await {
        Ok(()) => {}
        Err(ports::Error::Conflict { .. }) => {
            let kept = table.get(&place).await?.and_then(|item| serde_json::from_str::<TakenCall>(&item.body).ok());
            if kept != Some(TakenCall { program }) {
                return Err(Error::new(Code::Conflict, "another program has taken the call")
                    .detail("call_id", call_id.to_string())
                    .hint("leave it to that program")
                    .into());
            }
        }
        Err(error) => return Err(error.into()),
    }
    Ok(axum::Json(call))
}

/// Answers a call that was handed out; the turn goes on with the answer. `CONFLICT` when the call waits no more.
#[utoipa::path(post, path = "/api/v1/workspaces/{workspace_id}/chats/{chat_id}/calls/{call_id}", tag = "chats",
    params(AtCall), request_body = CallResult,
    responses((status = 202, description = "It is accepted.", body = schema::Accepted)))]
pub(crate) async fn answer_call(
    State(context): State<Arc<Context>>,
    Access { at, by, caller, role, .. }: Access<Converse, AtCall>,
    ids: Ids,
    Json(CallResult { output, is_error }): Json<CallResult>,
) -> Answer<impl IntoResponse> {
    let AtCall { workspace_id, chat_id, call_id } = at;
    let output = match output {
        Value::String(text) => text,
        other => other.to_string(),
    };
    // The agent reads no more of it, and a command has to fit into a message.
    let (output, _) = ::tools::cap(output);
    let command = CommandId(ids.id("command"));
    let chat::LeaderRights { may_approve, may_not_run } = leader_rights(&caller, role);
    let answer = CallAnswer { call_id, output, success: !is_error, may_approve, may_not_run };
    context.chats.answer_call(workspace_id, chat_id, command, answer, &by).await?;
    Ok(schema::Accepted::of(chat_id))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_taker_of_a_call_is_read_for_ever() {
        testkit::golden::check(env!("CARGO_MANIFEST_DIR"), "taken_calls", &[TakenCall { program: Uuid::from_u128(7) }]);
    }
}
