//! Files of chats on a disk that is only a cache: the queries per file, and the queries saved.

use crate::common::{Machine, World, path, person};
use async_trait::async_trait;
use buildscale_workspace::{Budget, Projector, Workspace, Workspaces};
use domain::{FileId, FilePath, WorkspaceId};
use parking_lot::Mutex;
use std::{
    collections::{BTreeMap, HashMap},
    fs,
    ops::Deref,
    sync::Arc,
};
use testkit::fakes::FakeSandboxes;
use uuid::Uuid;

/// Chats by the paths of their files: how often something was said, and whether something may be said at any moment.
struct Says {
    all: Workspaces,
    said: Mutex<BTreeMap<FilePath, (u64, bool)>>,
    refreshed: Mutex<Vec<FilePath>>,
}

#[async_trait]
impl Projector for Says {
    async fn refresh(&self, workspace: WorkspaceId, path: &FilePath) -> buildscale_workspace::Result<()> {
        self.refreshed.lock().push(path.clone());
        let text = format!("said {}", self.said.lock()[path].0);
        let here = self.all.open(workspace, buildscale_workspace::Access::platform("a test")).await?;
        here.projection(path)?.replace(text).await
    }

    async fn marks(&self, _: WorkspaceId) -> buildscale_workspace::Result<HashMap<FilePath, u64>> {
        let said = self.said.lock();
        let at_rest = said.iter().filter(|(_, (_, is_busy))| !is_busy);
        Ok(at_rest.map(|(path, (said, _))| (path.clone(), *said)).collect())
    }
}

/// Another machine with three chats.
struct Cold {
    machine: Machine,
    says: Arc<Says>,
}

impl Deref for Cold {
    type Target = Machine;

    fn deref(&self) -> &Machine {
        &self.machine
    }
}

impl Cold {
    async fn of(world: &World, writer: &Workspace) -> Self {
        let mut said = BTreeMap::new();
        for chat in ["/chats/a.md", "/chats/b.md", "/chats/c.md"].map(path) {
            writer.create_projection(&chat, FileId(Uuid::now_v7()), "", &person()).await.unwrap();
            said.insert(chat, (1, false));
        }
        let machine = world.machine(world.blobs.clone(), |all| all.caching(Budget::default())).await;
        let (said, refreshed) = (Mutex::new(said), Mutex::default());
        let says = Arc::new(Says { all: machine.all.clone(), said, refreshed });
        machine.all.project_on_read(says.clone());
        Self { machine, says }
    }

    fn say(&self, chat: &str, is_busy: bool) {
        let mut said = self.says.said.lock();
        let (count, busy) = said.get_mut(&path(chat)).unwrap();
        (*count, *busy) = (*count + 1, is_busy);
    }

    fn refreshed(&self) -> Vec<FilePath> {
        let mut refreshed = std::mem::take(&mut *self.says.refreshed.lock());
        refreshed.sort();
        refreshed
    }

    fn text(&self, chat: &str) -> String {
        fs::read_to_string(self.here.latest().join(path(chat).relative())).unwrap()
    }
}

#[tokio::test]
async fn only_those_are_brought_up_to_date_of_which_something_was_said() {
    let (world, writer) = World::new().await;
    let cold = Cold::of(&world, &writer).await;
    cold.here.hydrate(&path("/chats")).await.unwrap();
    assert_eq!(cold.refreshed(), ["/chats/a.md", "/chats/b.md", "/chats/c.md"].map(path));
    cold.here.hydrate(&path("/")).await.unwrap();
    assert_eq!(cold.refreshed(), []);
    cold.say("/chats/b.md", false);
    cold.here.hydrate(&path("/")).await.unwrap();
    assert_eq!(cold.refreshed(), [path("/chats/b.md")]);
    assert_eq!(cold.text("/chats/b.md"), "said 2");
    // A busy chat may have grown, even with the same mark.
    cold.say("/chats/c.md", true);
    for _ in 0..2 {
        cold.here.hydrate(&path("/chats")).await.unwrap();
        assert_eq!(cold.refreshed(), [path("/chats/c.md")]);
    }
    // One alone is not asked about first.
    cold.here.hydrate(&path("/chats/a.md")).await.unwrap();
    assert_eq!(cold.refreshed(), [path("/chats/a.md")]);
}

#[tokio::test]
async fn a_file_that_is_not_what_it_was_is_brought_up_to_date() {
    let (world, writer) = World::new().await;
    let cold = Cold::of(&world, &writer).await;
    cold.here.hydrate(&path("/chats")).await.unwrap();
    cold.refreshed();
    fs::remove_file(cold.here.latest().join("chats/a.md")).unwrap();
    cold.here.projection(&path("/chats/b.md")).unwrap().append("torn").await.unwrap();
    cold.here.hydrate(&path("/chats")).await.unwrap();
    assert_eq!(cold.refreshed(), ["/chats/a.md", "/chats/b.md"].map(path));
    assert_eq!((cold.text("/chats/a.md").as_str(), cold.text("/chats/b.md").as_str()), ("said 1", "said 1"));
}

#[tokio::test]
async fn a_mirror_is_told_of_all_and_only_those_are_read_of_which_something_was_said() {
    let (world, writer) = World::new().await;
    let cold = Cold::of(&world, &writer).await;
    let search = |_, _, _| Box::pin(async { String::new() }) as futures::future::BoxFuture<'static, String>;
    let sandboxes = Arc::new(FakeSandboxes::default().with_mirrors(&cold.disk.path().join("mirrors"), search));
    let sandbox = sandboxes.come_up(world.id);
    let _all = cold.all.clone().with_sandboxes(sandboxes);
    let mirror = sandbox.fake_mirror().unwrap();
    cold.here.search_on_sandbox(&path("/chats"), "grep", "{}").await.unwrap();
    assert_eq!(cold.refreshed().len(), 3);
    cold.say("/chats/b.md", false);
    cold.here.search_on_sandbox(&path("/"), "grep", "{}").await.unwrap();
    assert_eq!(cold.refreshed(), [path("/chats/b.md")]);
    let told = |chat: &str| fs::read_to_string(mirror.latest().join(chat)).unwrap();
    assert_eq!((told("chats/a.md").as_str(), told("chats/b.md").as_str()), ("said 1", "said 2"));
}
