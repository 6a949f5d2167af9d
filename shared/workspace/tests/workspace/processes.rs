//! Several processes that write to one workspace, as functions on AWS do. No lock holds between them, so each commit stands for itself.

use crate::common::{World, path, person, put};
use async_trait::async_trait;
use buildscale_workspace::{Access, Budget, Expect, Format, Role, Workspace, Workspaces};
use domain::{Code, FileId, Principal, Sha256, UserId};
use futures::{TryStreamExt as _, future::BoxFuture};
use parking_lot::Mutex;
use ports::{Blobs, IndexQuery, Item, Key, Page, Query, Table, Write};
use std::sync::Arc;
use tempfile::TempDir;
use testkit::fakes::FakeTable;
use uuid::Uuid;

/// A table on which something happens once, after an item or a partition was read and before the reader has the answer.
struct Meanwhile {
    table: Arc<FakeTable>,
    happens: Mutex<Option<(Key, BoxFuture<'static, ()>)>>,
}

impl Meanwhile {
    async fn was_read(&self, pk: &str, sk: &str) {
        let due = self.happens.lock().take_if(|(at, _)| at.pk == pk && at.sk == sk);
        if let Some((_, happens)) = due {
            happens.await;
        }
    }
}

#[async_trait]
impl Table for Meanwhile {
    async fn get(&self, key: &Key) -> ports::Result<Option<Item>> {
        let item = self.table.get(key).await;
        self.was_read(&key.pk, &key.sk).await;
        item
    }
    async fn query(&self, query: &Query) -> ports::Result<Page> {
        let page = self.table.query(query).await;
        self.was_read(&query.pk, "").await;
        page
    }
    async fn query_index(&self, query: &IndexQuery) -> ports::Result<Page> {
        self.table.query_index(query).await
    }
    async fn commit(&self, writes: Vec<Write>) -> ports::Result<()> {
        self.table.commit(writes).await
    }
}

/// A process, and another one that is faster.
struct Two {
    world: World,
    table: Arc<Meanwhile>,
    all: Workspaces,
    here: Workspace,
    elsewhere: Workspace,
    _disk: TempDir,
}

impl Two {
    async fn new() -> Self {
        let (world, elsewhere) = World::new().await;
        let table = Arc::new(Meanwhile { table: world.table.clone(), happens: Mutex::default() });
        let disk = TempDir::new().unwrap();
        let (blobs, clock, root) = (world.blobs.clone(), world.clock.clone(), disk.path().join("disk"));
        let all = Workspaces::new(table.clone(), blobs, clock, root).caching(Budget::default());
        let here = all.open(world.id, Access::platform("a test")).await.unwrap();
        Self { world, table, all, here, elsewhere, _disk: disk }
    }

    async fn id_at(&self, at: &str) -> FileId {
        self.elsewhere.stat(&path(at)).await.unwrap().file_id
    }

    /// The first read of this place lets it happen.
    fn once_read(&self, pk: String, sk: &str, happens: impl Future<Output = ()> + Send + 'static) {
        let happens: BoxFuture<'static, ()> = Box::pin(happens);
        *self.table.happens.lock() = Some((Key::new(pk, sk), happens));
    }

    /// The first look at this path lets it happen.
    async fn once_looked_at(&self, at: &str, happens: impl Future<Output = ()> + Send + 'static) {
        let at = path(at);
        let folder = self.elsewhere.stat(&at.parent().unwrap()).await.unwrap().file_id;
        self.once_read(format!("{}/dir/{folder}", self.world.id), at.name(), happens);
    }

    /// Moves the file at a path away and puts another one there.
    fn replaces(&self, at: &'static str, to: &'static str) -> impl Future<Output = ()> + Send + use<> {
        let other = self.elsewhere.clone();
        async move {
            other.mv(&path(at), &path(to), &person()).await.unwrap();
            put(&other, at, "second").await;
        }
    }
}

const AT: &str = "/projects/a.md";
const OLD: &str = "/projects/old.md";

#[tokio::test]
async fn a_file_that_came_into_the_place_of_another_is_not_taken_for_it() {
    for change in ["write", "move", "remove"] {
        let two = Two::new().await;
        put(&two.elsewhere, AT, "first").await;
        let first = two.id_at(AT).await;
        two.once_looked_at(AT, two.replaces(AT, OLD)).await;
        let (at, expect) = (path(AT), Expect::File(first));
        let done = match change {
            "write" => two.here.write(&at, "lost", expect, &person()).await,
            "move" => two.here.mv_expecting(&at, &path("/projects/b.md"), expect, &person()).await,
            _ => two.here.rm_expecting(&at, expect, &person()).await,
        };
        assert_eq!(done.unwrap_err().code, Code::StaleVersion, "{change}");
        let second = two.id_at(AT).await;
        assert_ne!(first, second);
        // Each id leads to a place, and the entry there is its own.
        for (id, at, content) in [(first, OLD, "first"), (second, AT, "second")] {
            assert_eq!(two.elsewhere.path_of(id).await.unwrap(), path(at), "{change}");
            let read = two.elsewhere.read(&path(at), None).await.unwrap();
            assert_eq!((read.info.file_id, read.info.v, read.bytes), (id, 1, content.into()), "{change}");
        }
    }
}

#[tokio::test]
async fn a_file_that_comes_back_to_its_place_keeps_what_was_written_meanwhile() {
    let two = Two::new().await;
    put(&two.elsewhere, AT, "one").await;
    let file = two.id_at(AT).await;
    let other = two.elsewhere.clone();
    two.once_looked_at(AT, async move {
        put(&other, AT, "two").await;
        other.mv(&path(AT), &path(OLD), &person()).await.unwrap();
        other.mv(&path(OLD), &path(AT), &person()).await.unwrap();
    })
    .await;
    // Its entry has the revision that it had in the first version.
    let removed = two.here.rm(&path(AT), &person()).await.unwrap();
    assert_eq!(removed.file_id, file);
    let restored = two.elsewhere.restore(file, &person()).await.unwrap();
    assert_eq!((restored.v, two.elsewhere.read(&path(AT), None).await.unwrap().bytes), (2, "two".into()));
}

#[tokio::test]
async fn two_folders_are_not_moved_into_each_other() {
    let two = Two::new().await;
    for folder in ["/projects/a", "/projects/x"] {
        two.elsewhere.mkdir(&path(folder), &person()).await.unwrap();
    }
    let other = two.elsewhere.clone();
    two.once_looked_at("/projects/a", async move {
        other.mv(&path("/projects/a"), &path("/projects/x/a"), &person()).await.unwrap();
    })
    .await;
    let moved = two.here.mv(&path("/projects/x"), &path("/projects/a/x"), &person()).await;
    assert_eq!(moved.unwrap_err().code, Code::Conflict);
    two.elsewhere.stat(&path("/projects/x/a")).await.unwrap();
}

#[tokio::test]
async fn an_id_leads_to_its_own_file_while_another_one_comes_to_its_path() {
    let two = Two::new().await;
    put(&two.elsewhere, AT, "first").await;
    let file = two.id_at(AT).await;
    two.once_read(format!("{}/node", two.world.id), &file.to_string(), two.replaces(AT, OLD));
    let found = two.here.by_id(file).await.unwrap();
    assert_eq!((found.file_id, found.path), (file, path(OLD)));
}

#[tokio::test]
async fn a_file_whose_purge_has_begun_does_not_come_back_without_its_history() {
    let two = Two::new().await;
    put(&two.elsewhere, AT, "one").await;
    put(&two.elsewhere, AT, "two").await;
    let file = two.elsewhere.rm(&path(AT), &person()).await.unwrap().file_id;
    let (other, outcome) = (two.elsewhere.clone(), Arc::new(Mutex::new(None)));
    let told = Arc::clone(&outcome);
    two.once_read(format!("{}/versions/{file}", two.world.id), "", async move {
        let restored = other.restore(file, &person()).await.map(|change| change.v);
        *told.lock() = Some(restored.map_err(|error| error.code));
    });
    two.here.purge(file, &person()).await.unwrap();
    assert_eq!(*outcome.lock(), Some(Err(Code::NotFound)));
    assert_eq!(two.elsewhere.trash(10, None).await.unwrap().files, []);
    assert_eq!(two.elsewhere.by_id(file).await.unwrap_err().code, Code::NotFound);
}

#[tokio::test]
async fn a_write_does_not_wait_for_a_purge() {
    let two = Two::new().await;
    put(&two.elsewhere, "/projects/folder/a.md", "a").await;
    let file = two.id_at("/projects/folder/a.md").await;
    let folder = two.elsewhere.rm(&path("/projects/folder"), &person()).await.unwrap().file_id;
    let (here, written) = (two.here.clone(), Arc::new(Mutex::new(None)));
    let told = Arc::clone(&written);
    two.once_read(format!("{}/versions/{file}", two.world.id), "", async move {
        // Where it waits for the purge, the purge waits for it, too.
        let write = put(&here, AT, "meanwhile");
        let done = tokio::time::timeout(std::time::Duration::from_secs(10), write).await;
        *told.lock() = Some(done.is_ok());
    });
    two.here.purge(folder, &person()).await.unwrap();
    assert_eq!(*written.lock(), Some(true));
    assert_eq!(two.elsewhere.trash(10, None).await.unwrap().files, []);
}

#[tokio::test]
async fn an_export_neither_fails_by_moves_out_of_its_sight_nor_tells_of_them() {
    let ann = format!("/users/{}", UserId(Uuid::from_u128(1 << 90)));
    for (folder, is_told) in [(ann.as_str(), false), ("/projects", true)] {
        let two = Two::new().await;
        put(&two.elsewhere, &format!("{folder}/a.md"), "a").await;
        let (other, from, to) =
            (two.elsewhere.clone(), path(&format!("{folder}/a.md")), path(&format!("{folder}/b.md")));
        let data = two.id_at("/data").await;
        two.once_read(format!("{}/dir/{data}", two.world.id), "", async move {
            other.mv(&from, &to, &person()).await.unwrap();
        });
        let bob = Principal::User { id: UserId(Uuid::from_u128(2 << 90)) };
        let bobs = two.all.open(two.world.id, Access::of(&bob, Some(Role::Viewer))).await.unwrap();
        let info = two.world.all.get(two.world.id).await.unwrap();
        let exported = bobs.export(info, Format::Tar).try_collect::<Vec<_>>().await;
        assert_eq!(exported.err().map(|error| error.code), is_told.then_some(Code::Conflict), "{folder}");
    }
}

#[tokio::test]
async fn a_write_that_comes_after_the_end_of_its_workspace_leaves_nothing() {
    let (world, workspace) = World::new().await;
    world.all.delete(world.id).await.unwrap();
    let long = "long ".repeat(10_000);
    let late = workspace.write(&path(AT), long.clone(), Expect::Any, &person()).await;
    assert_eq!(late.unwrap_err().code, Code::NotFound);
    let kept = world.blobs.get(&world.id.to_string(), Sha256::of(long.as_bytes()), None).await.unwrap();
    assert_eq!(kept, None);
}
