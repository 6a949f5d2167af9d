//! The state of a connected calendar, in a file beside its declaration: what both sides had when they were the same last.

use crate::merge::Digests;
use domain::{FileId, FilePath, Sha256, Timestamp};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The shape of the file.
pub const VERSION: u32 = 1;
/// The conflicts that are kept: the last ones.
pub const CONFLICTS: usize = 50;

/// The state of a connected calendar.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SyncState {
    /// The shape.
    pub version: u32,
    /// The calendar: the state of another one is none.
    pub calendar: String,
    /// The last sync that came to its end and found something new.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub synced_at: Option<Timestamp>,
    /// Why the last one did not, and when.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<Failed>,
    /// The work that is left, for people: the next sync tries it again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<String>,
    /// The changes of both sides that met, the last ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conflicts: Vec<Conflict>,
    /// The token of the calendar.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// The objects of the calendar, by their names there.
    #[serde(default)]
    pub objects: BTreeMap<String, KnownObject>,
}

/// A sync that failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failed {
    /// When.
    pub at: Timestamp,
    /// Why, for people.
    pub why: String,
}

/// A change of both sides.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Conflict {
    /// When it was found.
    pub at: Timestamp,
    /// The file.
    pub path: FilePath,
    /// Its version with the values of this side, which `GET …/versions` still has.
    pub v: u64,
    /// Its outcome, for people.
    pub what: String,
}

/// An object of the calendar.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KnownObject {
    /// Its version there.
    pub etag: String,
    /// The identity of its event.
    pub uid: String,
    /// Its events, by occurrence.
    pub events: BTreeMap<String, KnownEvent>,
}

/// An event of an object.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KnownEvent {
    /// The file.
    pub file: FileId,
    /// Its content.
    pub sha256: Option<Sha256>,
    /// The values of both sides.
    pub values: Digests,
}

impl SyncState {
    /// The state of a calendar that was never looked at.
    pub fn new(calendar: String) -> Self {
        Self { version: VERSION, calendar, ..Self::default() }
    }

    /// Reads the state of this calendar; that of another calendar, of another shape, or none begins anew: nothing is lost by it, since both sides are
    /// compared then.
    pub fn read(text: &str, calendar: String) -> Self {
        match serde_json::from_str::<Self>(text) {
            Ok(state) if state.version == VERSION && state.calendar == calendar => state,
            _ => Self::new(calendar),
        }
    }

    /// Remembers conflicts.
    pub fn add(&mut self, conflicts: impl IntoIterator<Item = Conflict>) {
        self.conflicts.extend(conflicts);
        let over = self.conflicts.len().saturating_sub(CONFLICTS);
        self.conflicts.drain(..over);
    }
}
