//! The workspace's sandbox, while one is ready: its mirror is brought in line with the index before it is searched, and contents are read from it
//! before the blobs are asked (spec 001 §5).
//!
//! A sandbox may be gone at any moment, and nothing durable is in it: a failure is logged once, the sandbox is then left alone for a while, and the
//! caller goes on without it. So it is never slower than one failed attempt allows.

mod manifest;

use crate::{Result, Workspace, Workspaces, archive, error};
use async_trait::async_trait;
use bytes::Bytes;
use domain::{Error, FilePath, Sha256, Timestamp, WorkspaceId};
use ports::{Clock, Mirrored, Sandbox, SandboxState, SandboxView, Sandboxes};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

/// How long the last look is trusted, whether it found a sandbox or none.
const BELIEVED: Duration = Duration::from_secs(10);
/// How long after somebody here asked for one it is not believed that there is none: it may be there from one moment to the next.
const AWAITED: Duration = Duration::from_secs(10 * 60);
/// How long a sandbox that failed is left alone.
const LEFT_ALONE: Duration = Duration::from_secs(30);
/// How long it may take to say whether there is one, and to give a content.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long a search may take, and to bring the mirror in line before.
const PATIENCE_FOR_WORK: Duration = Duration::from_secs(60);
/// The service that a mirror is filled for: several people run commands beside it, so it has no home in it.
pub(crate) const SANDBOX: &str = "sandbox";
/// How many workspaces are remembered.
const REMEMBERED: usize = 1024;

/// The sandboxes as workspaces use them. All callers in this process share this, so that one caller's result serves all of them.
pub(crate) struct SandboxMirror {
    sandboxes: Arc<dyn Sandboxes>,
    clock: Arc<dyn Clock>,
    known: Mutex<HashMap<WorkspaceId, Known>>,
}

#[derive(Clone, Default)]
struct Known {
    sandbox: Option<Arc<dyn Sandbox>>,
    /// The time until which that is believed.
    until: Timestamp,
    /// The time until which one is awaited.
    awaited: Timestamp,
    /// Held while the mirror is brought in line, so that one worker tells it one thing after the other.
    telling: Arc<tokio::sync::Mutex<()>>,
}

impl SandboxMirror {
    pub fn new(sandboxes: Arc<dyn Sandboxes>, clock: Arc<dyn Clock>) -> Self {
        Self { sandboxes, clock, known: Mutex::default() }
    }

    /// The sandbox of a workspace, when one is ready.
    pub async fn of(&self, id: WorkspaceId) -> Option<Arc<dyn Sandbox>> {
        let now = self.clock.now();
        if let Some(known) = self.known().get(&id).filter(|known| known.until > now) {
            return known.sandbox.clone();
        }
        within(PATIENCE, self.ready(id)).await.unwrap_or_else(|error| {
            self.failed(id, &error);
            None
        })
    }

    /// It failed: it is left alone for a while.
    pub fn failed(&self, id: WorkspaceId, error: &(dyn std::error::Error + 'static)) {
        tracing::warn!(workspace = %id, error, "the sandbox is left alone for a while");
        let until = self.clock.now() + LEFT_ALONE;
        self.note(id, |known| (known.sandbox, known.until) = (None, until));
    }

    fn note(&self, id: WorkspaceId, change: impl FnOnce(&mut Known)) {
        let mut all = self.known();
        if all.len() >= REMEMBERED {
            let now = self.clock.now();
            let is_of_use = |known: &Known| known.until.max(known.awaited) > now;
            all.retain(|_, known| is_of_use(known) || Arc::strong_count(&known.telling) > 1);
        }
        change(all.entry(id).or_default());
    }

    fn telling(&self, id: WorkspaceId) -> Arc<tokio::sync::Mutex<()>> {
        self.known().entry(id).or_default().telling.clone()
    }

    fn known(&self) -> std::sync::MutexGuard<'_, HashMap<WorkspaceId, Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A content, if a sandbox has it and says so soon.
    pub async fn content(&self, id: WorkspaceId, digest: Sha256) -> Option<Bytes> {
        let sandbox = self.of(id).await?;
        let content = within(PATIENCE, sandbox.mirror()?.content(digest)).await;
        let content = content.unwrap_or_else(|error| {
            self.failed(id, &error);
            None
        })?;
        let is_right = archive::digest(&content).await.is_ok_and(|found| found == digest);
        if !is_right {
            self.failed(id, &ports::Error::Damaged(format!("it gave another content for {digest}")));
        }
        is_right.then_some(content)
    }
}

/// The sandboxes themselves; their answers are remembered here.
#[async_trait]
impl Sandboxes for SandboxMirror {
    async fn look(&self, id: WorkspaceId) -> ports::Result<SandboxView> {
        self.sandboxes.look(id).await
    }

    async fn warm(&self, id: WorkspaceId) -> ports::Result<SandboxView> {
        let view = self.sandboxes.warm(id).await?;
        let now = self.clock.now();
        let awaited = if view.state == SandboxState::Starting { now + AWAITED } else { now };
        self.note(id, |known| (known.until, known.awaited) = (now, awaited));
        Ok(view)
    }

    async fn release(&self, id: WorkspaceId) -> ports::Result<()> {
        let released = self.sandboxes.release(id).await;
        let now = self.clock.now();
        self.note(id, |known| (known.until, known.awaited) = (now, now));
        released
    }

    async fn ready(&self, id: WorkspaceId) -> ports::Result<Option<Arc<dyn Sandbox>>> {
        let sandbox = self.sandboxes.ready(id).await?;
        let now = self.clock.now();
        self.note(id, |known| {
            if sandbox.is_some() {
                known.awaited = now;
            }
            known.until = if known.awaited > now { now } else { now + BELIEVED };
            known.sandbox = sandbox.clone();
        });
        Ok(sandbox)
    }
}

/// Turns a late answer into the error `Unavailable`.
async fn within<T, E: From<ports::Error>>(
    limit: Duration,
    work: impl Future<Output = std::result::Result<T, E>>,
) -> std::result::Result<T, E> {
    let late = || ports::Error::unavailable("the sandbox", std::io::Error::from(std::io::ErrorKind::TimedOut));
    let late = |_| Err(late().into());
    tokio::time::timeout(limit, work).await.unwrap_or_else(late)
}

impl Workspaces {
    /// The same, with sandboxes: searches use their mirrors, reads their contents, and commands run in them.
    #[must_use]
    pub fn with_sandboxes(self, sandboxes: Arc<dyn Sandboxes>) -> Self {
        drop(self.0.sandbox_mirror.set(Arc::new(SandboxMirror::new(sandboxes, self.0.clock.clone()))));
        self
    }

    /// The sandboxes, if any are configured.
    pub fn sandboxes(&self) -> Option<Arc<dyn Sandboxes>> {
        self.0.sandbox_mirror.get().map(|sandbox_mirror| sandbox_mirror.clone() as Arc<dyn Sandboxes>)
    }
}

impl Workspace {
    fn sandbox_mirror(&self) -> Option<Arc<SandboxMirror>> {
        self.0.shared.upgrade().and_then(|shared| shared.sandbox_mirror.get().cloned())
    }

    /// The sandboxes, if any are configured.
    pub fn sandboxes(&self) -> Option<Arc<dyn Sandboxes>> {
        self.sandbox_mirror().map(|sandbox_mirror| sandbox_mirror as Arc<dyn Sandboxes>)
    }

    /// The answer of a read-only tool, as JSON, from the mirror of a sandbox that is in line with the index; none when there is no such mirror, or it
    /// fails: then the caller runs the tool itself.
    pub async fn search_on_sandbox(&self, path: &FilePath, tool: &str, args: &str) -> Option<String> {
        let sandbox_mirror = self.sandbox_mirror()?;
        // The mirror serves everybody: it can answer only where this party sees what everybody sees.
        if !self.sees_as_service(SANDBOX, path).await {
            return None;
        }
        let sandbox = sandbox_mirror.of(self.0.id).await?;
        let mirror = sandbox.mirror()?;
        let searched = async {
            self.bring_in_line(mirror, Some(path)).await?;
            Ok::<_, Failed>(mirror.search(tool, args).await?)
        };
        match within(PATIENCE_FOR_WORK, searched).await {
            Ok(answer) => Some(answer),
            Err(error) => {
                sandbox_mirror.failed(self.0.id, &error);
                None
            }
        }
    }

    /// Brings the files of a ready sandbox in line with the index, as far as everybody in the workspace may read them; does nothing when the sandbox
    /// shares this disk. Of the files of chats, it brings
    /// those at and below `chats`.
    ///
    /// # Errors
    /// `UPSTREAM_UNAVAILABLE` when the sandbox does not answer, `STORAGE_FULL` when it has no room, `INTERNAL` when it misses contents however often
    /// they are given; else those of [`Workspace`].
    pub async fn bring_to(&self, sandbox: &dyn Sandbox, chats: Option<&FilePath>) -> Result<()> {
        match sandbox.mirror() {
            Some(mirror) => self.bring_in_line(mirror, chats).await.map_err(Failed::told),
            None => Ok(()),
        }
    }

    async fn bring_in_line(&self, mirror: &dyn Mirrored, chats: Option<&FilePath>) -> std::result::Result<(), Failed> {
        let telling = self.sandbox_mirror().map(|sandbox_mirror| sandbox_mirror.telling(self.0.id));
        let _one_after_the_other = match &telling {
            Some(telling) => Some(telling.lock().await),
            None => None,
        };
        let mark = mirror.mark().await?;
        let shared = self.for_service(SANDBOX);
        let mut told = shared.manifest_since(mark.as_deref()).await?;
        if let Some(path) = chats {
            shared.add_chats(&mut told, path).await?;
        }
        self.tell(mirror, told).await
    }
}

/// Why a mirror is not in line with the index.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
enum Failed {
    /// The index or the archive.
    Here(#[from] Error),
    /// The sandbox.
    There(#[from] ports::Error),
}

impl Failed {
    fn told(self) -> Error {
        match self {
            Self::Here(error) => error,
            Self::There(error) => error::port(error),
        }
    }
}
