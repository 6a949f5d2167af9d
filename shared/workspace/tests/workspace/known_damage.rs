//! Damage that is known, and rows that cannot be read, keep nothing else back.

use crate::common::{World, path, person, put};
use buildscale_workspace::{Damage, Damaged, Format, FsckFault, Mark};
use bytes::Bytes;
use domain::{Code, Sha256, Timestamp};
use futures::TryStreamExt as _;
use ports::{Key, Table as _, Write};
use serde_json::json;

/// A text that is no small one: so it is a blob.
fn long(letter: char) -> String {
    letter.to_string().repeat(20_000)
}

#[tokio::test]
async fn all_known_damage_is_looked_at_again_however_much_there_is() {
    let (world, workspace) = World::new().await;
    put(&workspace, "/data/a", &long('a')).await;
    let note = async |sha256: Sha256| {
        let (damage, found_at) = (Damage::Missing, Timestamp::default());
        let record = Damaged { workspace_id: world.id, sha256, size: 20_000, damage, found_at };
        let key = Key::new("damage", format!("{}/{sha256}", world.id));
        let note = Write::put(key, serde_json::to_string(&record).unwrap(), ports::Expect::Any);
        world.table.commit(vec![note]).await.unwrap();
    };
    // The records of contents that are lost come before that of one that another process has repaired.
    for n in 0..120 {
        note(format!("{n:064x}").parse().unwrap()).await;
    }
    let repaired = Sha256::of(long('a').as_bytes());
    let known = async || {
        let damaged = world.all.damaged(1_000).await.unwrap();
        (damaged.len(), damaged.iter().any(|damaged| damaged.sha256 == repaired))
    };
    note(repaired).await;
    for _ in 0..2 {
        assert_eq!(known().await, (121, true));
        world.all.recheck().await.unwrap();
    }
    assert_eq!(known().await, (120, false), "between the rounds");
    note(repaired).await;
    let mut from = None;
    loop {
        from = world.all.scrub(from.as_deref()).await.unwrap().next;
        if from.is_none() {
            break;
        }
    }
    assert_eq!(known().await, (120, false), "by a round");
    note(repaired).await;
    world.all.fsck(true, &mut |_: &FsckFault| {}).await.unwrap();
    assert_eq!(known().await, (120, false), "by a check");
}

#[tokio::test]
async fn an_entry_that_cannot_be_read_keeps_neither_others_from_a_list_nor_a_good_copy_from_being_found() {
    let (world, workspace) = World::new().await;
    for (at, letter) in [("/data/a", 'a'), ("/data/b", 'b'), ("/data/c/d", 'd')] {
        put(&workspace, at, &long(letter)).await;
    }
    let folder = workspace.stat(&path("/data")).await.unwrap().file_id;
    world.table.damage(&Key::new(format!("{}/dir/{folder}", world.id), "a"), "{}");
    let listed = workspace.ls(&path("/data"), 100, None).await.unwrap().entries;
    assert_eq!(listed.into_iter().map(|info| info.name).collect::<Vec<_>>(), ["b", "c"]);
    assert_eq!(workspace.ls_whole(&path("/data"), 100, None).await.unwrap_err().code, Code::Internal);
    assert_eq!(workspace.folders_in(&path("/data")).await.unwrap(), ["c"]);
    let tree = workspace.list_readable(&path("/data"), 100).await.unwrap();
    assert_eq!((tree.entries.len(), tree.is_whole, tree.left_out), (3, true, 1));
    assert_eq!(workspace.list_tree(&path("/data"), 100).await.unwrap_err().code, Code::Internal);

    let file = workspace.stat(&path("/data/c/d")).await.unwrap().file_id;
    world.blobs.lose(&world.id.to_string(), Sha256::of(long('d').as_bytes()));
    let (_, content) = workspace.version(file, 1).await.unwrap();
    assert_eq!(content, long('d'));
}

#[tokio::test]
async fn a_damaged_row_of_one_file_keeps_neither_links_nor_writes_of_others_back() {
    let (world, workspace) = World::new().await;
    for (at, text) in [("/projects/b.md", "b"), ("/projects/c.md", "c"), ("/projects/a.md", "[[b]] [[c]]")] {
        put(&workspace, at, text).await;
    }
    let file = async |at: &str| workspace.stat(&path(at)).await.unwrap().file_id;
    let (a, c, projects) = (file("/projects/a.md").await, file("/projects/c.md").await, file("/projects").await);
    let sources = async || {
        let links = workspace.relations(c).await.unwrap().backlinks;
        links.into_iter().filter_map(|link| link.file).map(|file| file.path.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(sources().await, ["/projects/a.md"]);

    // The entry of a target.
    world.table.damage(&Key::new(format!("{}/dir/{projects}", world.id), "b.md"), "{}");
    put(&workspace, "/projects/a.md", "Again [[b]] [[c]]").await;
    put(&workspace, "/projects/d.md", "[[b]] [[c]]").await;
    assert_eq!(sources().await, ["/projects/a.md", "/projects/d.md"]);
    assert_eq!(workspace.network(c, 2, 100).await.unwrap().nodes.len(), 3);

    // The links in the text of a source, which its next version writes anew.
    world.table.damage(&Key::new(format!("{}/mentions", world.id), a.to_string()), "{");
    assert_eq!(sources().await, ["/projects/d.md"]);
    put(&workspace, "/projects/a.md", "Once more [[b]] [[c]]").await;
    assert_eq!(sources().await, ["/projects/a.md", "/projects/d.md"]);

    // The marks of a source.
    let d = file("/projects/d.md").await;
    workspace.mark(d, Mark::Tag(vec!["blue".into()]), &person()).await.unwrap();
    world.table.damage(&Key::new(format!("{}/marks", world.id), d.to_string()), "{");
    assert_eq!(sources().await, ["/projects/a.md", "/projects/d.md"]);
    assert!(workspace.network(c, 2, 100).await.unwrap().truncated, "what that file has is not known");
}

#[tokio::test]
async fn an_export_that_ends_by_a_lost_content_names_its_file() {
    let (world, workspace) = World::new().await;
    put(&workspace, "/projects/a.md", &long('a')).await;
    put(&workspace, "/projects/a.md", "short").await;
    world.blobs.lose(&world.id.to_string(), Sha256::of(long('a').as_bytes()));
    let info = world.all.get(world.id).await.unwrap();
    let error = workspace.export(info, Format::Tar).try_collect::<Vec<Bytes>>().await.unwrap_err();
    assert_eq!(error.code, Code::ContentMissing);
    assert_eq!((&error.details["path"], &error.details["v"]), (&json!("/projects/a.md"), &json!(1)), "{error:?}");
}
