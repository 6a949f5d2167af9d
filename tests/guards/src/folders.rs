//! The folders of docs/architecture/folders.md, and the crates of ARCHITECTURE.md, are those of the repository.

use crate::repository::{folder, metadata, none, read, root};
use std::collections::BTreeSet;

const LIST: &str = "docs/architecture/folders.md";
/// The bytes that the map stays below, so that a stranger reads it in 15 minutes.
const MAP: usize = 24 * 1024;

/// The list of folders: those at the top, and those of crates below them.
fn listed(text: &str) -> BTreeSet<String> {
    let section = text.split_once("\nArrows:").map_or("", |(section, _)| section);
    let (mut top, mut folders) = (String::new(), BTreeSet::new());
    for line in section.lines() {
        // Further lines of a description are indented deeper.
        let depth = line.len() - line.trim_start().len();
        let Some(name) = line.split_whitespace().next().and_then(|word| word.strip_suffix('/')) else { continue };
        match depth {
            4 => {
                top = name.to_owned();
                folders.insert(top.clone());
            }
            6 => _ = folders.insert(format!("{top}/{name}")),
            _ => {}
        }
    }
    folders
}

/// The crates in the table of the section *Folders*, as `shared/actor`.
fn mapped(text: &str) -> BTreeSet<String> {
    let section = text.split_once("\n## Folders\n").map_or("", |(_, rest)| rest);
    let section = section.split_once("\n## ").map_or("", |(section, _)| section);
    let rows = section.lines().filter_map(|line| line.strip_prefix("| `")?.split_once("/` | "));
    let names = |cells: &str| {
        let cell = cells.split('|').next().unwrap_or_default();
        cell.split('`').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>()
    };
    rows.flat_map(|(top, cells)| names(cells).into_iter().map(move |name| format!("{top}/{name}"))).collect()
}

#[test]
fn the_map_names_the_crates_of_the_list() {
    let listed = listed(&read(LIST)).into_iter().filter(|folder| folder.contains('/')).collect::<BTreeSet<_>>();
    let mapped = mapped(&read("ARCHITECTURE.md"));
    let faults = listed.symmetric_difference(&mapped).cloned().collect();
    none(faults, &format!("The table in the section Folders of ARCHITECTURE.md has to have the crates of {LIST}"));
}

#[test]
fn the_map_stays_short() {
    let bytes = read("ARCHITECTURE.md").len();
    assert!(bytes < MAP, "ARCHITECTURE.md has {bytes} bytes, {MAP} or more: move details to docs/architecture");
}

#[test]
fn the_architecture_names_every_crate_and_no_folder_that_is_gone() {
    let listed = listed(&read(LIST));
    assert!(listed.len() > 40, "the list was not read: {listed:?}");
    let gone = listed.iter().filter(|folder| !root().join(folder).is_dir()).map(|folder| format!("{folder} is gone"));
    let metadata = metadata();
    let crates =
        metadata.workspace_packages().into_iter().map(|package| folder(package).to_string_lossy().into_owned());
    let missing = crates.filter(|folder| !listed.contains(folder)).map(|folder| format!("{folder} is missing"));
    none(gone.chain(missing).collect(), &format!("{LIST} has to have a line per crate"));
}
