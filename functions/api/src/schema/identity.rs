//! How members, roles, API keys and tickets look.

use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

/// A role in a workspace; each has all rights of those after it.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Has the workspace.
    Owner,
    /// Manages members.
    Admin,
    /// Changes files, and decides permission requests of agents.
    Editor,
    /// Works through agents and flows.
    Member,
    /// Looks.
    Viewer,
}

impl From<identity::Role> for Role {
    fn from(role: identity::Role) -> Self {
        match role {
            identity::Role::Owner => Self::Owner,
            identity::Role::Admin => Self::Admin,
            identity::Role::Editor => Self::Editor,
            identity::Role::Member => Self::Member,
            identity::Role::Viewer => Self::Viewer,
        }
    }
}

/// A right in a workspace; also a scope of API keys.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// See everything in it.
    Read,
    /// Make chats and talk in them.
    Converse,
    /// Start and steer tasks and evaluations.
    Run,
    /// Change files by hand.
    Write,
    /// Decide permission requests of agents.
    Approve,
    /// Members, webhooks, the workspace's name, removing files for good.
    Administer,
    /// Delete the workspace, make owners; make workspaces.
    Own,
}

impl From<identity::Action> for Action {
    fn from(action: identity::Action) -> Self {
        match action {
            identity::Action::Read => Self::Read,
            identity::Action::Converse => Self::Converse,
            identity::Action::Run => Self::Run,
            identity::Action::Write => Self::Write,
            identity::Action::Approve => Self::Approve,
            identity::Action::Administer => Self::Administer,
            identity::Action::Own => Self::Own,
        }
    }
}

/// A member of a workspace.
#[derive(Serialize, ToSchema)]
pub struct Member {
    /// The person.
    pub user_id: Uuid,
    /// Their role.
    pub role: Role,
    /// Their name at the issuer of tokens, when they were added under it.
    pub subject: Option<String>,
    /// The person who added them.
    pub added_by: Uuid,
    /// The time of the addition.
    #[schema(format = DateTime)]
    pub added_at: String,
}

/// A page of members.
#[derive(Serialize, ToSchema)]
pub struct MemberPage {
    /// The members, by id.
    pub members: Vec<Member>,
    /// The cursor of the next page; none at the end.
    pub next_cursor: Option<String>,
}

/// The caller's own role and rights.
#[derive(Serialize, ToSchema)]
pub struct Me {
    /// The person.
    pub user_id: Uuid,
    /// Their role.
    pub role: Role,
    /// The rights of this credential.
    pub may: Vec<Action>,
}

/// An API key, without its text.
#[derive(Serialize, ToSchema)]
pub struct ApiKey {
    /// Its id, the first part of its text.
    pub key_id: Uuid,
    /// Whom it works for.
    pub user_id: Uuid,
    /// Its purpose.
    pub name: String,
    /// Its rights; they hold where that person has them, too.
    pub scopes: Vec<Action>,
    /// The workspaces that it is for; all when left out.
    pub workspaces: Option<Vec<Uuid>>,
    /// When it was made.
    #[schema(format = DateTime)]
    pub created_at: String,
    /// From when on it is void.
    #[schema(format = DateTime)]
    pub expires_at: Option<String>,
    /// When it was taken back.
    #[schema(format = DateTime)]
    pub revoked_at: Option<String>,
}

/// A page of API keys.
#[derive(Serialize, ToSchema)]
pub struct ApiKeyPage {
    /// The keys, oldest first.
    pub keys: Vec<ApiKey>,
    /// The cursor of the next page; none at the end.
    pub next_cursor: Option<String>,
}

/// An API key that was made.
#[derive(Serialize, ToSchema)]
pub struct CreatedApiKey {
    /// Its text, for `Authorization: Bearer`. It is told this once.
    #[schema(example = "bsk_019bf537f2287cd3aa1c3da8af302e12_…")]
    pub key: String,
    /// The facts about it that later answers have.
    pub api_key: ApiKey,
}

/// A ticket to one event stream.
#[derive(Serialize, ToSchema)]
pub struct Ticket {
    /// The ticket, for `?ticket=`.
    pub ticket: String,
    /// The stream's path with the ticket in it, and with `after` where the request had it.
    pub url: String,
    /// From when on it is void.
    #[schema(format = DateTime)]
    pub expires_at: String,
}

/// This server as a protected resource (RFC 9728 §2). Parameters without a value are left out.
#[derive(Serialize, ToSchema)]
pub struct ResourceMetadata {
    /// The URL of this server.
    pub resource: String,
    /// The issuers whose tokens it accepts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub authorization_servers: Vec<String>,
    /// The scopes to ask an issuer for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub scopes_supported: Vec<String>,
    /// How a token is sent: in the header `Authorization`.
    pub bearer_methods_supported: Vec<String>,
    /// The audience that tokens must be for; an addition to RFC 9728.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub audience: Option<String>,
    /// The public client id of the command line at the issuer; an addition to RFC 9728.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cli_client_id: Option<String>,
    /// The public client id of the console at the issuer; an addition to RFC 9728.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub console_client_id: Option<String>,
}
