//! CI, releases and images build with one version of Rust: a later one brings new lints, and must break no build by itself.

use crate::repository::{none, parse_toml, read};

const FILES: [&str; 5] = [
    ".github/workflows/ci.yml",
    ".github/workflows/release.yml",
    "infra/containers/hub.Dockerfile",
    "infra/containers/sandbox.Dockerfile",
    "infra/containers/stream.Dockerfile",
];

/// The versions of Rust that a file names.
fn named(text: &str) -> Vec<String> {
    let named = text.lines().filter_map(|line| {
        let line = line.trim_start().trim_start_matches("ENV ");
        let rest = ["RUSTUP_TOOLCHAIN", "ARG RUST="].iter().find_map(|begin| line.strip_prefix(begin))?;
        let version = rest.trim_start_matches([':', '=', ' ', '"']);
        Some(version.chars().take_while(|c| c.is_ascii_digit() || *c == '.').collect())
    });
    named.collect()
}

#[test]
fn ci_and_images_build_with_one_version_of_rust() {
    let first = named(&read(FILES[0])).pop().unwrap_or_default();
    let mut faults = Vec::new();
    for file in FILES {
        let versions = named(&read(file));
        if versions.is_empty() || versions.iter().any(|version| *version != first) {
            faults.push(format!("{file}: {versions:?}, and {} has {first:?}", FILES[0]));
        }
    }
    none(faults, "Name the same version of Rust in each of these files");
    let parts = |version: &str| version.split('.').filter_map(|part| part.parse().ok()).collect::<Vec<u32>>();
    let manifest = parse_toml("Cargo.toml");
    let package = manifest.get("workspace").and_then(|workspace| workspace.get("package"));
    let oldest = package.and_then(|package| package.get("rust-version")).and_then(|version| version.as_str());
    let oldest = oldest.unwrap_or_default();
    assert!(parts(&first) >= parts(oldest), "{first} is older than {oldest}, which Cargo.toml asks for");
}

#[test]
fn versions_are_found_in_workflows_and_container_files() {
    let text = "env:\n  RUSTUP_TOOLCHAIN: \"1.95.0\"\nARG RUST=1.94.1-slim-bookworm\nENV RUSTUP_TOOLCHAIN=1.93.0 \\\n";
    assert_eq!(named(text), ["1.95.0", "1.94.1", "1.93.0"]);
}
