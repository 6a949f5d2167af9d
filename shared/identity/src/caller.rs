//! Callers: the person, the kind of credential, and the scopes that the credential grants.

use crate::permission::Action;
use domain::{Principal, UserId, WorkspaceId};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use uuid::Uuid;

/// A set of actions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Scopes(BTreeSet<Action>);

impl Scopes {
    /// Everything.
    pub fn all() -> Self {
        Self(Action::ALL.into())
    }
    /// These.
    pub fn of(actions: impl IntoIterator<Item = Action>) -> Self {
        Self(actions.into_iter().collect())
    }
    /// Whether this one is in it.
    pub fn has(&self, action: Action) -> bool {
        self.0.contains(&action)
    }
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
    /// Each, in the matrix's order.
    pub fn iter(&self) -> impl Iterator<Item = Action> {
        self.0.iter().copied()
    }
}

/// The kinds of credentials.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CredentialKind {
    /// It reached the loopback address, or has the token that the hub was started with: the machine's one person.
    Machine,
    /// A signed token.
    Token,
    /// The API key with this id.
    Key(Uuid),
    /// A ticket to one event stream, or to one content. A ticket to a stream has the id of the API key that asked for it: the stream ends with the key.
    Ticket(Option<Uuid>),
}

impl CredentialKind {
    /// The API key by which the caller is here, directly or by a ticket.
    pub fn key(self) -> Option<Uuid> {
        match self {
            Self::Key(id) => Some(id),
            Self::Ticket(key) => key,
            Self::Machine | Self::Token => None,
        }
    }
}

/// A caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// The person.
    pub user: UserId,
    /// The name under which the issuer of a token knows them.
    pub subject: Option<String>,
    /// The kind of credential.
    pub means: CredentialKind,
    /// The scopes that this credential grants.
    pub scopes: Scopes,
    /// The workspaces that this credential is for; all when none are listed.
    pub workspaces: Option<BTreeSet<WorkspaceId>>,
}

impl Caller {
    /// The machine's one person.
    pub fn machine() -> Self {
        let user = Principal::local().user();
        Self { user, subject: None, means: CredentialKind::Machine, scopes: Scopes::all(), workspaces: None }
    }

    /// The person with a signed token.
    pub fn account(user: UserId, subject: String) -> Self {
        Self { user, subject: Some(subject), means: CredentialKind::Token, scopes: Scopes::all(), workspaces: None }
    }

    /// As the rest of BuildScale knows them.
    pub fn principal(&self) -> Principal {
        Principal::User { id: self.user }
    }

    /// Whether this credential can be used in this workspace at all.
    pub fn reaches(&self, workspace: WorkspaceId) -> bool {
        self.workspaces.as_ref().is_none_or(|listed| listed.contains(&workspace))
    }

    /// Whether they prove themselves, not something that they gave away: only then may they give away more.
    pub fn is_in_person(&self) -> bool {
        matches!(self.means, CredentialKind::Machine | CredentialKind::Token)
    }
}
