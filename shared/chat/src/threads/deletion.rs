//! The end of a thread, and of a workspace with its threads: the words of turns are forgotten, too.

use super::{
    Threads,
    record::{partition, turns_of},
};
use crate::chats::internal;
use domain::{ChatId, Error, WorkspaceId};
use ports::{Expect, Query, Write};

/// How many records are removed together.
const AT_ONCE: usize = 50;

impl Threads {
    /// Removes the records of all threads, turns and clients of a workspace that is being deleted; none is fine. Chats are not removed with them.
    ///
    /// # Errors
    /// Those of [`Threads`]. Some may be gone then, and a repetition removes the rest.
    pub async fn forget_all(&self, workspace: WorkspaceId) -> Result<(), Error> {
        self.chats.table.clear(&partition(workspace)).await.map_err(internal)
    }

    /// Removes the records of the turns of a thread.
    pub(super) async fn forget_turns(&self, workspace: WorkspaceId, thread: ChatId) -> Result<(), Error> {
        let table = &self.chats.table;
        // An index may lag behind the removals, so its pages are gone through once.
        let mut pages = table.index_pages(Query::all(turns_of(workspace, thread), AT_ONCE));
        while let Some(items) = pages.next().await.map_err(internal)? {
            let gone: Vec<Write> = items.into_iter().map(|item| Write::delete(item.key, Expect::Any)).collect();
            if !gone.is_empty() {
                table.commit(gone).await.map_err(internal)?;
            }
        }
        Ok(())
    }
}
