//! A workspace over stores in memory and a real disk, and a way to start it again.

use buildscale_workspace::{Expect, Workspace, Workspaces, Writer};
use domain::{FileId, FilePath, Principal, Timestamp, WorkspaceId};
use ports::{Blobs, Clock};
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
};
use tempfile::TempDir;
use testkit::fakes::{FakeBlobs, FakeTable, Faults};
use uuid::Uuid;

/// A clock that goes on by a millisecond with every look, and a minute when told to.
pub struct Ticks(AtomicI64);

impl Ticks {
    pub fn skip(&self, ms: i64) {
        self.0.fetch_add(ms, Ordering::SeqCst);
    }
}

impl Clock for Ticks {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.0.fetch_add(1, Ordering::SeqCst))
    }
    fn id(&self) -> Uuid {
        let ms = self.0.fetch_add(1, Ordering::SeqCst).cast_unsigned();
        let random = Uuid::now_v7().as_u128() & ((1 << 62) - 1);
        Uuid::from_u128((u128::from(ms) << 80) | (0x7 << 76) | (0b10 << 62) | random)
    }
}

/// A workspace over stores that survive it.
pub struct World {
    pub table: Arc<FakeTable>,
    pub blobs: Arc<FakeBlobs>,
    pub clock: Arc<Ticks>,
    /// As they are before a restart.
    pub all: Workspaces,
    pub root: TempDir,
    pub id: WorkspaceId,
}

impl World {
    pub async fn new() -> (Self, Workspace) {
        // Calls that interleave, and pages that end early, are within the contract.
        let faults = Faults { yields: 0.5, short_pages: 0.5, ..Faults::none() };
        let clock = Arc::new(Ticks(AtomicI64::new(1_700_000_000_000)));
        let table = Arc::new(FakeTable::new(clock.clone(), 1, faults.clone()));
        let blobs = Arc::new(FakeBlobs::new(1, faults));
        let root = TempDir::new().unwrap();
        let all = Workspaces::new(table.clone(), blobs.clone(), clock.clone(), root.path().into());
        let id = WorkspaceId(Uuid::now_v7());
        all.create(id, "test", &Principal::local()).await.unwrap();
        let workspace = all.open(id, buildscale_workspace::Access::platform("a test")).await.unwrap();
        (Self { table, blobs, clock, all, root, id }, workspace)
    }

    /// As after a restart: the same stores, new handles.
    pub fn workspaces(&self) -> Workspaces {
        let (table, blobs, clock) = (self.table.clone(), self.blobs.clone(), self.clock.clone());
        Workspaces::new(table, blobs, clock, self.root.path().into())
    }

    /// Another machine: the same stores, with the blobs seen through these, and a disk of its own.
    pub async fn machine(&self, blobs: Arc<dyn Blobs>, set_up: impl FnOnce(Workspaces) -> Workspaces) -> Machine {
        let disk = TempDir::new().unwrap();
        let root = disk.path().join("disk");
        let all = set_up(Workspaces::new(self.table.clone(), blobs, self.clock.clone(), root));
        let here = all.open(self.id, buildscale_workspace::Access::platform("a test")).await.unwrap();
        Machine { all, here, disk }
    }

    pub fn home(&self) -> PathBuf {
        self.root.path().join(self.id.to_string())
    }

    pub fn on_disk(&self, path: &str) -> PathBuf {
        self.home().join("latest").join(path.trim_start_matches('/'))
    }

    pub fn disk_text(&self, path: &str) -> Option<String> {
        std::fs::read_to_string(self.on_disk(path)).ok()
    }
}

/// A machine beside the one that the world began on.
pub struct Machine {
    pub all: Workspaces,
    pub here: Workspace,
    /// The temporary folder on `disk` that the workspaces use.
    pub disk: TempDir,
}

pub fn path(text: &str) -> FilePath {
    FilePath::parse(text).unwrap()
}

pub fn person() -> Writer {
    Writer::new(Principal::local())
}

/// Writes a file without a precondition.
pub async fn put(workspace: &Workspace, at: &str, content: &str) {
    workspace.write(&path(at), content.to_owned(), Expect::Any, &person()).await.unwrap();
}

/// The numbers of all versions of a file, newest first.
pub async fn versions(workspace: &Workspace, file_id: FileId) -> Vec<u64> {
    let (mut all, mut cursor) = (Vec::new(), None);
    loop {
        let page = workspace.versions(file_id, 10, cursor).await.unwrap();
        all.extend(page.versions.into_iter().map(|version| version.v));
        cursor = page.next_cursor;
        if cursor.is_none() {
            return all;
        }
    }
}

/// Every file and folder below, by its path from there, folders with none.
pub fn tree(root: &Path) -> BTreeMap<String, Option<Vec<u8>>> {
    fn walk(root: &Path, at: &Path, found: &mut BTreeMap<String, Option<Vec<u8>>>) {
        for entry in std::fs::read_dir(at).unwrap() {
            let path = entry.unwrap().path();
            let name = format!("/{}", path.strip_prefix(root).unwrap().to_str().unwrap());
            if path.is_dir() {
                found.insert(name, None);
                walk(root, &path, found);
            } else {
                found.insert(name, Some(std::fs::read(&path).unwrap()));
            }
        }
    }
    let mut found = BTreeMap::new();
    walk(root, root, &mut found);
    found
}
