//! An entry of the trash: its item in the table, and its place on disk.

use crate::{Result, Trashed, model::Entry};
use domain::{FileId, FilePath};
use serde::{Deserialize, Serialize};

/// The body of an item of the trash.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Item {
    pub path: FilePath,
    pub entry: Entry,
    pub by: String,
    pub at: domain::Timestamp,
    /// Whether its removal for good has begun, so that some of it may be gone: it does not come back.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_going: bool,
}

impl Item {
    pub fn trashed(self) -> Trashed {
        Trashed { info: self.entry.info(self.path), by: self.by, at: self.at }
    }
}

/// The path on disk of an entry of the trash.
pub(crate) fn place(file_id: FileId) -> Result<FilePath> {
    Ok(FilePath::parse(&format!("/{file_id}"))?)
}
