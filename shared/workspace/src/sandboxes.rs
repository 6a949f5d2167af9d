//! The sandboxes as workspaces use them: the last answers are remembered, and one that failed is left alone for a while.

use crate::contents;
use async_trait::async_trait;
use bytes::Bytes;
use domain::{Sha256, Timestamp, WorkspaceId};
use parking_lot::Mutex;
use ports::{Clock, Sandbox, SandboxState, SandboxView, Sandboxes};
use std::{collections::HashMap, sync::Arc, time::Duration};

/// How long the last look is trusted, whether it found a sandbox or none.
const BELIEVED: Duration = Duration::from_secs(10);
/// How long after somebody here asked for one it is not believed that there is none: it may be there from one moment to the next.
const AWAITED: Duration = Duration::from_secs(10 * 60);
/// How long a sandbox that failed is left alone.
const LEFT_ALONE: Duration = Duration::from_secs(30);
/// How long it may take to say whether there is one, and to give a content.
const PATIENCE: Duration = Duration::from_secs(2);
/// How many workspaces are remembered.
const REMEMBERED: usize = 1024;

/// The sandboxes as workspaces use them. All callers in this process share this, so that one caller's result serves all of them.
pub(crate) struct SandboxMirror {
    sandboxes: Arc<dyn Sandboxes>,
    clock: Arc<dyn Clock>,
    known: Mutex<HashMap<WorkspaceId, KnownSandbox>>,
}

#[derive(Clone, Default)]
struct KnownSandbox {
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

    fn note(&self, id: WorkspaceId, change: impl FnOnce(&mut KnownSandbox)) {
        let mut all = self.known();
        if all.len() >= REMEMBERED {
            let now = self.clock.now();
            let is_of_use = |known: &KnownSandbox| known.until.max(known.awaited) > now;
            all.retain(|_, known| is_of_use(known) || Arc::strong_count(&known.telling) > 1);
        }
        change(all.entry(id).or_default());
    }

    pub fn telling(&self, id: WorkspaceId) -> Arc<tokio::sync::Mutex<()>> {
        self.known().entry(id).or_default().telling.clone()
    }

    fn known(&self) -> parking_lot::MutexGuard<'_, HashMap<WorkspaceId, KnownSandbox>> {
        self.known.lock()
    }

    /// A content, if a sandbox has it and says so soon.
    pub async fn content(&self, id: WorkspaceId, digest: Sha256) -> Option<Bytes> {
        let sandbox = self.of(id).await?;
        let content = within(PATIENCE, sandbox.mirror()?.content(digest)).await;
        let content = content.unwrap_or_else(|error| {
            self.failed(id, &error);
            None
        })?;
        let is_right = contents::digest(&content).await.is_ok_and(|found| found == digest);
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

    fn have_mirrors(&self) -> bool {
        self.sandboxes.have_mirrors()
    }
}

/// Turns a late answer into the error `Unavailable`.
pub(crate) async fn within<T, E: From<ports::Error>>(
    limit: Duration,
    work: impl Future<Output = std::result::Result<T, E>>,
) -> std::result::Result<T, E> {
    let late = || ports::Error::unavailable("the sandbox", std::io::Error::from(std::io::ErrorKind::TimedOut));
    let late = |_| Err(late().into());
    tokio::time::timeout(limit, work).await.unwrap_or_else(late)
}
