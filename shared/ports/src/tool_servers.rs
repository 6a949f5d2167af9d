//! Servers of tools: programs or services of others, spoken to in the Model Context Protocol (spec 004 §11), HTTP tools of workspaces, and the web.

use async_trait::async_trait;
use domain::{Code, Error, FilePath, WorkspaceId};
use futures::future::join_all;
use serde_json::{Map, Value};
use std::{sync::Arc, time::Duration};

/// The start of the names of tools of servers that speak the Model Context Protocol, as agents call them.
pub const SERVED_PREFIX: &str = "mcp__";
/// The start of the names of HTTP tools.
pub const HTTP_PREFIX: &str = "http__";
/// The start of the names of tools in code, which programs of the workspace's people run.
pub const CODE_PREFIX: &str = "code__";
/// The tool that reads a page of the web.
pub const WEB_FETCH: &str = "web_fetch";
/// The tool that searches the web.
pub const WEB_SEARCH: &str = "web_search";

/// The servers of tools that this installation and its workspaces declare.
///
/// Nothing here is durable: a connection, and the process behind it, may be gone at any moment, and the next use makes another one. All
/// that a server says is input of a stranger: names, descriptions, schemas and answers are bounded here, before anybody else reads them.
#[async_trait]
pub trait ToolServers: Send + Sync {
    /// Whether a tool of this name could be one of theirs.
    fn may_have(&self, tool: &str) -> bool;
    /// The tools of all servers of a workspace, in the order of their names, and the servers that do not answer. Connects to those that are not
    /// connected, and waits for them for so long at most; one that takes longer is told of as missing, and goes on connecting.
    async fn tools(&self, of: &ServersOf, wait: Duration) -> Served;
    /// Calls a tool. Dropping it tells the server that the call is cancelled.
    ///
    /// # Errors
    /// `NOT_FOUND` for a tool that there is not; `TIMEOUT` when the server does not answer in its time; `UPSTREAM_UNAVAILABLE` when it is
    /// gone, and the call may have taken effect; `UNPROCESSABLE` when it refuses the call.
    async fn call(&self, of: &ServersOf, tool: &str, args: Map<String, Value>) -> Result<ServedAnswer, Error>;
}

/// The servers of a workspace.
#[derive(Clone, Debug)]
pub struct ServersOf {
    /// The workspace.
    pub workspace: WorkspaceId,
    /// The text of its own declaration, beside the servers of the installation; none where it has none, or the caller may not read it.
    pub declared: Option<Arc<str>>,
    /// The files of its own HTTP tools that the caller may read: the names and the texts.
    pub tools: Arc<[(String, String)]>,
}

/// The tools that servers give.
#[derive(Clone, Debug, Default)]
pub struct Served {
    /// By name.
    pub tools: Vec<ServedTool>,
    /// The servers without tools, each with the reason.
    pub missing: Vec<(String, String)>,
}

/// A tool of a server.
#[derive(Clone, Debug, PartialEq)]
pub struct ServedTool {
    /// The name for agents, such as `mcp__server__tool`.
    pub name: String,
    /// Its purpose, in the server's words.
    pub description: String,
    /// The JSON Schema of its arguments.
    pub parameters: Value,
    /// Whether a second call does no more than the first, as the server says.
    pub is_repeatable: bool,
    /// The folder of the workspace that the server's program sees; none for a server that sees no files.
    pub sees: Option<FilePath>,
}

/// The answer of a tool.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ServedAnswer {
    /// Its words. Content that is no text is told of by its kind and size.
    pub text: String,
    /// Its data; null where it gives none.
    pub data: Value,
    /// Whether the tool itself says that it failed.
    pub is_error: bool,
    /// Whether the answer was cut for its length.
    pub is_cut: bool,
}

/// The answer to a call that a program elsewhere runs: nobody here does, and the chat waits for the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HandedOut {
    /// How long a program has to answer.
    pub timeout: Duration,
    /// Whether programs may run the call more than once.
    pub is_repeatable: bool,
}

/// The details of the error that carries a [`HandedOut`].
const HANDED_OUT_MS: &str = "handed_out_ms";
const REPEATABLE: &str = "repeatable";

impl HandedOut {
    /// The error of [`ToolServers::call`] that says so. Where no chat waits, it is the refusal of the call.
    pub fn error(self, tool: &str) -> Error {
        Error::new(Code::Unprocessable, format!("{tool} is run by a program, which answers calls of chats alone"))
            .hint("ask an agent of a chat to call it")
            .detail(HANDED_OUT_MS, u64::try_from(self.timeout.as_millis()).unwrap_or(u64::MAX))
            .detail(REPEATABLE, self.is_repeatable)
    }

    /// The one that an error says, if it says one.
    pub fn of(error: &Error) -> Option<Self> {
        let timeout = Duration::from_millis(error.details.get(HANDED_OUT_MS)?.as_u64()?);
        Some(Self { timeout, is_repeatable: error.details.get(REPEATABLE)?.as_bool()? })
    }
}

/// Several kinds of servers as one. A call goes to the first of them that may have the tool.
pub struct Together(pub Vec<Arc<dyn ToolServers>>);

#[async_trait]
impl ToolServers for Together {
    fn may_have(&self, tool: &str) -> bool {
        self.0.iter().any(|servers| servers.may_have(tool))
    }

    async fn tools(&self, of: &ServersOf, wait: Duration) -> Served {
        let mut all = Served::default();
        for Served { tools, missing } in join_all(self.0.iter().map(|servers| servers.tools(of, wait))).await {
            all.tools.extend(tools);
            all.missing.extend(missing);
        }
        all.tools.sort_by(|a, b| a.name.cmp(&b.name));
        all
    }

    async fn call(&self, of: &ServersOf, tool: &str, args: Map<String, Value>) -> Result<ServedAnswer, Error> {
        match self.0.iter().find(|servers| servers.may_have(tool)) {
            Some(servers) => servers.call(of, tool, args).await,
            None => Err(Error::not_found("tool", tool)),
        }
    }
}
