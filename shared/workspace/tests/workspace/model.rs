//! After any operations in any order, index, `latest/` and versions agree with a plain map.

use crate::common::{World, tree, versions};
use buildscale_workspace::{Expect, FileKind, Workspace, Writer};
use domain::{FileId, FilePath, Principal};
use proptest::prelude::*;
use std::collections::BTreeMap;

#[derive(Clone, Debug)]
enum Step {
    Write(FilePath, u8),
    Mkdir(FilePath),
    Move(FilePath, FilePath),
    Remove(FilePath),
    Restore(usize),
    RestoreVersion(FilePath),
}

fn paths() -> impl Strategy<Value = FilePath> {
    proptest::collection::vec(prop_oneof!["a", "b", "c"], 1..4)
        .prop_map(|names| FilePath::parse(&format!("/projects/{}", names.join("/"))).unwrap())
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (paths(), any::<u8>()).prop_map(|(path, byte)| Step::Write(path, byte)),
        1 => paths().prop_map(Step::Mkdir),
        3 => (paths(), paths()).prop_map(|(from, to)| Step::Move(from, to)),
        2 => paths().prop_map(Step::Remove),
        1 => any::<usize>().prop_map(Step::Restore),
        1 => paths().prop_map(Step::RestoreVersion),
    ];
    proptest::collection::vec(step, 1..30)
}

/// The expected state: the content at each path below `/projects`, none for a folder; and the trash.
#[derive(Default)]
struct Model {
    files: BTreeMap<FilePath, Option<u8>>,
    trash: Vec<(FileId, FilePath, BTreeMap<FilePath, Option<u8>>)>,
}

impl Model {
    /// Makes the folders above; false when a file is in the way.
    fn above(&mut self, path: &FilePath) -> bool {
        let above: Vec<_> = std::iter::successors(path.parent(), FilePath::parent)
            .take_while(|path| path.names().count() > 1)
            .collect();
        if above.iter().any(|path| matches!(self.files.get(path), Some(Some(_)))) {
            return false;
        }
        self.files.extend(above.into_iter().map(|path| (path, None)));
        true
    }

    fn take(&mut self, path: &FilePath) -> BTreeMap<FilePath, Option<u8>> {
        let (taken, left) = std::mem::take(&mut self.files).into_iter().partition(|(at, _)| at.is_within(path));
        self.files = left;
        taken
    }

    fn put(&mut self, taken: BTreeMap<FilePath, Option<u8>>, from: &FilePath, to: &FilePath) {
        for (path, content) in taken {
            let below = path.as_str().strip_prefix(from.as_str()).unwrap();
            self.files.insert(FilePath::parse(&format!("{to}{below}")).unwrap(), content);
        }
    }
}

/// Does one step to both; they have to agree on whether it can be done.
async fn step(workspace: &Workspace, model: &mut Model, step: Step) {
    let by = Writer::new(Principal::local());
    match step {
        Step::Write(path, byte) => {
            let can = !matches!(model.files.get(&path), Some(None)) && model.above(&path);
            assert_eq!(workspace.write(&path, [byte].to_vec(), Expect::Any, &by).await.is_ok(), can, "write {path}");
            if can {
                model.files.insert(path.clone(), Some(byte));
            }
        }
        Step::Mkdir(path) => {
            let can = !matches!(model.files.get(&path), Some(Some(_))) && model.above(&path);
            assert_eq!(workspace.mkdir(&path, &by).await.is_ok(), can, "mkdir {path}");
            if can {
                model.files.insert(path, None);
            }
        }
        Step::Move(from, to) => {
            let there = model.files.contains_key(&from);
            let fits = from == to || (!to.is_within(&from) && !model.files.contains_key(&to));
            let can = there && fits && (from == to || model.above(&to));
            assert_eq!(workspace.mv(&from, &to, &by).await.is_ok(), can, "mv {from} {to}");
            if can && from != to {
                let taken = model.take(&from);
                model.put(taken, &from, &to);
            }
        }
        Step::Remove(path) => {
            let id = workspace.stat(&path).await.ok().map(|info| info.file_id);
            assert_eq!(workspace.rm(&path, &by).await.is_ok(), model.files.contains_key(&path), "rm {path}");
            if let Some(id) = id {
                let taken = model.take(&path);
                model.trash.push((id, path, taken));
            }
        }
        Step::Restore(which) if !model.trash.is_empty() => {
            let which = which % model.trash.len();
            let (id, path, _) = model.trash[which].clone();
            let can = !model.files.contains_key(&path) && model.above(&path);
            assert_eq!(workspace.restore(id, &by).await.is_ok(), can, "restore {path}");
            if can {
                let (_, path, taken) = model.trash.remove(which);
                model.put(taken, &path, &path);
            }
        }
        Step::RestoreVersion(path) => {
            if let Ok(info) = workspace.stat(&path).await
                && info.kind == FileKind::File
            {
                let first = workspace.version(info.file_id, 1).await.unwrap().1[0];
                workspace.restore_version(info.file_id, 1, Expect::Version(info.v), &by).await.unwrap();
                model.files.insert(path, Some(first));
            }
        }
        Step::Restore(_) => {}
    }
}

/// Compares the index, the disk and the versions with the model.
async fn agree(world: &World, workspace: &Workspace, model: &Model) {
    let projects = FilePath::parse("/projects").unwrap();
    let wanted: BTreeMap<String, Option<Vec<u8>>> =
        model.files.iter().map(|(path, content)| (path.to_string(), content.map(|byte| vec![byte]))).collect();
    let (infos, whole) = workspace.list_tree(&projects, 1000).await.unwrap();
    assert!(whole);
    let mut index = BTreeMap::new();
    for info in infos {
        let content = if info.kind == FileKind::File {
            assert_eq!(workspace.by_id(info.file_id).await.unwrap(), info);
            let (version, content) = workspace.version(info.file_id, info.v).await.unwrap();
            assert_eq!(Some(version.sha256), info.sha256);
            assert!(versions(workspace, info.file_id).await.into_iter().rev().eq(1..=info.v), "versions have no gap");
            Some(content.to_vec())
        } else {
            None
        };
        index.insert(info.path.to_string(), content);
    }
    assert_eq!(index, wanted);
    let disk = tree(&world.on_disk("/projects"));
    let disk: BTreeMap<_, _> = disk.into_iter().map(|(path, content)| (format!("/projects{path}"), content)).collect();
    assert_eq!(disk, wanted);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn any_history_ends_as_a_plain_map_would(steps in steps()) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let (world, workspace) = World::new().await;
            let mut model = Model::default();
            for next in steps {
                step(&workspace, &mut model, next).await;
            }
            agree(&world, &workspace, &model).await;
            // And so it is after everything on disk was lost.
            drop(workspace);
            std::fs::remove_dir_all(world.home().join("latest")).unwrap();
            world.workspaces().repair_all().await.unwrap();
            let workspace = world.workspaces().open(world.id, buildscale_workspace::Access::platform("a test")).await.unwrap();
            agree(&world, &workspace, &model).await;
        });
    }
}
