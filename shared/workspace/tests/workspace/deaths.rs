//! Each change of a workspace under every death: the process dies before or after each call to a store, another one repairs, and the change is made
//! again, as its caller would. The outcome is the one of a process that lives: on the disk, in versions, in the trash, in tags and links, and for
//! `fsck`.

use crate::common::{World, path, put, tree, versions};
use buildscale_workspace::{Access, Expect, Mark, Workspace, Workspaces, Writer};
use domain::{CallId, Error, FileId, Principal};
use futures::future::BoxFuture;
use std::collections::BTreeMap;
use testkit::crash::{Crash, Side};
use uuid::Uuid;

/// Everything that a change leaves behind, without ids and times.
#[derive(Debug, PartialEq)]
struct Left {
    disk: BTreeMap<String, Option<Vec<u8>>>,
    /// The number of versions, the tags and the links of each file.
    files: BTreeMap<String, (usize, Vec<String>, usize)>,
    trash: Vec<String>,
    faults: Vec<String>,
}

async fn left(world: &World, workspace: &Workspace) -> Left {
    let disk = tree(&world.on_disk("/projects"));
    let mut files = BTreeMap::new();
    for at in disk.keys() {
        let at = path(&format!("/projects{at}"));
        let id = workspace.stat(&at).await.unwrap().file_id;
        let relations = workspace.relations(id).await.unwrap();
        let versions = versions(workspace, id).await;
        assert!(versions.windows(2).all(|two| two[0] == two[1] + 1), "{at}: {versions:?}");
        files.insert(at.to_string(), (versions.len(), relations.tags, relations.links.len()));
    }
    let trash = workspace.trash(100, None).await.unwrap();
    let trash = trash.files.into_iter().map(|item| item.info.path.to_string()).collect();
    let mut faults = Vec::new();
    world.workspaces().fsck(false, &mut |fault| faults.push(format!("{fault:?}"))).await.unwrap();
    Left { disk, files, trash, faults }
}

/// The workspace that each change begins with: its files by name.
async fn prepared() -> (World, Workspace, BTreeMap<&'static str, FileId>) {
    let (world, workspace) = World::new().await;
    for (at, content) in [
        ("/projects/a.md", "one"),
        ("/projects/a.md", "two, see [b](b.md)"),
        ("/projects/b.md", "b"),
        ("/projects/folder/deep/c.md", "c"),
        ("/projects/gone.md", "gone"),
    ] {
        put(&workspace, at, content).await;
    }
    let mut ids = BTreeMap::new();
    for (name, at) in [("a", "/projects/a.md"), ("b", "/projects/b.md"), ("gone", "/projects/gone.md")] {
        ids.insert(name, workspace.stat(&path(at)).await.unwrap().file_id);
    }
    workspace.rm(&path("/projects/gone.md"), &crate::common::person()).await.unwrap();
    (world, workspace, ids)
}

type Made = Result<(), Error>;
type Change = for<'a> fn(&'a Workspace, &'a BTreeMap<&'static str, FileId>, &'a Writer) -> BoxFuture<'a, Made>;

/// Every kind of change.
const CHANGES: &[(&str, Change)] = &[
    ("write anew", |here, _, by| {
        Box::pin(
            async move { here.write(&path("/projects/new/n.md"), "[a](../a.md)", Expect::Any, by).await.map(drop) },
        )
    }),
    ("write again", |here, _, by| {
        Box::pin(async move { here.write(&path("/projects/a.md"), "three", Expect::Any, by).await.map(drop) })
    }),
    ("write a long one", |here, _, by| {
        Box::pin(async move {
            let long = "long ".repeat(40_000);
            here.write(&path("/projects/a.md"), long, Expect::Any, by).await.map(drop)
        })
    }),
    ("mkdir", |here, _, by| Box::pin(async move { here.mkdir(&path("/projects/x/y"), by).await.map(drop) })),
    ("move a file", |here, _, by| {
        Box::pin(async move { here.mv(&path("/projects/a.md"), &path("/projects/z/a.md"), by).await.map(drop) })
    }),
    ("move a folder", |here, _, by| {
        Box::pin(async move { here.mv(&path("/projects/folder"), &path("/projects/other"), by).await.map(drop) })
    }),
    ("remove a file", |here, _, by| Box::pin(async move { here.rm(&path("/projects/a.md"), by).await.map(drop) })),
    ("remove a folder", |here, _, by| Box::pin(async move { here.rm(&path("/projects/folder"), by).await.map(drop) })),
    ("restore", |here, ids, by| Box::pin(async move { here.restore(ids["gone"], by).await.map(drop) })),
    ("purge", |here, ids, by| Box::pin(async move { here.purge(ids["gone"], by).await.map(drop) })),
    ("restore a version", |here, ids, by| {
        Box::pin(async move { here.restore_version(ids["a"], 1, Expect::Any, by).await.map(drop) })
    }),
    ("tag", |here, ids, by| {
        Box::pin(async move { here.mark(ids["a"], Mark::Tag(vec!["t".into(), "u".into()]), by).await.map(drop) })
    }),
    ("link", |here, ids, by| {
        Box::pin(async move { here.mark(ids["b"], Mark::Link(ids["a"], "answers".into()), by).await.map(drop) })
    }),
];

/// One change with a process that dies; whether it died. A dead process may leave the disk behind the index, and the next one puts it right.
async fn dies(name: &str, change: Change, call: u64, side: Side) -> (bool, Left) {
    let (world, _, ids) = prepared().await;
    let writer = Writer::in_call(Principal::local(), CallId(Uuid::from_u128(77)));
    let crash = Crash::at(call, side);
    let (table, blobs) = (crash.table(world.table.clone()), crash.blobs(world.blobs.clone()));
    let mortal = Workspaces::new(table, blobs, world.clock.clone(), world.root.path().into());
    let first = async {
        let here = mortal.open(world.id, Access::platform("a test")).await?;
        change(&here, &ids, &writer).await
    };
    tokio::select! {
        biased;
        () = crash.died() => {}
        made = first => made.unwrap(),
    }
    drop(mortal);
    let others = world.workspaces();
    others.repair_all().await.unwrap();
    let again = others.open(world.id, Access::platform("a test")).await.unwrap();
    let made = change(&again, &ids, &writer).await;
    assert!(made.is_ok(), "{name}, again after a death at call {call} {side:?}: {made:?}");
    (crash.is_dead(), left(&world, &again).await)
}

#[tokio::test]
async fn no_death_loses_or_doubles_a_change() {
    for (name, change) in CHANGES {
        let (died, expected) = dies(name, *change, u64::MAX, Side::Before).await;
        assert!(!died && expected.faults.is_empty(), "{name}: {expected:?}");
        let mut call = 0;
        loop {
            call += 1;
            let (died, before) = dies(name, *change, call, Side::Before).await;
            if !died {
                break;
            }
            let (_, after) = dies(name, *change, call, Side::After).await;
            assert_eq!((&before, &after), (&expected, &expected), "{name}: a death at call {call}");
        }
        assert!(call > 3, "{name}: it dies somewhere");
    }
}
