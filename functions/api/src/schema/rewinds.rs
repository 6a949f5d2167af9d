//! How rewinds look.

use super::FileKind;
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

/// How far a rewind is.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum RewindState {
    /// Nothing was changed.
    Preview,
    /// Some steps are left: the same request does them.
    Running,
    /// Every step was done, or is among the conflicts or the unavailable.
    Done,
}

/// The effect of a step.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum RewindOp {
    /// It comes back from the trash.
    Create,
    /// The content of an old version becomes the newest version.
    Update,
    /// It goes to the trash.
    Delete,
    /// It gets another path.
    Move,
    /// It gets or loses tags, or a link.
    Mark,
}

/// Tags or a link that a step adds or removes: one of these fields is there.
#[derive(Serialize, ToSchema)]
pub struct RewindRelationChange {
    /// Tags that it gets.
    pub tag: Option<Vec<String>>,
    /// Tags that it loses.
    pub untag: Option<Vec<String>>,
    /// The target and the kind of a link that it gets.
    #[schema(value_type = Option<Vec<String>>, min_items = 2, max_items = 2)]
    pub link: Option<(Uuid, String)>,
    /// The target and the kind of a link that it loses.
    #[schema(value_type = Option<Vec<String>>, min_items = 2, max_items = 2)]
    pub unlink: Option<(Uuid, String)>,
}

/// One step of a rewind.
#[derive(Serialize, ToSchema)]
pub struct RewindStep {
    /// Its effect.
    pub op: RewindOp,
    /// The file or folder.
    pub file_id: Uuid,
    /// Its kind.
    pub kind: FileKind,
    /// Its path after the step; of a deleted one the path before it.
    pub path: String,
    /// The path before a move.
    pub from: Option<String>,
    /// The version that the step expects, where it is known.
    pub v: Option<u64>,
    /// The version whose content an update makes current.
    pub to_v: Option<u64>,
    /// Whether a folder is deleted only if it is empty.
    pub if_empty: Option<bool>,
    /// The tags or the link, of a change of those.
    pub mark: Option<RewindRelationChange>,
    /// In a preview, the unified diff of an update, cut to 8 KiB and said so; none where a content is not text or too long, and beyond 256 KiB a page.
    pub diff: Option<String>,
}

/// Something that stays as others left it.
#[derive(Serialize, ToSchema)]
pub struct RewindConflict {
    /// Its last known path.
    pub path: String,
    /// The file or folder.
    pub file_id: Uuid,
    /// The author of the other change, where one is known.
    pub by: Option<String>,
    /// The time of the other change, where one is known.
    #[schema(format = DateTime)]
    pub at: Option<String>,
    /// The reason, for people.
    pub reason: String,
}

/// Something that cannot be brought back.
#[derive(Serialize, ToSchema)]
pub struct RewindLoss {
    /// Its last known path.
    pub path: String,
    /// The file or folder; none where it is not about a single one.
    pub file_id: Option<Uuid>,
    /// The reason, for people.
    pub reason: String,
}

/// The numbers of steps by their effect.
#[derive(Serialize, ToSchema)]
pub struct RewindCounts {
    /// Entries that come back from the trash.
    pub creates: u64,
    /// Files with a new version.
    pub updates: u64,
    /// Entries that go to the trash.
    pub deletes: u64,
    /// Entries with another path.
    pub moves: u64,
    /// Changes of tags and links.
    pub marks: u64,
    /// Entries that stay as others left them.
    pub conflicts: u64,
    /// Entries that cannot be brought back.
    pub unavailable: u64,
}

/// A rewind, or its preview.
#[derive(Serialize, ToSchema)]
pub struct Rewind {
    /// The id of its changes; none for a preview.
    pub rewind_id: Option<Uuid>,
    /// How far it is.
    pub state: RewindState,
    /// The newest record of a change that the plan has seen, for a rewind after a preview.
    pub as_of: Uuid,
    /// The numbers of all steps, of those done once it runs.
    pub counts: RewindCounts,
    /// A page of the steps, in their order; the first 1,000 of those done once it runs.
    pub steps: Vec<RewindStep>,
    /// Entries that stay as others left them, at most 1,000.
    pub conflicts: Vec<RewindConflict>,
    /// Entries that cannot be brought back, at most 1,000.
    pub unavailable: Vec<RewindLoss>,
    /// The cursor of the next page of steps; none at the end.
    pub next_cursor: Option<String>,
    /// The chat that was forked along with it, where one was asked for.
    pub forked_chat_id: Option<Uuid>,
}
