//! A disk that is only a cache agrees with the index by the time that it is walked.

use crate::common::{Machine, World, path, person, put, tree};
use async_trait::async_trait;
use buildscale_workspace::{Budget, Projector, Workspace, Workspaces};
use domain::{Code, FileId, FilePath, Principal, WorkspaceId};
use std::{
    collections::BTreeMap,
    fs,
    ops::Deref,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};
use testkit::fakes::FakeBlobs;
use uuid::Uuid;

/// Another machine, with blobs that count fetches.
struct Cold {
    machine: Machine,
    blobs: Arc<Counted>,
}

impl Deref for Cold {
    type Target = Machine;

    fn deref(&self) -> &Machine {
        &self.machine
    }
}

impl Cold {
    async fn of(world: &World, budget: Budget) -> Self {
        let blobs = Arc::new(Counted { blobs: world.blobs.clone(), gets: AtomicUsize::new(0) });
        let machine = world.machine(blobs.clone(), |all| all.caching(budget)).await;
        Self { machine, blobs }
    }

    fn latest(&self) -> PathBuf {
        self.here.latest()
    }

    async fn hydrated(&self) -> BTreeMap<String, Option<Vec<u8>>> {
        self.here.hydrate(&FilePath::root()).await.unwrap();
        tree(&self.latest())
    }

    fn fetched(&self) -> usize {
        self.blobs.gets.swap(0, Ordering::SeqCst)
    }
}

struct Counted {
    blobs: Arc<FakeBlobs>,
    gets: AtomicUsize,
}

#[async_trait]
impl ports::Blobs for Counted {
    async fn put(&self, space: &str, content: bytes::Bytes) -> ports::Result<domain::Sha256> {
        self.blobs.put(space, content).await
    }
    async fn get(
        &self,
        space: &str,
        digest: domain::Sha256,
        range: Option<std::ops::Range<u64>>,
    ) -> ports::Result<Option<bytes::Bytes>> {
        self.gets.fetch_add(1, Ordering::SeqCst);
        self.blobs.get(space, digest, range).await
    }
    async fn delete(&self, space: &str, digest: domain::Sha256) -> ports::Result<()> {
        self.blobs.delete(space, digest).await
    }
    async fn delete_space(&self, space: &str) -> ports::Result<()> {
        self.blobs.delete_space(space).await
    }
}

/// So long that it is a blob.
fn long(of: char) -> String {
    of.to_string().repeat(20_000)
}

#[tokio::test]
async fn a_cold_disk_gets_what_the_index_has_and_nothing_twice() {
    let (world, writer) = World::new().await;
    put(&writer, "/data/a", &long('a')).await;
    put(&writer, "/data/deep/er/b", "small").await;
    writer.mkdir(&path("/projects/empty"), &person()).await.unwrap();
    let cold = Cold::of(&world, Budget::default()).await;
    assert_eq!(cold.hydrated().await, tree(&world.home().join("latest")));
    assert_eq!(cold.fetched(), 1);
    // Nothing is fetched again, not even for a file that was only touched.
    assert_eq!(cold.hydrated().await, tree(&world.home().join("latest")));
    let file = cold.latest().join("data/a");
    fs::write(&file, long('a')).unwrap();
    cold.hydrated().await;
    assert_eq!(cold.fetched(), 0);
    // The same length and another content is seen.
    fs::write(&file, long('x')).unwrap();
    assert_eq!(cold.hydrated().await, tree(&world.home().join("latest")));
    assert_eq!(cold.fetched(), 1);
}

#[tokio::test]
async fn only_what_is_below_the_path_is_brought() {
    let (world, writer) = World::new().await;
    put(&writer, "/data/a", &long('a')).await;
    put(&writer, "/projects/b", &long('b')).await;
    let cold = Cold::of(&world, Budget::default()).await;
    cold.here.hydrate(&path("/data")).await.unwrap();
    assert_eq!(cold.fetched(), 1);
    assert!(cold.latest().join("data/a").is_file() && !cold.latest().join("projects").exists());
    cold.here.hydrate(&path("/projects/b")).await.unwrap();
    assert!(cold.latest().join("projects/b").is_file());
    // Nothing there is nothing done.
    cold.here.hydrate(&path("/nowhere/at/all")).await.unwrap();
    cold.here.hydrate(&path("/data/a/in/a/file")).await.unwrap();
}

#[tokio::test]
async fn writes_moves_and_removals_of_others_are_followed() {
    let (world, writer) = World::new().await;
    for at in ["/data/changes", "/data/goes", "/data/folder/one", "/data/folder/two", "/data/becomes"] {
        put(&writer, at, &format!("{at} as it was")).await;
    }
    let cold = Cold::of(&world, Budget::default()).await;
    cold.hydrated().await;
    put(&writer, "/data/changes", "/data/changes as it IS.").await;
    writer.rm(&path("/data/goes"), &person()).await.unwrap();
    writer.mv(&path("/data/folder"), &path("/projects/moved"), &person()).await.unwrap();
    writer.rm(&path("/data/becomes"), &person()).await.unwrap();
    put(&writer, "/data/becomes/a-folder", "x").await;
    put(&writer, "/data/a-file", "x").await;
    // Planted files, and a link out of the folder.
    fs::create_dir_all(cold.latest().join("data/planted/deep")).unwrap();
    fs::write(cold.latest().join("data/planted/deep/file"), "x").unwrap();
    std::os::unix::fs::symlink("/etc", cold.latest().join("data/link")).unwrap();
    fs::create_dir(cold.latest().join("data/a-file")).unwrap();
    assert_eq!(cold.hydrated().await, tree(&world.home().join("latest")));
    // And back to a file.
    writer.rm(&path("/data/becomes"), &person()).await.unwrap();
    put(&writer, "/data/becomes", "a file again").await;
    assert_eq!(cold.hydrated().await, tree(&world.home().join("latest")));
}

#[tokio::test]
async fn too_much_is_refused_before_it_is_fetched() {
    let (world, writer) = World::new().await;
    for name in ["a", "b", "c"] {
        put(&writer, &format!("/data/{name}"), &long('x')).await;
    }
    let few = Cold::of(&world, Budget { files: 3, ..Budget::default() }).await;
    let error = few.here.hydrate(&path("/data")).await.unwrap_err();
    assert_eq!(error.code, Code::PayloadTooLarge);
    assert!(error.hint.unwrap().contains("sandbox"));
    let small = Cold::of(&world, Budget { bytes: 50_000, ..Budget::default() }).await;
    assert_eq!(small.here.hydrate(&path("/data")).await.unwrap_err().code, Code::PayloadTooLarge);
    assert_eq!(small.fetched(), 0);
    small.here.hydrate(&path("/data/a")).await.unwrap();
}

#[tokio::test]
async fn the_least_recently_used_workspace_makes_room() {
    let (world, writer) = World::new().await;
    let cold = Cold::of(&world, Budget { kept: 50_000, ..Budget::default() }).await;
    put(&writer, "/data/a", &long('a')).await;
    let mut others = Vec::new();
    for of in ['b', 'c'] {
        let id = WorkspaceId(Uuid::now_v7());
        world.all.create(id, "another", &Principal::local()).await.unwrap();
        put(&world.all.open(id, buildscale_workspace::Access::platform("a test")).await.unwrap(), "/data/x", &long(of))
            .await;
        others.push(cold.all.open(id, buildscale_workspace::Access::platform("a test")).await.unwrap());
    }
    let here = |workspace: &Workspace, name: &str| workspace.latest().join(name).is_file();
    cold.hydrated().await;
    others[0].hydrate(&path("/data")).await.unwrap();
    let held = cold.here.hydrate(&path("/data")).await.unwrap();
    others[1].hydrate(&path("/data")).await.unwrap();
    assert!(here(&cold.here, "data/a") && !here(&others[0], "data/x") && here(&others[1], "data/x"));
    drop(held);
    // An evicted workspace comes back.
    others[0].hydrate(&path("/data")).await.unwrap();
    assert!(here(&others[0], "data/x"));
    assert!(cold.disk.path().exists());
}

/// Writes the last words of a chat, as a transcript does.
struct Says {
    all: Workspaces,
    said: AtomicUsize,
}

#[async_trait]
impl Projector for Says {
    async fn refresh(&self, workspace: WorkspaceId, path: &FilePath) -> buildscale_workspace::Result<()> {
        let said = self.said.fetch_add(1, Ordering::SeqCst) + 1;
        let here = self.all.open(workspace, buildscale_workspace::Access::platform("a test")).await?;
        here.projection(path)?.replace(format!("said {said}")).await
    }
}

#[tokio::test]
async fn files_of_chats_are_brought_up_to_date_where_they_are_searched() {
    let (world, writer) = World::new().await;
    let chat = path("/chats/c.md");
    writer.create_projection(&chat, FileId(Uuid::now_v7()), "", &person()).await.unwrap();
    let cold = Cold::of(&world, Budget::default()).await;
    let says = Arc::new(Says { all: cold.all.clone(), said: AtomicUsize::new(0) });
    cold.all.project_on_read(says.clone());
    cold.here.hydrate(&path("/data")).await.unwrap();
    assert_eq!(says.said.load(Ordering::SeqCst), 0);
    for said in ["said 1", "said 2"] {
        cold.here.hydrate(&path("/chats")).await.unwrap();
        assert_eq!(fs::read_to_string(cold.latest().join("chats/c.md")).unwrap(), said);
    }
}

#[tokio::test]
async fn a_hydration_never_undoes_a_concurrent_write() {
    let (world, elsewhere) = World::new().await;
    for name in 0..20 {
        put(&elsewhere, &format!("/data/{name}"), "0").await;
    }
    let cold = Cold::of(&world, Budget::default()).await;
    // This machine writes, removes and makes files again while others do so elsewhere, and while all of it is hydrated: a written file is on disk
    // after a hydration.
    let mut tasks = Vec::new();
    for task in 0..4 {
        let (here, elsewhere) = (cold.here.clone(), elsewhere.clone());
        tasks.push(tokio::spawn(async move {
            for round in 0..12 {
                let name = (task * 5 + round % 5).to_string();
                let at = path(&format!("/data/{name}"));
                let on_disk = here.latest().join("data").join(&name);
                if round % 4 == 3 {
                    here.rm(&at, &person()).await.unwrap();
                    here.hydrate(&path("/data")).await.unwrap();
                    assert!(!on_disk.exists(), "{name} in round {round}");
                } else {
                    let writer = if round % 2 == 0 { &here } else { &elsewhere };
                    put(writer, at.as_str(), &format!("{task} {round}")).await;
                    here.hydrate(&path("/data")).await.unwrap();
                    assert_eq!(fs::read_to_string(&on_disk).unwrap(), format!("{task} {round}"), "{name}");
                }
            }
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
    world.workspaces().open(world.id, buildscale_workspace::Access::platform("a test")).await.unwrap();
    let right = Cold::of(&world, Budget::default()).await;
    assert_eq!(cold.hydrated().await, right.hydrated().await);
}

#[tokio::test]
async fn the_first_read_and_write_on_a_cold_disk_work() {
    let (world, writer) = World::new().await;
    put(&writer, "/data/a", "one").await;
    let cold = Cold::of(&world, Budget::default()).await;
    assert_eq!(cold.here.read(&path("/data/a"), None).await.unwrap().bytes, "one");
    assert!(cold.latest().join("data/a").is_file(), "it is there now");
    put(&cold.here, "/data/a", "two").await;
    assert_eq!(fs::read_to_string(cold.latest().join("data/a")).unwrap(), "two");
}
