//! The input of the guards: the files, the manifests and the resolved graph of this repository.

use cargo_metadata::{DependencyKind, Metadata, MetadataCommand, Package};
use std::{
    collections::{BTreeSet, HashMap},
    fs,
    path::{Path, PathBuf},
};

/// The folder of the workspace.
pub fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// A file of the repository as text.
pub fn read(path: impl AsRef<Path>) -> String {
    let path = root().join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// A manifest, or another file in TOML.
pub fn parse_toml(path: impl AsRef<Path>) -> toml::Table {
    read(&path).parse().unwrap_or_else(|error| panic!("{}: {error}", path.as_ref().display()))
}

/// The README, which is written when the first crates are. Until then nothing has to be explained or even used:
/// manifests run ahead of the code.
pub fn readme() -> Option<String> {
    fs::read_to_string(root().join("README.md")).ok()
}

/// Every text file below `folder`, as a path from the root and its text, without built or hidden ones.
pub fn files(folder: impl AsRef<Path>) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut folders = vec![root().join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            let name = entry.file_name().to_string_lossy().into_owned();
            if path.is_dir() {
                let ours = name == ".ci" || name == ".cargo" || !name.starts_with('.');
                if ours && !is_built(&path) {
                    folders.push(path);
                }
            } else if let Ok(text) = fs::read_to_string(&path) {
                found.push((from_root(&path), text));
            }
        }
    }
    found.sort();
    found
}

/// Every Rust file below `folder`.
pub fn rust_files(folder: impl AsRef<Path>) -> Vec<(String, String)> {
    files(folder).into_iter().filter(|(path, _)| path.ends_with(".rs")).collect()
}

fn is_built(folder: &Path) -> bool {
    let at_root = ["target", "data"].iter().any(|name| folder == root().join(name));
    let of_node = ["node_modules", "dist"].iter().any(|name| folder.ends_with(name));
    at_root || of_node || folder.join("CACHEDIR.TAG").exists()
}

fn from_root(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).to_string_lossy().into_owned()
}

/// The graph that cargo resolves. Only for Linux, because dependencies of other systems are not on a machine that built for it.
pub fn metadata() -> Metadata {
    MetadataCommand::new()
        .manifest_path(root().join("Cargo.toml"))
        .other_options(["--locked", "--filter-platform", "x86_64-unknown-linux-gnu"].map(String::from))
        .exec()
        .unwrap_or_else(|error| panic!("{error}"))
}

/// The top folder that a crate of ours lies in: `shared`, `functions` or `tests`.
pub fn layer(package: &Package) -> String {
    let folder = folder(package);
    folder.iter().next().map(|layer| layer.to_string_lossy().into_owned()).unwrap_or_default()
}

/// The folder of a crate of ours, from the root.
pub fn folder(package: &Package) -> PathBuf {
    let root = root().canonicalize().unwrap_or_else(|error| panic!("{error}"));
    let folder = package.manifest_path.parent().map(|folder| folder.as_std_path()).unwrap_or_else(|| Path::new(""));
    let folder = folder.canonicalize().unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    folder.strip_prefix(&root).unwrap_or(&folder).to_path_buf()
}

/// The name by which the rest of the workspace knows a crate of ours: without the prefix that a registry of crates needs.
pub fn name(package: &Package) -> &str {
    package.name.strip_prefix("buildscale-").unwrap_or(&package.name)
}

/// The names of all crates that are linked into `root`, or run to build it; of ours without their prefix.
pub fn tree(metadata: &Metadata, root: &str) -> BTreeSet<String> {
    let packages: HashMap<_, _> = metadata.packages.iter().map(|package| (&package.id, package)).collect();
    let nodes: HashMap<_, _> =
        metadata.resolve.iter().flat_map(|resolve| &resolve.nodes).map(|node| (&node.id, node)).collect();
    let mut open: Vec<_> =
        metadata.workspace_packages().into_iter().filter(|package| name(package) == root).map(|p| &p.id).collect();
    let mut seen = BTreeSet::new();
    while let Some(id) = open.pop() {
        if !seen.insert(id) {
            continue;
        }
        for dependency in nodes.get(id).into_iter().flat_map(|node| &node.deps) {
            if dependency.dep_kinds.iter().any(|kind| kind.kind != DependencyKind::Development) {
                open.push(&dependency.pkg);
            }
        }
    }
    seen.into_iter().filter_map(|id| packages.get(id)).map(|package| name(package).to_owned()).collect()
}

/// Fails with every line of `faults`, if there is one.
#[track_caller]
pub fn none(faults: Vec<String>, rule: &str) {
    assert!(faults.is_empty(), "\n{rule}:\n  {}\n", faults.join("\n  "));
}
