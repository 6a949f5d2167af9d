//! Every way to a path asks the policies: a workspace is opened for a party, and the places that open it as BuildScale itself, where nothing is
//! decided, are listed here with their reasons.

use crate::repository::{none, rust_files};
use std::collections::BTreeMap;

/// The files that open a workspace as BuildScale itself, how often, and why nothing is decided there.
const PLATFORM: &[(&str, usize, &str)] = &[
    ("functions/hub/src/backup/make.rs", 1, "a backup has everything; the operator makes it"),
    ("shared/chat/src/commands.rs", 1, "the file of a new chat, at the path that its id gives"),
    ("shared/chat/src/delete.rs", 1, "the file of a deleted chat, at the path that its id gives"),
    ("shared/chat/src/fork.rs", 1, "the file of a fork, at the path that its id gives"),
    (
        "shared/chat/src/perform.rs",
        2,
        "the plan that a person approved is compared by its id and not shown; a command is ended by its id",
    ),
    (
        "shared/chat/src/team/look.rs",
        1,
        "the claims of an agent that has ended are freed, also where its persona may not write",
    ),
    ("shared/chat/src/transcript.rs", 4, "the file of a chat follows its log"),
    ("shared/documents/src/lib.rs", 1, "the Markdown of a document is beside it, under the same policies"),
    ("shared/engine/src/artifact/flush.rs", 1, "artifacts are read with the history of their task"),
    ("shared/engine/src/flows.rs", 4, "manifests of flows are of everybody, and a worker reads them without a caller"),
    (
        "shared/engine/src/handoff/driver.rs",
        1,
        "a version is compared with triggers; one that not everybody may read starts nothing",
    ),
    ("shared/engine/src/perform/clear.rs", 1, "the artifacts of a deleted task"),
    ("shared/engine/src/perform/command.rs", 1, "a command is ended by its id"),
    (
        "shared/evaluation/src/case.rs",
        2,
        "the workspace of a case is made by its evaluation, and nobody else is in it; golden files are written in the folder of their flow alone",
    ),
    ("shared/evaluation/src/drive.rs", 1, "reports of evaluations, at the path that the id gives"),
    ("shared/search/src/lib.rs", 1, "an index has all texts; each result is asked for with the handle of its caller"),
    ("shared/workspace/src/homes.rs", 1, "the home of a new member, at the path that their id gives"),
    ("shared/workspace/src/retention.rs", 1, "what is old in the trash is purged for all"),
];

/// Code that is not a test.
fn is_product(path: &str) -> bool {
    (path.starts_with("shared/") || path.starts_with("functions/"))
        && path.contains("/src/")
        && !path.ends_with("tests.rs")
        && !path.starts_with("shared/testkit/")
        && path != "shared/workspace/src/party.rs"
}

#[test]
fn nothing_is_opened_past_the_policies_but_for_a_reason_that_is_listed() {
    let mut found = BTreeMap::new();
    for (path, text) in rust_files("").into_iter().filter(|(path, _)| is_product(path)) {
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        let times = code.matches("Access::platform(").count();
        if times > 0 {
            found.insert(path, times);
        }
    }
    let listed: BTreeMap<String, usize> =
        PLATFORM.iter().map(|(path, times, _)| ((*path).to_owned(), *times)).collect();
    let mut faults = Vec::new();
    for (path, times) in &found {
        match listed.get(path) {
            Some(expected) if expected == times => {}
            Some(expected) => faults.push(format!("{path}: {times} times, {expected} are listed")),
            None => faults.push(format!("{path}: open it for a principal, or list it here with the reason")),
        }
    }
    let gone = listed.keys().filter(|path| !found.contains_key(*path));
    faults.extend(gone.map(|path| format!("{path}: opens nothing as BuildScale itself; take it off the list")));
    none(faults, "A workspace is opened for the party that asks (`workspace::Access::of`)");
}
