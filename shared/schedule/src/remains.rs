//! The rows of the schedules of a deleted workspace, and their removal.

use crate::machine::{actor_id, partition};
use actor::ended;
use domain::WorkspaceId;
use ports::{Result, Table};

/// Removes the schedules of a deleted workspace that are on its list, with their logs. Those that were deleted before are [`actor::ended`]. Again is
/// harmless.
///
/// # Errors
/// Those of [`Table::clear`]. Some of it is gone then.
pub async fn remove_remains(table: &dyn Table, workspace: WorkspaceId) -> Result<()> {
    let schedule = |id: &str| Some(actor_id(workspace, id.parse().ok()?));
    ended::remove_listed(table, &partition(workspace), schedule).await
}
