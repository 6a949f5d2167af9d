//! Workspaces: files with a permanent identity, immutable versions, and a folder on disk that any tool can read
//! (specs 000 §1 and 001 §3; docs/architecture/workspaces.md).
//!
//! There are three stores, and one of them decides:
//!
//! - The **index** is in the table. An entry (`dir/<folder>`, name) has the current version; a node has the place of a file id;
//!   versions are never changed. As in a Unix file system, an entry names its folder by id and not by path, so that to move
//!   or to remove a folder of any size is one commit.
//! - The **archive** has every content by its SHA-256: small texts in the table, everything else in [`ports::Blobs`].
//! - The **mirror** is `latest/` on disk, for readers such as `grep`. It is written after the commit and never synced: it can
//!   be made again from the other two at any time, and [`Workspace::repair`] does so after a crash.
//!
//! A write is: hash, archive, one conditional commit, flush to `latest/` by rename. So it costs one grouped commit, and one
//! blob sync when the content is large. A tool call that runs again after a crash finds its result under its call id and
//! changes nothing.
//!
//! On a machine whose disk does not last the mirror is a cache: reads compare its bytes with the index, and code that walks it has it
//! [hydrated](Workspace::hydrate) before.
//!
//! A workspace is opened for somebody: [`Access`]. Every operation of the handle asks the policies of `shared/access` before it acts, and shows what
//! exists for that party alone (`access_checks.rs`). Beside that there are the workspace's own invariants: the taxonomy stays, and only the chat writes its
//! chat file. This crate holds no event streams: it only announces each [`Change`] on the bus.

mod access_checks;
mod archive;
mod audit;
pub mod blocking;
mod cache;
mod changes;
mod commands;
mod commit;
mod contents;
mod crashes;
mod daily_usage;
mod damage;
mod damages;
pub mod documents;
mod encoding;
mod error;
mod export_import;
mod files;
mod fsck;
#[cfg(test)]
mod golden;
mod growing_pauses;
mod handle;
mod handoff;
mod homes;
mod hydrate;
mod index;
mod keys;
pub mod large_contents;
mod media_type;
mod mentions;
pub mod mirror;
mod model;
mod move_entries;
mod party;
mod policies;
mod projection;
mod relations;
mod remains;
pub mod removal;
mod repair;
mod retention;
pub mod rewind;
mod sandbox_mirror;
mod sandboxes;
mod scrub;
mod snapshot;
mod system_folder;
mod taxonomy;
mod transfer;
mod trash;
mod trash_entry;
mod versions;
mod workspaces;
mod write;

pub use ::access::{
    Action, BRIEF_SETTINGS, CALENDAR_ENDING, CALENDARS, Decision, Effect, PERSONAS, PROFILE, Policies, Role, SKILLS,
    Subject,
};
pub use access_checks::asks;
pub use audit::{ChangeFilter, ChangeList, ListedChange};
pub use cache::{Budget, Hydrated};
pub use changes::{ChangePage, LATE};
pub use commit::{Beginning, CHANGES_KEPT};
pub use contents::FileContent;
pub use daily_usage::{DailyUsage, Purpose};
pub use damages::{DamageCounts, Damaged};
pub use encoding::{Decoded, as_utf_8};
pub use error::is_damage_of_index;
pub use export_import::{Format, Imported, Source};
pub use files::ReadableTree;
pub use fsck::{CheckCounts, FsckFault, FsckPart};
pub use handle::{DeletionObserver, Dependents, HandoffObserver, Projector, Workspace, Workspaces};
pub use handoff::{FileInFolder, ForgottenHandoff, HANDOFF_SHARDS, PendingHandoff};
pub use homes::Profile;
pub use index::MAX_DEPTH;
pub use media_type::{known_media_type, media_type};
pub use mentions::{check_tag, linked_paths};
pub use model::{
    Change, Content, Expect, FileKind, Info, Listing, Mark, Op, Repaired, TrashPage, Trashed, Version, VersionPage,
    WorkspaceInfo, WorkspacePage, Writer,
};
pub use party::Access;
pub use ports::Damage;
pub use projection::Projection;
pub use relations::{
    FileRef, Link, MAX_NETWORK_DEPTH, MAX_NETWORK_NODES, MarkChange, Network, NetworkEdge, NetworkNode, Relations,
    TagCount, TagCounts, TaggedPage, check_kind,
};
pub use retention::TRASH_SHARDS;
pub use scrub::Scrubbed;
pub use transfer::{IncomingPart, TransferRoute, Upload};

/// The result of everything here. Clients read the error; causes are in the log.
pub type Result<T> = std::result::Result<T, domain::Error>;

/// The longest content of one write, in bytes; longer ones are [`ports::LARGE`], and come by an upload.
pub const MAX_FILE: usize = ports::LARGE as usize;
