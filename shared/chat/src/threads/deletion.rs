//! The end of a workspace: its threads are forgotten, with the words of their turns.

use super::{Threads, record::partition};
use crate::chats::internal;
use domain::{Error, WorkspaceId};
use ports::{Expect, Query, Write};

/// How many records are removed together.
const AT_ONCE: usize = 50;

impl Threads {
    /// Removes the records of all threads, turns and clients of a workspace that is being deleted; none is fine. Chats are not removed with them.
    ///
    /// # Errors
    /// Those of [`Threads`]. Some may be gone then, and a repetition removes the rest.
    pub async fn forget_all(&self, workspace: WorkspaceId) -> Result<(), Error> {
        let table = &self.chats.table;
        loop {
            let page = table.query(&Query::all(partition(workspace), AT_ONCE)).await.map_err(internal)?;
            let gone: Vec<Write> = page.items.into_iter().map(|item| Write::delete(item.key, Expect::Any)).collect();
            if gone.is_empty() {
                return Ok(());
            }
            table.commit(gone).await.map_err(internal)?;
        }
    }
}
