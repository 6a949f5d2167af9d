//! Memory (spec 002 §4, §10.10): items that nodes remember, in three layers, and the read-only context that is made of them.
//!
//! ```text
//!   task     of one root task with its clones and subtasks      {workspace}/memory/task/{root}
//!   project  of all tasks of one flow in a workspace            {workspace}/memory/project/{flow}
//!   global   of a workspace                                     {workspace}/memory/global
//! ```
//!
//! A store is a partition of the table. A key holds one thing, the newest: to remember is to replace, and to do it again
//! after a crash changes nothing. Items are kept in the order of time, so that the newest are one query away; no store is
//! ever read as a whole.

mod assemble;
mod rank;
mod semantic;
mod snapshot;
mod store;

pub use rank::{Bm25, Ranker};
pub use semantic::SemanticRanker;
pub use snapshot::Snapshot;
pub(crate) use snapshot::forget_task;
pub use store::Writer;
pub(crate) use store::partition;

use crate::error::store_failed;
use domain::{Error, TaskId, WorkspaceId};
use ports::{KnownSecrets, Table};
use std::sync::Arc;

/// Tokens of a context that takes everything ([`flow::flow::ContextUse::Global`]).
pub const GLOBAL_TOKENS: u64 = 4000;
/// The longest remembered content as JSON, in bytes.
pub const MAX_CONTENT: usize = 256 * 1024;

/// The memory that a task sees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scope {
    /// Its workspace.
    pub workspace: WorkspaceId,
    /// Its flow, by name: new versions of a flow know what the old ones did.
    pub flow: String,
    /// The root task that it belongs to.
    pub root: TaskId,
}

/// All memory of an installation. Cheap to clone.
#[derive(Clone)]
pub struct Memory {
    table: Arc<dyn Table>,
    ranker: Arc<dyn Ranker>,
    secrets: KnownSecrets,
}

impl std::fmt::Debug for Memory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Memory")
    }
}

impl Memory {
    /// Over a table, ranked by words.
    pub fn new(table: Arc<dyn Table>) -> Self {
        Self { table, ranker: Arc::new(Bm25), secrets: KnownSecrets::default() }
    }

    /// The same, which remembers none of these secrets.
    #[must_use]
    pub fn redacting(self, secrets: KnownSecrets) -> Self {
        Self { secrets, ..self }
    }

    /// The same with another ranking, such as [`SemanticRanker`].
    #[must_use]
    pub fn with_ranker(self, ranker: Arc<dyn Ranker>) -> Self {
        Self { ranker, ..self }
    }
}

fn port(error: ports::Error) -> Error {
    store_failed("memory", error)
}

#[cfg(test)]
mod tests;
