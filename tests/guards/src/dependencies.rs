//! Dependencies are chosen once, in the root manifest; none is unused, and each has its reason in `docs/dependencies.md`.

use crate::repository::{folder, layer, metadata, none, parse_toml, read, readme, rust_files};
use std::collections::BTreeSet;

const TABLES: [&str; 3] = ["dependencies", "dev-dependencies", "build-dependencies"];

#[test]
fn crates_inherit_everything_from_the_workspace() {
    let mut faults = Vec::new();
    for package in metadata().workspace_packages() {
        let manifest = parse_toml(&package.manifest_path);
        let inherits = |value: Option<&toml::Value>| {
            value.and_then(|value| value.get("workspace")).and_then(toml::Value::as_bool) == Some(true)
        };
        for key in ["version", "edition", "rust-version", "license", "publish"] {
            if !inherits(manifest.get("package").and_then(|package| package.get(key))) {
                faults.push(format!("{}: write `{key}.workspace = true` in [package]", package.name));
            }
        }
        if !inherits(manifest.get("lints")) {
            faults.push(format!("{}: write `workspace = true` in [lints]", package.name));
        }
        let targets = manifest.get("target").and_then(toml::Value::as_table).into_iter().flatten();
        let tables = targets.filter_map(|(_, target)| target.as_table()).chain([&manifest]);
        for (name, value) in
            tables.flat_map(|table| TABLES.iter().filter_map(|name| table.get(*name)?.as_table())).flatten()
        {
            if !inherits(Some(value)) {
                faults.push(format!("{}: declare {name} in the root's [workspace.dependencies]", package.name));
            }
        }
    }
    none(faults, "Versions, features and lints are set once, in the root manifest");
}

/// A registry has one list of names for everybody, and a program that uses one of these crates has its own `tools` or `client`.
#[test]
fn crates_have_names_that_can_be_published() {
    let metadata = metadata();
    let packages = metadata.workspace_packages();
    let libraries = packages.iter().filter(|package| layer(package) != "tests");
    let faults = libraries.filter(|package| !package.name.starts_with("buildscale-"));
    none(
        faults.map(|package| format!("{0}: buildscale-{0}", package.name)).collect(),
        "Names of crates begin with the project's",
    );
}

#[test]
fn declared_dependencies_are_used() {
    if readme().is_none() {
        return;
    }
    let mut faults = Vec::new();
    for package in metadata().workspace_packages() {
        let sources: String = rust_files(folder(package)).into_iter().map(|(_, text)| text).collect();
        for dependency in &package.dependencies {
            let name = dependency.rename.as_ref().unwrap_or(&dependency.name);
            if !names(&sources, &name.replace('-', "_")) {
                faults.push(format!("{}: remove {name}, which no file of the crate names", package.name));
            }
        }
    }
    none(faults, "These dependencies are declared and not used");
}

#[test]
fn chosen_dependencies_are_used_and_explained() {
    let Some(readme) = readme() else { return };
    let reasons = [readme, read("docs/dependencies.md")].concat();
    let metadata = metadata();
    let used: BTreeSet<_> = metadata
        .workspace_packages()
        .into_iter()
        .flat_map(|package| &package.dependencies)
        .map(|dependency| dependency.rename.as_ref().unwrap_or(&dependency.name))
        .collect();
    let mut faults = Vec::new();
    for (name, value) in root_dependencies() {
        if !used.contains(&name) {
            faults.push(format!("{name}: no crate uses it; remove it from the root manifest"));
        }
        let ours = value.get("path").is_some();
        if !ours && !reasons.contains(&format!("`{name}`")) {
            faults.push(format!("{name}: say in docs/dependencies.md why it is there (as `{name}`)"));
        }
    }
    none(faults, "These entries of [workspace.dependencies] are not needed, or not explained");
}

fn root_dependencies() -> toml::Table {
    let manifest = parse_toml("Cargo.toml");
    let table = manifest.get("workspace").and_then(|workspace| workspace.get("dependencies"));
    table.and_then(toml::Value::as_table).cloned().expect("the root manifest declares the dependencies")
}

/// Whether `code` has a path that starts with `name`; prose that happens to use the word is none.
fn names(code: &str, name: &str) -> bool {
    code.match_indices(&format!("{name}::"))
        .any(|(at, _)| !code[..at].ends_with(|before: char| before.is_alphanumeric() || before == '_'))
}

#[test]
fn only_paths_name_a_crate() {
    for (code, expected) in [
        ("use tokio::time;", true),
        ("#[tokio::test]", true),
        ("// on tokio", false),
        ("my_tokio::time", false),
        ("tokio_util::io", false),
    ] {
        assert_eq!(names(code, "tokio"), expected, "{code}");
    }
}
