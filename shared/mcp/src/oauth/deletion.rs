//! The end of a workspace: its accounts are forgotten, since a workspace that is made under its id later would have them.

use super::accounts::{AccountDependencies, partition, unavailable};
use domain::{Error, WorkspaceId};

impl AccountDependencies {
    /// Forgets all accounts of a workspace, those included that wait for a code, and the sign-ins that wait for a person; none is fine.
    ///
    /// # Errors
    /// `UPSTREAM_UNAVAILABLE` when they cannot be read or written: some may be forgotten then.
    pub(crate) async fn forget_all(&self, workspace: WorkspaceId) -> Result<(), Error> {
        self.table.clear(&partition(workspace)).await.map_err(unavailable)
    }
}
