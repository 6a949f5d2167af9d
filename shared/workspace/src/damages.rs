//! Damaged contents that this process knows of (`damage.rs` finds and repairs them).

use crate::error;
use domain::{Code, Error, FileId, FilePath, Sha256, Timestamp, WorkspaceId};
use parking_lot::Mutex;
use ports::Damage;
use serde::{Deserialize, Serialize};
use std::{collections::HashMap, sync::atomic::AtomicU64};

/// A content that could not be repaired.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Damaged {
    /// The workspace that the content belongs to.
    pub workspace_id: WorkspaceId,
    /// The digest that it should have.
    pub sha256: Sha256,
    /// Its length in bytes.
    pub size: u64,
    /// The kind of damage.
    pub damage: Damage,
    /// When that was seen last.
    pub found_at: Timestamp,
}

/// Counters of damage that this process has seen since it started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DamageCounts {
    /// Contents that scrubs compared with their digests.
    pub scrubbed: u64,
    /// Times that a content was found missing or altered.
    pub found: u64,
    /// Contents that were repaired from a good copy.
    pub repaired: u64,
}

#[derive(Default)]
pub(crate) struct Damages {
    pub scrubbed: AtomicU64,
    pub found: AtomicU64,
    pub repaired: AtomicU64,
    /// Those of which no good copy was found, and when.
    lost: Mutex<HashMap<(WorkspaceId, Sha256), Timestamp>>,
    /// The key of the record behind which known damage is looked at next between the rounds of the scrub; none at the beginning.
    rechecked: Mutex<Option<String>>,
}

impl Damages {
    pub fn lost(&self) -> parking_lot::MutexGuard<'_, HashMap<(WorkspaceId, Sha256), Timestamp>> {
        self.lost.lock()
    }

    pub fn rechecked(&self) -> parking_lot::MutexGuard<'_, Option<String>> {
        self.rechecked.lock()
    }
}

/// Whether an error says that a content is damaged or missing. A row of the index is none: without it nobody knows the content.
pub(crate) fn is_damage(error: &Error) -> bool {
    matches!(error.code, Code::ContentDamaged | Code::ContentMissing) && !error::is_damage_of_index(error)
}

/// The same error with its place, if it is about a content.
pub(crate) fn at(error: Error, path: Option<&FilePath>, file_id: FileId, v: u64) -> Error {
    if !is_damage(&error) {
        return error;
    }
    let error = error.detail("file_id", file_id.to_string()).detail("v", v);
    match path {
        Some(path) => error.detail("path", path.to_string()),
        None => error,
    }
}
