//! Authorisation: checked once per request, in two steps that no handler can leave out.
//!
//! 1. [`crate::auth`], around every handler, finds the role of the caller in the workspace that the path names. A caller without a role
//!    gets the answer that a workspace which does not exist gets. So even a handler without a check would show nothing to strangers.
//! 2. [`Access`] is the only way for a handler to the parameters of such a path, and it names the action. So the signature shows the
//!    needed right, and the matrix (`identity::Role::may`) decides.

use crate::{error::ApiError, extract};
use axum::extract::FromRequestParts;
use domain::{Code, Error, Principal};
use http::request::Parts;
use identity::{Action, Caller, Role};
use serde::de::DeserializeOwned;
use std::marker::PhantomData;

/// The caller's role in the workspace of the path; put into the request by [`crate::auth`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct CallerRole(pub Role);

/// An action, as a type.
pub(crate) trait RequiredAction: Send {
    const ACTION: Action;
}

macro_rules! actions {
    ($($name:ident),*) => {$(
        /// See `identity::Action`.
        pub(crate) enum $name {}
        impl RequiredAction for $name {
            const ACTION: Action = Action::$name;
        }
    )*};
}

actions!(Read, Converse, Run, Write, Approve, Administer, Own);

/// Leave to do `N` at the place `P` in a workspace.
pub(crate) struct Access<N, P> {
    /// The parameters of the path.
    pub at: P,
    /// The caller, as the rest of BuildScale knows them.
    pub by: Principal,
    /// The caller and their credential.
    pub caller: Caller,
    /// Their role in the workspace.
    pub role: Role,
    /// Their access to its files, which the policies decide on path by path.
    pub files: workspace::Access,
    needs: PhantomData<N>,
}

impl<N: RequiredAction, P: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for Access<N, P> {
    type Rejection = ApiError;
    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let at = extract::parameters::<P>(parts, state).await?;
        let caller = extract::caller(parts)?;
        // None: the route names no workspace, and so there is no role.
        let CallerRole(role) = parts.extensions.get().copied().ok_or_else(crate::error::internal)?;
        demand(&caller, role, N::ACTION)?;
        let by = caller.principal();
        let files = workspace::Access::of(&by, Some(as_policies_know(role)));
        Ok(Self { at, by, caller, role, files, needs: PhantomData })
    }
}

/// The role as policies know it.
pub fn as_policies_know(role: Role) -> workspace::Role {
    match role {
        Role::Viewer => workspace::Role::Viewer,
        Role::Member => workspace::Role::Member,
        Role::Editor => workspace::Role::Editor,
        Role::Admin => workspace::Role::Admin,
        Role::Owner => workspace::Role::Owner,
    }
}

/// Refuses an action that the role or the credential does not allow.
pub(crate) fn demand(caller: &Caller, role: Role, action: Action) -> Result<(), Error> {
    scoped(caller, action)?;
    if role.may(action) {
        return Ok(());
    }
    let message = format!("this needs the right to {action}, which {} does not have", role.with_article());
    // Nobody gives a role above their own.
    let giver = if action.least() == Role::Owner { Role::Owner } else { Role::Admin };
    let hint = format!("ask {} of the workspace to make you {}", giver.with_article(), action.least().with_article());
    Err(Error::new(Code::Forbidden, message).hint(hint).detail("needs", action.to_string()))
}

/// The rights that the caller gives to a turn that they begin or lead on.
pub(crate) fn leader_rights(caller: &Caller, role: Role) -> chat::LeaderRights {
    let may_approve = demand(caller, role, Action::Approve).is_ok();
    chat::LeaderRights { may_approve, may_not_run: demand(caller, role, Action::Run).is_err() }
}

/// Refuses an action that is not among the credential's scopes.
pub(crate) fn scoped(caller: &Caller, action: Action) -> Result<(), Error> {
    if caller.scopes.has(action) {
        return Ok(());
    }
    let message = format!("this credential does not have the scope {action}");
    Err(Error::new(Code::Forbidden, message).hint("make an API key that has it").detail("needs", action.to_string()))
}

/// Refuses credentials that can be passed on: API keys and tickets.
pub(crate) fn in_person(caller: &Caller) -> Result<(), Error> {
    if caller.is_in_person() {
        return Ok(());
    }
    Err(Error::new(Code::Forbidden, "an API key cannot do this").hint("sign in, and use your own token"))
}
