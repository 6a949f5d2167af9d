//! Damage that is known, and rows that cannot be read, keep nothing else back.

use crate::common::{World, path, person, put, versions};
use buildscale_workspace::{Access, Damage, Damaged, Format, FsckFault, Imported, Mark, Source, Workspace};
use bytes::Bytes;
use domain::{Code, Error, Principal, Sha256, Timestamp, WorkspaceId};
use futures::{TryStreamExt as _, stream};
use ports::{Key, Table as _, Write};
use serde_json::json;
use uuid::Uuid;

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
async fn an_export_for_git_that_ends_by_a_lost_content_names_its_file() {
    let (world, workspace) = World::new().await;
    put(&workspace, "/projects/a.md", &long('a')).await;
    put(&workspace, "/projects/a.md", "short").await;
    world.blobs.lose(&world.id.to_string(), Sha256::of(long('a').as_bytes()));
    let info = world.all.get(world.id).await.unwrap();
    let error = workspace.export(info, Format::Git).try_collect::<Vec<Bytes>>().await.unwrap_err();
    assert_eq!(error.code, Code::ContentMissing);
    assert_eq!((&error.details["path"], &error.details["v"]), (&json!("/projects/a.md"), &json!(1)), "{error:?}");
}

/// A tar archive of a workspace.
async fn archive(world: &World, workspace: &Workspace) -> Bytes {
    let info = world.all.get(workspace.id()).await.unwrap();
    workspace.export(info, Format::Tar).try_collect::<Vec<Bytes>>().await.unwrap().concat().into()
}

async fn import(world: &World, archive: Bytes) -> Result<Imported, Error> {
    let id = WorkspaceId(Uuid::now_v7());
    world.all.import(id, None, &Principal::local(), Source::Archive, stream::iter([Ok(archive)])).await
}

/// Damages the entry of a file or folder.
async fn damage_entry(world: &World, workspace: &Workspace, folder: &str, name: &str) {
    let folder = workspace.stat(&path(folder)).await.unwrap().file_id;
    world.table.damage(&Key::new(format!("{}/dir/{folder}", world.id), name), "{}");
}

#[tokio::test]
async fn an_archive_has_all_that_is_whole_and_names_the_rest() {
    let (world, workspace) = World::new().await;
    put(&workspace, "/projects/a.md", &long('a')).await;
    for name in ["a", "b", "c", "d"] {
        for content in ["one", "two", "three"] {
            put(&workspace, &format!("/projects/{name}.md"), &format!("{content} of {name}")).await;
        }
    }
    let file = async |name: &str| workspace.stat(&path(&format!("/projects/{name}.md"))).await.unwrap().file_id;
    let (b, d) = (file("b").await, file("d").await);
    workspace.mark(d, Mark::Tag(vec!["blue".into()]), &person()).await.unwrap();
    world.blobs.lose(&world.id.to_string(), Sha256::of(long('a').as_bytes()));
    damage_entry(&world, &workspace, "/projects", "c.md").await;
    for (file, v) in [(b, 2), (d, 3)] {
        world.table.damage(&Key::new(format!("{}/versions/{file}", world.id), format!("{v:010}")), "{}");
    }
    world.table.damage(&Key::new(format!("{}/marks", world.id), d.to_string()), "{");

    let out = archive(&world, &workspace).await;
    assert!(String::from_utf8_lossy(&out).contains(r#""missing":4}"#));
    let imported = import(&world, out).await.unwrap();
    let mut left_out = imported.left_out;
    left_out.sort_unstable();
    let named = ["/projects/a.md, version 1", "/projects/b.md, version 2", "/projects/c.md", "/projects/d.md"];
    assert_eq!(left_out, named);
    let copy = world.all.open(imported.workspace.workspace_id, Access::platform("a test")).await.unwrap();
    for (name, numbers) in [("a", vec![4, 3, 2, 1]), ("b", vec![3, 1]), ("d", vec![3, 2, 1])] {
        let at = path(&format!("/projects/{name}.md"));
        let file = copy.stat(&at).await.unwrap().file_id;
        assert_eq!(versions(&copy, file).await, numbers, "{name}");
        assert_eq!(copy.read(&at, None).await.unwrap().bytes, format!("three of {name}"));
    }
    let a = copy.stat(&path("/projects/a.md")).await.unwrap().file_id;
    assert_eq!(copy.version(a, 1).await.unwrap_err().code, Code::ContentMissing, "as in the workspace itself");
    // The copy goes out again, with the same gaps.
    assert!(String::from_utf8_lossy(&archive(&world, &copy).await).contains(r#""missing":2}"#));
}

#[tokio::test]
async fn an_archive_that_lacks_a_policy_is_not_imported() {
    let policy = r#"@id("closed") forbid (principal is Agent, action == Action::"write", resource in Path::"/data");"#;
    for (folder, name) in [("/system/policies", "closed.cedar"), ("/system", "policies"), ("/", "system")] {
        let (world, workspace) = World::new().await;
        put(&workspace, "/system/policies/closed.cedar", policy).await;
        damage_entry(&world, &workspace, folder, name).await;
        let refused = import(&world, archive(&world, &workspace).await).await.unwrap_err();
        assert_eq!(refused.code, Code::InvalidArgument, "{name}: {refused}");
        assert!(refused.message.contains("policy"), "{name}: {refused}");
    }
}

#[tokio::test]
async fn damaged_rows_keep_nothing_of_a_folder_in_the_trash() {
    let (world, workspace) = World::new().await;
    let paths = ["/projects/old", "/projects/old/a.md", "/projects/old/sub", "/projects/old/sub/b.md"];
    for at in [paths[1], paths[3]] {
        put(&workspace, at, "text").await;
    }
    let mut ids = Vec::new();
    for at in paths {
        ids.push(workspace.stat(&path(at)).await.unwrap().file_id);
    }
    workspace.mark(ids[1], Mark::Tag(vec!["blue".into()]), &person()).await.unwrap();
    for name in ["a.md", "sub"] {
        damage_entry(&world, &workspace, "/projects/old", name).await;
    }
    world.table.damage(&Key::new(format!("{}/marks", world.id), ids[1].to_string()), "{");
    workspace.rm(&path("/projects/old"), &person()).await.unwrap();
    workspace.purge(ids[0], &person()).await.unwrap();
    let of_them = |key: &Key| {
        ids.iter().map(ToString::to_string).any(|id| {
            let partition = key.pk.rsplit('/').next();
            partition == Some(&*id) || (key.sk == id && matches!(partition, Some("node" | "marks" | "trash")))
        })
    };
    let left: Vec<Key> = world.table.items().into_iter().map(|item| item.key).filter(|key| of_them(key)).collect();
    assert!(left.is_empty(), "{left:?}");
}
