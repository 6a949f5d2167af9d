//! The handles: all workspaces of an installation, one workspace as one party sees it, and the state that the handles share. The operations are in
//! the modules above; each adds its own to these types.

use crate::{
    Result,
    cache::Cache,
    damages::Damages,
    error,
    keys::Keys,
    mirror::Mirror,
    model::{InForce, Record},
    party::HandleAccess,
    sandboxes::SandboxMirror,
    system_folder::SystemFolder,
};
use access::Policies;
use async_trait::async_trait;
use domain::{Error, FilePath, WorkspaceId};
use parking_lot::Mutex;
use ports::{Blobs, Bus, Clock, QueueSender, Table};
use std::{
    collections::HashMap,
    path::PathBuf,
    sync::{
        Arc, OnceLock, Weak,
        atomic::{AtomicBool, Ordering},
    },
};
use uuid::Uuid;

/// How many files of one workspace can be written at once at most.
const STRIPES: usize = 64;

/// All workspaces of one installation. Cheap to clone.
///
/// Invariant: one process owns the folder on disk. Within it, every handle of a workspace shares that workspace's locks,
/// which keep the order of flushes the order of commits. The index needs no lock: its commits are conditional.
///
/// # Errors
/// Every operation can fail with those of [`Workspace`].
#[derive(Clone)]
pub struct Workspaces(pub(crate) Arc<Shared>);

pub(crate) struct Shared {
    pub table: Arc<dyn Table>,
    pub blobs: Arc<dyn Blobs>,
    pub clock: Arc<dyn Clock>,
    root: PathBuf,
    /// Weak, so that an unused workspace is freed; one that changed since its mark was set is kept in `changed`.
    open: Mutex<HashMap<WorkspaceId, Weak<Inner>>>,
    pub changed: Mutex<HashMap<WorkspaceId, Arc<Inner>>>,
    pub projector: OnceLock<Arc<dyn Projector>>,
    /// Set when the disk is only a cache.
    pub cache: OnceLock<Cache>,
    /// Set when sandboxes are configured.
    pub sandbox_mirror: OnceLock<Arc<SandboxMirror>>,
    pub damages: Damages,
    /// Set where others keep something of workspaces, too.
    pub dependents: OnceLock<Arc<dyn Dependents>>,
    /// Those who keep something of workspaces in memory. Weak, since they hold the workspaces.
    pub deletion_observers: Mutex<Vec<Weak<dyn DeletionObserver>>>,
    /// The bus on which changes are announced.
    pub bus: OnceLock<Arc<dyn Bus>>,
    /// Set where new versions may start flows.
    pub handoffs: OnceLock<Arc<dyn HandoffObserver>>,
    /// Set where documents are converted: the way to the converter.
    pub converter: OnceLock<Arc<dyn QueueSender>>,
}

/// Removes what other crates keep of a workspace.
#[async_trait]
pub trait Dependents: Send + Sync {
    /// Removes all of it, of a workspace in which nothing works any more. Again is harmless, and goes on after an error.
    ///
    /// # Errors
    /// Those of the stores. Some of it is gone then.
    async fn remove(&self, workspace: WorkspaceId) -> Result<()>;
}

/// Learns of the workspaces that this process deletes, so that nothing of them stays in memory, and no file of theirs stays open.
pub trait DeletionObserver: Send + Sync {
    /// A workspace is gone. The same one may be told of more than once.
    fn deleted(&self, workspace: WorkspaceId);
}

/// Brings projections up to date on a machine whose `latest/` does not last, so that they are not appended to as their log grows.
#[async_trait]
pub trait Projector: Send + Sync {
    /// Brings the projection at `path` up to date. A path that is not a projection of this trait changes nothing.
    ///
    /// # Errors
    /// An error fails the read that asked for it. A [hydration](Workspace::hydrate) passes over `NOT_FOUND` and fails with any other one.
    async fn refresh(&self, workspace: WorkspaceId, path: &FilePath) -> Result<()>;

    /// The marks of all projections, at the price of a query or two. While a projection has the mark that it had before its last refresh, it is up to
    /// date. A projection whose log may grow at any moment has no mark. Marks may be slightly stale.
    ///
    /// # Errors
    /// An error fails the [hydration](Workspace::hydrate) that asked for them.
    async fn marks(&self, _workspace: WorkspaceId) -> Result<HashMap<FilePath, u64>> {
        Ok(HashMap::new())
    }
}

/// One workspace as one party sees it: every operation on its files. Cheap to clone.
///
/// An operation that has begun runs to its end, also when its caller goes away.
///
/// # Errors
/// Every operation can fail with:
/// - `UPSTREAM_UNAVAILABLE` when the table or the blobs do not answer. A write may have taken effect; under a call id it can be repeated.
/// - `STORAGE_FULL` when a store or the disk has no room.
/// - `NOT_FOUND` for a path that does not exist for its party, and `FORBIDDEN`, with the deciding `policy`, for what its party may not do there.
/// - `INTERNAL` when an item of the table is damaged, the disk fails, or a task of this process ends early.
#[derive(Clone)]
pub struct Workspace(pub(crate) Arc<Inner>, pub(crate) HandleAccess);

pub(crate) struct Inner {
    pub id: WorkspaceId,
    pub keys: Keys,
    pub table: Arc<dyn Table>,
    pub clock: Arc<dyn Clock>,
    pub archive: Archive,
    pub mirror: Mirror,
    /// Locked for reading by operations on one file, for writing by moves of paths: so a resolved path stays valid until its flush is done. The
    /// number counts how often paths may have changed ([`Workspace::lock_tree`]).
    pub tree: tokio::sync::RwLock<u64>,
    /// By a hash of the path: held from before the commit until after the flush of one file.
    pub files: [tokio::sync::Mutex<()>; STRIPES],
    /// Whether anything changed since the mark of the mirror was set; it is in [`Shared::changed`] then.
    pub dirty: AtomicBool,
    /// Whether `latest/` may lack a commit for good: its flush failed, or the table did not say that it took effect.
    pub behind: AtomicBool,
    pub shared: Weak<Shared>,
    /// The policies in force, compiled.
    pub policies: Cached,
    /// The names in `/system`.
    pub system: SystemFolder,
}

impl std::fmt::Debug for Workspace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Workspace({})", self.0.id)
    }
}

/// The contents of one workspace, in the table and in the blobs.
///
/// # Errors
/// Every operation can fail with `UPSTREAM_UNAVAILABLE` or `STORAGE_FULL` by its stores, and with `INTERNAL` when an item is damaged.
pub(crate) struct Archive {
    pub table: Arc<dyn Table>,
    pub blobs: Arc<dyn Blobs>,
    pub keys: Keys,
    pub shared: Weak<Shared>,
}

/// The compiled set, with the digests of its texts.
pub(crate) type Cached = parking_lot::Mutex<Option<(Vec<InForce>, Arc<Policies>)>>;

/// Decides which files may start flows, and hears of their new versions.
#[async_trait]
pub trait HandoffObserver: Send + Sync {
    /// Whether a new version at this path may start a flow. A yes for one that starts none costs an item and a message.
    ///
    /// # Errors
    /// An error counts as a yes, so that the write goes on and nothing is lost.
    async fn concerns(&self, workspace: &Workspace, path: &FilePath) -> Result<bool>;

    /// A version that may start a flow was committed; [`Workspace::handoff`] has it under this id. It never fails: a version that is not dealt
    /// with is found by a sweep.
    async fn committed(&self, workspace: WorkspaceId, id: Uuid);
}

impl Workspaces {
    /// Over these stores, with the folders on disk under `root`.
    pub fn new(table: Arc<dyn Table>, blobs: Arc<dyn Blobs>, clock: Arc<dyn Clock>, root: PathBuf) -> Self {
        let (open, changed) = (Mutex::default(), Mutex::default());
        let (projector, cache, sandbox_mirror) = (OnceLock::new(), OnceLock::new(), OnceLock::new());
        Self(Arc::new(Shared {
            table,
            blobs,
            clock,
            root,
            open,
            changed,
            projector,
            cache,
            sandbox_mirror,
            damages: Damages::default(),
            dependents: OnceLock::new(),
            deletion_observers: Mutex::default(),
            bus: OnceLock::new(),
            handoffs: OnceLock::new(),
            converter: OnceLock::new(),
        }))
    }

    pub(crate) fn table(&self) -> &dyn Table {
        &*self.0.table
    }

    pub(crate) fn handle(&self, id: WorkspaceId) -> Workspace {
        Shared::handle(&self.0, id)
    }
}

impl Shared {
    pub(crate) fn handle(this: &Arc<Self>, id: WorkspaceId) -> Workspace {
        let mut open = this.open.lock();
        if let Some(inner) = open.get(&id).and_then(Weak::upgrade) {
            return Workspace(inner, HandleAccess::own("the whole of a workspace"));
        }
        open.retain(|_, inner| inner.strong_count() > 0);
        let (table, keys) = (Arc::clone(&this.table), Keys(id));
        let inner = Arc::new(Inner {
            id,
            keys,
            archive: Archive {
                table: Arc::clone(&table),
                blobs: Arc::clone(&this.blobs),
                keys,
                shared: Arc::downgrade(this),
            },
            table,
            clock: Arc::clone(&this.clock),
            mirror: Mirror::new(this.root.join(id.to_string())),
            tree: tokio::sync::RwLock::default(),
            files: std::array::from_fn(|_| tokio::sync::Mutex::default()),
            dirty: AtomicBool::new(false),
            behind: AtomicBool::new(false),
            shared: Arc::downgrade(this),
            policies: Cached::default(),
            system: SystemFolder::default(),
        });
        open.insert(id, Arc::downgrade(&inner));
        Workspace(inner, HandleAccess::own("the whole of a workspace"))
    }
}

impl Workspace {
    /// Its id.
    pub fn id(&self) -> WorkspaceId {
        self.0.id
    }

    /// The folder on disk with the current files: for readers that walk it, such as `grep`. Never write there.
    pub fn latest(&self) -> PathBuf {
        self.0.mirror.latest()
    }

    /// The same workspace for this crate itself.
    pub(crate) fn unlimited(&self, reason: &'static str) -> Self {
        Self(Arc::clone(&self.0), HandleAccess::own(reason))
    }

    /// Whether no other process changes the index: what this one has read of it is good until it makes a change itself.
    pub(crate) fn writes_alone(&self) -> bool {
        self.0.shared.upgrade().is_some_and(|shared| shared.cache.get().is_none())
    }

    pub(crate) async fn record(&self) -> Result<Option<(Record, u64)>> {
        let item = self.0.table.get(&self.0.keys.workspace()).await.map_err(error::port)?;
        item.map(|item| Ok((error::parse(&item.body)?, item.rev))).transpose()
    }

    pub(crate) async fn existing(&self) -> Result<(Record, u64)> {
        self.record().await?.ok_or_else(|| Error::not_found("workspace", self.0.id))
    }

    /// Notes that `latest/` is ahead of its mark.
    pub(crate) fn touched(&self) {
        if !self.0.dirty.load(Ordering::Relaxed) {
            self.remains_changed();
        }
    }

    /// The same when its checkpoint failed, and it may still count as changed without being among those that the next one takes.
    pub(crate) fn remains_changed(&self) {
        self.0.dirty.store(true, Ordering::Relaxed);
        if let Some(shared) = self.0.shared.upgrade() {
            let mut changed = shared.changed.lock();
            changed.insert(self.0.id, Arc::clone(&self.0));
        }
    }

    /// Runs something that waits for the disk, on a thread that may.
    pub(crate) async fn disk<T: Send + 'static>(
        &self,
        what: &'static str,
        work: impl FnOnce(&Mirror) -> std::io::Result<T> + Send + 'static,
    ) -> Result<T> {
        let mirror = self.0.mirror.clone();
        crate::blocking::run(move || work(&mirror)).await.map_err(error::task)?.map_err(error::disk(what))
    }
}
