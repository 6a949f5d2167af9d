//! A workspace over SQLite and the local disk, as a hub has it.

use crate::common::{path, person, tree};
use buildscale_workspace::{Access, CheckCounts, Expect, FsckFault, Workspace, Workspaces, Writer};
use domain::{CallId, ChatId, FileId, Principal, Sha256, UserId, WorkspaceId};
use embedded::{LocalBlobs, Options, Store};
use ports::{Key, Query, SystemClock, Table, Write};
use std::{collections::BTreeMap, path::PathBuf, sync::Arc};
use tempfile::TempDir;
use uuid::Uuid;

pub struct Real {
    _store: Store,
    pub table: Arc<dyn Table>,
    pub all: Workspaces,
    pub root: TempDir,
    pub id: WorkspaceId,
}

impl Real {
    pub async fn new() -> (Self, Workspace) {
        let (root, clock) = (TempDir::new().unwrap(), Arc::new(SystemClock));
        let store = Store::open(root.path().join("store.sqlite3"), clock.clone(), Options::default()).unwrap();
        let table: Arc<dyn Table> = store.table();
        let files = root.path().join("workspaces");
        let all = Workspaces::new(table.clone(), Arc::new(LocalBlobs::new(&files)), clock, files);
        let id = WorkspaceId(Uuid::now_v7());
        all.create(id, "real", &Principal::local()).await.unwrap();
        let real = Self { _store: store, table, all, root, id };
        let workspace = real.open(id).await;
        (real, workspace)
    }

    pub async fn open(&self, id: WorkspaceId) -> Workspace {
        self.all.open(id, Access::platform("a test")).await.unwrap()
    }

    pub fn home(&self) -> PathBuf {
        self.root.path().join("workspaces").join(self.id.to_string())
    }

    pub fn latest(&self, at: &str) -> PathBuf {
        self.home().join("latest").join(at.trim_start_matches('/'))
    }

    pub fn content(&self, content: &[u8]) -> PathBuf {
        self.root.path().join("workspaces").join(embedded::place_of(&self.id.to_string(), Sha256::of(content)))
    }

    /// Everything on the disk but the store, and what the archive keeps for itself.
    pub fn disk(&self) -> BTreeMap<String, Option<Vec<u8>>> {
        let mut disk = tree(&self.root.path().join("workspaces"));
        disk.retain(|name, _| !name.starts_with("/."));
        disk
    }

    pub async fn check(&self, repair: bool) -> (Vec<FsckFault>, CheckCounts) {
        let mut faults = Vec::new();
        let checked = self.all.fsck(repair, &mut |fault: &FsckFault| faults.push(fault.clone())).await.unwrap();
        (faults, checked)
    }

    /// The faults as `code path v repaired`.
    pub async fn told(&self, repair: bool) -> Vec<String> {
        let told = |fault: &FsckFault| {
            let v = fault.v.map(|v| format!(" v{v}")).unwrap_or_default();
            let repaired = if fault.repaired { " repaired" } else { "" };
            format!("{} {}{v}{repaired}", fault.code, fault.path.clone().unwrap_or_default())
        };
        self.check(repair).await.0.iter().map(told).collect()
    }

    /// The names of a partition's items.
    pub async fn names(&self, partition: &str) -> Vec<String> {
        let page = self.table.query(&Query::all(partition, 1000)).await.unwrap();
        page.items.into_iter().map(|item| item.key.sk).collect()
    }

    pub async fn forget(&self, partition: String, name: impl Into<String>) {
        let gone = Write::delete(Key::new(partition, name), ports::Expect::Present);
        self.table.commit(vec![gone]).await.unwrap();
    }
}

pub fn agent(role: &str) -> Writer {
    let (chat, user) = (ChatId(Uuid::from_u128(7)), UserId(Uuid::nil()));
    Writer::in_call(Principal::Agent { role: role.into(), chat, user }, CallId(Uuid::now_v7()))
}

/// Longer than a text in the table.
pub fn long(word: &str) -> String {
    word.repeat(30_000 / word.len())
}

/// A file with three versions by two authors, a folder with nothing in it, a file of bytes, and one that was removed.
pub async fn fill(workspace: &Workspace) -> FileId {
    let at = path("/projects/demo/notes.md");
    let made = workspace.write(&at, "one", Expect::Absent, &person()).await.unwrap();
    workspace.write(&at, long("two "), Expect::Version(1), &agent("coder")).await.unwrap();
    workspace.write(&at, "three", Expect::Version(2), &person()).await.unwrap();
    workspace.write(&path("/data/raw"), vec![0, 159, 146, 150], Expect::Absent, &person()).await.unwrap();
    workspace.write(&path("/projects/demo/current.md"), long("now "), Expect::Absent, &person()).await.unwrap();
    workspace.mkdir(&path("/projects/empty"), &person()).await.unwrap();
    workspace.write(&path("/projects/gone.md"), long("gone "), Expect::Absent, &person()).await.unwrap();
    workspace.rm(&path("/projects/gone.md"), &person()).await.unwrap();
    made.file_id
}
