//! A workspace's sandbox: its mirror gets only missing contents, and no caller waits for a sandbox that is gone.

use crate::common::{Machine, World, path, person, put, tree};
use async_trait::async_trait;
use buildscale_workspace::{Beginning, Expect, FileContent, Workspaces};
use bytes::Bytes;
use domain::{Code, FileId, Sha256};
use ports::{Blobs, IndexQuery, Item, Key, LARGE, Page, Presigned, Query, SandboxState, Table, Transfer, Write};
use std::{
    collections::BTreeMap,
    fs,
    ops::{Deref, Range},
    path::PathBuf,
    sync::Arc,
    time::Duration,
};
use testkit::fakes::{FakeBlobs, FakeMirror, FakeSandbox, FakeSandboxes, FakeTable};
use uuid::Uuid;

/// Another worker, which has the use of a sandbox.
struct Near {
    sandboxes: Arc<FakeSandboxes>,
    sandbox: Arc<FakeSandbox>,
    machine: Machine,
}

impl Deref for Near {
    type Target = Machine;

    fn deref(&self) -> &Machine {
        &self.machine
    }
}

impl Near {
    async fn of(world: &World) -> Self {
        Self::with(world, world.blobs.clone()).await
    }

    async fn with(world: &World, blobs: Arc<dyn Blobs>) -> Self {
        let machine = world.machine(blobs, |all| all.caching(buildscale_workspace::Budget::default())).await;
        let search = |folder: PathBuf, tool: String, args: String| {
            let found = format!("{tool} {args} {}", folder.is_dir());
            Box::pin(async { found }) as futures::future::BoxFuture<'static, String>
        };
        let sandboxes = Arc::new(FakeSandboxes::default().with_mirrors(&machine.disk.path().join("mirrors"), search));
        let sandbox = sandboxes.come_up(world.id);
        let _all = machine.all.clone().with_sandboxes(sandboxes.clone());
        Self { sandboxes, sandbox, machine }
    }

    fn mirror(&self) -> &FakeMirror {
        self.sandbox.fake_mirror().unwrap()
    }

    async fn searched(&self, at: &str) -> Option<String> {
        self.here.search_on_sandbox(&path(at), "grep", "{}").await
    }
}

/// Blobs that sign requests, as S3 does.
struct Signing(Arc<FakeBlobs>);

#[async_trait]
impl Blobs for Signing {
    async fn put(&self, space: &str, content: Bytes) -> ports::Result<Sha256> {
        self.0.put(space, content).await
    }
    async fn get(&self, space: &str, digest: Sha256, range: Option<Range<u64>>) -> ports::Result<Option<Bytes>> {
        self.0.get(space, digest, range).await
    }
    async fn presigned(
        &self,
        space: &str,
        digest: Sha256,
        to: Transfer,
        _: Duration,
    ) -> ports::Result<Option<Presigned>> {
        assert_eq!(to, Transfer::Read, "a mirror writes nothing");
        Ok(Some(Presigned { method: "GET".into(), url: format!("{space}/{digest}"), headers: Vec::new() }))
    }
    async fn delete(&self, space: &str, digest: Sha256) -> ports::Result<()> {
        self.0.delete(space, digest).await
    }
    async fn delete_space(&self, space: &str) -> ports::Result<()> {
        self.0.delete_space(space).await
    }
}

/// The current files, but for homes, which no mirror has.
fn shared(world: &World) -> BTreeMap<String, Option<Vec<u8>>> {
    let mut all = tree(&world.home().join("latest"));
    all.retain(|at, _| !at.starts_with(&format!("/users/{}", Uuid::nil())));
    all
}

fn long(of: char) -> String {
    of.to_string().repeat(20_000)
}

#[tokio::test]
async fn a_mirror_is_told_everything_once_and_then_what_changed() {
    let (world, writer) = World::new().await;
    for at in ["/data/changes", "/data/goes", "/data/folder/deep/one", "/data/folder/two"] {
        put(&writer, at, at).await;
    }
    put(&writer, "/data/long", &long('a')).await;
    writer.mkdir(&path("/projects/empty"), &person()).await.unwrap();
    let near = Near::of(&world).await;
    assert_eq!(near.searched("/data").await.unwrap(), "grep {} true");
    assert_eq!(tree(near.mirror().latest()), shared(&world));
    let applied = near.mirror().applied();
    assert!(applied.iter().all(|manifest| manifest.whole) && applied.len() == 2);
    // No new changes, but recent ones are sent again: they are within the possible difference of the clocks.
    world.clock.skip(120_000);
    near.searched("/data").await.unwrap();
    assert_eq!(near.mirror().applied().len(), 3);
    world.clock.skip(120_000);
    near.searched("/data").await.unwrap();
    assert_eq!(near.mirror().applied().len(), 3, "and then there is nothing to tell");

    let provided = near.mirror().provided().len();
    put(&writer, "/data/changes", "changed").await;
    writer.rm(&path("/data/goes"), &person()).await.unwrap();
    writer.mv(&path("/data/folder"), &path("/projects/new/moved"), &person()).await.unwrap();
    put(&writer, "/data/folder", "a file now").await;
    near.searched("/data").await.unwrap();
    assert_eq!(tree(near.mirror().latest()), shared(&world));
    assert!(near.mirror().applied()[3..].iter().all(|manifest| !manifest.whole));
    assert_eq!(near.mirror().provided().len(), provided + 2, "the content of a moved file is there");
}

#[tokio::test]
async fn a_mirror_is_given_addresses_of_long_contents_that_it_lacks_and_of_this_workspace_alone() {
    let (world, writer) = World::new().await;
    for (at, content) in [("/data/long", long('a')), ("/data/copy", long('a')), ("/data/short", "short".into())] {
        put(&writer, at, &content).await;
    }
    let near = Near::with(&world, Arc::new(Signing(world.blobs.clone()))).await;
    near.searched("/data").await.unwrap();
    let digest = Sha256::of(long('a').as_bytes());
    let request = Presigned { method: "GET".into(), url: format!("{}/{digest}", world.id), headers: Vec::new() };
    let addresses: Vec<_> = near.mirror().applied().into_iter().map(|manifest| manifest.addresses).collect();
    // This mirror reads at no address, so the content comes from here in the end.
    assert_eq!(addresses, [BTreeMap::new(), BTreeMap::from([(digest, request)]), BTreeMap::new()]);
    assert_eq!(near.mirror().provided().last(), Some(&digest));
    assert_eq!(tree(near.mirror().latest()), shared(&world));
    // It has the content now, and a new file with it takes no address.
    put(&writer, "/data/another", &long('a')).await;
    near.searched("/data").await.unwrap();
    assert!(near.mirror().applied()[3..].iter().all(|manifest| manifest.addresses.is_empty()));
}

#[tokio::test]
async fn a_large_content_has_an_address_each_time_that_it_is_missing_and_comes_in_no_other_way() {
    let (world, writer) = World::new().await;
    let content = Bytes::from(vec![b'l'; usize::try_from(LARGE).unwrap() + 1]);
    let (digest, size) = (Sha256::of(&content), content.len() as u64);
    let mut upload = writer.receive(digest, size).await.unwrap();
    upload.write(content).await.unwrap();
    upload.finish().await.unwrap();
    let given = FileContent::Large { sha256: digest, size };
    writer.write_given(&path("/data/large"), given, Expect::Absent, &person()).await.unwrap();
    let near = Near::with(&world, Arc::new(Signing(world.blobs.clone()))).await;
    assert_eq!(near.searched("/data").await, None, "this mirror reads at no address");
    let told: Vec<bool> =
        near.mirror().applied().iter().map(|manifest| manifest.addresses.contains_key(&digest)).collect();
    assert!(told.len() > 2 && !told[0] && told[1..].iter().all(|has_address| *has_address), "{told:?}");
    assert!(!near.mirror().provided().contains(&digest));
}

#[tokio::test]
async fn a_mirror_is_given_no_content_that_its_manifest_does_not_name() {
    let (world, writer) = World::new().await;
    put(&writer, "/data/a", "one").await;
    // In a home, which no mirror has: a long one has an address, a short one would come from here.
    let home = format!("/users/{}", Uuid::nil());
    for content in [long('h'), "hidden".to_owned()] {
        put(&writer, &format!("{home}/{}", content.len()), &content).await;
        let near = Near::with(&world, Arc::new(Signing(world.blobs.clone()))).await;
        let hidden = Sha256::of(content.as_bytes());
        near.mirror().asks_for(hidden);
        assert_eq!(near.searched("/data").await, None, "it is left alone");
        assert!(!near.mirror().provided().contains(&hidden));
        assert!(near.mirror().applied().iter().all(|manifest| manifest.addresses.is_empty()));
    }
}

#[tokio::test]
async fn a_mark_that_is_too_old_means_everything() {
    let (world, writer) = World::new().await;
    put(&writer, "/data/a", "one").await;
    let near = Near::of(&world).await;
    near.searched("/").await.unwrap();
    put(&writer, "/data/b", "two").await;
    world.clock.skip(40 * 24 * 3600 * 1000);
    near.searched("/").await.unwrap();
    assert!(near.mirror().applied().last().unwrap().whole);
    assert_eq!(tree(near.mirror().latest()), shared(&world));
}

#[tokio::test]
async fn a_mark_that_is_ahead_of_the_clock_means_everything() {
    let (world, writer) = World::new().await;
    put(&writer, "/data/a", "one").await;
    let near = Near::of(&world).await;
    near.searched("/").await.unwrap();
    world.clock.skip(-3_600_000);
    put(&writer, "/data/b", "two").await;
    near.searched("/").await.unwrap();
    assert!(near.mirror().applied().last().unwrap().whole);
    assert_eq!(tree(near.mirror().latest()), shared(&world));
}

#[tokio::test]
async fn files_of_chats_are_told_where_they_are_searched() {
    let (world, writer) = World::new().await;
    let near = Near::of(&world).await;
    near.here.create_projection(&path("/chats/c.md"), FileId(Uuid::now_v7()), "said", &person()).await.unwrap();
    drop(writer);
    let chat = near.mirror().latest().join("chats/c.md");
    near.searched("/data").await.unwrap();
    assert!(!chat.exists());
    near.searched("/chats").await.unwrap();
    assert_eq!(fs::read_to_string(&chat).unwrap(), "said");
    near.here.projection(&path("/chats/c.md")).unwrap().append(" more").await.unwrap();
    near.searched("/").await.unwrap();
    assert_eq!(fs::read_to_string(&chat).unwrap(), "said more");
}

#[tokio::test]
async fn one_that_is_gone_is_left_alone_for_a_while() {
    let (world, writer) = World::new().await;
    put(&writer, "/data/a", &long('a')).await;
    let near = Near::of(&world).await;
    near.searched("/").await.unwrap();
    near.sandboxes.vanish(world.id);
    assert_eq!(near.searched("/").await, None);
    let asked = near.sandboxes.asked();
    // Reads and searches go on without, and do not ask.
    assert_eq!(near.searched("/").await, None);
    assert_eq!(near.here.read(&path("/data/a"), None).await.unwrap().bytes, long('a'));
    assert_eq!(near.sandboxes.asked(), asked);
    // A new one is found after a while, and told everything.
    near.sandboxes.come_up(world.id);
    world.clock.skip(31_000);
    near.searched("/").await.unwrap();
    assert_eq!(near.sandboxes.asked(), asked + 1);
    assert!(near.disk.path().exists());
}

#[tokio::test]
async fn one_that_was_asked_for_here_is_known_at_once() {
    let (world, writer) = World::new().await;
    put(&writer, "/data/a", "one").await;
    let near = Near::of(&world).await;
    near.sandboxes.vanish(world.id);
    near.sandboxes.takes(100);
    let sandboxes = near.all.sandboxes().unwrap();
    let asked = || near.sandboxes.asked();
    assert_eq!((near.searched("/").await, near.searched("/").await, asked()), (None, None, 1), "it is believed");
    // A user warms it up. While it starts, a remembered absence does not hold.
    assert_eq!(sandboxes.warm(world.id).await.unwrap().state, SandboxState::Starting);
    assert_eq!((near.searched("/").await, near.searched("/").await, asked()), (None, None, 3));
    near.sandboxes.come_up(world.id);
    assert!(near.searched("/").await.is_some());
    // It fails, and another caller waits for a new one.
    near.sandboxes.vanish(world.id);
    assert_eq!((near.searched("/").await, near.searched("/").await), (None, None));
    near.sandboxes.come_up(world.id);
    assert!(sandboxes.ready(world.id).await.unwrap().is_some());
    assert!(near.searched("/").await.is_some());
    // One that was let go is not asked for anything.
    sandboxes.release(world.id).await.unwrap();
    assert_eq!(near.searched("/").await, None);
}

#[tokio::test]
async fn contents_are_read_from_it_before_the_blobs() {
    let (world, writer) = World::new().await;
    put(&writer, "/data/a", &long('a')).await;
    let near = Near::of(&world).await;
    near.searched("/data").await.unwrap();
    // The blobs have lost everything; the disk here never had it.
    ports::Blobs::delete_space(&*world.blobs, &world.id.to_string()).await.unwrap();
    assert_eq!(near.here.read(&path("/data/a"), None).await.unwrap().bytes, long('a'));
    assert_eq!(near.all.sandboxes().map(|_| ()), Some(()));
}

#[tokio::test]
async fn a_call_that_cannot_be_repeated_begins_once() {
    let (_world, workspace) = World::new().await;
    let call = domain::CallId(Uuid::now_v7());
    let under = |number| ports::Grant { machine: Uuid::from_u128(7), number };
    let at = workspace.now();
    let grant = |number| Beginning { grant: under(number), at };
    assert_eq!(workspace.begun(call).await.unwrap(), None);
    assert_eq!(workspace.begin(call, grant(1)).await.unwrap(), grant(1));
    let later = Beginning { at: at + Duration::from_secs(1), ..grant(2) };
    assert_eq!(workspace.begin(call, later).await.unwrap(), grant(1), "the first one is noted");
    assert_eq!(workspace.begin(domain::CallId(Uuid::now_v7()), grant(2)).await.unwrap(), grant(2));
    // Only the grant under which it was not begun can remove the note; then one other grant begins it.
    workspace.not_begun(call, under(2)).await.unwrap();
    assert_eq!(workspace.begun(call).await.unwrap(), Some(grant(1)));
    workspace.not_begun(call, under(1)).await.unwrap();
    assert_eq!(workspace.begun(call).await.unwrap(), None);
    assert_eq!(workspace.begin(call, grant(3)).await.unwrap(), grant(3));
    workspace.not_begun(call, under(1)).await.unwrap();
    assert_eq!(workspace.begin(call, grant(4)).await.unwrap(), grant(3));
}

/// A table that can be read and not written.
struct ReadsOnly(Arc<FakeTable>);

#[async_trait]
impl Table for ReadsOnly {
    async fn get(&self, key: &Key) -> ports::Result<Option<Item>> {
        self.0.get(key).await
    }
    async fn query(&self, query: &Query) -> ports::Result<Page> {
        self.0.query(query).await
    }
    async fn query_index(&self, query: &IndexQuery) -> ports::Result<Page> {
        self.0.query_index(query).await
    }
    async fn commit(&self, _: Vec<Write>) -> ports::Result<()> {
        Err(ports::Error::unavailable("the table", "it is away"))
    }
}

#[tokio::test]
async fn a_store_that_does_not_answer_is_no_conflict_of_calls() {
    let (world, workspace) = World::new().await;
    let (call, grant) = (domain::CallId(Uuid::now_v7()), ports::Grant { machine: Uuid::nil(), number: 1 });
    let disk = world.root.path().join("other");
    let table = Arc::new(ReadsOnly(world.table.clone()));
    let all = Workspaces::new(table, world.blobs.clone(), world.clock.clone(), disk);
    let away = all.open(world.id, buildscale_workspace::Access::platform("a test")).await.unwrap();
    let beginning = Beginning { grant, at: workspace.now() };
    assert_eq!(away.begin(call, beginning).await.unwrap_err().code, Code::UpstreamUnavailable);
    workspace.begin(call, beginning).await.unwrap();
    assert_eq!(away.not_begun(call, grant).await.unwrap_err().code, Code::UpstreamUnavailable);
}

#[tokio::test]
async fn an_error_of_the_workspace_keeps_its_code_on_the_way_to_a_mirror() {
    let (world, writer) = World::new().await;
    put(&writer, "/data/a", "one").await;
    let near = Near::of(&world).await;
    let brought = async || near.here.bring_to(&*near.sandbox, None).await.map_err(|error| error.code);
    assert_eq!(brought().await, Ok(()));
    let is_entry = |item: &Item| item.key.sk == "a" && item.key.pk.contains("/dir/");
    let entry = world.table.items().into_iter().find(is_entry).unwrap();
    let damaged = Write::put(entry.key, "no JSON", ports::Expect::Present);
    world.table.commit(vec![damaged]).await.unwrap();
    assert_eq!(brought().await, Err(Code::Internal), "the index is damaged, the request is right");
    near.sandboxes.vanish(world.id);
    assert_eq!(brought().await, Err(Code::UpstreamUnavailable));
}
