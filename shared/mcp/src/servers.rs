//! The servers of all workspaces, and their connections.

use crate::{
    bounds,
    connection::{Connection, KnownTool},
    declarations::{self, DeclaredServer, DeclaredTransport},
    dependencies::ServerDependencies,
    http_failures::HTTP_STATUS,
    server_files::ServerFile,
    server_requests::Running,
    workspace_server::{ReachedServer, WorkspaceServer, WorkspaceServerKey, make_room},
};
use async_trait::async_trait;
use domain::{CallId, Code, Error, FilePath, WorkspaceId, served::SERVED_PREFIX};
use futures::future::join_all;
use parking_lot::Mutex;
use ports::{
    Listener, SERVED_FILES, Served, ServedAnswer, ServedCall, ServedFile, ServedStep, ServersOf, ToolServers,
    server_of, would_see_private,
};
use serde_json::{Map, Value};
use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::Duration,
};
use tokio::time::{Instant, timeout_at};

/// The time that a call waits for a server that is not connected yet.
const PATIENCE: Duration = Duration::from_secs(60);

/// The place of a fault that is none of a single server.
const DECLARATIONS: &str = "mcp.json";
/// The reason of a server that is waited for no longer.
pub(crate) const NOT_YET: &str = "it does not answer yet";

/// The servers of the configuration and of the workspaces. Cheap to clone.
#[derive(Clone)]
pub struct Servers(pub(crate) Arc<Inner>);

pub(crate) struct Inner {
    own: BTreeMap<String, DeclaredServer>,
    pub parts: ServerDependencies,
    workspace_servers: Mutex<HashMap<WorkspaceServerKey, Arc<WorkspaceServer>>>,
}

impl Servers {
    /// With these servers for all workspaces.
    ///
    /// # Errors
    /// The fault of a declaration, with the name of its server.
    pub fn new(own: &BTreeMap<String, crate::ServerConfig>, parts: ServerDependencies) -> Result<Self, String> {
        let one = |(name, config): (&String, &crate::ServerConfig)| match config.declared(name) {
            Ok(declared) => Ok((name.clone(), declared)),
            Err(why) => Err(format!("mcp.{name}: {why}")),
        };
        let own = own.iter().map(one).collect::<Result<_, _>>()?;
        Ok(Self(Arc::new(Inner { own, parts, workspace_servers: Mutex::default() })))
    }
}

impl Inner {
    /// The servers of a workspace by name; and those that are declared with a fault.
    fn declared(&self, of: &ServersOf) -> (BTreeMap<String, DeclaredServer>, Vec<(String, String)>) {
        let (mut servers, mut faults) = (self.own.clone(), Vec::new());
        let Some(text) = &of.declared else { return (servers, faults) };
        match declarations::parse(text) {
            Err(why) => faults.push((DECLARATIONS.to_owned(), why)),
            Ok(found) => {
                for (name, declared) in found {
                    match declared {
                        Err(why) => faults.push((name, why)),
                        Ok(_) if servers.contains_key(&name) => {
                            faults.push((name, "another server has this name already".into()));
                        }
                        Ok(declared) => drop(servers.insert(name, declared)),
                    }
                }
            }
        }
        (servers, faults)
    }

    /// A server over HTTP, as a workspace uses it now.
    pub fn workspace_server(&self, workspace: WorkspaceId, server: &str) -> Option<Arc<WorkspaceServer>> {
        let place: WorkspaceServerKey = (workspace, server.to_owned(), Arc::default());
        self.workspace_servers.lock().get(&place).cloned()
    }

    /// Ends the servers of a workspace that is being deleted. Otherwise they would run until they are idle, and for a day where a call waits for a person.
    pub fn disconnect(&self, workspace: WorkspaceId) {
        let mut workspace_servers = self.workspace_servers.lock();
        workspace_servers.retain(|(of, _, _), _| *of != workspace);
    }

    /// The files and folders that must not exist for the program of a server; none for a server that sees no files.
    ///
    /// # Errors
    /// `FORBIDDEN` where they cannot be hidden from it; those of [`ServersOf::hidden`].
    async fn hidden(&self, of: &ServersOf, declared: &DeclaredServer) -> Result<Arc<[FilePath]>, Error> {
        let DeclaredTransport::Program { folder, confined: true, .. } = &declared.how else {
            return Ok(Arc::default());
        };
        // Without a sandbox it does not start.
        let Some(programs) = &self.parts.confined else { return Ok(Arc::default()) };
        let hidden = of.hidden.clone().await?;
        let hides = programs.hides();
        let is_seen = |path: &FilePath| folder.is_within(path) || (!hides && path.is_within(folder));
        match hidden.iter().any(is_seen) {
            true => Err(would_see_private(folder)),
            false => Ok(hidden),
        }
    }

    /// The servers of a workspace, and those that are declared with a fault or may not run for the caller.
    pub async fn workspace_servers(&self, of: &ServersOf) -> (Vec<Arc<WorkspaceServer>>, Vec<(String, String)>) {
        let (declared, mut faults) = self.declared(of);
        let mut servers = BTreeMap::new();
        for (name, declared) in declared {
            let hidden = self.hidden(of, &declared).await;
            servers.insert(name, (declared, hidden));
        }
        let mut workspace_servers = self.workspace_servers.lock();
        workspace_servers.retain(|(workspace, name, hidden), workspace_server| match servers.get(name) {
            _ if *workspace != of.workspace => true,
            // A caller who may not read the declaration knows nothing of its servers.
            None => of.declared.is_none(),
            Some((declared, _)) if *declared != workspace_server.declared => false,
            Some((_, now)) => {
                let has_left = match now {
                    Ok(now) => now != hidden,
                    // Any other error says nothing of what is hidden.
                    Err(error) => error.code == Code::Forbidden,
                };
                if has_left {
                    workspace_server.leave(&of.party);
                }
                !workspace_server.is_over()
            }
        });
        let mut places = Vec::new();
        for (name, (declared, hidden)) in servers {
            match hidden {
                Ok(hidden) => places.push(((of.workspace, name, hidden), declared)),
                Err(error) => faults.push((name, error.message)),
            }
        }
        // Those that the caller uses do not give way to each other.
        let _held: Vec<_> = places.iter().filter_map(|(place, _)| workspace_servers.get(place).cloned()).collect();
        let mut found = Vec::new();
        for (place, declared) in places {
            if !workspace_servers.contains_key(&place) && !make_room(&mut workspace_servers, of.workspace) {
                faults.push((place.1, "there are too many servers already".into()));
                continue;
            }
            let workspace_server = workspace_servers
                .entry(place)
                .or_insert_with_key(|place| Arc::new(WorkspaceServer::new(place, declared)));
            workspace_server.enter(&of.party);
            found.push(workspace_server.clone());
        }
        (found, faults)
    }

    /// The server in which a call of the caller waits for a person. The files that are hidden from the caller may have changed since: then it is not the one that new
    /// calls go to.
    async fn waiting(
        &self,
        of: &ServersOf,
        server: &str,
        call: CallId,
    ) -> Option<(Arc<WorkspaceServer>, Arc<Connection>)> {
        let workspace_servers: Vec<_> = {
            let workspace_servers = self.workspace_servers.lock();
            let named = workspace_servers
                .iter()
                .filter(|((workspace, name, _), _)| *workspace == of.workspace && name == server);
            named.map(|(_, workspace_server)| workspace_server.clone()).collect()
        };
        for workspace_server in workspace_servers {
            if let Some(connection) = workspace_server.waiting(&of.party, call).await {
                return Some((workspace_server, connection));
            }
        }
        None
    }

    /// The servers' connections and tools, as far as they are there in time, and those that are not. Of one server, or of all.
    pub async fn all(self: &Arc<Self>, of: &ServersOf, one: Option<&str>, wait: Duration) -> Answers {
        let now = Instant::now();
        let (mut workspace_servers, missing) = self.workspace_servers(of).await;
        if let Some(tool) = one {
            workspace_servers.retain(|workspace_server| server_of(tool) == Some(workspace_server.name.as_str()));
        }
        let asked = workspace_servers.into_iter().map(|workspace_server| {
            let (inner, name) = (self.clone(), workspace_server.name.clone());
            async move {
                // A sign-in that another process has just completed makes a server worth the wait.
                let _ = timeout_at(now + wait, workspace_server.look_for_account(&inner.parts)).await;
                let is_awaited = one.is_some() || workspace_server.is_promising();
                let until = if is_awaited { now + wait } else { Instant::now() };
                // A task of its own: it goes on when nobody waits for it any more.
                let tried = workspace_server.clone();
                let task = tokio::spawn(async move { tried.tools(&inner.parts).await });
                match timeout_at(until, task).await {
                    Ok(Ok(answer)) => answer.map_err(|why| (name, why)),
                    Ok(Err(_)) => Err((name, "it failed".to_owned())),
                    // One that is being tried again is where the last try left it.
                    Err(_) => Err((name, workspace_server.failure().unwrap_or_else(|| NOT_YET.to_owned()))),
                }
            }
        });
        let mut answers = Answers { found: Vec::new(), missing };
        for answer in join_all(asked).await {
            match answer {
                Ok(one) => answers.found.push(one),
                Err(one) => answers.missing.push(one),
            }
        }
        answers
    }
}

/// The answers of servers.
pub(crate) struct Answers {
    pub found: Vec<ReachedServer>,
    pub missing: Vec<(String, String)>,
}

#[async_trait]
impl ToolServers for Servers {
    fn may_have(&self, tool: &str) -> bool {
        tool.starts_with(SERVED_PREFIX)
    }

    async fn tools(&self, of: &ServersOf, wait: Duration) -> Served {
        let Answers { found, missing } = self.0.all(of, None, wait).await;
        let mut tools: Vec<_> =
            found.iter().flat_map(|found| found.tools.iter().map(|known| known.tool.clone())).collect();
        tools.sort_by(|a, b| a.name.cmp(&b.name));
        Served { tools, missing }
    }

    async fn call(&self, of: &ServersOf, tool: &str, args: Map<String, Value>) -> Result<ServedAnswer, Error> {
        match self.step(of, tool, (None, None), None, |connection, known| Ok(connection.begin(known, args))).await? {
            ServedStep::Answered(answer) => Ok(answer),
            ServedStep::Asks(_) | ServedStep::Samples(_) => {
                Err(Error::new(Code::Internal, "a call without a person waits for one"))
            }
        }
    }

    async fn follow(&self, of: &ServersOf, call: ServedCall) -> Result<ServedStep, Error> {
        let ServedCall { id, tool, args, reply, told } = call;
        let answered = reply.is_some().then_some(id);
        let begun = |connection: &Connection, known: &KnownTool| match reply {
            None => Ok(connection.begin(known, args)),
            Some(answer) => connection.parked.resume(id, answer).ok_or_else(|| {
                Error::new(Code::OutcomeUnknown, "the call does not wait for this answer any more")
                    .hint("its server or this hub was started again meanwhile: look before you make it again")
            }),
        };
        self.step(of, &tool, (Some(id), told), answered, begun).await
    }

    async fn sees(&self, of: &ServersOf, server: &str) -> Result<Option<FilePath>, Error> {
        let Some(declared) = self.0.declared(of).0.remove(server) else { return Ok(None) };
        self.0.hidden(of, &declared).await?;
        Ok(match declared.how {
            DeclaredTransport::Program { folder, confined: true, .. } => Some(folder),
            DeclaredTransport::Program { .. } | DeclaredTransport::Http { .. } => None,
        })
    }

    async fn files(&self, of: &ServersOf, wait: Duration) -> Vec<ServedFile> {
        let found = self.0.all(of, None, wait).await.found;
        let listed = found.iter().map(async |found| timeout_at(Instant::now() + wait, found.connection.files()).await);
        let mut files = Vec::new();
        for (one, found) in join_all(listed).await.into_iter().zip(&found) {
            match one {
                Ok(Ok(all)) => files.extend(all.iter().map(ServerFile::to_served)),
                Ok(Err(why)) => {
                    tracing::warn!(server = found.workspace_server.name, why, "an MCP server lists no files")
                }
                Err(_) => tracing::warn!(server = found.workspace_server.name, "an MCP server lists no files in time"),
            }
        }
        files.sort_by(|a, b| a.path.cmp(&b.path));
        files
    }

    async fn read(&self, of: &ServersOf, path: &FilePath) -> Result<ServedAnswer, Error> {
        let none = || Error::not_found("file", path);
        let inside = path.as_str().strip_prefix(SERVED_FILES).and_then(|rest| rest.strip_prefix('/'));
        let Some((server, _)) = inside.and_then(|rest| rest.split_once('/')) else { return Err(none()) };
        let found = self.one(of, server).await.map_err(|why| none().hint(why))?;
        self.refresh(&found.workspace_server).await?;
        let read = found.connection.read(path.as_str()).await;
        let read = self.explain_sign_in(&found, read).await?;
        read.ok_or_else(|| none().hint(format!("ls {SERVED_FILES}/{server} lists its files")))
    }

    async fn prompt(&self, of: &ServersOf, name: &str, args: &str) -> Result<ServedAnswer, Error> {
        let none = || Error::not_found("prompt", name);
        let Some((server, prompt)) = name.split_once("__") else { return Err(none()) };
        let (workspace_servers, faults) = self.0.workspace_servers(of).await;
        // Such a message may be for somebody else: the agent of a thread has prompts of its own.
        if !workspace_servers.iter().any(|workspace_server| workspace_server.name == server)
            && !faults.iter().any(|(name, _)| name == server)
        {
            return Err(none());
        }
        let found = self.one(of, server).await.map_err(|why| none().hint(why))?;
        self.refresh(&found.workspace_server).await?;
        let words = found.connection.prompt(prompt, args).await;
        let listed = || none().hint(format!("ls {SERVED_FILES}/{server}/prompts lists those that there are"));
        self.explain_sign_in(&found, words).await?.ok_or_else(listed)
    }
}

impl Servers {
    /// A step of a call: `begun` begins it, or goes on with the call `answered`.
    async fn step(
        &self,
        of: &ServersOf,
        tool: &str,
        (id, told): (Option<CallId>, Option<Listener>),
        answered: Option<CallId>,
        begun: impl FnOnce(&Connection, &KnownTool) -> Result<Running, Error>,
    ) -> Result<ServedStep, Error> {
        let (mut found, mut known) = self.offered(of, tool).await?;
        if let Some(call) = answered {
            if let Some((workspace_server, connection)) = self.0.waiting(of, &found.workspace_server.name, call).await {
                found = ReachedServer { workspace_server, connection, ..found };
            }
        } else {
            // A call of a program that has gone would fail with an unknown outcome.
            if !found.is_there().await {
                (found, known) = self.offered(of, tool).await?;
            }
            self.refresh(&found.workspace_server).await?;
        }
        let running = begun(&found.connection, &known)?;
        found.connection.listen(&running, told);
        let step = found.connection.follow(running, id).await;
        self.explain_sign_in(&found, step).await
    }

    /// The server of a tool, connected, and the tool.
    ///
    /// # Errors
    /// `NOT_FOUND`; `UPSTREAM_REFUSED` when its server asks for a sign-in, and `UPSTREAM_UNAVAILABLE` when it cannot be used now for another reason.
    async fn offered(&self, of: &ServersOf, tool: &str) -> Result<(ReachedServer, KnownTool), Error> {
        let Answers { found, missing } = self.0.all(of, Some(tool), PATIENCE).await;
        let named = |found: ReachedServer| {
            let known = found.tools.iter().find(|known| known.tool.name == tool)?.clone();
            Some((found, known))
        };
        if let Some(offered) = found.into_iter().find_map(named) {
            return Ok(offered);
        }
        let server = server_of(tool).unwrap_or_default();
        let why_not = |wanted: &str| missing.iter().find(|(name, _)| name == wanted).map(|(_, why)| why.as_str());
        Err(match (why_not(server), why_not(DECLARATIONS)) {
            (Some(why), _) => {
                let workspace_server = self.0.workspace_server(of.workspace, server);
                let signs_in = workspace_server.is_some_and(|workspace_server| workspace_server.challenge().is_some());
                let code = if signs_in { Code::UpstreamRefused } else { Code::UpstreamUnavailable };
                Error::new(code, format!("the MCP server {server} cannot be used now, and was not called")).hint(why)
            }
            (None, Some(why)) => {
                Error::no_tool(tool).hint(format!("the servers of the workspace cannot be read: {why}"))
            }
            (None, None) => Error::no_tool(tool).hint("its server does not offer it"),
        })
    }

    /// Brings the files that the program of a server sees up to date.
    ///
    /// # Errors
    /// `UPSTREAM_UNAVAILABLE`; nothing was asked of the server then.
    async fn refresh(&self, workspace_server: &WorkspaceServer) -> Result<(), Error> {
        let DeclaredTransport::Program { confined: true, .. } = &workspace_server.declared.how else { return Ok(()) };
        let Some(programs) = &self.0.parts.confined else { return Ok(()) };
        programs.refresh(workspace_server.workspace).await.map_err(|why| {
            let name = &workspace_server.name;
            Error::new(Code::UpstreamUnavailable, format!("the MCP server {name} cannot see the present files: {why}"))
        })
    }

    /// A server by its name, with its program there.
    ///
    /// # Errors
    /// The reason, for people.
    async fn one(&self, of: &ServersOf, server: &str) -> Result<ReachedServer, String> {
        let (workspace_servers, faults) = self.0.workspace_servers(of).await;
        match workspace_servers.into_iter().find(|workspace_server| workspace_server.name == server) {
            Some(workspace_server) => {
                workspace_server.look_for_account(&self.0.parts).await;
                let found = workspace_server.tools(&self.0.parts).await?;
                if found.is_there().await { Ok(found) } else { workspace_server.tools(&self.0.parts).await }
            }
            None => Err(faults
                .into_iter()
                .find_map(|(name, why)| (name == server).then_some(why))
                .unwrap_or_else(|| format!("there is no MCP server {}", bounds::printable(server, 64)))),
        }
    }

    /// An answer, where a failure may be that the server asks for a sign-in.
    async fn explain_sign_in<T>(&self, found: &ReachedServer, answer: Result<T, Error>) -> Result<T, Error> {
        let Err(error) = answer else { return answer };
        // A status says what is wrong by itself; the sign-in may have been asked for by an earlier request.
        if error.details.contains_key(HTTP_STATUS) {
            return Err(error);
        }
        let ReachedServer { workspace_server, connection, .. } = found;
        Err(match workspace_server.was_refused_without_sign_in(connection).await {
            Some(why) => {
                Error::new(Code::UpstreamRefused, format!("the MCP server {} did not do it", workspace_server.name))
                    .hint(why)
            }
            None => error,
        })
    }
}
