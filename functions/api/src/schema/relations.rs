//! How tags and links look.

use super::{FileInfo, FileKind};
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

/// The tags of a file after a change of its tags or links.
#[derive(Serialize, ToSchema)]
pub struct FileTags {
    /// The file.
    pub file_id: Uuid,
    /// Its path.
    pub path: String,
    /// All its tags, in order.
    pub tags: Vec<String>,
    /// False when all was so before.
    pub changed: bool,
}

/// A file or folder at the end of a link.
#[derive(Serialize, ToSchema)]
pub struct FileRef {
    /// Its identity.
    pub file_id: Uuid,
    /// Its path now.
    pub path: String,
    /// Its kind.
    pub kind: FileKind,
}

/// A link as one of its ends sees it.
#[derive(Serialize, ToSchema)]
pub struct Link {
    /// Its kind; `markdown` or `wiki` for one in a text.
    #[schema(example = "implements")]
    pub kind: String,
    /// The file at the other end; none where a text names something that is not there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<FileRef>,
    /// Of a link in a text: its target as it is written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// Of an explicit link: its author.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// Of an explicit link: the time at which it was made.
    #[schema(format = DateTime)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
}

/// The tags of a file and its links in both directions.
#[derive(Serialize, ToSchema)]
pub struct Relations {
    /// The file.
    pub file: FileRef,
    /// Its tags, in order.
    pub tags: Vec<String>,
    /// The links from it: explicit ones first, then those of its text, in their order.
    pub links: Vec<Link>,
    /// The links to it, by the path of the other file.
    pub backlinks: Vec<Link>,
    /// Whether there may be more links to it.
    pub truncated: bool,
}

/// A tag, and the number of files that have it.
#[derive(Serialize, ToSchema)]
pub struct TagCount {
    /// The tag.
    pub tag: String,
    /// The number of files and folders that have it.
    pub files: u64,
}

/// The tags of a workspace.
#[derive(Serialize, ToSchema)]
pub struct TagCounts {
    /// The tags, in order.
    pub tags: Vec<TagCount>,
    /// Whether only the first 10,000 pairs of a tag and a file were counted.
    pub truncated: bool,
}

/// A page of the files that have a tag.
#[derive(Serialize, ToSchema)]
pub struct TaggedPage {
    /// The files and folders, oldest identity first.
    pub files: Vec<FileInfo>,
    /// The cursor of the next page; none at the end.
    pub next_cursor: Option<String>,
}

/// The files around a file.
#[derive(Serialize, ToSchema)]
pub struct Network {
    /// The files, nearest first.
    pub nodes: Vec<NetworkNode>,
    /// The links of those files that are nearer than the depth, to files of the network.
    pub edges: Vec<NetworkEdge>,
    /// Whether there may be more files within the depth.
    pub truncated: bool,
}

/// A file of a network.
#[derive(Serialize, ToSchema)]
pub struct NetworkNode {
    /// Its identity.
    pub file_id: Uuid,
    /// Its path.
    pub path: String,
    /// Its kind.
    pub kind: FileKind,
    /// The number of links between it and the file that was asked for.
    pub distance: usize,
}

/// A link of a network.
#[derive(Serialize, ToSchema)]
pub struct NetworkEdge {
    /// The file at which it begins.
    pub from: Uuid,
    /// The file to which it leads.
    pub to: Uuid,
    /// Its kind; `markdown` or `wiki` for one in a text.
    pub kind: String,
}
