//! A library or program without unit tests builds no test binary: each would be compiled and linked for nothing. One with unit tests builds it, so
//! that none of them is left out in silence.

use crate::{
    paragraphs::test_names,
    repository::{folder, metadata, none, read, rust_files},
};
use cargo_metadata::{Package, Target, TargetKind};
use std::path::Path;

#[test]
fn a_test_binary_is_built_where_there_are_unit_tests() {
    let mut faults = Vec::new();
    for package in metadata().workspace_packages() {
        for target in package.targets.iter().filter(|target| target.is_lib() || target.is_kind(TargetKind::Bin)) {
            let remedy = match (has_tests(package, target), target.test) {
                (true, false) => "it has unit tests: remove `test = false`",
                (false, true) => "it has no unit tests: say `test = false`",
                _ => continue,
            };
            faults.push(format!("{}, {}: {remedy}", package.name, target.name));
        }
    }
    none(faults, "These targets build a test binary that is empty, or leave out unit tests");
}

/// Whether a target has unit tests: a library in its folder, a program in its file.
fn has_tests(package: &Package, target: &Target) -> bool {
    let folder = folder(package);
    let is_of_it = |path: &str| match target.is_lib() {
        true => !Path::new(path).starts_with(folder.join("src/bin")),
        false => target.src_path.ends_with(path),
    };
    rust_files(folder.join("src")).iter().any(|(path, text)| is_of_it(path) && !test_names(text).is_empty())
}

#[test]
fn a_file_with_tests_is_told_from_one_without() {
    let has_some = |path: &str| !test_names(&read(path)).is_empty();
    assert!(has_some("tests/guards/src/targets.rs"));
    assert!(!has_some("tests/guards/src/lib.rs"));
}
