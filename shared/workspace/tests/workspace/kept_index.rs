//! The parts of the index that a process keeps in memory: whether a path is that of a projection, and the names in `/system`.

use crate::common::{World, path, person, put};
use async_trait::async_trait;
use buildscale_workspace::{Access, Budget, Subject, Workspace, Workspaces, Writer};
use domain::{Code, FileId, Principal, UserId};
use futures::future::BoxFuture;
use parking_lot::Mutex;
use ports::{IndexQuery, Item, Key, Page, Query, Table, Write};
use std::sync::Arc;
use testkit::fakes::{FakeTable, Faults, RecordingTable};
use uuid::Uuid;

const SERVERS: &str = "/system/mcp.json";
const TOOLS: &str = "/system/tools";

fn system() -> Writer {
    Writer::new(Principal::System)
}

/// The workspace of a world as after a restart, on a table that tells of its reads.
async fn recorded(world: &World) -> (Arc<RecordingTable>, Workspaces, Workspace) {
    let table = Arc::new(RecordingTable::new(world.table.clone()));
    let root = world.root.path().to_owned();
    let all = Workspaces::new(table.clone(), world.blobs.clone(), world.clock.clone(), root);
    let here = all.open(world.id, Access::platform("a test")).await.unwrap();
    (table, all, here)
}

/// Those of the two names that are in `/system`.
async fn found(here: &Workspace) -> String {
    let found = here.in_system(&[SERVERS, TOOLS]).await.unwrap();
    found.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
}

#[tokio::test]
async fn a_projection_is_looked_up_once_and_again_after_paths_have_changed() {
    let (world, _) = World::new().await;
    let (table, all, here) = recorded(&world).await;
    let (at, id) = (path("/chats/c.md"), FileId(Uuid::now_v7()));
    here.create_projection(&at, id, "head\n", &system()).await.unwrap();
    let mut file = here.projection(&at).unwrap();
    table.take_reads();
    file.append("one\n").await.unwrap();
    assert_eq!(table.take_reads().len(), 2, "its folder and itself");
    put(&here, "/projects/a", "a").await;
    table.take_reads();
    file.append("two\n").await.unwrap();
    assert_eq!(file.tail(4).await.unwrap(), (13, "two\n".into()));
    let again = table.take_reads();
    assert!(again.is_empty(), "{again:?}");

    here.mv(&path("/projects/a"), &path("/projects/b"), &person()).await.unwrap();
    table.take_reads();
    file.append("three\n").await.unwrap();
    assert_eq!(table.take_reads().len(), 2);
    // Nothing comes into the place of one that is in the trash.
    here.rm(&at, &system()).await.unwrap();
    assert_eq!(file.append("lost\n").await.unwrap_err().code, Code::NotFound);
    assert_eq!(world.disk_text(at.as_str()), None);
    here.restore(id, &system()).await.unwrap();
    file.append("four\n").await.unwrap();
    assert_eq!(world.disk_text(at.as_str()).as_deref(), Some("head\none\ntwo\nthree\nfour\n"));
    all.delete(world.id).await.unwrap();
    assert_eq!(file.append("late\n").await.unwrap_err().code, Code::NotFound);
    assert!(!world.home().exists());
}

#[tokio::test]
async fn a_projection_that_another_process_has_removed_is_not_appended_to() {
    let (world, elsewhere) = World::new().await;
    let cold = world.machine(world.blobs.clone(), |all| all.caching(Budget::default())).await;
    let at = path("/chats/c.md");
    cold.here.create_projection(&at, FileId(Uuid::now_v7()), "head\n", &system()).await.unwrap();
    let mut file = cold.here.projection(&at).unwrap();
    file.append("one\n").await.unwrap();
    elsewhere.rm(&at, &system()).await.unwrap();
    assert_eq!(file.append("two\n").await.unwrap_err().code, Code::NotFound);
}

#[tokio::test]
async fn only_buildscale_itself_keeps_projections() {
    let (world, _all) = World::new().await;
    let person = world.all.open(world.id, Access::of(&Principal::local(), None)).await.unwrap();
    assert_eq!(person.projection(&path("/chats/c.md")).unwrap_err().code, Code::Forbidden);
}

#[tokio::test]
async fn names_in_system_are_read_once_until_one_may_have_changed() {
    let (world, _) = World::new().await;
    let (table, _all, here) = recorded(&world).await;
    assert_eq!(found(&here).await, "");
    put(&here, "/projects/mcp.json", "{}").await;
    put(&here, "/systematic/tools/a.yaml", "a").await;
    table.take_reads();
    assert_eq!(found(&here).await, "");
    let again = table.take_reads();
    assert!(again.is_empty(), "changes elsewhere are none in it: {again:?}");

    put(&here, SERVERS, "{}").await;
    assert_eq!(found(&here).await, SERVERS);
    put(&here, "/system/tools/a.yaml", "a").await;
    assert_eq!(found(&here).await, format!("{SERVERS} {TOOLS}"));
    here.mv(&path(TOOLS), &path("/projects/tools"), &person()).await.unwrap();
    assert_eq!(found(&here).await, SERVERS);
    let gone = here.rm(&path(SERVERS), &person()).await.unwrap().file_id;
    assert_eq!(found(&here).await, "");
    here.mv(&path("/projects/tools"), &path(TOOLS), &person()).await.unwrap();
    assert_eq!(found(&here).await, TOOLS);
    here.restore(gone, &person()).await.unwrap();
    assert_eq!(found(&here).await, format!("{SERVERS} {TOOLS}"));
    here.rm(&path(TOOLS), &person()).await.unwrap();
    assert_eq!(found(&here).await, SERVERS);
    here.mkdir(&path(TOOLS), &person()).await.unwrap();
    table.take_reads();
    assert_eq!(found(&here).await, format!("{SERVERS} {TOOLS}"));
    assert!(!table.take_reads().is_empty());
    assert_eq!(found(&here).await, format!("{SERVERS} {TOOLS}"));
    assert!(table.take_reads().is_empty(), "names that are there are kept, too");
}

#[tokio::test]
async fn names_in_system_go_with_their_workspace() {
    let (world, _) = World::new().await;
    let (_, all, here) = recorded(&world).await;
    put(&here, SERVERS, "{}").await;
    assert_eq!(found(&here).await, SERVERS);
    all.delete(world.id).await.unwrap();
    assert_eq!(here.in_system(&[SERVERS]).await.unwrap_err().code, Code::NotFound);
    all.create(world.id, "another one", &Principal::local()).await.unwrap();
    assert_eq!(found(&here).await, "");
}

#[tokio::test]
async fn names_in_system_are_read_each_time_where_other_processes_write() {
    let (world, elsewhere) = World::new().await;
    let cold = world.machine(world.blobs.clone(), |all| all.caching(Budget::default())).await;
    assert_eq!(found(&cold.here).await, "");
    put(&elsewhere, SERVERS, "{}").await;
    assert_eq!(found(&cold.here).await, SERVERS);
    elsewhere.rm(&path(SERVERS), &person()).await.unwrap();
    assert_eq!(found(&cold.here).await, "");
}

#[tokio::test]
async fn a_party_finds_no_name_in_system_that_is_hidden_from_it() {
    let (world, all) = World::new().await;
    put(&all, SERVERS, "{}").await;
    let hides = r#"forbid (principal is Agent, action == Action::"list", resource in Path::"/system/mcp.json");"#;
    put(&all, "/system/policies/a.cedar", hides).await;
    let agent = || {
        let person = UserId(Uuid::from_u128(1));
        Access::subject(Subject::Agent { persona: "assistant".into(), person, has_home: true })
    };
    let agents = world.all.open(world.id, agent()).await.unwrap();
    assert_eq!((found(&agents).await.as_str(), found(&all).await.as_str()), ("", SERVERS));
    all.rm(&path("/system/policies/a.cedar"), &person()).await.unwrap();
    let agents = world.all.open(world.id, agent()).await.unwrap();
    assert_eq!(found(&agents).await, SERVERS);
}

/// A table on which something happens once, after a folder was read and before the reader has the answer.
struct Meanwhile {
    table: FakeTable,
    happens: Mutex<Option<BoxFuture<'static, ()>>>,
}

#[async_trait]
impl Table for Meanwhile {
    async fn get(&self, key: &Key) -> ports::Result<Option<Item>> {
        self.table.get(key).await
    }
    async fn query(&self, query: &Query) -> ports::Result<Page> {
        let page = self.table.query(query).await;
        let happens = if query.pk.contains("/dir/") { self.happens.lock().take() } else { None };
        if let Some(happens) = happens {
            happens.await;
        }
        page
    }
    async fn query_index(&self, query: &IndexQuery) -> ports::Result<Page> {
        self.table.query_index(query).await
    }
    async fn commit(&self, writes: Vec<Write>) -> ports::Result<()> {
        self.table.commit(writes).await
    }
}

#[tokio::test]
async fn names_that_changed_while_they_were_read_are_not_kept() {
    let (world, _) = World::new().await;
    let plain = FakeTable::new(world.clock.clone(), 1, Faults::none());
    let table = Arc::new(Meanwhile { table: plain, happens: Mutex::default() });
    let root = world.root.path().join("other");
    let all = Workspaces::new(table.clone(), world.blobs.clone(), world.clock.clone(), root);
    all.create(world.id, "test", &Principal::local()).await.unwrap();
    let here = all.open(world.id, Access::platform("a test")).await.unwrap();
    let writer = here.clone();
    *table.happens.lock() = Some(Box::pin(async move { put(&writer, SERVERS, "{}").await }));
    assert_eq!(found(&here).await, "", "the answer is from before the write");
    assert_eq!(found(&here).await, SERVERS);
}
