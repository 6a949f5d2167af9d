//! The layout of an archive, version 2. All entries are regular files, in this order:
//!
//! | entry | has |
//! |---|---|
//! | `buildscale-workspace.json` | a [`Manifest`] |
//! | `files/00000001.jsonl`, … | a [`Row`] a line: a folder stands before the entries in it, a file before its versions, from the first one on; the marks and the mentions of both after all of them |
//! | `contents/ab/abcd…` | the content with this SHA-256, once, after a version that has it |
//! | `end.json` | a [`Count`] of all that came |
//!
//! A damaged row or content of the workspace has a [`Row::Missing`] in its place. Those of contents come after the contents.
//!
//! Files of rows and contents may alternate. A program that does not know the format's number refuses the archive. Version 1 has neither marks nor mentions, and is read, too.

use crate::mentions::Form;
use domain::{CallId, FileId, FilePath, Sha256, Timestamp, WorkspaceId};
use serde::{Deserialize, Serialize};

/// The number of the format.
pub(super) const FORMAT: u64 = 2;
/// The number of the format without marks and mentions.
pub(super) const BARE: u64 = 1;
pub(super) const MANIFEST: &str = "buildscale-workspace.json";
pub(super) const END: &str = "end.json";
pub(super) const ROWS: &str = "files/";
pub(super) const CONTENTS: &str = "contents/";
/// How long a file of rows is, in bytes, and how long it may be. A row is far shorter.
pub(super) const ROWS_LENGTH: usize = 256 * 1024;
pub(super) const MOST_ROWS: u64 = 1024 * 1024;

/// The first entry.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Manifest {
    pub format: u64,
    /// The version of the program that wrote it.
    pub program: String,
    pub name: String,
    pub workspace_id: WorkspaceId,
    pub made_at: Timestamp,
}

/// One line of a file of rows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum Row {
    Folder {
        path: FilePath,
        author: String,
        created_at: Timestamp,
    },
    File {
        path: FilePath,
        file_id: FileId,
        created_at: Timestamp,
    },
    Version(Written),
    /// The tags and the explicit links of a file or folder.
    Marks {
        path: FilePath,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        tags: Vec<String>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        links: Vec<LinkRow>,
    },
    /// The links and the tags in the text of a version.
    Mentions {
        path: FilePath,
        v: u64,
        links: Vec<MentionRow>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        tags: Vec<String>,
    },
    /// Something that the archive lacks, because the workspace has no good copy of it.
    Missing(Missing),
}

/// Data that the archive lacks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Missing {
    /// The file or folder. Without a version, either it is missing itself, or its tags and links are.
    pub path: FilePath,
    /// The version of the file. Without a digest, all versions between the one before it in the archive and this one are missing, and this one, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub v: Option<u64>,
    /// The digest of the content that is missing, in this version and in all others that have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<Sha256>,
}

/// An explicit link to something in the archive.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LinkRow {
    pub to: FilePath,
    pub kind: String,
    pub by: String,
    pub at: Timestamp,
}

/// A link in a text, with the file in the archive that it means.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct MentionRow {
    pub form: Form,
    pub target: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<FilePath>,
}

/// A version of the file that came before.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Written {
    pub v: u64,
    pub sha256: Sha256,
    pub size: u64,
    pub author: String,
    pub at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call_id: Option<CallId>,
}

/// The counts of an archive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Count {
    pub folders: u64,
    pub files: u64,
    pub versions: u64,
    pub contents: u64,
    /// Files and folders with marks, and texts with mentions.
    #[serde(default)]
    pub relations: u64,
    /// The bytes of the contents.
    pub bytes: u64,
    /// Files that the party of the export may not read.
    #[serde(default)]
    pub left_out: u64,
    /// The rows about missing data.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub missing: u64,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

pub(super) fn rows_name(number: u64) -> String {
    format!("{ROWS}{number:08}.jsonl")
}

pub(super) fn content_name(digest: Sha256) -> String {
    let digest = digest.to_string();
    format!("{CONTENTS}{}/{digest}", digest.get(..2).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use testkit::golden;
    use uuid::Uuid;

    const AT: Timestamp = Timestamp::from_millis(1_767_225_600_042);

    #[test]
    fn golden_the_layout_of_archives() {
        let id = Uuid::from_u128(0x019b_f537_f228_7cd3_aa1c_0000_0000_0001);
        let path = || FilePath::parse("/projects/demo").unwrap_or_else(|_| FilePath::root());
        let (author, sha256) = ("agent:assistant".to_owned(), Sha256::of(b"text"));
        let call_id = Some(CallId(id));
        let rows = vec![
            Row::Folder { path: path(), author: author.clone(), created_at: AT },
            Row::File { path: path(), file_id: FileId(id), created_at: AT },
            Row::Version(Written { v: 1, sha256, size: 4, author: author.clone(), at: AT, call_id }),
            Row::Marks {
                path: path(),
                tags: vec!["open".into()],
                links: vec![LinkRow { to: path(), kind: "implements".into(), by: author, at: AT }],
            },
            Row::Mentions {
                path: path(),
                v: 1,
                links: vec![MentionRow { form: Form::Wiki, target: "demo".into(), to: Some(path()) }],
                tags: vec!["open".into()],
            },
            Row::Missing(Missing { path: path(), v: Some(1), sha256: Some(sha256) }),
        ];
        golden::check(env!("CARGO_MANIFEST_DIR"), "archive_rows", &rows);
        let (program, name) = ("0.1.0".to_owned(), "demo".to_owned());
        let manifest = Manifest { format: FORMAT, program, name, workspace_id: WorkspaceId(id), made_at: AT };
        golden::check(env!("CARGO_MANIFEST_DIR"), "archive_manifests", &manifest);
        let count =
            Count { folders: 1, files: 2, versions: 3, contents: 4, relations: 7, bytes: 5, left_out: 6, missing: 8 };
        golden::check(env!("CARGO_MANIFEST_DIR"), "archive_counts", &count);
    }
}
