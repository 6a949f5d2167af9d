//! The archive compares a content at each read: damage is repaired from any good copy, reported when there is none, and never passed on.

use crate::common::{World, path, person, put, versions};
use async_trait::async_trait;
use buildscale_workspace::{Access, ChangeFilter, Damage, Expect, Workspace, Workspaces};
use bytes::Bytes;
use domain::{Code, Error, FileId, Principal, Sha256, Timestamp, WorkspaceId};
use ports::{Blobs, Expect as Rev, Key, Spilling, Table as _, Write, spill_space};
use std::{fs, ops::Range, sync::Arc};
use testkit::fakes::FakeBlobs;
use uuid::Uuid;

/// A text that is no small one: so it is a blob.
fn long(letter: char) -> String {
    letter.to_string().repeat(20_000)
}

/// The same in the table.
fn short(letter: char) -> String {
    letter.to_string().repeat(100)
}

/// How a content gets lost.
#[derive(Clone, Copy, Debug)]
enum Loss {
    Altered,
    Cut,
    Gone,
}

const LOSSES: [Loss; 3] = [Loss::Altered, Loss::Cut, Loss::Gone];

impl Loss {
    fn code(self) -> Code {
        if matches!(self, Self::Gone) { Code::ContentMissing } else { Code::ContentDamaged }
    }

    /// Damages a content in the store of the archive that has it.
    async fn befall(self, world: &World, content: &str) {
        let (space, digest) = (world.id.to_string(), Sha256::of(content.as_bytes()));
        let key = Key::new(format!("{space}/text"), digest.to_string());
        let other = match self {
            Self::Altered => Some(format!("{}!", &content[1..])),
            Self::Cut => Some(content[..10].to_owned()),
            Self::Gone => None,
        };
        if world.table.get(&key).await.unwrap().is_some() {
            let write = match &other {
                Some(text) => Write::put(key, serde_json::to_string(text).unwrap(), Rev::Any),
                None => Write::delete(key, Rev::Any),
            };
            world.table.commit(vec![write]).await.unwrap();
            return;
        }
        assert!(world.blobs.digests(&space).contains(&digest), "the archive has it");
        match other {
            Some(text) => world.blobs.damage(&space, digest, text),
            None => world.blobs.lose(&space, digest),
        }
    }
}

async fn file_at(workspace: &Workspace, at: &str) -> FileId {
    workspace.stat(&path(at)).await.unwrap().file_id
}

fn place(error: &Error) -> (&str, u64, &str) {
    let text = |name: &str| error.details[name].as_str().unwrap_or_default();
    (text("path"), error.details["v"].as_u64().unwrap_or_default(), text("sha256"))
}

#[tokio::test]
async fn a_version_that_is_lost_is_an_error_with_its_place_and_is_not_made_current_again() {
    for loss in LOSSES {
        for of in [long, short] {
            let (world, workspace) = World::new().await;
            put(&workspace, "/data/a", &of('a')).await;
            put(&workspace, "/data/a", &of('b')).await;
            let file = file_at(&workspace, "/data/a").await;
            loss.befall(&world, &of('a')).await;
            let digest = Sha256::of(of('a').as_bytes()).to_string();

            let read = workspace.version(file, 1).await.unwrap_err();
            assert_eq!((read.code, place(&read)), (loss.code(), ("/data/a", 1, &*digest)), "{loss:?}");
            assert!(read.hint.is_some());
            let restored = workspace.restore_version(file, 1, Expect::Any, &person()).await.unwrap_err();
            assert_eq!(restored.code, loss.code());
            assert_eq!(workspace.diff(file, 1, 2).await.unwrap_err().code, loss.code());
            assert_eq!(versions(&workspace, file).await, [2, 1], "nothing became current");
            assert_eq!(workspace.read(&path("/data/a"), None).await.unwrap().bytes, of('b'));

            let known = world.all.damaged(10).await.unwrap();
            assert_eq!(known.len(), 1);
            let expected = if matches!(loss, Loss::Gone) { Damage::Missing } else { Damage::Altered };
            assert_eq!((known[0].workspace_id, known[0].damage), (world.id, expected));
        }
    }
}

#[tokio::test]
async fn a_lost_content_is_repaired_when_it_is_written_again() {
    for loss in LOSSES {
        for of in [long, short] {
            // At another path, or at the path that has it as current content while the disk has lost it, too.
            for at in ["/data/other", "/data/b"] {
                let (world, workspace) = World::new().await;
                put(&workspace, "/data/b", &of('a')).await;
                let file = file_at(&workspace, "/data/b").await;
                loss.befall(&world, &of('a')).await;
                fs::write(world.on_disk("/data/b"), "lost").unwrap();
                assert_eq!(workspace.read(&path("/data/b"), None).await.unwrap_err().code, loss.code());
                assert_eq!(world.all.damaged(10).await.unwrap().len(), 1);

                put(&workspace, at, &of('a')).await;
                assert_eq!(workspace.read(&path("/data/b"), None).await.unwrap().bytes, of('a'), "{loss:?} {at}");
                assert_eq!(workspace.version(file, 1).await.unwrap().1, of('a'));
                assert_eq!(world.all.damaged(10).await.unwrap(), [], "it is known to be good again");
            }
        }
    }
}

#[tokio::test]
async fn a_content_that_was_lost_is_repaired_from_any_good_copy_on_disk() {
    for loss in LOSSES {
        for of in [long, short] {
            let (world, workspace) = World::new().await;
            // The same content in two files, of which one has another one by now.
            put(&workspace, "/data/a", &of('a')).await;
            put(&workspace, "/projects/deep/down/copy", &of('a')).await;
            put(&workspace, "/data/a", &of('b')).await;
            let file = file_at(&workspace, "/data/a").await;
            loss.befall(&world, &of('a')).await;
            assert_eq!(workspace.version(file, 1).await.unwrap().1, of('a'), "{loss:?} in latest/");

            // As a file of the trash, and as one inside of a folder there.
            for trashed in ["/projects/deep/down/copy", "/projects/deep"] {
                let removed = workspace.rm(&path(trashed), &person()).await.unwrap();
                loss.befall(&world, &of('a')).await;
                assert_eq!(workspace.version(file, 1).await.unwrap().1, of('a'), "{loss:?} in the trash");
                workspace.restore(removed.file_id, &person()).await.unwrap();
            }
            // It is the archive that has it again.
            fs::remove_file(world.on_disk("/projects/deep/down/copy")).unwrap();
            assert_eq!(workspace.version(file, 1).await.unwrap().1, of('a'));
            assert_eq!(world.all.damage_counts().repaired, 3);
            assert_eq!(world.all.damaged(10).await.unwrap(), []);
        }
    }
}

#[tokio::test]
async fn a_content_that_was_lost_is_repaired_from_another_workspace() {
    for of in [long, short] {
        let (world, workspace) = World::new().await;
        let other = WorkspaceId(Uuid::now_v7());
        world.all.create(other, "other", &Principal::local()).await.unwrap();
        put(&workspace, "/data/a", &of('a')).await;
        put(&workspace, "/data/a", &of('b')).await;
        put(
            &world.all.open(other, buildscale_workspace::Access::platform("a test")).await.unwrap(),
            "/data/same",
            &of('a'),
        )
        .await;
        let file = file_at(&workspace, "/data/a").await;
        Loss::Altered.befall(&world, &of('a')).await;
        assert_eq!(workspace.version(file, 1).await.unwrap().1, of('a'));
        world.all.delete(other).await.unwrap();
        assert_eq!(workspace.version(file, 1).await.unwrap().1, of('a'), "it is its own again");
    }
}

#[tokio::test]
async fn a_good_copy_is_searched_for_again_after_the_clock_was_set_back() {
    let (world, workspace) = World::new().await;
    put(&workspace, "/data/a", &long('a')).await;
    put(&workspace, "/data/a", &long('b')).await;
    let file = file_at(&workspace, "/data/a").await;
    Loss::Altered.befall(&world, &long('a')).await;
    assert_eq!(workspace.version(file, 1).await.unwrap_err().code, Code::ContentDamaged);
    let other = WorkspaceId(Uuid::now_v7());
    world.all.create(other, "other", &Principal::local()).await.unwrap();
    put(&world.all.open(other, Access::platform("a test")).await.unwrap(), "/data/same", &long('a')).await;
    assert_eq!(workspace.version(file, 1).await.unwrap_err().code, Code::ContentDamaged, "not within a minute");
    world.clock.skip(-3_600_000);
    assert_eq!(workspace.version(file, 1).await.unwrap().1, long('a'));
}

#[tokio::test]
async fn a_scrub_finds_damage_without_a_read_repairs_it_and_reports_the_rest() {
    let (world, workspace) = World::new().await;
    for n in 0..40 {
        put(&workspace, &format!("/data/{n}"), &format!("{n}{}", long('x'))).await;
    }
    for content in [long('a'), long('b'), short('c'), short('d'), short('e')] {
        put(&workspace, "/data/old", &content).await;
    }
    put(&workspace, "/data/gone", &long('g')).await;
    put(&workspace, "/data/gone", &long('h')).await;
    workspace.rm(&path("/data/gone"), &person()).await.unwrap();
    put(&workspace, "/data/copy", &long('b')).await;
    for content in [long('a'), long('b'), short('c'), long('g')] {
        Loss::Altered.befall(&world, &content).await;
    }
    Loss::Gone.befall(&world, &short('d')).await;

    let round = async || {
        let (mut from, mut contents) = (None, 0);
        loop {
            let step = world.all.scrub(from.as_deref()).await.unwrap();
            contents += step.contents;
            from = step.next;
            if from.is_none() {
                return contents;
            }
        }
    };
    let looked_at = round().await;
    assert!(looked_at >= 48, "{looked_at}");
    let lost = async || {
        let mut lost: Vec<_> =
            world.all.damaged(10).await.unwrap().into_iter().map(|one| (one.sha256, one.damage)).collect();
        lost.sort();
        lost
    };
    let digest = |content: String| Sha256::of(content.as_bytes());
    let mut expected = [
        (digest(long('a')), Damage::Altered),
        (digest(short('c')), Damage::Altered),
        (digest(short('d')), Damage::Missing),
        (digest(long('g')), Damage::Altered),
    ];
    expected.sort();
    assert_eq!(lost().await, expected);
    assert_eq!(world.all.damage_counts().repaired, 1, "the content of another file");
    let (space, b) = (world.id.to_string(), digest(long('b')));
    assert_eq!(world.blobs.get(&space, b, None).await.unwrap().unwrap(), long('b'));

    // One is put back by hand, one is written again; the next round knows.
    world.blobs.damage(&space, digest(long('a')), long('a'));
    put(&workspace, "/data/again", &short('d')).await;
    round().await;
    let repaired = [digest(long('a')), digest(short('d'))];
    let left: Vec<_> = expected.into_iter().filter(|(sha256, _)| !repaired.contains(sha256)).collect();
    assert_eq!(lost().await, left);
}

#[tokio::test]
async fn a_scrub_passes_over_a_version_that_the_index_cannot_give() {
    let (world, workspace) = World::new().await;
    for letter in ['a', 'b', 'c'] {
        put(&workspace, &format!("/data/{letter}"), &long(letter)).await;
        put(&workspace, &format!("/data/{letter}"), &short(letter)).await;
        Loss::Altered.befall(&world, &long(letter)).await;
    }
    let file = file_at(&workspace, "/data/b").await;
    let key = Key::new(format!("{}/versions/{file}", world.id), format!("{:010}", 1));
    assert!(world.table.get(&key).await.unwrap().is_some());
    world.table.damage(&key, "{}");
    let (mut from, mut unreadable) = (None, 0);
    loop {
        let step = world.all.scrub(from.as_deref()).await.unwrap();
        (from, unreadable) = (step.next, unreadable + step.unreadable);
        if from.is_none() {
            break;
        }
    }
    assert_eq!((unreadable, world.all.damaged(10).await.unwrap().len()), (1, 2), "those of the other two files");
}

#[tokio::test]
async fn a_text_whose_row_has_lost_its_body_is_repaired_from_a_good_copy() {
    let (world, _) = World::new().await;
    let table = Arc::new(Spilling::new(world.table.clone(), world.blobs.clone()));
    let all = Workspaces::new(table, world.blobs.clone(), world.clock.clone(), world.root.path().into());
    let workspace = all.open(world.id, Access::platform("a test")).await.unwrap();
    // JSON has six bytes for each, so the row of this short text is a long one.
    let text = "\u{1}".repeat(12_000);
    put(&workspace, "/data/a", &text).await;
    let space = spill_space(world.id);
    let bodies = world.blobs.digests(&space);
    for body in &bodies {
        world.blobs.lose(&space, *body);
    }
    let (_, content) = workspace.version(file_at(&workspace, "/data/a").await, 1).await.unwrap();
    assert_eq!((content, world.blobs.digests(&space), bodies.len()), (Bytes::from(text), bodies, 1));
}

#[tokio::test]
async fn the_repair_of_another_process_is_known_before_the_next_round() {
    for of in [long, short] {
        let (world, workspace) = World::new().await;
        put(&workspace, "/data/a", &of('a')).await;
        put(&workspace, "/data/a", &of('b')).await;
        let file = file_at(&workspace, "/data/a").await;
        Loss::Altered.befall(&world, &of('a')).await;
        assert_eq!(workspace.version(file, 1).await.unwrap_err().code, Code::ContentDamaged);
        world.all.recheck().await.unwrap();
        assert_eq!(world.all.damaged(10).await.unwrap().len(), 1, "it is damaged still");
        let other = world.machine(world.blobs.clone(), |all| all).await;
        put(&other.here, "/data/again", &of('a')).await;
        assert_eq!(world.all.damaged(10).await.unwrap().len(), 1, "the other process does not know of it");
        other.all.recheck().await.unwrap();
        assert_eq!(world.all.damaged(10).await.unwrap(), []);
    }
}

#[tokio::test]
async fn a_row_that_cannot_be_read_is_left_out_of_its_list() {
    let (world, workspace) = World::new().await;
    for letter in ['a', 'b'] {
        put(&workspace, &format!("/data/{letter}"), &long(letter)).await;
        put(&workspace, &format!("/data/{letter}"), "short").await;
    }
    let (first, second) = (file_at(&workspace, "/data/a").await, file_at(&workspace, "/data/b").await);
    for (file, letter) in [(first, 'a'), (second, 'b')] {
        Loss::Altered.befall(&world, &long(letter)).await;
        assert_eq!(workspace.version(file, 1).await.unwrap_err().code, Code::ContentDamaged);
    }
    let digest = |letter: char| Sha256::of(long(letter).as_bytes());
    world.table.damage(&Key::new("damage", format!("{}/{}", world.id, digest('a'))), "{}");
    let damaged = world.all.damaged(10).await.unwrap();
    assert_eq!(damaged.into_iter().map(|damaged| damaged.sha256).collect::<Vec<_>>(), [digest('b')]);

    world.table.damage(&Key::new(format!("{}/versions/{first}", world.id), format!("{:010}", 1)), "{}");
    assert_eq!(versions(&workspace, first).await, [2]);

    let changes = async || {
        let (mut count, mut cursor) = (0, None);
        loop {
            let page = workspace.changes_from(Timestamp::default(), cursor).await.unwrap();
            count += page.changes.len();
            cursor = page.next;
            if cursor.is_none() {
                return count;
            }
        }
    };
    let before = changes().await;
    let newest = world.table.partition(&format!("{}/changes", world.id)).pop().unwrap().key;
    world.table.damage(&newest, "{}");
    assert_eq!(changes().await, before - 1);
    let listed = workspace.changes(&ChangeFilter::default(), 1_000, None).await.unwrap();
    assert_eq!(listed.changes.len(), before - 1);

    for at in ["/data/a", "/data/b"] {
        workspace.rm(&path(at), &person()).await.unwrap();
    }
    world.table.damage(&Key::new(format!("{}/trash", world.id), first.to_string()), "{}");
    let trash = workspace.trash(10, None).await.unwrap().files;
    assert_eq!(trash.into_iter().map(|trashed| trashed.info.file_id).collect::<Vec<_>>(), [second]);
}

#[tokio::test]
async fn a_scrub_goes_on_where_it_ended_and_does_little_at_once() {
    let (world, workspace) = World::new().await;
    for n in 0..1200 {
        workspace.write(&path("/data/a"), format!("version {n}"), Expect::Any, &person()).await.unwrap();
    }
    let first = world.all.scrub(None).await.unwrap();
    assert!(first.contents <= 500, "{}", first.contents);
    // Another process goes on.
    let (mut from, mut steps, mut contents) = (first.next, 1, first.contents);
    while let Some(at) = from {
        let step = world.workspaces().scrub(Some(&at)).await.unwrap();
        (from, steps, contents) = (step.next, steps + 1, contents + step.contents);
    }
    assert!(steps >= 3 && contents >= 1200, "{steps} steps, {contents} contents");
}

#[tokio::test]
async fn a_file_that_a_full_disk_refused_is_read_from_the_archive() {
    let (world, workspace) = World::new().await;
    put(&workspace, "/data/a", &long('a')).await;
    // Nothing more can be written to the mirror, as on a full disk.
    fs::remove_dir_all(world.home().join("tmp")).unwrap();
    fs::write(world.home().join("tmp"), "").unwrap();
    for content in [long('b'), short('c')] {
        put(&workspace, "/data/a", &content).await;
        assert_eq!(workspace.read(&path("/data/a"), None).await.unwrap().bytes, content);
    }
    put(&workspace, "/data/new", &long('d')).await;
    assert_eq!(workspace.read(&path("/data/new"), None).await.unwrap().bytes, long('d'));
    assert_eq!(world.disk_text("/data/a"), Some(long('a')), "the disk is behind");
    fs::remove_file(world.home().join("tmp")).unwrap();
    fs::create_dir(world.home().join("tmp")).unwrap();
    world.all.checkpoint().await.unwrap();
    assert_eq!((world.disk_text("/data/a"), world.disk_text("/data/new")), (Some(short('c')), Some(long('d'))));
}

/// Blobs that say of each content that it is not there, and give no other answer.
struct GoesAway(Arc<FakeBlobs>);

#[async_trait]
impl Blobs for GoesAway {
    async fn put(&self, space: &str, content: Bytes) -> ports::Result<Sha256> {
        self.0.put(space, content).await
    }
    async fn get(&self, _: &str, _: Sha256, _: Option<Range<u64>>) -> ports::Result<Option<Bytes>> {
        Err(ports::Error::unavailable("the archive", "it is away"))
    }
    async fn verify(&self, _: &str, _: Sha256, _: Option<Range<u64>>) -> ports::Result<bool> {
        Ok(false)
    }
    async fn delete(&self, space: &str, digest: Sha256) -> ports::Result<()> {
        self.0.delete(space, digest).await
    }
    async fn delete_space(&self, space: &str) -> ports::Result<()> {
        self.0.delete_space(space).await
    }
}

#[tokio::test]
async fn a_scrub_passes_over_nothing_while_a_store_is_away() {
    let (world, workspace) = World::new().await;
    put(&workspace, "/data/a", &long('a')).await;
    put(&workspace, "/data/a", &long('b')).await;
    Loss::Altered.befall(&world, &long('a')).await;
    let away = world.machine(Arc::new(GoesAway(world.blobs.clone())), |all| all).await;
    let mut from = None;
    let failed = loop {
        match away.all.scrub(from.as_deref()).await {
            Ok(step) => from = Some(step.next.expect("it cannot come to its end")),
            Err(error) => break error,
        }
    };
    assert_eq!(failed.code, Code::UpstreamUnavailable);
    assert_eq!(world.all.damaged(10).await.unwrap(), [], "nothing is known to be damaged");
    // The same step again, once the store answers.
    while let Some(next) = world.all.scrub(from.as_deref()).await.unwrap().next {
        from = Some(next);
    }
    assert_eq!(world.all.damaged(10).await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_restore_that_the_disk_does_not_follow_is_made_all_the_same() {
    let (world, workspace) = World::new().await;
    put(&workspace, "/data/a", &long('a')).await;
    let file = file_at(&workspace, "/data/a").await;
    workspace.rm(&path("/data/a"), &person()).await.unwrap();
    // The disk has lost its trash, and nothing can be written to it.
    let (trash, tmp) = (world.home().join("trash"), world.home().join("tmp"));
    fs::remove_dir_all(trash).unwrap();
    fs::remove_dir_all(&tmp).unwrap();
    fs::write(&tmp, "").unwrap();
    assert_eq!(workspace.restore(file, &person()).await.unwrap().path, path("/data/a"));
    assert_eq!(world.disk_text("/data/a"), None, "the disk is behind");
    assert_eq!(workspace.read(&path("/data/a"), None).await.unwrap().bytes, long('a'));
    fs::remove_file(&tmp).unwrap();
    fs::create_dir(&tmp).unwrap();
    world.all.checkpoint().await.unwrap();
    assert_eq!(world.disk_text("/data/a"), Some(long('a')));
}
