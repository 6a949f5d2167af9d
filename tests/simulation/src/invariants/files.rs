//! The invariants of files: their versions, and their copies on disk.

use super::{Held, Log, broken, events};
use domain::{CallId, ChatEvent, FileId};
use std::collections::{BTreeMap, BTreeSet};

/// A file as the index has it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct StoredFile {
    /// Its path.
    pub path: String,
    /// The digest of its content; none for a folder.
    pub digest: Option<String>,
}

/// A file as it is on disk.
pub type FileOnDisk = StoredFile;

/// A version: of which file, its number, and the call that made it.
pub type Versioned = (FileId, u64, Option<CallId>);

/// Each tool call that changed something did so once: it has at most one version, a version has at most one call, the
/// versions of a file count up by one, and a call that says it succeeded has its record.
///
/// `versions` are all versions of all files with the calls that made them; `records` are the calls that the workspace
/// remembers.
pub fn writes_took_effect_once(log: &Log, versions: &[Versioned], records: &[CallId]) -> Held {
    const NAME: &str = "writes_took_effect_once";
    let (mut calls, mut newest) = (BTreeSet::new(), BTreeMap::new());
    for (file, v, call) in versions {
        if let Some(call) = call
            && !calls.insert(*call)
        {
            return broken(NAME, format!("the call {call} made two versions"));
        }
        let before: u64 = newest.insert(*file, *v).unwrap_or(0);
        if *v != before + 1 {
            return broken(NAME, format!("version {v} of {file} follows version {before}"));
        }
    }
    let records: BTreeSet<CallId> = records.iter().copied().collect();
    for event in events(log) {
        let ChatEvent::Observed { call_id, tool, success: true, .. } = event else { continue };
        let writes = ["write", "edit", "mv", "rm", "plan_write", "plan_update_step"].contains(&tool.as_str());
        if writes && !records.contains(call_id) {
            return broken(NAME, format!("{tool} {call_id} says that it was done, and was not"));
        }
    }
    Ok(())
}

/// `latest/` has exactly the files and folders of the index, with their contents.
pub fn latest_agrees_with_the_index(index: &BTreeSet<StoredFile>, disk: &BTreeSet<FileOnDisk>) -> Held {
    const NAME: &str = "latest_agrees_with_the_index";
    if let Some(lost) = index.difference(disk).next() {
        return broken(NAME, format!("{lost:?} is not on disk"));
    }
    match disk.difference(index).next() {
        None => Ok(()),
        Some(stray) => broken(NAME, format!("{stray:?} is on disk and not in the index")),
    }
}
