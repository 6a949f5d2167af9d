//! After a crash at any point, `latest/` agrees with the index.

use crate::common::{World, path, person, put, tree};
use buildscale_workspace::{Expect, Repaired, Workspaces};
use domain::{FileId, Principal, WorkspaceId};
use ports::Key;
use std::fs;
use testkit::crash::Crash;
use uuid::Uuid;

/// Makes `latest/` as `crash` leaves it, starts again, and compares with how it was.
async fn repaired_after(crash: impl FnOnce(&World)) -> Repaired {
    let (world, workspace) = World::new().await;
    world.all.checkpoint().await.unwrap();
    world.clock.skip(600_000);
    let chat = path("/chats/c.md");
    workspace.create_projection(&chat, FileId(Uuid::now_v7()), "said", &person()).await.unwrap();
    for (at, content) in [("/projects/a/b/1", "one"), ("/projects/a/2", "two"), ("/data/3", "three"), ("/data/4", "x")]
    {
        workspace.write(&path(at), content, Expect::Any, &person()).await.unwrap();
    }
    workspace.write(&path("/data/3"), "three again", Expect::Any, &person()).await.unwrap();
    workspace.mv(&path("/projects/a"), &path("/projects/moved/a"), &person()).await.unwrap();
    workspace.mv(&chat, &path("/chats/d.md"), &Principal::System.into()).await.unwrap();
    workspace.rm(&path("/data/4"), &person()).await.unwrap();
    workspace.mkdir(&path("/data/empty"), &person()).await.unwrap();
    drop(workspace);
    let right = tree(&world.home().join("latest"));
    crash(&world);
    let done = world.workspaces().repair_all().await.unwrap();
    assert_eq!(tree(&world.home().join("latest")), right);
    assert_eq!(fs::read_dir(world.home().join("tmp")).unwrap().count(), 0);
    let again = world.workspaces().repair_all().await.unwrap();
    assert_eq!(again.fixed, 0);
    done
}

#[tokio::test]
async fn nothing_is_done_where_nothing_is_wrong() {
    let done = repaired_after(|_| ()).await;
    assert_eq!((done.fixed, done.rebuilt), (0, false));
}

#[tokio::test]
async fn a_flush_that_was_left_out_is_made_up_for() {
    let done = repaired_after(|world| fs::write(world.on_disk("/data/3"), "three").unwrap()).await;
    assert_eq!((done.fixed, done.rebuilt), (1, false));
    repaired_after(|world| fs::remove_file(world.on_disk("/data/3")).unwrap()).await;
    repaired_after(|world| fs::remove_dir(world.on_disk("/data/empty")).unwrap()).await;
}

#[tokio::test]
async fn torn_files_and_strays_are_put_right() {
    repaired_after(|world| fs::write(world.on_disk("/data/3"), "").unwrap()).await;
    repaired_after(|world| {
        fs::write(world.home().join("tmp/half"), "half").unwrap();
        fs::write(world.on_disk("/data/4"), "removed, but still there").unwrap();
    })
    .await;
    repaired_after(|world| {
        fs::remove_file(world.on_disk("/data/3")).unwrap();
        fs::create_dir(world.on_disk("/data/3")).unwrap();
        fs::write(world.on_disk("/data/3/in the way"), "").unwrap();
    })
    .await;
}

#[tokio::test]
async fn a_move_that_was_left_out_is_made_up_for() {
    repaired_after(|world| fs::rename(world.on_disk("/projects/moved/a"), world.on_disk("/projects/a")).unwrap()).await;
    // Half of it came through, as after a power cut.
    repaired_after(|world| {
        fs::create_dir_all(world.on_disk("/projects/a/b")).unwrap();
        fs::rename(world.on_disk("/projects/moved/a/b/1"), world.on_disk("/projects/a/b/1")).unwrap();
    })
    .await;
    // A projection has no archive: it has to be moved itself.
    repaired_after(|world| fs::rename(world.on_disk("/chats/d.md"), world.on_disk("/chats/c.md")).unwrap()).await;
}

#[tokio::test]
async fn all_is_made_again_when_latest_or_the_mark_is_gone() {
    let keep = |world: &World| {
        let chat = fs::read(world.on_disk("/chats/d.md")).unwrap();
        fs::remove_dir_all(world.home().join("latest")).unwrap();
        // The content of a projection is restored by its owner.
        fs::create_dir_all(world.home().join("latest/chats")).unwrap();
        fs::write(world.on_disk("/chats/d.md"), chat).unwrap();
        fs::remove_file(world.home().join("mark")).unwrap();
    };
    assert!(repaired_after(keep).await.rebuilt);
    assert!(repaired_after(|world| fs::write(world.home().join("mark"), "garbage").unwrap()).await.rebuilt);
    let stray = |world: &World| {
        fs::remove_file(world.home().join("mark")).unwrap();
        fs::write(world.on_disk("/projects/stray"), "").unwrap();
    };
    assert!(repaired_after(stray).await.fixed > 0);

    let (world, workspace) = World::new().await;
    workspace.write(&path("/data/1"), "one", Expect::Any, &person()).await.unwrap();
    fs::remove_dir_all(world.home().join("latest")).unwrap();
    assert!(world.workspaces().repair_all().await.unwrap().rebuilt);
    assert_eq!(world.disk_text("/data/1").as_deref(), Some("one"));
}

/// Each of them would be a round trip to a table elsewhere, for each name on the way to each file.
#[tokio::test]
async fn a_comparison_of_everything_lists_folders_and_reads_no_entry_by_itself() {
    let (world, workspace) = World::new().await;
    for n in 0..20 {
        put(&workspace, &format!("/projects/a/b/{n}"), "x").await;
    }
    drop(fs::remove_file(world.home().join("mark")));
    let calls = Crash::never();
    let (table, root) = (calls.table(world.table.clone()), world.root.path().to_owned());
    let all = Workspaces::new(table, world.blobs.clone(), world.clock.clone(), root);
    let done = all.repair_all().await.unwrap();
    assert!(done.rebuilt && done.fixed == 0 && done.checked > 20, "{done:?}");
    let reads = calls.names().into_iter().filter(|name| *name == "table.get").count();
    assert!(reads < 5, "{reads} reads of one item");
}

#[tokio::test]
async fn after_a_checkpoint_only_what_is_newer_is_looked_at() {
    let (world, workspace) = World::new().await;
    for n in 0..20 {
        workspace.write(&path(&format!("/data/{n}")), "x", Expect::Any, &person()).await.unwrap();
    }
    world.clock.skip(600_000);
    world.all.checkpoint().await.unwrap();
    world.clock.skip(600_000);
    assert_eq!(world.workspaces().repair_all().await.unwrap(), Repaired::default());
    workspace.write(&path("/data/new"), "x", Expect::Any, &person()).await.unwrap();
    // The file and the folders above it, which the write may have made.
    assert_eq!(world.workspaces().repair_all().await.unwrap().checked, 3);
    // A mark that is older than changes are kept cannot be trusted.
    world.clock.skip(31 * 24 * 3_600_000);
    assert!(world.workspaces().repair_all().await.unwrap().rebuilt);
}

#[tokio::test]
async fn before_the_first_checkpoint_everything_is_looked_at() {
    let (world, workspace) = World::new().await;
    workspace.write(&path("/data/1"), "one", Expect::Any, &person()).await.unwrap();
    let done = world.workspaces().repair_all().await.unwrap();
    assert_eq!((done.fixed, done.rebuilt), (0, true));
    world.all.checkpoint().await.unwrap();
    assert!(!world.workspaces().repair_all().await.unwrap().rebuilt);
}

#[tokio::test]
async fn a_projection_that_lost_its_content_in_a_crash_gets_it_when_it_is_made_again() {
    let (world, workspace) = World::new().await;
    let (chat, id) = (path("/chats/c.md"), FileId(Uuid::now_v7()));
    workspace.create_projection(&chat, id, "head", &person()).await.unwrap();
    fs::remove_file(world.on_disk("/chats/c.md")).unwrap();
    workspace.create_projection(&chat, id, "head", &person()).await.unwrap();
    assert_eq!(world.disk_text("/chats/c.md").as_deref(), Some("head"));
}

#[tokio::test]
async fn a_checkpoint_that_fails_is_made_up_for_and_delays_no_other_workspace() {
    let (world, workspace) = World::new().await;
    let other = WorkspaceId(Uuid::now_v7());
    world.all.create(other, "other", &Principal::local()).await.unwrap();
    world.all.checkpoint().await.unwrap();
    world.clock.skip(600_000);
    let mark = || fs::read_to_string(world.root.path().join(other.to_string()).join("mark")).unwrap();
    let before = mark();
    // A disk that is away: the commits hold, and nothing of them comes to `latest/`.
    let aside = world.root.path().join("aside");
    fs::rename(world.home(), &aside).unwrap();
    fs::write(world.home(), "").unwrap();
    workspace.write(&path("/data/1"), "one", Expect::Any, &person()).await.unwrap();
    world
        .all
        .open(other, buildscale_workspace::Access::platform("a test"))
        .await
        .unwrap()
        .write(&path("/data/2"), "two", Expect::Any, &person())
        .await
        .unwrap();
    drop(workspace);
    assert!(world.all.checkpoint().await.is_err());
    assert_ne!(mark(), before, "the other one is durable all the same");
    assert!(world.all.checkpoint().await.is_err(), "it is not forgotten");
    fs::remove_file(world.home()).unwrap();
    fs::rename(&aside, world.home()).unwrap();
    world.all.checkpoint().await.unwrap();
    assert_eq!(world.disk_text("/data/1").unwrap(), "one");
}

#[tokio::test]
async fn a_person_who_finds_the_folder_reads_that_it_is_a_mirror() {
    let home = tempfile::tempdir().unwrap();
    let mirror = buildscale_workspace::mirror::Mirror::new(home.path().join("w"));
    mirror.lay_out().unwrap();
    let readme = home.path().join("w/README.txt");
    assert!(fs::read_to_string(&readme).unwrap().contains("Changes that are made in it by hand are put\nback"));
    fs::write(&readme, "their own words").unwrap();
    mirror.lay_out().unwrap();
    assert_eq!(fs::read_to_string(&readme).unwrap(), "their own words", "it is written once");
    assert_eq!(fs::read_dir(mirror.latest()).unwrap().count(), 0, "it is no file of the workspace");
}

#[tokio::test]
async fn a_workspace_whose_index_is_damaged_keeps_no_other_one_from_being_served() {
    let (world, workspace) = World::new().await;
    put(&workspace, "/data/a", "one").await;
    let other = WorkspaceId(Uuid::max());
    world.all.create(other, "other", &Principal::local()).await.unwrap();
    let second = world.all.open(other, buildscale_workspace::Access::platform("a test")).await.unwrap();
    put(&second, "/data/b", "two").await;
    drop((workspace, second));
    let id = world.id.to_string();
    let entry = |key: &Key| key.pk.starts_with(&format!("{id}/dir/")) && key.sk == "a";
    let entry = world.table.items().into_iter().map(|item| item.key).find(entry).unwrap();
    world.table.damage(&entry, "{}");
    let file = world.root.path().join(other.to_string()).join("latest/data/b");
    fs::remove_file(&file).unwrap();
    assert!(world.workspaces().repair_all().await.unwrap().fixed >= 1);
    assert_eq!(fs::read_to_string(&file).unwrap(), "two");

    world.table.damage(&Key::new("workspaces", id), "{}");
    let all = world.workspaces();
    all.repair_all().await.unwrap();
    let listed = all.list(10, None).await.unwrap().workspaces;
    assert_eq!(listed.into_iter().map(|workspace| workspace.workspace_id).collect::<Vec<_>>(), [other]);
}

#[tokio::test]
async fn a_damaged_change_has_everything_compared() {
    let done = repaired_after(|world| {
        fs::remove_file(world.on_disk("/data/3")).unwrap();
        let changes = world.table.partition(&format!("{}/changes", world.id));
        world.table.damage(&changes.last().unwrap().key, "{}");
    })
    .await;
    assert!(done.rebuilt && done.fixed >= 1, "{done:?}");
}

#[tokio::test]
async fn a_mark_that_is_ahead_of_the_clock_has_everything_compared() {
    let (world, workspace) = World::new().await;
    world.clock.skip(3_600_000);
    world.all.checkpoint().await.unwrap();
    // The clock is set back, and the process dies before its next checkpoint.
    world.clock.skip(-3_600_000);
    put(&workspace, "/data/1", "one").await;
    drop(workspace);
    fs::remove_file(world.on_disk("/data/1")).unwrap();
    assert!(world.workspaces().repair_all().await.unwrap().rebuilt);
    assert_eq!(world.disk_text("/data/1").as_deref(), Some("one"));
}

#[tokio::test]
async fn a_purge_whose_process_died_leaves_no_copy_on_the_disk() {
    for has_mark in [true, false] {
        let (world, workspace) = World::new().await;
        for at in ["/data/secret", "/data/kept"] {
            put(&workspace, at, "secret").await;
        }
        world.all.checkpoint().await.unwrap();
        world.clock.skip(600_000);
        let kept = workspace.rm(&path("/data/kept"), &person()).await.unwrap().file_id;
        let secret = workspace.rm(&path("/data/secret"), &person()).await.unwrap().file_id;
        workspace.purge(secret, &person()).await.unwrap();
        drop(workspace);
        let in_trash = |file: FileId| world.home().join("trash").join(file.to_string());
        // As a process leaves it that dies between the commit and the removal.
        fs::write(in_trash(secret), "secret").unwrap();
        if !has_mark {
            fs::remove_file(world.home().join("mark")).unwrap();
        }
        let done = world.workspaces().repair_all().await.unwrap();
        assert_eq!(done.rebuilt, !has_mark);
        assert!(!in_trash(secret).exists() && in_trash(kept).exists(), "with a mark: {has_mark}");
    }
}
