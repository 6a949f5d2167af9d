//! A library or program without unit tests builds no test binary: each would be compiled and linked for nothing. One with unit tests builds it, and
//! each file is part of a target, so that no test is left out in silence.

use crate::{
    repository::{folder, metadata, none, rust_files},
    test_names::test_names,
};
use cargo_metadata::{Package, Target, TargetKind};
use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Component, Path, PathBuf},
};

#[test]
fn a_test_binary_is_built_where_there_are_unit_tests() {
    let mut faults = Vec::new();
    for package in metadata().workspace_packages() {
        let files = files(package);
        for target in package.targets.iter().filter(|target| target.is_lib() || target.is_kind(TargetKind::Bin)) {
            let has_tests =
                sources(root_of(target, &files), &files).iter().any(|path| !test_names(&files[*path]).is_empty());
            let remedy = match (has_tests, target.test) {
                (true, false) => {
                    "it has unit tests: remove `test = false`, or move the modules with tests into the library"
                }
                (false, true) => "it has no unit tests: say `test = false`",
                _ => continue,
            };
            faults.push(format!("{}, {}: {remedy}", package.name, target.name));
        }
    }
    none(faults, "These targets build a test binary that is empty, or leave out unit tests");
}

/// Where a user may mount in a namespace of their own alone, `scripts/test` runs these tests in one.
#[test]
fn tests_on_a_small_disk_are_found_by_their_names() {
    let mut faults = Vec::new();
    for (path, text) in ["shared", "functions"].into_iter().flat_map(rust_files) {
        let mut pieces: Vec<&str> = text.split(concat!("SmallDisk", "::mounted(")).collect();
        pieces.pop();
        for before in pieces {
            let name = before.rsplit_once("fn ").and_then(|(_, function)| function.split('(').next());
            if !name.is_some_and(|name| name.contains("full_disk")) {
                faults.push(format!("{path}: {}", name.unwrap_or("no function")));
            }
        }
    }
    none(faults, "Tests that mount a small disk have `full_disk` in their names");
}

#[test]
fn every_file_is_part_of_a_target() {
    let mut faults = Vec::new();
    for package in metadata().workspace_packages() {
        let files = files(package);
        let known: BTreeSet<&str> =
            package.targets.iter().flat_map(|target| sources(root_of(target, &files), &files)).collect();
        faults.extend(files.keys().filter(|path| !known.contains(path.as_str())).cloned());
    }
    none(faults, "No target declares these files as modules: they are not compiled, and none of their tests runs");
}

/// The Rust files of a package, by their paths from the root of the repository.
fn files(package: &Package) -> BTreeMap<String, String> {
    rust_files(folder(package)).into_iter().collect()
}

/// The file of a target that cargo names.
fn root_of<'a>(target: &Target, files: &'a BTreeMap<String, String>) -> Option<&'a str> {
    files.keys().find(|path| target.src_path.ends_with(path.as_str())).map(String::as_str)
}

/// The files below a root with the root itself, each found as the compiler finds it.
fn sources<'a>(root: Option<&'a str>, files: &'a BTreeMap<String, String>) -> BTreeSet<&'a str> {
    let beside = |path: &str| Path::new(path).parent().map(Path::to_path_buf).unwrap_or_default();
    // Each with the folder of its modules.
    let mut open: Vec<(&str, PathBuf)> = root.map(|path| (path, beside(path))).into_iter().collect();
    let mut found = BTreeSet::new();
    while let Some((path, below)) = open.pop() {
        if !found.insert(path) {
            continue;
        }
        for (name, place) in modules(&files[path]) {
            let at = match place {
                Some(place) => plain(&beside(path).join(place)),
                None => below.join(format!("{name}.rs")),
            };
            // A file of another package is looked at there.
            if let Some((path, _)) = files.get_key_value(&*at.to_string_lossy()) {
                open.push((path.as_str(), if place.is_some() { beside(path) } else { below.join(name) }));
            }
        }
    }
    found
}

/// The modules in files of their own that a file declares, with the value of `#[path]`.
fn modules(text: &str) -> Vec<(&str, Option<&str>)> {
    let (mut found, mut place) = (Vec::new(), None);
    for line in text.lines().map(str::trim) {
        if let Some(rest) = line.strip_prefix("#[path = \"") {
            place = rest.split('"').next();
        }
        let name = line
            .strip_suffix(';')
            .and_then(|line| line.split_once("mod "))
            .filter(|(before, _)| before.is_empty() || before.starts_with("pub") && !before.contains(['"', '/']));
        if let Some((_, name)) = name {
            found.push((name, place.take()));
        }
    }
    found
}

/// A path without `..`.
fn plain(path: &Path) -> PathBuf {
    path.components().fold(PathBuf::new(), |mut plain, part| {
        match part {
            Component::ParentDir => _ = plain.pop(),
            part => plain.push(part),
        }
        plain
    })
}

#[test]
fn modules_are_found_as_the_compiler_finds_them() {
    let files: BTreeMap<String, String> = [
        ("a/src/main.rs", "mod one;\n#[cfg(unix)]\npub(crate) mod two;\n// mod three;\n"),
        ("a/src/one.rs", "pub mod deep;\n#[path = \"../other/odd.rs\"]\nmod odd;\n"),
        ("a/src/one/deep.rs", ""),
        ("a/src/two.rs", "#[cfg(test)]\nmod tests;\n"),
        ("a/src/two/tests.rs", ""),
        ("a/src/three.rs", ""),
        ("a/other/odd.rs", "mod beside;\n"),
        ("a/other/beside.rs", ""),
    ]
    .into_iter()
    .map(|(path, text)| (path.to_owned(), text.to_owned()))
    .collect();
    let found = sources(Some("a/src/main.rs"), &files);
    let missing: Vec<&str> = files.keys().map(String::as_str).filter(|path| !found.contains(path)).collect();
    assert_eq!(missing, ["a/src/three.rs"]);
    assert!(sources(None, &files).is_empty());
}
