//! The data of a workspace: what the index keeps and what callers get.

use bytes::Bytes;
use domain::{CallId, FileId, FilePath, Principal, Sha256, Timestamp, WorkspaceEvent, WorkspaceId};
use serde::{Deserialize, Serialize};

pub use domain::{FileKind as Kind, FileOp as Op};

/// What is current under one name of one folder; the body of the index's entry.
///
/// What is current is written anew as a whole: who does not know a field would take it away, and leaves it alone instead.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Entry {
    pub file_id: FileId,
    pub kind: Kind,
    /// The current version, from 1; 0 for what has none.
    pub v: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<Sha256>,
    pub size: u64,
    pub author: String,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

impl Entry {
    pub(crate) fn info(&self, path: FilePath) -> Info {
        Info {
            file_id: self.file_id,
            name: path.name().into(),
            path,
            kind: self.kind,
            v: self.v,
            sha256: self.sha256,
            size: self.size,
            author: self.author.clone(),
            created_at: self.created_at,
            updated_at: self.updated_at,
        }
    }
}

/// Where a file or folder is; only while it is not in the trash. Its existence is what makes a folder a place to put
/// things into.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Node {
    /// None for the root.
    pub folder: Option<FileId>,
    pub name: String,
}

/// A file or folder as it is now.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Info {
    /// Its identity; survives moves and new versions.
    pub file_id: FileId,
    /// Where it is.
    pub path: FilePath,
    /// The last name of the path; empty for the root.
    pub name: String,
    /// What it is.
    pub kind: Kind,
    /// Its current version, from 1; 0 for folders and projections.
    pub v: u64,
    /// The SHA-256 of its content; none for folders and projections.
    pub sha256: Option<Sha256>,
    /// The length of its content in bytes; 0 for folders.
    pub size: u64,
    /// Who wrote the current version.
    pub author: String,
    /// When it was made.
    pub created_at: Timestamp,
    /// When its current version was written; for a folder, when it was made.
    pub updated_at: Timestamp,
}

/// A content with what it is the content of.
#[derive(Clone, Debug, PartialEq)]
pub struct Content {
    /// The file, in the version that `bytes` is of. For a projection `size` and `sha256` are those of the content now.
    pub info: Info,
    /// The content, or the part that was asked for.
    pub bytes: Bytes,
}

/// One version of a file; never changes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Version {
    /// Counts from 1.
    pub v: u64,
    /// The SHA-256 of the content.
    pub sha256: Sha256,
    /// The length of the content in bytes.
    pub size: u64,
    /// Who wrote it.
    pub author: String,
    /// When.
    pub at: Timestamp,
    /// The tool call that wrote it, if one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call_id: Option<CallId>,
}

/// What is in the trash.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Trashed {
    /// The file or folder as it was, with its old path.
    pub info: Info,
    /// Who removed it.
    pub by: String,
    /// When.
    pub at: Timestamp,
}

/// What one operation did: its result, what is remembered under its call id, what the repair replays, and what a
/// `file_updated` event is made of.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// What was done.
    pub op: Op,
    /// Where it is now, or was last.
    pub path: FilePath,
    /// Where it was before, for [`Op::Moved`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<FilePath>,
    /// Which file or folder.
    pub file_id: FileId,
    /// What it is.
    pub kind: Kind,
    /// Its version; 0 for folders, projections and what was removed.
    pub v: u64,
    /// The SHA-256 of its content, where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<Sha256>,
    /// The length of its content in bytes.
    pub size: u64,
    /// Who did it.
    pub author: String,
    /// When.
    pub at: Timestamp,
}

impl Change {
    /// The event that tells clients of it.
    pub fn event(&self) -> WorkspaceEvent {
        WorkspaceEvent::FileUpdated {
            path: self.path.clone(),
            v: self.v,
            file_id: self.file_id,
            kind: self.kind,
            op: self.op,
            from: self.from.clone(),
            author: self.author.clone(),
            at: self.at,
        }
    }

    pub(crate) fn of(op: Op, entry: &Entry, path: FilePath, writer: &Writer, at: Timestamp) -> Self {
        Self {
            op,
            path,
            from: None,
            file_id: entry.file_id,
            kind: entry.kind,
            v: entry.v,
            sha256: entry.sha256,
            size: entry.size,
            author: writer.principal.to_string(),
            at,
        }
    }
}

/// Who does something, and under which tool call.
#[derive(Clone, Debug, PartialEq)]
pub struct Writer {
    /// Who.
    pub principal: Principal,
    /// The tool call; the same call again has no further effect and gives the same result.
    pub call: Option<CallId>,
    /// Whether projections may be moved and removed, too: for those that nothing keeps, such as the file of a chat that is deleted.
    pub may_take_projections: bool,
}

impl Writer {
    /// `principal`, outside of any tool call.
    pub fn new(principal: Principal) -> Self {
        let may_take_projections = principal == Principal::System;
        Self { principal, call: None, may_take_projections }
    }
    /// `principal`, under a tool call.
    pub fn in_call(principal: Principal, call: CallId) -> Self {
        Self { call: Some(call), ..Self::new(principal) }
    }
}

impl From<Principal> for Writer {
    fn from(principal: Principal) -> Self {
        Self::new(principal)
    }
}

/// What a writer expects to find; if it does not hold, nothing is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// Whatever is there: the last writer wins.
    Any,
    /// The file with this identity, in whatever version: the last writer wins, and no other file that is at its path by now is
    /// written to. Else `STALE_VERSION`.
    File(FileId),
    /// Nothing; else `CONFLICT`.
    Absent,
    /// This version; else `STALE_VERSION`.
    Version(u64),
    /// This content; else `STALE_VERSION`, with what changed since.
    Hash(Sha256),
}

/// A page of a folder.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Listing {
    /// What is in the folder, by name.
    pub entries: Vec<Info>,
    /// Where the next page begins; none at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// A page of a file's versions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct VersionPage {
    /// The versions, newest first.
    pub versions: Vec<Version>,
    /// Where the next page begins; none at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// A page of the trash.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TrashPage {
    /// What is in the trash, oldest identity first.
    pub files: Vec<Trashed>,
    /// Where the next page begins; none at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// A workspace as lists show it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkspaceInfo {
    /// Its id.
    pub workspace_id: WorkspaceId,
    /// Its name, for people.
    pub name: String,
    /// Who made it.
    pub owner: domain::UserId,
    /// When.
    pub created_at: Timestamp,
}

/// A page of workspaces.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WorkspacePage {
    /// The workspaces, oldest first.
    pub workspaces: Vec<WorkspaceInfo>,
    /// Where the next page begins; none at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// What a repair did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Repaired {
    /// Paths compared with the index.
    pub checked: u64,
    /// Paths that were wrong on disk and were put right.
    pub fixed: u64,
    /// Whether `latest/` or its mark was missing, so that everything was compared.
    pub rebuilt: bool,
}

impl std::ops::AddAssign for Repaired {
    fn add_assign(&mut self, other: Self) {
        self.checked += other.checked;
        self.fixed += other.fixed;
        self.rebuilt |= other.rebuilt;
    }
}
