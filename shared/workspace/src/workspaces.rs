//! All workspaces, and the handle of one.

use crate::{
    Access, Result, WorkspaceInfo, WorkspacePage,
    archive::Archive,
    commit::whole,
    damage::Damages,
    error,
    handoff::HandoffObserver,
    hydrate::{Budget, Cache},
    keys::{Keys, WORKSPACES},
    mirror::Mirror,
    model::Record,
    policies::Cached,
    sandbox_mirror::SandboxMirror,
    sight::Sight,
};
use async_trait::async_trait;
use domain::{Code, Error, FilePath, Principal, WorkspaceId};
use ports::{Blobs, Bus, Clock, Expect, Query, QueueSender, Table, Write};
use std::{
    collections::HashMap,
    path::PathBuf,
    sync::{
        Arc, Mutex, OnceLock, PoisonError, Weak,
        atomic::{AtomicBool, Ordering},
    },
};

/// The longest name of a workspace, in characters.
const MAX_NAME: usize = 200;
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
    /// The bus on which changes are announced.
    pub bus: OnceLock<Arc<dyn Bus>>,
    /// Set where new versions may start flows.
    pub handoffs: OnceLock<Arc<dyn HandoffObserver>>,
    /// Set where documents are converted: the way to the converter.
    pub converter: OnceLock<Arc<dyn QueueSender>>,
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
pub struct Workspace(pub(crate) Arc<Inner>, pub(crate) Sight);

pub(crate) struct Inner {
    pub id: WorkspaceId,
    pub keys: Keys,
    pub table: Arc<dyn Table>,
    pub clock: Arc<dyn Clock>,
    pub archive: Archive,
    pub mirror: Mirror,
    /// Locked for reading by operations on one file, for writing by moves of paths: so a resolved path stays valid until its flush is done.
    pub tree: tokio::sync::RwLock<()>,
    /// By a hash of the path: held from before the commit until after the flush of one file.
    pub files: [tokio::sync::Mutex<()>; STRIPES],
    /// Whether anything changed since the mark of the mirror was set; it is in [`Shared::changed`] then.
    pub dirty: AtomicBool,
    /// Whether `latest/` may lack a commit for good: its flush failed, or the table did not say that it took effect.
    pub behind: AtomicBool,
    pub shared: Weak<Shared>,
    /// The policies in force, compiled.
    pub policies: Cached,
}

impl std::fmt::Debug for Workspace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Workspace({})", self.0.id)
    }
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
            bus: OnceLock::new(),
            handoffs: OnceLock::new(),
            converter: OnceLock::new(),
        }))
    }

    /// Says that the folder does not last, or that others write to the same workspaces elsewhere: so it is a cache, which
    /// [`Workspace::hydrate`] fills within these bounds.
    #[must_use]
    pub fn caching(self, budget: Budget) -> Self {
        drop(self.0.cache.set(Cache::new(budget)));
        self
    }

    /// From now on projections are brought up to date when they are read, until the process ends; the first projector counts.
    pub fn project_on_read(&self, projector: Arc<dyn Projector>) {
        drop(self.0.projector.set(projector));
    }

    /// Makes a workspace with its folders, and with skills to begin with. The same id by the same person again is
    /// the same workspace.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for a name that is empty, has over 200 characters, or has control characters; `CONFLICT` when the id is another
    /// person's, or is being made elsewhere; else those of [`Workspaces`].
    pub async fn create(&self, id: WorkspaceId, name: &str, by: &Principal) -> Result<WorkspaceInfo> {
        let name = valid_name(name)?;
        let stamp = self.0.clock.stamp();
        let info = WorkspaceInfo { workspace_id: id, name, owner: by.user(), created_at: stamp.at };
        let workspace = self.handle(id);
        let by = by.clone();
        whole(async move {
            let _tree = workspace.0.tree.write().await;
            if let Some(found) = workspace.record().await? {
                let same = found.0.owner == info.owner;
                return if same { Ok(found.0.info()) } else { Err(Error::new(Code::Conflict, "this id is taken")) };
            }
            let mut writes = vec![Write::put(workspace.0.keys.workspace(), error::json(&info)?, Expect::Absent)];
            writes.extend(workspace.taxonomy(&by, stamp)?);
            workspace.0.table.commit(writes).await.map_err(error::port)?;
            workspace.rebuild().await?;
            Ok(info)
        })
        .await
    }

    /// The metadata of a workspace.
    ///
    /// # Errors
    /// `NOT_FOUND` when there is none; else those of [`Workspaces`].
    pub async fn get(&self, id: WorkspaceId) -> Result<WorkspaceInfo> {
        Ok(self.handle(id).existing().await?.0.info())
    }

    /// The workspaces, oldest id first; `limit` is cut to 1 to 200.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for a broken cursor; else those of [`Workspaces`].
    pub async fn list(&self, limit: usize, cursor: Option<String>) -> Result<WorkspacePage> {
        let query = Query::all(WORKSPACES, limit.clamp(1, 200)).after(cursor);
        let page = self.0.table.query(&query).await.map_err(error::port)?;
        let info = |item: &ports::Item| Ok(error::parse::<Record>(&item.body)?.info());
        let workspaces = page.items.iter().map(info).collect::<Result<_>>()?;
        Ok(WorkspacePage { workspaces, next_cursor: page.next })
    }

    /// Gives it another name.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for a name as of [`Workspaces::create`]; `NOT_FOUND` when there is none; `CONFLICT` when another rename was faster;
    /// else those of [`Workspaces`].
    pub async fn rename(&self, id: WorkspaceId, name: &str) -> Result<WorkspaceInfo> {
        let name = valid_name(name)?;
        let (mut record, rev) = self.handle(id).existing().await?;
        record.name = name;
        let write = Write::put(Keys(id).workspace(), error::json(&record)?, Expect::Rev(rev));
        self.0.table.commit(vec![write]).await.map_err(error::port)?;
        Ok(record.info())
    }

    /// Removes a workspace with all its files, versions and contents, for good. From the first commit on it does not exist. A note of the deletion stays
    /// until all is gone: after a crash or a failure, a second delete removes the rest, or [`Workspaces::complete_deletions`].
    ///
    /// # Errors
    /// `NOT_FOUND` when there is none, and when nothing of it is left; else those of [`Workspaces`], and files and contents may be left then.
    pub async fn delete(&self, id: WorkspaceId) -> Result<()> {
        let workspace = self.handle(id);
        if workspace.0.table.get(&workspace.0.keys.deletion()).await.map_err(error::port)?.is_none() {
            workspace.existing().await?;
        }
        whole(async move {
            let _tree = workspace.0.tree.write().await;
            let (table, keys) = (&workspace.0.table, workspace.0.keys);
            let record = Write::delete(keys.workspace(), Expect::Any);
            let due = crate::retention::deletion_due(id, workspace.0.clock.now());
            let deletion = Write::put(keys.deletion(), "{}", Expect::Any).indexed(due);
            table.commit(vec![record, deletion]).await.map_err(error::port)?;
            workspace.remove_rest().await
        })
        .await
    }

    /// The handle of a workspace that exists, for a party. It decides by the policies that are in force now, for as long as it is held.
    ///
    /// # Errors
    /// `NOT_FOUND` when there is none; else those of [`Workspaces`].
    pub async fn open(&self, id: WorkspaceId, access: Access) -> Result<Workspace> {
        let workspace = self.handle(id);
        let (record, _) = workspace.existing().await?;
        if let Some(reason) = access.reason() {
            tracing::trace!(workspace = %id, reason, "opened past the policies");
        }
        let policies = workspace.policies(&record.policies).await?;
        Ok(Workspace(workspace.0, Sight::new(access, policies)))
    }

    /// Brings every workspace's `latest/` in line with its index. To be called once at start, before requests are served. On a full disk, the repair
    /// waits until there is room, and reads use the archive until then.
    ///
    /// # Errors
    /// Those of [`Workspace::repair`] but `STORAGE_FULL`. The first one ends it, and the workspaces after that are as they were.
    pub async fn repair_all(&self) -> Result<crate::Repaired> {
        let mut done = crate::Repaired::default();
        for id in self.ids().await? {
            let workspace = self.handle(id);
            match workspace.repair().await {
                Ok(repaired) => done += repaired,
                Err(error) if error.code == Code::StorageFull => {
                    tracing::error!(workspace = %id, "the disk is full: latest/ stays behind its index until there is room");
                    workspace.0.behind.store(true, Ordering::Relaxed);
                    workspace.touched();
                }
                Err(error) => return Err(error),
            }
        }
        Ok(done)
    }

    /// Makes the mirrors that changed durable and advances their marks, so that the next start has less to look at. To
    /// be called now and then and at the end; it waits for the disk, so never on the way of a request.
    ///
    /// # Errors
    /// Those of [`Workspaces`]. The first one ends it, and the marks of the other workspaces stay where they are.
    pub async fn checkpoint(&self) -> Result<()> {
        let changed = std::mem::take(&mut *self.0.changed.lock().unwrap_or_else(PoisonError::into_inner));
        let mut first = Ok(());
        for workspace in changed.into_values() {
            let workspace = Workspace(workspace, Sight::own("a checkpoint"));
            if let Err(error) = workspace.checkpoint().await {
                workspace.remains_changed();
                first = first.and(Err(error));
            }
        }
        first
    }

    pub(crate) fn table(&self) -> &dyn Table {
        &*self.0.table
    }

    async fn ids(&self) -> Result<Vec<WorkspaceId>> {
        let (mut ids, mut cursor) = (Vec::new(), None);
        loop {
            let page = self.list(200, cursor).await?;
            ids.extend(page.workspaces.iter().map(|workspace| workspace.workspace_id));
            cursor = page.next_cursor;
            if cursor.is_none() {
                return Ok(ids);
            }
        }
    }

    fn handle(&self, id: WorkspaceId) -> Workspace {
        Shared::handle(&self.0, id)
    }
}

impl Shared {
    pub(crate) fn handle(this: &Arc<Self>, id: WorkspaceId) -> Workspace {
        let mut open = this.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(inner) = open.get(&id).and_then(Weak::upgrade) {
            return Workspace(inner, Sight::own("the whole of a workspace"));
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
        });
        open.insert(id, Arc::downgrade(&inner));
        Workspace(inner, Sight::own("the whole of a workspace"))
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
        Self(Arc::clone(&self.0), Sight::own(reason))
    }

    /// Removes all that stands below the id of a workspace that has no item, or none any more, and then the note of that. Under the tree's lock.
    pub(crate) async fn remove_rest(&self) -> Result<()> {
        let Inner { id, keys, table, archive, .. } = &*self.0;
        self.clear_index().await?;
        archive.blobs.delete_space(&id.to_string()).await.map_err(error::port)?;
        self.disk("to delete a workspace", |mirror| mirror.delete()).await?;
        table.commit(vec![Write::delete(keys.deletion(), Expect::Any)]).await.map_err(error::port)
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
    fn remains_changed(&self) {
        self.0.dirty.store(true, Ordering::Relaxed);
        if let Some(shared) = self.0.shared.upgrade() {
            let mut changed = shared.changed.lock().unwrap_or_else(PoisonError::into_inner);
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

pub(crate) fn valid_name(name: &str) -> Result<String> {
    let name = name.trim();
    let fits = (1..=MAX_NAME).contains(&name.chars().count()) && !name.chars().any(char::is_control);
    if fits {
        Ok(name.into())
    } else {
        Err(Error::invalid("name", format!("a workspace's name has 1 to {MAX_NAME} characters, none of them control")))
    }
}
