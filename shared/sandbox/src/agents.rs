//! The coding agents of the sandboxes of all workspaces, as one port (spec 004 §2): a thread works in the sandbox of its workspace, which is
//! started for it.

use async_trait::async_trait;
use domain::{ChatId, FilePath, ThreadAgent, WORKSPACE_FOLDER, WorkspaceId};
use ports::{
    AgentCommand, AgentInfo, AgentMessage, AgentOffers, AgentPrompt, AgentSessions, AgentTurn, AgentUpdate, Agents,
    Error, Result, Sandbox, SandboxState, Sandboxes, WorkingCopies, WorkingCopy,
};
use std::{fmt, path::PathBuf, sync::Arc, time::Duration};
use tokio::time::{Instant, sleep};

/// How long a sandbox may take to start.
const START: Duration = Duration::from_secs(6 * 60);
/// How soon it is looked at again, first and at most.
const LOOKED_AT: Duration = Duration::from_millis(100);
const LOOKED_AT_MOST: Duration = Duration::from_secs(5);
/// How often one is asked for that has ended before it was ready.
const ASKED_FOR: u32 = 3;
/// How often a sandbox is asked that does not answer.
const TRIES: u32 = 5;

/// Coding agents that work in the sandboxes of their workspaces.
#[derive(Clone)]
pub struct SandboxAgents {
    sandboxes: Arc<dyn Sandboxes>,
    known: Arc<[AgentInfo]>,
}

impl fmt::Debug for SandboxAgents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SandboxAgents").field("known", &self.known).finish_non_exhaustive()
    }
}

fn away(why: impl Into<String>) -> Error {
    Error::unavailable("the agent", why.into())
}

fn gone() -> Error {
    Error::Conflict { write: 0 }
}

/// Asks a sandbox, and again when there is no answer: one that was ready a moment ago may have gone, and then there is another one or none. `ask` gets the
/// number of the tries before.
pub(crate) async fn patiently<S: ?Sized, T, F, A>(
    find: impl Fn() -> F + Send + Sync,
    ask: impl Fn(Arc<S>, u32) -> A + Send + Sync,
) -> Result<T>
where
    F: Future<Output = Result<Arc<S>>> + Send,
    A: Future<Output = Result<T>> + Send,
{
    let mut tries = 0;
    loop {
        match ask(find().await?, tries).await {
            Err(error @ Error::Unavailable { .. }) if tries < TRIES => {
                tracing::warn!(error = %error.with_causes(), "a sandbox is asked again");
                sleep(LOOKED_AT * 2_u32.pow(tries)).await;
                tries += 1;
            }
            other => return other,
        }
    }
}

/// The sandbox of a workspace once it is ready, which is started if there is none.
///
/// # Errors
/// `Unavailable` when it does not start in time; those of [`Sandboxes`].
pub(crate) async fn started(sandboxes: &dyn Sandboxes, workspace: WorkspaceId) -> Result<Arc<dyn Sandbox>> {
    let away = |why: String| Error::unavailable("the sandbox", why);
    let (begun, mut pause, mut asked_for) = (Instant::now(), LOOKED_AT, 0);
    let mut is_coming = false;
    loop {
        if let Some(sandbox) = sandboxes.ready(workspace).await? {
            return Ok(sandbox);
        }
        let view = if is_coming || asked_for == ASKED_FOR {
            sandboxes.look(workspace).await?
        } else {
            asked_for += 1;
            sandboxes.warm(workspace).await?
        };
        let why = || view.reason.clone().unwrap_or_else(|| "nobody knows why".into());
        is_coming = match view.state {
            SandboxState::Failed => return Err(away(format!("it does not start: {}", why()))),
            SandboxState::Cold if asked_for == ASKED_FOR => return Err(away("it ends before it is ready".into())),
            SandboxState::Cold => false,
            SandboxState::Starting | SandboxState::Ready => true,
        };
        if begun.elapsed() + pause > START {
            return Err(away(format!("it has not started within {} s", START.as_secs())));
        }
        sleep(pause).await;
        pause = (pause * 2).min(LOOKED_AT_MOST);
    }
}

/// An agent that does not ask any longer has its answer from a try whose own answer was lost. If it has not, its updates say so.
fn taken_before(answered: Result<()>, tries: u32) -> Result<()> {
    match answered {
        Err(Error::Conflict { .. }) if tries > 0 => Ok(()),
        other => other,
    }
}

impl SandboxAgents {
    /// The agents that `known` lists, in these sandboxes. Starts none.
    pub fn new(sandboxes: Arc<dyn Sandboxes>, known: impl Into<Arc<[AgentInfo]>>) -> Self {
        Self { sandboxes, known: known.into() }
    }

    /// The agents of a workspace's sandbox if it is ready; starts none.
    async fn ready(&self, workspace: WorkspaceId) -> Result<Option<Arc<dyn Agents>>> {
        Ok(self.sandboxes.ready(workspace).await?.and_then(|sandbox| sandbox.agents()))
    }

    async fn here(&self, workspace: WorkspaceId) -> Result<Arc<dyn Agents>> {
        self.ready(workspace).await?.ok_or_else(gone)
    }

    /// The agents of a workspace's sandbox, once it is ready.
    async fn started(&self, workspace: WorkspaceId) -> Result<Arc<dyn Agents>> {
        let sandbox = started(&*self.sandboxes, workspace).await?;
        sandbox.agents().ok_or_else(|| away("the sandbox of this workspace has no coding agents"))
    }
}

#[async_trait]
impl Agents for SandboxAgents {
    async fn list(&self) -> Vec<AgentInfo> {
        self.known.to_vec()
    }

    async fn allowed(&self, cwd: &str) -> Result<String> {
        let folder = ThreadAgent::folder(cwd);
        folder.map(|folder| ThreadAgent::cwd_of(&folder)).ok_or_else(|| {
            Error::Invalid(format!("{cwd:?} is no folder of the workspace, and agents work in {WORKSPACE_FOLDER} here"))
        })
    }

    fn roots(&self) -> Vec<String> {
        vec![WORKSPACE_FOLDER.into()]
    }

    async fn prompt(&self, prompt: AgentPrompt) -> Result<()> {
        let workspace = prompt.turn.workspace;
        let prompt = &prompt;
        let ask = |agents: Arc<dyn Agents>, _| async move { agents.prompt(prompt.clone()).await };
        patiently(|| self.started(workspace), ask).await
    }

    async fn updates(&self, turn: &AgentTurn) -> Result<Vec<AgentUpdate>> {
        let ask = |agents: Arc<dyn Agents>, _| async move { agents.updates(turn).await };
        patiently(|| self.here(turn.workspace), ask).await
    }

    async fn answer(&self, turn: &AgentTurn, request: &str, option: Option<&str>) -> Result<()> {
        let answer = |agents: Arc<dyn Agents>, tries| async move {
            taken_before(agents.answer(turn, request, option).await, tries)
        };
        patiently(|| self.here(turn.workspace), answer).await
    }

    async fn settle(&self, turn: &AgentTurn, request: &str, refused: Option<&str>) -> Result<()> {
        let settle = |agents: Arc<dyn Agents>, tries| async move {
            taken_before(agents.settle(turn, request, refused).await, tries)
        };
        patiently(|| self.here(turn.workspace), settle).await
    }

    fn copies(&self) -> Option<Arc<dyn WorkingCopies>> {
        Some(Arc::new(self.clone()))
    }

    async fn cancel(&self, turn: &AgentTurn) -> Result<()> {
        match self.ready(turn.workspace).await? {
            Some(agents) => agents.cancel(turn).await,
            None => Ok(()),
        }
    }

    async fn end(&self, workspace: WorkspaceId, chat: ChatId) -> Result<()> {
        match self.ready(workspace).await? {
            Some(agents) => agents.end(workspace, chat).await,
            None => Ok(()),
        }
    }

    async fn offers(&self, _agent: &str, _cwd: &str) -> Result<AgentOffers> {
        Err(Error::Invalid(
            "an agent of a sandbox tells its models and modes in a thread alone, with its first turn".into(),
        ))
    }

    async fn sessions(&self, _agent: &str, _cwd: &str, _cursor: Option<&str>) -> Result<Option<AgentSessions>> {
        Ok(None)
    }

    async fn session_history(&self, _agent: &str, _cwd: &str, _session: &str) -> Result<Option<Vec<AgentMessage>>> {
        Ok(None)
    }

    async fn commands(&self, workspace: WorkspaceId, chat: ChatId) -> Vec<AgentCommand> {
        match self.ready(workspace).await {
            Ok(Some(agents)) => agents.commands(workspace, chat).await,
            Ok(None) | Err(_) => Vec::new(),
        }
    }
}

#[async_trait]
impl WorkingCopies for SandboxAgents {
    async fn path(&self, _workspace: WorkspaceId, _chat: ChatId, _folder: &FilePath) -> Result<PathBuf> {
        Err(Error::Invalid("the folder of a working copy is on the disk of its sandbox".into()))
    }

    async fn hold(&self, workspace: WorkspaceId, chat: ChatId) -> Result<Box<dyn WorkingCopy>> {
        let hold = |agents: Arc<dyn Agents>, _| async move {
            let copies = agents.copies().ok_or_else(|| away("the sandbox of this workspace has no working copies"))?;
            copies.hold(workspace, chat).await
        };
        patiently(|| self.started(workspace), hold).await
    }

    async fn remove(&self, workspace: WorkspaceId, chat: ChatId) -> Result<()> {
        let copies = self.ready(workspace).await?.and_then(|agents| agents.copies());
        match copies {
            Some(copies) => copies.remove(workspace, chat).await,
            // It has gone with its sandbox.
            None => Ok(()),
        }
    }
}
