//! The accounts of workspaces at servers of tools that OAuth 2.1 protects, and the state of servers (spec 004 §11).

use crate::ServersOf;
use async_trait::async_trait;
use domain::{Error, Timestamp, WorkspaceId};
use serde::Serialize;
use std::time::Duration;

/// The servers of workspaces, as people see them, and sign-ins at them.
///
/// No answer and no error has a token or a code. A workspace has one account per server, which all of its agents use.
#[async_trait]
pub trait ServerAccounts: Send + Sync {
    /// The servers of a workspace by name. Connects to those that are not connected, and waits for them for so long at most.
    async fn servers(&self, of: &ServersOf, wait: Duration) -> Vec<ServerView>;
    /// Begins a sign-in: the person opens the address in a browser, and the issuer of the server sends the browser to `redirect`. With `confirms`
    /// the account is the workspace's only once its beginner has confirmed it, by the code that the browser is shown: another person, who was
    /// made to open the address, would give their account away.
    ///
    /// # Errors
    /// `NOT_FOUND` for a server that there is not; `UNPROCESSABLE` for one that is not signed in at, and where no accounts are kept;
    /// `UPSTREAM_REFUSED` when the server or its issuer makes no sign-in possible.
    async fn sign_in(&self, of: &ServersOf, server: &str, redirect: &str, confirms: bool) -> Result<SignIn, Error>;
    /// Completes a sign-in; each answer once.
    ///
    /// # Errors
    /// `NOT_FOUND` for an answer that no sign-in waits for; `UPSTREAM_REFUSED` when the person or the issuer refused it.
    async fn complete(&self, answer: &SignInAnswer) -> Result<SignedIn, Error>;
    /// Confirms a completed sign-in by its code. Five wrong codes end it.
    ///
    /// # Errors
    /// `NOT_FOUND` where none waits for a code; `INVALID_ARGUMENT` for another code; those of [`ServerAccounts::sign_out`].
    async fn confirm(&self, of: &ServersOf, server: &str, code: &str) -> Result<(), Error>;
    /// Forgets the account at a server; none is fine.
    ///
    /// # Errors
    /// As [`ServerAccounts::sign_in`], without `UPSTREAM_REFUSED`.
    async fn sign_out(&self, of: &ServersOf, server: &str) -> Result<(), Error>;
    /// Forgets all accounts of a workspace that is being deleted, and ends its servers in this process. None is fine, and so is an installation that keeps
    /// no accounts. A server in which a call runs ends after the call.
    ///
    /// # Errors
    /// `UPSTREAM_UNAVAILABLE` when they cannot be read or written. Some may be forgotten then, and a repetition forgets the rest.
    async fn forget(&self, workspace: WorkspaceId) -> Result<(), Error>;
}

/// The address at which a person signs in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignIn {
    /// The address.
    pub url: String,
    /// Until when the answer is waited for.
    pub expires_at: Timestamp,
}

/// A sign-in that a browser has completed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedIn {
    /// The workspace.
    pub workspace: WorkspaceId,
    /// The server.
    pub server: String,
    /// The code that the browser shows, where the account has to be confirmed: eight digits.
    pub code: Option<String>,
}

/// The answer of an issuer, as the person's browser brings it (RFC 6749 §4.1.2, RFC 9207).
#[derive(Clone, Default)]
pub struct SignInAnswer {
    /// The name of the sign-in.
    pub state: String,
    /// The code, which is exchanged for tokens.
    pub code: Option<String>,
    /// Why there is none.
    pub error: Option<String>,
    /// The issuer that answers.
    pub iss: Option<String>,
}

/// A server as people see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ServerView {
    /// Its name.
    pub name: String,
    /// The way to it.
    pub transport: ServerTransport,
    /// Whether it can be used.
    pub state: ServerState,
    /// Why not.
    pub reason: Option<String>,
    /// Whether the workspace has an account there.
    pub signed_in: bool,
    /// How many tools it gives.
    pub tools: usize,
}

/// The ways to a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ServerTransport {
    /// A program, by its standard input and output.
    Stdio,
    /// Streamable HTTP.
    Http,
    /// A declaration that is not understood.
    None,
}

/// Whether a server can be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ServerState {
    /// It answers.
    Connected,
    /// It does not answer yet.
    Connecting,
    /// A person has to sign in first.
    NeedsSignIn,
    /// It cannot be used.
    Failed,
}
