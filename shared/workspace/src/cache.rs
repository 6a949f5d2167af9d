//! The state of a disk that is a cache, and the budget of bytes on it.

use crate::{Result, error, model::Entry, snapshot::Stamp};
use domain::{FilePath, Sha256, WorkspaceId};
use parking_lot::Mutex;
use std::{collections::HashMap, sync::Arc};
use tokio::sync::{OwnedRwLockReadGuard, RwLock};

/// How much is brought to a disk that is a cache.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    /// How many files and folders there may be below a path that is hydrated.
    pub files: usize,
    /// How many bytes there may be below it.
    pub bytes: u64,
    /// About how many bytes of all workspaces are kept; the least recently used go first.
    pub kept: u64,
}

impl Default for Budget {
    /// For the disk of a Lambda, which has 512 MiB.
    fn default() -> Self {
        Self { files: 20_000, bytes: 160 << 20, kept: 256 << 20 }
    }
}

/// Keeps hydrated files on disk: hold it while you walk there.
#[derive(Debug, Default)]
pub struct Hydrated {
    _held: Option<OwnedRwLockReadGuard<()>>,
}

impl Hydrated {
    pub(crate) async fn holding(kept: &CachedWorkspace) -> Self {
        Self { _held: Some(Arc::clone(&kept.in_use).read_owned().await) }
    }
}

/// The target state of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KnownContent {
    pub sha256: Sha256,
    pub size: u64,
}

impl KnownContent {
    pub fn of(entry: &Entry) -> Result<Self> {
        let sha256 =
            entry.sha256.ok_or_else(|| error::port(ports::Error::Damaged("a file without a digest".into())))?;
        Ok(Self { sha256, size: entry.size })
    }
}

/// The known state of one workspace's disk. Locked during a hydration, so that hydrations run one after the other.
#[derive(Default)]
pub(crate) struct State {
    /// The digest that a file was found to have, and how the file looked then.
    pub verified: HashMap<FilePath, (Sha256, Stamp)>,
    /// The mark that a projection had when it was brought in line, and how the file looked then.
    pub projected: HashMap<FilePath, (u64, Stamp)>,
    /// How many bytes were fetched since the folder was empty.
    pub fetched: u64,
}

#[derive(Default)]
pub(crate) struct CachedWorkspace {
    pub state: tokio::sync::Mutex<State>,
    pub in_use: Arc<RwLock<()>>,
}

/// All cached workspaces, the most recently used at the end.
pub(crate) struct Cache {
    pub(crate) budget: Budget,
    pub kept: Mutex<Vec<(WorkspaceId, Arc<CachedWorkspace>)>>,
}

impl Cache {
    pub fn new(budget: Budget) -> Self {
        Self { budget, kept: Mutex::default() }
    }

    /// The state of a workspace, which becomes the most recently used one.
    pub(crate) fn of(&self, id: WorkspaceId) -> Arc<CachedWorkspace> {
        let mut all = self.kept.lock();
        let found = all.iter().position(|(known, _)| *known == id);
        let kept = found.map_or_else(Arc::default, |position| all.remove(position).1);
        all.push((id, Arc::clone(&kept)));
        kept
    }
}
