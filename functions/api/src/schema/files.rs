//! How workspaces, files and versions look.

use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

/// The address to send a content to or to read it from, apart from other requests.
#[derive(Serialize, ToSchema)]
pub struct Transfer {
    /// The request; none for a short content, which comes and goes with a request for its file, and for an upload of which no part is missing.
    pub request: Option<TransferRequest>,
    /// How far an upload in parts has come; none for any other transfer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parts: Option<UploadProgress>,
    /// From when on it is void.
    #[schema(format = DateTime)]
    pub expires_at: String,
}

/// How far an upload in parts has come.
#[derive(Serialize, ToSchema)]
pub struct UploadProgress {
    /// How many bytes of the content are there.
    pub received: u64,
    /// The part that the request brings; none when the content is whole and durable.
    pub next: Option<UploadPart>,
}

/// A part of a content.
#[derive(Serialize, ToSchema)]
pub struct UploadPart {
    /// Where it begins in the content, in bytes.
    pub from: u64,
    /// Its length in bytes.
    pub size: u64,
}

/// A request to be sent as it is, without a token.
#[derive(Serialize, ToSchema)]
pub struct TransferRequest {
    /// `GET` or `PUT`.
    pub method: String,
    /// An absolute URL, or a path on this server. A secret until it expires.
    pub url: String,
    /// The headers that must be sent as they are.
    pub headers: std::collections::BTreeMap<String, String>,
}

/// A workspace.
#[derive(Serialize, ToSchema)]
pub struct Workspace {
    /// Its id.
    pub workspace_id: Uuid,
    /// Its name.
    pub name: String,
    /// Its creator.
    pub owner: Uuid,
    /// The time of the creation.
    #[schema(format = DateTime)]
    pub created_at: String,
}

/// A page of workspaces.
#[derive(Serialize, ToSchema)]
pub struct WorkspacePage {
    /// The workspaces, in a page the oldest first.
    pub workspaces: Vec<Workspace>,
    /// The cursor of the next page; none at the end.
    pub next_cursor: Option<String>,
}

/// The kind of something in a workspace.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum FileKind {
    /// A file with versions.
    File,
    /// A folder.
    Folder,
    /// A file whose history is kept elsewhere, such as a chat's: it has an identity, but no versions.
    Projection,
}

/// A file or folder as it is now.
#[derive(Serialize, ToSchema)]
pub struct FileInfo {
    /// Its identity; survives moves and new versions.
    pub file_id: Uuid,
    /// Its path.
    pub path: String,
    /// The last name of the path.
    pub name: String,
    /// Its kind.
    pub kind: FileKind,
    /// Its current version, from 1; 0 for folders and projections, which have none.
    pub v: u64,
    /// The SHA-256 of its content, where it has versions.
    pub sha256: Option<String>,
    /// The length of its content in bytes.
    pub size: u64,
    /// The author of the current version.
    pub author: String,
    /// When it was made.
    #[schema(format = DateTime)]
    pub created_at: String,
    /// When its current version was written.
    #[schema(format = DateTime)]
    pub updated_at: String,
    /// Of a document: the conversion of its current version to Markdown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conversion: Option<Conversion>,
    /// Of the Markdown of a document, and of an attachment of a message or their folder: that document. An attachment has a conversion of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub derived_from: Option<Uuid>,
}

/// The progress of a conversion.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ConversionStatus {
    /// It waits for a worker.
    Queued,
    /// A worker converts it.
    Running,
    /// The Markdown is there.
    Done,
    /// The document cannot be converted; the reason says why.
    Failed,
    /// There is nothing to convert; the reason says why.
    Skipped,
}

/// The conversion of the current version of a document.
#[derive(Serialize, ToSchema)]
pub struct Conversion {
    /// Its progress.
    pub status: ConversionStatus,
    /// Why it failed or was skipped, for programs, such as `encrypted`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The same for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The file with the Markdown. Until the status is `done` it is that of an earlier version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub markdown: Option<Uuid>,
    /// The folder with the attachments of a message. Until the status is `done` they are those of an earlier version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attachments: Option<Uuid>,
    /// Whether it is a document because a message of a chat has it attached, and not because it lies under `/data`; left out where it is not.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub attached: bool,
}

/// A page of a folder.
#[derive(Serialize, ToSchema)]
pub struct FilePage {
    /// Its entries, by name.
    pub entries: Vec<FileInfo>,
    /// The cursor of the next page; none at the end.
    pub next_cursor: Option<String>,
}

/// A kind of change.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum FileOp {
    /// A folder, or a file whose history is kept elsewhere, was made.
    Made,
    /// A version was written, or was current already.
    Written,
    /// It has another path.
    Moved,
    /// It is in the trash.
    Removed,
    /// It came back from the trash.
    Restored,
    /// It is gone for good.
    Purged,
    /// Its conversion to Markdown has another status; its content is the same.
    Converted,
    /// It has other tags or explicit links; its content is the same.
    Marked,
}

/// The effect of a command on a file or folder.
#[derive(Serialize, ToSchema)]
pub struct Change {
    /// The kind of change.
    pub op: FileOp,
    /// Its path now, or its last one.
    pub path: String,
    /// The path before a move.
    pub from: Option<String>,
    /// The file or folder.
    pub file_id: Uuid,
    /// Its kind.
    pub kind: FileKind,
    /// Its version; 0 for folders and for removed files.
    pub v: u64,
    /// The SHA-256 of its content, where it has one.
    pub sha256: Option<String>,
    /// The length of its content in bytes.
    pub size: u64,
    /// The author of the change.
    pub author: String,
    /// The time of the change.
    #[schema(format = DateTime)]
    pub at: String,
    /// Of a document: its conversion to Markdown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conversion: Option<Conversion>,
}

/// A change in a list of changes.
#[derive(Serialize, ToSchema)]
pub struct ChangeRecord {
    /// The id of its record: `as_of` of a rewind takes it.
    pub id: Uuid,
    /// The kind of change.
    pub op: FileOp,
    /// Its path then, or its last one.
    pub path: String,
    /// The path before a move.
    pub from: Option<String>,
    /// The file or folder.
    pub file_id: Uuid,
    /// Its kind.
    pub kind: FileKind,
    /// Its version after the change; 0 for folders and for removed files.
    pub v: u64,
    /// The author of the change.
    pub author: String,
    /// The time of the change.
    #[schema(format = DateTime)]
    pub at: String,
    /// The rewind that it is a part of.
    pub rewind: Option<Uuid>,
}

/// A page of changes.
#[derive(Serialize, ToSchema)]
pub struct ChangeList {
    /// The changes, newest first.
    pub changes: Vec<ChangeRecord>,
    /// The time since which all changes are kept.
    #[schema(format = DateTime)]
    pub kept_since: String,
    /// The cursor of the next page; none at the end.
    pub next_cursor: Option<String>,
}

/// One version of a file.
#[derive(Serialize, ToSchema)]
pub struct Version {
    /// Counts from 1.
    pub v: u64,
    /// The SHA-256 of the content.
    pub sha256: String,
    /// The length of the content in bytes.
    pub size: u64,
    /// The author of the version.
    pub author: String,
    /// The time of the write.
    #[schema(format = DateTime)]
    pub at: String,
    /// The tool call that wrote it, if one did.
    pub call_id: Option<Uuid>,
}

/// A page of versions.
#[derive(Serialize, ToSchema)]
pub struct VersionPage {
    /// The versions, newest first.
    pub versions: Vec<Version>,
    /// The cursor of the next page; none at the end.
    pub next_cursor: Option<String>,
}

/// The differences between two versions.
#[derive(Serialize, ToSchema)]
pub struct Diff {
    /// The older version.
    pub from: u64,
    /// The newer version.
    pub to: u64,
    /// A unified diff, capped; null when either is not a text, or too long.
    pub diff: Option<String>,
}

/// Something in the trash.
#[derive(Serialize, ToSchema)]
pub struct TrashEntry {
    /// As it was, with its old path.
    pub info: FileInfo,
    /// The person or agent who removed it.
    pub by: String,
    /// The time of the removal.
    #[schema(format = DateTime)]
    pub at: String,
}

/// A page of the trash.
#[derive(Serialize, ToSchema)]
pub struct TrashPage {
    /// A page of the trash.
    pub files: Vec<TrashEntry>,
    /// The cursor of the next page; none at the end.
    pub next_cursor: Option<String>,
}
