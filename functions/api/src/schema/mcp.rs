//! How MCP servers and sign-ins at them look.

use serde::Serialize;
use utoipa::ToSchema;

/// The way to a server.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum McpTransport {
    /// A program, by its standard input and output.
    Stdio,
    /// Streamable HTTP.
    Http,
    /// Its declaration is not understood.
    None,
}

/// Whether a server can be used.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum McpServerState {
    /// It answers.
    Connected,
    /// It does not answer yet.
    Connecting,
    /// A person has to sign in first.
    NeedsSignIn,
    /// It cannot be used.
    Failed,
}

/// A server of tools that speaks the Model Context Protocol.
#[derive(Serialize, ToSchema)]
pub struct McpServer {
    /// The name that it is declared with.
    pub name: String,
    /// The way to it.
    #[schema(value_type = McpTransport)]
    pub transport: ports::ServerTransport,
    /// Whether it can be used.
    #[schema(value_type = McpServerState)]
    pub state: ports::ServerState,
    /// Why it cannot be used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Whether the workspace has an account there.
    pub signed_in: bool,
    /// How many tools it gives.
    pub tools: usize,
}

impl From<ports::ServerView> for McpServer {
    fn from(view: ports::ServerView) -> Self {
        let ports::ServerView { name, transport, state, reason, signed_in, tools } = view;
        Self { name, transport, state, reason, signed_in, tools }
    }
}

/// The servers of a workspace.
#[derive(Serialize, ToSchema)]
pub struct McpServerList {
    /// By name.
    pub servers: Vec<McpServer>,
}

/// A sign-in that waits for a person.
#[derive(Serialize, ToSchema)]
pub struct McpSignIn {
    /// The address that the person opens in a browser.
    pub authorize_url: String,
    /// Until when the answer is waited for.
    #[schema(value_type = String, format = DateTime)]
    pub expires_at: domain::Timestamp,
    /// Whether the account has to be confirmed by the code that the browser shows.
    pub confirm: bool,
}
