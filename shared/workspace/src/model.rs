//! The data of a workspace: items of the index and results for callers.

use bytes::Bytes;
use domain::{CallId, Conversion, FileId, FilePath, Principal, Sha256, Timestamp, WorkspaceEvent, WorkspaceId};
use serde::{Deserialize, Serialize};

pub use domain::{FileKind, FileOp as Op};

/// The current entry under one name of one folder; the body of the index's item.
///
/// An entry is always rewritten as a whole: a version that does not know a field would drop it, so it refuses the entry instead.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Entry {
    pub file_id: FileId,
    pub kind: FileKind,
    /// The current version, from 1; 0 for folders and projections.
    pub v: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<Sha256>,
    pub size: u64,
    pub author: String,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    /// Of a document: the conversion of the current version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversion: Option<Conversion>,
    /// Of the Markdown of a document, and of an attachment of a message or their folder: that document.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub derived_from: Option<FileId>,
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
            conversion: self.conversion.clone(),
            derived_from: self.derived_from,
        }
    }
}

/// A change of the marks of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mark {
    /// It gets these tags.
    Tag(Vec<String>),
    /// It loses these tags.
    Untag(Vec<String>),
    /// It gets a link of this kind to another file.
    Link(FileId, String),
    /// It loses that link.
    Unlink(FileId, String),
}

/// The place of a file or folder; only while it is not in the trash. A folder takes entries only while it has a node.
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
    /// Its path.
    pub path: FilePath,
    /// The last name of the path; empty for the root.
    pub name: String,
    /// Its kind.
    pub kind: FileKind,
    /// Its current version, from 1; 0 for folders and projections.
    pub v: u64,
    /// The SHA-256 of its content; none for folders and projections.
    pub sha256: Option<Sha256>,
    /// The length of its content in bytes; 0 for folders.
    pub size: u64,
    /// The principal that wrote the current version.
    pub author: String,
    /// When it was made.
    pub created_at: Timestamp,
    /// When its current version was written; for a folder, when it was made.
    pub updated_at: Timestamp,
    /// Of a document: the conversion of its current version to Markdown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversion: Option<Conversion>,
    /// Of the Markdown of a document, and of an attachment of a message or their folder: that document.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub derived_from: Option<FileId>,
}

impl Info {
    /// The document that it is the Markdown of. Listings leave such a file out unless they are asked for it. An attachment of a message is derived,
    /// too, but is a document itself.
    pub fn document(&self) -> Option<FileId> {
        self.derived_from.filter(|_| self.kind == FileKind::File && self.conversion.is_none())
    }
}

/// The content of a file, with the file's entry.
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
    /// The principal that wrote it.
    pub author: String,
    /// The time of the write.
    pub at: Timestamp,
    /// The tool call that wrote it, if one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call_id: Option<CallId>,
}

/// An entry of the trash.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Trashed {
    /// The file or folder as it was, with its old path.
    pub info: Info,
    /// The principal that removed it.
    pub by: String,
    /// The time of the removal.
    pub at: Timestamp,
}

/// The effect of one operation: its result, remembered under its call id, replayed by the repair, and the source of a `file_updated` event.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// The kind of change.
    pub op: Op,
    /// Its path now, or its last one.
    pub path: FilePath,
    /// Its path before, for [`Op::Moved`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<FilePath>,
    /// The file or folder.
    pub file_id: FileId,
    /// The kind of entry.
    pub kind: FileKind,
    /// Its version; 0 for folders, projections and removed entries.
    pub v: u64,
    /// The SHA-256 of its content, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<Sha256>,
    /// The length of its content in bytes.
    pub size: u64,
    /// The principal that made the change.
    pub author: String,
    /// The time of the change.
    pub at: Timestamp,
    /// Of a document: its conversion after the change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversion: Option<Conversion>,
    /// The change of its tags or explicit links, for [`Op::Marked`]: what is really other than before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mark: Option<Mark>,
    /// The rewind that it is a part of: all its changes count as one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rewind: Option<uuid::Uuid>,
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
            conversion: self.conversion.clone(),
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
            conversion: entry.conversion.clone(),
            mark: None,
            rewind: writer.rewind,
        }
    }
}

/// The author of a change, and its tool call.
#[derive(Clone, Debug, PartialEq)]
pub struct Writer {
    /// The author.
    pub principal: Principal,
    /// The tool call, by which a rewind finds the change.
    pub call: Option<CallId>,
    /// The idempotency key: the same change under it has no further effect and gives the same result. It is the id of the call for a change that is the
    /// whole effect of its call. A part of a call has one of its own, or none: without one a content that is current makes no version.
    pub key: Option<CallId>,
    /// Whether projections may be moved and removed, too: for those that nothing keeps, such as the file of a chat that is deleted.
    pub may_take_projections: bool,
    /// The rewind that the change is a part of.
    pub rewind: Option<uuid::Uuid>,
    /// Whether its author may run flows: of an author who may not, no version starts one.
    pub may_run: bool,
    /// The document of which a converter writes the Markdown or an attachment, or makes the folder for them. A write without it makes the file an ordinary one.
    pub derived_from: Option<FileId>,
    /// Whether it writes attachments: documents, which are converted themselves.
    pub attaches: bool,
}

impl Writer {
    /// `principal`, outside of any tool call.
    pub fn new(principal: Principal) -> Self {
        let may_take_projections = principal == Principal::System;
        Self {
            principal,
            call: None,
            key: None,
            may_take_projections,
            rewind: None,
            may_run: true,
            derived_from: None,
            attaches: false,
        }
    }
    /// `principal`, under a tool call of which the change is the whole effect.
    pub fn in_call(principal: Principal, call: CallId) -> Self {
        Self { call: Some(call), key: Some(call), ..Self::new(principal) }
    }
}

impl From<Principal> for Writer {
    fn from(principal: Principal) -> Self {
        Self::new(principal)
    }
}

/// The precondition of a write; if it does not hold, nothing is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// None: the last writer wins.
    Any,
    /// The file with this identity, in any version: the last writer wins, but a different file that took its path meanwhile is not overwritten. Else
    /// `STALE_VERSION`.
    File(FileId),
    /// Nothing; else `CONFLICT`.
    Absent,
    /// The file with this identity in this version, and nothing else; else `STALE_VERSION`.
    Exactly(FileId, u64),
    /// This version; else `STALE_VERSION`.
    Version(u64),
    /// This content; else `STALE_VERSION`, with the changes since.
    Hash(Sha256),
}

/// A page of a folder.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Listing {
    /// The entries of the folder, by name.
    pub entries: Vec<Info>,
    /// The cursor of the next page; none at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// A page of a file's versions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct VersionPage {
    /// The versions, newest first.
    pub versions: Vec<Version>,
    /// The cursor of the next page; none at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// A page of the trash.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TrashPage {
    /// The entries of the trash, oldest identity first.
    pub files: Vec<Trashed>,
    /// The cursor of the next page; none at the end.
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
    /// The user who made it.
    pub owner: domain::UserId,
    /// The time of the creation.
    pub created_at: Timestamp,
}

/// A text of policies that is in force.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct InForce {
    pub path: FilePath,
    pub sha256: Sha256,
    pub size: u64,
}

/// The item of a workspace: its metadata, and its policies in force.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Record {
    pub workspace_id: WorkspaceId,
    pub name: String,
    pub owner: domain::UserId,
    pub created_at: Timestamp,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub policies: Vec<InForce>,
}

impl Record {
    pub(crate) fn info(self) -> WorkspaceInfo {
        let Self { workspace_id, name, owner, created_at, policies: _ } = self;
        WorkspaceInfo { workspace_id, name, owner, created_at }
    }
}

/// A page of workspaces.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WorkspacePage {
    /// The workspaces, by their ids.
    pub workspaces: Vec<WorkspaceInfo>,
    /// The cursor of the next page; none at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// The counts of a repair.
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
