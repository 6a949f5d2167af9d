//! Door 2, `/v1`: the code agent hub (spec 004 §8). A translation and nothing else: requests become commands of chats, and the events of a
//! chat's log become frames by [`protocols::hub`].
//!
//! A path of this door names no workspace. The workspace is that of the header `X-Workspace-Id`, else the caller's first one; the role in it
//! decides, as on every other route. `X-Client-ID` names the client and opens nothing.

mod agent_kind;
mod agents;
mod attachments;
mod caller;
mod folders;
mod options;
mod permissions;
mod rules;
mod schema;
mod sessions;
mod streams;
mod threads;
mod turns;

pub(crate) use agents::OURS;
pub(crate) use agents::*;
pub(crate) use attachments::*;
pub(crate) use caller::{Within, caller_role};
pub(crate) use folders::*;
pub(crate) use options::*;
pub(crate) use permissions::*;
pub(crate) use rules::*;
pub(crate) use sessions::*;
pub(crate) use streams::*;
pub(crate) use threads::*;
pub(crate) use turns::*;

use axum::Json;
use domain::{ChatId, Code, Error, PermissionId, TurnId};
use serde::Deserialize;
use utoipa::IntoParams;

/// The thread of a path.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct InThread {
    /// The thread.
    #[param(value_type = uuid::Uuid)]
    thread_id: ChatId,
}

/// The turn of a path.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct InTurn {
    /// The turn.
    #[param(value_type = uuid::Uuid)]
    turn_id: TurnId,
}

/// The permission of a path.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct OfPermission {
    /// The permission, of the `permission_required` event.
    #[param(value_type = uuid::Uuid)]
    permission_id: PermissionId,
}

// The ids are looked up in the caller's own workspace: those of others are not found.
impl crate::extract::Open for InThread {}
impl crate::extract::Open for InTurn {}
impl crate::extract::Open for OfPermission {}

/// Whether the server lives, as clients of the hub ask.
#[utoipa::path(get, path = "/healthz", tag = "hub", responses((status = 200, description = "It does.", body = schema::Health)))]
pub(crate) async fn healthz() -> Json<schema::Health> {
    Json(schema::Health { ok: true })
}

/// The refusal of a coding agent, or of the machine that it runs on.
fn refused(field: &str, error: ports::Error) -> Error {
    match error {
        ports::Error::Invalid(reason) => Error::invalid(field, reason),
        ports::Error::Unavailable { what, source } => {
            Error::new(Code::UpstreamUnavailable, format!("{what}: {source}"))
                .hint("look at the agent's own log-in and logs, and try again")
        }
        other => {
            tracing::error!(error = %other.with_causes(), "a coding agent could not be asked");
            Error::new(Code::UpstreamUnavailable, "the agent did not answer").hint("try again")
        }
    }
}
