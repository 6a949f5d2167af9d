//! The workspace's sandbox, while one is ready: its mirror is brought in line with the index before it is searched, and contents are read from it
//! before the blobs are asked (spec 001 §5).
//!
//! A sandbox may be gone at any moment, and nothing durable is in it: a failure is logged once, the sandbox is then left alone for a while, and the
//! caller goes on without it. So it is never slower than one failed attempt allows.

mod manifest;

use crate::{
    Result, Workspace, Workspaces, error,
    sandboxes::{SandboxMirror, within},
};
use domain::{Error, FilePath};
use ports::{Mirrored, Sandbox, Sandboxes};
use std::{sync::Arc, time::Duration};

/// How long a search may take, and to bring the mirror in line before.
const PATIENCE_FOR_WORK: Duration = Duration::from_secs(60);
/// The service that a mirror is filled for: several people run commands beside it, so it has no home in it.
pub(crate) const SANDBOX: &str = "sandbox";
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
            Some(mirror) => self.bring_in_line(mirror, chats).await.map_err(Failed::into_error),
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
    fn into_error(self) -> Error {
        match self {
            Self::Here(error) => error,
            Self::There(error) => error::port(error),
        }
    }
}
