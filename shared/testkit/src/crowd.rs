//! The promise of a workspace to several writers of one folder: every write is a version, or a refusal that its writer saw; nothing is torn, and
//! nothing is lost.

use bytes::Bytes;
use domain::{Code, FileId, Sha256};
use std::collections::{BTreeMap, BTreeSet};

/// An attempt, as its writer saw it.
#[derive(Clone, Debug)]
pub struct Attempt {
    /// The writer, by the name that their versions have in [`HistoryVersion::author`].
    pub by: String,
    /// The version that the writer had read, if the write was made under it.
    pub base: Option<(FileId, u64)>,
    /// The content of the version that it would make; none for a move, a removal, and an edit that was refused.
    pub content: Option<Bytes>,
    /// The version that it made, or the file that it moved and its version; else the code of the refusal.
    pub outcome: Result<(FileId, u64), Code>,
}

/// A version in the history, with its content.
#[derive(Clone, Debug)]
pub struct HistoryVersion {
    /// Its number, from 1.
    pub v: u64,
    /// Its writer.
    pub author: String,
    /// The digest that the history says.
    pub sha256: Sha256,
    /// The size in bytes that the history says.
    pub size: u64,
    /// The content.
    pub content: Bytes,
}

/// All versions of each file, the first one first.
pub type Histories = BTreeMap<FileId, Vec<HistoryVersion>>;

/// The faults of a history, given the answers that the writers saw. None, if the workspace keeps its promise. No two attempts may have the
/// same content.
pub fn faults(attempts: &[Attempt], histories: &Histories) -> Vec<String> {
    let mut faults = Vec::new();
    let mut claimed = BTreeSet::new();
    for Attempt { by, base, content, outcome } in attempts {
        match outcome {
            Ok((file, v)) => {
                let Some(content) = content else { continue };
                match histories.get(file).and_then(|all| all.get(usize::try_from(*v).ok()?.checked_sub(1)?)) {
                    None => faults.push(format!("lost: version {v} of {file} was acknowledged")),
                    Some(kept) => {
                        let is_mine = kept.author == *by && kept.content == *content;
                        if !is_mine || kept.v != *v {
                            faults.push(format!("torn: version {v} of {file} is another one"));
                        }
                    }
                }
                if !claimed.insert((*file, *v)) {
                    faults.push(format!("two writers have version {v} of {file}"));
                }
                if let Some((read, before)) = base
                    && (*read, before + 1) != (*file, *v)
                {
                    faults.push(format!("overwritten: version {v} was written over another one than was read"));
                }
            }
            Err(code) => {
                if !matches!(code, Code::StaleVersion | Code::Conflict | Code::NotFound) {
                    faults.push(format!("a refusal that is none: {code}"));
                }
                let is_there = |content: &Bytes| histories.values().flatten().any(|kept| kept.content == *content);
                if content.as_ref().is_some_and(is_there) {
                    faults.push(format!("a write of {by} was refused and is there"));
                }
            }
        }
    }
    for (file, versions) in histories {
        for (kept, number) in versions.iter().zip(1..) {
            if kept.v != number {
                faults.push(format!("a gap: version {} of {file} is in the place of {number}", kept.v));
            }
            if Sha256::of(&kept.content) != kept.sha256 || kept.content.len() as u64 != kept.size {
                faults.push(format!("torn: the content of version {} of {file}", kept.v));
            }
            if !claimed.contains(&(*file, kept.v)) {
                faults.push(format!("nobody wrote version {} of {file}", kept.v));
            }
        }
    }
    faults
}
