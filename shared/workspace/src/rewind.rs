//! Rewind: a folder, the workspace, or the work of a chat, a turn or a task goes back to how it was (spec 001 §5).
//!
//! A rewind takes back changes by new changes: old contents become new versions, removed files come back from the trash, new ones go there. So a
//! rewind loses nothing, and its own changes, which are found under its id, are taken back by another one.
//!
//! The plan (`plan.rs`) is a pure function of the records that commits write. The execution (`execute.rs`) keeps the plan in the archive and does each step
//! under a call id of its own, on the condition that the file is as the plan saw it. So it can be repeated after a crash, and a file that others
//! changed meanwhile stays as they left it.

mod execute;
mod history;
mod marks;
mod place;
mod plan;
mod steps;
mod track;

pub use steps::{RewindOp, RewindStep};
pub use track::{RewindConflict, RewindLoss};
#[cfg(test)]
pub(crate) use {execute::Item, history::Plan};

use crate::{Result, Workspace};
use domain::{CallId, FileId, FilePath, Timestamp};
use serde::Serialize;
use std::collections::BTreeSet;
use uuid::Uuid;

/// The longest diffs of one page, in bytes in all.
const MAX_DIFFS: usize = 256 * 1024;

/// The changes that a rewind takes back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selection {
    /// All changes at or below a path after a time.
    Below {
        /// The path, as it is now or as it was.
        path: FilePath,
        /// The time to go back to.
        since: Timestamp,
    },
    /// The changes of chats, tasks or rewinds.
    By {
        /// Their ids.
        actors: Vec<Uuid>,
        /// Only the changes of these tool calls.
        calls: Option<BTreeSet<CallId>>,
        /// When the work began, where it is known. Records of changes are kept for 30 days.
        since: Option<Timestamp>,
    },
    /// The versions of one file after this one.
    Version {
        /// The file.
        file_id: FileId,
        /// The version to go back to.
        v: u64,
    },
}

/// A rewind that is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The changes to take back.
    pub selection: Selection,
    /// The newest record that the caller has seen: later changes count as made by others. None for all until now.
    pub as_of: Option<Uuid>,
}

/// How far a rewind is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RewindState {
    /// Nothing was changed.
    Preview,
    /// Some steps are left: the same request does them.
    Running,
    /// Every step was done, or is among the conflicts or the unavailable.
    Done,
}

/// A step, with the changes of its content.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ShownStep {
    /// The step.
    #[serde(flatten)]
    pub step: RewindStep,
    /// The unified diff of an update, cut to 8 KiB and said so; none where a content is not text or too long, and beyond 256 KiB a page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
}

/// The numbers of steps by their effect.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RewindCounts {
    /// Entries that come back from the trash.
    pub creates: usize,
    /// Files with a new version.
    pub updates: usize,
    /// Entries that go to the trash.
    pub deletes: usize,
    /// Entries with another path.
    pub moves: usize,
    /// Changes of tags and links.
    pub marks: usize,
    /// Entries that stay as others left them.
    pub conflicts: usize,
    /// Entries that cannot be brought back.
    pub unavailable: usize,
}

/// A rewind, or its preview.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Rewind {
    /// The id of its changes; none for a preview.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rewind_id: Option<Uuid>,
    /// How far it is.
    pub state: RewindState,
    /// The newest record of a change that the plan has seen.
    pub as_of: Uuid,
    /// The numbers of all steps, of those done once it runs.
    pub counts: RewindCounts,
    /// A page of the steps, in their order; the first 1,000 of those done once it runs.
    pub steps: Vec<ShownStep>,
    /// Entries that stay as others left them, at most 1,000.
    pub conflicts: Vec<RewindConflict>,
    /// Entries that cannot be brought back, at most 1,000.
    pub unavailable: Vec<RewindLoss>,
    /// The cursor of the next page of steps; none at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// Which steps of a rewind are shown.
#[derive(Clone, Copy, Debug)]
pub struct StepPage {
    /// The position of the first one.
    pub after: usize,
    /// At most this many; cut to 1 to 1,000.
    pub limit: usize,
}

impl StepPage {
    /// The place in a cursor of [`Rewind`]: the position of the first step, and `as_of` of the plan, which cursors of earlier versions lack. None for any
    /// other text.
    pub fn place(cursor: &str) -> Option<(usize, Option<Uuid>)> {
        match cursor.split_once('/') {
            Some((after, as_of)) => Some((after.parse().ok()?, Some(as_of.parse().ok()?))),
            None => Some((cursor.parse().ok()?, None)),
        }
    }
}

impl Workspace {
    /// The steps that a rewind would do, with diffs. Changes nothing. A further page has `as_of` of the first one, as its [cursor](StepPage::place) says:
    /// else it is of another plan, whose steps have other positions.
    ///
    /// # Errors
    /// `NOT_FOUND` for a version that does not exist; `UNPROCESSABLE` for more than 10,000 steps or 200,000 changes, with the limit; else those of
    /// [`Workspace`]. Files that retention has purged are in the answer.
    pub async fn preview_rewind(&self, target: &Target, page: StepPage) -> Result<Rewind> {
        let mut plan = self.plan_rewind(target, target.as_of).await?;
        // The plan has seen later changes, too; the next page, and the rewind that follows, leave out the same ones.
        plan.as_of = target.as_of.unwrap_or(plan.as_of);
        let mut rewind = Rewind::of(&plan, page);
        let mut room = MAX_DIFFS;
        for shown in &mut rewind.steps {
            let RewindStep { op: RewindOp::Update, file_id, v: Some(v), to_v: Some(to_v), .. } = shown.step else {
                continue;
            };
            if room == 0 {
                break;
            }
            // A content that is damaged fails its step, not the preview.
            shown.diff = self.diff(file_id, v, to_v).await.ok().flatten();
            room = room.saturating_sub(shown.diff.as_ref().map_or(0, String::len));
        }
        Ok(rewind)
    }
}

impl Rewind {
    /// Whether there is nothing to take back, nor anything that stays as others left it or cannot be brought back.
    pub fn is_empty(&self) -> bool {
        self.state != RewindState::Running && self.counts == RewindCounts::default()
    }

    /// As a plan has it.
    fn of(plan: &history::Plan, page: StepPage) -> Self {
        const MOST: usize = 1000;
        let limit = page.limit.clamp(1, MOST);
        let end = page.after.saturating_add(limit);
        let steps = plan.steps.iter().skip(page.after).take(limit);
        let of = |op: RewindOp| plan.steps.iter().filter(|step| step.op == op).count();
        Self {
            rewind_id: None,
            state: RewindState::Preview,
            as_of: plan.as_of,
            counts: RewindCounts {
                creates: of(RewindOp::Create),
                updates: of(RewindOp::Update),
                deletes: of(RewindOp::Delete),
                moves: of(RewindOp::Move),
                marks: of(RewindOp::Mark),
                conflicts: plan.conflicts.len(),
                unavailable: plan.unavailable.len(),
            },
            steps: steps.map(|step| ShownStep { step: step.clone(), diff: None }).collect(),
            conflicts: plan.conflicts.iter().take(MOST).cloned().collect(),
            unavailable: plan.unavailable.iter().take(MOST).cloned().collect(),
            next_cursor: (end < plan.steps.len()).then(|| format!("{end}/{}", plan.as_of)),
        }
    }
}
