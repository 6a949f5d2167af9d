//! Files and folders of a rewind: where each is now, where it goes back to, and why it does not.

use super::place::EntryPlace;
use crate::FileKind;
use domain::{FileId, FilePath, Sha256, Timestamp};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A file or folder that a rewind leaves as it is, because others changed it since.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RewindConflict {
    /// Its last known path.
    pub path: FilePath,
    /// The file or folder.
    pub file_id: FileId,
    /// The author of the other change, where one is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// The time of the other change, where one is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Timestamp>,
    /// The reason, for people.
    pub reason: String,
}

/// Something that a rewind cannot bring back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RewindLoss {
    /// Its last known path.
    pub path: FilePath,
    /// The file or folder; none where it is not about a single one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_id: Option<FileId>,
    /// The reason, for people.
    pub reason: String,
}

/// Where a rewind puts an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Goal {
    /// Wherever it is.
    Stay,
    /// At this path.
    At(FilePath),
    /// It did not exist.
    Absent,
    /// It was in the trash.
    Trash,
}

/// A file or folder that the records name.
#[derive(Debug)]
pub(super) struct Track {
    pub kind: FileKind,
    pub now: EntryPlace,
    pub goal: Goal,
    /// The last path that a record names.
    pub path: FilePath,
    /// Its version now, where the records tell it.
    pub v: Option<u64>,
    pub sha256: Option<Sha256>,
    /// The version to go back to.
    pub back_to: Option<u64>,
    /// The position of the record that `back_to` comes from, and its path there.
    pub written: Option<(usize, FilePath)>,
    /// Whether it was in the trash inside of a folder that a selected record restored, and is in the trash again.
    pub is_again_in_trash: bool,
    /// Whether a selected record names it.
    pub selected: bool,
    /// The first record after the first selected one that is not selected.
    pub theirs: Option<(String, Timestamp)>,
    /// Its place and its content after the last selected record.
    pub mine: Option<(EntryPlace, Option<Sha256>)>,
    /// Whether others changed it between selected records, or something else than its place and its content.
    pub is_mixed: bool,
    /// The position of the last record that is not selected.
    pub last_theirs: Option<usize>,
    /// The position of the record that `goal` comes from.
    pub placed: Option<usize>,
}

/// All files and folders that the records name.
pub(super) type Tracks = BTreeMap<FileId, Track>;
