//! The end of a workspace: its accounts are forgotten, since a workspace that is made under its id later would have them.

use super::accounts::{AccountDependencies, partition, unavailable};
use domain::{Error, WorkspaceId};
use ports::{Expect, Query, Write};

/// How many accounts are forgotten together.
const AT_ONCE: usize = 50;

impl AccountDependencies {
    /// Forgets all accounts of a workspace, those included that wait for a code, and the sign-ins that wait for a person; none is fine.
    ///
    /// # Errors
    /// `UPSTREAM_UNAVAILABLE` when they cannot be read or written: some may be forgotten then.
    pub(crate) async fn forget_all(&self, workspace: WorkspaceId) -> Result<(), Error> {
        loop {
            let page = self.table.query(&Query::all(partition(workspace), AT_ONCE)).await.map_err(unavailable)?;
            let gone: Vec<Write> = page.items.into_iter().map(|item| Write::delete(item.key, Expect::Any)).collect();
            if gone.is_empty() {
                return Ok(());
            }
            self.table.commit(gone).await.map_err(unavailable)?;
        }
    }
}
