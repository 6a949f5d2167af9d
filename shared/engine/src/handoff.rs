//! Handoffs: new versions of files start tasks (spec 001 §6).
//!
//! ```text
//!   a write ── commit: the version and its pending handoff ──> message ──> Handoffs: match ─ decide ─ begin or refuse ─ settle
//!                                 └── a sweep finds it by its time, when the message was lost ──┘
//! ```
//!
//! Nothing here is a source of truth: the pending handoff is in the commit of its version (`workspace::PendingHandoff`). The id of a task
//! follows from the flow, the file and the version, so that the same version starts a flow once, however often its message comes. Matching is
//! `flow::trigger`, a pure function; the decision on a match (`decide`) is one, too.

mod author;
mod decide;
mod driver;
mod outbox;
mod rate;

pub use decide::{HandoffLimits, task_of};
pub use driver::Handoffs;
pub use outbox::Outbox;

use domain::WorkspaceId;
use ports::QueueMessage;
use uuid::Uuid;

/// The kind of the queue groups of handoffs: one per workspace, so that the limit on a workspace's starts is exact.
pub const KIND: &str = "handoff";

/// The message that has a pending handoff dealt with.
pub fn message(workspace: WorkspaceId, id: Uuid) -> QueueMessage {
    let (group, id) = (format!("{KIND}/{workspace}"), id.hyphenated().to_string());
    QueueMessage { group, body: id.clone(), id, ..QueueMessage::default() }
}
