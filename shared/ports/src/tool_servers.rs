//! Servers of tools: programs or services of others, spoken to in the Model Context Protocol (spec 004 §11), HTTP tools of workspaces, and the web.

use async_trait::async_trait;
use domain::{CallId, Code, Error, FilePath, WorkspaceId, event::Question, served::SERVED_PREFIX};
use futures::{
    FutureExt,
    future::{BoxFuture, Shared, join_all},
};
use serde_json::{Map, Value};
use std::{fmt, sync::Arc, time::Duration};

/// The server in the name of a tool, `mcp__<server>__<tool>`; none for a tool of another kind. No server has `__` in its name.
pub fn server_of(tool: &str) -> Option<&str> {
    Some(tool.strip_prefix(SERVED_PREFIX)?.split_once("__")?.0)
}

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
    /// `NOT_FOUND` for a tool that there is not; `TIMEOUT` when the server does not answer in its time; `UPSTREAM_UNAVAILABLE` when it cannot be
    /// reached, fails or is gone, where the hint says whether the call may have taken effect; `RATE_LIMITED` when it takes no more calls now;
    /// `UPSTREAM_REFUSED` when it refuses our credentials or its address is wrong; `UNPROCESSABLE` when it refuses the call.
    async fn call(&self, of: &ServersOf, tool: &str, args: Map<String, Value>) -> Result<ServedAnswer, Error>;
    /// Calls a tool whose server may ask a person meanwhile: the call waits then, until it is made again under the same id with the answer.
    /// Kinds of servers that ask nobody answer at once.
    ///
    /// # Errors
    /// Those of [`ToolServers::call`]; `OUTCOME_UNKNOWN` for an answer to a call that waits no longer.
    async fn follow(&self, of: &ServersOf, call: ServedCall) -> Result<ServedStep, Error> {
        let ServedCall { tool, args, .. } = call;
        Ok(ServedStep::Answered(self.call(of, &tool, args).await?))
    }
    /// The folder of the workspace that the program of a server sees; none for a server that sees no files. Connects to nothing.
    ///
    /// # Errors
    /// `FORBIDDEN` where the program would see files of others, and this machine cannot hide them from it; those of [`ServersOf::hidden`].
    async fn sees(&self, _: &ServersOf, _: &str) -> Result<Option<FilePath>, Error> {
        Ok(None)
    }
    /// The resources and prompts of all servers, as files under [`SERVED_FILES`], by path. Waits as [`ToolServers::tools`] does. No content is in it.
    async fn files(&self, _: &ServersOf, _: Duration) -> Vec<ServedFile> {
        Vec::new()
    }
    /// Reads such a file from its server, where it is.
    ///
    /// # Errors
    /// `NOT_FOUND` for a path that no server has, or whose server does not answer; those of [`ToolServers::call`].
    async fn read(&self, _: &ServersOf, path: &FilePath) -> Result<ServedAnswer, Error> {
        Err(Error::not_found("file", path))
    }
    /// The words of a prompt, by its name as a command, `SERVER__PROMPT`, and its arguments.
    ///
    /// # Errors
    /// `NOT_FOUND` for a prompt that there is not, with a hint where its server is one of the workspace; `INVALID_ARGUMENT` for arguments that it does not take; those of [`ToolServers::call`].
    async fn prompt(&self, _: &ServersOf, name: &str, _: &str) -> Result<ServedAnswer, Error> {
        Err(Error::not_found("prompt", name))
    }
}

/// The folder of the files of servers. Nothing of it is stored.
pub const SERVED_FILES: &str = "/system/mcp";

/// A call of a tool of a server.
#[derive(Clone, Debug)]
pub struct ServedCall {
    /// Its id.
    pub id: CallId,
    /// The tool.
    pub tool: String,
    /// Its arguments.
    pub args: Map<String, Value>,
    /// The person's answer to the question with which it waits.
    pub reply: Option<Value>,
    /// Is told what the server says meanwhile.
    pub told: Option<Listener>,
}

/// Hears the words of a server while a call of it runs: its progress and its log, each bounded. It may drop words that come too fast.
#[derive(Clone)]
pub struct Listener(pub Arc<dyn Fn(String) + Send + Sync>);

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Listener")
    }
}

/// How far a call has come.
#[derive(Clone, Debug)]
pub enum ServedStep {
    /// It is done.
    Answered(ServedAnswer),
    /// Its server asks a person, and the call waits.
    Asks(Question),
    /// Its server asks the model of the chat, and the call waits. The request has `system`, `messages` with `role` and `text` each, and `max_tokens`; the
    /// answer has `text` and `model`, and any other answer is a no.
    Samples(Value),
}

/// A resource or a prompt of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServedFile {
    /// Its path; parts in braces, as `{id}`, stand for any name.
    pub path: String,
    /// Its purpose, in the server's words.
    pub about: String,
}

/// Files and folders of a workspace that must not exist for somebody. They are looked up once, when they are first asked for.
pub type HiddenFiles = Shared<BoxFuture<'static, Result<Arc<[FilePath]>, Error>>>;

/// The servers of a workspace.
#[derive(Clone, Debug)]
pub struct ServersOf {
    /// The workspace.
    pub workspace: WorkspaceId,
    /// The text of its own declaration, beside the servers of the installation; none where it has none, or the caller may not read it.
    pub declared: Option<Arc<str>>,
    /// The files of its own HTTP tools that the caller may read, behind those that the caller's flow brings: the names and the texts. Of two tools of one
    /// name the first counts.
    pub tools: Arc<[(String, String)]>,
    /// The caller, by a name that stays the same from one call to the next.
    pub party: String,
    /// The files and folders that must not exist for programs that act for the caller, in order; `FORBIDDEN` where there may be no such program.
    pub hidden: HiddenFiles,
}

impl ServersOf {
    /// The servers of the installation for a workspace. No program sees the files of the workspace.
    pub fn new(workspace: WorkspaceId) -> Self {
        let hidden = async { Err(would_see_private(&FilePath::root())) };
        Self { workspace, declared: None, tools: [].into(), party: String::new(), hidden: hidden.boxed().shared() }
    }

    /// The same for a party from whose programs these files and folders are hidden.
    #[must_use]
    pub fn with_party<F>(self, party: String, hidden: F) -> Self
    where
        F: Future<Output = Result<Vec<FilePath>, Error>> + Send + 'static,
    {
        Self { party, hidden: hidden.map(|paths| paths.map(Arc::from)).boxed().shared(), ..self }
    }
}

/// The refusal of a program that would see files of others in a folder. It has no word on which files those are.
pub fn would_see_private(folder: &FilePath) -> Error {
    Error::new(
        Code::Forbidden,
        format!("a program in {folder} would see files of this workspace that are private to others"),
    )
    .hint("have it work in a folder without such files")
    .detail("action", "execute")
    .detail("path", folder.as_str())
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
pub struct JoinedServers(pub Vec<Arc<dyn ToolServers>>);

#[async_trait]
impl ToolServers for JoinedServers {
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
            None => Err(Error::no_tool(tool)),
        }
    }

    async fn follow(&self, of: &ServersOf, call: ServedCall) -> Result<ServedStep, Error> {
        match self.0.iter().find(|servers| servers.may_have(&call.tool)) {
            Some(servers) => servers.follow(of, call).await,
            None => Err(Error::no_tool(&call.tool)),
        }
    }

    async fn sees(&self, of: &ServersOf, server: &str) -> Result<Option<FilePath>, Error> {
        for servers in &self.0 {
            let folder = servers.sees(of, server).await?;
            if folder.is_some() {
                return Ok(folder);
            }
        }
        Ok(None)
    }

    async fn files(&self, of: &ServersOf, wait: Duration) -> Vec<ServedFile> {
        let mut all = join_all(self.0.iter().map(|servers| servers.files(of, wait))).await.concat();
        all.sort_by(|a, b| a.path.cmp(&b.path));
        all
    }

    async fn read(&self, of: &ServersOf, path: &FilePath) -> Result<ServedAnswer, Error> {
        first_found(self.0.iter().map(|servers| servers.read(of, path)), || Error::not_found("file", path)).await
    }

    async fn prompt(&self, of: &ServersOf, name: &str, args: &str) -> Result<ServedAnswer, Error> {
        first_found(self.0.iter().map(|servers| servers.prompt(of, name, args)), || Error::not_found("prompt", name))
            .await
    }
}

/// The first answer other than that there is none.
async fn first_found<F: Future<Output = Result<ServedAnswer, Error>>>(
    asked: impl Iterator<Item = F>,
    none: impl Fn() -> Error,
) -> Result<ServedAnswer, Error> {
    let mut missing = none();
    for answer in asked {
        match answer.await {
            // The one that has a reason says more.
            Err(error) if error.code == Code::NotFound => {
                if error.hint.is_some() {
                    missing = error;
                }
            }
            answer => return answer,
        }
    }
    Err(missing)
}
