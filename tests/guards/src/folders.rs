//! The folders of ARCHITECTURE.md are those of the repository.

use crate::repository::{folder, metadata, none, read, root};
use std::collections::BTreeSet;

/// The folders in the section *Folders*: those at the top, and those of crates below them.
fn listed(text: &str) -> BTreeSet<String> {
    let section = text.split_once("\n## Folders\n").map_or("", |(_, rest)| rest);
    let section = section.split_once("\nArrows:").map_or("", |(section, _)| section);
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

#[test]
fn the_architecture_names_every_crate_and_no_folder_that_is_gone() {
    let listed = listed(&read("ARCHITECTURE.md"));
    assert!(listed.len() > 40, "the list was not read: {listed:?}");
    let gone = listed.iter().filter(|folder| !root().join(folder).is_dir()).map(|folder| format!("{folder} is gone"));
    let metadata = metadata();
    let crates =
        metadata.workspace_packages().into_iter().map(|package| folder(package).to_string_lossy().into_owned());
    let missing = crates.filter(|folder| !listed.contains(folder)).map(|folder| format!("{folder} is missing"));
    none(gone.chain(missing).collect(), "The section Folders of ARCHITECTURE.md has to have a line per crate");
}
