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

use domain::{Code, Error, TaskId, WorkspaceId};
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

/// A store's failure as a node's: passing where another try may do.
fn port(error: ports::Error) -> Error {
    match error.kind() {
        _ if error.is_full() => Error::storage_full(),
        ports::ErrorKind::Retry => {
            tracing::warn!(error = %error.with_causes(), "memory did not answer");
            Error::new(Code::UpstreamUnavailable, "memory did not answer").hint("try again")
        }
        ports::ErrorKind::Reject | ports::ErrorKind::Bug => {
            tracing::error!(error = %error.with_causes(), "memory cannot be used");
            error.lost().unwrap_or_else(|| Error::new(Code::Internal, "memory cannot be used"))
        }
    }
}

#[cfg(test)]
mod tests;
